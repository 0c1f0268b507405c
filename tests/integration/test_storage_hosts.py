"""Storage hosts with real worker processes: what goes wrong stays where it is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from backendai_hub.core.errors import InvalidRequestError, UnavailableError
from backendai_hub.safefs.errors import StoppedError
from backendai_hub.safefs.listing import Listing, Order
from backendai_hub.safefs.tree import Tree
from backendai_hub.storage import ops
from backendai_hub.storage.hosts import StorageHosts
from tests.harness import until
from tests.integration.mounts_harness import hung
from tests.storage import (
    WELL,
    Desk,
    few_descriptors,
    is_ok,
    path_of,
    replaced,
    running_hosts,
)

QUICK = {"check_seconds": 0.2, "slow_seconds": 0.3, "hang_seconds": 2.0}


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_a_platform_without_hosts_says_so():
    hosts = StorageHosts()
    hosts.start()
    with pytest.raises(UnavailableError, match="no storage host is configured"):
        await hosts.call("", ops.Health())
    await hosts.close()


async def test_hosts_are_found_by_name_and_say_how_they_are(tmp_path):
    described = {"local": {"path": str(tmp_path / "a")}, "b": {"path": str(tmp_path)}}
    async with running_hosts(described, default="b") as hosts:
        assert (hosts.names(), hosts.default) == (("local", "b"), "b")
        health = hosts.health()["local"]
        assert health.state in WELL
        assert health.capabilities == frozenset()
        assert 0 < health.free_bytes <= health.total_bytes
        with pytest.raises(InvalidRequestError, match="no storage host 'c'"):
            await hosts.call("c", ops.Health())
    assert not any(is_alive(h.pid) for h in hosts.health().values() if h.pid)


async def test_a_hung_host_fails_its_own_requests_and_nobody_else_s(tmp_path):
    troubles = tmp_path / "troubles.json"
    described = {
        "local": {"path": str(tmp_path / "local")},
        "nfs": {
            "path": str(tmp_path / "nfs"),
            "driver": "fake",
            "troubles_file": str(troubles),
            **QUICK,
        },
    }
    async with running_hosts(described) as hosts:
        first = hosts.health()["nfs"].pid
        mine, theirs = Desk(hosts), Desk(hosts, host="nfs")
        await mine.make()
        await theirs.make()
        troubles.write_text(json.dumps({"hang": ["*"]}))

        beat = asyncio.create_task(longest_pause())
        with pytest.raises(UnavailableError, match="storage host nfs"):
            await hosts.call("nfs", ops.StatEntry(place=theirs.place), deadline=0.3)
        await mine.upload("a", b"still here")
        assert await mine.read("a") == b"still here"
        await until(
            lambda: hosts.health()["nfs"].state == "down",
            "the hung host is down",
        )
        assert "has not answered" in hosts.health()["nfs"].reason
        began = time.monotonic()
        with pytest.raises(UnavailableError, match="not available since"):
            await theirs.names()
        assert time.monotonic() - began < 10, "known to be down: nobody waits for it"
        await until(lambda: not is_alive(first), "its worker has been ended")
        assert not beat.done()
        beat.cancel()

        troubles.write_text("{}")
        await replaced(hosts, first, "nfs")
        assert await theirs.names() == []
        assert hosts.health()["local"].state in WELL


@pytest.mark.mounts
async def test_a_file_system_that_answers_nothing_hangs_nobody_else(tmp_path):
    """F43: every call into it blocks in the kernel, as on a mount whose server left."""
    there = tmp_path / "nfs"
    described = {
        "local": {"path": str(tmp_path / "local")},
        "nfs": {"path": str(there), **QUICK},
    }
    async with running_hosts(described) as hosts:
        first = hosts.health()["nfs"].pid
        mine, theirs = Desk(hosts), Desk(hosts, host="nfs")
        await mine.make()
        await theirs.make()
        beat = asyncio.create_task(longest_pause())
        with hung(there):
            with pytest.raises(UnavailableError, match="storage host nfs"):
                await hosts.call("nfs", ops.StatEntry(place=theirs.place), deadline=0.3)
            await mine.upload("a", b"still here")
            assert await mine.read("a") == b"still here"
            await until(
                lambda: hosts.health()["nfs"].state == "down",
                "the hung host is down",
            )
        await replaced(hosts, first, "nfs")
        assert await theirs.names() == []
        assert not beat.done()
        beat.cancel()


async def longest_pause() -> None:
    """Fail where something keeps the loop from going on for long."""
    last = time.monotonic()
    while True:
        await asyncio.sleep(0.01)
        now = time.monotonic()
        assert now - last < 10
        last = now


async def test_a_stopped_worker_is_ended_and_another_takes_its_place(tmp_path):
    described = {"local": {"path": str(tmp_path), **QUICK}}
    async with running_hosts(described) as hosts:
        desk = await Desk(hosts).make()
        await desk.upload("kept", b"before")
        pid = hosts.health()["local"].pid
        os.kill(pid, signal.SIGSTOP)

        with pytest.raises(UnavailableError):
            await hosts.call("local", ops.StatEntry(place=desk.place), deadline=0.2)
        await until(lambda: not is_alive(pid), "the stopped worker is ended")
        await replaced(hosts, pid)
        assert await desk.read("kept") == b"before"


async def test_a_host_is_well_again_when_there_are_descriptors_again(tmp_path):
    described = {"local": {"path": str(tmp_path), **QUICK}}
    async with running_hosts(described) as hosts:
        desk = await Desk(hosts).make()
        pid = hosts.health()["local"].pid
        with few_descriptors(left=0):
            await until(
                lambda: hosts.health()["local"].state == "down", "nobody can look"
            )
            with pytest.raises(UnavailableError):
                await desk.names()
        await is_ok(hosts)
        assert await desk.names() == []
        assert hosts.health()["local"].pid == pid


async def test_a_worker_that_dies_is_replaced_at_once(tmp_path):
    described = {"local": {"path": str(tmp_path)}}
    async with running_hosts(described) as hosts:
        desk = await Desk(hosts).make()
        pid = hosts.health()["local"].pid
        operation = ops.AppendUpload(
            place=desk.place, upload_id=await desk.begin(), offset=0
        )
        async with await hosts.upload("local", operation) as body:
            await body.write(b"x" * 1000)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(UnavailableError, match="try again"):
                await body.finish()
        await replaced(hosts, pid)
        assert await desk.names() == []


async def test_requests_that_hang_for_good_bring_the_worker_down(tmp_path, monkeypatch):
    monkeypatch.setattr("backendai_hub.storage.keeper.MOST_STUCK", 2)
    described = {
        "local": {"path": str(tmp_path), "driver": "fake", "hang": ["stat-entry"]}
        | QUICK
        | {"stuck_seconds": 0.1}
    }
    async with running_hosts(described) as hosts:
        desk = await Desk(hosts).make()
        pid, stat = hosts.health()["local"].pid, ops.StatEntry(place=desk.place)
        for _ in range(2):
            with pytest.raises(UnavailableError):
                await hosts.call("local", stat, deadline=0.1)
        await until(lambda: not is_alive(pid), "a worker full of them is ended")


async def test_a_slow_host_is_called_slow_and_still_works(tmp_path):
    described = {
        "local": {"path": str(tmp_path), "driver": "fake", "slow": {"health": 0.6}}
        | QUICK
    }
    async with running_hosts(described) as hosts:
        desk = await Desk(hosts).make()
        await until(
            lambda: hosts.health()["local"].state == "slow", "it is called slow"
        )
        assert await desk.names() == []


async def test_a_host_that_refuses_is_down_for_its_reason_and_comes_back(tmp_path):
    troubles = tmp_path / "troubles.json"
    troubles.write_text(json.dumps({"down": "the tape is being changed"}))
    described = {
        "local": {
            "path": str(tmp_path / "folders"),
            "driver": "fake",
            "troubles_file": str(troubles),
            **QUICK,
        }
    }
    async with running_hosts(described) as hosts:
        pid = hosts.health()["local"].pid
        assert hosts.health()["local"].reason == "the tape is being changed"
        with pytest.raises(UnavailableError, match="administrators see why") as said:
            await Desk(hosts).make()
        assert "tape" not in said.value.message, "why is not everybody's to know"
        troubles.write_text("{}")
        await is_ok(hosts)
        await Desk(hosts).make()
        assert hosts.health()["local"].pid == pid, "its worker had nothing wrong"


async def test_who_asks_is_not_told_where_a_host_lies(tmp_path):
    place = tmp_path / "folders"
    described = {"local": {"path": str(place), "check_seconds": 60.0}}
    place.mkdir()
    async with running_hosts(described) as hosts:
        desk = await Desk(hosts).make()
        place.rename(tmp_path / "elsewhere")
        with pytest.raises(UnavailableError, match="cannot do this") as said:
            await desk.names()
        assert str(tmp_path) not in said.value.message


async def test_too_many_requests_at_once_are_refused_in_words(tmp_path):
    troubles = tmp_path / "troubles.json"
    described = {
        "local": {
            "path": str(tmp_path / "folders"),
            "driver": "fake",
            "troubles_file": str(troubles),
            "most_requests": 2,
        }
    }
    async with running_hosts(described) as hosts:
        desk = await Desk(hosts).make()
        troubles.write_text(json.dumps({"hang": ["stat-entry"]}))
        asked = [asyncio.create_task(desk.do(ops.StatEntry)) for _ in range(4)]
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        troubles.write_text("{}")
        said = await asyncio.gather(*asked, return_exceptions=True)
        refused = [one for one in said if isinstance(one, UnavailableError)]
        assert refused, "at least one found no room"
        assert "requests under way" in refused[0].message


SERVICE = """
    import asyncio, sys
    from backendai_hub.storage.hosts import StorageHosts

    async def main():
        hosts = StorageHosts({"local": {"path": sys.argv[1]}})
        hosts.start()
        while hosts.health()["local"].state != "ok":
            await asyncio.sleep(0.01)
        print(hosts.health()["local"].pid, flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())
"""


async def test_workers_die_with_the_service(tmp_path):
    service = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SERVICE), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        line = await asyncio.to_thread(service.stdout.readline)
        pid = int(line)
        assert is_alive(pid)
    finally:
        service.kill()
        service.wait()
        service.stdout.close()
    await until(lambda: not is_alive(pid), "the worker died with its service")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has powers to give up")
async def test_a_worker_of_root_keeps_only_what_files_need(tmp_path):
    async with running_hosts({"local": {"path": str(tmp_path)}}) as hosts:
        pid = hosts.health()["local"].pid
        status = Path(f"/proc/{pid}/status").read_text()
    held = {
        line.partition(":")[0]: int(line.partition(":")[2], 16)
        for line in status.splitlines()
        if line.startswith("Cap")
    }
    files = 0b11111
    assert held["CapEff"] == held["CapPrm"] == held["CapBnd"] == files
    assert held["CapInh"] == held["CapAmb"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_files_belong_to_the_owner_of_the_host(tmp_path):
    described = {"local": {"path": str(tmp_path), "owner": "4711:4712"}}
    async with running_hosts(described) as hosts:
        desk = await Desk(hosts).make()
        await desk.upload("deep/er/file", b"x")
        await desk.do(ops.MakeDirectory, path="made")
        await desk.do(ops.CopyEntry, path="deep", target="copied")
        await desk.do(ops.WriteText, path="text", content=b"x")
    (top,) = tmp_path.glob("user-*/*/*/*")
    found = [top, *top.rglob("*")]
    assert len(found) == 9
    assert {(p.stat().st_uid, p.stat().st_gid) for p in found} == {(4711, 4712)}
    modes = {oct(p.stat().st_mode & 0o777) for p in found if p.is_file()}
    assert modes == {"0o644"}
    assert {oct(p.stat().st_mode & 0o777) for p in found if p.is_dir()} == {"0o755"}


async def test_a_worker_that_has_too_much_to_do_to_answer_is_not_ended(tmp_path):
    described = {
        "local": {
            "path": str(tmp_path / "folders"),
            "check_seconds": 0.05,
            "slow_seconds": 0.05,
            "hang_seconds": 1.0,
            "most_scans": 64,
        }
    }
    async with running_hosts(described) as hosts:
        desk = await Desk(hosts).make()
        folder = path_of(tmp_path / "folders", desk.place)
        for number in range(15_000):
            (folder / f"file-{number}").touch()
        pid = hosts.health()["local"].pid
        listing = ops.ListEntries(
            place=desk.place, sort=Order.SIZE, search="file", limit=10
        )
        # Without turns of anybody: all of it is done in one process at the same time.
        pages = await asyncio.gather(
            *(hosts.call("local", listing, deadline=250.0) for _ in range(48))
        )
        assert {page.total for page in pages} == {15_000}
        assert hosts.health()["local"].pid == pid


async def test_a_list_that_nobody_waits_for_is_not_read_to_its_end(tmp_path):
    place = tmp_path / "folder"
    place.mkdir()
    for number in range(3000):
        (place / f"{number}").touch()
    looks = iter([False, True])
    with Tree.at(place) as tree, pytest.raises(StoppedError):
        tree.list((), cancelled=lambda: next(looks))
    assert next(looks, None) is None
    with Tree.at(place) as tree, pytest.raises(StoppedError):
        tree.list((), Listing(search="1"), cancelled=lambda: True)
