"""Folders and what is in them, by real workers; also by ones that die in between."""

from __future__ import annotations

import io
import os
import random
import signal
import tarfile
import zipfile

import pytest

from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InsufficientStorageError,
    InUseError,
    InvalidRequestError,
    NotFoundError,
    PreconditionFailedError,
    UnavailableError,
)
from backendai_hub.storage import ops
from tests.harness import until
from tests.storage import (
    OTHER_SCOPE,
    SCOPE,
    Desk,
    new_id,
    new_place,
    path_of,
    replaced,
    running_hosts,
)

CONTENT = random.Random(6).randbytes(300_000)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "folders"


@pytest.fixture
def local(root):
    return {"local": {"path": str(root), "check_seconds": 0.2}}


@pytest.fixture
async def desk(local):
    async with running_hosts(local) as hosts:
        yield await Desk(hosts).make()


def fill(top, count=12):
    """Put some files, folders and a link into a folder."""
    for number in range(count):
        folder = top / f"d{number % 3}" / "deep"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}").write_bytes(CONTENT[: 1000 * number])
    (top / "link").symlink_to("/etc/passwd")


def content_of(top):
    """Return all that is in a folder, to compare."""
    return {
        str(path.relative_to(top)): path.read_bytes()
        if path.is_file() and not path.is_symlink()
        else path.is_symlink()
        for path in top.rglob("*")
    }


# --- folders -----------------------------------------------------------------------


async def test_making_a_folder_twice_makes_it_once(desk, root):
    await desk.do(ops.MakeFolder)
    top = path_of(root, desk.place)
    assert top.is_dir()
    assert oct(root.stat().st_mode & 0o777) == "0o700"
    names = ops.ListFolders(scope=SCOPE)
    assert (await desk.hosts.call("local", names)).names == [desk.place.folder_id]
    scopes = await desk.hosts.call("local", ops.ListScopes())
    assert scopes.names == [SCOPE]


async def test_a_folder_needs_its_scope(desk):
    with pytest.raises(NotFoundError, match=f"scope {OTHER_SCOPE}"):
        await desk.hosts.call("local", ops.MakeFolder(place=new_place(OTHER_SCOPE)))


@pytest.mark.parametrize(
    "place",
    [
        ops.Place(scope="../..", folder_id=new_id()),
        ops.Place(scope=SCOPE, folder_id="../../../etc"),
        ops.Place(),
        ops.Place(unmanaged="/etc"),
    ],
)
async def test_only_ids_lead_to_folders(desk, place):
    for operation in (ops.MakeFolder, ops.ListEntries, ops.RemoveFolder):
        with pytest.raises(InvalidRequestError):
            await desk.hosts.call("local", operation(place=place))


async def test_a_removed_folder_is_gone_with_all_that_is_in_it(desk, root):
    top = path_of(root, desk.place)
    fill(top)
    await desk.do(ops.TrashEntry, path="d0", entry_id=new_id(), at="2026-01-01")
    steps = []

    done = await desk.hosts.call(
        "local", ops.RemoveFolder(place=desk.place), on_progress=steps.append
    )

    assert done.count > 12
    assert not [p for p in (root / SCOPE).rglob("*") if p.is_file()]
    assert not top.parent.exists(), "nor are there the folders that it lay in"
    assert (await desk.do(ops.RemoveFolder)).count == 0
    with pytest.raises(NotFoundError):
        await desk.names()
    await desk.hosts.call("local", ops.RemoveScope(scope=SCOPE))
    assert not (root / SCOPE).exists()


async def test_a_scope_with_folders_is_not_removed(desk, root):
    with pytest.raises(InUseError, match="has folders"):
        await desk.hosts.call("local", ops.RemoveScope(scope=SCOPE))
    assert await desk.names() == []


@pytest.mark.parametrize("point", ["removing.renamed", "removing.entry:5"])
async def test_a_crash_while_a_folder_is_removed_is_made_good(local, root, point):
    async with running_hosts(local, crash_at=point) as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        fill(path_of(root, desk.place))
        other = await Desk(hosts).make()
        await other.upload("kept", b"x")
        with pytest.raises(UnavailableError):
            await desk.do(ops.RemoveFolder)
        assert not path_of(root, desk.place).exists(), "out of sight at once"
        await replaced(hosts, pid)

        assert (await desk.do(ops.RemoveFolder)).count > 0
        assert list((root / SCOPE / ".removing").iterdir()) == []
        assert await other.read("kept") == b"x"


async def test_a_clone_is_the_same_in_another_scope(desk, root):
    fill(path_of(root, desk.place))
    target = new_place(OTHER_SCOPE)
    await desk.hosts.call("local", ops.MakeScope(scope=OTHER_SCOPE))

    clone = ops.CloneFolder(source=desk.place, target=target)
    done = await desk.hosts.call("local", clone)

    assert done.bytes == sum(1000 * n for n in range(12))
    before, after = (content_of(path_of(root, p)) for p in (desk.place, target))
    assert before == after
    assert (path_of(root, target) / "link").readlink() == (
        path_of(root, desk.place) / "link"
    ).readlink()
    assert (await desk.hosts.call("local", clone)).bytes == 0, "done is done"


@pytest.mark.parametrize("point", ["", "moving.trash"])
async def test_a_folder_moves_to_another_scope_with_its_trash(local, root, point):
    async with running_hosts(local, crash_at=point) as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        fill(path_of(root, desk.place))
        before = content_of(path_of(root, desk.place))
        await desk.upload("gone", CONTENT)
        entry = {"entry_id": new_id(), "at": "2026-01-01T00:00:00Z"}
        await desk.do(ops.TrashEntry, path="gone", **entry)
        target = ops.Place(OTHER_SCOPE, desk.place.folder_id)
        await hosts.call("local", ops.MakeScope(scope=OTHER_SCOPE))

        move = ops.MoveFolder(source=desk.place, target=target)
        if point:
            with pytest.raises(UnavailableError):
                await hosts.call("local", move)
            await replaced(hosts, pid)
        for _ in range(2):
            await hosts.call("local", move)

        assert not path_of(root, desk.place).exists()
        assert content_of(path_of(root, target)) == before
        there = Desk(hosts, target)
        await there.do(ops.RestoreEntry, entry_id=entry["entry_id"])
        assert await there.read("gone") == CONTENT
        other = ops.MoveFolder(source=new_place(), target=new_place(OTHER_SCOPE))
        with pytest.raises(InvalidRequestError, match="keep their ids"):
            await hosts.call("local", other)


async def test_a_folder_is_cloned_from_another_host(tmp_path):
    described = {name: {"path": str(tmp_path / name)} for name in ("local", "other")}
    async with running_hosts(described) as hosts:
        desk = await Desk(hosts, host="other").make()
        await desk.upload("a", CONTENT)
        copy = Desk(hosts)
        await hosts.call("local", ops.MakeScope(scope=SCOPE))
        clone = ops.CloneFolder(
            source=desk.place, target=copy.place, source_host="other"
        )
        await hosts.call("local", clone)
        assert await copy.read("a") == CONTENT


@pytest.mark.parametrize(
    "point", ["cloning.entry:7", "cloning.copied", "cloning.published"]
)
async def test_a_crash_while_a_folder_is_cloned_leaves_no_half_of_it(
    local, root, point
):
    async with running_hosts(local, crash_at=point) as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        fill(path_of(root, desk.place))
        target = new_place()
        clone = ops.CloneFolder(source=desk.place, target=target)
        with pytest.raises(UnavailableError):
            await hosts.call("local", clone)
        copy = path_of(root, target)
        assert copy.exists() == (point == "cloning.published")
        await replaced(hosts, pid)

        await hosts.call("local", clone)
        assert content_of(copy) == content_of(path_of(root, desk.place))
        assert list((root / SCOPE / ".cloning").iterdir()) == []


async def test_a_clone_that_would_be_too_much_leaves_nothing(desk, root):
    await desk.upload("a", CONTENT)
    target = new_place()
    clone = ops.CloneFolder(source=desk.place, target=target, most_bytes=1000)
    with pytest.raises(InsufficientStorageError):
        await desk.hosts.call("local", clone)
    assert not path_of(root, target).exists()
    assert list((root / SCOPE / ".cloning").iterdir()) == []


async def test_what_workers_before_left_unfinished_is_swept(local, root):
    async with running_hosts(local) as hosts:
        desk = await Desk(hosts).make()
        await desk.do(ops.WriteText, path="a", content=b"x")
        staging = root / SCOPE / ".staging"
        (mine,) = staging.iterdir()
        (mine / "left").write_bytes(CONTENT)
    async with running_hosts(local) as hosts:
        desk = Desk(hosts, desk.place)
        await desk.do(ops.WriteText, path="a", content=b"y")
        await until(lambda: not mine.exists(), "what was left is removed")
        assert await desk.read("a") == b"y"


# --- unmanaged folders -------------------------------------------------------------


async def test_an_unmanaged_folder_is_used_where_it_is_and_never_removed(tmp_path):
    there = tmp_path / "data" / "set"
    there.mkdir(parents=True)
    (there / "old").write_bytes(b"was there")
    described = {
        "local": {
            "path": str(tmp_path / "folders"),
            "unmanaged_roots": [str(tmp_path / "data")],
        }
    }
    async with running_hosts(described) as hosts:
        assert hosts.unmanaged_roots("local") == (str(tmp_path / "data"),)
        desk = await Desk(hosts, ops.Place(unmanaged=str(there))).make()
        await desk.upload("new", CONTENT)
        await desk.do(ops.TrashEntry, path="old", entry_id=new_id(), at="2026")
        assert await desk.names() == ["new"], "what is ours is not shown"
        operation = ops.Archive(place=desk.place, paths=[""], kind="zip")
        async with await desk.hosts.download("local", operation) as body:
            packed = b"".join([chunk async for chunk in body])
        assert zipfile.ZipFile(io.BytesIO(packed)).namelist() == ["new"], "nor packed"
        for path in (".backendai", ".backendai/.trash"):
            with pytest.raises(ForbiddenError):
                await desk.names(path)
            with pytest.raises(ForbiddenError):
                await desk.upload(path, b"x")
        with pytest.raises(InvalidRequestError, match="never removed"):
            await desk.do(ops.RemoveFolder)
        copy = Desk(hosts)
        await hosts.call("local", ops.MakeScope(scope=SCOPE))
        await hosts.call("local", ops.CloneFolder(source=desk.place, target=copy.place))
        assert list(content_of(path_of(tmp_path / "folders", copy.place))) == ["new"]
        for elsewhere in (str(tmp_path), str(tmp_path / "data" / ".." / "folders")):
            with pytest.raises(InvalidRequestError):
                await Desk(hosts, ops.Place(unmanaged=elsewhere)).names()


# --- entries -----------------------------------------------------------------------


async def test_entries_are_made_moved_copied_and_removed(desk):
    await desk.do(ops.MakeDirectory, path="a/b", parents=True)
    await desk.upload("a/b/f", CONTENT)
    moved = await desk.do(ops.MoveEntry, path="a/b", target="c")
    assert moved.path == "c"
    copied = await desk.do(ops.CopyEntry, path="c", target="d")
    assert (copied.path, copied.bytes) == ("d", len(CONTENT))
    with pytest.raises(ConflictError):
        await desk.do(ops.CopyEntry, path="c", target="d")
    beside = await desk.do(ops.MoveEntry, path="c", target="d", conflict="rename")
    assert beside.path == "d (1)"
    assert await desk.read("d (1)/f") == await desk.read("d/f") == CONTENT
    assert (await desk.do(ops.RemoveEntry, path="d (1)")).count == 2
    assert await desk.names() == ["a", "d"]
    counted = await desk.do(ops.ScanUsage)
    assert (counted.bytes, counted.files) == (len(CONTENT), 3)


async def test_a_list_is_shown_a_page_at_a_time(desk, root):
    for number in range(25):
        (path_of(root, desk.place) / f"f{number:02}").write_bytes(b"x" * number)
    shown, after = [], ""
    while True:
        page = await desk.do(ops.ListEntries, limit=10, after=after)
        assert page.total == 25
        shown += [entry.name for entry in page.entries]
        if not (after := page.after):
            break
    assert shown == [f"f{number:02}" for number in range(25)]
    found = await desk.do(ops.ListEntries, sort="size", descending=True, search="F1")
    assert [entry.size for entry in found.entries] == list(range(19, 9, -1))


async def test_names_that_are_no_text_can_be_listed_and_removed(desk, root):
    (path_of(root, desk.place) / os.fsdecode(b"bad\xff\xfe")).write_bytes(b"x")
    (name,) = await desk.names()
    assert name.encode(), "any document can carry it"
    assert await desk.read(name) == b"x"
    await desk.do(ops.RemoveEntry, path=name)
    assert await desk.names() == []


# --- content -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, None), (0, 0), (0, 1), (299_999, None), (-5, None), (10, 20), (0, 10**9)],
)
async def test_a_file_is_read_in_parts(desk, start, end):
    await desk.upload("a", CONTENT)
    operation = ops.ReadFile(place=desk.place, path="a", start=start, end=end)
    async with await desk.hosts.download("local", operation) as body:
        content = b"".join([chunk async for chunk in body])
    assert content == CONTENT[start:end]
    assert body.head.length == len(content)
    assert body.head.entry.size == len(CONTENT)


async def test_a_part_behind_the_end_is_refused(desk):
    await desk.upload("a", b"12345")
    with pytest.raises(InvalidRequestError, match="the file has 5 bytes"):
        await desk.read("a", start=6)


async def test_a_download_that_is_given_up_harms_nobody(desk):
    await desk.upload("a", CONTENT * 20)
    operation = ops.ReadFile(place=desk.place, path="a")
    async with await desk.hosts.download("local", operation) as body:
        async for _ in body:
            break
    assert await desk.read("a", end=10) == CONTENT[:10]


async def test_a_download_whose_worker_dies_is_not_taken_for_whole(desk):
    await desk.upload("a", CONTENT * 40)
    operation = ops.ReadFile(place=desk.place, path="a")
    received, pid = 0, desk.hosts.health()["local"].pid

    async def receive():
        nonlocal received
        async with await desk.hosts.download("local", operation) as body:
            async for chunk in body:
                if not received:
                    os.kill(pid, signal.SIGKILL)
                received += len(chunk)

    with pytest.raises(UnavailableError):
        await receive()
    assert received < len(CONTENT) * 40


async def test_text_is_replaced_only_as_it_was_seen(desk, root):
    made = await desk.do(ops.WriteText, path="a.py", content=b"1", if_tag="")
    first = made.entry
    changed = await desk.do(ops.WriteText, path="a.py", content=b"2", if_tag=first.tag)
    assert changed.entry.tag != first.tag
    assert (changed.replaced_bytes, changed.replaced_files) == (1, 1)
    with pytest.raises(PreconditionFailedError, match="was changed"):
        await desk.do(ops.WriteText, path="a.py", content=b"3", if_tag=first.tag)
    with pytest.raises(PreconditionFailedError, match="exists already"):
        await desk.do(ops.WriteText, path="a.py", content=b"3", if_tag="")
    with pytest.raises(PreconditionFailedError, match="was removed"):
        await desk.do(ops.WriteText, path="b.py", content=b"3", if_tag=first.tag)
    assert await desk.read("a.py") == b"2"
    (path_of(root, desk.place) / "a.py").chmod(0o755)
    changed = await desk.do(ops.WriteText, path="a.py", content=b"4")
    assert changed.entry.mode == 0o755, "what could be run still can"
    (path_of(root, desk.place) / "link").symlink_to("a.py")
    with pytest.raises(ConflictError):
        await desk.do(ops.WriteText, path="link", content=b"5")


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
async def test_several_paths_are_read_as_an_archive_and_unpacked(desk, kind):
    await desk.upload("a/x", CONTENT)
    await desk.upload("b", b"b")
    operation = ops.Archive(place=desk.place, paths=["a", "b"], kind=kind)
    async with await desk.hosts.download("local", operation) as body:
        packed = b"".join([chunk async for chunk in body])
    if kind == "zip":
        names = zipfile.ZipFile(io.BytesIO(packed)).namelist()
    else:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            names = archive.getnames()
    assert {name.rstrip("/") for name in names} == {"a", "a/x", "b"}

    await desk.upload(f"packed.{kind}", packed)
    made = await desk.do(ops.ExtractArchive, path=f"packed.{kind}", target="out")
    assert (made.path, made.files) == ("out", 4), "with the two folders"
    assert await desk.read("out/a/x") == CONTENT


async def test_an_archive_of_what_is_not_there_is_refused_before_it_begins(desk):
    operation = ops.Archive(place=desk.place, paths=["none"])
    with pytest.raises(NotFoundError):
        await desk.hosts.download("local", operation)


async def test_a_bad_archive_leaves_nothing(desk, root):
    await desk.upload("bad.zip", b"PK\3\4 and then nothing")
    with pytest.raises(InvalidRequestError):
        await desk.do(ops.ExtractArchive, path="bad.zip", target="out")
    assert await desk.names() == ["bad.zip"]
    assert not list((root / SCOPE / ".staging").glob("*/*"))


# --- what was thrown away ----------------------------------------------------------


async def test_what_is_thrown_away_can_be_put_back_as_it_was(desk):
    await desk.upload("a/x", CONTENT)
    await desk.upload("y", b"y")
    first, second = "00000000-0000-0000-0000-000000000001", new_id()
    await desk.do(ops.TrashEntry, path="a", entry_id=first, at="2026-01-01", by="ann")
    await desk.do(ops.TrashEntry, path="a", entry_id=first, at="2026-01-01")
    await desk.do(ops.TrashEntry, path="y", entry_id=second, at="2026-02-01")
    assert await desk.names() == []
    page = await desk.do(ops.ListTrash, limit=1)
    assert [(e.path, e.kind, e.thrown_by) for e in page.entries] == [
        ("a", "folder", "ann")
    ]
    assert (await desk.do(ops.ListTrash, after=page.after)).entries[0].size == 1

    await desk.upload("a/x", b"meanwhile")
    with pytest.raises(ConflictError):
        await desk.do(ops.RestoreEntry, entry_id=first)
    put = await desk.do(ops.RestoreEntry, entry_id=first, conflict="rename")
    assert await desk.read(f"{put.path}/x") == CONTENT
    put = await desk.do(ops.RestoreEntry, entry_id=second, target="new/place")
    assert await desk.read("new/place") == b"y"
    assert (await desk.do(ops.ListTrash)).entries == []
    with pytest.raises(NotFoundError):
        await desk.do(ops.RestoreEntry, entry_id=second)


async def test_trash_is_emptied_by_name_by_age_or_at_all(desk, root):
    ids = {}
    for name, at in (("a", "2026-01-01"), ("b", "2026-02-01"), ("c", "2026-03-01")):
        await desk.upload(name, b"x")
        ids[name] = new_id()
        await desk.do(ops.TrashEntry, path=name, entry_id=ids[name], at=at)

    async def left():
        return {e.path for e in (await desk.do(ops.ListTrash)).entries}

    await desk.do(ops.EmptyTrash, before="2026-02-01")
    assert await left() == {"b", "c"}
    await desk.do(ops.EmptyTrash, entry_ids=[ids["c"], ids["a"]])
    assert await left() == {"b"}
    await desk.do(ops.EmptyTrash)
    assert await left() == set()
    assert not [p for p in (root / SCOPE / ".trash").rglob("*") if p.is_file()]


@pytest.mark.parametrize("point", ["trashing.noted", "trashing.renamed"])
async def test_a_crash_while_something_is_thrown_away_loses_nothing(local, point):
    async with running_hosts(local, crash_at=point) as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        await desk.upload("a", CONTENT)
        throw = {"path": "a", "entry_id": new_id(), "at": "2026-01-01"}
        with pytest.raises(UnavailableError):
            await desk.do(ops.TrashEntry, **throw)
        await replaced(hosts, pid)

        await desk.do(ops.TrashEntry, **throw)
        assert await desk.names() == []
        await desk.do(ops.RestoreEntry, entry_id=throw["entry_id"])
        assert await desk.read("a") == CONTENT
