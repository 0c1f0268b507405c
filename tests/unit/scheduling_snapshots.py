"""Small snapshots for tests of the scheduler; amounts are what people write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from backendai_hub.core.quotas import QuotaScope, ScopeKind
from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.snapshot import (
    DeviceState,
    GroupPolicy,
    Member,
    NodeState,
    PendingSession,
    RunningSession,
    Share,
    Snapshot,
)

GIB = 1 << 30
PLACEMENTS = ("concentrated", "dispersed", "roundrobin", "fragmentation")
SEQUENCERS = ("fifo", "lifo", "drf", "fair-share")


def milli(amount: float) -> int:
    return round(amount * MILLI)


def host(
    cores: float,
    *,
    used: float = 0,
    mem: int = 64 * GIB,
    used_mem: int = 0,
    name: str = "host",
) -> DeviceState:
    total = {"cpu": milli(cores), "mem": mem}
    free = {"cpu": milli(cores - used), "mem": mem - used_mem}
    return DeviceState(id=name, name=name, total=total, free=free)


def _device(name: str, slot: str, used: float, **more: Any) -> DeviceState:
    return DeviceState(
        id=name,
        name=name,
        total={slot: MILLI},
        free={slot: MILLI - milli(used)},
        kind="cuda",
        **more,
    )


def gpu(name: str, *, used: float = 0, numa: int | None = None) -> DeviceState:
    """A GPU that is given whole or not at all."""
    return _device(name, "cuda.device", used, whole=True, numa=numa)


def shared(name: str, *, used: float = 0, numa: int | None = None) -> DeviceState:
    """A GPU of which several sessions may have a share."""
    return _device(name, "cuda.shares", used, numa=numa)


def node(name: str, *devices: DeviceState, **changes: Any) -> NodeState:
    def rename(device: DeviceState) -> DeviceState:
        if device.kind != "host":
            return device
        return DeviceState(
            id=f"{name}/{device.name}",
            name=device.name,
            total=device.total,
            free=device.free,
        )

    return NodeState(
        **{
            "id": name,
            "name": name,
            "runtime": "docker",
            "architecture": "x86_64",
            "devices": tuple(map(rename, devices)),
            **changes,
        }
    )


def pending(
    name: str = "s",
    *,
    user: str = "alice",
    project: str = "default",
    cpu: float = 0,
    mem: int = 0,
    gpus: float = 0,
    shares: float = 0,
    request: ResourceSlots | None = None,
    **changes: Any,
) -> PendingSession:
    asked = ask(cpu=cpu, mem=mem, gpus=gpus, shares=shares)
    return PendingSession(
        **{
            "id": name,
            "owner_id": user,
            "request": asked if request is None else request,
            "references": {"docker": "lab:1"},
            "architecture": "x86_64",
            "scopes": ((ScopeKind.PROJECT, project), (ScopeKind.USER, user)),
            **changes,
        }
    )


def ask(
    *, cpu: float = 0, mem: int = 0, gpus: float = 0, shares: float = 0
) -> ResourceSlots:
    amounts = {
        "cpu": milli(cpu),
        "mem": mem,
        "cuda.device": milli(gpus),
        "cuda.shares": milli(shares),
    }
    return ResourceSlots(amounts)


def cluster_of(
    name: str, *requests: ResourceSlots, layout: str = "one-node", **changes: Any
) -> PendingSession:
    """A session of several containers."""
    together = ResourceSlots()
    for request in requests:
        together += request
    members = tuple(
        Member(name=f"{name}-{i}", request=r) for i, r in enumerate(requests)
    )
    return pending(name, request=together, members=members, layout=layout, **changes)


def running(
    name: str, place: NodeState, *shares: Share, user: str = "alice", **changes: Any
) -> RunningSession:
    """A session that holds *shares* of a node; they must not be free there."""
    return RunningSession(
        **{
            "id": name,
            "owner_id": user,
            "scopes": ((ScopeKind.PROJECT, "default"), (ScopeKind.USER, user)),
            "holdings": ((place.id, shares),),
            **changes,
        }
    )


def limit(
    name: str,
    *,
    kind: ScopeKind = ScopeKind.USER,
    mem: int | None = None,
    cpu: float | None = None,
    used_cpu: float = 0,
) -> QuotaScope:
    limits = {} if cpu is None else {"cpu": milli(cpu)}
    if mem is not None:
        limits["mem"] = mem
    used = {"cpu": milli(used_cpu)}
    return QuotaScope(kind=kind, id=name, name=name, limits=limits, used=used)


def snapshot(
    nodes: Iterable[NodeState],
    queue: Iterable[PendingSession],
    scopes: Iterable[QuotaScope] = (),
    *,
    policy: GroupPolicy | None = None,
    **changes: Any,
) -> Snapshot:
    return Snapshot(
        nodes=tuple(nodes),
        queue=tuple(queue),
        scopes={(scope.kind, scope.id): scope for scope in scopes},
        groups={} if policy is None else {"": policy},
        **changes,
    )
