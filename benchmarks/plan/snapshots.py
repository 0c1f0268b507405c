"""Snapshots to measure the scheduler with; nothing heavy is imported here."""

from __future__ import annotations

import random
from collections import Counter
from itertools import cycle, islice, product

from backendai_hub.core.quotas import QuotaScope, ScopeKind
from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.ordering import ShareState
from backendai_hub.scheduling.snapshot import (
    DeviceState,
    GroupPolicy,
    NodeState,
    PendingSession,
    Snapshot,
)

GIB = 1 << 30
GPUS = 8
CORES, MEMORY = 96, 768 * GIB
HOST = {"cpu": CORES * MILLI, "mem": MEMORY}
GPU = {"cuda.device": MILLI}
USERS, PROJECTS = 200, 20

CORES_ASKED = (1, 2, 3, 4, 5, 6, 7, 8, 10, 16)
MEMORY_ASKED = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 64)
GPUS_ASKED = (0, 1, 2, 4, 8, 0, 1, 2, 0, 1, 0, 4, 8, 0, 1)
"""How many GPUs requests ask for, in turn."""


def make_node(number: int, *, shared: bool = True) -> NodeState:
    """Make an empty node; not *shared* means as read from rows of a database."""
    name = f"node-{number:04d}"

    def amounts(slots: dict[str, int]) -> dict[str, int]:
        return slots if shared else dict(slots)

    host = DeviceState(
        id=f"{name}/host", name="host", total=amounts(HOST), free=amounts(HOST)
    )
    gpus = (
        DeviceState(
            id=f"{name}/gpu{i}",
            name=f"gpu{i}",
            total=amounts(GPU),
            free=amounts(GPU),
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
    """Make *count* different requests, of which two in three want GPUs."""
    hosts = list(product(CORES_ASKED, MEMORY_ASKED))
    wanted = Counter(islice(cycle(GPUS_ASKED), count))
    if max(wanted.values()) > len(hosts):
        raise ValueError(f"there are no {count} different requests to draw")
    return [
        ResourceSlots(
            {"cpu": cores * MILLI, "mem": memory * GIB, "cuda.device": gpus * MILLI}
        )
        for gpus, many in wanted.items()
        for cores, memory in chance.sample(hosts, many)
    ]


def make_queue(
    sessions: int, shapes: int, *, shared: bool = True
) -> list[PendingSession]:
    """Make a queue of *sessions* with exactly *shapes* different requests."""
    if sessions < shapes:
        raise ValueError(f"{sessions} sessions have no {shapes} different requests")
    chance = random.Random(7)
    requests = make_requests(shapes, chance)
    asked = [*requests, *chance.choices(requests, k=sessions - shapes)]
    chance.shuffle(asked)
    assert len(set(asked)) == shapes
    references = {"docker": "lab:1"}
    queue = []
    for number, request in enumerate(asked):
        user = chance.randrange(USERS)
        queue.append(
            PendingSession(
                id=f"session-{number}",
                owner_id=f"user-{user}",
                request=request if shared else ResourceSlots(dict(request)),
                references=references,
                architecture="x86_64",
                scopes=(
                    (ScopeKind.DOMAIN, "default"),
                    (ScopeKind.PROJECT, f"project-{user % PROJECTS}"),
                    (ScopeKind.USER, f"user-{user}"),
                ),
            )
        )
    return queue


def make_snapshot(
    agents: int, sessions: int, shapes: int, *, shared: bool = True
) -> Snapshot:
    queue = make_queue(sessions, shapes, shared=shared)
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
    capacity = {slot: amount * agents for slot, amount in HOST.items()}
    shares = ShareState(capacity={**capacity, "cuda.device": everything})
    policy = GroupPolicy(
        placement="concentrated", sequencer="fair-share", shares=shares
    )
    return Snapshot(
        nodes=tuple(make_node(i, shared=shared) for i in range(agents)),
        queue=tuple(queue),
        scopes=scopes,
        groups={"": policy},
    )
