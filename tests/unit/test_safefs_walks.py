"""Whole trees are copied, measured and removed: deep, wide, hostile, interrupted."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from backendai_hub.core.errors import ForbiddenError
from backendai_hub.safefs import copying
from backendai_hub.safefs.errors import (
    ChangedMeanwhileError,
    EntryExistsError,
    EntryMissingError,
    FolderNotEmptyError,
    LimitExceededError,
    StoppedError,
)
from backendai_hub.safefs.placing import Conflict
from backendai_hub.safefs.tree import Tree
from backendai_hub.safefs.walking import Ladder, walk
from backendai_hub.safefs.work import Work
from tests.unit.safefs_trees import (
    count_descriptors,
    dig,
    everything,
    few_descriptors,
    folder,
    make_specials,
    path,
    read,
    tree,
    way,
    write,
)

__all__ = ["folder", "tree", "way"]

pytestmark = pytest.mark.usefixtures("way")
NOBODY = 65534
DEEP = 700  # of 7 bytes each: longer than the 4096 bytes of a path


@pytest.fixture(autouse=True)
def _nothing_stays_open(tree):
    before = count_descriptors()
    yield
    assert count_descriptors() <= before


def grow(tree: Tree, folder: Path) -> dict[str, str]:
    """Make a tree with one of everything."""
    tree.make_folder(path("top/a/b"), parents=True)
    tree.make_folder(path("top/empty"))
    write(tree, "top/file", b"1")
    write(tree, "top/a/file", b"22")
    write(tree, "top/a/b/file", b"333")
    (folder / "top/out").symlink_to(folder.parent / "theirs")
    (folder / "top/a/secret").symlink_to(folder.parent / "theirs/secret")
    (folder / "top/a/nowhere").symlink_to("nowhere")
    return everything(folder / "top")


class TestRemoving:
    def test_a_tree_goes_and_what_links_lead_to_stays(self, tree, folder):
        entries = grow(tree, folder)
        make_specials(folder / "top/a")
        write(tree, "beside")
        assert tree.remove(path("top")) >= len(entries) + 1
        assert everything(folder) == {"beside": "file b''"}
        assert (folder.parent / "theirs/secret").read_text() == "not yours"

    def test_a_link_goes_and_its_target_stays(self, tree, folder):
        (folder / "link").symlink_to(folder.parent / "theirs")
        assert tree.remove(path("link")) == 1
        assert everything(folder.parent / "theirs")

    def test_everything_in_the_tree_goes_but_the_tree(self, tree, folder):
        entries = grow(tree, folder)
        assert tree.remove(()) == len(entries) + 1
        assert folder.is_dir()
        assert everything(folder) == {}

    def test_a_tree_deeper_than_any_path_needs_few_descriptors(self, memory_dir):
        dig(memory_dir, DEEP)
        with Tree.at(memory_dir) as tree, few_descriptors():
            assert tree.usage().entries == DEEP + 1
            tree.copy(path("deeper"), path("copy"))
            assert tree.usage(path("copy")).entries == DEEP
            assert tree.remove(()) == 2 * (DEEP + 1)
        assert everything(memory_dir) == {}

    def test_stopping_leaves_the_rest_where_it_was(self, tree, folder):
        tree.make_folder(path("top"))
        for number in range(20):
            write(tree, f"top/{number}")
        seen = []
        work = Work(progress=seen.append, cancelled=lambda: len(seen) == 7)
        with pytest.raises(StoppedError):
            tree.remove(path("top"), work=work)
        assert seen == list(range(1, 8))
        assert len(everything(folder / "top")) == 12
        assert tree.remove(path("top")) == 13

    def test_what_is_added_meanwhile_is_removed_too(self, tree, folder):
        tree.make_folder(path("top/a"), parents=True)
        write(tree, "top/a/file")
        added = iter(range(3))

        def add(_: int) -> None:
            if (number := next(added, None)) is not None:
                (folder / f"top/late-{number}").write_text("")

        tree.remove(path("top"), work=Work(progress=add))
        assert everything(folder) == {}

    def test_whoever_adds_without_end_is_not_followed_for_ever(self, tree, folder):
        tree.make_folder(path("top"))
        write(tree, "top/first")

        def add(done: int) -> None:
            (folder / f"top/more-{done}").write_text("")

        monkey = Work(progress=add)
        with pytest.raises((FolderNotEmptyError, StoppedError)):
            tree.remove(path("top"), work=monkey)

    def test_what_is_mounted_in_the_tree_is_not_emptied(self, tree, folder):
        (folder / "top/mounted").mkdir(parents=True)
        place = folder / "top/mounted"
        command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place]
        if os.geteuid() != 0 or subprocess.run(command, check=False).returncode != 0:
            pytest.skip("this process may not mount anything")
        try:
            (place / "file").write_text("kept")
            assert tree.usage(path("top")).bytes == 0
            with pytest.raises(FolderNotEmptyError):
                tree.remove(path("top"))
            assert (place / "file").read_text() == "kept"
        finally:
            subprocess.run(["umount", "-l", place], check=True)


class TestAsSomebodyElse:
    """The storage's processes need not be root; users lock their folders."""

    @pytest.fixture
    def theirs(self):
        if os.geteuid() != 0:
            pytest.skip("only root can be somebody else")
        with tempfile.TemporaryDirectory(dir="/tmp") as made:
            os.chown(made, NOBODY, NOBODY)
            os.seteuid(NOBODY)
            try:
                yield Path(made)
            finally:
                os.seteuid(0)

    @pytest.mark.parametrize("mode", [0, 0o500, 0o300, 0o100])
    def test_own_folders_that_are_locked_are_removed(self, theirs, mode):
        (theirs / "top/a/b").mkdir(parents=True)
        (theirs / "top/a/b/file").write_text("")
        for name in ("top/a/b", "top/a", "top"):
            (theirs / name).chmod(mode)
        with Tree.at(theirs) as tree:
            tree.remove(path("top"))
        assert everything(theirs) == {}

    def test_folders_that_may_not_be_changed_are_copied_and_left_again(self, theirs):
        (theirs / "top/a").mkdir(parents=True)
        (theirs / "top/a/file").write_text("1")
        for name in ("top/a", "top"):
            (theirs / name).chmod(0o500)
        with Tree.at(theirs) as tree:
            before = everything(theirs)
            with pytest.raises(EntryExistsError):
                tree.copy(path("top"), path("top"))
            assert everything(theirs) == before
            tree.copy(path("top"), path("copy"))
            assert everything(theirs / "copy") == everything(theirs / "top")
            for name in ("top", "copy"):
                tree.remove(path(name))

    def test_they_are_copied_through_another_folder(self, theirs):
        for name in ("mine/top", "staging"):
            (theirs / name).mkdir(parents=True)
        (theirs / "mine/top/file").write_text("1")
        (theirs / "mine/top").chmod(0o500)
        with (
            Tree.at(theirs / "staging") as staging,
            Tree.at(theirs / "mine", staging=staging) as tree,
        ):
            with pytest.raises(EntryExistsError):
                tree.copy(path("top"), path("top"))
            tree.copy(path("top"), path("copy"))
            tree.move(path("top"), path("away"), to=staging)
            for place in ("mine/copy", "staging/away"):
                assert stat.S_IMODE((theirs / place).stat().st_mode) == 0o500
                assert (theirs / place / "file").read_text() == "1"
            assert sorted(everything(theirs)) == [
                "mine",
                "mine/copy",
                "mine/copy/file",
                "staging",
                "staging/away",
                "staging/away/file",
            ]
            tree.remove(())
            staging.remove(())

    def test_what_belongs_to_others_is_refused_in_words(self, theirs):
        os.seteuid(0)
        (theirs / "root").mkdir(mode=0o700)
        (theirs / "root/file").write_text("")
        os.seteuid(NOBODY)
        with Tree.at(theirs) as tree:
            for deed in (tree.list, tree.usage, tree.remove):
                with pytest.raises(
                    ForbiddenError, match="'root': the file system does"
                ):
                    deed(path("root"))


class TestCopying:
    def test_a_copy_is_the_same_again_with_links_as_links(self, tree, folder):
        entries = grow(tree, folder)
        copied = tree.copy(path("top"), path("copy"))
        assert copied.parts == ("copy",)
        assert (copied.bytes, copied.skipped) == (6, 0)
        assert everything(folder / "copy") == entries
        assert everything(folder / "top") == entries

    def test_pipes_and_devices_are_left_out_and_counted(self, tree, folder):
        entries = grow(tree, folder)
        specials = make_specials(folder / "top/a")
        assert tree.copy(path("top"), path("copy")).skipped == len(specials)
        assert everything(folder / "copy") == entries

    def test_permissions_and_times_go_along_but_no_rights(self, tree, folder):
        write(tree, "run", b"#!")
        (folder / "run").chmod(0o6751)
        os.utime(folder / "run", ns=(1, 1234567890123456789))
        tree.make_folder(path("box"))
        (folder / "run").rename(folder / "box/run")
        (folder / "box").chmod(0o2700)
        (folder / "box/inner").mkdir()
        (folder / "box/inner").chmod(0o711)
        os.utime(folder / "box/inner", (4, 4))
        os.utime(folder / "box", (5, 5))
        tree.copy(path("box"), path("copy"))
        facts = (folder / "copy/run").stat()
        assert stat.S_IMODE(facts.st_mode) == 0o751
        assert facts.st_mtime_ns == 1234567890123456789
        box = (folder / "copy").stat()
        assert stat.S_IMODE(box.st_mode) == 0o700
        assert box.st_mtime == 5
        inner = (folder / "copy/inner").stat()
        assert (stat.S_IMODE(inner.st_mode), inner.st_mtime) == (0o711, 4)

    def test_holes_stay_holes(self, tree, folder):
        size = 64 * 1024 * 1024
        made = tree.create(path("sparse"))
        os.pwrite(made, b"start", 0)
        os.pwrite(made, b"middle", size // 2)
        os.ftruncate(made, size)
        os.close(made)
        tree.copy(path("sparse"), path("copy"))
        copy = folder / "copy"
        assert copy.stat().st_size == size
        assert copy.stat().st_blocks * 512 < 1024 * 1024
        assert copy.read_bytes() == (folder / "sparse").read_bytes()

    @pytest.mark.parametrize("number", [errno.ENOSYS, errno.EXDEV, errno.EINVAL])
    def test_it_is_copied_by_hand_where_the_kernel_cannot(
        self, tree, folder, monkeypatch, number
    ):
        def refuse(*args):
            raise OSError(number, "not here")

        monkeypatch.setattr(os, "copy_file_range", refuse)
        content = os.urandom(3_000_001)
        write(tree, "file", content)
        tree.copy(path("file"), path("copy"))
        assert read(tree, "copy") == content

    def test_it_is_copied_where_files_have_no_permissions(self, tree, monkeypatch):
        def refuse(*args, **options):
            raise PermissionError(errno.EPERM, "not here")

        monkeypatch.setattr(os, "fchmod", refuse)
        monkeypatch.setattr(os, "utime", refuse)
        write(tree, "file", b"content")
        tree.copy(path("file"), path("copy"))
        assert read(tree, "copy") == b"content"

    def test_the_longest_piece_is_not_the_longest_file(self, tree, monkeypatch):
        monkeypatch.setattr(copying, "_CHUNK", 4096)
        content = os.urandom(50_000)
        write(tree, "file", content)
        seen = []
        tree.copy(path("file"), path("copy"), work=Work(progress=seen.append))
        assert read(tree, "copy") == content
        assert seen == sorted(seen)
        assert seen[-1] == 50_000

    def test_every_name_of_a_file_becomes_a_file(self, tree, folder):
        tree.make_folder(path("top"))
        write(tree, "top/one", b"content")
        (folder / "top/two").hardlink_to(folder / "top/one")
        tree.copy(path("top"), path("copy"))
        assert (folder / "copy/one").stat().st_nlink == 1
        assert (folder / "copy/two").read_bytes() == b"content"
        assert tree.usage(path("top")).bytes == 7
        assert tree.usage(path("copy")).bytes == 14

    def test_a_folder_is_copied_into_itself_once(self, tree, folder):
        entries = grow(tree, folder)
        tree.copy(path("top"), path("top/a/copy"))
        assert everything(folder / "top/a/copy") == entries

    def test_nothing_partial_is_left_by_a_copy_that_was_stopped(self, tree, folder):
        grow(tree, folder)
        before = everything(folder)
        for stop_at in range(12):
            steps = iter(range(100))
            work = Work(cancelled=lambda at=stop_at, steps=steps: next(steps) == at)
            try:
                tree.copy(path("top"), path("copy"), work=work)
            except StoppedError:
                assert everything(folder) == before
            else:
                tree.remove(path("copy"))
        assert everything(folder) == before

    def test_nothing_partial_is_left_by_a_copy_that_is_too_large(self, tree, folder):
        grow(tree, folder)
        before = everything(folder)
        for limit in range(6):
            with pytest.raises(LimitExceededError, match=f"{limit} are allowed"):
                tree.copy(path("top"), path("copy"), work=Work(limit=limit))
            assert everything(folder) == before
        tree.copy(path("top"), path("copy"), work=Work(limit=6))

    def test_a_file_that_is_too_large_is_not_begun(self, tree, monkeypatch):
        monkeypatch.setattr(copying, "_CHUNK", 4096)
        write(tree, "file", bytes(50_000))
        seen = []
        with pytest.raises(LimitExceededError):
            tree.copy(path("file"), path("copy"), work=Work(seen.append, limit=40_000))
        assert seen == []

    def test_a_taken_name_is_decided_as_asked_and_nothing_is_left(self, tree, folder):
        write(tree, "a", b"new")
        write(tree, "b", b"old")
        with pytest.raises(EntryExistsError):
            tree.copy(path("a"), path("b"))
        copied = tree.copy(path("a"), path("b"), conflict=Conflict.RENAME)
        assert copied.parts == ("b (1)",)
        tree.copy(path("a"), path("b"), conflict=Conflict.REPLACE)
        assert everything(folder) == {
            "a": "file b'new'",
            "b": "file b'new'",
            "b (1)": "file b'new'",
        }

    def test_what_is_unfinished_is_where_nobody_looks(self, folder, tmp_path):
        (tmp_path / "staging").mkdir()
        with (
            Tree.at(tmp_path / "staging") as staging,
            Tree.at(folder, staging=staging) as tree,
        ):
            grow(tree, folder)
            before = everything(folder)
            seen = []

            def look(_: int) -> None:
                seen.append((everything(folder), len(everything(tmp_path / "staging"))))

            tree.copy(path("top"), path("copy"), work=Work(progress=look))
        assert all(now == before for now, _ in seen)
        assert any(staged for _, staged in seen)
        assert everything(tmp_path / "staging") == {}

    def test_a_tree_is_copied_into_another(self, tree, folder, tmp_path):
        entries = grow(tree, folder)
        (tmp_path / "clone").mkdir()
        with Tree.at(tmp_path / "clone") as clone:
            copied = tree.copy_all(clone)
        assert copied.bytes == 6
        assert everything(tmp_path / "clone/top") == entries

    def test_what_disappears_meanwhile_is_no_part_of_the_copy(self, tree, folder):
        tree.make_folder(path("top/sub"), parents=True)
        for number in range(5):
            write(tree, f"top/{number}", b"x")

        def lose(_: int) -> None:
            shutil.rmtree(folder / "top/sub", ignore_errors=True)
            for number in range(5):
                (folder / f"top/{number}").unlink(missing_ok=True)

        tree.copy(path("top"), path("copy"), work=Work(progress=lose))
        assert len(everything(folder / "copy")) == 1


class TestMeasuring:
    def test_bytes_entries_and_blocks_are_added_up(self, tree, folder):
        entries = grow(tree, folder)
        usage = tree.usage()
        assert usage.bytes == 6
        assert usage.entries == len(entries) + 1
        assert usage.allocated >= 6
        assert tree.usage(path("top/a")).bytes == 5
        assert tree.usage(path("top/empty")).entries == 0

    def test_a_hole_takes_no_blocks(self, tree):
        made = tree.create(path("sparse"))
        os.ftruncate(made, 1 << 30)
        os.close(made)
        usage = tree.usage()
        assert usage.bytes == 1 << 30
        assert usage.allocated < 1 << 20

    def test_it_can_be_stopped(self, tree, folder):
        grow(tree, folder)
        with pytest.raises(StoppedError):
            tree.usage(work=Work(cancelled=lambda: True))

    def test_a_file_is_not_a_folder_to_measure(self, tree):
        with pytest.raises(EntryMissingError):
            tree.usage(path("nothing"))


class TestWork:
    def test_it_is_never_more_than_allowed(self):
        work = Work(limit=5)
        work.advance(5)
        with pytest.raises(LimitExceededError):
            work.advance(1)
        assert work.done == 5


class TestLadders:
    def test_a_folder_that_was_moved_is_not_mistaken_for_the_way_back(
        self, tree, folder
    ):
        dig(folder, 40)
        (folder / "other").mkdir()
        with Ladder(tree.fileno()) as ladder:
            for _ in range(30):
                ladder.down("deeper")
            moved = Path(folder, *["deeper"] * 14)
            moved.rename(folder / "other/moved")
            for _ in range(16):
                ladder.up()
            with pytest.raises(BlockingIOError, match="moved away"):
                ladder.up()

    def test_removing_stops_in_words_when_the_ground_is_moved(self, tree, folder):
        dig(folder, 40)
        (folder / "other").mkdir()
        (folder / "other/precious").write_text("kept")

        def move(done: int) -> None:
            if done == 1:
                moved = Path(folder, *["deeper"] * 14)
                moved.rename(folder / "other/moved")

        with pytest.raises(ChangedMeanwhileError):
            tree.remove(path("deeper"), work=Work(progress=move))
        assert (folder / "other/precious").read_text() == "kept"

    def test_a_folder_swapped_for_a_link_is_not_entered(self, tree, folder):
        (folder / "a").mkdir()
        (folder / "b").mkdir()
        visits = walk(tree.fileno())
        first = next(visits)
        other = "b" if first.name == "a" else "a"
        (folder / other).rmdir()
        (folder / other).symlink_to(folder.parent / "theirs")
        assert [visit.name for visit in visits] == [first.name]


def test_a_folder_that_may_not_be_changed_is_told_in_words(tree, folder):
    """Even root may not change what is marked so."""
    write(tree, "fixed")
    command = ["chattr", "+i", folder / "fixed"]
    marks = shutil.which("chattr")
    if not marks or subprocess.run(command, check=False).returncode:
        pytest.skip("files cannot be marked here")
    try:
        with pytest.raises(ForbiddenError, match="does not allow it"):
            tree.remove(path("fixed"))
    finally:
        subprocess.run(["chattr", "-i", folder / "fixed"], check=True)
