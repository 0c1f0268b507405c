"""What was allowed once is asked again: what waits or takes long may not any more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

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
from backendai_hub.db import sessions
from backendai_hub.db.engine import Database
from backendai_hub.operations import file_tasks, uploads
from backendai_hub.operations import folder_sharing as sharing
from backendai_hub.operations.folder_access import authorize_folder
from backendai_hub.operations.reports import accept_report
from backendai_hub.operations.uploads import Begun, Wish
from backendai_hub.operations.users import ensure_user
from tests.factories import add_node, schedule, submit
from tests.folders import Archive, opened_archive


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


async def give(
    archive: Archive, owner: Principal, guest: str, to: FolderPermission | None
) -> None:
    body = ShareRequest(changes=[GuestChange(user=guest, permission=to)])
    await sharing.share_folder(archive.platform, owner, "data", body)


async def add_node_that_reaches(archive: Archive, labels: dict[str, str]) -> None:
    node = await add_node(archive.platform, "node")
    await accept_report(
        archive.platform,
        node.id,
        msgspec.structs.replace(node.make_report(), labels=labels),
    )


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
    assert await uploads.sweep_uploads(archive.platform) == 1

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
