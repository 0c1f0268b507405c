"""Whether somebody could start now who could not before."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from backendai_hub.db.limits import Scopes
from backendai_hub.scheduling.snapshot import NodeState

Thing = TypeVar("Thing")


class News:
    """What readings have found: who has come, and whether others could gain, too."""

    def __init__(self, *, gained: bool = False) -> None:
        self.came: set[str] = set()
        self.gained = gained


def moves(known: dict[str, Thing], session_id: str, new: Thing | None) -> bool:
    """Note what there is of a session now; tell whether that is something else."""
    if known.get(session_id) == new:
        return False
    if new is None:
        del known[session_id]
    else:
        known[session_id] = new
    return True


def is_wider(old: Scopes, new: Scopes) -> bool:
    """Tell whether any limit has been raised, or less is used of it."""
    for key, scope in new.items():
        before = old.get(key)
        if before is None:
            continue  # of somebody who has come with it
        if before.limits != scope.limits:
            return True
        if before.unspecified != scope.unspecified:
            return True
        if any(scope.used.get(slot, 0) < used for slot, used in before.used.items()):
            return True
    return False


def has_gained(old: NodeState | None, new: NodeState) -> bool:
    """Tell whether a node could take something that it could not take before."""
    if old is None or len(old.devices) != len(new.devices):
        return True
    for before, after in zip(old.devices, new.devices, strict=True):
        if any(after.free.get(s, 0) > n for s, n in before.free.items()):
            return True
        if before.sliced & ~after.sliced:
            return True
        alike = msgspec.structs.replace(after, free=before.free, sliced=before.sliced)
        if alike != before:
            return True
    same = msgspec.structs.replace(new, devices=old.devices)
    if new.containers > old.containers:
        same = msgspec.structs.replace(same, containers=old.containers)
    if new.sole_owner is not None and old.sole_owner is None:
        same = msgspec.structs.replace(same, sole_owner=None)
    return same != old
