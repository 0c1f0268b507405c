"""Disks, quotas and processes that are full in the middle: nothing partial stays."""

from __future__ import annotations

import os
import resource
import subprocess
from contextlib import contextmanager

import pytest

from backendai_hub.core.errors import InsufficientStorageError
from backendai_hub.safefs.archives import ArchiveKind, extract, stream_archive
from backendai_hub.safefs.placing import Conflict
from backendai_hub.safefs.tree import Tree
from tests.unit.safefs_trees import (
    count_descriptors,
    everything,
    folder,
    path,
    tree,
    write,
)

__all__ = ["folder", "tree"]

SIZE = 256 * 1024


@contextmanager
def files_of_at_most(size: int):
    """Refuse longer files to this process, as a full file system does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fill(tree: Tree) -> bytes:
    """Make a folder of small files with a large one among them, and its archive."""
    tree.make_folder(path("top/sub"), parents=True)
    for name in ("a", "sub/b", "z"):
        write(tree, f"top/{name}", b"small")
    write(tree, "top/sub/large", os.urandom(SIZE))
    pieces: list[bytes] = []
    stream_archive(tree, [path("top")], ArchiveKind.TAR_GZ, pieces.append)
    return b"".join(pieces)


def archive_of(content: bytes) -> int:
    made = os.memfd_create("archive")
    os.write(made, content)
    return made


class TestFilesThatBecomeTooLarge:
    def test_a_copy_leaves_nothing_behind(self, tree, folder):
        fill(tree)
        before, opened = everything(folder), count_descriptors()
        with (
            files_of_at_most(SIZE // 2),
            pytest.raises(
                InsufficientStorageError, match="the file would be too large"
            ),
        ):
            tree.copy(path("top"), path("copy"))
        assert everything(folder) == before
        assert count_descriptors() <= opened

    def test_unpacking_leaves_nothing_behind(self, tree, folder):
        archive = archive_of(fill(tree))
        before, opened = everything(folder), count_descriptors()
        with (
            files_of_at_most(SIZE // 2),
            pytest.raises(
                InsufficientStorageError, match="the file would be too large"
            ),
        ):
            extract(tree, archive, path("out"))
        os.close(archive)
        assert everything(folder) == before
        assert count_descriptors() <= opened - 1


@pytest.fixture
def small(folder):
    """A file system of its own of one mebibyte, or of few files."""

    mounted = []

    def mount(options: str):
        place = folder / "small"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", place]
        if os.geteuid() != 0 or subprocess.run(command, check=False).returncode != 0:
            pytest.skip("this process may not mount anything")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "-l", place], check=True)


class TestAFullFileSystem:
    def test_a_copy_leaves_nothing_behind_and_others_go_on(self, small):
        place = small("size=600k")
        with Tree.at(place) as full:
            fill(full)
            full.copy(path("top/sub"), path("second"))
            before = everything(place)
            with pytest.raises(InsufficientStorageError, match="the storage is full"):
                full.copy(path("top"), path("copy"))
            assert everything(place) == before
            full.remove(path("second"))
            full.copy(path("top"), path("copy"))

    def test_unpacking_leaves_nothing_behind(self, small, tree, folder):
        place = small("size=600k")
        with Tree.at(place) as full:
            archive = archive_of(fill(full))
            full.copy(path("top"), path("copy"))
            before = everything(place)
            with pytest.raises(InsufficientStorageError, match="the storage is full"):
                extract(full, archive, path("out"))
            assert everything(place) == before
            full.remove(path("copy"))
            extract(full, archive, path("out"))
            os.close(archive)

    def test_a_file_system_without_room_for_names_says_so(self, small):
        place = small("nr_inodes=8")
        with Tree.at(place) as full:
            full.make_folder(path("top"))
            for number in range(3):
                write(full, f"top/{number}", b"1")
            before = everything(place)
            with pytest.raises(InsufficientStorageError):
                full.copy(path("top"), path("copy"))
            assert everything(place) == before
            with pytest.raises(InsufficientStorageError):
                full.make_folder(path("a/b/c/d/e"), parents=True)

    def test_what_is_published_needs_no_more_room(self, small):
        place = small("size=300k")
        with Tree.at(place) as full:
            full.make_folder(path("in"))
            write(full, "part", os.urandom(SIZE))
            for name, conflict in (("file", Conflict.FAIL), ("file", Conflict.REPLACE)):
                full.publish(path("part"), path(f"in/{name}"), conflict=conflict)
                full.move(path("in/file"), path("part"))
            full.publish(path("part"), path("in/file"))
            assert list(everything(place)) == ["in", "in/file"]
