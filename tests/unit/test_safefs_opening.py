"""Nothing is opened but files and folders beneath the root, on either way there."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.safefs import kernel, opening
from backendai_hub.safefs.opening import (
    Way,
    current_way,
    open_beneath,
    open_folder,
    open_root,
)
from tests.unit.safefs_trees import (
    HAS_OPENAT2,
    count_descriptors,
    folder,
    make_specials,
    refusal,
    way,
)

__all__ = ["folder", "way"]

pytestmark = pytest.mark.usefixtures("way")

ROUNDS = 400
ALL_FLAGS = {
    "read": os.O_RDONLY,
    "write": os.O_WRONLY,
    "both": os.O_RDWR,
    "truncate": os.O_WRONLY | os.O_TRUNC,
    "append": os.O_WRONLY | os.O_APPEND,
    "create": os.O_RDWR | os.O_CREAT,
    "new": os.O_RDWR | os.O_CREAT | os.O_EXCL,
    "folder": os.O_RDONLY | os.O_DIRECTORY,
    "mount": os.O_PATH | os.O_DIRECTORY,
}


@pytest.fixture
def root(folder):
    opened = open_root(folder)
    yield opened
    os.close(opened)


@pytest.fixture(autouse=True)
def _nothing_stays_open(root):
    before = count_descriptors()
    yield
    assert count_descriptors() <= before


def open_and_close(root: int, parts: tuple[str, ...], flags: int, **more) -> None:
    os.close(open_beneath(root, parts, flags, **more))


@pytest.mark.parametrize("flags", ALL_FLAGS.values(), ids=ALL_FLAGS)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "target", ["inside", "outside", "absolute", "nowhere", "itself"]
)
def test_no_link_is_followed_wherever_it_stands(folder, root, flags, depth, target):
    (folder / "real/b/c").mkdir(parents=True)
    (folder / "real/b/c/d").write_text("content")
    parts = ["real", "b", "c", "d"]
    place = folder.joinpath(*parts[:depth])
    kept = place.rename(folder / "kept")
    place.symlink_to(
        {
            "inside": os.path.relpath(kept, place.parent),
            "outside": os.path.relpath(folder.parent / "theirs", place.parent),
            "absolute": str(folder.parent / "theirs/secret"),
            "nowhere": str(folder.parent / "theirs/new"),
            "itself": place.name,
        }[target]
    )

    new = flags & os.O_CREAT and flags & os.O_EXCL
    expected = errno.EEXIST if new and depth == 4 else errno.ELOOP
    with refusal(expected):
        open_and_close(root, tuple(parts), flags)
    assert (folder.parent / "theirs/secret").read_text() == "not yours"
    assert not (folder.parent / "theirs/new").exists()


@pytest.mark.parametrize("flags", ALL_FLAGS.values(), ids=ALL_FLAGS)
@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "/etc", "a\0b"])
@pytest.mark.parametrize("where", [0, 1, 2])
def test_parts_are_names_even_for_those_who_made_them_wrong(root, flags, name, where):
    parts = ["x", "y"]
    parts.insert(where, name)
    with pytest.raises(InvalidRequestError):
        open_and_close(root, tuple(parts), flags)


def test_a_link_itself_can_be_looked_at_but_not_through(folder, root):
    (folder / "link").symlink_to("/etc/passwd")
    seen = open_beneath(root, ("link",), os.O_PATH)
    try:
        assert stat.S_ISLNK(os.fstat(seen).st_mode)
    finally:
        os.close(seen)


def test_links_of_proc_lead_nowhere(root):
    proc = open_root("/proc/self")
    try:
        for parts in (("root", "etc"), ("cwd",), ("fd", "0"), ("exe",)):
            with refusal(errno.ELOOP):
                open_and_close(proc, parts, os.O_RDONLY)
    finally:
        os.close(proc)


def test_what_is_neither_file_nor_folder_is_not_even_opened(folder, root):
    for name in make_specials(folder):
        for flags in ("read", "write", "both", "truncate", "append", "create"):
            with refusal(errno.ENXIO):
                open_and_close(root, (name,), ALL_FLAGS[flags])
        with refusal(errno.ENOTDIR):
            open_and_close(root, (name,), ALL_FLAGS["folder"])


def test_a_pipe_with_somebody_at_its_other_end_is_refused_just_the_same(folder, root):
    os.mkfifo(folder / "pipe")
    other_end = os.open(folder / "pipe", os.O_RDWR)
    try:
        for flags in ("read", "write"):
            with refusal(errno.ENXIO):
                open_and_close(root, ("pipe",), ALL_FLAGS[flags])
    finally:
        os.close(other_end)


def test_files_and_folders_are_opened(folder, root):
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/file").write_text("content")
    opened = open_beneath(root, ("a", "b", "file"), os.O_RDONLY)
    with os.fdopen(opened, encoding="ascii") as file:
        assert file.read() == "content"
    for parts in ((), ("a",), ("a", "b")):
        opened = open_folder(root, parts)
        expected = folder.joinpath(*parts).stat()
        assert os.path.samestat(os.fstat(opened), expected)
        os.close(opened)


def test_making_a_file_opens_the_one_that_is_there_or_makes_it(folder, root):
    made = open_beneath(root, ("file",), os.O_RDWR | os.O_CREAT, 0o640)
    os.write(made, b"first")
    os.close(made)
    assert stat.S_IMODE((folder / "file").stat().st_mode) == 0o640

    again = open_beneath(root, ("file",), os.O_RDWR | os.O_CREAT)
    assert os.read(again, 9) == b"first"
    os.close(again)
    with refusal(errno.EEXIST):
        open_and_close(root, ("file",), os.O_RDWR | os.O_CREAT | os.O_EXCL)


def test_a_file_that_somebody_makes_at_the_same_moment_is_opened(
    folder, root, monkeypatch
):
    """Between our looking for it and our making it."""
    owner, name = (kernel, "openat2") if current_way() is Way.KERNEL else (os, "open")
    real = getattr(owner, name)

    def late(*args, **options):
        if any(isinstance(a, int) and a & os.O_EXCL and a & os.O_CREAT for a in args):
            monkeypatch.undo()
            (folder / "file").write_text("theirs")
        return real(*args, **options)

    monkeypatch.setattr(owner, name, late)
    opened = open_beneath(root, ("file",), os.O_RDWR | os.O_CREAT)
    assert os.read(opened, 9) == b"theirs"
    os.close(opened)


@pytest.mark.skipif(not HAS_OPENAT2, reason="no openat2 here")
@pytest.mark.parametrize("refused", [BlockingIOError, InterruptedError])
def test_the_kernel_is_asked_again_when_it_could_not_make_sure(
    folder, root, monkeypatch, refused
):
    (folder / "file").write_text("")
    opening.choose_way(Way.KERNEL)
    real, refusals = kernel.openat2, iter(range(5))

    def unsure(*args):
        if next(refusals, None) is not None:
            raise refused
        return real(*args)

    monkeypatch.setattr(kernel, "openat2", unsure)
    open_and_close(root, ("file",), os.O_RDONLY)
    refusals = iter(range(10_000))
    with refusal(errno.EAGAIN):
        open_and_close(root, ("file",), os.O_RDONLY)


def test_missing_and_wrong_kinds_are_told_apart(folder, root):
    (folder / "file").write_text("")
    with refusal(errno.ENOENT):
        open_and_close(root, ("no", "thing"), os.O_RDONLY)
    with refusal(errno.ENOTDIR):
        open_and_close(root, ("file", "below"), os.O_RDONLY)
    with refusal(errno.ENOTDIR):
        open_folder(root, ("file",))
    with refusal(errno.EISDIR):
        open_and_close(root, (), os.O_WRONLY)


def test_no_program_that_is_started_gets_what_was_opened(folder, root):
    (folder / "file").write_text("")
    for flags in (os.O_RDONLY, os.O_RDWR | os.O_CREAT, os.O_PATH):
        opened = open_beneath(root, ("file",), flags)
        assert not os.get_inheritable(opened)
        os.close(opened)


def test_names_of_255_bytes_and_without_text_are_names_like_others(root):
    for name in ("x" * 255, "é" * 127, os.fsdecode(b"\xff\xfe"), "-", "~", "*", "a\nb"):
        open_and_close(root, (name,), ALL_FLAGS["new"])
        open_and_close(root, (name,), os.O_RDONLY)


@contextmanager
def turned_round(*steps: tuple[Path, Path]) -> Iterator[None]:
    """Rename in a circle, as fast as it goes, while something else is done."""
    begun, done = threading.Event(), threading.Event()

    def turn() -> None:
        while not done.is_set():
            for source, target in steps:
                source.rename(target)
            begun.set()

    turner = threading.Thread(target=turn)
    turner.start()
    assert begun.wait(30)
    try:
        yield
    finally:
        done.set()
        turner.join()


def exchanged(folder: Path, one: str, other: str) -> AbstractContextManager[None]:
    return turned_round(
        (folder / one, folder / "third"),
        (folder / other, folder / one),
        (folder / "third", folder / other),
    )


def try_to_read(root: int, parts: tuple[str, ...]) -> object:
    """Return what is in the file, or why it could not be opened."""
    try:
        opened = open_beneath(root, parts, os.O_RDONLY)
    except OSError as error:
        return error.errno
    with os.fdopen(opened, encoding="ascii") as file:
        return file.read()


def test_a_folder_that_is_swapped_for_a_link_never_leads_out(folder, root):
    (folder / "way").mkdir()
    (folder / "way/secret").write_text("mine")
    (folder / "link").symlink_to(folder.parent / "theirs")

    with exchanged(folder, "way", "link"):
        found = {try_to_read(root, ("way", "secret")) for _ in range(ROUNDS)}

    refusals = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EAGAIN}
    assert found <= {"mine", *refusals}


def test_a_file_that_is_swapped_for_a_link_never_leads_out(folder, root):
    (folder / "file").write_text("mine")
    (folder / "link").symlink_to(folder.parent / "theirs/secret")

    with exchanged(folder, "file", "link"):
        found = {try_to_read(root, ("file",)) for _ in range(ROUNDS)}

    assert found <= {"mine", errno.ENOENT, errno.ELOOP, errno.EAGAIN}


def test_a_folder_that_is_carried_away_while_we_are_in_it_leads_nowhere_else(
    folder, root
):
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/secret").write_text("mine")
    (folder / "elsewhere").mkdir()

    there, back = folder / "elsewhere/b", folder / "a/b"
    with turned_round((back, there), (there, back)):
        found = {try_to_read(root, ("a", "b", "secret")) for _ in range(ROUNDS)}

    assert found <= {"mine", errno.ENOENT, errno.EAGAIN}


def test_a_file_that_is_swapped_for_a_pipe_never_blocks(folder, root):
    (folder / "file").write_text("mine")
    os.mkfifo(folder / "pipe")

    with exchanged(folder, "file", "pipe"):
        found = {try_to_read(root, ("file",)) for _ in range(ROUNDS)}

    assert found <= {"mine", errno.ENOENT, errno.ENXIO}


@pytest.fixture
def mounted(folder):
    """A file system of its own within the folder, where this process may mount."""
    (folder / "mounted").mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder / "mounted"]
    if os.geteuid() != 0 or subprocess.run(command, check=False).returncode != 0:
        pytest.skip("this process may not mount anything")
    yield folder / "mounted"
    subprocess.run(["umount", "-l", folder / "mounted"], check=True)


def test_a_mount_is_crossed_only_if_that_is_allowed(root, mounted):
    (mounted / "file").write_text("")
    for parts in (("mounted",), ("mounted", "file")):
        open_and_close(root, parts, os.O_RDONLY)
        with refusal(errno.EXDEV):
            open_and_close(root, parts, os.O_RDONLY, one_mount=True)
    with refusal(errno.EXDEV):
        open_and_close(root, ("mounted", "new"), ALL_FLAGS["new"], one_mount=True)
    assert not (mounted / "new").exists()


def test_a_folder_mounted_from_the_same_file_system_is_a_mount_too(
    folder, root, mounted
):
    (folder / "source").mkdir()
    (folder / "bound").mkdir()
    subprocess.run(["mount", "--bind", folder / "source", folder / "bound"], check=True)
    try:
        with refusal(errno.EXDEV):
            open_folder(root, ("bound",), one_mount=True)
    finally:
        subprocess.run(["umount", folder / "bound"], check=True)


@pytest.mark.skipif(not HAS_OPENAT2, reason="no openat2 here")
def test_the_kernel_is_asked_where_it_can_be():
    opening.choose_way(None)
    assert current_way() is Way.KERNEL


def test_a_path_longer_than_the_kernel_takes_is_refused(root):
    with refusal(errno.ENAMETOOLONG):
        open_and_close(root, ("n" * 255,) * 17, os.O_RDONLY)


def test_a_rename_never_takes_a_name_that_is_taken(folder, root):
    (folder / "a").write_text("a")
    (folder / "b").write_text("b")
    with refusal(errno.EEXIST):
        kernel.rename_without_replacing(
            "a", "b", source_folder=root, target_folder=root
        )
    kernel.rename_without_replacing("a", "c", source_folder=root, target_folder=root)
    assert sorted(Path(folder).iterdir()) == [folder / "b", folder / "c"]
