"""What sessions hold of nodes, as plain data: taking it, and adding it up."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from backendai_hub.core.slots import ResourceSlots
from backendai_hub.scheduling.shares import Path, path_of
from backendai_hub.scheduling.snapshot import (
    NodeState,
    PendingSession,
    RunningSession,
    Share,
)


def take(node: NodeState, shares: Iterable[Share], *, sign: int = -1) -> NodeState:
    """Return *node* with *shares* taken off, or given back if *sign* is 1.

    Raises :class:`ValueError` for more than there is.
    """
    moved: dict[str, dict[str, int]] = {}
    cut: dict[str, int] = {}
    for share in shares:
        if share.slices:
            cut[share.device] = cut.get(share.device, 0) | share.slices
            continue
        slots = moved.setdefault(share.device, {})
        slots[share.slot] = slots.get(share.slot, 0) + sign * share.amount
    devices = []
    for device in node.devices:
        free = dict(device.free)
        for slot, amount in moved.get(device.id, {}).items():
            free[slot] = free.get(slot, 0) + amount
            if not 0 <= free[slot] <= device.total.get(slot, 0):
                raise ValueError(f"{node.name} has not as much {slot} on {device.name}")
        changed = device
        if device.id in moved:
            changed = replace(changed, free=free)
        if device.id in cut:
            changed = replace(changed, sliced=device.sliced ^ cut[device.id])
        devices.append(changed)
    containers = max(0, node.containers - sign)
    return replace(node, devices=tuple(devices), containers=containers)


def held_by(session: RunningSession) -> dict[str, int]:
    """Return what a session holds in all."""
    held: dict[str, int] = {}
    for _, shares in session.holdings:
        for share in shares:
            held[share.slot] = held.get(share.slot, 0) + share.amount
    return held


def owner_of(session: RunningSession) -> Path:
    """Name the user of a session in their project and domain."""
    return path_of(
        PendingSession(
            id=session.id,
            owner_id=session.owner_id,
            request=ResourceSlots(),
            references={},
            architecture="",
            scopes=session.scopes,
        )
    )
