"""What is given to somebody else lies, and counts, in the new owner's scope."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from backendai_hub.api.folders import TransferRequest
from backendai_hub.core.access import Principal
from backendai_hub.core.errors import (
    ConflictError,
    HubError,
    InsufficientStorageError,
    UnavailableError,
)
from backendai_hub.core.events import EventKind
from backendai_hub.core.mounts import MountRequest
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Role
from backendai_hub.core.vfolders import Folder, FolderBusyError, scope_name
from backendai_hub.db.engine import Database
from backendai_hub.db.tables import EventRow, FolderRow, FolderTaskRow, QuotaScopeRow
from backendai_hub.operations import uploads
from backendai_hub.operations.folder_moves import bring_home
from backendai_hub.operations.folder_transfers import transfer_folder
from backendai_hub.operations.folder_upkeep import count_scopes
from backendai_hub.operations.nouns import purge_noun
from backendai_hub.operations.storage_hosts import ScopeQuery, list_quota_scopes
from backendai_hub.operations.uploads import Wish
from backendai_hub.operations.users import ensure_user
from tests.factories import submit
from tests.folders import Archive, opened_archive

SIZE = 200_000


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


async def fill(archive: Archive, who: Principal, name: str = "data") -> Folder:
    """Make a folder with something in it that counts."""
    made = await archive.make(who, name)
    (archive.place(made, who.id) / "a").write_bytes(b"x" * SIZE)
    assert await count_scopes(archive.platform) >= 1
    return await archive.read(who, made.id)


async def used(archive: Archive, who: Principal) -> tuple[int, int]:
    """Return what somebody uses, and what is kept for them besides."""
    async with archive.platform.database.read() as connection:
        row = (
            await connection.execute(
                select(QuotaScopeRow.used_bytes, QuotaScopeRow.reserved_bytes).where(
                    QuotaScopeRow.scope == scope_name("user", who.id)
                )
            )
        ).first()
    return (0, 0) if row is None else (row.used_bytes, row.reserved_bytes)


async def give(archive: Archive, made: Folder, **to: str) -> Folder:
    root = await archive.person("root", Role.SUPERADMIN)
    body = TransferRequest(**to)
    return await transfer_folder(archive.platform, root, made.id, body)


async def test_what_is_given_away_counts_for_who_has_it_then(archive: Archive):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await fill(archive, alice)
    before = made.used_bytes
    assert (await used(archive, alice))[0] >= SIZE

    moved = await give(archive, made, user="bob")

    assert (moved.user, moved.status) == ("bob", "ready")
    assert not archive.place(made, alice.id).exists()
    assert (archive.place(made, bob.id) / "a").read_bytes() == b"x" * SIZE
    assert await used(archive, bob) == (before, 0)
    assert (await used(archive, alice))[0] < SIZE
    assert ("move", "done") in await archive.tasks()
    assert await archive.names(alice) == []
    # Counted anew it is the same.
    async with archive.platform.database.transaction() as tx:
        await tx.execute(update(QuotaScopeRow).values(scanned_at=None))
    await count_scopes(archive.platform)
    assert (await used(archive, bob))[0] == before


async def test_nothing_moves_where_there_is_no_room_for_it(archive: Archive):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await fill(archive, alice)
    await archive.make(bob, "own")
    async with archive.platform.database.transaction() as tx:
        small = update(QuotaScopeRow).values(limit_bytes=SIZE // 2)
        await tx.execute(small.where(QuotaScopeRow.scope == scope_name("user", bob.id)))

    with pytest.raises(
        InsufficientStorageError, match="raise the limit of bob, or sha"
    ):
        await give(archive, made, user="bob")

    assert (await archive.read(alice, made.id)).status == "ready"
    assert (archive.place(made, alice.id) / "a").exists()
    assert await used(archive, bob) == (0, 0)


async def test_what_a_purged_user_left_comes_home_when_its_heir_has_room(
    archive: Archive,
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    root = await archive.person("root", Role.SUPERADMIN)
    made = await fill(archive, alice)
    await archive.share(alice, "data", bob, "rw")
    await archive.make(root, "own")
    await limit(archive, root, SIZE // 2)
    await archive.office.change("user", "alice", status="inactive")
    await purge_noun(archive.platform, root, noun_of("user"), "alice")
    await archive.settle()

    kept = await archive.read(bob, "data")
    assert (kept.user, kept.status) == ("root", "ready")
    assert (archive.place(made, alice.id) / "a").exists(), "it counts where it lies"
    scopes = await list_quota_scopes(archive.platform, root, ScopeQuery())
    left = {one.scope: one.used_bytes for one in scopes.items}
    assert left[scope_name("user", alice.id)] >= SIZE, "administrators see it"
    assert await bring_home(archive.platform, ["local"]) == 0
    assert await bring_home(archive.platform, []) == 0

    await limit(archive, root, None)
    assert await bring_home(archive.platform, ["other"]) == 0
    assert await bring_home(archive.platform, ["local"]) == 1
    assert await bring_home(archive.platform, ["local"]) == 0, "it moves already"
    await archive.settle()
    assert (archive.place(made, root.id) / "a").read_bytes() == b"x" * SIZE
    assert (await used(archive, root))[0] >= SIZE
    assert (await used(archive, alice))[0] < SIZE
    kept = await archive.read(bob, "data")
    assert (kept.user, kept.access, kept.status) == ("root", "rw", "ready")
    assert await bring_home(archive.platform, ["local"]) == 0


async def leave(archive: Archive, *names: str) -> list[Folder]:
    """Let alice's folders be root's, who has no room, and gets it after that."""
    alice, bob = await archive.person("alice"), await archive.person("bob")
    root = await archive.person("root", Role.SUPERADMIN)
    made = [await archive.make(alice, name) for name in names]
    for one in made:
        (archive.place(one, alice.id) / "a").write_bytes(b"x" * SIZE)
    await count_scopes(archive.platform)
    for name in names:
        await archive.share(alice, name, bob, "rw")
    await archive.make(root, "own")
    await limit(archive, root, SIZE // 2)
    await archive.office.change("user", "alice", status="inactive")
    await purge_noun(archive.platform, root, noun_of("user"), "alice")
    await archive.settle()
    await limit(archive, root, None)
    return made


async def test_what_cannot_come_home_for_good_is_tried_daily_and_told_once(
    archive: Archive,
):
    alice = await archive.person("alice")
    (made,) = await leave(archive, "data")
    shutil.rmtree(archive.place(made, alice.id))
    database = archive.platform.database
    for day in range(3):
        assert await bring_home(archive.platform, ["local"]) == 1, day
        await archive.settle()
        assert (await archive.tasks()).count(("move", "failed")) == day + 1
        assert await bring_home(archive.platform, ["local"]) == 0, "an hour later"
        await let_a_day_go_by(archive)
    async with database.read() as connection:
        told = list(
            await connection.scalars(
                select(EventRow.text).where(
                    EventRow.kind == str(EventKind.FOLDER_FAILED)
                )
            )
        )
    assert len(told) == 1, told


async def let_a_day_go_by(archive: Archive) -> None:
    """Have what failed have failed a day before that."""
    row = FolderTaskRow
    async with archive.platform.database.transaction() as tx:
        failed = select(row.id, row.ended_at).where(row.state == "failed")
        for one in await tx.connection.execute(failed):
            before = one.ended_at - timedelta(days=1, minutes=1)
            await tx.execute(
                update(row).where(row.id == one.id).values(ended_at=before)
            )


async def test_an_odd_folder_keeps_no_other_from_coming_home(archive: Archive):
    made = await leave(archive, "data", "odd")
    async with archive.platform.database.transaction() as tx:
        odd = update(FolderRow).where(FolderRow.name == "odd")
        await tx.execute(odd.values(used_bytes=-SIZE * 1000))
    root = await archive.person("root", Role.SUPERADMIN)
    assert await bring_home(archive.platform, ["local"]) == 1
    await archive.settle()
    assert (archive.place(made[0], root.id) / "a").exists()


async def limit(archive: Archive, who: Principal, size: int | None) -> None:
    async with archive.platform.database.transaction() as tx:
        change = update(QuotaScopeRow).values(limit_bytes=size)
        mine = QuotaScopeRow.scope == scope_name("user", who.id)
        await tx.execute(change.where(mine))


async def test_what_is_in_use_is_given_to_nobody(archive: Archive):
    alice = await archive.person("alice")
    await archive.person("bob")
    made = await fill(archive, alice)
    user = await ensure_user(archive.platform, "alice")
    begun = await uploads.begin_upload(
        archive.platform, alice, user, made.id, Wish("file", 5, "fail")
    )
    with pytest.raises(ConflictError, match="1 uploads into it are under way"):
        await give(archive, made, user="bob")
    await uploads.end_upload(archive.platform, alice, user, begun.upload.id)

    await submit(archive.platform, "alice", mounts=[MountRequest(folder="data")])
    with pytest.raises(FolderBusyError):
        await give(archive, made, user="bob")
    assert (await archive.read(alice, made.id)).user == "alice"


async def test_what_was_cut_off_while_it_moved_is_moved_by_the_next_pass(
    database: Database, tmp_path: Path
):
    troubles = tmp_path / "troubles.json"
    host: dict[str, Any] = {"driver": "fake", "troubles_file": str(troubles)}
    async with opened_archive(database, tmp_path / "folders", **host) as archive:
        alice, bob = await archive.person("alice"), await archive.person("bob")
        made = await fill(archive, alice)
        troubles.write_text(json.dumps({"fail": {"move-folder": "it is away"}}))
        with pytest.raises(UnavailableError):
            await give(archive, made, user="bob")
        waiting = await archive.read(alice, made.id)
        assert (waiting.status, waiting.user) == ("performing", "alice")
        with pytest.raises(HubError):
            await archive.trash(alice, made.id)
        mounts = [MountRequest(folder="data")]
        with pytest.raises(ConflictError, match="is being given to somebody else"):
            await submit(archive.platform, "alice", mounts=mounts)

        troubles.unlink()
        await archive.settle()

        assert (await archive.read(bob, made.id)).user == "bob"
        assert (archive.place(made, bob.id) / "a").exists()
        assert await used(archive, bob) == (made.used_bytes, 0)


async def test_what_cannot_be_given_in_the_end_is_brought_back(
    database: Database, tmp_path: Path
):
    """The new owner has made a folder of the same name while it moved."""
    troubles = tmp_path / "troubles.json"
    host: dict[str, Any] = {"driver": "fake", "troubles_file": str(troubles)}
    async with opened_archive(database, tmp_path / "folders", **host) as archive:
        alice, bob = await archive.person("alice"), await archive.person("bob")
        made = await fill(archive, alice)
        troubles.write_text(json.dumps({"fail": {"move-folder": "it is away"}}))
        with pytest.raises(UnavailableError):
            await give(archive, made, user="bob")
        await archive.make(bob, "data")
        troubles.unlink()
        await archive.settle()

        kept = await archive.read(alice, made.id)
        assert (kept.status, kept.user) == ("ready", "alice")
        assert "there is a folder 'data'" in kept.status_reason
        assert (archive.place(made, alice.id) / "a").exists()
        assert await used(archive, bob) == (0, 0)
        assert ("move", "failed") in await archive.tasks()


async def test_a_project_can_be_given_a_folder_and_who_was_invited_is_no_more(
    archive: Archive,
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await fill(archive, alice)
    await archive.share(alice, "data", bob)
    lab = await archive.office.make("project", name="lab", domain="default")

    moved = await give(archive, made, project=lab.id)

    assert (moved.project, moved.user) == ("lab", None)
    assert (archive.place(moved, lab.id) / "a").exists()
    for who in (alice, bob):
        assert await archive.names(who) == []


async def test_an_unmanaged_folder_stays_where_it_is(
    database: Database, tmp_path: Path
):
    there = tmp_path / "there"
    there.mkdir()
    roots = {"unmanaged_roots": [str(tmp_path)]}
    async with opened_archive(database, tmp_path / "folders", **roots) as archive:
        root = await archive.person("root", Role.SUPERADMIN)
        await archive.person("bob")
        made = await archive.make(root, "there", unmanaged_path=str(there))
        assert (await give(archive, made, user="bob")).user == "bob"
        async with database.read() as connection:
            scope = await connection.scalar(
                select(FolderRow.scope).where(FolderRow.id == made.id)
            )
    assert scope == ""
