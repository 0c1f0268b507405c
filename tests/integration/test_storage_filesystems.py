"""Real filesystems: full ones, absent ones, and btrfs with its quotas."""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import contextmanager

import pytest

from backendai_hub.core.errors import (
    InsufficientStorageError,
    NotFoundError,
    UnavailableError,
)
from backendai_hub.storage import ops
from backendai_hub.storage.drivers.mounts import find_mount
from tests.harness import until
from tests.storage import (
    OTHER_SCOPE,
    SCOPE,
    Desk,
    is_ok,
    new_place,
    path_of,
    replaced,
    running_hosts,
)

MIB = 1 << 20
CONTENT = os.urandom(4 * MIB)


@contextmanager
def mounted(where, *words):
    """Mount something for a test, and let go of it whatever happens."""
    where.mkdir(exist_ok=True)
    subprocess.run(["mount", *words, str(where)], check=True, capture_output=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True)


@contextmanager
def btrfs(folder):
    image = folder / "btrfs.img"
    with image.open("wb") as file:
        file.truncate(160 * MIB)
    # With everything once, so that it fits into a small image.
    make = ["mkfs.btrfs", "--quiet", "--mixed", "--metadata", "single", str(image)]
    subprocess.run(make, check=True, capture_output=True)
    with mounted(folder / "btrfs", "-o", "loop", str(image)) as where:
        yield where


@pytest.mark.mounts
@pytest.mark.parametrize("what", ["bytes", "files"])
async def test_on_a_full_filesystem_an_upload_is_refused_and_nothing_is_lost(
    tmp_path, what
):
    size = {"bytes": "size=8m", "files": "size=64m,nr_inodes=60"}[what]
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", size, "tmpfs") as where:
        described = {"local": {"path": str(where / "folders"), "check_seconds": 0.2}}
        async with running_hosts(described) as hosts:
            desk = await Desk(hosts).make()
            await desk.upload("kept", CONTENT)
            free = hosts.health()["local"].free_bytes

            async def fill():
                for number in range(100):
                    await desk.upload(f"more{number}", CONTENT[:MIB])

            with pytest.raises(InsufficientStorageError, match="full"):
                await fill()

            names = await desk.names()
            for name in names:
                entry = await desk.do(ops.StatEntry, path=name)
                assert entry.size in {len(CONTENT), MIB}, "nothing is partly there"
            assert await desk.read("kept") == CONTENT
            await abandon_all(desk)
            counted = await desk.do(ops.ScanUsage)
            assert counted.bytes == len(CONTENT) + MIB * (len(names) - 1)

            done = await desk.do(ops.RemoveFolder)
            assert done.count == len(names) + 1
            again = await Desk(hosts).make()
            await again.upload("kept", CONTENT)
            assert free


@pytest.mark.mounts
async def test_a_chunk_that_finds_no_room_is_taken_back(tmp_path):
    options = ["-t", "tmpfs", "-o", "size=4m", "tmpfs"]
    with mounted(tmp_path / "small", *options) as where:
        async with running_hosts({"local": {"path": str(where)}}) as hosts:
            desk = await Desk(hosts).make()
            upload_id = await desk.begin()
            first = await desk.send(upload_id, CONTENT[:MIB])
            with pytest.raises(InsufficientStorageError, match="remove something"):
                await desk.send(upload_id, CONTENT + CONTENT, first)
            state = await desk.do(ops.UploadOffset, upload_id=upload_id)
            assert state.offset == first
            assert await desk.names() == []
            # Others find the room that it took.
            await (await Desk(hosts).make()).upload("theirs", CONTENT[: 2 * MIB])


@pytest.mark.mounts
async def test_where_nothing_is_mounted_nothing_is_written(tmp_path):
    where = tmp_path / "nfs"
    where.mkdir()
    described = {
        "local": {"path": str(where), "require_mount": True, "check_seconds": 0.1}
    }
    async with running_hosts(described) as hosts:
        assert hosts.health()["local"].state == "down"
        assert "nothing is mounted" in hosts.health()["local"].reason
        with pytest.raises(UnavailableError, match="administrators see why"):
            await Desk(hosts).make()
        assert list(where.iterdir()) == []

        with mounted(where, "-t", "tmpfs", "tmpfs"):
            await is_ok(hosts)
            desk = await Desk(hosts).make()
            await desk.upload("a", CONTENT)
        await until(
            lambda: hosts.health()["local"].state == "down", "the mount is missed"
        )
        with pytest.raises(UnavailableError):
            await desk.names()
        assert list(where.iterdir()) == []


@pytest.mark.btrfs
async def test_btrfs_keeps_everybody_within_their_quota(tmp_path):
    with btrfs(tmp_path) as where:
        described = {"local": {"driver": "btrfs", "path": str(where / "folders")}}
        async with running_hosts(described) as hosts:
            health = hosts.health()["local"]
            assert health.capabilities == {"quota", "fast-usage", "clone"}
            desk = await Desk(hosts).make(limit_bytes=16 * MIB)
            other = await Desk(hosts, new_place(OTHER_SCOPE)).make()
            await desk.upload("kept", CONTENT)

            usage = await settle(hosts, where)
            assert usage.known
            assert usage.limit_bytes == 16 * MIB
            assert len(CONTENT) <= usage.bytes < len(CONTENT) + MIB

            with pytest.raises(InsufficientStorageError, match="quota"):
                await desk.upload("more", CONTENT * 4)
            assert await desk.names() == ["kept"]
            # Whoever writes: not only what comes through us.
            await abandon_all(desk)
            session = path_of(where / "folders", desk.place) / "session"
            with pytest.raises(OSError, match="quota"):
                session.write_bytes(CONTENT * 4)
            session.unlink()
            await other.upload("theirs", CONTENT * 5)

            await hosts.call("local", ops.SetLimit(scope=SCOPE, bytes=None))
            await desk.upload("more", CONTENT * 4)
            assert (await settle(hosts, where)).limit_bytes is None


@pytest.mark.btrfs
async def test_a_full_quota_on_btrfs_keeps_nobody_from_making_room(tmp_path):
    with btrfs(tmp_path) as where:
        described = {"local": {"driver": "btrfs", "path": str(where / "folders")}}
        async with running_hosts(described) as hosts:
            desk = await Desk(hosts).make(limit_bytes=8 * MIB)
            await desk.upload("a", CONTENT)
            upload_id = await desk.begin()
            with pytest.raises(InsufficientStorageError):
                await desk.send(upload_id, CONTENT * 2)
            await desk.do(ops.RemoveEntry, path="a")
            await desk.do(ops.AbandonUpload, upload_id=upload_id)
            await settle(hosts, where)
            await desk.upload("b", CONTENT)
            fill = path_of(where / "folders", desk.place) / "fill"
            with pytest.raises(OSError, match="quota"):
                fill.write_bytes(CONTENT * 2)

            assert (await desk.do(ops.RemoveFolder)).count == 3
            with pytest.raises(NotFoundError):
                await desk.names()
            await hosts.call("local", ops.RemoveScope(scope=SCOPE))
            assert list((where / "folders").iterdir()) == []


@pytest.mark.btrfs
async def test_a_clone_on_btrfs_shares_its_blocks(tmp_path):
    with btrfs(tmp_path) as where:
        described = {"local": {"driver": "btrfs", "path": str(where / "folders")}}
        async with running_hosts(described) as hosts:
            desk = await Desk(hosts).make()
            await desk.upload("a", CONTENT * 8)
            copy = Desk(hosts, new_place(OTHER_SCOPE))
            await hosts.call("local", ops.MakeScope(scope=OTHER_SCOPE))
            await sync(where)
            before = os.statvfs(where).f_bavail
            clone = ops.CloneFolder(source=desk.place, target=copy.place)
            await hosts.call("local", clone)
            await sync(where)
            used = (before - os.statvfs(where).f_bavail) * os.statvfs(where).f_frsize
            assert used < len(CONTENT)
            assert await copy.read("a") == CONTENT * 8


@pytest.mark.btrfs
@pytest.mark.parametrize("point", ["", "moving.copied"])
async def test_what_moves_on_btrfs_counts_where_it_is_then(tmp_path, point):
    """Scopes are subvolumes there, between which nothing is renamed."""
    with btrfs(tmp_path) as where:
        described = {"local": {"driver": "btrfs", "path": str(where / "folders")}}
        async with running_hosts(described, crash_at=point) as hosts:
            desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
            await desk.upload("a", CONTENT)
            target = ops.Place(OTHER_SCOPE, desk.place.folder_id)
            small = ops.MakeScope(scope=OTHER_SCOPE, limit_bytes=MIB)
            await hosts.call("local", small)
            move = ops.MoveFolder(source=desk.place, target=target)
            if not point:
                with pytest.raises(InsufficientStorageError):
                    await hosts.call("local", move)
                assert await desk.read("a") == CONTENT

            await hosts.call("local", ops.SetLimit(scope=OTHER_SCOPE, bytes=None))
            if point:
                with pytest.raises(UnavailableError):
                    await hosts.call("local", move)
                await replaced(hosts, pid)
            await hosts.call("local", move)

            assert await Desk(hosts, target).read("a") == CONTENT
            with pytest.raises(NotFoundError):
                await desk.names()
            await settle(hosts, where)
            usage = await hosts.call("local", ops.ScopeUsage(scope=SCOPE))
            assert usage.bytes < MIB
            usage = await hosts.call("local", ops.ScopeUsage(scope=OTHER_SCOPE))
            assert usage.bytes >= len(CONTENT)


async def test_a_driver_on_the_wrong_filesystem_says_so(tmp_path):
    described = {
        name: {"driver": name, "path": str(tmp_path / name), **options}
        for name, options in {
            "btrfs": {},
            "xfs": {},
            "cephfs": {},
            "gluster": {"volume": "v"},
        }.items()
    }
    if find_mount(str(tmp_path))[0] in {"btrfs", "xfs"}:
        pytest.skip("this machine's own temporary folder lies on one of them")
    async with running_hosts(described) as hosts:
        for name, health in hosts.health().items():
            assert health.state == "down"
            assert "lie" in health.reason, name
            with pytest.raises(UnavailableError):
                await hosts.call(name, ops.MakeScope(scope=SCOPE))


async def abandon_all(desk):
    found = await desk.hosts.call("local", ops.ListUploads(scope=SCOPE))
    for upload_id in found.names:
        await desk.do(ops.AbandonUpload, upload_id=upload_id)


async def settle(hosts, where):
    """Ask for a scope's use, once btrfs has written down what it is."""
    await sync(where)
    return await hosts.call("local", ops.ScopeUsage(scope=SCOPE))


async def sync(where):
    """Have this filesystem, and no other of the machine, on its disk."""
    await asyncio.to_thread(
        subprocess.run, ["sync", "--file-system", str(where)], check=True
    )


@pytest.mark.mounts
async def test_a_million_entries_are_listed_counted_and_removed(tmp_path):
    """And others are answered meanwhile."""
    million = 1_000_000
    options = ["-t", "tmpfs", "-o", "size=64m,nr_inodes=0", "tmpfs"]
    with mounted(tmp_path / "memory", *options) as where:
        async with running_hosts({"local": {"path": str(where / "folders")}}) as hosts:
            desk = await Desk(hosts).make()
            other = await Desk(hosts, new_place(OTHER_SCOPE)).make()
            await other.upload("theirs", CONTENT)
            here = path_of(where / "folders", desk.place)
            await asyncio.to_thread(crowd, here, million)

            first = await desk.do(ops.ListEntries)
            assert first.total == million
            assert [e.name for e in first.entries] == [f"{n:06}" for n in range(200)]
            middle = await desk.do(ops.ListEntries, after="0/499999", limit=1)
            assert [e.name for e in middle.entries] == ["500000"]
            found = await desk.do(ops.ListEntries, search="99999")
            assert found.total == 19

            counting = asyncio.create_task(desk.do(ops.ScanUsage))
            assert await other.read("theirs") == CONTENT
            assert (await counting).files == million
            removing = asyncio.create_task(desk.do(ops.RemoveFolder))
            assert await other.read("theirs") == CONTENT
            assert (await removing).count == million + 1


def crowd(folder, entries):
    """Make many names of a few empty files: quick to make and to remove."""
    here = os.open(folder, os.O_RDONLY)
    for number in range(entries):
        if number % 50_000 == 0:
            first = f"{number:06}"
            os.mknod(first, dir_fd=here)
        else:
            os.link(first, f"{number:06}", src_dir_fd=here, dst_dir_fd=here)
    os.close(here)
