"""What the scheduler sees: nodes with their devices, the queue, and the limits.

Amounts are integers in smallest units throughout. A snapshot is plain data, so the
same plan can be computed again from a recorded one.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from backendai_hub.core.quotas import QuotaScope, ScopeKind
from backendai_hub.core.slots import ResourceSlots


class DeviceState(msgspec.Struct, frozen=True, kw_only=True):
    """One device: what it has in all and what is free of it."""

    id: str
    name: str
    total: Mapping[str, int]
    free: Mapping[str, int]
    whole: bool = False
    numa: int | None = None
    kind: str = "host"


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """One node. ``closed`` says why nothing new may start there, if so."""

    id: str
    name: str
    group: str = ""
    """The resource group it belongs to."""
    runtime: str
    architecture: str
    devices: tuple[DeviceState, ...]
    closed: str = ""
    sole_owner: str | None = None
    """A node that cannot keep users apart serves only this one, once it has one."""
    multi_user: bool = True


class PendingSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session in the queue, with the limits that apply to it."""

    id: str
    owner_id: str
    request: ResourceSlots
    references: Mapping[str, str]
    architecture: str
    scopes: tuple[tuple[ScopeKind, str], ...]
    charge: ResourceSlots | None = None
    """What it counts in each scope; without it, what it requests."""
    group: str = ""
    """The resource group it is scheduled in; without one, any node will do."""
    hold: str = ""
    """Why it may not start whatever there is, if so."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one pass of the scheduler decides from."""

    nodes: tuple[NodeState, ...]
    queue: tuple[PendingSession, ...]
    scopes: Mapping[tuple[ScopeKind, str], QuotaScope]


class Share(msgspec.Struct, frozen=True):
    """An amount of one slot of one device."""

    device: str
    slot: str
    amount: int


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """One session gets these shares on this node."""

    session: str
    node: str
    image: str
    shares: tuple[Share, ...]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass decided: who starts where, and why the others wait."""

    placements: tuple[Placement, ...]
    waiting: Mapping[str, str]
