"""What would be: the same passes as in service, in a time that only goes by here.

Whoever asks, asks when the scenario says so; who starts, runs as long as it says. In
between, nothing happens, so time jumps from one end or arrival to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

import msgspec
from msgspec.structs import replace

from backendai_hub.core.errors import InvalidRequestError, TooLargeError
from backendai_hub.core.quotas import QuotaScope
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.scheduling.changes import charge_of
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.plugins import find_placement, find_sequencer
from backendai_hub.scheduling.scenario import (
    Arrival,
    Scenario,
    held_by,
    is_wide,
    take,
)
from backendai_hub.scheduling.shares import Path, ShareState, path_of
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    NodeState,
    PendingSession,
    Placement,
    Reservation,
    RunningSession,
    ScopeKey,
    Share,
    Snapshot,
)

MOST_EVENTS: Final = 20_000
MOST_WORK: Final = 4_000_000
"""Events times nodes; a pass looks at each of them."""

_DRAINED: Final = "is drained"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is different from how things are."""

    drain: tuple[str, ...] = ()
    add: tuple[Arrival, ...] = ()
    sequencer: str | None = None
    placement: str | None = None
    weights: Mapping[str, float] = {}
    """By name of a domain, project or user."""

    def apply(self, scenario: Scenario) -> Scenario:
        """Return what is simulated instead; raises for a name nobody has."""
        drained = self._drain(scenario)
        policies = {
            group: self._follow(policy)
            for group, policy in {
                **_default_groups(scenario),
                **scenario.groups,
            }.items()
        }
        arrivals = sorted((*scenario.arrivals, *self.add), key=lambda a: a.at)
        return replace(
            scenario,
            nodes=drained,
            arrivals=tuple(arrivals),
            groups=policies,
            weights={**scenario.weights, **self._weigh(scenario)},
        )

    def _drain(self, scenario: Scenario) -> tuple[NodeState, ...]:
        known = {node.name for node in scenario.nodes}
        for name in self.drain:
            if name not in known:
                raise InvalidRequestError(f"drain: there is no node {name[:128]!r}")
        return tuple(
            replace(node, closed=_DRAINED) if node.name in self.drain else node
            for node in scenario.nodes
        )

    def _follow(self, policy: GroupPolicy) -> GroupPolicy:
        return replace(
            policy,
            sequencer=self.sequencer or policy.sequencer,
            placement=self.placement or policy.placement,
        )

    def _weigh(self, scenario: Scenario) -> dict[Path, float]:
        changed: dict[Path, float] = {}
        for name, weight in self.weights.items():
            found = [
                path
                for path in _paths(scenario)
                if name in {path[-1], scenario.names.get(path[-1], path[-1])}
            ]
            if not found:
                raise InvalidRequestError(
                    f"weight: nobody of {name[:128]!r} asks for anything, so its weight"
                    " changes nothing"
                )
            changed.update(dict.fromkeys(found, weight))
        return changed


def _default_groups(scenario: Scenario) -> dict[str, GroupPolicy]:
    groups = {arrival.session.group for arrival in scenario.arrivals}
    if "" in groups:
        return {"": GroupPolicy()}
    return dict.fromkeys(groups, GroupPolicy())


def _paths(scenario: Scenario) -> set[Path]:
    found: set[Path] = set()
    for arrival in scenario.arrivals:
        path = path_of(arrival.session)
        found |= {path[:1], path[:2], path}
    return found


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """How long one session has waited; None is to the end, and longer."""

    session: str
    owner: Path
    request: ResourceSlots
    since: int
    seconds: int | None
    wide: bool
    added: bool
    reason: str = ""


class Moment(msgspec.Struct, frozen=True):
    """How things are from some time on."""

    at: int
    waiting: int
    running: int
    used: Mapping[str, int]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened."""

    begins: int
    ends: int
    waits: tuple[Wait, ...]
    moments: tuple[Moment, ...]
    capacity: Mapping[str, int]
    shares: Mapping[Path, float]
    """What each project has had, of the slot it has had most of, over its weight."""
    passes: int


def check_policies(change: Change) -> None:
    """Refuse an order or a placement that is not there."""
    if change.sequencer is not None:
        find_sequencer(change.sequencer)
    if change.placement is not None:
        find_placement(change.placement)


def check_bounds(scenario: Scenario) -> None:
    """Refuse what would take too long, in words."""
    if not scenario.nodes:
        raise InvalidRequestError("there is no node; nothing could ever start")
    events = 2 * len(scenario.arrivals) + len(scenario.running)
    if events > MOST_EVENTS:
        raise TooLargeError(
            f"{events} events are too many for one simulation; at most {MOST_EVENTS}:"
            " leave out some requests"
        )
    if events * len(scenario.nodes) > MOST_WORK:
        raise TooLargeError(
            f"{events} events on {len(scenario.nodes)} nodes are too much for one"
            f" simulation; events times nodes may be {MOST_WORK} at most: leave out"
            " some requests, or nodes of other resource groups"
        )


def simulate(
    scenario: Scenario, *, stop: Callable[[], bool] = lambda: False
) -> Outcome:
    """Let a scenario happen; raises :class:`TooLargeError` if *stop* says so."""
    check_bounds(scenario)
    return _World(scenario).run(stop)


class _World:
    """Nodes, queue and use at one moment of the simulation."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._now = scenario.begins
        self._nodes = {node.id: node for node in scenario.nodes}
        self._used: dict[ScopeKey, dict[str, int]] = {
            key: dict(scope.used) for key, scope in scenario.scopes.items()
        }
        self._queue: dict[str, Arrival] = {}
        self._running: dict[str, RunningSession] = {}
        self._charged: dict[str, tuple[tuple[ScopeKey, ...], Mapping[str, int]]] = {}
        self._number = count()
        self._events: list[tuple[int, int, str | Arrival]] = []
        self._reserved: tuple[Reservation, ...] = ()
        self._last_nodes: dict[str, str] = {}
        self._held: dict[str, int] = {}
        self._live: dict[Path, dict[str, int]] = {}
        self._shares: dict[Path, dict[str, float]] = {}
        self._reasons: Mapping[str, str] = {}
        self._waits: dict[str, Wait] = {}
        self._moments: list[Moment] = []
        self._passes = 0
        self._capacity = _capacity(scenario.nodes)
        for session in scenario.running:
            self._begin(session, {}, session.ends)
        for arrival in scenario.arrivals:
            self._events.append((arrival.at, next(self._number), arrival))
        heapify(self._events)

    def run(self, stop: Callable[[], bool]) -> Outcome:
        """Go from one event to the next until nothing happens any more."""
        while self._events:
            if stop():
                raise TooLargeError(
                    "this simulation takes too long; leave out some requests"
                )
            self._reach(self._events[0][0])
            while self._events and self._events[0][0] <= self._now:
                _, _, what = heappop(self._events)
                if isinstance(what, Arrival):
                    self._queue[what.session.id] = what
                else:
                    self._end(what)
            if self._queue:
                self._plan()
            self._note()
        for session_id, arrival in self._queue.items():
            why = self._reasons.get(session_id, "")
            self._waits[session_id] = _wait(arrival, None, why)
        return Outcome(
            begins=self._scenario.begins,
            ends=self._now,
            waits=tuple(self._waits.values()),
            moments=tuple(self._moments),
            capacity=self._capacity,
            shares=self._weigh(),
            passes=self._passes,
        )

    def _reach(self, moment: int) -> None:
        """Let time go by, and add up who has held what meanwhile."""
        passed = moment - self._now
        self._now = moment
        for path, held in self._live.items() if passed > 0 else ():
            sums = self._shares.setdefault(path[:2], {})
            for slot, amount in held.items():
                if amount:
                    sums[slot] = sums.get(slot, 0.0) + amount * passed

    def _note(self) -> None:
        used = {s: n for s, n in self._held.items() if n and s in self._capacity}
        moment = Moment(self._now, len(self._queue), len(self._running), used)
        self._moments.append(moment)

    # --- who comes and goes ----------------------------------------------------------

    def _begin(
        self, session: RunningSession, charge: Mapping[str, int], ends: int | None
    ) -> None:
        self._running[session.id] = session
        self._charged[session.id] = (session.scopes, charge or held_by(session))
        if ends is not None:
            end = max(ends, self._now)
            heappush(self._events, (end, next(self._number), session.id))
        self._hold(session, 1)

    def _hold(self, session: RunningSession, sign: int) -> None:
        path = path_of(_named(session))
        live = self._live.setdefault(path, {})
        for slot, amount in held_by(session).items():
            live[slot] = live.get(slot, 0) + sign * amount
            self._held[slot] = self._held.get(slot, 0) + sign * amount

    def _end(self, session_id: str) -> None:
        session = self._running.pop(session_id)
        self._hold(session, -1)
        for node, shares in session.holdings:
            if node in self._nodes:
                self._nodes[node] = take(self._nodes[node], shares, sign=1)
        scopes, charge = self._charged.pop(session_id)
        self._charge(scopes, charge, -1)

    def _charge(
        self, scopes: Iterable[ScopeKey], charge: Mapping[str, int], sign: int
    ) -> None:
        for used in (self._used[key] for key in scopes if key in self._used):
            for slot, amount in charge.items():
                used[slot] = max(0, used.get(slot, 0) + sign * amount)

    # --- one pass --------------------------------------------------------------------

    def _plan(self) -> None:
        self._passes += 1
        decided = plan(
            Snapshot(
                nodes=tuple(self._nodes.values()),
                queue=tuple(a.session for a in self._queue.values()),
                scopes=self._scopes(),
                groups=self._groups(),
                running=tuple(self._running.values()),
                reserved=self._reserved,
                now=self._now,
            )
        )
        self._reserved = decided.reservations
        self._reasons = decided.waiting
        for placement in decided.placements:
            self._start(placement)

    def _start(self, placement: Placement) -> None:
        arrival = self._queue.pop(placement.session)
        session = arrival.session
        pieces: Sequence[tuple[str, tuple[Share, ...]]] = [
            (m.node, m.shares) for m in placement.members
        ] or [(placement.node, placement.shares)]
        for node, shares in pieces:
            self._nodes[node] = take(self._nodes[node], shares)
        self._last_nodes[session.group] = placement.node
        lifetime = session.lifetime
        charge = charge_of(session)
        self._charge(session.scopes, charge, 1)
        held = RunningSession(
            id=session.id,
            owner_id=session.owner_id,
            scopes=session.scopes,
            holdings=tuple(pieces),
            group=session.group,
            started=self._now,
            ends=None if lifetime is None else self._now + lifetime,
            job_priority=session.job_priority,
        )
        ends = None if arrival.run_time is None else self._now + arrival.run_time
        self._begin(held, charge, ends)
        self._waits[session.id] = _wait(arrival, self._now - arrival.at, "")

    def _scopes(self) -> dict[ScopeKey, QuotaScope]:
        return {
            key: replace(scope, used=dict(self._used[key]))
            for key, scope in self._scenario.scopes.items()
        }

    def _groups(self) -> dict[str, GroupPolicy]:
        """Return each group's policy, with what its people hold by now."""
        policies = {**_default_groups(self._scenario), **self._scenario.groups}
        live = {path: held for path, held in self._live.items() if any(held.values())}
        found = {}
        for group, policy in policies.items():
            told = policy.shares if policy.shares is not None else ShareState()
            shares = replace(
                told,
                capacity=told.capacity or self._capacity,
                live=live,
                weights={**told.weights, **self._scenario.weights},
            )
            last = self._last_nodes.get(group, policy.last_node)
            found[group] = replace(policy, shares=shares, last_node=last)
        return found

    def _weigh(self) -> dict[Path, float]:
        """Return what each project has had, of what it has had most of."""
        lasted = max(1, self._now - self._scenario.begins)
        asking = {path_of(a.session)[:2] for a in self._scenario.arrivals}
        found = {}
        for path in sorted(asking | self._shares.keys()):
            parts = [
                amount / (self._capacity[slot] * lasted)
                for slot, amount in self._shares.get(path, {}).items()
                if self._capacity.get(slot)
            ]
            found[path] = max(parts, default=0.0) / self._scenario.weights.get(path, 1)
        return found


def _named(session: RunningSession) -> PendingSession:
    """Return what tells whose a session is."""
    return PendingSession(
        id=session.id,
        owner_id=session.owner_id,
        request=ResourceSlots(),
        references={},
        architecture="",
        scopes=session.scopes,
    )


def _capacity(nodes: Iterable[NodeState]) -> dict[str, int]:
    """Add up what there is; a node that is only drained stays part of it."""
    capacity: dict[str, int] = {}
    for node in nodes:
        if node.closed not in {"", _DRAINED}:
            continue
        for device in node.devices:
            for slot, amount in device.total.items():
                capacity[slot] = capacity.get(slot, 0) + amount
    return capacity


def _wait(arrival: Arrival, seconds: int | None, reason: str) -> Wait:
    session = arrival.session
    return Wait(
        session=session.id,
        owner=path_of(session),
        request=session.request,
        since=arrival.at,
        seconds=seconds,
        wide=is_wide(session.request),
        added=arrival.added,
        reason=reason,
    )
