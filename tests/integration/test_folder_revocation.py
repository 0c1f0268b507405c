"""What was allowed once is asked again: what waits or takes long may not any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, update

from backendai_hub.api.files import CopyRequest
from backendai_hub.api.folders import GuestChange, ShareRequest
from backendai_hub.core.access import Principal
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    NeverFitsError,
    NotFoundError,
)
from backendai_hub.core.mounts import MountRequest
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.core.vfolders import Folder, FolderPermission
from backendai_hub.db import folder_grants, sessions
from backendai_hub.db.engine import Database
from backendai_hub.db.session_mounts import load_mounts
from backendai_hub.db.signals import Signals
from backendai_hub.db.tables import DomainRow, EventRow
from backendai_hub.operations import file_tasks, uploads
from backendai_hub.operations import folder_sharing as sharing
from backendai_hub.operations.absent_hosts import go_without
from backendai_hub.operations.folder_access import authorize_folder
from backendai_hub.operations.reports import accept_report
from backendai_hub.operations.session_mounts import find_uncertain
from backendai_hub.operations.uploads import Begun, Wish
from backendai_hub.operations.users import ensure_user
from backendai_hub.reconcilers.folders import FoldersReconciler
from tests.factories import Node, add_node, schedule, submit
from tests.folders import Archive, opened_archive
from tests.harness import until


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


async def give(
    archive: Archive, owner: Principal, guest: str, to: FolderPermission | None
) -> None:
    body = ShareRequest(changes=[GuestChange(user=guest, permission=to)])
    await sharing.share_folder(archive.platform, owner, "data", body)


async def add_node_that_reaches(archive: Archive, labels: dict[str, str]) -> Node:
    node = await add_node(archive.platform, "node")
    await accept_report(
        archive.platform,
        node.id,
        msgspec.structs.replace(node.make_report(), labels=labels),
    )
    return node


async def begin(
    archive: Archive, who: Principal, folder: Folder, length: int, path: str = "file"
) -> Begun:
    user = await ensure_user(archive.platform, who.name)
    wish = Wish(path, length, "fail")
    return await uploads.begin_upload(archive.platform, who, user, folder.id, wish)


@pytest.mark.parametrize("to", [None, FolderPermission.READ_ONLY])
async def test_the_uploads_of_a_guest_end_with_the_permission_to_write(
    archive: Archive, to: FolderPermission | None
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data", max_size="1m")
    await archive.share(alice, "data", bob, "rw")
    await begin(archive, bob, made, 1 << 20)
    assert await uploads.sweep_uploads(archive.platform) == 0

    await give(archive, alice, "bob", to)

    await begin(archive, alice, made, 1 << 20)
    assert await uploads.sweep_uploads(archive.platform) == 0


async def test_who_owns_a_folder_ends_the_uploads_of_guests(archive: Archive):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    carol = await archive.person("carol")
    made = await archive.make(alice, "data", max_size="1m")
    for guest in (bob, carol):
        await archive.share(alice, "data", guest, "rw")
    begun = await begin(archive, bob, made, 1 << 20)

    user = await ensure_user(archive.platform, "carol")
    with pytest.raises(NotFoundError):
        await uploads.end_upload(archive.platform, carol, user, begun.upload.id)
    user = await ensure_user(archive.platform, "alice")
    await uploads.end_upload(archive.platform, alice, user, begun.upload.id)

    await begin(archive, alice, made, 1 << 20)


async def test_an_upload_ends_in_no_folder_that_was_taken_back_or_thrown_away(
    archive: Archive,
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data")
    await archive.share(alice, "data", bob, "rw")
    theirs = await begin(archive, bob, made, 0, "theirs")
    mine = await begin(archive, alice, made, 0, "mine")

    await give(archive, alice, "bob", None)
    with pytest.raises(ForbiddenError, match="any more"):
        await uploads.finish_upload(archive.platform, theirs.upload, theirs.opened)
    await archive.trash(alice, "data")
    with pytest.raises(ConflictError, match="nothing can be written"):
        await uploads.finish_upload(archive.platform, mine.upload, mine.opened)

    assert list(archive.place(made, alice.id).iterdir()) == []


async def test_a_file_does_not_appear_once_its_sender_was_told_to_leave(
    database: Database, tmp_path: Path
):
    """The right is taken back between the last look at it and the file's appearing."""
    troubles = tmp_path / "troubles.json"
    troubles.write_text('{"hang": ["finish-upload"]}')
    host: dict[str, Any] = {"driver": "fake", "troubles_file": str(troubles)}
    async with opened_archive(database, tmp_path / "folders", **host) as archive:
        alice, bob = await archive.person("alice"), await archive.person("bob")
        made = await archive.make(alice, "data")
        await archive.share(alice, "data", bob, "rw")
        begun = await begin(archive, bob, made, 0)
        appearing = asyncio.create_task(
            uploads.finish_upload(archive.platform, begun.upload, begun.opened)
        )
        health = archive.platform.storage.health
        assert health()["local"].state == "ok"
        await until(
            lambda: len(archive.platform.storage._turns["local"]._lines) > 0,
            "the storage host is asked to let the file appear",
        )

        await give(archive, alice, "bob", None)
        troubles.write_text("{}")

        with pytest.raises(NotFoundError):
            await appearing
        assert list(archive.place(made, alice.id).iterdir()) == []


async def test_a_copy_that_waits_is_not_made_for_who_may_not_look_any_more(
    archive: Archive,
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data", cloneable=True)
    await archive.share(alice, "data", bob)
    await archive.clone(bob, made.id, "copy")

    await give(archive, alice, "bob", None)
    await archive.settle()

    assert ("clone", "failed") in await archive.tasks()
    assert await archive.names(bob) == []


async def test_files_that_wait_to_be_copied_are_not_for_who_may_not_write_any_more(
    archive: Archive,
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data")
    place = archive.place(made, alice.id)
    (place / "a").write_bytes(b"x")
    await archive.share(alice, "data", bob, "rw")
    opened = await authorize_folder(archive.platform, bob, None, made.id, write=True)
    body = CopyRequest(path="a", target="b")
    await file_tasks.begin_copy(archive.platform, opened, bob, body)

    await give(archive, alice, "bob", FolderPermission.READ_ONLY)
    await archive.settle()

    assert ("copy", "failed") in await archive.tasks()
    assert [entry.name for entry in place.iterdir()] == ["a"]


async def test_a_copy_under_way_stops_when_its_person_loses_the_right(
    database: Database, tmp_path: Path
):
    slow = {"driver": "fake", "hang": ["copy-entry"]}
    async with opened_archive(database, tmp_path / "folders", **slow) as archive:
        alice, bob = await archive.person("alice"), await archive.person("bob")
        made = await archive.make(alice, "data")
        place = archive.place(made, alice.id)
        (place / "a").write_bytes(b"x")
        await archive.share(alice, "data", bob, "rw")
        user = await ensure_user(archive.platform, "bob")
        opened = await authorize_folder(
            archive.platform, bob, user, made.id, write=True
        )
        body = CopyRequest(path="a", target="b")
        task = (
            await file_tasks.begin_copy(archive.platform, opened, bob, body)
        ).task.id
        reconciler = FoldersReconciler(archive.platform, Signals())
        await reconciler.reconcile()
        await until(lambda: task in archive.platform.folder_work, "it is being copied")

        await give(archive, alice, "bob", FolderPermission.READ_ONLY)
        # The answer waits for its end, but not for ever.
        await until(lambda: task not in archive.platform.folder_work, "it has ended")
        await archive.settle()

        assert ("copy", "failed") in await archive.tasks()
        assert [entry.name for entry in place.iterdir()] == ["a"]


async def test_a_session_that_waits_does_not_begin_with_a_folder_taken_back(
    archive: Archive,
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    await archive.make(alice, "data")
    await archive.share(alice, "data", bob, "rw")
    await add_node_that_reaches(archive, {"storage/local": "yes"})
    asked = [MountRequest(folder="data", permission=FolderPermission.READ_ONLY)]
    reads = await submit(archive.platform, "bob", server="reads", mounts=asked)
    writes = await submit(
        archive.platform, "bob", server="writes", mounts=[MountRequest(folder="data")]
    )

    await give(archive, alice, "bob", FolderPermission.READ_ONLY)
    assert await schedule(archive.platform) == 1

    async with archive.platform.database.read() as connection:
        found = await sessions.get_records(
            connection, [reads.session.id, writes.session.id]
        )
    assert found[reads.session.id][0].status is SessionStatus.SCHEDULED
    ended = found[writes.session.id][0]
    assert ended.status is SessionStatus.CANCELLED
    assert "'data' may not be mounted rw" in ended.reason


async def test_what_is_taken_back_while_a_session_is_being_placed_is_not_mounted(
    archive: Archive,
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    await archive.make(alice, "data")
    await archive.share(alice, "data", bob, "rw")
    await add_node_that_reaches(archive, {"storage/local": "yes"})
    mounts = [MountRequest(folder="data")]
    session = (await submit(archive.platform, "bob", mounts=mounts)).session
    database = archive.platform.database
    async with database.read() as connection:
        (waiting, _) = (await sessions.get_records(connection, [session.id]))[
            session.id
        ]
    async with database.transaction() as tx:
        assert await find_uncertain(tx, [waiting]) == set()
        assert tx.wakes == set()

    await give(archive, alice, "bob", None)
    async with database.transaction() as tx:
        assert await find_uncertain(tx, [waiting]) == {session.id}
        assert tx.wakes == {"scheduler"}


@pytest.mark.parametrize("busy", ["grant", "domain", "nothing"])
async def test_nothing_is_placed_while_somebody_changes_what_permits_it(
    archive: Archive, busy: str
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data")
    await archive.share(alice, "data", bob, "rw")
    await add_node_that_reaches(archive, {"storage/local": "yes"})
    mounts = [MountRequest(folder="data")]
    session = (await submit(archive.platform, "bob", mounts=mounts)).session
    database = archive.platform.database
    if database.is_sqlite:
        return  # it has one writer at a time
    async with database.read() as connection:
        (waiting, _) = (await sessions.get_records(connection, [session.id]))[
            session.id
        ]
    async with database.transaction() as other:
        if busy == "grant":
            await folder_grants.drop_grant(other, made.id, bob.id)
        if busy == "domain":
            await other.execute(update(DomainRow).values(allowed_vfolder_hosts={}))
        async with database.transaction() as tx:
            expected = set() if busy == "nothing" else {session.id}
            assert await find_uncertain(tx, [waiting]) == expected


async def test_what_comes_by_itself_is_left_out_where_no_node_has_its_host(
    archive: Archive,
):
    bob = await archive.person("bob")
    await archive.make(bob, ".cache")
    await archive.make(bob, "data")
    await add_node_that_reaches(archive, {})

    session = (await submit(archive.platform, "bob")).session

    assert "without .cache: the storage host local is on no node" in session.reason
    assert await schedule(archive.platform) == 1
    asked = [MountRequest(folder="data")]
    with pytest.raises(NeverFitsError):
        await submit(archive.platform, "bob", server="two", mounts=asked)


async def test_what_waits_goes_on_without_what_nobody_asked_for_when_its_host_goes(
    archive: Archive,
):
    """The host was there when the sessions were asked for, and went away since."""
    bob = await archive.person("bob")
    for name in (".cache", "data"):
        await archive.make(bob, name)
    node = await add_node_that_reaches(archive, {"storage/local": "yes"})
    platform = archive.platform
    plain = (await submit(platform, "bob", server="plain")).session
    mounts = [MountRequest(folder="data")]
    asked = (await submit(platform, "bob", server="asked", mounts=mounts)).session
    assert await go_without(platform) == 0

    report = msgspec.structs.replace(node.make_report(), labels={})
    await accept_report(platform, node.id, report)
    assert await go_without(platform) == 2
    assert await go_without(platform) == 0
    assert await schedule(platform) == 1

    async with platform.database.read() as connection:
        found = await sessions.get_records(connection, [plain.id, asked.id])
        kept = await load_mounts(connection, [plain.id, asked.id])
        told = await connection.scalars(
            select(EventRow.text).where(EventRow.session_id == plain.id)
        )
    assert found[plain.id][0].status is SessionStatus.SCHEDULED
    assert found[asked.id][0].status is SessionStatus.PENDING
    assert found[asked.id][0].reason == "1 of 1 node: is without the storage host local"
    assert [m.folder_name for m in kept.get(plain.id, [])] == []
    assert [m.folder_name for m in kept[asked.id]] == ["data"]
    assert any("goes on without .cache: the storage host" in text for text in told)


async def test_a_session_goes_without_dot_folders_for_who_wants_none(archive: Archive):
    bob = await archive.person("bob")
    await archive.make(bob, ".cache")
    await add_node_that_reaches(archive, {"storage/local": "yes"})
    platform = archive.platform

    usual = (await submit(platform, "bob", server="usual")).session
    plain = (
        await submit(platform, "bob", server="plain", automatic_mounts=False)
    ).session

    async with platform.database.read() as connection:
        kept = await load_mounts(connection, [usual.id, plain.id])
    assert {key: [m.folder_name for m in found] for key, found in kept.items()} == {
        usual.id: [".cache"]
    }
