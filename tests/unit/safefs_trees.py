"""Trees to try the safe file system on, and ways to look at them from outside."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from backendai_hub.safefs import opening
from backendai_hub.safefs.entries import Entry
from backendai_hub.safefs.opening import Way
from backendai_hub.safefs.paths import Parts, read_path
from backendai_hub.safefs.tree import Tree

HAS_OPENAT2 = opening.current_way() is Way.KERNEL


@pytest.fixture(
    params=[
        pytest.param(
            Way.KERNEL,
            marks=pytest.mark.skipif(not HAS_OPENAT2, reason="no openat2 here"),
        ),
        Way.STEPS,
    ]
)
def way(request) -> Iterator[Way]:
    """Both ways to follow a path, one after the other."""
    opening.choose_way(request.param)
    yield request.param
    opening.choose_way(None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a user, beside which there is what is not theirs."""
    made = tmp_path / "mine"
    made.mkdir()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "secret").write_text("not yours")
    return made


@pytest.fixture
def tree(folder: Path) -> Iterator[Tree]:
    with Tree.at(folder) as opened:
        yield opened


def path(text: str) -> Parts:
    return read_path(text)


def write(tree: Tree, name: str, content: bytes = b"") -> None:
    """Make a file as users of the tree do."""
    made = tree.create(path(name))
    try:
        os.write(made, content)
    finally:
        os.close(made)


def read(tree: Tree, name: str) -> bytes:
    opened = tree.open_read(path(name))
    with os.fdopen(opened, "rb") as file:
        return file.read()


def names(entries: tuple[Entry, ...]) -> list[str]:
    return [entry.name for entry in entries]


def everything(top: Path) -> dict[str, str]:
    """Return each name below *top* with what it is, as the machine sees it."""
    found = {}
    for above, folders, files in os.walk(top):
        for name in (*folders, *files):
            here = Path(above, name)
            if here.is_symlink():
                what = f"link {here.readlink()}"
            elif here.is_dir():
                what = "folder"
            elif here.is_file():
                what = f"file {here.read_bytes()[:40]!r}"
            else:
                what = "special"
            found[str(here.relative_to(top))] = what
    return found


def count_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@contextmanager
def few_descriptors(spare: int = 40) -> Iterator[None]:
    """Let this process open only a few files more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count_descriptors() + spare, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def dig(top: Path, depth: int, name: str = "deeper") -> None:
    """Make folders in each other, deeper than any path can say."""
    folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=folder)
        deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)


def make_specials(top: Path) -> list[str]:
    """Make one of everything that is neither file nor folder, as far as we may."""
    os.mkfifo(top / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    here = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{here}/socket")
    finally:
        os.close(here)
        listener.close()
    made = ["pipe", "socket"]
    try:
        os.mknod(top / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        return made
    return [*made, "zero"]


def refusal(number: int):
    """Expect the operating system's refusal *number*."""
    return pytest.raises(OSError, match=rf"\[Errno {number}\]")
