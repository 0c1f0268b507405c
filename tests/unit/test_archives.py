"""Archives that are sent while they are made, and what other programs make of them."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import subprocess
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.safefs import members, tar_reading, zip_reading
from backendai_hub.safefs.archives import (
    Archived,
    ArchiveKind,
    Limits,
    extract,
    stream_archive,
)
from backendai_hub.safefs.errors import (
    EntryMissingError,
    LinkRefusedError,
    StoppedError,
)
from backendai_hub.safefs.tree import Tree
from backendai_hub.safefs.work import Work
from backendai_hub.safefs.zip_writing import ZipWriter
from tests.unit.safefs_trees import (
    count_descriptors,
    dig,
    everything,
    few_descriptors,
    folder,
    make_specials,
    path,
    tree,
    write,
)

__all__ = ["folder", "tree"]

KINDS = list(ArchiveKind)


@pytest.fixture(autouse=True)
def _nothing_stays_open(tree):
    before = count_descriptors()
    yield
    assert count_descriptors() <= before


def pack(tree: Tree, paths: list[str], kind: ArchiveKind, **more) -> bytes:
    pieces: list[bytes] = []
    stream_archive(tree, [path(p) for p in paths], kind, pieces.append, **more)
    return b"".join(pieces)


def unpack(tree: Tree, archive: bytes, target: str, **more):
    """Write an archive down and unpack it, as somebody does who uploaded it."""
    made = os.memfd_create("archive")
    try:
        os.write(made, archive)
        return extract(tree, made, path(target), **more)
    finally:
        os.close(made)


def list_names(archive: bytes, kind: ArchiveKind) -> list[str]:
    """List an archive as the standard library reads it."""
    if kind is ArchiveKind.ZIP:
        with zipfile.ZipFile(io.BytesIO(archive)) as read:
            assert read.testzip() is None
            return [name.rstrip("/") for name in read.namelist()]
    mode = "r:gz" if kind is ArchiveKind.TAR_GZ else "r:"
    with tarfile.open(fileobj=io.BytesIO(archive), mode=mode) as read:
        return read.getnames()


def grow(tree: Tree, folder: Path) -> dict[str, str]:
    tree.make_folder(path("top/a/empty"), parents=True)
    write(tree, "top/file", b"1")
    write(tree, "top/a/none", b"")
    write(tree, "top/a/Größe 日本", b"22" * 300_000)
    write(tree, "top/a/" + "x" * 255, b"long")
    (folder / "top/a" / os.fsdecode(b"\xff")).write_bytes(b"no text")
    (folder / "top/file").chmod(0o755)
    return everything(folder / "top")


@pytest.mark.parametrize("kind", KINDS)
class TestAllKinds:
    def test_what_is_packed_comes_out_again(self, tree, folder, kind):
        entries = grow(tree, folder)
        done = unpack(tree, pack(tree, ["top"], kind), "out")
        assert everything(folder / "out/top") == entries
        assert done.parts == ("out",)
        assert (done.files, done.skipped) == (5, 0)
        assert done.bytes == tree.usage(path("top")).bytes
        assert stat.S_IMODE((folder / "out/top/file").stat().st_mode) == 0o755
        assert stat.S_IMODE((folder / "out/top/a/none").stat().st_mode) == 0o644
        before, after = (
            (folder / p).stat().st_mtime for p in ("top/file", "out/top/file")
        )
        assert abs(before - after) < 3

    def test_other_programs_read_it(self, tree, folder, kind, tmp_path):
        grow(tree, folder)
        (folder / "top/a" / os.fsdecode(b"\xff")).unlink()  # `unzip` cannot
        entries = everything(folder / "top")
        (folder / "top/link").symlink_to("a/none")
        archive = tmp_path / "archive"
        archive.write_bytes(pack(tree, ["top"], kind))
        names = list_names(archive.read_bytes(), kind)
        assert len(names) == len(set(names)) == len(entries) + 2
        (tmp_path / "out").mkdir()
        tools = {
            ArchiveKind.ZIP: ["unzip", "-q", "-o", archive, "-d", tmp_path / "out"],
            ArchiveKind.TAR: ["tar", "-xf", archive, "-C", tmp_path / "out"],
            ArchiveKind.TAR_GZ: ["tar", "-xzf", archive, "-C", tmp_path / "out"],
        }
        if shutil.which(tools[kind][0]):
            environ = {**os.environ, "LC_ALL": "C.UTF-8"}
            done = subprocess.run(
                tools[kind], capture_output=True, check=False, env=environ
            )
            assert done.returncode == 0, done.stderr
            found = everything(tmp_path / "out/top")
            assert found == {**entries, "link": "link a/none"}

    def test_nothing_behind_a_link_is_sent(self, tree, folder, kind):
        tree.make_folder(path("top"))
        (folder / "top/out").symlink_to(folder.parent / "theirs")
        (folder / "top/secret").symlink_to(folder.parent / "theirs/secret")
        archive = pack(tree, ["top"], kind)
        assert sorted(list_names(archive, kind)) == ["top", "top/out", "top/secret"]
        assert b"not yours" not in archive
        with pytest.raises(LinkRefusedError):
            pack(tree, ["top/out/secret"], kind)

    def test_pipes_and_devices_are_left_out_and_counted(self, tree, folder, kind):
        tree.make_folder(path("top"))
        specials = make_specials(folder / "top")
        done = stream_archive(tree, [path("top")], kind, lambda piece: None)
        assert done == Archived(members=1, bytes=0, skipped=len(specials))

    def test_several_paths_keep_what_tells_them_apart(self, tree, kind):
        tree.make_folder(path("in/x/deep"), parents=True)
        tree.make_folder(path("in/y"))
        for name in ("in/x/file", "in/y/file", "in/x/deep/file"):
            write(tree, name, b"1")
        assert list_names(pack(tree, ["in/x/file"], kind), kind) == ["file"]
        found = list_names(pack(tree, ["in/x/file", "in/y/file"], kind), kind)
        assert found == ["x/file", "y/file"]
        found = list_names(pack(tree, ["in/x/deep", "in/x", "in/x/file"], kind), kind)
        assert sorted(found) == ["x", "x/deep", "x/deep/file", "x/file"]
        found = list_names(pack(tree, ["in/x/file", "in/x/file"], kind), kind)
        assert found == ["file"]
        assert sorted(list_names(pack(tree, [""], kind), kind)) == sorted(
            list_names(pack(tree, ["in"], kind), kind)
        )

    def test_what_is_missing_is_refused_before_the_first_byte(self, tree, kind):
        write(tree, "there")
        sent: list[bytes] = []
        with pytest.raises(EntryMissingError):
            stream_archive(tree, [path("there"), path("not")], kind, sent.append)
        with pytest.raises(InvalidRequestError, match="nothing is named"):
            stream_archive(tree, [], kind, sent.append)
        assert sent == []

    def test_an_archive_of_nothing_is_an_archive(self, tree, folder, kind):
        assert list_names(pack(tree, [""], kind), kind) == []
        unpack(tree, pack(tree, [""], kind), "out")
        assert everything(folder) == {"out": "folder"}

    def test_pieces_are_sent_while_it_is_made_and_it_can_be_stopped(self, tree, kind):
        tree.make_folder(path("top"))
        for number in range(4):
            write(tree, f"top/{number}", os.urandom(1_000_000))
        sent: list[bytes] = []
        work = Work(cancelled=lambda: sum(map(len, sent)) > 1_500_000)
        with pytest.raises(StoppedError):
            stream_archive(tree, [path("top")], kind, sent.append, work=work)
        assert max(map(len, sent)) < 1_200_000
        assert sum(map(len, sent)) < 2_600_000

    def test_files_that_grow_shrink_or_go_meanwhile_do_not_break_it(
        self, tree, folder, kind
    ):
        for name in ("a-grows", "b-shrinks", "c-goes"):
            write(tree, name, b"x" * 600_000)
        calm = os.stat

        def disturb(_: int) -> None:
            with (folder / "a-grows").open("ab") as file:
                file.write(b"y" * 1000)
            os.truncate(folder / "b-shrinks", 10)
            (folder / "c-goes").unlink(missing_ok=True)

        archive = pack(
            tree, ["a-grows", "b-shrinks"], kind, work=Work(progress=disturb)
        )
        assert list_names(archive, kind) == ["a-grows", "b-shrinks"]
        assert os.stat is calm
        unpack(tree, archive, "out")
        assert (folder / "out/a-grows").read_bytes() == b"x" * 600_000

    def test_a_tree_deeper_than_any_path_is_sent(self, memory_dir, kind):
        dig(memory_dir, 700)
        with few_descriptors(), Tree.at(memory_dir) as deep:
            archive = pack(deep, ["deeper"], kind)
            assert len(list_names(archive, kind)) == 701
            deep.remove(())


def test_a_zip_of_very_many_files_costs_little_memory():
    facts = Path("/").stat()
    writer = ZipWriter(lambda piece: None)
    tracemalloc.start()
    try:
        for number in range(20_000):
            writer.add_folder(
                b"a folder with a name of usual length %d" % number, facts
            )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000


def test_a_zip_of_more_files_than_its_first_makers_thought_of_is_read():
    facts = Path("/").stat()
    sent: list[bytes] = []
    writer = ZipWriter(sent.append)
    for number in range(65_600):
        writer.add_folder(b"%d" % number, facts)
    writer.finish()
    archive = b"".join(sent)
    with zipfile.ZipFile(io.BytesIO(archive)) as read:
        assert len(read.namelist()) == 65_600
    made = os.memfd_create("archive")
    try:
        os.write(made, archive)
        limits = Limits()
        found = zip_reading.read_zip(made, limits, members.Meter(limits))
        assert sum(1 for _ in found) == 65_600
    finally:
        os.close(made)


def test_files_that_may_become_more_than_4_gib_are_written_and_read(tree, folder):
    """One that was large and turns out short has the large fields all the same."""
    (folder / "large").touch()
    os.truncate(folder / "large", 5 * 1024**3)
    facts = (folder / "large").stat()
    sent: list[bytes] = []
    writer = ZipWriter(sent.append)
    writer.add_file(b"large", facts, [b"short"])
    writer.add_file(b"after", facts, [b"next"])
    writer.finish()
    archive = b"".join(sent)
    with zipfile.ZipFile(io.BytesIO(archive)) as read:
        assert read.read("large") == b"short"
        assert read.read("after") == b"next"
    unpack(tree, archive, "out")
    assert (folder / "out/after").read_bytes() == b"next"


@pytest.mark.parametrize(
    ("packed", "size", "offset"),
    [
        (5, 7, 1 << 40),
        (5, 1 << 33, 3),
        (1 << 34, 1 << 33, 3),
        (1 << 34, 1 << 33, 1 << 35),
    ],
)
def test_the_directory_tells_what_has_no_room_in_32_bits(
    packed, size, offset, tmp_path
):
    """Members of that size would take too long to make: their lines are enough."""
    archive = tmp_path / "archive.zip"
    start = (1 << 35) + (1 << 34) + 100
    with archive.open("wb") as file:
        file.seek(start)
        writer = ZipWriter(file.write)
        writer._place = start
        facts = Path(__file__).stat()
        writer._list(b"name", facts, 0x800, 8, (1234, packed, size), offset)
        writer.finish()
    with zipfile.ZipFile(archive) as read:
        found = read.getinfo("name")
        assert (found.compress_size, found.file_size) == (packed, size)
        assert found.header_offset == offset
    with archive.open("rb") as file:
        limits = Limits()
        directory = zip_reading._find_directory(file.fileno(), limits)
        meter = members.Meter(limits)
        (record,) = zip_reading._read_records(file.fileno(), directory, meter)
        assert (record.packed, record.size, record.offset) == (packed, size, offset)


def test_zip_files_of_the_standard_library_are_read(tree, folder):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b.txt", "content")
        archive.writestr(zipfile.ZipInfo("stored"), "as it is")
    unpack(tree, made.getvalue(), "out")
    assert everything(folder / "out") == {
        "a": "folder",
        "a/b.txt": "file b'content'",
        "stored": "file b'as it is'",
    }


@pytest.mark.parametrize("packed", ["", ":gz"])
@pytest.mark.parametrize(
    ("form", "long"),
    [
        (tarfile.GNU_FORMAT, "d" * 120 + "/" + "ü" * 120),
        (tarfile.PAX_FORMAT, "d" * 120 + "/" + "ü" * 120),
        (tarfile.USTAR_FORMAT, "d" * 120 + "/" + "u" * 90),
    ],
)
def test_tar_files_of_the_standard_library_are_read(tree, folder, form, long, packed):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w" + packed, format=form) as archive:
        for name, content in ((long, b"1"), ("a/b.txt", b"content" * 200), ("c", b"")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mtime = 1_000_000
            archive.addfile(info, io.BytesIO(content))
    done = unpack(tree, made.getvalue(), "out")
    assert done.files == 3
    assert (folder / "out" / long).read_bytes() == b"1"
    assert (folder / "out/a/b.txt").read_bytes() == b"content" * 200
    assert (folder / "out/c").stat().st_mtime == 1_000_000


def test_what_gzip_has_in_several_pieces_is_one_archive(tree, folder):
    write(tree, "file", b"content")
    plain = pack(tree, ["file"], ArchiveKind.TAR)
    pieces = b"".join(gzip.compress(plain[at : at + 500]) for at in range(0, 3000, 500))
    unpack(tree, pieces, "out")
    assert everything(folder / "out") == {"file": "file b'content'"}


def test_the_readers_read_nothing_by_functions_that_extract():
    for module in (zip_reading, tar_reading):
        source = Path(module.__file__).read_text()
        assert "extract" not in source
