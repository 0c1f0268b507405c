"""The records a trace is made of: nodes, requests, what runs, and the rules."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from backendai_hub.core.groups import Preemption

_MOST: Final = 10_000_000_000

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
JobPriority = Annotated[int, msgspec.Meta(ge=-_MOST, le=_MOST)]
Amounts = dict[str, str | int | float]


class _Record(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="kind",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """One line of a trace."""


class TraceDevice(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Devices of a node that are alike."""

    name: Text
    slots: Amounts
    count: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1


class TraceNode(_Record, frozen=True, kw_only=True, tag="node"):
    """A node. ``slots`` is what its processors and memory are, ``devices`` the rest."""

    name: Text
    slots: Amounts
    devices: tuple[TraceDevice, ...] = ()
    group: str = ""
    architecture: str = "x86_64"
    labels: dict[str, str] = {}
    closed: str = ""
    """Why nothing new starts there, such as that it is drained."""


class TraceSession(_Record, frozen=True, kw_only=True):
    """What is said of a session whether it runs or waits."""

    id: Text
    owner: Text
    project: Text = "default"
    domain: Text = "default"
    group: str = ""
    job_priority: JobPriority = 0
    preemptible: bool = True
    """Whether it may have to go for others once it runs."""


class TraceMember(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One container of a session that has several."""

    name: Text
    slots: Amounts


class TraceRequest(TraceSession, frozen=True, kw_only=True, tag="request"):
    """Somebody asks for something at some time, and uses it for so long.

    ``lifetime`` is how long it may run, if it says so; ``run_time`` how long it does.
    ``slots`` is what all ``members`` ask for together. ``waited`` is how long it has
    really waited, where that was recorded.
    """

    submit: Seconds
    slots: Amounts
    run_time: Seconds | None = None
    lifetime: Seconds | None = None
    priority: Annotated[int, msgspec.Meta(ge=0, le=100)] = 10
    architecture: str = "x86_64"
    nodes: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    members: tuple[TraceMember, ...] = ()
    layout: Literal["one-node", "spread", "pack"] = "one-node"
    waited: Seconds | None = None


class TraceRunning(TraceSession, frozen=True, kw_only=True, tag="running"):
    """What runs when the trace begins, on which devices, and for how much longer."""

    node: Text
    held: dict[str, Amounts]
    remaining: Seconds | None = None
    ran: Seconds = 0
    """For how long it runs already."""


class TraceLimit(_Record, frozen=True, kw_only=True, tag="limit"):
    """How much a domain, project or user may use at once."""

    scope: Annotated[str, msgspec.Meta(pattern="^(domain|project|user)$")]
    name: Text
    slots: Amounts


class TraceQuota(_Record, frozen=True, kw_only=True, tag="quota"):
    """What a domain, a project of it, or a user of that is guaranteed, and has at most.

    In one resource group; without a project it is the domain's, without an owner the
    project's.
    """

    group: str = ""
    domain: Text = "default"
    project: Text | None = None
    owner: Text | None = None
    guaranteed: Amounts = {}
    maximum: Amounts = {}

    @property
    def path(self) -> tuple[str, ...]:
        """Name whose it is, from the domain down."""
        told = (self.domain, self.project, self.owner)
        return tuple(name for name in told if name is not None)


class TraceWeight(_Record, frozen=True, kw_only=True, tag="weight"):
    """How much a domain, project or user is entitled to beside others."""

    scope: Annotated[str, msgspec.Meta(pattern="^(domain|project|user)$")]
    name: Text
    weight: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]


class TraceGroup(_Record, frozen=True, kw_only=True, tag="group"):
    """How one resource group's queue is worked off."""

    name: str = ""
    sequencer: Text = "fifo"
    placement: Text = "dispersed"
    allow_split: bool = False
    reserve_after: Seconds | None = 3600
    reserve_wide_after: Seconds | None = 0
    max_lifetime: Seconds | None = None
    preemption: Preemption = Preemption()


class TraceWindow(_Record, frozen=True, kw_only=True, tag="window"):
    """Nodes kept for some projects, domains or users (``project:vision``), or nobody.

    ``notice`` is how long before it begins those are kept off who do not say how long
    they run.
    """

    name: Text
    starts: Seconds
    ends: Seconds
    nodes: tuple[str, ...]
    open_to: tuple[
        Annotated[str, msgspec.Meta(pattern="^(domain|project|user):.")], ...
    ] = ()
    devices: tuple[str, ...] = ()
    """Which devices of the nodes, such as ``gpu-01/gpu0``; without any, all."""
    notice: Seconds = 86_400


Record = (
    TraceNode
    | TraceRequest
    | TraceRunning
    | TraceLimit
    | TraceQuota
    | TraceWeight
    | TraceGroup
    | TraceWindow
)
