"""Resource groups, presets, and the kinds of resources there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from backendai_hub.core.fields import (
    Choice,
    Document,
    Flag,
    Line,
    Number,
    Page,
    Reference,
    Size,
    Slots,
    Slug,
    drop_gone,
    field,
)
from backendai_hub.core.sessions import SessionType

_MOST = (1 << 31) - 1


class Preemption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether and how waiting sessions may displace running ones."""

    enabled: bool = False
    order: Literal["oldest", "newest", "fewest-sessions", "smallest-resources"] = (
        "oldest"
    )
    mode: Literal["terminate", "reschedule"] = "terminate"
    min_runtime: Annotated[int, msgspec.Meta(ge=0, le=_MOST)] = 0
    grace_seconds: Annotated[int, msgspec.Meta(ge=0, le=3600)] = 30
    """How long who has to leave may save before it is ended by force."""
    victim_scope: Literal["user", "project", "domain", "resource-group"] = "user"


class SchedulerOptions(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How a group's queue is worked off.

    ``pending_timeout`` is seconds; 0 is off. ``reserve_after`` is how many seconds the
    first who finds no room waits before devices are kept for it; none is never.
    ``reserve_wide_after`` is the same for requests of four devices or more and for
    clusters, if that is sooner: at once, unless it is set; none is as for the others.
    ``agent_selection_strategy`` names a placement policy, ours or another package's.
    ``rack_label`` is the label that tells which nodes are close to each other.
    """

    allowed_session_types: Annotated[
        tuple[SessionType, ...], msgspec.Meta(min_length=1)
    ] = (SessionType.INTERACTIVE, SessionType.BATCH, SessionType.INFERENCE)
    pending_timeout: Annotated[int, msgspec.Meta(ge=0, le=_MOST)] = 0
    config: dict[str, Any] = {}
    agent_selection_strategy: Annotated[
        str, msgspec.Meta(pattern="^[a-z][a-z0-9_.-]{0,63}$")
    ] = "fragmentation"
    agent_selector_config: dict[str, Any] = {}
    allow_fractional_resource_fragmentation: bool = False
    reserve_after: Annotated[int, msgspec.Meta(ge=0, le=_MOST)] | None = 3600
    reserve_wide_after: Annotated[int, msgspec.Meta(ge=0, le=_MOST)] | None = 0
    route_cleanup_target_statuses: tuple[str, ...] = ("unhealthy",)
    preemption: Preemption = Preemption()
    rack_label: Annotated[str, msgspec.Meta(min_length=1, max_length=63)] = "rack"


_GONE = {
    "preemption.preemptible_priority": (
        "has no effect: who leaves is whose job_priority is lower, whatever the"
        " priority in the queue is; leave it out, and mark sessions as not preemptible"
        " that are to stay"
    )
}


def read_options(stored: Mapping[str, Any] | None) -> SchedulerOptions:
    """Read a group's options as they are stored, by whatever version."""
    return msgspec.convert(drop_gone(stored or {}, _GONE), SchedulerOptions)


class FairShare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How past use counts against future turns."""

    half_life_days: Annotated[float, msgspec.Meta(gt=0, le=_MOST)] = 7
    lookback_days: Annotated[int, msgspec.Meta(gt=0, le=36_500)] = 28
    decay_unit_days: Annotated[int, msgspec.Meta(gt=0, le=36_500)] = 1
    default_weight: Annotated[float, msgspec.Meta(gt=0, le=_MOST)] = 1.0
    resource_weights: dict[str, Annotated[float, msgspec.Meta(ge=0, le=_MOST)]] = {}


class SessionOptions(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What a session gets that does not say; fixed when it is asked for."""

    priority: Annotated[int, msgspec.Meta(ge=0, le=100)] = 10
    job_priority: Annotated[int, msgspec.Meta(ge=-_MOST, le=_MOST)] = 0
    handler_policies: dict[str, Any] = {}


class DeploymentOptions(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What a deployment gets that does not say."""

    handler_policies: dict[str, Any] = {}


class ResourceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that are scheduled together.

    Who may use it are the domains, projects and keypairs it is opened to: a user's
    groups are the union of those of their domain, project and keypair.
    """

    id: str
    name: Annotated[str, field(Slug(), "Its name; it never changes.", once=True)]
    description: Annotated[str, field(Line(), "What it is.")] = ""
    is_active: Annotated[
        bool, field(Flag(), "Inactive: nothing is scheduled; what runs goes on.")
    ] = True
    is_public: Annotated[
        bool,
        field(
            Flag(),
            "Not public: kept for system sessions, and hidden from people's lists.",
        ),
    ] = True
    is_default: Annotated[
        bool, field(Flag(), "Nodes that name no other group join it; at most one.")
    ] = False
    scheduler: Annotated[
        str,
        field(
            Slug(),
            "The order of its queue within one priority: fifo, lifo, drf, fair-share,"
            " or that of a package that is installed.",
        ),
    ] = "fifo"
    scheduler_opts: Annotated[
        SchedulerOptions,
        field(
            Document(form=SchedulerOptions, gone=_GONE),
            "Session types, pending timeout, choice of nodes, preemption.",
        ),
    ] = SchedulerOptions()
    use_host_network: Annotated[
        bool,
        field(
            Flag(),
            "Whether its sessions share their node's network; the operator of each node"
            " has to allow it, too.",
        ),
    ] = False
    driver: Annotated[
        str, field(Choice(of=("static",)), "Where its nodes come from.")
    ] = "static"
    driver_opts: Annotated[
        dict[str, Any],
        field(Document(form=dict[str, Any]), "Settings of the driver."),
    ] = {}
    wsproxy_addr: Annotated[
        str, field(Line(most=1024), "The app proxy that serves the group.")
    ] = ""
    wsproxy_api_token: Annotated[
        str | None,
        field(
            Page(most=1024), "The app proxy's token; write only. Empty takes it away."
        ),
    ] = ""
    has_wsproxy_api_token: bool = False
    fair_share_spec: Annotated[
        FairShare,
        field(Document(form=FairShare), "How past use counts."),
    ] = FairShare()
    default_session_options: Annotated[
        SessionOptions,
        field(Document(form=SessionOptions), "What a session gets that does not say."),
    ] = SessionOptions()
    default_deployment_options: Annotated[
        DeploymentOptions,
        field(
            Document(form=DeploymentOptions),
            "What a deployment gets that does not say.",
        ),
    ] = DeploymentOptions()
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class GroupAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Who may use a resource group: a domain, project or keypair, by name."""

    kind: Literal["domain", "project", "keypair"]
    name: str
    id: str


class ResourcePreset(msgspec.Struct, frozen=True, kw_only=True):
    """Amounts that go together, under one name."""

    id: str
    name: Annotated[str, field(Slug(), "Its name, unique among those of its group.")]
    description: Annotated[str, field(Line(), "What it is for.")] = ""
    resource_slots: Annotated[
        dict[str, str], field(Slots(limits=False), "The amounts.")
    ]
    shared_memory: Annotated[
        str, field(Size(), "Shared memory, which is part of mem.")
    ] = "0"
    resource_group: Annotated[
        str | None,
        field(
            Reference(noun="resource-group", optional=True),
            "The group it is for; without one, for all.",
            once=True,
        ),
    ] = None
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class NumberFormat(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How amounts are written."""

    binary: bool = False
    round_length: Annotated[int, msgspec.Meta(ge=0, le=9)] = 0


class ResourceSlotType(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of resource. Nodes add what they have and nobody knew."""

    id: str
    name: Annotated[
        str,
        field(Line(most=128), "The slot's name, such as cuda.device.", once=True),
    ]
    slot_type: Annotated[
        str,
        field(
            Choice(of=("count", "bytes", "unique", "unified")),
            "How it is counted.",
            once=True,
        ),
    ] = "count"
    required: Annotated[
        bool, field(Flag(), "Whether every session needs some of it.")
    ] = False
    enabled: Annotated[bool, field(Flag(), "Whether sessions may ask for it.")] = True
    display_name: Annotated[str, field(Line(most=64), "What people call it.")] = ""
    description: Annotated[str, field(Line(), "What it is.")] = ""
    display_unit: Annotated[
        str, field(Line(most=32), "The unit shown, such as Core or GiB.")
    ] = ""
    display_icon: Annotated[str, field(Line(most=64), "The icon's name.")] = ""
    number_format: Annotated[
        NumberFormat, field(Document(form=NumberFormat), "How amounts are written.")
    ] = NumberFormat()
    rank: Annotated[
        int, field(Number(), "Where it stands in lists; lower comes first.")
    ] = 1000
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""
