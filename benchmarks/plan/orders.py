"""What it costs to say whose turn it is, for each order.

    python -m benchmarks.plan.orders [--pending 100000] [--owners 1000] [--turns 3]

A queue of sessions of many users in 50 projects and 5 domains is worked off to its
end, once with room for everybody and once without any. Times are those of the
processor; beside them stands what a bare heap of as many owners takes in the same turn
(``heapreplace``), which depends on the machine as much. Every figure is printed as a
line of JSON.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import statistics
import time

from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.ordering import SEQUENCERS, Bands, Sequencer, ShareState
from backendai_hub.scheduling.snapshot import PendingSession

GIB = 1 << 30
CAPACITY = {"cpu": 96_000 * MILLI, "mem": 768_000 * GIB, "cuda.device": 8000 * MILLI}


def make_queue(pending: int, owners: int) -> list[PendingSession]:
    """Make a queue of sessions of users drawn at random, the same every time."""
    chance = random.Random(7)
    scopes = [
        (
            (ScopeKind.DOMAIN, f"domain-{user % 5}"),
            (ScopeKind.PROJECT, f"project-{user % 50}"),
            (ScopeKind.USER, f"user-{user}"),
        )
        for user in range(owners)
    ]
    queue = []
    for number in range(pending):
        user = chance.randrange(owners)
        request = ResourceSlots(
            {
                "cpu": chance.choice([1, 2, 4, 8]) * MILLI,
                "mem": chance.choice([4, 16, 64]) * GIB,
                "cuda.device": chance.choice([0, 1, 1, 2]) * MILLI,
            }
        )
        queue.append(
            PendingSession(
                id=str(number),
                owner_id=f"user-{user}",
                request=request,
                references={},
                architecture="x86_64",
                scopes=scopes[user],
            )
        )
    return queue


def measure(
    sequencer: Sequencer, queue: list[PendingSession], *, room: bool
) -> tuple[float, float]:
    """Work a queue off; return seconds to begin, and seconds for each session."""
    begun = time.process_time()
    order = Bands(queue, sequencer, ShareState(capacity=CAPACITY))
    index = order.next()
    first = time.process_time()
    count = 0
    while index is not None:
        if room:
            order.placed(index)
        count += 1
        index = order.next()
    return first - begun, (time.process_time() - first) / count


def bare(owners: int, steps: int = 100_000) -> float:
    """Return the seconds that one step of a heap of tuples takes, and nothing else."""
    heap = [(0.0, owner) for owner in range(owners)]
    begun = time.process_time()
    for _ in range(steps):
        share, owner = heap[0]
        heapq.heapreplace(heap, (share + 0.001, owner))
    return (time.process_time() - begun) / steps


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pending", type=int, default=100_000)
    options.add_argument("--owners", type=int, default=1000)
    options.add_argument("--turns", type=int, default=3)
    chosen = options.parse_args()
    queue = make_queue(chosen.pending, chosen.owners)
    for name, sequencer in SEQUENCERS.items():
        for room in (True, False):
            turns = [measure(sequencer, queue, room=room) for _ in range(chosen.turns)]
            begin = statistics.median(turn[0] for turn in turns)
            each = statistics.median(turn[1] for turn in turns)
            figures = {
                "order": name,
                "pending": chosen.pending,
                "owners": chosen.owners,
                "all_placed": room,
                "begin_ms": round(1e3 * begin, 1),
                "microseconds_each": round(1e6 * each, 2),
                "microseconds_bare_heap": round(1e6 * bare(chosen.owners), 2),
            }
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
