"""How long the longest placements by the default policy take, and when they happen.

    python -m benchmarks.plan.longest [--turns 3]

1,200 mixed nodes of six workloads are filled in one pass each, with fair share and
limits; then the moments are tried at which most has to be found out anew: the first
placement of a pass, after a node has changed and with another mix of what is usual;
after a session has left; and of a shape that nobody has asked for. A placement goes
from whose turn it is to its devices. What a pass does before the first, once for all
nodes and everybody in the queue, is told beside it: *set-up of a pass*.

Times are of the processor, and beside them by the clock. Every pass is made several
times. *Own* is the longest of what each placement took at least: what it does itself
takes as long in every turn, and what neighbours on the machine do does not.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from backendai_hub.core.quotas import QuotaScope, ScopeKind
from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.lines import Line
from backendai_hub.scheduling.ordering import ShareState
from backendai_hub.scheduling.plan import Pass
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    PendingSession,
    Placement,
    Snapshot,
)
from backendai_hub.scheduling.usual import asks_of
from backendai_hub.scheduling.warming import warm_up
from benchmarks.packing.ours import make_node, make_sessions, shuffled
from benchmarks.packing.workloads import ALL, Workload
from benchmarks.plan.snapshots import PROJECTS, USERS

_LEARNED = 3000
SET_UP = "set-up of a pass"
_MOMENTS = 10
"""How often each moment is tried for a workload."""
_AT_MOST = {"cpu": 1 << 40, "mem": 1 << 60, "cuda.shares": 1 << 40}

Times = list[tuple[int, int]]
"""Nanoseconds of the processor and by the clock."""


def fill(workload: Workload) -> Snapshot:
    """Return its empty nodes, and who fills them, of many users with limits."""
    kinds = shuffled(workload.nodes(), 0)
    queue = tuple(
        replace(
            session,
            owner_id=f"user-{number * 7919 % USERS}",
            scopes=(
                (ScopeKind.PROJECT, f"project-{number * 7919 % PROJECTS}"),
                (ScopeKind.USER, f"user-{number * 7919 % USERS}"),
            ),
        )
        for number, session in enumerate(make_sessions(workload.draw(0)))
    )
    before = [
        ask
        for session in make_sessions(workload.draw(10_000)[:_LEARNED])
        for ask in asks_of(session)
    ]
    learned = Counter(before)
    capacity = {
        "cpu": sum(kind.cores for kind in kinds) * MILLI,
        "cuda.shares": sum(kind.devices for kind in kinds) * MILLI,
    }
    policy = GroupPolicy(
        placement="fragmentation",
        sequencer="fair-share",
        shares=ShareState(capacity=capacity),
        typical=tuple((ask, float(n)) for ask, n in learned.items()),
    )
    return Snapshot(
        nodes=tuple(make_node(number, kind) for number, kind in enumerate(kinds)),
        queue=queue,
        scopes={
            key: QuotaScope(
                kind=key[0], id=key[1], name=key[1], limits=_AT_MOST, used={}
            )
            for session in queue
            for key in session.scopes
        },
        groups={"": policy},
    )


class Watched(Pass):
    """A pass that notes how long each placement takes, from whose turn it is."""

    def __init__(self, snapshot: Snapshot) -> None:
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        super().__init__(snapshot)
        self.set_up = time.thread_time_ns() - cpu, time.perf_counter_ns() - wall
        self._last = (0, 0)

    def place(self, most: int | None = None) -> Times:
        """Go on; tell what placements have taken, and not what reasons have."""
        self.took: Times = []
        self._last = time.thread_time_ns(), time.perf_counter_ns()
        self.run(most)
        return self.took

    def _decide(self, line: Line, session: PendingSession) -> Placement | str:
        found = super()._decide(line, session)
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        if not isinstance(found, str):
            self.took.append((cpu - self._last[0], wall - self._last[1]))
        self._last = cpu, wall
        return found


def try_moments(full: Snapshot) -> dict[str, Times]:
    """Measure placements when something else has just happened."""
    moments = ("set-up", "node", "mix", "release", "shape")
    found: dict[str, Times] = {name: [] for name in moments}
    policy = full.groups[""]
    for number in range(_MOMENTS):
        closed = replace(full.nodes[number], closed="drained")
        nodes = (*full.nodes[:number], closed, *full.nodes[number + 1 :])
        changed = Watched(replace(full, nodes=nodes))
        found["set-up"].append(changed.set_up)
        found["node"] += changed.place(1)
        other = replace(policy, typical=policy.typical[number:])
        found["mix"] += Watched(replace(full, groups={"": other})).place(1)
    begun = Watched(full)
    begun.place(len(full.queue) // 4)
    cluster = begun.lines[0].cluster
    for number in range(_MOMENTS):
        left = cluster.left_on(number)
        cluster.take(number, left)
        cluster.give(number, left)
        found["release"] += begun.place(1)
        found["shape"].append(ask_anew(begun, full.queue[0], number))
    return found


def ask_anew(begun: Watched, like: PendingSession, number: int) -> tuple[int, int]:
    """Rehearse a session of a shape that nobody has asked for."""
    request = ResourceSlots({**like.request, "cpu": 1000 + number})
    session = replace(like, id="new", request=request)
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    begun.lines[0].rehearse(session)
    return time.thread_time_ns() - cpu, time.perf_counter_ns() - wall


def describe(name: str, turns: Sequence[Times]) -> dict[str, Any]:
    """Sum up what several turns of the same have taken, in microseconds."""
    each = np.array([np.array(turn) for turn in turns]) / 1000
    cpu, wall = each[:, :, 0], each[:, :, 1]
    row = {
        "placements": name,
        "number": cpu.size,
        "cpu_median": round(float(np.median(cpu))),
        "cpu_p99": round(float(np.percentile(cpu, 99))),
        "cpu_most": round(float(cpu.max())),
        "own_most": round(float(cpu.min(axis=0).max())),
        "wall_p99": round(float(np.percentile(wall, 99))),
        "wall_most": round(float(wall.max())),
    }
    print(json.dumps(row), flush=True)
    return row


def measure(turns: int = 3) -> list[dict[str, Any]]:
    """Measure all workloads, as the service is when it has started."""
    warm_up()
    gc.freeze()
    rows = []
    moments: list[dict[str, Times]] = [{} for _ in range(turns)]
    for workload in ALL:
        snapshot = fill(workload)
        passes = [Watched(snapshot).place() for _ in range(turns)]
        rows.append(describe(workload.name, passes))
        for moment in moments:
            for name, times in try_moments(snapshot).items():
                moment.setdefault(name, []).extend(times)
    names = {
        "set-up": SET_UP,
        "node": "first of a pass, a node has changed",
        "mix": "first of a pass, another mix",
        "release": "after a release",
        "shape": "of a new shape",
    }
    rows += [describe(names[key], [m[key] for m in moments]) for key in names]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=3)
    rows = measure(parser.parse_args().turns)
    print()
    for row in rows:
        print(" ".join(f"{value!s:>10}" for value in row.values()))


if __name__ == "__main__":
    main()
