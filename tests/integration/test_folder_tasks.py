"""Who is told of what is done to folders: the progress, the end, and nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import update

from backendai_hub.api.files import CopyRequest, DirectoryRequest
from backendai_hub.api.folders import GuestChange, ShareRequest
from backendai_hub.core.access import Principal
from backendai_hub.core.errors import ConflictError, NotFoundError
from backendai_hub.core.tenancy import Role
from backendai_hub.core.vfolders import FolderPermission, TaskKind
from backendai_hub.db import folder_tasks
from backendai_hub.db.engine import Database
from backendai_hub.db.folders import find_folder
from backendai_hub.db.tables import FolderTaskRow
from backendai_hub.operations import file_tasks, files
from backendai_hub.operations import folder_sharing as sharing
from backendai_hub.operations.folder_access import OpenFolder, authorize_folder
from backendai_hub.operations.folder_work import write_progress
from backendai_hub.operations.members import MembersRequest, change_members
from backendai_hub.operations.sessions import list_messages
from backendai_hub.operations.storage_hosts import TaskQuery, list_tasks, read_task
from backendai_hub.operations.users import ensure_user
from backendai_hub.storage.ops import Progress
from tests.folders import Archive, opened_archive
from tests.tenants import ROOT


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


async def enter(archive: Archive, who: Principal, folder_id: str) -> OpenFolder:
    user = await ensure_user(archive.platform, who.name)
    return await authorize_folder(archive.platform, who, user, folder_id, write=True)


async def copy(archive: Archive, who: Principal, folder_id: str, target: str) -> str:
    """Begin to copy the file a, and return the task."""
    opened = await enter(archive, who, folder_id)
    body = CopyRequest(path="a", target=target)
    begun = await file_tasks.begin_copy(archive.platform, opened, who, body)
    return begun.task.id


async def told(archive: Archive, who: Principal) -> list[tuple[str, str]]:
    """Return what somebody is told of folders."""
    messages = await list_messages(archive.platform, who, after=0, limit=1000)
    return [(m.kind, m.text) for m in messages if m.folder_id is not None]


async def seen(archive: Archive, who: Principal) -> set[str]:
    """Return the tasks that somebody sees."""
    page = await list_tasks(archive.platform, who, TaskQuery())
    return {task.id for task in page.items}


async def test_a_guest_is_told_how_their_own_task_goes_on_and_ends(archive: Archive):
    alice, bob = [await archive.person(name) for name in ("alice", "bob")]
    carol, eve = [await archive.person(name) for name in ("carol", "eve")]
    made = await archive.make(alice, "data")
    (archive.place(made, alice.id) / "a").write_bytes(b"x" * 10)
    for guest in (bob, carol):
        await archive.share(alice, "data", guest, "rw")
    mine, theirs = [
        await copy(archive, who, made.id, f"of {who.name}") for who in (alice, bob)
    ]

    async with archive.platform.database.transaction() as tx:
        task = await folder_tasks.find_task(tx.connection, theirs)
        folder = await find_folder(tx.connection, made.id)
        assert task is not None
        assert folder is not None
        progress = Progress(done=5, total=10, unit="bytes")
        await write_progress(tx, task, folder, progress)
    await archive.settle()

    progressed = ("folder.progress", "copy data: 5 of 10 bytes")
    ended = ("folder.changed", "of bob in data is a copy of a")
    for who in (alice, bob):
        assert {progressed, ended} <= {*await told(archive, who)}
    for who in (carol, eve):
        assert not {progressed, ended} & {*await told(archive, who)}
    assert await seen(archive, alice) >= {mine, theirs}
    assert await seen(archive, bob) == {theirs}
    assert (await read_task(archive.platform, bob, theirs)).state == "done"
    for who in (carol, eve):
        assert await seen(archive, who) == set()
        with pytest.raises(NotFoundError):
            await read_task(archive.platform, who, theirs)


async def test_a_former_guest_is_told_that_their_task_has_ended_and_no_new_name(
    archive: Archive,
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data")
    (archive.place(made, alice.id) / "a").write_bytes(b"x")
    await archive.share(alice, "data", bob, "rw")
    task = await copy(archive, bob, made.id, "b")

    body = ShareRequest(changes=[GuestChange(user="bob", permission=None)])
    await sharing.share_folder(archive.platform, alice, "data", body)
    await archive.change(alice, "data", name="secret-merger")
    await archive.settle()

    ended = await read_task(archive.platform, bob, task)
    assert ended.state == "failed"
    assert "bob may not write into this folder any more" in ended.error
    texts = [text for _, text in await told(archive, bob)]
    assert texts[-1].startswith("copy: it has ended, since you may not")
    assert not any("secret-merger" in text for text in [*texts, ended.error])


async def test_all_of_a_project_see_what_is_done_in_its_folders_and_no_one_else(
    archive: Archive,
):
    dora = await archive.person("dora", Role.DOMAIN_ADMIN)
    bob, carol = [await archive.person(name) for name in ("bob", "carol")]
    lab = await archive.office.make("project", name="lab", domain="default")
    await archive.office.join(lab.id, "bob")
    made = await archive.make(dora, "plans", project=lab.id)
    place = archive.root / f"project-{lab.id}"
    (folder,) = place.glob("??/??/*")
    (folder / "a").write_bytes(b"x")
    bob, carol = [await archive.person(name) for name in ("bob", "carol")]
    task = await copy(archive, bob, made.id, "b")
    await archive.settle()

    assert ("folder.changed", "b in plans is a copy of a") in await told(archive, bob)
    assert task in await seen(archive, bob)
    assert await told(archive, carol) == []
    assert await seen(archive, carol) == set()

    leave = MembersRequest(remove=["bob"])
    await change_members(archive.platform, ROOT, lab.id, leave)
    bob = await archive.person("bob")
    opened = await enter(archive, dora, made.id)
    body = DirectoryRequest(path="merger")
    await files.make_directory(archive.platform, opened, body)
    assert not any("merger" in text for _, text in await told(archive, bob))


async def test_a_folder_is_busy_while_something_is_done_in_it_or_with_it(
    archive: Archive,
):
    alice = await archive.person("alice")
    made = await archive.make(alice, "data", cloneable=True)
    other = await archive.make(alice, "other")
    await archive.clone(alice, "data", "copy")

    with pytest.raises(ConflictError, match=r"'data' is busy \(clone\)"):
        await archive.trash(alice, "data")
    assert (await archive.trash(alice, "other")).id == other.id
    await archive.settle()

    async with archive.platform.database.transaction() as tx:
        done = update(FolderTaskRow).where(FolderTaskRow.folder_id == made.id)
        await tx.execute(done.values(state="running", kind=str(TaskKind.COPY)))
    with pytest.raises(ConflictError, match=r"'data' is busy \(copy\)"):
        await archive.trash(alice, "data")


async def test_what_a_folder_lets_one_do_is_a_permission(archive: Archive):
    """A guest who may only read begins nothing."""
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data")
    await archive.share(alice, "data", bob, str(FolderPermission.READ_ONLY))
    with pytest.raises(Exception, match="read-only"):
        await copy(archive, bob, made.id, "b")
