"""Any history of folders against a model of what people may expect of them.

Small numbers of people and names, so that everything collides; on both databases, and
on the real disk of a storage host.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from backendai_hub.api.folders import LeaveRequest, TransferRequest
from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.access import Principal
from backendai_hub.core.errors import HubError
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.mounts import Mount
from backendai_hub.core.tenancy import Role
from backendai_hub.core.vfolders import UsageMode
from backendai_hub.db.engine import Database
from backendai_hub.operations import folder_invitations
from backendai_hub.operations import folder_sharing as sharing
from backendai_hub.operations.folder_transfers import transfer_folder
from backendai_hub.operations.session_mounts import choose_mounts
from backendai_hub.operations.users import ensure_user
from tests.databases import StandingDatabase
from tests.factories import AUDIT_KEY, Clock
from tests.folders import Archive, opened_archive, permit
from tests.harness import migrated

DOTTED = ".cache"
NAMES = ("data", "sets", DOTTED)
PEOPLE = ("alice", "bob")
people = st.sampled_from(PEOPLE)
names = st.sampled_from(NAMES)


class Known:
    """What the model knows of one folder."""

    def __init__(self, owner: str, name: str, content: str) -> None:
        self.owner = owner
        self.name = name
        self.content = content
        self.state = "ready"
        self.guests: set[str] = set()


class Histories(RuleBasedStateMachine):
    """Folders are made, renamed, shared, copied, thrown away, taken back, removed.

    They are given to others, and what the storage host permits changes: whatever
    happens, nobody's session gets anything of somebody else's without asking.
    """

    new_url: Any = None

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory(prefix="backendai-")
        self.known: dict[str, Known] = {}
        self.made = 0
        self.may_mount = True
        self.run(self._open())

    async def _open(self) -> None:
        self.stack = AsyncExitStack()
        root = Path(self.folder.name)
        url = type(self).new_url(root)
        database = Database(url, clock=Clock(), audit_key=AUDIT_KEY)
        self.stack.push_async_callback(database.close)
        opened = opened_archive(database, root / "folders")
        self.archive: Archive = await self.stack.enter_async_context(opened)
        self.who: dict[str, Principal] = {
            name: await self.archive.person(name) for name in PEOPLE
        }
        self.root = await self.archive.person("root", Role.SUPERADMIN)
        office = self.archive.office
        self.store = await office.make(
            "project", name="store", domain="default", type="model-store"
        )
        await office.join(self.store.id, *PEOPLE)
        self.who = {name: await self.archive.person(name) for name in PEOPLE}

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.run(self.stack.aclose())
            self.loop.close()
            self.folder.cleanup()

    # --- the model ---------------------------------------------------------------

    def visible(self, person: str, name: str) -> str | None:
        """Return the folder that *name* means to a person, as long as it is alive."""
        for key, one in self.known.items():
            theirs = one.owner == person or person in one.guests
            if theirs and one.state == "ready" and one.name == name:
                return key
        return None

    def is_free(self, person: str, name: str) -> bool:
        return self.visible(person, name) is None

    def attempt(self, work: Coroutine[Any, Any, Any], *, goes: bool) -> Any:
        """Do something, which goes well exactly if the model says so."""
        if goes:
            return self.run(work)
        with pytest.raises(HubError):
            self.run(work)
        return None

    def pick(self, number: int, *, state: str) -> tuple[str, Known] | None:
        found = [(k, o) for k, o in self.known.items() if o.state == state]
        return found[number % len(found)] if found else None

    def place(self, key: str) -> Path:
        one = self.known[key]
        folder = self.run(self.archive.read(self.who[one.owner], key))
        return self.archive.place(folder, self.who[one.owner].id)

    # --- what happens ------------------------------------------------------------

    @rule(person=people, name=names)
    def make(self, person: str, name: str) -> None:
        made = self.attempt(
            self.archive.make(self.who[person], name),
            goes=self.is_free(person, name),
        )
        if made is not None:
            self.made += 1
            self.known[made.id] = Known(person, name, f"content {self.made}")
            (self.place(made.id) / "file").write_text(self.known[made.id].content)

    @rule(number=st.integers(0, 5), name=names)
    @precondition(lambda self: self.known)
    def rename(self, number: int, name: str) -> None:
        found = self.pick(number, state="ready")
        if found is None:
            return
        key, one = found
        goes = one.name == name or self.is_free(one.owner, name)
        goes = goes and not (name == DOTTED and one.guests)
        work = self.archive.change(self.who[one.owner], key, name=name)
        if self.attempt(work, goes=goes) is not None:
            one.name = name

    @rule(number=st.integers(0, 5))
    @precondition(lambda self: self.known)
    def throw_away(self, number: int) -> None:
        found = self.pick(number, state="ready")
        if found is not None:
            key, one = found
            self.attempt(self.archive.trash(self.who[one.owner], key), goes=True)
            one.state = "trash"

    @rule(number=st.integers(0, 5), name=st.one_of(st.none(), names))
    @precondition(lambda self: self.known)
    def take_back(self, number: int, name: str | None) -> None:
        found = self.pick(number, state="trash")
        if found is None:
            return
        key, one = found
        new = name or one.name
        goes = self.is_free(one.owner, new) and not (new == DOTTED and one.guests)
        work = self.archive.restore(self.who[one.owner], key, name)
        if self.attempt(work, goes=goes) is not None:
            one.state, one.name = "ready", new

    @rule(number=st.integers(0, 5))
    @precondition(lambda self: self.known)
    def remove(self, number: int) -> None:
        found = self.pick(number, state="trash")
        if found is None:
            return
        key, one = found
        place = self.place(key)
        self.attempt(self.archive.purge(self.who[one.owner], key, one.name), goes=True)
        self.run(self.archive.settle())
        one.state = "gone"
        one.guests.clear()
        assert not place.exists()

    @rule(number=st.integers(0, 5), name=names, person=people)
    @precondition(lambda self: self.known)
    def copy(self, number: int, name: str, person: str) -> None:
        found = self.pick(number, state="ready")
        if found is None:
            return
        key, one = found
        if one.owner != person and person not in one.guests:
            return
        self.run(self.archive.change(self.who[one.owner], key, cloneable=True))
        answer = self.attempt(
            self.archive.clone(self.who[person], key, name),
            goes=self.is_free(person, name),
        )
        if answer is not None:
            self.run(self.archive.settle())
            self.known[answer.folder.id] = Known(person, name, one.content)

    @rule(number=st.integers(0, 5), meanwhile=st.one_of(st.none(), names))
    @precondition(lambda self: self.known)
    def share(self, number: int, meanwhile: str | None) -> None:
        found = self.pick(number, state="ready")
        if found is None:
            return
        key, one = found
        other = next(name for name in PEOPLE if name != one.owner)
        if other in one.guests:
            return
        owner, guest = self.who[one.owner], self.who[other]
        inviting = self.archive.invite(owner, key, other, permission="rw")
        invited = self.attempt(inviting, goes=one.name != DOTTED)
        if invited is None:
            return
        (asked,) = invited
        assert asked.error is None
        if meanwhile is not None:
            self.rename(number, meanwhile)
        platform = self.archive.platform
        work = folder_invitations.accept_invitation(platform, guest, asked.invitation)
        goes = one.name != DOTTED and self.is_free(other, one.name)
        if self.attempt(work, goes=goes) is not None:
            one.guests.add(other)
        else:
            self.run(
                folder_invitations.decline_invitation(platform, guest, asked.invitation)
            )

    @rule(number=st.integers(0, 5))
    @precondition(lambda self: self.known)
    def leave(self, number: int) -> None:
        found = self.pick(number, state="ready")
        if found is not None and found[1].guests:
            key, one = found
            guest = self.who[one.guests.pop()]
            work = sharing.leave_folder(
                self.archive.platform, guest, key, LeaveRequest()
            )
            self.attempt(work, goes=True)

    @rule(number=st.integers(0, 5), person=people)
    @precondition(lambda self: self.known)
    def give_away(self, number: int, person: str) -> None:
        found = self.pick(number, state="ready")
        if found is None:
            return
        key, one = found
        goes = one.name != DOTTED and one.owner != person
        others = [
            other
            for other, known in self.known.items()
            if other != key
            and known.state == "ready"
            and known.name == one.name
            and (known.owner == person or person in known.guests)
        ]
        work = transfer_folder(
            self.archive.platform, self.root, key, TransferRequest(user=person)
        )
        if self.attempt(work, goes=goes and not others) is not None:
            self.run(self.archive.settle())
            one.owner = person
            one.guests.discard(person)

    @rule(number=st.integers(0, 5), name=names, person=people)
    @precondition(lambda self: self.known)
    def plant_in_the_store(self, number: int, name: str, person: str) -> None:
        """Nobody puts a dot-folder into what all of the domain may read."""
        found = self.pick(number, state="ready")
        if found is None:
            return
        key, one = found
        self.run(self.archive.change(self.who[one.owner], key, cloneable=True))
        for dotted in (DOTTED, f" {DOTTED}", ".local"):
            work = self.archive.clone(
                self.who[person],
                key,
                dotted,
                project=self.store.id,
                usage_mode=UsageMode.MODEL,
            )
            self.attempt(work, goes=False)

    @rule(yes=st.booleans())
    def permit_mounts(self, yes: bool) -> None:
        self.may_mount = yes
        permitted = [str(p) for p in HostPermission if yes or p != HostPermission.MOUNT]
        self.run(permit(self.archive.platform, {"local": permitted}))

    # --- what always holds -------------------------------------------------------

    @invariant()
    def everybody_sees_what_is_theirs_and_all_of_it_is_there(self) -> None:
        if not hasattr(self, "known"):
            return
        for person in PEOPLE:
            expected = sorted(
                one.name
                for one in self.known.values()
                if one.state == "ready"
                and (one.owner == person or person in one.guests)
            )
            work = self.archive.names(self.who[person], status="ready")
            assert self.run(work) == expected
        for key, one in self.known.items():
            if one.state != "gone":
                assert (self.place(key) / "file").read_text() == one.content

    @invariant()
    def nothing_of_anybody_else_comes_by_itself(self) -> None:
        if not hasattr(self, "known"):
            return
        for person in PEOPLE:
            mounts = self.run(self.choose(person))
            assert all(mount.automatic for mount in mounts)
            expected = {
                key
                for key, one in self.known.items()
                if one.owner == person
                and one.state == "ready"
                and one.name == DOTTED
                and self.may_mount
            }
            assert {mount.folder_id for mount in mounts} == expected

    async def choose(self, person: str) -> list[Mount]:
        """Return what a session of somebody gets without asking."""
        platform = self.archive.platform
        user = await ensure_user(platform, person)
        found: list[Mount] = []
        for project in user.projects:
            request = SessionRequest(image="lab")
            who = self.who[person]
            found = await choose_mounts(platform, who, user, project, request)
        return found


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def new_url(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return what gives each history a database without rows."""
    if request.param == "sqlite":

        def on_disk(root: Path) -> str:
            path = root / "test.sqlite"
            path.write_bytes(migrated())
            return f"sqlite+aiosqlite:///{path}"

        yield on_disk
        return
    standing: StandingDatabase = request.getfixturevalue("standing_database")

    def emptied(root: Path) -> str:
        del root
        standing.empty()
        return standing.url

    yield emptied


def test_any_history_of_folders_is_what_the_model_says(new_url: Any):
    class Here(Histories):
        pass

    Here.new_url = staticmethod(new_url)
    run_state_machine_as_test(
        Here,
        settings=settings(max_examples=5, stateful_step_count=20, deadline=None),
    )
