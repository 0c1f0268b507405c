"""What a simulation begins with: made from a trace, or from how things are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from backendai_hub.core.quotas import COUNTERS, QuotaScope, ScopeKind
from backendai_hub.core.slots import (
    MILLI,
    ResourceSlots,
    SlotType,
    format_amount,
    slot_type,
)
from backendai_hub.scheduling.layouts import HOST_SLOTS
from backendai_hub.scheduling.shares import Path
from backendai_hub.scheduling.snapshot import (
    DeviceState,
    GroupPolicy,
    NodeState,
    PendingSession,
    ReservedWindow,
    RunningSession,
    ScopeKey,
    Share,
    Snapshot,
)
from backendai_hub.scheduling.trace import (
    Line,
    Record,
    TraceDevice,
    TraceError,
    TraceGroup,
    TraceLimit,
    TraceNode,
    TraceRequest,
    TraceRunning,
    TraceWeight,
    TraceWindow,
    read_amounts,
)

_RUNTIME = "trace"
_REFERENCES = {_RUNTIME: ""}
_WIDE = 4 * MILLI
_TOLD = (ScopeKind.DOMAIN, ScopeKind.PROJECT, ScopeKind.USER)


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A session that is asked for at some time, and how long it runs once it does."""

    at: int
    session: PendingSession
    run_time: int | None
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
    names: Mapping[str, str] = {}
    """What people call domains, projects, users and nodes, by id."""


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
        windows=tuple(_window(r) for r in records if isinstance(r, TraceWindow)),
        scopes=_count_use(_scopes(lines), running),
        groups={r.name: _policy(r) for r in records if isinstance(r, TraceGroup)},
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


def _window(record: TraceWindow) -> ReservedWindow:
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
    )
    return Arrival(at=record.submit, session=session, run_time=record.run_time)


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
        ends=record.remaining,
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


def _count_use(
    scopes: Mapping[ScopeKey, QuotaScope], running: Iterable[RunningSession]
) -> dict[ScopeKey, QuotaScope]:
    used: dict[ScopeKey, dict[str, int]] = {key: {} for key in scopes}
    for session in running:
        for key in session.scopes:
            for slot, amount in held_by(session).items() if key in used else ():
                used[key][slot] = used[key].get(slot, 0) + amount
    return {key: replace(scope, used=used[key]) for key, scope in scopes.items()}


def _policy(record: TraceGroup) -> GroupPolicy:
    return GroupPolicy(
        sequencer=record.sequencer,
        placement=record.placement,
        allow_split=record.allow_split,
        reserve_after=record.reserve_after,
        max_lifetime=record.max_lifetime,
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
) -> Scenario:
    """Build what is so at the moment: nobody new comes, and those who run end."""
    return Scenario(
        begins=snapshot.now,
        nodes=snapshot.nodes,
        arrivals=tuple(
            Arrival(
                at=snapshot.now,
                session=session,
                run_time=session.lifetime or usual_run_time,
            )
            for session in snapshot.queue
            if not session.hold
        ),
        running=snapshot.running,
        windows=snapshot.windows,
        scopes=snapshot.scopes,
        groups=snapshot.groups,
        names=names or {},
    )


def to_records(scenario: Scenario) -> Iterator[Record]:
    """Yield a scenario as a trace, with the names that people know."""
    names = scenario.names

    def named(key: str) -> str:
        return names.get(key, key)

    for group, policy in scenario.groups.items():
        yield TraceGroup(
            name=named(group),
            sequencer=policy.sequencer,
            placement=policy.placement,
            allow_split=policy.allow_split,
            reserve_after=policy.reserve_after,
            max_lifetime=policy.max_lifetime,
        )
    yield from _tell_limits(scenario.scopes.values())
    for node in scenario.nodes:
        yield _tell_node(node, named)
    for window in scenario.windows:
        yield _tell_window(window, scenario)
    there = {n.id: n for n in scenario.nodes}
    for running in scenario.running:
        for index, (node_id, shares) in enumerate(running.holdings):
            if node_id in there:
                yield _tell_running(running, index, there[node_id], shares, scenario)
    for arrival in scenario.arrivals:
        yield _tell_request(arrival, scenario)


def _tell_limits(scopes: Iterable[QuotaScope]) -> Iterator[TraceLimit]:
    """Yield limits of amounts; how many sessions there may be is no slot of nodes."""
    for scope in scopes:
        told: dict[str, str | int | float] = {
            slot: format_amount(slot, amount)
            for slot, amount in scope.limits.items()
            if amount is not None and slot not in COUNTERS
        }
        if told and scope.kind is not ScopeKind.KEYPAIR:
            yield TraceLimit(scope=str(scope.kind), name=scope.name, slots=told)


def _tell_node(node: NodeState, named: Any) -> TraceNode:
    return TraceNode(
        name=node.name,
        slots={},
        devices=tuple(
            TraceDevice(name=d.name, slots=dict(ResourceSlots(d.total).to_text()))
            for d in node.devices
            if any(d.total.values())
        ),
        group=named(node.group),
        architecture=node.architecture,
        labels=dict(node.labels),
        closed=node.closed,
    )


def _tell_window(window: ReservedWindow, scenario: Scenario) -> TraceWindow:
    names, begins = scenario.names, scenario.begins
    devices = {d.id: f"{n.name}/{d.name}" for n in scenario.nodes for d in n.devices}
    return TraceWindow(
        name=window.name,
        starts=max(0, window.starts - begins),
        ends=max(0, window.ends - begins),
        nodes=tuple(names.get(n, n) for n in window.nodes),
        devices=tuple(devices[d] for d in window.devices if d in devices),
        open_to=tuple(
            f"{kind.value}:{names.get(i, i)}"
            for kind, i in window.open_to
            if kind in _TOLD
        ),
        notice=window.notice,
    )


def _who(scopes: tuple[ScopeKey, ...], names: Mapping[str, str]) -> dict[str, str]:
    found = {kind: names.get(i, i) for kind, i in scopes}
    return {
        "owner": found.get(ScopeKind.USER, "nobody"),
        "project": found.get(ScopeKind.PROJECT, "default"),
        "domain": found.get(ScopeKind.DOMAIN, "default"),
    }


def _tell_running(
    running: RunningSession,
    index: int,
    node: NodeState,
    shares: Sequence[Share],
    scenario: Scenario,
) -> TraceRunning:
    devices = {d.id: d.name for d in node.devices}
    held: dict[str, dict[str, str | int | float]] = {}
    for share in shares:
        slots = held.setdefault(devices[share.device], {})
        slots[share.slot] = format_amount(share.slot, share.amount)
    ends = running.ends
    return TraceRunning(
        id=running.id if not index else f"{running.id}/{index}",
        group=scenario.names.get(running.group, running.group),
        node=node.name,
        held=held,
        remaining=None if ends is None else max(0, ends - scenario.begins),
        **_who(running.scopes, scenario.names),
    )


def _tell_request(arrival: Arrival, scenario: Scenario) -> TraceRequest:
    session = arrival.session
    return TraceRequest(
        id=session.id,
        submit=max(0, arrival.at - scenario.begins),
        slots=dict(session.request.to_text()),
        run_time=arrival.run_time,
        lifetime=session.lifetime,
        priority=session.priority,
        architecture=session.architecture,
        nodes=tuple(scenario.names.get(n, n) for n in session.nodes),
        labels=dict(session.labels),
        group=scenario.names.get(session.group, session.group),
        **_who(session.scopes, scenario.names),
    )


# --- taking and giving ---------------------------------------------------------------


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


def is_wide(request: ResourceSlots) -> bool:
    """Tell whether a request is for at least four accelerators."""
    return any(
        amount >= _WIDE and slot not in HOST_SLOTS and slot_type(slot) is SlotType.COUNT
        for slot, amount in request.items()
    )
