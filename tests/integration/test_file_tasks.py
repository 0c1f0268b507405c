"""Copies and archives in the background: crashes, cancelling, and the room kept."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backendai_hub.api.files import CopyRequest, EmptyRequest, ExtractRequest
from backendai_hub.core.access import Principal
from backendai_hub.core.errors import ConflictError, InsufficientStorageError
from backendai_hub.core.vfolders import Folder
from backendai_hub.db import folder_tasks, folders
from backendai_hub.db.engine import Database
from backendai_hub.operations import file_tasks, file_trash
from backendai_hub.operations.folder_access import OpenFolder, authorize_folder
from backendai_hub.operations.storage_hosts import cancel_task
from tests.folders import Archive, opened_archive


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


class Desk:
    """Somebody's folder, with what is in it and what is kept for it."""

    def __init__(self, archive: Archive, who: Principal, made: Folder) -> None:
        self.archive = archive
        self.platform = archive.platform
        self.who = who
        self.folder = made
        self.place = archive.place(made, who.id)

    async def open(self) -> OpenFolder:
        return await authorize_folder(
            self.platform, self.who, None, self.folder.id, write=True
        )

    async def copy(self, conflict: str = "fail") -> str:
        """Begin to copy a to b, and return the task."""
        body = CopyRequest(path="a", target="b", conflict=conflict)  # type: ignore[arg-type]
        opened = await self.open()
        return (
            await file_tasks.begin_copy(self.platform, opened, self.who, body)
        ).task.id

    async def kept(self) -> tuple[int, int]:
        """Return how much is used, and how much is kept besides."""
        async with self.platform.database.read() as connection:
            found = await folders.find_folder(connection, self.folder.id)
        assert found is not None
        return found.used_bytes, found.reserved_bytes

    async def state(self, task_id: str) -> str:
        async with self.platform.database.read() as connection:
            task = await folder_tasks.find_task(connection, task_id)
        assert task is not None
        return str(task.state)


@pytest.fixture
async def desk(archive: Archive) -> Desk:
    alice = await archive.person("alice")
    made = await archive.make(alice, "data", max_size="1m")
    desk = Desk(archive, alice, made)
    (desk.place / "a").write_bytes(b"x" * 1000)
    return desk


async def test_room_is_kept_from_the_beginning_and_becomes_use_at_the_end(desk: Desk):
    task = await desk.copy()
    assert await desk.kept() == (0, 1000)
    await desk.archive.settle()
    assert await desk.state(task) == "done"
    assert await desk.kept() == (1000, 0)
    assert (desk.place / "b").read_bytes() == b"x" * 1000


async def test_what_is_cancelled_gives_its_room_back_once(desk: Desk):
    task = await desk.copy()
    await cancel_task(desk.platform, desk.who, task)
    assert await desk.kept() == (0, 0)
    with pytest.raises(ConflictError, match="ended already"):
        await cancel_task(desk.platform, desk.who, task)
    assert await desk.kept() == (0, 0)
    await desk.archive.settle()
    assert await desk.state(task) == "cancelled"
    assert not (desk.place / "b").exists()


async def test_a_copy_that_a_crash_cut_off_at_its_end_is_done_once(desk: Desk):
    task = await desk.copy()
    async with desk.platform.database.transaction() as tx:
        found = await folder_tasks.find_task(tx.connection, task)
        assert found is not None
        await folder_tasks.begin_task(tx, found)
    (desk.place / "b").write_bytes(b"x" * 1000)  # and then the service was gone
    await desk.archive.settle()
    assert await desk.state(task) == "done"
    assert await desk.kept() == (1000, 0)
    assert sorted(p.name for p in desk.place.iterdir()) == ["a", "b"]


async def test_what_came_to_be_there_meanwhile_stays(desk: Desk):
    task = await desk.copy()
    (desk.place / "b").write_bytes(b"somebody else's")
    await desk.archive.settle()
    assert await desk.state(task) == "failed"
    assert await desk.kept() == (0, 0)
    assert (desk.place / "b").read_bytes() == b"somebody else's"


async def test_what_is_replaced_by_a_copy_counts_no_more(desk: Desk):
    await desk.copy()
    await desk.archive.settle()
    (desk.place / "a").write_bytes(b"y" * 10)
    await desk.copy("replace")
    await desk.archive.settle()
    assert await desk.kept() == (10, 0)


async def test_what_has_grown_meanwhile_is_not_copied_beyond_the_room(desk: Desk):
    task = await desk.copy()
    (desk.place / "a").write_bytes(b"x" * 5000)
    await desk.archive.settle()
    assert await desk.state(task) == "failed"
    assert await desk.kept() == (0, 0)
    assert [p.name for p in desk.place.iterdir()] == ["a"]


async def test_an_archive_has_as_much_room_as_there_is(desk: Desk):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("in", b"0" * 2_000_000)
    (desk.place / "a.zip").write_bytes(packed.getvalue())
    body = ExtractRequest(path="a.zip", target="out")
    opened = await desk.open()
    begun = await file_tasks.begin_extracting(desk.platform, opened, desk.who, body)
    assert await desk.kept() == (0, 1 << 20)
    with pytest.raises(InsufficientStorageError):
        await desk.copy()
    await desk.archive.settle()
    assert await desk.state(begun.task.id) == "failed"
    assert await desk.kept() == (0, 0)
    assert sorted(p.name for p in desk.place.iterdir()) == ["a", "a.zip"]


async def test_the_trash_is_emptied_after_a_crash_in_the_middle_of_it(desk: Desk):
    opened = await desk.open()
    begun = await file_trash.begin_emptying(
        desk.platform, opened, desk.who, EmptyRequest()
    )
    async with desk.platform.database.transaction() as tx:
        found = await folder_tasks.find_task(tx.connection, begun.task.id)
        assert found is not None
        await folder_tasks.begin_task(tx, found)
    await desk.archive.settle()
    assert await desk.state(begun.task.id) == "done"
