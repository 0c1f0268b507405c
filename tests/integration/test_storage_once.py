"""What a task makes appears once, whenever its worker dies, and however it is asked."""

from __future__ import annotations

import os
import threading
import zipfile
from pathlib import Path

import msgspec
import pytest

from backendai_hub.core.errors import ConflictError, NotFoundError, UnavailableError
from backendai_hub.safefs.placing import Conflict
from backendai_hub.storage import ops
from backendai_hub.storage.configuration import HostConfig
from backendai_hub.storage.drivers import make_driver
from backendai_hub.storage.once import desk_of
from backendai_hub.storage.work import Host
from tests.storage import SCOPE, Desk, new_id, path_of, replaced, running_hosts

POINTS = ["making.noted", "making.appeared"]


@pytest.fixture
def local(root: Path) -> dict[str, dict[str, object]]:
    return {"local": {"path": str(root)}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "folders"
    made.mkdir()
    return made


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("conflict", Conflict)
async def test_a_copy_appears_once_though_its_worker_dies(local, root, point, conflict):
    async with running_hosts(local, crash_at=point) as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        await desk.upload("a", b"content")
        taken = {} if conflict is Conflict.FAIL else {"b": b"was here"}
        for name, content in taken.items():
            await desk.upload(name, content)
        asked = {"path": "a", "target": "b", "conflict": conflict, "task_id": new_id()}
        with pytest.raises(UnavailableError):
            await desk.do(ops.CopyEntry, **asked)
        await replaced(hosts, pid)

        made = await desk.do(ops.CopyEntry, **asked)
        again = await desk.do(ops.CopyEntry, **asked)

        renamed = conflict is Conflict.RENAME
        assert made.path == again.path == ("b (1)" if renamed else "b")
        assert (made.bytes, made.files) == (7, 1)
        assert made.replaced_bytes == (8 if conflict is Conflict.REPLACE else 0)
        found = {p.name: p.read_bytes() for p in path_of(root, desk.place).iterdir()}
        assert found == {"a": b"content", **taken, made.path: b"content"}
        await desk.do(ops.ForgetTask, task_id=asked["task_id"])
        assert list((root / SCOPE / ".staging").glob("task-*")) == []


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("is_there", [True, False])
async def test_an_archive_is_unpacked_once_though_its_worker_dies(
    local, root, point, is_there
):
    async with running_hosts(local, crash_at=point) as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        here = path_of(root, desk.place)
        pack(here / "z.zip", "one", "two")
        if is_there:
            (here / "out").mkdir()
            (here / "out" / "one").write_text("was here")
        asked = {"path": "z.zip", "target": "out", "conflict": Conflict.RENAME}
        asked["task_id"] = new_id()
        with pytest.raises(UnavailableError):
            await desk.do(ops.ExtractArchive, **asked)
        await replaced(hosts, pid)

        made = await desk.do(ops.ExtractArchive, **asked)
        again = await desk.do(ops.ExtractArchive, **asked)

        assert made.files == again.files == (2 if is_there else 3)
        found = {p.name: p.read_text() for p in (here / "out").iterdir()}
        if is_there:
            assert found == {"one": "was here", "one (1)": "one", "two": "two"}
        else:
            assert found == {"one": "one", "two": "two"}


def pack(path: Path, *names: str) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        for name in names:
            packed.writestr(name, name)


@pytest.fixture
async def desk(local):
    async with running_hosts(local) as hosts:
        yield await Desk(hosts).make()


async def test_what_was_whole_before_a_power_cut_is_made_anew(desk, root):
    await desk.upload("a", b"content")
    task = new_id()
    staged = root / SCOPE / ".staging" / f"task-{task}"
    staged.mkdir(parents=True)
    (staged / "made").write_bytes(b"\0\0\0")  # its blocks never reached the disk
    note = {"placed": ops.Placed(path="b"), "boot": "before"}
    (staged / "note").write_bytes(msgspec.json.encode(note))
    asked = {"path": "a", "target": "b", "task_id": task}
    assert (await desk.do(ops.CopyEntry, **asked)).bytes == 7
    assert await desk.read("b") == b"content"


async def test_what_could_not_appear_leaves_nothing_and_may_be_tried_again(desk, root):
    await desk.upload("a", b"content")
    await desk.upload("b", b"was here")
    asked = {"path": "a", "target": "b", "task_id": new_id()}
    with pytest.raises(ConflictError):
        await desk.do(ops.CopyEntry, **asked)
    assert list((root / SCOPE / ".staging").glob("task-*/*")) == []
    (path_of(root, desk.place) / "b").unlink()
    assert (await desk.do(ops.CopyEntry, **asked)).path == "b"


async def test_what_is_missing_cannot_be_copied(desk, root):
    with pytest.raises(NotFoundError):
        await desk.do(ops.CopyEntry, path="none", target="b", task_id=new_id())
    assert list(path_of(root, desk.place).iterdir()) == []


async def test_without_a_task_everybody_who_asks_gets_another(desk, root):
    await desk.upload("a", b"content")
    asked = {"path": "a", "target": "b", "conflict": Conflict.RENAME}
    paths = [(await desk.do(ops.CopyEntry, **asked)).path for _ in range(2)]
    assert paths == ["b", "b (1)"]
    assert list((root / SCOPE / ".staging").glob("*/*")) == []


async def test_another_worker_leaves_alone_what_belongs_to_tasks(local, root):
    async with running_hosts(local, crash_at="making.noted") as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        await desk.upload("a", b"content")
        task = new_id()
        with pytest.raises(UnavailableError):
            await desk.do(ops.CopyEntry, path="a", target="b", task_id=task)
        await replaced(hosts, pid)
        await desk.do(ops.WriteText, path="note", content=b"it looks for the rest")
        await desk.do(ops.CopyEntry, path="a", target="c")
        assert (root / SCOPE / ".staging" / f"task-{task}" / "made").exists()


@pytest.mark.parametrize("conflict", [Conflict.FAIL, Conflict.RENAME])
async def test_a_move_by_a_second_name_that_did_not_end_has_appeared(
    local, root, conflict
):
    async with running_hosts(local, crash_at="making.noted") as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        await desk.upload("a", b"content")
        asked = {"path": "a", "target": "b", "conflict": conflict, "task_id": new_id()}
        with pytest.raises(UnavailableError):
            await desk.do(ops.CopyEntry, **asked)
        await replaced(hosts, pid)
        here = path_of(root, desk.place)
        os.link(staged(root, asked["task_id"]) / "made", here / "b")

        made = await desk.do(ops.CopyEntry, **asked)

        assert (made.path, made.bytes) == ("b", 7)
        assert sorted(await desk.names()) == ["a", "b"]
        assert (here / "b").stat().st_nlink == 1
        assert await desk.do(ops.CopyEntry, **asked) == made


@pytest.mark.parametrize("conflict", [Conflict.FAIL, Conflict.RENAME])
async def test_what_was_unpacked_by_a_second_name_is_gone_on_with(
    local, root, conflict
):
    async with running_hosts(local, crash_at="making.noted") as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        here = path_of(root, desk.place)
        pack(here / "z.zip", "one", "two")
        (here / "out").mkdir()
        name = "one"
        if conflict is Conflict.RENAME:
            (here / "out" / "one").write_text("was here")
            name = "one (1)"
        asked = {"path": "z.zip", "target": "out", "conflict": conflict}
        asked["task_id"] = new_id()
        with pytest.raises(UnavailableError):
            await desk.do(ops.ExtractArchive, **asked)
        await replaced(hosts, pid)
        os.link(staged(root, asked["task_id"]) / "made" / "one", here / "out" / name)

        assert (await desk.do(ops.ExtractArchive, **asked)).files == 2

        found = {p.name: p.read_text() for p in (here / "out").iterdir()}
        before = {"one": "was here"} if conflict is Conflict.RENAME else {}
        assert found == {**before, name: "one", "two": "two"}


@pytest.mark.parametrize("is_refused", [True, False])
async def test_what_has_come_of_an_archive_is_told_by_whoever_goes_on(
    local, root, is_refused
):
    async with running_hosts(local, crash_at="making.noted") as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        here = path_of(root, desk.place)
        pack(here / "z.zip", "one", "two", "up/three")
        (here / "out").mkdir()
        (here / "out" / "one").write_text("was here")
        asked = {"path": "z.zip", "target": "out", "conflict": Conflict.REPLACE}
        asked["task_id"] = new_id()
        with pytest.raises(UnavailableError):
            await desk.do(ops.ExtractArchive, **asked)
        await replaced(hosts, pid)
        # As if it had died between the first and the second of them.
        made = staged(root, asked["task_id"]) / "made" / "one"
        made.replace(here / "out" / "one")
        if is_refused:
            (here / "out" / "two").mkdir()

        told = await desk.do(ops.ExtractArchive, **asked)

        assert told == await desk.do(ops.ExtractArchive, **asked)
        assert (told.replaced_files, told.replaced_bytes) == (1, len("was here"))
        assert ("folders are not replaced" in told.refused) is is_refused
        came = (1, len("one")) if is_refused else (4, len("onetwoup/three"))
        assert (told.files, told.kept) == came
        assert (here / "out" / "one").read_text() == "one"
        assert (here / "out" / "up").exists() is not is_refused


async def test_two_workers_are_never_at_one_desk(desk, root):
    """Who lost the lead of the platform lets its workers end what they do."""
    await desk.upload("a", b"content")
    task = new_id()
    first = make_host(root)
    with desk_of(first, desk.place, task):
        made = staged(root, task) / "made"
        made.write_bytes(b"half of it")
        with pytest.raises(UnavailableError, match="not ended yet"):
            await desk.do(ops.CopyEntry, path="a", target="b", task_id=task)
        with pytest.raises(UnavailableError, match="not ended yet"):
            await desk.do(ops.ForgetTask, task_id=task)
        assert made.read_bytes() == b"half of it"
    asked = {"path": "a", "target": "b", "task_id": task}
    assert (await desk.do(ops.CopyEntry, **asked)).path == "b"
    await desk.do(ops.ForgetTask, task_id=task)
    await desk.do(ops.ForgetTask, task_id=task)
    assert not staged(root, task).exists()


async def test_what_another_worker_makes_at_this_moment_is_not_swept_away(desk, root):
    busy, idle, next_one = (make_host(root) for _ in range(3))
    staging = root / SCOPE / ".staging"
    with busy.staging(desk.place) as made:
        made.make_folder(("half",))
        with idle.staging(desk.place) as left:
            left.make_folder(("half",))
        (staging / "odd").write_bytes(b"not even a folder")
        next_one.sweep(desk.place)
        for thread in threading.enumerate():
            if thread.name == "sweep":
                thread.join()
        assert (staging / busy.token / "half").exists()
    assert not (staging / idle.token).exists()
    assert not (staging / "odd").exists()


def make_host(root: Path) -> Host:
    config = HostConfig(path=str(root))
    return Host("local", config, make_driver("dir", "local", str(root), {}))


def staged(root: Path, task: str) -> Path:
    return root / SCOPE / ".staging" / f"task-{task}"
