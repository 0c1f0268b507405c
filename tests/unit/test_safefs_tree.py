"""What users do with files and folders, one deed at a time."""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from pathlib import Path

import pytest

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.safefs import entries, kernel
from backendai_hub.safefs.entries import Kind
from backendai_hub.safefs.errors import (
    EntryExistsError,
    EntryMissingError,
    FolderNotEmptyError,
    LinkRefusedError,
    NotAFileError,
    NotAFolderError,
)
from backendai_hub.safefs.making import Owner
from backendai_hub.safefs.placing import Conflict, other_names
from backendai_hub.safefs.tree import Tree
from tests.unit.safefs_trees import (
    count_descriptors,
    everything,
    folder,
    make_specials,
    names,
    path,
    read,
    tree,
    way,
    write,
)

__all__ = ["folder", "tree", "way"]

pytestmark = pytest.mark.usefixtures("way")


@pytest.fixture(autouse=True)
def _nothing_stays_open(tree):
    before = count_descriptors()
    yield
    assert count_descriptors() <= before


class TestLooking:
    def test_files_folders_links_and_the_rest_are_told_apart(self, tree, folder):
        write(tree, "file", b"12345")
        tree.make_folder(path("folder"))
        (folder / "link").symlink_to("/etc/passwd")
        specials = make_specials(folder)

        found = {entry.name: entry for entry in tree.list(()).entries}

        assert found["file"].kind is Kind.FILE
        assert found["file"].size == 5
        assert found["folder"].kind is Kind.FOLDER
        assert found["link"].kind is Kind.LINK
        assert found["link"].target == "/etc/passwd"
        assert found["link"].size == 0, "nothing is told of where it leads"
        assert {found[name].kind for name in specials} == {Kind.OTHER}
        for name, entry in found.items():
            assert tree.stat((name,)) == entry

    def test_the_tree_itself_is_a_folder_without_a_name(self, tree):
        assert tree.stat(()).kind is Kind.FOLDER
        assert tree.stat(()).name == ""

    def test_what_is_missing_is_missing_in_words(self, tree):
        for look in (tree.stat, tree.list, tree.open_read, tree.remove, tree.usage):
            with pytest.raises(
                EntryMissingError, match=r"'no/thing': there is no such"
            ):
                look(path("no/thing"))

    def test_nothing_is_reached_through_a_link(self, tree, folder):
        (folder / "out").symlink_to(folder.parent / "theirs")
        (folder / "secret").symlink_to(folder.parent / "theirs/secret")
        write(tree, "mine")
        for deed in (
            lambda: tree.list(path("out")),
            lambda: tree.stat(path("out/secret")),
            lambda: tree.open_read(path("secret")),
            lambda: tree.open_write(path("secret")),
            lambda: tree.create(path("out/new")),
            lambda: tree.make_folder(path("out/new")),
            lambda: tree.make_folder(path("out/new/deep"), parents=True),
            lambda: tree.make_folder(path("out"), exist_ok=True),
            lambda: tree.move(path("mine"), path("out/mine")),
            lambda: tree.move(path("out/secret"), path("mine2")),
            lambda: tree.copy(path("mine"), path("out/mine")),
            lambda: tree.copy(path("out/secret"), path("mine2")),
            lambda: tree.publish(path("secret"), path("mine2")),
            lambda: tree.remove(path("out/secret")),
            lambda: tree.usage(path("out")),
            lambda: tree.enter(path("out")),
            lambda: tree.sync_folder(path("out")),
        ):
            with pytest.raises(LinkRefusedError, match="none is followed"):
                deed()
        assert everything(folder.parent / "theirs") == {"secret": "file b'not yours'"}

    def test_times_that_no_calendar_has_are_shown_as_the_nearest(self, tree, folder):
        write(tree, "file")
        for moment in (2**62, -(2**62)):
            os.utime(folder / "file", ns=(0, moment))
            tree.stat(path("file"))
            tree.list(())

    def test_file_systems_have_longer_times_than_calendars(self):
        assert entries._read_time(10**30).year == 9999
        assert entries._read_time(-(10**30)).year == 1
        assert entries._read_time(1_500_000_000_123_456_789).microsecond == 123_456

    def test_the_tag_changes_with_the_content(self, tree, folder):
        write(tree, "file", b"one")
        os.utime(folder / "file", (1, 1))
        before = tree.stat(path("file")).tag
        assert tree.stat(path("file")).tag == before
        (folder / "file").write_text("two")
        assert tree.stat(path("file")).tag != before

    def test_every_name_of_a_file_can_be_told_looked_at_and_removed(self, tree, folder):
        composed = unicodedata.normalize("NFC", "é")
        decomposed = unicodedata.normalize("NFD", "é")
        raw = [
            b"\xff\xfe",
            b"a\xe9",
            b"x" * 255,
            b"\n",
            b" ",
            b"-rf",
            b"a\\b",
            b"\x1b[31m",
        ]
        for name in (*raw, composed.encode(), decomposed.encode()):
            (folder / os.fsdecode(name)).write_bytes(name)
        listed = names(tree.list(()).entries)
        assert len(listed) == len(raw) + 2
        for name in listed:
            assert os.fsencode(path(name)[0]) == read(tree, name)
            tree.remove(path(name))
        assert everything(folder) == {}


class TestOpening:
    def test_only_files_are_opened_for_their_content(self, tree, folder):
        tree.make_folder(path("folder"))
        for name in ("folder", *make_specials(folder)):
            for open_it in (tree.open_read, tree.open_write):
                with pytest.raises(NotAFileError, match=f"'{name}': it is "):
                    open_it(path(name))
        with pytest.raises(NotAFileError):
            tree.open_read(())

    def test_what_is_opened_for_writing_keeps_its_content(self, tree):
        write(tree, "file", b"content")
        opened = tree.open_write(path("file"))
        os.pwrite(opened, b"C", 0)
        os.close(opened)
        assert read(tree, "file") == b"Content"

    def test_a_new_file_never_replaces_anything(self, tree, folder):
        write(tree, "file", b"content")
        tree.make_folder(path("folder"))
        (folder / "link").symlink_to("nowhere")
        for name in ("file", "folder", "link", *make_specials(folder)):
            with pytest.raises(EntryExistsError, match=f"'{name}': something of that"):
                tree.create(path(name))
        assert read(tree, "file") == b"content"
        assert not (folder / "nowhere").exists()

    def test_the_root_is_not_a_new_file(self, tree):
        for deed in (
            tree.create,
            tree.make_folder,
            lambda parts: tree.move(parts, ("a",)),
            lambda parts: tree.move(("a",), parts),
            lambda parts: tree.copy(parts, ("a",)),
        ):
            with pytest.raises(InvalidRequestError, match="the path is missing"):
                deed(())


class TestMakingFolders:
    def test_a_folder_is_made_once(self, tree):
        tree.make_folder(path("a"))
        with pytest.raises(EntryExistsError):
            tree.make_folder(path("a"))
        tree.make_folder(path("a"), exist_ok=True)

    def test_folders_above_are_made_only_if_asked_for(self, tree, folder):
        with pytest.raises(EntryMissingError):
            tree.make_folder(path("a/b/c"))
        tree.make_folder(path("a/b/c"), parents=True)
        with pytest.raises(EntryExistsError):
            tree.make_folder(path("a/b/c"), parents=True)
        assert everything(folder) == {"a": "folder", "a/b": "folder", "a/b/c": "folder"}

    def test_a_file_is_no_folder_that_exists_already(self, tree, folder):
        write(tree, "file")
        with pytest.raises(NotAFolderError):
            tree.make_folder(path("file"), exist_ok=True)
        with pytest.raises(NotAFolderError):
            tree.make_folder(path("file/below"), parents=True)
        assert everything(folder) == {"file": "file b''"}


class TestMoving:
    def test_an_entry_is_renamed_and_moved(self, tree, folder):
        write(tree, "a/b".replace("/", "-"), b"1")
        tree.make_folder(path("folder"))
        assert tree.move(path("a-b"), path("folder/c")) == ("folder", "c")
        assert tree.move(path("folder"), path("other")) == ("other",)
        assert everything(folder) == {"other": "folder", "other/c": "file b'1'"}

    @pytest.mark.parametrize("kind", ["file", "folder", "link", "empty"])
    def test_a_name_that_is_taken_stays_what_it_is(self, tree, folder, kind):
        write(tree, "new", b"new")
        if kind == "file":
            write(tree, "taken", b"old")
        elif kind == "link":
            (folder / "taken").symlink_to("nowhere")
        else:
            tree.make_folder(path("taken"))
        if kind == "folder":
            write(tree, "taken/in", b"it")
        before = everything(folder)

        with pytest.raises(EntryExistsError, match="'taken': something of that name"):
            tree.move(path("new"), path("taken"))

        assert everything(folder) == before

    def test_a_file_is_replaced_if_that_is_asked_for(self, tree, folder):
        write(tree, "new", b"new")
        write(tree, "taken", b"old")
        tree.move(path("new"), path("taken"), conflict=Conflict.REPLACE)
        assert everything(folder) == {"taken": "file b'new'"}

    def test_replacing_a_link_replaces_the_link(self, tree, folder):
        write(tree, "new", b"new")
        (folder / "taken").symlink_to(folder.parent / "theirs/secret")
        tree.move(path("new"), path("taken"), conflict=Conflict.REPLACE)
        assert everything(folder) == {"taken": "file b'new'"}
        assert (folder.parent / "theirs/secret").read_text() == "not yours"

    def test_folders_with_something_in_them_are_not_replaced(self, tree, folder):
        tree.make_folder(path("new"))
        tree.make_folder(path("taken"))
        write(tree, "taken/in", b"it")
        write(tree, "file")
        before = everything(folder)
        with pytest.raises(FolderNotEmptyError):
            tree.move(path("new"), path("taken"), conflict=Conflict.REPLACE)
        with pytest.raises(NotAFileError):
            tree.move(path("file"), path("taken"), conflict=Conflict.REPLACE)
        with pytest.raises(NotAFolderError):
            tree.move(path("new"), path("file"), conflict=Conflict.REPLACE)
        assert everything(folder) == before

    def test_another_name_is_found_if_that_is_asked_for(self, tree):
        write(tree, "a.txt", b"0")
        for number in range(1, 4):
            write(tree, "new", b"%d" % number)
            placed = tree.move(path("new"), path("a.txt"), conflict=Conflict.RENAME)
            assert placed == (f"a ({number}).txt",)
        assert read(tree, "a.txt") == b"0"
        assert read(tree, "a (2).txt") == b"2"

    def test_a_folder_does_not_go_into_itself(self, tree, folder):
        tree.make_folder(path("a/b"), parents=True)
        for target in ("a/c", "a/b/c"):
            with pytest.raises(InvalidRequestError):
                tree.move(path("a"), path(target))
        assert everything(folder) == {"a": "folder", "a/b": "folder"}

    def test_two_names_of_one_file_become_one(self, tree, folder):
        write(tree, "one", b"content")
        (folder / "two").hardlink_to(folder / "one")
        tree.move(path("one"), path("two"), conflict=Conflict.REPLACE)
        assert everything(folder) == {"two": "file b'content'"}

    def test_moving_onto_itself_loses_nothing(self, tree, folder):
        write(tree, "one", b"content")
        (folder / "two").hardlink_to(folder / "one")
        tree.move(path("one"), path("one"), conflict=Conflict.REPLACE)
        assert everything(folder) == {
            "one": "file b'content'",
            "two": "file b'content'",
        }

    def test_an_entry_moves_to_another_tree(self, tree, folder, tmp_path):
        write(tree, "file", b"content")
        with Tree.at(tmp_path / "theirs") as other:
            with pytest.raises(EntryExistsError):
                tree.move(path("file"), path("secret"), to=other)
            tree.move(path("file"), path("given"), to=other)
            assert read(other, "given") == b"content"
        assert everything(folder) == {}

    def test_links_are_moved_as_links(self, tree, folder):
        (folder / "link").symlink_to("../theirs/secret")
        tree.move(path("link"), path("other"))
        assert everything(folder) == {"other": "link ../theirs/secret"}


class TestPublishing:
    def test_a_finished_file_appears_whole(self, tree, folder, tmp_path):
        with Tree.at(tmp_path / "theirs") as uploads:
            write(uploads, "part", b"whole")
            tree.make_folder(path("in"))
            placed = uploads.publish(path("part"), path("in/file"), to=tree)
            assert placed == ("in", "file")
        assert everything(folder) == {"in": "folder", "in/file": "file b'whole'"}
        assert not (tmp_path / "theirs/part").exists()

    @pytest.mark.parametrize(
        ("conflict", "expected"),
        [
            (Conflict.REPLACE, {"file": "file b'new'"}),
            (
                Conflict.RENAME,
                {"file": "file b'old'", "file (1)": "file b'new'"},
            ),
            (Conflict.FAIL, {"file": "file b'old'", "part": "file b'new'"}),
        ],
    )
    def test_a_taken_name_is_decided_as_asked(self, tree, folder, conflict, expected):
        write(tree, "file", b"old")
        write(tree, "part", b"new")
        if conflict is Conflict.FAIL:
            with pytest.raises(EntryExistsError):
                tree.publish(path("part"), path("file"), conflict=conflict)
        else:
            tree.publish(path("part"), path("file"), conflict=conflict)
        assert everything(folder) == expected

    def test_only_files_are_published(self, tree, folder):
        tree.make_folder(path("folder"))
        (folder / "link").symlink_to("/etc/passwd")
        before = everything(folder)
        for name, refused in (("folder", NotAFileError), ("link", LinkRefusedError)):
            with pytest.raises(refused):
                tree.publish(path(name), path("published"))
        assert everything(folder) == before

    def test_content_and_names_are_on_the_disk_before_it_returns(
        self, tree, folder, monkeypatch
    ):
        """What is synchronised, and what is visible by then, in this order."""
        write(tree, "part", b"whole")
        tree.make_folder(path("in"))
        seen = []

        def sync(descriptor: int) -> None:
            kind = "file" if stat.S_ISREG(os.fstat(descriptor).st_mode) else "folder"
            place = Path(f"/proc/self/fd/{descriptor}").readlink()
            seen.append(
                (kind, os.path.relpath(place, folder), (folder / "in/f").exists())
            )

        monkeypatch.setattr(os, "fsync", sync)
        tree.publish(path("part"), path("in/f"))
        assert seen == [
            ("file", "part", False),
            ("folder", "in", True),
            ("folder", ".", True),
        ]


class TestWithoutTheKernelsHelp:
    """File systems that cannot rename to free names only, or have no hard links."""

    @pytest.fixture(autouse=True, params=["no call", "no flag", "no links"])
    def _poor_file_system(self, request, monkeypatch):
        def refuse(*args, **kwargs):
            if request.param == "no call":
                raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
            raise OSError(errno.EINVAL, "not here")

        def refuse_link(*args, **kwargs):
            raise OSError(errno.EPERM, "not here")

        monkeypatch.setattr(kernel, "rename_without_replacing", refuse)
        if request.param == "no links":
            monkeypatch.setattr(os, "link", refuse_link)

    def test_names_are_taken_once_all_the_same(self, tree, folder):
        write(tree, "new", b"new")
        write(tree, "taken", b"old")
        tree.make_folder(path("folder"))
        (folder / "link").symlink_to("nowhere")
        before = everything(folder)
        for source in ("new", "folder", "link"):
            for target in ("taken", "folder", "link"):
                with pytest.raises(EntryExistsError):
                    tree.move(path(source), path(target))
        assert everything(folder) == before

    def test_what_is_free_is_taken(self, tree, folder):
        write(tree, "new", b"new")
        tree.make_folder(path("folder"))
        (folder / "link").symlink_to("nowhere")
        tree.move(path("folder"), path("box"))
        for name in ("new", "link"):
            tree.move(path(name), path(f"box/{name}"))
        assert everything(folder) == {
            "box": "folder",
            "box/new": "file b'new'",
            "box/link": "link nowhere",
        }

    def test_a_name_is_not_left_taken_by_nothing(self, tree, folder, monkeypatch):
        write(tree, "new", b"new")

        def fail(*args, **kwargs):
            raise OSError(errno.ENOSPC, "full")

        before = everything(folder)
        monkeypatch.setattr(os, "rename", fail)
        monkeypatch.setattr(os, "link", fail_link)
        with pytest.raises(Exception, match="full"):
            tree.move(path("new"), path("free"))
        assert everything(folder) == before


def fail_link(*args, **kwargs):
    raise OSError(errno.EPERM, "not here")


class TestOwners:
    @pytest.fixture
    def owned(self, folder):
        if os.geteuid() != 0:
            pytest.skip("only root gives files away")
        with Tree.at(folder, owner=Owner(1234, 4321)) as opened:
            yield opened

    def test_all_that_is_made_belongs_to_the_owner(self, owned, folder):
        write(owned, "file", b"1")
        (folder / "link").symlink_to("file")
        owned.make_folder(path("a/b"), parents=True)
        owned.copy(path("file"), path("a/b/copy"))
        owned.copy(path("link"), path("a/b/link"))
        owned.copy(path("a"), path("c"))
        with owned.enter(path("c")) as inner:
            write(inner, "inside")
        os.lchown(folder / "link", 1234, 4321)
        for name in everything(folder):
            facts = (folder / name).lstat()
            assert (facts.st_uid, facts.st_gid) == (1234, 4321), name


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("a", "a (1)"),
        ("a.txt", "a (1).txt"),
        ("a.tar.gz", "a.tar (1).gz"),
        (".bashrc", ".bashrc (1)"),
        ("...", "... (1)"),
        ("a.", "a (1)."),
        ("v1.this is no suffix at all", "v1.this is no suffix at all (1)"),
        ("x" * 255, "x" * 251 + " (1)"),
        ("é" * 127 + "x", "é" * 125 + " (1)"),
        ("x" * 251 + ".txt", "x" * 247 + " (1).txt"),
    ],
)
def test_other_names_are_like_the_first_and_never_too_long(name, second):
    found = other_names(name)
    assert next(found) == name
    assert next(found) == second
    assert len(os.fsencode(second)) <= 255
