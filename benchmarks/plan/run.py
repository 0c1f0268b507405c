"""How many decisions the scheduler makes per second, and what a snapshot costs.

    python -m benchmarks.plan.run [--agents 100 1000] [--sessions 4000] [--turns 3]

A pass of ``plan()`` decides about every session in the queue: whether the limits
allow it, on which node and which devices it starts, or in what words it waits. The
nodes have 8 GPUs each, the queue holds at most 100 different requests of many users,
every scope has a limit, and more is asked than there is, so that reasons are written
too. Beside it, in the same run, stands a plain scan: for each session the least that
arrays make possible (who has room, who has most of it, subtract), without limits,
devices, reasons or names.

Every figure is printed as a line of JSON; a table follows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace
from sqlalchemy import insert

from backendai_hub.core.quotas import QuotaScope, ScopeKind
from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import upgrade
from backendai_hub.db.tables import AgentRow, Base, DeviceRow, LedgerRow
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import (
    DeviceState,
    NodeState,
    PendingSession,
    Plan,
    Snapshot,
)
from tests.factories import AUDIT_KEY, make_platform, prepare, submit

GIB = 1 << 30
GPUS = 8
CORES, MEMORY = 96, 768 * GIB
HOST = {"cpu": CORES * MILLI, "mem": MEMORY}
GPU = {"cuda.device": MILLI}
USERS, PROJECTS = 200, 20


def make_node(number: int) -> NodeState:
    name = f"node-{number:04d}"
    host = DeviceState(id=f"{name}/host", name="host", total=HOST, free=HOST)
    gpus = (
        DeviceState(
            id=f"{name}/gpu{i}",
            name=f"gpu{i}",
            total=GPU,
            free=GPU,
            whole=True,
            numa=i * 2 // GPUS,
            kind="cuda",
        )
        for i in range(GPUS)
    )
    return NodeState(
        id=name,
        name=name,
        runtime="docker",
        architecture="x86_64",
        devices=(host, *gpus),
    )


def make_requests(count: int, chance: random.Random) -> list[ResourceSlots]:
    """Up to *count* different requests, of which two in three want GPUs."""
    return [
        ResourceSlots(
            {
                "cpu": chance.choice([1, 2, 4, 8, 16]) * MILLI,
                "mem": chance.choice([2, 4, 8, 16, 64]) * GIB,
                "cuda.device": chance.choice([0, 0, 1, 1, 2, 4, 8]) * MILLI,
            }
        )
        for _ in range(count)
    ]


def make_snapshot(agents: int, sessions: int, shapes: int) -> Snapshot:
    chance = random.Random(7)
    requests = make_requests(shapes, chance)
    references = {"docker": "lab:1"}
    queue = []
    for number in range(sessions):
        user = chance.randrange(USERS)
        queue.append(
            PendingSession(
                id=f"session-{number}",
                owner_id=f"user-{user}",
                request=chance.choice(requests),
                references=references,
                architecture="x86_64",
                scopes=(
                    (ScopeKind.DOMAIN, "default"),
                    (ScopeKind.PROJECT, f"project-{user % PROJECTS}"),
                    (ScopeKind.USER, f"user-{user}"),
                ),
            )
        )
    everything = agents * GPUS * MILLI
    limits = {
        ScopeKind.DOMAIN: {"cuda.device": everything * 2},
        ScopeKind.PROJECT: {"cuda.device": everything // PROJECTS * 2},
        ScopeKind.USER: {
            "cpu": agents * CORES * MILLI,
            "cuda.device": max(everything // USERS * 3 // 2, 16 * MILLI),
        },
    }
    scopes = {
        (kind, name): QuotaScope(
            kind=kind, id=name, name=name, limits=limits[kind], used={}
        )
        for session in queue
        for kind, name in session.scopes
    }
    return Snapshot(
        nodes=tuple(make_node(i) for i in range(agents)),
        queue=tuple(queue),
        scopes=scopes,
    )


def scan(snapshot: Snapshot) -> int:
    """Place what fits by plain scans over one array; return how many were placed."""
    slots = ("cpu", "mem", "cuda.device")
    total = np.array([[*HOST.values(), GPUS * MILLI]] * len(snapshot.nodes), np.int64)
    free = total.copy()
    placed = 0
    for session in snapshot.queue:
        asked = np.array([session.request[slot] for slot in slots], np.int64)
        rows = np.flatnonzero((free >= asked).all(axis=1))
        if not len(rows):
            continue
        best = rows[np.argmax((free[rows] / total[rows]).min(axis=1))]
        free[best] -= asked
        placed += 1
    return placed


def measure(work: Callable[[], Any], turns: int) -> tuple[float, Any]:
    """Return the median time of some turns of *work*, and what it answers."""
    took, answer = [], None
    for _ in range(turns):
        begun = time.perf_counter()
        answer = work()
        took.append(time.perf_counter() - begun)
    return statistics.median(took), answer


def report(figure: str, value: float, unit: str, **more: Any) -> tuple[str, str, str]:
    line = {"figure": figure, "value": round(value, 2), "unit": unit, **more}
    print(json.dumps(line), flush=True)
    shown = ", ".join(f"{k} {v}" for k, v in more.items())
    return figure, f"{value:,.1f} {unit}", shown


def compare(agents: int, sessions: int, shapes: int, turns: int) -> list[Any]:
    """Measure a pass over *agents* nodes, and the plain scan."""
    snapshot = make_snapshot(agents, sessions, shapes)
    seconds, decided = measure(lambda: plan(snapshot), turns)
    assert isinstance(decided, Plan)
    assert len(decided.placements) + len(decided.waiting) == sessions
    scan_seconds, scanned = measure(lambda: scan(snapshot), turns)
    nodes = tuple(replace(n, multi_user=False) for n in snapshot.nodes)
    alone = replace(snapshot, nodes=nodes)
    alone_seconds, alone_decided = measure(lambda: plan(alone), turns)
    return [
        report(
            "plan",
            sessions / seconds,
            "decisions/s",
            agents=agents,
            sessions=sessions,
            placed=len(decided.placements),
            seconds=round(seconds, 3),
        ),
        report(
            "plan, one user per node",
            sessions / alone_seconds,
            "decisions/s",
            agents=agents,
            sessions=sessions,
            placed=len(alone_decided.placements),
            seconds=round(alone_seconds, 3),
        ),
        report(
            "plain scan",
            sessions / scan_seconds,
            "decisions/s",
            agents=agents,
            sessions=sessions,
            placed=scanned,
            seconds=round(scan_seconds, 3),
        ),
    ]


async def fill(database: Database, agents: int) -> None:
    """Store nodes as if they had reported, straight into the tables."""
    now = datetime.now(UTC)
    bulks: dict[type[Base], list[dict[str, Any]]] = {
        AgentRow: [],
        DeviceRow: [],
        LedgerRow: [],
    }
    for node in (make_node(i) for i in range(agents)):
        bulks[AgentRow].append(
            {
                "id": node.id,
                "name": node.name,
                "machine_id": node.id,
                "status": "ALIVE",
                "architecture": node.architecture,
                "isolation": {"runtime": "fake", "multi_user": True},
                "images": ["fake"],
                "enrolled_at": now,
                "first_seen_at": now,
                "last_seen_at": now,
            }
        )
        for device in node.devices:
            bulks[DeviceRow].append(
                {
                    "id": device.id,
                    "agent_id": node.id,
                    "name": device.name,
                    "kind": device.kind,
                    "numa": device.numa,
                    "whole": device.whole,
                }
            )
            bulks[LedgerRow] += [
                {
                    "kind": "device",
                    "owner_id": device.id,
                    "slot": slot,
                    "used": 0,
                    "quota": amount,
                    "cap": amount,
                }
                for slot, amount in device.total.items()
            ]
    async with database.transaction() as tx:
        for table, rows in bulks.items():
            await tx.execute(insert(table), rows)


async def measure_snapshot(agents: int, waiting: int, turns: int) -> list[Any]:
    """Measure how long reading a snapshot takes from SQLite on this disk."""
    with tempfile.TemporaryDirectory(prefix="backendai-bench-") as folder:
        url = f"sqlite+aiosqlite:///{Path(folder) / 'bench.sqlite'}"
        await asyncio.to_thread(upgrade, url)
        database = Database(url, audit_key=AUDIT_KEY)
        try:
            platform = make_platform(database)
            await prepare(platform)
            for number in range(waiting):
                await submit(platform, f"user{number % 10}", server=f"s{number}")
            await fill(database, agents)
            took = []
            for _ in range(turns):
                begun = time.perf_counter()
                snapshot = await load_snapshot(platform)
                took.append(time.perf_counter() - begun)
            assert (len(snapshot.nodes), len(snapshot.queue)) == (agents, waiting)
        finally:
            await database.close()
    milliseconds = statistics.median(took) * 1000
    return [report("load_snapshot", milliseconds, "ms", agents=agents, waiting=waiting)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--agents", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--sessions", type=int, default=4000)
    parser.add_argument("--shapes", type=int, default=100)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    table = []
    for agents in options.agents:
        table += compare(agents, options.sessions, options.shapes, options.turns)
    table += asyncio.run(measure_snapshot(max(options.agents), 50, options.turns))
    width = max(len(value) for _, value, _ in table)
    print()
    for figure, value, more in table:
        print(f"{figure:24} {value:>{width}}  {more}")


if __name__ == "__main__":
    main()
