"""Storage hosts made of plain folders, and how sessions of real runtimes see them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backendai_agent import mounts_kernel as kernel
from backendai_agent.folders import remove_trees
from backendai_agent.mounts import Mounts, MountSettings
from backendai_hub.api.agents import MountSpec

OWNER = (1000, 1000)
"""Whose the files of a storage host are on disk."""


@dataclass
class Host:
    """One storage host, as a folder of this machine."""

    root: Path
    name: str = "local"
    owner: tuple[int, int] = OWNER

    def add(self, *names: str) -> Folder:
        """Make a folder as the storage worker does, with *names* in it."""
        folder_id = uuid.uuid4().hex
        parts = [f"user-{uuid.uuid4()}", folder_id[:2], folder_id[2:4], folder_id[4:]]
        path = self.root.joinpath(*parts)
        path.mkdir(parents=True)
        folder = Folder(self, parts, path)
        os.chown(path, *self.owner)
        for name in names:
            inner = path
            for part in Path(name).parts:
                inner = inner / part
                inner.mkdir(exist_ok=True)
                os.chown(inner, *self.owner)
        return folder

    def mounts(self, data_dir: Path, **settings: Any) -> Mounts:
        """Return an agent's mounts that know this host."""
        hosts = {self.name: str(self.root)}
        return Mounts(data_dir, MountSettings(hosts=hosts, **settings))


@dataclass
class Folder:
    """One virtual folder on disk."""

    host: Host
    parts: list[str]
    path: Path

    def at(self, target: str, permission: str = "rw", **changes: Any) -> MountSpec:
        """Say that a session shall see it at *target*."""
        uid, gid = self.host.owner
        given: dict[str, Any] = {
            "host": self.host.name,
            "parts": self.parts,
            "target": target,
            "permission": permission,
            "owner_uid": uid,
            "owner_gid": gid,
        }
        return MountSpec(**{**given, **changes})

    def write(self, name: str, text: str) -> Path:
        """Put a file in it, as the storage worker does."""
        path = self.path / name
        path.write_text(text)
        os.chown(path, *self.host.owner)
        return path

    def owner_of(self, name: str) -> tuple[int, int]:
        found = (self.path / name).lstat()
        return found.st_uid, found.st_gid


@contextlib.contextmanager
def hung(path: Path) -> Iterator[None]:
    """Mount a file system at *path* whose server never answers anything."""
    libc = ctypes.CDLL(None, use_errno=True)
    server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
    try:
        failed = libc.mount(b"hung", os.fsencode(path), b"fuse", 0, options)
        assert not failed, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            kernel.detach(str(path))
    finally:
        os.close(server)


@contextlib.contextmanager
def bound(source: Path, place: Path) -> Iterator[None]:
    """Show *source* at *place* too, as a simple ``mount --bind`` does."""
    subprocess.run(["mount", "--bind", source, place], check=True)
    try:
        yield
    finally:
        kernel.detach(str(place))


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """A folder apart from pytest's, which cannot be cleaned while it has mounts."""
    path = Path(tempfile.mkdtemp(prefix="backendai-mounts-"))
    try:
        yield path
    finally:
        clear_mounts(path)
        remove_trees([path])


def clear_mounts(path: Path) -> None:
    """Take away whatever is mounted below *path*, whoever has left it."""
    while left := kernel.list_below(path):
        kernel.detach(left[0])


@contextlib.asynccontextmanager
async def no_mount_left(*below: Path) -> AsyncIterator[None]:
    """Fail if anything is mounted below, or from there elsewhere, afterwards."""
    yield
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    assert [line for line in mounts for path in below if path.name in line] == []
