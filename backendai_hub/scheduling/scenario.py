"""What a simulation begins with: made from a trace, or from how things are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from backendai_hub.core.quotas import QuotaScope, ScopeKind
from backendai_hub.core.slots import (
    MILLI,
    ResourceSlots,
    SlotType,
    slot_type,
)
from backendai_hub.scheduling.held import held_by, take
from backendai_hub.scheduling.layouts import HOST_SLOTS
from backendai_hub.scheduling.shares import Path
from backendai_hub.scheduling.snapshot import (
    DeviceState,
    GroupPolicy,
    Member,
    NodeState,
    PendingSession,
    ReservedWindow,
    RunningSession,
    ScopeKey,
    ScopeQuota,
    Share,
    Snapshot,
)
from backendai_hub.scheduling.trace import Line, TraceError, read_amounts
from backendai_hub.scheduling.trace_records import (
    Record,
    TraceGroup,
    TraceLimit,
    TraceNode,
    TraceQuota,
    TraceRequest,
    TraceRunning,
    TraceWeight,
    TraceWindow,
)

_RUNTIME = "trace"
_REFERENCES = {_RUNTIME: ""}
_WIDE = 4 * MILLI


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A session that is asked for at some time, and how long it runs once it does."""

    at: int
    session: PendingSession
    run_time: int | None
    waited: int | None = None
    """How long it has really waited, where that was recorded."""
    added: bool = False
    """Whether it is one of those that a question adds."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes, who runs on them, who comes when, and by which rules."""

    begins: int
    nodes: tuple[NodeState, ...]
    arrivals: tuple[Arrival, ...]
    running: tuple[RunningSession, ...] = ()
    windows: tuple[ReservedWindow, ...] = ()
    scopes: Mapping[ScopeKey, QuotaScope] = {}
    """Limits, with what those who run use of them."""
    groups: Mapping[str, GroupPolicy] = {}
    weights: Mapping[Path, float] = {}
    held: int = 0
    """How many others wait who are held: they take no part."""
    projects: tuple[Path, ...] = ()
    """Projects that could ask for something, too, after their domains."""
    names: Mapping[str, str] = {}
    """What people call domains, projects, users and nodes, by id."""


def find_weights(scenario: Scenario) -> dict[Path, float]:
    """Return who weighs what, by a scenario's own word or else by that of a group."""
    found: dict[Path, float] = {}
    for policy in scenario.groups.values():
        if policy.shares is not None:
            found = {**policy.shares.weights, **found}
    return {**found, **scenario.weights}


def default_groups(scenario: Scenario) -> dict[str, GroupPolicy]:
    """Return a policy for every group that somebody asks for."""
    groups = {arrival.session.group for arrival in scenario.arrivals}
    if "" in groups:
        return {"": GroupPolicy()}
    return dict.fromkeys(groups, GroupPolicy())


# --- from a trace --------------------------------------------------------------------


def from_trace(lines: Sequence[Line]) -> Scenario:
    """Build what a trace tells."""
    records = [line.record for line in lines]
    quotas = _quotas(records)
    nodes = {r.name: _node(r) for r in records if isinstance(r, TraceNode)}
    running = []
    for line in lines:
        if isinstance(line.record, TraceRunning):
            held = _running(line.number, line.record, nodes)
            nodes[line.record.node] = _take(
                line.number, nodes[line.record.node], held.holdings[0][1]
            )
            running.append(held)
    known: dict[ResourceSlots, ResourceSlots] = {}
    arrivals = [_arrival(r, known) for r in records if isinstance(r, TraceRequest)]
    return Scenario(
        begins=0,
        nodes=tuple(nodes.values()),
        arrivals=tuple(sorted(arrivals, key=lambda a: a.at)),
        running=tuple(running),
        windows=tuple(
            _window(line.number, line.record, nodes)
            for line in lines
            if isinstance(line.record, TraceWindow)
        ),
        scopes=count_use(_scopes(lines), running),
        groups=_policies(records, quotas),
        weights=_weights(records),
    )


def _node(record: TraceNode) -> NodeState:
    slots = read_amounts(0, "slots", record.slots)
    devices = [_device(record.name, "host", dict(slots), kind="host")] if slots else []
    for device in record.devices:
        total = dict(read_amounts(0, "devices", device.slots))
        for i in range(device.count):
            name = device.name if device.count == 1 else f"{device.name}{i}"
            kind = "host" if name == "host" else "accelerator"
            devices.append(_device(record.name, name, total, kind=kind))
    return NodeState(
        id=record.name,
        name=record.name,
        group=record.group,
        runtime=_RUNTIME,
        architecture=record.architecture,
        devices=tuple(devices),
        labels=record.labels,
        closed=record.closed,
    )


def _window(
    number: int, record: TraceWindow, nodes: Mapping[str, NodeState]
) -> ReservedWindow:
    there = {device.id for name in record.nodes for device in nodes[name].devices}
    for device in record.devices:
        if device not in there:
            raise TraceError(
                f"line {number}: devices: its nodes have no {device!r}; write them as"
                f" {min(there, default='node/device')}"
            )
    told = (name.partition(":") for name in record.open_to)
    return ReservedWindow(
        name=record.name,
        starts=record.starts,
        ends=record.ends,
        nodes=record.nodes,
        devices=record.devices,
        open_to=tuple((ScopeKind(kind), name) for kind, _, name in told),
        notice=record.notice,
    )


def _device(node: str, name: str, total: dict[str, int], *, kind: str) -> DeviceState:
    return DeviceState(
        id=f"{node}/{name}",
        name=name,
        total=total,
        free=total,
        kind=kind,
        whole=any(slot.endswith(".device") for slot in total),
    )


def _scopes_of(record: TraceRequest | TraceRunning) -> tuple[ScopeKey, ...]:
    return (
        (ScopeKind.DOMAIN, record.domain),
        (ScopeKind.PROJECT, record.project),
        (ScopeKind.USER, record.owner),
    )


def _arrival(
    record: TraceRequest, known: dict[ResourceSlots, ResourceSlots]
) -> Arrival:
    """Read a request; those that ask for the same share it, which saves time."""
    request = read_amounts(0, "slots", record.slots)
    session = PendingSession(
        id=record.id,
        owner_id=record.owner,
        request=known.setdefault(request, request),
        references=_REFERENCES,
        architecture=record.architecture,
        scopes=_scopes_of(record),
        group=record.group,
        priority=record.priority,
        since=record.submit,
        lifetime=record.lifetime,
        nodes=record.nodes,
        labels=record.labels,
        job_priority=record.job_priority,
        preemptible=record.preemptible,
        members=tuple(
            Member(name=m.name, request=read_amounts(0, "members", m.slots))
            for m in record.members
        ),
        layout=record.layout,
    )
    return Arrival(
        at=record.submit,
        session=session,
        run_time=record.run_time,
        waited=record.waited,
    )


def _running(
    number: int, record: TraceRunning, nodes: Mapping[str, NodeState]
) -> RunningSession:
    known = {d.name: d.id for d in nodes[record.node].devices}
    shares = []
    for name, given in record.held.items():
        if name not in known:
            raise TraceError(f"line {number}: held: {record.node} has no {name!r}")
        amounts = read_amounts(number, "held", given)
        shares += [Share(known[name], slot, n) for slot, n in amounts.items()]
    return RunningSession(
        id=record.id,
        owner_id=record.owner,
        scopes=_scopes_of(record),
        holdings=((record.node, tuple(shares)),),
        group=record.group,
        started=-record.ran,
        ends=record.remaining,
        job_priority=record.job_priority,
        preemptible=record.preemptible,
    )


def _take(number: int, node: NodeState, shares: Iterable[Share]) -> NodeState:
    try:
        return take(node, shares)
    except ValueError as error:
        raise TraceError(f"line {number}: held: {error}") from None


def _scopes(lines: Sequence[Line]) -> dict[ScopeKey, QuotaScope]:
    scopes = {}
    for line in lines:
        record = line.record
        if isinstance(record, TraceLimit):
            kind = ScopeKind(record.scope)
            limits = dict(read_amounts(line.number, "slots", record.slots).items())
            zero = {slot: 0 for slot in record.slots if slot not in limits}
            scopes[kind, record.name] = QuotaScope(
                kind=kind,
                id=record.name,
                name=record.name,
                limits={**limits, **zero},
                used={},
            )
    return scopes


def count_use(
    scopes: Mapping[ScopeKey, QuotaScope], running: Iterable[RunningSession]
) -> dict[ScopeKey, QuotaScope]:
    """Return limits with what these use of them."""
    used: dict[ScopeKey, dict[str, int]] = {key: {} for key in scopes}
    for session in running:
        for key in session.scopes:
            for slot, amount in held_by(session).items() if key in used else ():
                used[key][slot] = used[key].get(slot, 0) + amount
    return {key: replace(scope, used=used[key]) for key, scope in scopes.items()}


def _quotas(records: Iterable[Record]) -> dict[str, dict[Path, ScopeQuota]]:
    """Return what scopes are guaranteed and have at most, by group."""
    found: dict[str, dict[Path, ScopeQuota]] = {}
    for record in records:
        if isinstance(record, TraceQuota):
            found.setdefault(record.group, {})[record.path] = ScopeQuota(
                guaranteed=dict(read_amounts(0, "guaranteed", record.guaranteed)),
                maximum=dict(read_amounts(0, "maximum", record.maximum)),
            )
    return found


def _policies(
    records: Iterable[Record], quotas: Mapping[str, Mapping[Path, ScopeQuota]]
) -> dict[str, GroupPolicy]:
    told = {r.name: _policy(r) for r in records if isinstance(r, TraceGroup)}
    return {
        group: replace(told.get(group, GroupPolicy()), quotas=quotas.get(group, {}))
        for group in (*told, *(group for group in quotas if group not in told))
    }


def _policy(record: TraceGroup) -> GroupPolicy:
    return GroupPolicy(
        sequencer=record.sequencer,
        placement=record.placement,
        allow_split=record.allow_split,
        reserve_after=record.reserve_after,
        reserve_wide_after=record.reserve_wide_after,
        max_lifetime=record.max_lifetime,
        preemption=record.preemption,
    )


def _weights(records: Iterable[Record]) -> dict[Path, float]:
    """Return weights by path; a name counts wherever somebody of it asks."""
    told = {(r.scope, r.name): r.weight for r in records if isinstance(r, TraceWeight)}
    return {
        path: told[kind, path[-1]]
        for path, kind in paths_in(records)
        if (kind, path[-1]) in told
    }


def paths_in(records: Iterable[Record]) -> Iterator[tuple[Path, str]]:
    """Yield every domain, project and user of a trace, with what they are."""
    for record in records:
        if isinstance(record, (TraceRequest, TraceRunning)):
            path = (record.domain, record.project, record.owner)
            yield path[:1], "domain"
            yield path[:2], "project"
            yield path, "user"


# --- from how things are -------------------------------------------------------------


def from_snapshot(
    snapshot: Snapshot,
    *,
    usual_run_time: int,
    names: Mapping[str, str] | None = None,
    starts: Mapping[str, int] = {},
) -> Scenario:
    """Build what is so at the moment: nobody new comes, and those who run end.

    Who is held does not ask until the time in *starts*, by id; without one, never.
    """
    asking = [s for s in snapshot.queue if not s.hold or s.id in starts]
    return Scenario(
        begins=snapshot.now,
        nodes=snapshot.nodes,
        arrivals=tuple(
            Arrival(
                at=max(snapshot.now, starts.get(session.id, 0)),
                session=replace(session, hold=""),
                run_time=session.lifetime or usual_run_time,
            )
            for session in asking
        ),
        running=snapshot.running,
        windows=snapshot.windows,
        scopes=snapshot.scopes,
        groups=snapshot.groups,
        held=len(snapshot.queue) - len(asking),
        names=names or {},
    )


# --- taking and giving ---------------------------------------------------------------


def is_wide(request: ResourceSlots) -> bool:
    """Tell whether a request is for at least four accelerators."""
    return any(
        amount >= _WIDE and slot not in HOST_SLOTS and slot_type(slot) is SlotType.COUNT
        for slot, amount in request.items()
    )
