"""What it costs to measure sessions, and to tell who looks.

    python -m benchmarks.usage [--containers 200] [--nodes 50] [--readers 100]

"agent" starts that many processes, each in a control group and a network of its own as
sessions are, and measures them as the agent does, once in five seconds: processor time
of a pass, and how late a heartbeat due meanwhile would be. "service" takes in what that
many nodes send, and tells that many readers of the stream; it needs no database.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import resource
import shutil
import statistics
import subprocess
import time
import tracemalloc
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from backendai_agent.measuring.groups import GroupReader, Root
from backendai_agent.meter import Measurable, Meter
from backendai_agent.runtimes.process_limits import Bounds
from backendai_agent.runtimes.process_limits_probe import choose_limits
from backendai_hub.api.agents import ContainerSpec, DesiredState
from backendai_hub.core.live_usage import LiveUsage, UsageTotals
from backendai_hub.core.measures import Measures, Sample
from backendai_hub.core.usage_keeper import SAMPLES, Subject, UsageKeeper

PASSES = 20


@contextmanager
def containers(count: int) -> Iterator[dict[str, Root]]:
    """Start processes that wait, each with a group and a network of its own."""
    limits, _ = choose_limits("backendai-benchmark")
    alone = shutil.which("unshare") if os.geteuid() == 0 else None
    names = [str(uuid.uuid4()) for _ in range(count)]
    started: dict[str, subprocess.Popen[bytes]] = {}
    script = 'for file do echo 0 > "$file"; done; exec sleep 1000'
    try:
        for name in names:
            limits.create(name, Bounds(cpu=1000, memory=64 << 20, pids=64))
            words = ["/bin/sh", "-c", script, "sh", *limits.joins(name)]
            before = [alone, "--net", "--"] if alone else []
            started[name] = subprocess.Popen([*before, *words])
        time.sleep(1.0)
        yield {name: Root(process.pid, name) for name, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
            process.wait()
        for name in names:
            limits.remove(name)


class Waiting:
    """A runtime of processes that wait."""

    def __init__(self, roots: dict[str, Root]) -> None:
        self._roots = roots
        self._reader = GroupReader()

    def measure(self, specs: list[ContainerSpec]) -> dict[str, object]:
        """Read each of them."""
        return {
            spec.id: reading
            for spec in specs
            if (reading := self._reader.read(self._roots[spec.id])) is not None
        }


async def measure_agent(count: int) -> None:
    """Measure a node with so many containers, and what waits for it meanwhile."""
    with containers(count) as roots:
        specs = [
            ContainerSpec(id=name, session_id="", desired=DesiredState.RUNNING)
            for name in roots
        ]
        there = Measurable(
            runtime=Waiting(roots),
            accelerators=(),
            running=lambda: specs,
            devices=list,
        )
        meter = Meter(there, tell=len, log=logging.getLogger("benchmark"))
        await meter.measure()
        late: list[float] = []
        beating = asyncio.create_task(_beat(late))
        used = []
        sent = b""
        for _ in range(PASSES):
            began = time.process_time()
            sent = msgspec.json.encode(await meter.measure())
            used.append(time.process_time() - began)
            await asyncio.sleep(0.25)  # rates take a while
        beating.cancel()
        found = msgspec.json.decode(sent, type=Measures).containers
    told = sum(1 for sample in found if sample.cpu is not None)
    print(
        f"agent: {count} containers, {told} of them told in {len(sent) / 1024:.1f} KiB"
    )
    typical = statistics.median(used)
    print(f"  a pass takes {1000 * typical:.1f} ms of a core,", end=" ")
    print(f"{100 * typical / 5:.2f} % of one when it is every five seconds")
    print(f"  a beat due meanwhile is {1000 * max(late):.1f} ms late at most")


async def _beat(late: list[float]) -> None:
    clock = asyncio.get_running_loop().time
    while True:
        due = clock() + 0.01
        await asyncio.sleep(0.01)
        late.append(clock() - due)


def measure_service(nodes: int, count: int, readers: int) -> None:
    """Measure what taking in and telling cost, and what is kept."""
    keeper = UsageKeeper()
    ids = [[f"{n}-{c}" for c in range(count)] for n in range(nodes)]
    for node, names in enumerate(ids):
        for name in names:
            keeper.learn(
                Subject(
                    id=name,
                    session_id=name,
                    agent_id=str(node),
                    owner_id=str(node % readers),
                    domain_id="d",
                    cpu_limit=1.0,
                    memory_limit=1 << 30,
                ),
                UsageTotals(),
            )
    bodies = [
        msgspec.json.encode(Measures(containers=[_sample(name) for name in names]))
        for names in ids
    ]
    began = time.process_time()
    for body in bodies:
        measures = msgspec.json.decode(body, type=Measures)
        measures.check()
        for sample in measures.containers:
            keeper.note(1000.0, sample)
    taken = time.process_time() - began
    began = time.process_time()
    sizes = [
        len(_tell(list(keeper.list_owned(str(reader), 1001.0))))
        for reader in range(readers)
    ]
    told = time.process_time() - began
    began = time.process_time()
    everything = len(_tell(list(keeper.list_live(1001.0))[:1000]))
    all_told = time.process_time() - began
    sessions = nodes * count
    print(f"service: {nodes} nodes with {count} sessions each")
    print(
        f"  a node's measurements are taken in {1000 * taken / nodes:.1f} ms", end=", "
    )
    print(f"{100 * taken / 5:.1f} % of a core for all, every five seconds")
    print(
        f"  {readers} readers are told of their own in {1000 * told:.1f} ms", end=", "
    )
    print(f"{statistics.median(sizes) / 1024:.1f} KiB each")
    print(f"  an administrator is told of 1,000 in {1000 * all_told:.1f} ms", end=", ")
    print(f"{everything / 1024:.0f} KiB")
    print(f"  a full session is kept in {_measure_memory():.1f} KiB ({sessions} here)")


def _sample(name: str) -> Sample:
    return Sample(
        id=name,
        cpu=0.523,
        cpu_seconds=1234.5,
        memory=123456789,
        read_rate=1.0,
        write_rate=2.0,
        receive_rate=3.0,
        send_rate=4.0,
        read_bytes=123456789,
        written_bytes=123456789,
        received_bytes=123456789,
        sent_bytes=123456789,
    )


def _tell(items: list[object]) -> bytes:
    return msgspec.json.encode(LiveUsage(at=0.0, items=items))  # type: ignore[arg-type]


def _measure_memory() -> float:
    """Return how many KiB a session of one container takes when its ring is full."""
    keeper = UsageKeeper()
    tracemalloc.start()
    for number in range(20):
        name = str(number)
        keeper.learn(
            Subject(
                id=name, session_id=name, agent_id="a", owner_id="o", domain_id="d"
            ),
            UsageTotals(),
        )
        for moment in range(SAMPLES):
            keeper.note(float(moment), _sample(name))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / 20 / 1024


def main() -> None:
    """Measure both sides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--containers", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--readers", type=int, default=100)
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    del soft
    asyncio.run(measure_agent(given.containers))
    measure_service(given.nodes, given.containers, given.readers)


if __name__ == "__main__":
    main()
