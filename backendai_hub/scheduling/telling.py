"""How things are, written as a trace that can be simulated elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from backendai_hub.core.quotas import COUNTERS, QuotaScope, ScopeKind
from backendai_hub.core.slots import ResourceSlots, format_amount
from backendai_hub.scheduling.held import owner_of
from backendai_hub.scheduling.scenario import Arrival, Scenario, find_weights
from backendai_hub.scheduling.shares import Path, path_of
from backendai_hub.scheduling.snapshot import (
    NodeState,
    ReservedWindow,
    RunningSession,
    ScopeKey,
    ScopeQuota,
    Share,
)
from backendai_hub.scheduling.trace_records import (
    Amounts,
    Record,
    TraceDevice,
    TraceGroup,
    TraceLimit,
    TraceMember,
    TraceNode,
    TraceQuota,
    TraceRequest,
    TraceRunning,
    TraceWeight,
    TraceWindow,
)

_TOLD = (ScopeKind.DOMAIN, ScopeKind.PROJECT, ScopeKind.USER)


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
            reserve_wide_after=policy.reserve_wide_after,
            max_lifetime=policy.max_lifetime,
            preemption=policy.preemption,
        )
        yield from _tell_quotas(group, policy.quotas, named)
    yield from _tell_limits(scenario.scopes.values())
    yield from _tell_weights(scenario, named)
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


def _tell_weights(
    scenario: Scenario, named: Callable[[str], str]
) -> Iterator[TraceWeight]:
    """Yield what those weigh who ask or run; of a name in several places, the first."""
    people = {path_of(arrival.session) for arrival in scenario.arrivals}
    people |= {owner_of(running) for running in scenario.running}
    there = {user[:depth] for user in people for depth in range(1, len(user) + 1)}
    told: dict[tuple[ScopeKind, str], float] = {}
    for path, weight in sorted(find_weights(scenario).items()):
        if path in there:
            told.setdefault((_TOLD[len(path) - 1], named(path[-1])), weight)
    for (kind, name), weight in told.items():
        yield TraceWeight(scope=str(kind), name=name, weight=weight)


def _tell_quotas(
    group: str, quotas: Mapping[Path, ScopeQuota], named: Callable[[str], str]
) -> Iterator[TraceQuota]:
    for path, quota in quotas.items():
        domain, project, owner = (*map(named, path), None, None)[:3]
        yield TraceQuota(
            group=named(group),
            domain=domain or "default",
            project=project,
            owner=owner,
            guaranteed=_write(quota.guaranteed),
            maximum=_write(quota.maximum),
        )


def _write(amounts: Mapping[str, int]) -> Amounts:
    return {slot: format_amount(slot, amount) for slot, amount in amounts.items()}


def _tell_node(node: NodeState, named: Callable[[str], str]) -> TraceNode:
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
        ran=max(0, scenario.begins - running.started),
        job_priority=running.job_priority,
        preemptible=running.preemptible,
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
        members=tuple(
            TraceMember(name=m.name, slots=dict(m.request.to_text()))
            for m in session.members
        ),
        layout=session.layout,
        waited=arrival.waited,
        job_priority=session.job_priority,
        preemptible=session.preemptible,
        group=scenario.names.get(session.group, session.group),
        **_who(session.scopes, scenario.names),
    )
