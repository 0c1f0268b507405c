"""Snapshots to measure the scheduler with; nothing heavy is imported here."""

from __future__ import annotations

import random

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


def make_queue(
    sessions: int, shapes: int, *, shared: bool = True
) -> list[PendingSession]:
    chance = random.Random(7)
    requests = make_requests(shapes, chance)
    references = {"docker": "lab:1"}
    queue = []
    for number in range(sessions):
        user = chance.randrange(USERS)
        request = chance.choice(requests)
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
