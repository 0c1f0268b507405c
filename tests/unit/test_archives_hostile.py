"""Archives made to do harm: each is refused in words, and nothing of it stays."""

from __future__ import annotations

import io
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backendai_hub.core.errors import HubError
from backendai_hub.safefs.archives import ArchiveKind, Limits, extract, stream_archive
from backendai_hub.safefs.errors import (
    ArchiveRefusedError,
    EntryExistsError,
    LimitExceededError,
    StoppedError,
)
from backendai_hub.safefs.placing import Conflict
from backendai_hub.safefs.tree import Tree
from backendai_hub.safefs.work import Work
from tests.unit.safefs_trees import (
    count_descriptors,
    everything,
    folder,
    path,
    tree,
    write,
)

__all__ = ["folder", "tree"]

ABOVE = {"mine": "folder", "theirs": "folder", "theirs/secret": "file b'not yours'"}


@pytest.fixture(autouse=True)
def _nothing_stays_open(tree):
    before = count_descriptors()
    yield
    assert count_descriptors() <= before


@pytest.fixture
def refused(tree, folder):
    """Try to unpack, expect a refusal with these words, and find nothing changed."""

    def unpack(archive: bytes, words: str, **limits) -> None:
        with pytest.raises(ArchiveRefusedError, match=words):
            unpack_into(tree, archive, "out", limits=Limits(**limits))
        assert everything(folder.parent) == ABOVE

    return unpack


def unpack_into(tree: Tree, archive: bytes, target: str, **more):
    made = os.memfd_create("archive")
    try:
        os.write(made, archive)
        return extract(tree, made, path(target), **more)
    finally:
        os.close(made)


def zipped(*files: tuple[str, bytes], link: tuple[str, str] | None = None) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        if link:
            info = zipfile.ZipInfo(link[0])
            info.create_system = 3
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, link[1])
        for name, content in files:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def tarred(*headers: tarfile.TarInfo | tuple[str, bytes], mode: str = "w") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:
        for header in headers:
            if isinstance(header, tuple):
                info = tarfile.TarInfo(header[0])
                info.size = len(header[1])
                archive.addfile(info, io.BytesIO(header[1]))
            else:
                archive.addfile(header)
    return made.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


OUTSIDE = [
    "../theirs/evil",
    "/tmp/evil",
    "//tmp/evil",
    "a/../../evil",
    "a/b/../../../evil",
    "..",
    "a/..",
    "./../evil",
]


class TestNames:
    @pytest.mark.parametrize("name", OUTSIDE)
    def test_nothing_is_put_outside(self, refused, name):
        for archive in (zipped(("fine", b"1"), (name, b"2")), tarred((name, b"2"))):
            refused(archive, "outside its folder")
        refused(tarred(special(name, tarfile.DIRTYPE)), "outside its folder")

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("x" * 256, "too long"),
            ("/".join(["x" * 200] * 30), "too long"),
            ("/".join("a" * 65), "65 folders deep"),
        ],
    )
    def test_names_have_a_sensible_length(self, refused, name, words):
        refused(zipped((name, b"1")), words)
        refused(tarred((name, b"1")), words)

    def test_a_nul_in_a_name_is_not_its_end(self, refused):
        archive = zipped(("fine-then-evil", b"1")).replace(b"fine-then", b"fine\0then")
        refused(archive, "outside its folder")

    def test_names_that_mean_nothing_elsewhere_are_names(self, tree, folder):
        odd = ["C:\\x", "a\\..\\b", "nul", "a:b", "~", "-rf", "\x1b[31m", "<img src=x>"]
        for archive in (
            zipped(*((name, b"1") for name in odd)),
            tarred(*((name, b"1") for name in odd)),
        ):
            unpack_into(tree, archive, "out")
            assert set(everything(folder / "out")) == set(odd)
            tree.remove(path("out"))

    def test_twins_of_unicode_are_two_files(self, tree, folder):
        unpack_into(tree, zipped(("\u00e9", b"1"), ("e\u0301", b"2")), "out")
        assert len(everything(folder / "out")) == 2

    def test_points_and_empty_names_on_the_way_are_passed_over(self, tree, folder):
        unpack_into(tree, tarred(("./a//./b", b"1"), special("./", b"5")), "out")
        assert everything(folder / "out") == {"a": "folder", "a/b": "file b'1'"}


class TestLinksAndDevices:
    @pytest.mark.parametrize(
        "kind",
        [
            tarfile.SYMTYPE,
            tarfile.LNKTYPE,
            tarfile.CHRTYPE,
            tarfile.BLKTYPE,
            tarfile.FIFOTYPE,
            b"Z",
        ],
    )
    def test_they_refuse_the_archive_or_are_left_out(self, tree, folder, refused, kind):
        archive = tarred(("fine", b"1"), special("odd", kind, "/etc/passwd"))
        refused(archive, "'odd' is a link or a device")
        done = unpack_into(tree, archive, "out", limits=Limits(skip_links=True))
        assert (done.files, done.skipped) == (1, 1)
        assert everything(folder / "out") == {"fine": "file b'1'"}

    def test_a_link_in_a_zip_file_is_one_too(self, tree, folder, refused):
        archive = zipped(("fine", b"1"), link=("odd", "../theirs"))
        refused(archive, "'odd' is a link or a device")
        unpack_into(tree, archive, "out", limits=Limits(skip_links=True))
        assert everything(folder / "out") == {"fine": "file b'1'"}

    def test_nothing_is_written_through_a_link_of_the_archive(self, tree, folder):
        """A link, then a file 'in' it: the oldest of these attacks."""
        for archive in (
            tarred(special("way", tarfile.SYMTYPE, "../../theirs"), ("way/evil", b"2")),
            zipped(("way/evil", b"2"), link=("way", "../../theirs")),
        ):
            unpack_into(tree, archive, "out", limits=Limits(skip_links=True))
            assert everything(folder / "out") == {
                "way": "folder",
                "way/evil": "file b'2'",
            }
            tree.remove(path("out"))
        assert everything(folder.parent) == ABOVE

    def test_a_chain_of_links_that_is_longer_than_any_path_leads_nowhere(
        self, tree, folder, refused
    ):
        """What makes a checked path be another one: links to folders of 247 letters."""
        long, headers, way = "d" * 247, [], []
        for letter in "abcdefghijklmnop":
            headers.append(special("/".join([*way, long]), tarfile.DIRTYPE))
            headers.append(special("/".join([*way, letter]), tarfile.SYMTYPE, long))
            way.append(letter)
        top = "/".join(way)
        headers += [
            special(f"{top}/{'l' * 254}", tarfile.SYMTYPE, "../" * len(way)),
            special("escape", tarfile.SYMTYPE, f"{top}/{'l' * 254}/../../theirs"),
            ("escape/evil", b"2"),
            special("newlink", tarfile.LNKTYPE, "escape/secret"),
            ("newlink", b"2"),
        ]
        archive = tarred(*headers)
        refused(archive, "is a link or a device")
        unpack_into(tree, archive, "out", limits=Limits(skip_links=True))
        tree.remove(path("out"))
        assert everything(folder.parent) == ABOVE

    def test_links_that_are_there_already_are_not_followed(self, tree, folder):
        tree.make_folder(path("out"))
        (folder / "out/way").symlink_to(folder.parent / "theirs")
        (folder / "link").symlink_to(folder.parent / "theirs")
        archive = tarred(("way/evil", b"2"))
        for conflict in (Conflict.FAIL, Conflict.REPLACE):
            with pytest.raises(EntryExistsError):
                unpack_into(tree, archive, "out", conflict=conflict)
        with pytest.raises(HubError):
            unpack_into(tree, archive, "link")
        with pytest.raises(HubError):
            unpack_into(tree, archive, "link/below")
        assert everything(folder.parent / "theirs") == {"secret": "file b'not yours'"}


class TestBombs:
    def test_what_becomes_a_hundred_times_as_large_is_refused(self, refused):
        zeros = bytes(40_000_000)
        refused(zipped(("zeros", zeros)), "more than 100 times as large")
        refused(tarred(("zeros", zeros), mode="w:gz"), "more than 100 times as large")

    def test_small_files_may_be_packed_as_well_as_they_can(self, tree, folder):
        unpack_into(tree, zipped(("zeros", bytes(4_000_000))), "out")
        assert (folder / "out/zeros").stat().st_size == 4_000_000

    def test_a_zip_file_in_a_zip_file_stays_one(self, tree, folder):
        unpack_into(tree, zipped(("inner.zip", zipped(("a", b"1")))), "out")
        assert list(everything(folder / "out")) == ["inner.zip"]

    def test_members_that_share_their_bytes_are_refused(self, refused):
        """Each entry of the directory names the same packed bytes."""
        archive = zipped(("aa", os.urandom(5000)), ("bb", b"2"))
        start = archive.index(b"PK\1\2")
        second = archive.index(b"PK\1\2", start + 4)
        directory = archive[start:second]
        twice = directory + directory.replace(b"aa", b"bb")
        end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, len(twice), start, 0)
        refused(archive[:start] + twice + end, "overlap")

    def test_a_member_that_reaches_into_the_next_is_refused(self, refused):
        archive = bytearray(zipped(("aa", b"x" * 50), ("bb", os.urandom(5000))))
        place = archive.index(b"PK\1\2")
        archive[place + 20 : place + 24] = struct.pack("<L", 4000)
        refused(bytes(archive), "overlap")

    def test_there_are_only_so_many_members(self, refused):
        many = [(f"{number}", b"") for number in range(11)]
        refused(zipped(*many), "11 members; at most 10", members=10)
        refused(tarred(*many), "more than 10 members", members=10)

    def test_a_zip_file_cannot_have_more_members_than_it_says(self, refused):
        archive = zipped(*((f"{number}", b"") for number in range(11)))
        end = archive.rindex(b"PK\5\6")
        lying = archive[: end + 8] + struct.pack("<2H", 1, 1) + archive[end + 12 :]
        refused(lying, "more than 10 members", members=10)

    def test_folders_that_only_names_imply_are_members_too(self, refused):
        deep = [("/".join(f"{n}{d}" for d in range(9)), b"") for n in range(3)]
        refused(zipped(*deep), "more than 20 members", members=20)
        refused(tarred(*deep), "more than 20 members", members=20)

    def test_there_are_only_so_many_bytes(self, refused):
        for archive in (
            zipped(("a", os.urandom(600)), ("b", os.urandom(600))),
            tarred(("a", os.urandom(600)), ("b", os.urandom(600)), mode="w:gz"),
        ):
            refused(archive, "more than 1000 bytes", bytes=1000)

    def test_what_is_left_out_counts_too(self, tree, folder):
        info = special("odd", b"Z")
        info.size = 5000
        archive = info.tobuf() + bytes(5120) + tarred(("fine", b"1"))
        limits = Limits(bytes=4000, skip_links=True)
        with pytest.raises(ArchiveRefusedError, match="more than 4000 bytes"):
            unpack_into(tree, archive, "out", limits=limits)
        unpack_into(tree, archive, "out", limits=Limits(skip_links=True))
        assert everything(folder / "out") == {"fine": "file b'1'"}

    def test_a_size_that_cannot_be_is_refused_before_anything_is_read(self, refused):
        info = tarfile.TarInfo("huge")
        info.size = 1 << 60
        refused(tarred(("a", b"1"))[:1024] + info.tobuf(), "becomes more than")

    def test_more_than_the_caller_allows_is_no_room(self, tree, folder):
        archive = zipped(("a", b"x" * 100), ("b", b"x" * 100))
        with pytest.raises(LimitExceededError):
            unpack_into(tree, archive, "out", work=Work(limit=150))
        assert everything(folder) == {}

    def test_headers_of_headers_come_to_an_end(self, refused):
        info = tarfile.TarInfo("x")
        info.type = tarfile.XHDTYPE
        refused(info.tobuf() * 50, "more than 20 members", members=20)

    @pytest.mark.parametrize(
        "kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, b"K"]
    )
    def test_a_header_is_never_large(self, refused, kind):
        info = tarfile.TarInfo("x")
        info.type = kind
        info.size = 1 << 30
        refused(info.tobuf() + bytes(2048), "far too long")


class TestDamage:
    @pytest.mark.parametrize("mode", ["w", "w:gz"])
    def test_a_tar_file_that_ends_early_leaves_nothing(self, refused, mode):
        archive = tarred(("a", os.urandom(3000)), ("b", os.urandom(3000)), mode=mode)
        for length in (700, 1500, 2600):
            refused(archive[:length], "ends too early")

    def test_a_zip_file_that_ends_early_leaves_nothing(self, refused):
        archive = zipped(("a", os.urandom(3000)))
        for length in (4, 100, 3000, len(archive) - 1):
            refused(archive[:length], "damaged")

    def test_wrong_content_is_noticed_by_its_checksum(self, refused):
        archive = bytearray(zipped(("a", os.urandom(3000))))
        archive[1500] ^= 1
        refused(bytes(archive), "damaged")

    def test_wrong_content_that_is_not_packed_is_noticed_too(self, refused):
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr("a", "content")
        refused(made.getvalue().replace(b"content", b"kontent"), "damaged")

    def test_members_are_where_the_directory_says(self, refused):
        archive = zipped(("a", b"1"), ("b", b"2"))
        second = archive.index(b"PK\3\4", 4)
        refused(archive[:second] + b"XX" + archive[second + 2 :], "is not where")

    def test_a_directory_has_nothing_but_its_lines(self, refused):
        archive = zipped(("a", b"1"))
        start, end = archive.index(b"PK\1\2"), archive.index(b"PK\5\6")
        directory = archive[start:end] + b"surplus"
        sizes = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(directory), start, 0)
        refused(archive[:start] + directory + sizes, "ends in the middle")

    def test_no_more_is_written_than_a_member_says(self, tree, folder):
        archive = bytearray(zipped(("a", bytes(1_000_000))))
        place = archive.index(b"PK\1\2") + 24
        archive[place : place + 4] = struct.pack("<L", 7)
        with pytest.raises(ArchiveRefusedError, match="checksum"):
            unpack_into(tree, bytes(archive), "out", work=Work(limit=1000))
        assert everything(folder) == {}

    def test_a_directory_is_within_the_archive(self, refused):
        archive = zipped(("a", b"1"))
        end = archive.index(b"PK\5\6")
        size = struct.unpack_from("<L", archive, end + 12)[0]
        longer = archive[: end + 12] + struct.pack("<L", size + 4) + archive[end + 16 :]
        refused(longer, "its directory is outside")

    def test_a_directory_may_be_in_any_order(self, tree, folder):
        archive = zipped(("a", b"1"), ("b", b"2"))
        start, end = archive.index(b"PK\1\2"), archive.index(b"PK\5\6")
        second = archive.index(b"PK\1\2", start + 4)
        turned = archive[second:end] + archive[start:second]
        unpack_into(tree, archive[:start] + turned + archive[end:], "out")
        assert everything(folder / "out") == {"a": "file b'1'", "b": "file b'2'"}

    def test_a_header_with_a_wrong_sum_is_noticed(self, refused):
        archive = bytearray(tarred(("a", b"1")))
        archive[0] ^= 1
        refused(bytes(archive), "a header cannot be read")

    @pytest.mark.parametrize(
        ("place", "length", "value"), [(20, 4, 7), (24, 4, 7), (24, 4, 90_000)]
    )
    def test_a_size_that_is_not_the_real_one_is_noticed(
        self, refused, place, length, value
    ):
        archive = bytearray(zipped(("a", os.urandom(3000))))
        start = archive.index(b"PK\1\2")
        archive[start + place : start + place + length] = struct.pack("<L", value)
        refused(bytes(archive), "damaged")

    @pytest.mark.parametrize("text", ["-1", "1e3", "x", "9" * 30, "٣"])
    def test_a_number_that_is_none_is_noticed(self, refused, text):
        info = tarfile.TarInfo("a")
        info.pax_headers = {"size": text}
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
            archive.addfile(info)
        refused(made.getvalue(), "damaged")

    @pytest.mark.parametrize(
        "lines", [b"0 path=a\n", b"99 path=a\n", b"path=a\n", b"-5 path=a\n", b"3 "]
    )
    def test_lines_of_a_header_are_as_long_as_they_say(self, refused, lines):
        info = tarfile.TarInfo("x")
        info.type = tarfile.XHDTYPE
        info.size = len(lines)
        archive = info.tobuf() + lines.ljust(512, b"\0") + tarred(("a", b"1"))
        refused(archive, "a header cannot be read")

    def test_the_same_name_twice_is_refused(self, refused):
        with pytest.warns(UserWarning, match="Duplicate"):
            archive = zipped(("a", b"1"), ("a", b"2"))
        refused(archive, "'a' is in the archive twice")
        refused(tarred(("a", b"1"), ("./a", b"2")), "'a' is in the archive twice")

    def test_a_file_is_not_a_folder_too(self, refused):
        refused(zipped(("a", b"1"), ("a/b", b"2")), "'a' is a file and a folder")
        refused(tarred(("a/b", b"1"), ("a", b"2")), "'a' is in the archive twice")
        refused(tarred(("a", b"1"), special("a", b"5")), "'a' is a file and a folder")

    def test_a_folder_may_be_named_twice(self, tree, folder):
        folders = [special("a", b"5"), special("a/", b"5"), ("a/b", b"1")]
        unpack_into(tree, tarred(*folders, special("a", b"5")), "out")
        assert everything(folder / "out") == {"a": "folder", "a/b": "file b'1'"}

    @pytest.mark.parametrize(
        "content",
        [b"", b"PK", b"no archive", b"BZh9" + bytes(600), b"\x1f\x8b", b"PK\3\4"],
    )
    def test_what_is_no_archive_is_told_so(self, refused, content):
        refused(content, "damaged|no archive")

    def test_ways_of_packing_that_are_not_known_are_named(self, refused):
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_BZIP2) as archive:
            archive.writestr("a", "1")
        refused(made.getvalue(), "method 12; only store and deflate")

    def test_what_is_encrypted_or_in_parts_is_told_so(self, refused):
        archive = bytearray(zipped(("a", b"1")))
        archive[archive.index(b"PK\1\2") + 8] |= 1
        refused(bytes(archive), "encrypted")
        archive = bytearray(zipped(("a", b"1")))
        archive[archive.index(b"PK\5\6") + 4] = 1
        refused(bytes(archive), "one of several parts")

    def test_sparse_files_are_told_how_to_be_packed(self, refused):
        refused(tarred(special("a", tarfile.GNUTYPE_SPARSE)), "--sparse")
        info = tarfile.TarInfo("a")
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
        refused(tarred(info), "--sparse")


class TestIntoWhatIsThere:
    def test_new_names_are_added_to_a_folder(self, tree, folder):
        tree.make_folder(path("out"))
        write(tree, "out/mine", b"old")
        done = unpack_into(tree, zipped(("a/b", b"1"), ("c", b"2")), "out")
        assert done.parts == ("out",)
        assert everything(folder / "out") == {
            "mine": "file b'old'",
            "a": "folder",
            "a/b": "file b'1'",
            "c": "file b'2'",
        }

    def test_a_name_that_is_taken_stops_all_of_it(self, tree, folder):
        tree.make_folder(path("out"))
        write(tree, "out/c", b"old")
        before = everything(folder)
        with pytest.raises(EntryExistsError, match="'out/c'"):
            unpack_into(tree, zipped(("a", b"1"), ("c", b"2"), ("z", b"3")), "out")
        assert everything(folder) == before

    def test_a_name_that_is_taken_at_the_last_moment_undoes_the_rest(
        self, tree, folder, monkeypatch
    ):
        tree.make_folder(path("out"))
        real = Tree.move

        def move_late(self, source, target, **options):
            if target[-1] == "c":
                (folder / "out/c").write_text("late")
            return real(self, source, target, **options)

        monkeypatch.setattr(Tree, "move", move_late)
        with pytest.raises(EntryExistsError, match="'out/c'"):
            unpack_into(tree, zipped(("a/b", b"1"), ("c", b"2")), "out")
        assert everything(folder) == {"out": "folder", "out/c": "file b'late'"}

    def test_files_are_replaced_and_folders_are_not(self, tree, folder):
        tree.make_folder(path("out/a"), parents=True)
        write(tree, "out/c", b"old")
        unpack_into(tree, zipped(("c", b"new")), "out", conflict=Conflict.REPLACE)
        assert everything(folder / "out")["c"] == "file b'new'"
        for archive in (
            zipped(("a/b", b"1")),
            zipped(("a", b"1")),
            zipped(("c/d", b"1")),
        ):
            before = everything(folder)
            with pytest.raises(EntryExistsError, match="folders are not replaced"):
                unpack_into(tree, archive, "out", conflict=Conflict.REPLACE)
            assert everything(folder) == before

    def test_other_names_are_found(self, tree, folder):
        for _ in range(2):
            archive = zipped(("a/b", b"1"), ("c.txt", b"2"))
            tree.make_folder(path("out"), exist_ok=True)
            unpack_into(tree, archive, "out", conflict=Conflict.RENAME)
        tops = {name for name in everything(folder / "out") if "/" not in name}
        assert tops == {"a", "a (1)", "c.txt", "c (1).txt"}

    def test_a_file_in_the_place_of_the_folder_stays(self, tree, folder):
        write(tree, "out", b"mine")
        with pytest.raises(EntryExistsError):
            unpack_into(tree, zipped(("a", b"1")), "out")
        assert everything(folder) == {"out": "file b'mine'"}

    def test_it_can_be_stopped_at_any_moment_and_leaves_nothing(self, tree, folder):
        archive = zipped(*((f"{n}/file", b"x" * 1000) for n in range(4)))
        stopped = 0
        for stop_at in range(20):
            steps = iter(range(1000))
            work = Work(cancelled=lambda at=stop_at, steps=steps: next(steps) == at)
            try:
                unpack_into(tree, archive, "out", work=work)
            except StoppedError:
                stopped += 1
                assert everything(folder) == {}
            else:
                tree.remove(path("out"))
        assert 4 <= stopped < 20


def _samples(folder: Path) -> list[bytes]:
    with Tree.at(folder) as tree:
        found = []
        for kind in ArchiveKind:
            pieces: list[bytes] = []
            stream_archive(tree, [("top",)], kind, pieces.append)
            found.append(b"".join(pieces))
    long = tarfile.TarInfo("n" * 200)
    return [*found, tarred(long, ("x", b"1")), zipped(("y", b"2"))]


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    (folder / "top/sub").mkdir(parents=True)
    (folder / "top/sub/file").write_bytes(b"content" * 100)
    (folder / "top/ü").write_bytes(b"1")
    return _samples(folder)


class TestWhateverIsSent:
    """Bytes changed at random: refused or unpacked, and never anything else."""

    @settings(max_examples=400)
    @given(drawn=st.data())
    def test_changed_archives_do_no_harm(self, samples, tmp_path_factory, drawn):
        archive = bytearray(drawn.draw(st.sampled_from(samples)))
        for _ in range(drawn.draw(st.integers(1, 4))):
            place = drawn.draw(st.integers(0, len(archive) - 1))
            archive[place] = drawn.draw(st.integers(0, 255))
        if drawn.draw(st.booleans()) and archive[257:262] == b"ustar":
            _repair_sum(archive)
        self.unpack(tmp_path_factory, bytes(archive))

    @settings(max_examples=200)
    @given(content=st.binary(max_size=600), kind=st.integers(0, 3))
    def test_bytes_of_any_kind_do_no_harm(self, tmp_path_factory, content, kind):
        ends = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(content), 0, 0)
        self.unpack(
            tmp_path_factory,
            [
                content,
                b"PK\3\4" + content + ends,
                zlib.compress(content, wbits=31),
                content[:257].ljust(257, b"\0") + b"ustar" + content[257:],
            ][kind],
        )

    def unpack(self, tmp_path_factory, archive: bytes) -> None:
        folder = tmp_path_factory.mktemp("fuzz")
        with Tree.at(folder) as tree:
            limits = Limits(members=50, bytes=10_000_000)
            try:
                unpack_into(tree, archive, "out", limits=limits)
            except ArchiveRefusedError:
                assert everything(folder) == {}


def _repair_sum(header: bytearray) -> None:
    header[148:156] = b" " * 8
    total = sum(header[:512])
    header[148:156] = b"%06o\0 " % total
