"""What the scheduler sees: nodes with their devices, the queue, and the limits.

Amounts are integers in smallest units throughout and times are whole seconds. A
snapshot is plain data, so the same plan can be computed again from a recorded one.
Nothing here can contain itself, so the garbage collector need not look at it (``gc``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from backendai_hub.core.groups import Preemption
from backendai_hub.core.quotas import QuotaScope, ScopeKind
from backendai_hub.core.slots import ResourceSlots

ScopeKey = tuple[ScopeKind, str]
USUAL_PRIORITY, HIGHEST_PRIORITY = 10, 100


class DeviceState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One device: what it has in all and what is free of it."""

    id: str
    name: str
    total: Mapping[str, int]
    free: Mapping[str, int]
    whole: bool = False
    numa: int | None = None
    kind: str = "host"
    model: str = ""
    links: Mapping[str, int] = {}
    """How far other devices of its node are, by id: 0 is closest, as NVLink."""
    profiles: Mapping[str, tuple[int, ...]] = {}
    """For a device that is cut into slices: where each kind of instance fits, as bits.

    ``{"cuda.device:1g.10gb": (0b1, 0b10), "cuda.device:2g.20gb": (0b11,)}``
    """
    sliced: int = 0
    """Which slices are in use, as bits."""


class NodeState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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
    labels: Mapping[str, str] = {}
    protocol: int = 1 << 30
    """What its agent understands; without one, all there is."""
    containers: int = 0
    """How many containers it runs."""
    max_containers: int | None = None


class Member(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One container of a session that has several."""

    name: str
    request: ResourceSlots


class PendingSession(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One session in the queue, with the limits that apply to it."""

    id: str
    owner_id: str
    request: ResourceSlots
    """What it asks for in all."""
    references: Mapping[str, str]
    architecture: str
    scopes: tuple[ScopeKey, ...]
    charge: ResourceSlots | None = None
    """What it counts in each scope; without it, what it requests."""
    group: str = ""
    """The resource group it is scheduled in; without one, any node will do."""
    hold: str = ""
    """Why it may not start whatever there is, if so."""
    priority: int = 10
    """0 to 100; higher goes first, before any other order."""
    job_priority: int = 0
    """Against whom it may push itself: running sessions with strictly less."""
    preemptible: bool = True
    """Whether it may be displaced once it runs; who may not be does not borrow."""
    since: int = 0
    """When it began to wait."""
    lifetime: int | None = None
    """How long it runs at most, if that is known."""
    nodes: tuple[str, ...] = ()
    """Nodes it names, by id."""
    only_nodes: bool = True
    """Whether it runs nowhere else, or would rather run there."""
    avoid: tuple[str, ...] = ()
    """Nodes to try last, such as those where it has just failed."""
    labels: Mapping[str, str] = {}
    """Labels its nodes must have."""
    protocol: int = 1
    """What its nodes' agents must understand."""
    members: tuple[Member, ...] = ()
    """The containers of a cluster; without them it is one container."""
    layout: Literal["one-node", "spread", "pack"] = "one-node"
    """Whether a cluster shares one node, keeps apart, or uses as few as it can."""


class Ask(NamedTuple):
    """What one container asks for, and the labels that its node must have."""

    request: ResourceSlots
    labels: tuple[tuple[str, str], ...] = ()


class RunningSession(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What holds devices now, for how long, and whether it may be displaced."""

    id: str
    owner_id: str
    scopes: tuple[ScopeKey, ...]
    holdings: tuple[tuple[str, tuple[Share, ...]], ...]
    """What it holds: node id and shares, one for each of its containers."""
    group: str = ""
    started: int = 0
    ends: int | None = None
    """When it ends at the latest, if that is known."""
    job_priority: int = 0
    preemptible: bool = False
    leaving: bool = False
    """Whether it is on its way out: nobody has to displace it any more."""
    system: bool = False
    """Whether it serves the others: it counts in no quota, and stays."""


class ReservedWindow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Devices kept for some people, or nobody, between two moments."""

    name: str
    starts: int
    ends: int
    nodes: tuple[str, ...]
    devices: tuple[str, ...] = ()
    """Which devices of the nodes; without any, all."""
    open_to: tuple[ScopeKey, ...] = ()
    """Who may use them meanwhile: a class. Nobody: maintenance."""
    notice: int = 86_400
    """How long before it begins sessions of unknown length are kept off."""


class ScopeQuota(msgspec.Struct, frozen=True, kw_only=True):
    """What one scope is guaranteed and what it may have at most, in smallest units.

    A slot that is not named is not guaranteed, and has no maximum.
    """

    guaranteed: Mapping[str, int] = {}
    maximum: Mapping[str, int] = {}


WIDE = 4
"""Who asks for so many devices is called wide, and so is a cluster."""


class GroupPolicy(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How one resource group's queue is worked off."""

    sequencer: str = "fifo"
    placement: str = "dispersed"
    allow_split: bool = False
    """Whether a fraction may be put together from several devices."""
    reserve_after: int | None = 3600
    """After how many seconds the first who waits gets devices reserved."""
    reserve_wide_after: int | None = 0
    """The same for who is wide, if that is sooner; None is no sooner than others."""
    max_lifetime: int | None = None
    """How long sessions run at most that do not say."""
    preemption: Preemption = Preemption()
    quotas: Mapping[tuple[str, ...], ScopeQuota] = {}
    """What scopes are guaranteed and may have at most, by their paths."""
    shares: Any = None
    """What owners have used and may use: a ``ShareState``."""
    typical: tuple[tuple[Ask, float], ...] = ()
    """What people usually ask for, and how often."""
    last_node: str = ""
    """The node that got the last session, for taking turns."""
    rack_label: str = "rack"
    """The label that tells which nodes are close to each other."""

    def patience(self, priority: int, *, wide: bool = False) -> int | None:
        """Return after how many seconds one of *priority* gets devices reserved.

        A priority above the usual shortens it; the highest does not wait for it. Nor
        does a *wide* request, unless the group says so: its devices seldom become free
        together, and until they are kept, everybody who starts on one puts it off.
        """
        after = self.reserve_after
        if after is None:
            return None
        if wide and self.reserve_wide_after is not None:
            after = min(after, self.reserve_wide_after)
        if priority <= USUAL_PRIORITY:
            return after
        return (
            after
            * max(0, HIGHEST_PRIORITY - priority)
            // (HIGHEST_PRIORITY - USUAL_PRIORITY)
        )

    @property
    def names(self) -> tuple[str, str]:
        """What its policies are called."""
        return self.sequencer, self.placement

    @property
    def displaces(self) -> bool:
        """Whether sessions that run may have to go for others."""
        return self.preemption.enabled or bool(self.quotas)


class ReservedPart(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Devices of one node that are kept for one container."""

    node: str
    shares: tuple[Share, ...]


class Reservation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a pass keeps for the first who has waited too long, or for who displaces."""

    session: str
    group: str
    parts: tuple[ReservedPart, ...]
    starts: int | None
    """When it can start at the latest; None while nobody knows who leaves when."""
    displacing: bool = False
    """Whether it waits for sessions that it has displaced, and for exactly those."""
    victims: tuple[str, ...] = ()
    """Whom it has displaced, by id."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything one pass of the scheduler decides from."""

    nodes: tuple[NodeState, ...]
    queue: tuple[PendingSession, ...]
    """In the order of submission."""
    scopes: Mapping[ScopeKey, QuotaScope]
    groups: Mapping[str, GroupPolicy] = {}
    running: tuple[RunningSession, ...] = ()
    windows: tuple[ReservedWindow, ...] = ()
    reserved: tuple[Reservation, ...] = ()
    """What passes before have reserved: those who wait for it do not lose it again."""
    shown: Mapping[str, tuple[PendingSession, ...]] = {}
    """The first of some groups' queues, who show what is asked for there, if not all
    of them are in ``queue``."""
    whole: bool = True
    """Whether everybody is looked at; nothing new is reserved for who may not be the
    first."""
    now: int = 0


class Share(msgspec.Struct, frozen=True, gc=False):
    """An amount of one slot of one device, and which slices of it, if it has any."""

    device: str
    slot: str
    amount: int
    slices: int = 0


class ContainerPlacement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One container of a cluster gets these shares on this node."""

    member: str
    node: str
    image: str
    shares: tuple[Share, ...]


class Placement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One session gets these shares on this node."""

    session: str
    node: str
    """For a cluster, the node of its first container; ``shares`` are that one's."""
    image: str
    shares: tuple[Share, ...]
    members: tuple[ContainerPlacement, ...] = ()
    """For a cluster, every container, the first one too."""


class Victim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A running session that would have to go, and why this one."""

    session: str
    reason: str


class PreemptionPlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who would have to go for a session to start, and where it would start then."""

    session: str
    node: str
    """For a cluster, the node of its first container; ``shares`` are that one's."""
    shares: tuple[Share, ...]
    mode: Literal["terminate", "reschedule"]
    victims: tuple[Victim, ...]
    kind: Literal["priority", "reclaim"] = "priority"
    """Whether its job priority is higher, or it gets back what it is guaranteed."""
    members: tuple[ReservedPart, ...] = ()
    """For a cluster, where every container would start, the first one too."""

    @property
    def parts(self) -> tuple[ReservedPart, ...]:
        """Where each of its containers would start."""
        return self.members or (ReservedPart(node=self.node, shares=self.shares),)

    def reserve(self, group: str) -> Reservation:
        """Return what keeps the room for it while its victims leave."""
        return Reservation(
            session=self.session,
            group=group,
            parts=self.parts,
            starts=None,
            displacing=True,
            victims=tuple(victim.session for victim in self.victims),
        )


class Plan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a pass decided: who starts where, and why the others wait."""

    placements: tuple[Placement, ...]
    waiting: Mapping[str, str]
    reservations: tuple[Reservation, ...] = ()
    preemptions: tuple[PreemptionPlan, ...] = ()
    returned: Mapping[str, str] = {}
    """For whom nothing is kept any more, since others have left and it may not start
    all the same: why."""
    decided: int = 0
    """About how many sessions it has decided."""
    complete: bool = True
    """Whether it came to the end of the queue before its limit."""
    windows: tuple[ReservedWindow, ...] = ()
    """Which windows it has heeded: what is reserved later may be in its way."""
    faults: Mapping[str, str] = {}
    """What the policies of other packages have done wrong, by resource group."""
