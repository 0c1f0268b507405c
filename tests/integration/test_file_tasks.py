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
from backendai_hub.operations.folder_access import (
    OpenFolder,
    authorize_folder,
    place_of,
)
from backendai_hub.operations.storage_hosts import cancel_task
from backendai_hub.safefs.placing import Conflict
from backendai_hub.storage.ops import CopyEntry, ExtractArchive
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

    async def begin(self, task_id: str) -> None:
        """Begin a task, of which nothing more is heard."""
        async with self.platform.database.transaction() as tx:
            found = await folder_tasks.find_task(tx.connection, task_id)
            assert found is not None
            await folder_tasks.begin_task(tx, found)
            record = await folders.find_folder(tx.connection, self.folder.id)
            assert record is not None
            self.folder_record = record

    async def make_unheard(self, task_id: str, conflict: str = "fail") -> None:
        """Have the storage make the copy for a service that is gone then."""
        await self.begin(task_id)
        await self.platform.storage.call(
            self.folder_record.host,
            CopyEntry(
                place=place_of(self.folder_record),
                path="a",
                target="b",
                conflict=Conflict(conflict),
                task_id=task_id,
            ),
        )

    def left(self) -> list[str]:
        """List what is kept beside the folder for tasks."""
        (scope,) = self.archive.root.glob(f"user-{self.who.id}")
        return [one.name for one in scope.glob(".staging/task-*")]

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
    await desk.make_unheard(task)
    assert (desk.place / "b").exists()  # and then the service was gone
    await desk.archive.settle()
    assert await desk.state(task) == "done"
    assert await desk.kept() == (1000, 0)
    assert sorted(p.name for p in desk.place.iterdir()) == ["a", "b"]
    assert desk.left() == []


async def test_what_people_did_to_a_copy_before_anybody_was_told_of_it_counts(desk):
    task = await desk.copy()
    await desk.make_unheard(task)
    (desk.place / "b").rename(desk.place / "c")
    (desk.place / "b").write_bytes(b"another")
    await desk.archive.settle()
    assert await desk.state(task) == "done"
    assert (desk.place / "c").read_bytes() == b"x" * 1000
    assert (desk.place / "b").read_bytes() == b"another"


async def test_a_file_of_the_same_size_is_not_taken_for_the_copy(desk: Desk):
    task = await desk.copy()
    (desk.place / "b").write_bytes(b"y" * 1000)
    await desk.begin(task)  # and then the service was gone, before anything was made
    await desk.archive.settle()
    assert await desk.state(task) == "failed"
    assert await desk.kept() == (0, 0)
    assert (desk.place / "b").read_bytes() == b"y" * 1000
    assert desk.left() == []


async def test_a_copy_by_another_name_is_made_once_whatever_was_cut_off(desk: Desk):
    (desk.place / "b").write_bytes(b"before")
    task = await desk.copy("rename")
    await desk.make_unheard(task, conflict="rename")
    (desk.place / "b").unlink()  # its name would be free now
    await desk.archive.settle()

    assert await desk.state(task) == "done"
    assert sorted(p.name for p in desk.place.iterdir()) == ["a", "b (1)"]


async def test_what_a_copy_replaced_before_it_was_cut_off_counts_no_more(desk: Desk):
    await desk.copy()
    await desk.archive.settle()
    (desk.place / "a").write_bytes(b"y" * 10)
    task = await desk.copy("replace")
    await desk.make_unheard(task, conflict="replace")
    await desk.archive.settle()
    assert await desk.state(task) == "done"
    assert await desk.kept() == (10, 0)


@pytest.mark.parametrize("target", ["new", "there"])
async def test_an_archive_is_unpacked_once_whatever_was_cut_off(
    desk: Desk, target: str
):
    with zipfile.ZipFile(desk.place / "a.zip", "w") as packed:
        packed.writestr("inside", "x")
    (desk.place / "there").mkdir()
    opened = await desk.open()
    body = ExtractRequest(path="a.zip", target=target, conflict="rename")
    begun = await file_tasks.begin_extracting(desk.platform, opened, desk.who, body)
    await desk.begin(begun.task.id)
    made = await desk.platform.storage.call(
        "local",
        ExtractArchive(
            place=place_of(desk.folder_record),
            path="a.zip",
            target=target,
            conflict=Conflict.RENAME,
            task_id=begun.task.id,
        ),
    )
    await desk.archive.settle()

    assert await desk.state(begun.task.id) == "done"
    assert made.files == (2 if target == "new" else 1)
    assert await desk.kept() == (1, 0)
    files = {p.relative_to(desk.place).as_posix() for p in desk.place.rglob("*")}
    assert files == {"a", "a.zip", "there", target, f"{target}/inside"}
    assert desk.left() == []


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
