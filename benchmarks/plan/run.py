"""How many sessions the scheduler places per second, what a snapshot costs, and memory.

    python -m benchmarks.plan.run [--agents 100 1000 10000] [--shapes 100 500]

A pass decides about every session in the queue: whose turn it is by fair share, whether
the limits of domain, project and user allow it, on which node and which devices it
starts, or in what words it waits. The nodes have 8 GPUs each, the queue holds so many
different requests of many users, every scope has a limit, and about as much is asked as
there is. Beside it, in the same run, stands a plain scan: for each session the least
that arrays make possible (who has room, who has most of it, subtract), without order,
limits, devices, reasons or names.

Time is processor time of one core, the best of some turns; building the arrays from the
snapshot is measured by itself. Memory is the most that a process of its own ever had,
with Python and numpy in it, where nothing in the snapshot is shared that comes from
different rows of a database.

Every figure is printed as a line of JSON; a table follows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace
from sqlalchemy import insert

from backendai_hub.core.slots import MILLI
from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import upgrade
from backendai_hub.db.tables import AgentRow, Base, DeviceRow, LedgerRow
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.scheduling.plan import Pass
from backendai_hub.scheduling.snapshot import (
    Plan,
    Snapshot,
)
from benchmarks.plan.snapshots import GPUS, HOST, make_node, make_snapshot
from tests.factories import AUDIT_KEY, make_platform, prepare, submit


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
    """Return the least processor time of some turns of *work*, and what it answers."""
    took, answer = [], None
    for _ in range(turns):
        begun = time.process_time()
        answer = work()
        took.append(time.process_time() - begun)
    return min(took), answer


def measure_pass(snapshot: Snapshot, turns: int) -> tuple[float, float, Plan]:
    """Return the time to build the arrays, the time to decide, and the plan."""
    building, deciding = [], []
    for _ in range(turns):
        begun = time.process_time()
        one = Pass(snapshot)
        built = time.process_time()
        decided = one.run()
        building.append(built - begun)
        deciding.append(time.process_time() - built)
    return min(building), min(deciding), decided


def report(figure: str, value: float, unit: str, **more: Any) -> tuple[str, str, str]:
    line = {"figure": figure, "value": round(value, 2), "unit": unit, **more}
    print(json.dumps(line), flush=True)
    shown = ", ".join(f"{k} {v}" for k, v in more.items())
    return figure, f"{value:,.1f} {unit}", shown


def compare(agents: int, shapes: int, turns: int) -> list[Any]:
    """Measure a pass over *agents* nodes, and the plain scan."""
    sessions = max(shapes, agents * 4 if agents <= 1000 else agents * 2)
    snapshot = make_snapshot(agents, sessions, shapes)
    building, deciding, decided = measure_pass(snapshot, turns)
    assert len(decided.placements) + len(decided.waiting) == sessions
    scan_turns = turns if agents <= 1000 else 1
    scan_seconds, scanned = measure(lambda: scan(snapshot), scan_turns)
    nodes = tuple(replace(n, multi_user=False) for n in snapshot.nodes)
    _, alone_seconds, alone = measure_pass(replace(snapshot, nodes=nodes), turns)
    plain = scanned / scan_seconds
    rows = []
    for figure, seconds, placed in (
        ("plan", deciding, len(decided.placements)),
        ("plan with building", deciding + building, len(decided.placements)),
        ("plan, one user a node", alone_seconds, len(alone.placements)),
        ("plain scan", scan_seconds, scanned),
    ):
        rows.append(
            report(
                figure,
                placed / seconds,
                "placements/s",
                agents=agents,
                shapes=shapes,
                sessions=sessions,
                placed=placed,
                microseconds=round(seconds / placed * 1e6, 1),
                scans=round(placed / seconds / plain, 2),
            )
        )
    return rows


def measure_memory(agents: int, sessions: int) -> list[Any]:
    """Measure the most memory that a pass needs, in a process of its own."""
    # Not ``ru_maxrss``: a process begins with that of the one it was made by.
    code = (
        "from pathlib import Path\n"
        "from benchmarks.plan.snapshots import make_snapshot\n"
        "from backendai_hub.scheduling.plan import plan\n"
        f"plan(make_snapshot({agents}, {sessions}, 500, shared=False))\n"
        "print(Path('/proc/self/status').read_text())\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    [peak] = [one for one in told.stdout.splitlines() if one.startswith("VmHWM:")]
    most = int(peak.split()[1]) / 1024
    return [report("memory", most, "MiB", agents=agents, sessions=sessions)]


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
    parser.add_argument("--agents", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--shapes", type=int, nargs="+", default=[100, 500])
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    table = []
    for agents in options.agents:
        for shapes in options.shapes:
            table += compare(agents, shapes, options.turns)
    table += measure_memory(10_000, 100_000)
    stored = min(1000, max(options.agents))
    table += asyncio.run(measure_snapshot(stored, 50, options.turns))
    width = max(len(value) for _, value, _ in table)
    print()
    for figure, value, more in table:
        print(f"{figure:24} {value:>{width}}  {more}")


if __name__ == "__main__":
    main()
