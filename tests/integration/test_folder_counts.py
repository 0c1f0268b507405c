"""What a folder is said to hold is right at once, and no more than it may have."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from backendai_hub.api.files import (
    CopyRequest,
    DirectoryRequest,
    EmptyRequest,
    ExtractRequest,
    MoveRequest,
    RestoreFiles,
    TrashRequest,
)
from backendai_hub.core.access import Principal
from backendai_hub.core.errors import HubError, InsufficientStorageError
from backendai_hub.core.vfolders import Folder
from backendai_hub.db import folders
from backendai_hub.db.engine import Database
from backendai_hub.db.tables import FolderRow, QuotaScopeRow
from backendai_hub.operations import file_contents, file_tasks, file_trash, files
from backendai_hub.operations import uploads as sending
from backendai_hub.operations.folder_access import OpenFolder, authorize_folder
from backendai_hub.operations.folder_upkeep import count_scopes
from backendai_hub.operations.uploads import Wish
from backendai_hub.operations.users import ensure_user
from tests.folders import Archive, opened_archive


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


class Shelf:
    """A folder, everything that can be done in it, and what it is said to hold."""

    def __init__(self, archive: Archive, who: Principal, folder: Folder) -> None:
        self.archive = archive
        self.who = who
        self.folder = folder

    @classmethod
    async def new(cls, archive: Archive) -> Shelf:
        who = await archive.person("ann")
        return cls(archive, who, await archive.make(who, "data"))

    @property
    def platform(self) -> Any:
        return self.archive.platform

    @property
    def path(self) -> Path:
        return self.archive.place(self.folder, self.who.id)

    async def open(self) -> OpenFolder:
        return await authorize_folder(
            self.platform, self.who, None, self.folder.id, write=True
        )

    async def send(self, path: str, content: bytes, conflict: str = "fail") -> None:
        actor = await ensure_user(self.platform, "ann")
        begun = await sending.begin_upload(
            self.platform,
            self.who,
            actor,
            self.folder.id,
            Wish(path, len(content), conflict),
        )
        async with await sending.open_part(
            self.platform, begun.upload, begun.opened, offset=0, checksum=None
        ) as part:
            await part.write(content)
            state = await part.finish()
        await sending.note_part(self.platform, begun.upload, begun.opened, state.offset)

    async def write(self, path: str, text: str) -> None:
        await file_contents.store_text(
            self.platform, await self.open(), path, text, if_tag=None
        )

    async def mkdir(self, path: str, **how: bool) -> None:
        body = DirectoryRequest(path=path, **how)
        await files.make_directory(self.platform, await self.open(), body)

    async def move(self, path: str, target: str, conflict: Any = "replace") -> None:
        body = MoveRequest(path=path, target=target, conflict=conflict)
        await files.move_entry(self.platform, await self.open(), body)

    async def copy(self, path: str, target: str, conflict: Any = "fail") -> None:
        body = CopyRequest(path=path, target=target, conflict=conflict)
        await file_tasks.begin_copy(self.platform, await self.open(), self.who, body)
        await self.archive.settle()

    async def unpack(self, path: str, target: str, conflict: Any = "fail") -> None:
        body = ExtractRequest(path=path, target=target, conflict=conflict)
        await file_tasks.begin_extracting(
            self.platform, await self.open(), self.who, body
        )
        await self.archive.settle()

    async def throw(self, *paths: str) -> list[str]:
        done = await file_trash.trash_entries(
            self.platform,
            await self.open(),
            self.who,
            TrashRequest(paths=[*paths]),
            _refused,
        )
        return [one.id or "" for one in done.results]

    async def take_back(self, entry: str) -> None:
        await file_trash.restore_entries(
            self.platform, await self.open(), RestoreFiles(ids=[entry]), _refused
        )

    async def empty(self) -> None:
        await file_trash.begin_emptying(
            self.platform, await self.open(), self.who, EmptyRequest()
        )
        await self.archive.settle()

    async def said(self) -> tuple[int, int]:
        """Return the bytes and entries that the folder is said to have."""
        async with self.platform.database.read() as connection:
            found = await folders.find_folder(connection, self.folder.id)
        assert found is not None
        assert (found.reserved_bytes, found.reserved_files) == (0, 0)
        return found.used_bytes, found.used_files

    async def counted(self) -> tuple[int, int]:
        """Count anew what is on the disk, and return what is said then."""
        past = self.platform.database.clock() - timedelta(days=1)
        async with self.platform.database.transaction() as tx:
            await tx.execute(update(QuotaScopeRow).values(scanned_at=past))
        assert await count_scopes(self.platform) == 1
        return await self.said()

    async def is_right(self) -> tuple[int, int]:
        """Check that what is said is what is there."""
        said = await self.said()
        assert said == await self.counted()
        return said


@contextmanager
def fixed(path: Path) -> Iterator[None]:
    """Let nobody change or replace a file."""
    marks = shutil.which("chattr")
    if marks is None or subprocess.run([marks, "+i", path], check=False).returncode:
        pytest.skip("no file can be made immutable here")
    try:
        yield
    finally:
        subprocess.run([marks, "-i", path], check=True)


async def _refused(path: str, error: HubError) -> None:
    raise AssertionError(f"{path}: {error.message}")


Story = Callable[[Shelf], Awaitable[Any]]


async def _send_into_new_folders(shelf: Shelf) -> None:
    await shelf.send("a/b/c.bin", b"x" * 5000)


async def _send_over(shelf: Shelf) -> None:
    await shelf.send("old", b"x" * 10, "replace")


async def _write_new(shelf: Shelf) -> None:
    await shelf.write("note", "hello")


async def _write_over(shelf: Shelf) -> None:
    await shelf.write("old", "hello")


async def _make_folders(shelf: Shelf) -> None:
    await shelf.mkdir("p/q/r", parents=True)
    await shelf.mkdir("p/q", exist_ok=True)


async def _move_over(shelf: Shelf) -> None:
    await shelf.move("small", "old")


async def _copy_a_tree(shelf: Shelf) -> None:
    await shelf.mkdir("t/u", parents=True)
    await shelf.send("t/u/f", b"y" * 3000)
    await shelf.copy("t", "t2")


async def _copy_over(shelf: Shelf) -> None:
    await shelf.copy("small", "old", "replace")


async def _unpack(shelf: Shelf) -> None:
    await shelf.send("a.zip", _zipped("in/one", "in/deep/two"))
    await shelf.unpack("a.zip", "new")


async def _unpack_over(shelf: Shelf) -> None:
    await shelf.send("a.zip", _zipped("old", "deep/two"))
    await shelf.mkdir("into")
    await shelf.send("into/old", b"z" * 2000)
    await shelf.unpack("a.zip", "into", "rename")
    (shelf.path / "a.zip").unlink()
    await shelf.counted()
    await shelf.send("b.zip", _zipped("old"))
    await shelf.unpack("b.zip", "into", "replace")


async def _throw_and_take_back(shelf: Shelf) -> None:
    await shelf.send("d/e/f", b"x" * 100)
    (entry, _) = await shelf.throw("d/e", "old")
    await shelf.move("d", "g")
    await shelf.take_back(entry)


async def _throw_and_empty(shelf: Shelf) -> None:
    await shelf.send("d/e/f", b"x" * 100)
    await shelf.throw("d", "old")
    await shelf.is_right()
    await shelf.empty()


def _zipped(*names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        for name in names:
            made.writestr(name, b"w" * 700)
    return packed.getvalue()


@pytest.mark.parametrize(
    "story",
    [
        _send_into_new_folders,
        _send_over,
        _write_new,
        _write_over,
        _make_folders,
        _move_over,
        _copy_a_tree,
        _copy_over,
        _unpack,
        _unpack_over,
        _throw_and_take_back,
        _throw_and_empty,
    ],
    ids=lambda story: story.__name__.strip("_"),
)
async def test_what_is_said_to_be_used_is_what_is_there(archive: Archive, story: Story):
    shelf = await Shelf.new(archive)
    await shelf.send("old", b"o" * 4000)
    await shelf.send("small", b"s")
    assert await shelf.is_right() == (4001, 2)
    await story(shelf)
    await shelf.is_right()


async def test_what_came_of_an_archive_counts_though_the_rest_was_refused(
    archive: Archive,
):
    shelf = await Shelf.new(archive)
    await shelf.send("a.zip", _zipped("one", "three", "two"))
    await shelf.mkdir("into")
    await shelf.send("into/one", b"z" * 2000)
    await shelf.send("into/two", b"z" * 300)
    with fixed(shelf.path / "into" / "two"):
        await shelf.unpack("a.zip", "into", "replace")
        assert (await archive.tasks())[-1] == ("extract", "failed")
        assert (shelf.path / "into" / "one").read_bytes() == b"w" * 700
        assert (await shelf.is_right())[1] == 5


async def test_holes_do_not_count_and_free_nothing(archive: Archive):
    shelf = await Shelf.new(archive)
    await shelf.send("kept", b"k" * 5000)
    with (shelf.path / "holes").open("wb") as file:
        file.truncate(1 << 30)
    assert await shelf.counted() == (5000, 2)
    await shelf.send("small", b"s")
    await shelf.move("small", "holes")
    assert await shelf.is_right() == (5001, 2)


async def test_one_of_several_names_of_a_file_frees_nothing(archive: Archive):
    shelf = await Shelf.new(archive)
    await shelf.send("one", b"k" * 5000)
    os.link(shelf.path / "one", shelf.path / "two")
    assert await shelf.counted() == (5000, 2)
    await shelf.send("two", b"s", "replace")
    assert await shelf.is_right() == (5001, 2)


async def _second_file(shelf: Shelf) -> None:
    await shelf.send("b", b"b")


async def _second_text(shelf: Shelf) -> None:
    await shelf.write("b", "b")


async def _folder(shelf: Shelf) -> None:
    await shelf.mkdir("b")


async def _copy(shelf: Shelf) -> None:
    await shelf.copy("a", "b")


@pytest.mark.parametrize(
    "story",
    [_second_file, _second_text, _folder, _copy],
    ids=lambda story: story.__name__.strip("_"),
)
@pytest.mark.parametrize("whose", ["folder", "scope"])
async def test_more_files_than_allowed_come_in_by_no_way(
    archive: Archive, story: Story, whose: str
):
    shelf = await Shelf.new(archive)
    await shelf.send("a", b"a")
    async with archive.platform.database.transaction() as tx:
        await tx.execute(
            update(FolderRow).values(max_files=1)
            if whose == "folder"
            else update(QuotaScopeRow).values(limit_files=QuotaScopeRow.used_files)
        )
    with pytest.raises(InsufficientStorageError, match="files and folders"):
        await story(shelf)
    assert [path.name for path in shelf.path.iterdir()] == ["a"]
    assert (await shelf.said())[1] == 1


async def test_an_archive_of_more_files_than_there_is_room_for_leaves_nothing(
    archive: Archive,
):
    shelf = await Shelf.new(archive)
    await shelf.send("a.zip", _zipped("one", "two", "three"))
    async with archive.platform.database.transaction() as tx:
        await tx.execute(update(FolderRow).values(max_files=3))
    await shelf.unpack("a.zip", "new")
    assert [path.name for path in shelf.path.iterdir()] == ["a.zip"]
    assert (await archive.tasks())[-1] == ("extract", "failed")
    await shelf.is_right()
