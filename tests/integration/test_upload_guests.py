"""Uploads of guests: they hold no more of the owner's room than they have sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from backendai_hub.core.access import Principal
from backendai_hub.core.errors import (
    ConflictError,
    InsufficientStorageError,
    LimitReachedError,
    LockedError,
    NotFoundError,
)
from backendai_hub.core.tenancy import Actor, Role
from backendai_hub.core.uploads import GoneError
from backendai_hub.core.vfolders import Folder
from backendai_hub.db import quota_scopes, uploads
from backendai_hub.db.engine import Database
from backendai_hub.db.quota_scopes import Room, ScopeRecord
from backendai_hub.db.tables import FolderRow, UploadRow
from backendai_hub.operations import uploads as verbs
from backendai_hub.operations.uploads import Begun, UploadsQuery, Wish
from backendai_hub.operations.users import ensure_user
from tests.folders import Archive, opened_archive
from tests.harness import until

STEP = 8
ANY = UploadsQuery()


@pytest.fixture
async def archive(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Archive]:
    monkeypatch.setattr(verbs, "GUEST_STEP", STEP)
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


class Party:
    """A folder of alice's with room for 100 bytes, in which bob is a guest."""

    def __init__(
        self, archive: Archive, alice: Principal, bob: Principal, folder: Folder
    ) -> None:
        self.archive = archive
        self.alice = alice
        self.bob = bob
        self.folder = folder

    @classmethod
    async def new(cls, archive: Archive) -> Party:
        alice, bob = await archive.person("alice"), await archive.person("bob")
        folder = await archive.make(alice, "data")
        await archive.share(alice, "data", bob, "rw")
        party = cls(archive, alice, bob, folder)
        async with archive.platform.database.transaction() as tx:
            await quota_scopes.change_scope(
                tx, "local", party.scope_name, limit_bytes=100
            )
        return party

    @property
    def scope_name(self) -> str:
        return f"user-{self.alice.id}"

    async def actor(self, who: Principal) -> Actor:
        return await ensure_user(self.archive.platform, who.name)

    async def begin(self, who: Principal, length: int, path: str = "a.bin") -> Begun:
        return await verbs.begin_upload(
            self.archive.platform,
            who,
            await self.actor(who),
            self.folder.id,
            Wish(path, length),
        )

    async def send(self, who: Principal, begun: Begun, content: bytes) -> int:
        """Send bytes from where it stands, and return where it stands then."""
        platform = self.archive.platform
        found, opened = await verbs.find_upload(
            platform, who, await self.actor(who), begun.upload.id
        )

        async def standing() -> verbs.Standing | None:
            # What was cut off just now may not have ended yet; clients ask again.
            with suppress(LockedError):
                return await verbs.tell_standing(
                    platform, who, await self.actor(who), begun.upload.id
                )
            return None

        offset = (await until(standing, "the part before has ended")).offset
        part = await verbs.open_part(
            platform, found, opened, offset=offset, checksum=None
        )
        async with part:
            for at in range(0, len(content), 4):
                await part.write(content[at : at + 4])
            state = await part.finish()
        return (await verbs.note_part(platform, found, opened, state.offset)).offset

    async def scope(self) -> ScopeRecord:
        async with self.archive.platform.database.read() as connection:
            found = await quota_scopes.find_scope(connection, "local", self.scope_name)
        assert found is not None
        return found

    async def held(self) -> tuple[int, int]:
        scope = await self.scope()
        return scope.used_bytes, scope.reserved_bytes

    async def seen(self, who: Principal) -> list[tuple[str, str, int | None]]:
        page = await verbs.list_uploads(
            self.archive.platform, who, None, self.folder.id, ANY
        )
        return [(one.path, one.user, one.received) for one in page.items]


async def test_a_guest_who_only_announces_takes_next_to_nothing(archive: Archive):
    party = await Party.new(archive)
    for number in range(5):
        await party.begin(party.bob, 60, f"{number}")
    assert await party.held() == (0, 5 * STEP)
    with pytest.raises(InsufficientStorageError, match="ask its owner"):
        await party.begin(party.bob, 61, "more than would fit")
    own = await party.begin(party.alice, 60, "mine")
    assert await party.send(party.alice, own, b"x" * 60) == 60


async def test_room_is_kept_for_guests_as_their_bytes_come(archive: Archive):
    party = await Party.new(archive)
    begun = await party.begin(party.bob, 50)
    assert await party.send(party.bob, begun, b"x" * 20) == 20
    assert await party.held() == (0, 3 * STEP)
    assert await party.send(party.bob, begun, b"x" * 30) == 50
    assert await party.held() == (50, 0)
    place = archive.place(party.folder, party.alice.id)
    assert (place / "a.bin").stat().st_size == 50


async def test_where_there_is_no_more_room_a_guest_is_told_and_goes_on_later(
    archive: Archive,
):
    party = await Party.new(archive)
    begun = await party.begin(party.bob, 60)
    await party.send(party.bob, begun, b"x" * 8)
    async with archive.platform.database.transaction() as tx:
        await quota_scopes.reserve(tx, begun.opened.folder, 92)
    with pytest.raises(InsufficientStorageError, match="ask its owner"):
        await party.send(party.bob, begun, b"x" * 52)
    async with archive.platform.database.transaction() as tx:
        await quota_scopes.give_back(tx, begun.opened.folder, 92)
    assert await party.send(party.bob, begun, b"x" * 52) == 60
    assert await party.held() == (60, 0)


async def test_what_a_guest_has_begun_ends_by_itself_after_an_hour(archive: Archive):
    party = await Party.new(archive)
    begun = await party.begin(party.bob, 50)
    own = await party.begin(party.alice, 50, "mine")
    now = archive.platform.database.clock()
    assert begun.upload.expires_at - now < timedelta(minutes=61)
    assert own.upload.expires_at - now > timedelta(hours=23)


async def test_that_it_goes_on_is_written_down_while_bytes_come(archive: Archive):
    party = await Party.new(archive)
    begun = await party.begin(party.alice, 50)
    soon = archive.platform.database.clock() + timedelta(minutes=1)
    async with archive.platform.database.transaction() as tx:
        await tx.execute(
            update(UploadRow)
            .where(UploadRow.id == begun.upload.id)
            .values(expires_at=soon)
        )
    await party.send(party.alice, begun, b"x" * 8)
    async with archive.platform.database.read() as connection:
        now = await uploads.find_upload(connection, begun.upload.id)
    assert now is not None
    assert now.expires_at > soon + timedelta(hours=1)


async def test_a_guest_has_only_so_many_at_once(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(verbs, "MOST_OF_GUEST", 2)
    party = await Party.new(archive)
    for number in range(2):
        await party.begin(party.bob, 1, f"{number}")
    with pytest.raises(LimitReachedError, match="the most is 2"):
        await party.begin(party.bob, 1, "more")
    assert await party.held() == (0, 2), "nothing is kept for what was refused"
    await party.begin(party.alice, 1, "mine")


async def test_the_owner_sees_all_uploads_and_ends_those_of_guests(archive: Archive):
    party = await Party.new(archive)
    begun = await party.begin(party.bob, 50)
    await party.send(party.bob, begun, b"x" * 20)
    await party.begin(party.alice, 5, "mine")
    assert await party.seen(party.alice) == [("a.bin", "bob", 20), ("mine", "alice", 0)]
    assert await party.seen(party.bob) == [("a.bin", "bob", 20)]
    page = await verbs.list_uploads(
        archive.platform, party.alice, None, party.folder.id, UploadsQuery(limit=1)
    )
    assert page.next == begun.upload.id
    await verbs.end_upload(
        archive.platform,
        party.alice,
        await party.actor(party.alice),
        begun.upload.id,
    )
    assert await party.held() == (0, 5)
    with pytest.raises(GoneError):
        await party.send(party.bob, begun, b"x")


async def test_administrators_see_them_and_strangers_do_not(archive: Archive):
    party = await Party.new(archive)
    await party.begin(party.bob, 5)
    root = await archive.person("root", Role.SUPERADMIN)
    carol = await archive.person("carol")
    assert await party.seen(root) == [("a.bin", "bob", 0)]
    with pytest.raises(NotFoundError):
        await party.seen(carol)
    with pytest.raises(NotFoundError):
        await verbs.list_uploads(archive.platform, root, None, "no-such", ANY)


async def test_an_upload_that_was_ended_gets_no_more_room_while_it_is_being_sent(
    archive: Archive,
):
    party = await Party.new(archive)
    begun = await party.begin(party.bob, 50)
    part = await verbs.open_part(
        archive.platform, begun.upload, begun.opened, offset=0, checksum=None
    )
    async with part:
        await part.write(b"x" * STEP)
        await verbs.end_upload(
            archive.platform,
            party.alice,
            await party.actor(party.alice),
            begun.upload.id,
        )
        with pytest.raises(GoneError):
            await part.write(b"x")
    assert await party.held() == (0, 0)


async def test_nothing_begins_in_a_folder_that_is_thrown_away_at_that_moment(
    archive: Archive,
):
    party = await Party.new(archive)
    actor = await party.actor(party.alice)
    opened = (await party.begin(party.alice, 1, "earlier")).opened
    await archive.trash(party.alice, "data")
    async with archive.platform.database.transaction() as tx:
        with pytest.raises(ConflictError, match="being changed"):
            await verbs._check_folder(tx, opened)
    assert actor.name == "alice"


async def test_so_many_files_as_a_folder_may_have_and_no_more(archive: Archive):
    party = await Party.new(archive)
    async with archive.platform.database.transaction() as tx:
        await tx.execute(update(FolderRow).values(max_files=2))
    first = await party.begin(party.alice, 1, "a")
    await party.begin(party.alice, 1, "b")
    with pytest.raises(InsufficientStorageError, match="2 files and folders, has 2"):
        await party.begin(party.alice, 1, "c")
    await party.send(party.alice, first, b"x")
    with pytest.raises(InsufficientStorageError, match="and 1 more would be too many"):
        await party.begin(party.alice, 1, "c")


async def test_so_many_files_as_somebody_may_have_and_no_more(archive: Archive):
    party = await Party.new(archive)
    async with archive.platform.database.transaction() as tx:
        await quota_scopes.change_scope(tx, "local", party.scope_name, limit_files=1)
    opened = (await party.begin(party.alice, 1, "a")).opened
    async with archive.platform.database.transaction() as tx:
        with pytest.raises(InsufficientStorageError, match="alice may keep 1 files"):
            await quota_scopes.reserve(tx, opened.folder, 0, files=1)
        await quota_scopes.reserve(tx, opened.folder, 1)
        await quota_scopes.give_back(tx, opened.folder, Room(1, 1))
        await quota_scopes.reserve(tx, opened.folder, 0, files=1)
