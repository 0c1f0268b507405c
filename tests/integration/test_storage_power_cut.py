"""What is told to be done is there, and whole, after the power was cut: on real ext4.

The file system is stopped as a power cut would, without writing down what it had not
written yet, and mounted anew.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from backendai_hub.core.errors import UnavailableError
from backendai_hub.safefs.placing import Conflict
from backendai_hub.storage import durable, ops
from tests.storage import Desk, new_id, path_of, running_hosts

CONTENT: Final = b"whole " * 20_000
_SHUT_DOWN: Final = 0x8004587D
_FORGETTING: Final = struct.pack("I", 2)
_POINTS: Final = ["", "making.noted", "making.appeared"]

pytestmark = pytest.mark.ext4


class Disk:
    """An ext4 in a file, and what becomes of it."""

    def __init__(self, folder: Path) -> None:
        self._image = folder / "ext4.img"
        self._mounts = ExitStack()
        self.where = folder / "disk"
        self.where.mkdir()

    def make(self) -> None:
        with self._image.open("wb") as file:
            file.truncate(32 << 20)
        _run("mkfs.ext4", "-q", str(self._image))
        self.mount()

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.where))
        self._mounts.callback(_run, "umount", str(self.where))

    def sync(self) -> None:
        with open_folder(self.where) as folder:
            durable.sync_filesystem(folder)

    def cut(self) -> None:
        with open_folder(self.where) as folder:
            fcntl.ioctl(folder, _SHUT_DOWN, _FORGETTING)

    def close(self) -> None:
        """Take it away, and what is on it to another disk.

        A sandbox that began meanwhile has taken the mount along, and keeps the stopped
        file system as it is: whoever mounts the same file would be given that one.
        """
        self._mounts.close()
        following = self._image.with_name(f"{self._image.name}+")
        shutil.copyfile(self._image, following)
        self._image = following


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield opened
    finally:
        os.close(opened)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = Disk(tmp_path)
    made.make()
    yield made
    made.close()


class Story:
    """A task, the power cut that comes while it is done or just after, and the rest."""

    def __init__(self, disk: Disk, point: str) -> None:
        self._disk = disk
        self._point = point
        self._hosts = {"local": {"path": str(disk.where / "folders")}}
        self.root = disk.where / "folders"

    async def tell(self, prepare, kind, **asked):
        async with running_hosts(self._hosts, crash_at=self._point) as hosts:
            desk = await Desk(hosts).make()
            prepare(path_of(self.root, desk.place))
            self._disk.sync()
            if self._point:
                with pytest.raises(UnavailableError):
                    await desk.do(kind, **asked)
            else:
                await desk.do(kind, **asked)
            self._disk.cut()
        self._disk.close()
        self._disk.mount()
        async with running_hosts(self._hosts) as hosts:
            if self._point:
                await Desk(hosts, desk.place).do(kind, **asked)
        return path_of(self.root, desk.place)


@pytest.mark.parametrize("point", _POINTS)
async def test_a_copy_outlives_a_power_cut(disk, point):
    def prepare(here: Path) -> None:
        (here / "deep").mkdir()
        (here / "a").write_bytes(CONTENT)

    asked = {"path": "a", "target": "deep/b", "task_id": new_id()}
    here = await Story(disk, point).tell(prepare, ops.CopyEntry, **asked)
    assert (here / "deep" / "b").read_bytes() == CONTENT


@pytest.mark.parametrize("point", _POINTS)
@pytest.mark.parametrize("is_there", [True, False])
async def test_what_was_unpacked_outlives_a_power_cut(disk, point, is_there):
    def prepare(here: Path) -> None:
        with zipfile.ZipFile(here / "z.zip", "w") as packed:
            for name in ("one", "two"):
                packed.writestr(name, CONTENT)
        if is_there:
            (here / "out").mkdir()
            (here / "out" / "one").write_bytes(b"was here, and was good")

    asked = {"path": "z.zip", "target": "out", "conflict": Conflict.REPLACE}
    story = Story(disk, point)
    here = await story.tell(prepare, ops.ExtractArchive, **asked, task_id=new_id())
    found = {path.name: path.read_bytes() for path in (here / "out").iterdir()}
    assert found == {"one": CONTENT, "two": CONTENT}


@pytest.mark.parametrize("point", ["upload.written:2", "upload.synced:2"])
async def test_what_was_acknowledged_of_an_upload_outlives_a_power_cut(disk, point):
    described = {"local": {"path": str(disk.where / "folders")}}
    async with running_hosts(described, crash_at=point) as hosts:
        desk = await Desk(hosts).make()
        disk.sync()
        upload_id = await desk.begin()
        acknowledged = await desk.send(upload_id, CONTENT[:70_001])
        with pytest.raises(UnavailableError):
            await desk.send(upload_id, CONTENT[acknowledged:], acknowledged)
        disk.cut()
    disk.close()
    disk.mount()
    async with running_hosts(described) as hosts:
        desk = Desk(hosts, desk.place)
        offset = (await desk.do(ops.UploadOffset, upload_id=upload_id)).offset
        assert acknowledged <= offset <= len(CONTENT)
        await desk.send(upload_id, CONTENT[offset:], offset)
        assert await desk.names() == []
        await desk.finish(upload_id, "whole", len(CONTENT))
        assert await desk.read("whole") == CONTENT


@pytest.mark.parametrize("point", ["", "upload.intended", "upload.published"])
async def test_an_upload_that_was_ended_outlives_a_power_cut(disk, point):
    described = {"local": {"path": str(disk.where / "folders")}}
    async with running_hosts(described, crash_at=point) as hosts:
        desk = await Desk(hosts).make()
        disk.sync()
        upload_id = await desk.begin()
        await desk.send(upload_id, CONTENT)
        if point:
            with pytest.raises(UnavailableError):
                await desk.finish(upload_id, "deep/whole", len(CONTENT))
        else:
            await desk.finish(upload_id, "deep/whole", len(CONTENT))
        disk.cut()
    disk.close()
    disk.mount()
    async with running_hosts(described) as hosts:
        desk = Desk(hosts, desk.place)
        if point:
            await desk.finish(upload_id, "deep/whole", len(CONTENT))
        assert await desk.names("deep") == ["whole"]
        assert await desk.read("deep/whole") == CONTENT
