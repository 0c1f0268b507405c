"""How long it takes to say why one session waits.

    python -m benchmarks.plan.explain [--agents 1000] [--turns 50]
        [--long 1000:10000 10000:100000]

Nodes have 8 GPUs of which 7 are in use by sessions that declare when they end; who
waits asks for more than any node has free. Preparing is what one pass and the order
of all declared ends cost, which is paid once for all questions about the same moment.
Then the same with a long queue of a hundred kinds of requests in fair share and with
limits, for as many nodes and sessions as ``--long`` says: about sessions anywhere in
it, asked for the first time and again; and dry runs of requests that nobody has made,
of different people and of the same ones again.

Times are of the processor, so that other programs do not count. Every figure is printed
as a line of JSON; a table follows.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.explain import Explainer
from backendai_hub.scheduling.snapshot import (
    DeviceState,
    NodeState,
    PendingSession,
    RunningSession,
    Share,
    Snapshot,
)
from benchmarks.plan.snapshots import make_snapshot

GIB = 1 << 30
BUDGET = 5.0
"""Milliseconds for one answer at 1,000 nodes."""

QUEUES = {
    "4 GPUs": [{"cuda.device": 4000, "cpu": 32_000, "mem": 64 * GIB}],
    "8 GPUs": [{"cuda.device": 8000, "cpu": 90_000, "mem": 64 * GIB}],
    "too much memory": [{"cuda.device": 1000, "cpu": 4000, "mem": 128 * GIB}],
    "20 before it": [{"cuda.device": 4000, "cpu": 32_000, "mem": 64 * GIB}] * 20
    + [{"cuda.device": 6000, "cpu": 32_000, "mem": 64 * GIB}],
}


def make_node(number: int) -> tuple[NodeState, list[RunningSession]]:
    name = f"node-{number:04d}"
    total = {"cpu": 96 * MILLI, "mem": 768 * GIB}
    host = DeviceState(
        id=f"{name}/host",
        name="host",
        total=total,
        free={"cpu": 40 * MILLI, "mem": 100 * GIB},
    )
    gpus = [
        DeviceState(
            id=f"{name}/gpu{i}",
            name=f"gpu{i}",
            total={"cuda.device": MILLI},
            free={"cuda.device": MILLI * (i == 7)},
            whole=True,
            kind="cuda",
        )
        for i in range(8)
    ]
    held = [
        RunningSession(
            id=f"{name}-{i}",
            owner_id="somebody",
            scopes=(),
            holdings=((name, (_share(gpu.id), Share(host.id, "cpu", 8 * MILLI))),),
            ends=1000 + (number * 7919 + i * 104_729) % 100_000,
        )
        for i, gpu in enumerate(gpus[:7])
    ]
    node = NodeState(
        id=name,
        name=name,
        runtime="docker",
        architecture="x86_64",
        devices=(host, *gpus),
    )
    return node, held


def _share(device: str) -> Share:
    return Share(device, "cuda.device", MILLI)


def make_session(number: int, asked: dict[str, int]) -> PendingSession:
    return PendingSession(
        id=f"s{number}",
        owner_id="alice",
        request=ResourceSlots(asked),
        references={"docker": "lab"},
        architecture="x86_64",
        scopes=((ScopeKind.USER, "alice"),),
    )


def measure(agents: int, turns: int) -> list[dict[str, object]]:
    """Explain the last of each queue, many times."""
    made = [make_node(i) for i in range(agents)]
    there = Snapshot(
        nodes=tuple(node for node, _ in made),
        queue=(),
        scopes={},
        running=tuple(session for _, held in made for session in held),
    )
    rows: list[dict[str, object]] = []
    for name, asked in QUEUES.items():
        queue = tuple(make_session(i, one) for i, one in enumerate(asked))
        began = time.process_time()
        explainer = Explainer(replace(there, queue=queue))
        explainer.explain(queue[-1].id)
        prepared = time.process_time() - began
        times = []
        for _ in range(turns):
            began = time.process_time()
            explainer.explain(queue[-1].id)
            times.append(1000 * (time.process_time() - began))
        times.sort()
        row = {
            "asked": name,
            "agents": agents,
            "prepare_ms": round(1000 * prepared, 1),
            "median_ms": round(times[len(times) // 2], 2),
            "p99_ms": round(times[int(len(times) * 0.99)], 2),
        }
        print(json.dumps(row))
        rows.append(row)
    return rows


def measure_long(agents: int, pending: int, questions: int = 100) -> dict[str, object]:
    """Ask about sessions anywhere in a long queue, and about some that are not."""
    base = make_snapshot(agents, pending, 100)
    made = [make_node(i) for i in range(agents)]
    snapshot = replace(
        base,
        nodes=tuple(node for node, _ in made),
        running=tuple(session for _, held in made for session in held),
    )
    began = time.process_time()
    explainer = Explainer(snapshot)
    waiting = list(explainer.plan.waiting)
    explainer.explain(waiting[-1])
    prepared = time.process_time() - began
    asked = random.Random(1).sample(waiting, questions)
    known = {session.id: session for session in snapshot.queue}
    new = [replace(known[session_id], id="new") for session_id in asked]
    row: dict[str, object] = {
        "agents": agents,
        "pending": pending,
        "waiting": len(waiting),
        "prepare_ms": round(1000 * prepared),
    }
    rounds: dict[str, tuple[Callable[[Any], object], list[Any]]] = {
        "first": (explainer.explain, asked),
        "again": (explainer.explain, asked),
        "dry_run": (explainer.consider, new),
        "dry_run_again": (explainer.consider, new),
    }
    for name, (ask, about) in rounds.items():
        times = sorted(take(ask, one) for one in about)
        row[f"{name}_ms"] = round(times[len(times) // 2], 2)
        row[f"{name}_p99_ms"] = round(times[int(len(times) * 0.99)], 2)
    print(json.dumps(row), flush=True)
    return row


def take(ask: Callable[[Any], object], about: object) -> float:
    """Return how many milliseconds an answer takes."""
    began = time.thread_time_ns()
    ask(about)
    return (time.thread_time_ns() - began) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--long", nargs="*", default=["1000:10000", "10000:100000"])
    given = parser.parse_args()
    rows = measure(given.agents, given.turns)
    print()
    for row in rows:
        met = "" if float(str(row["median_ms"])) <= BUDGET else "  over the budget"
        print(f"{row['asked']:<16} {row['median_ms']:>8} ms {row['p99_ms']:>8} ms{met}")

    for size in given.long:
        agents, pending = map(int, size.split(":"))
        print()
        for name, value in measure_long(agents, pending).items():
            print(f"{name:<20} {value:>8}")


if __name__ == "__main__":
    main()
