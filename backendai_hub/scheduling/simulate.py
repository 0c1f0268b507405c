"""What would be: the same passes as in service, in a time that only goes by here.

Whoever asks, asks when the scenario says so; who starts, runs as long as it says, or
until it is displaced. In between, nothing happens, so time jumps from one event to the
next: an end, an arrival, the end of a reserved window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from backendai_hub.core.errors import InvalidRequestError, TooLargeError
from backendai_hub.core.quotas import QuotaScope
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.scheduling.changes import charge_of
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.kept_nodes import KeptNodes
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.scenario import (
    Arrival,
    Scenario,
    default_groups,
    held_by,
    is_wide,
)
from backendai_hub.scheduling.shares import Path, ShareState, path_of
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    NodeState,
    PendingSession,
    Placement,
    Plan,
    PreemptionPlan,
    Reservation,
    RunningSession,
    ScopeKey,
    Share,
    Snapshot,
)
from backendai_hub.scheduling.what_if import DRAINED

MOST_EVENTS: Final = 50_000
MOST_WORK: Final = 20_000_000
"""Events times nodes; a pass looks at each of them."""

_MOST_ROUNDS: Final = 8
"""How often at one moment others are displaced for those who wait."""


class Nodes(Protocol):
    """What knows at each moment what nodes have left."""

    @property
    def states(self) -> tuple[NodeState, ...]:
        """Return the nodes, to plan for."""
        ...

    def build(self, nodes: Sequence[NodeState]) -> Cluster:
        """Return arrays of some of them, to use up."""
        ...

    def take(self, node: str, shares: Sequence[Share], owner: str) -> None:
        """Note that a container has started."""
        ...

    def give(self, node: str, shares: Sequence[Share], owner: str) -> None:
        """Note that it has ended."""
        ...


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
    displaced: int = 0
    """How often a session had to go for another."""


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
    scenario: Scenario,
    *,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[float], None] = lambda part: None,
    keep: Callable[[Sequence[NodeState]], Nodes] = KeptNodes,
) -> Outcome:
    """Let a scenario happen; raises :class:`TooLargeError` if *stop* says so.

    *progress* is told which part of the sessions has ended.
    """
    check_bounds(scenario)
    return _World(scenario, keep(scenario.nodes)).run(stop, progress)


class _World:
    """Nodes, queue and use at one moment of the simulation."""

    def __init__(self, scenario: Scenario, nodes: Nodes) -> None:
        self._scenario = scenario
        self._now = scenario.begins
        self._nodes = nodes
        self._there = {node.id for node in scenario.nodes}
        self._use = _Use(scenario)
        self._policies = {**default_groups(scenario), **scenario.groups}
        self._queue: dict[str, Arrival] = {}
        self._running: dict[str, _Running] = {}
        self._number = count()
        self._events: list[tuple[int, int, Arrival | _Running | None]] = []
        self._reserved: tuple[Reservation, ...] = ()
        self._last_nodes: dict[str, str] = {}
        self._reasons: Mapping[str, str] = {}
        self._waits: dict[str, Wait] = {}
        self._moments: list[Moment] = []
        self._passes = self._displaced = self._ended = 0
        for session in scenario.running:
            self._begin(_Running(session, None, held_by(session)), session.ends)
        for arrival in scenario.arrivals:
            self._events.append((arrival.at, next(self._number), arrival))
        for window in scenario.windows:
            if window.ends > self._now:
                self._events.append((window.ends, next(self._number), None))
        heapify(self._events)

    def run(
        self, stop: Callable[[], bool], progress: Callable[[float], None]
    ) -> Outcome:
        """Go from one event to the next until nothing happens any more."""
        sessions = len(self._scenario.arrivals) + len(self._running)
        while (moment := self._next()) is not None:
            if stop():
                raise TooLargeError(
                    "this simulation takes too long; leave out some requests"
                )
            self._reach(moment)
            self._happen()
            for _ in range(_MOST_ROUNDS):
                if not self._queue or not self._plan():
                    break
            self._note()
            progress(self._ended / max(1, sessions))
        for session_id, arrival in self._queue.items():
            if session_id not in self._waits:
                why = self._reasons.get(session_id, "")
                self._waits[session_id] = _wait(arrival, None, why)
        return Outcome(
            begins=self._scenario.begins,
            ends=self._now,
            waits=tuple(self._waits.values()),
            moments=tuple(self._moments),
            capacity=self._use.capacity,
            shares=self._use.weigh(max(1, self._now - self._scenario.begins)),
            passes=self._passes,
            displaced=self._displaced,
        )

    def _next(self) -> int | None:
        """Tell when something happens next; the ends of the displaced do not."""
        while self._events:
            at, _, what = self._events[0]
            if not isinstance(what, _Running) or self._is_here(what):
                return at
            heappop(self._events)
        return None

    def _is_here(self, running: _Running) -> bool:
        return self._running.get(running.session.id) is running

    def _reach(self, moment: int) -> None:
        """Let time go by."""
        self._use.last(moment - self._now)
        self._now = max(self._now, moment)

    def _happen(self) -> None:
        """Let everything happen that happens now."""
        while self._events and self._events[0][0] <= self._now:
            _, _, what = heappop(self._events)
            if isinstance(what, Arrival):
                self._queue[what.session.id] = what
            elif what is not None and self._is_here(what):
                self._end(what)
                self._ended += 1

    def _note(self) -> None:
        moment = Moment(
            self._now, len(self._queue), len(self._running), self._use.now()
        )
        self._moments.append(moment)

    # --- who comes and goes ----------------------------------------------------------

    def _begin(self, running: _Running, ends: int | None) -> None:
        session = running.session
        self._running[session.id] = running
        if ends is not None:
            end = max(ends, self._now)
            heappush(self._events, (end, next(self._number), running))
        self._use.count(running, 1)

    def _end(self, running: _Running) -> None:
        session = running.session
        del self._running[session.id]
        for node, shares in session.holdings:
            if node in self._there:
                self._nodes.give(node, shares, session.owner_id)
        self._use.count(running, -1)

    # --- one pass --------------------------------------------------------------------

    def _plan(self) -> bool:
        """Make one pass; tell whether somebody had to go, so that another helps."""
        self._passes += 1
        decided = plan(self._snapshot(), build=self._nodes.build)
        self._reasons = decided.waiting
        self._reserved = tuple(self._keep_reserved(decided))
        for placement in decided.placements:
            self._start(placement)
        for proposal in decided.preemptions:
            self._displace(proposal)
        return bool(decided.preemptions)

    def _snapshot(self) -> Snapshot:
        return Snapshot(
            nodes=self._nodes.states,
            queue=tuple(a.session for a in self._queue.values()),
            scopes=self._use.scopes,
            groups=self._groups(),
            running=tuple(r.session for r in self._running.values()),
            windows=self._scenario.windows,
            reserved=self._reserved,
            now=self._now,
        )

    def _keep_reserved(self, decided: Plan) -> Iterator[Reservation]:
        yield from decided.reservations
        for proposal in decided.preemptions:
            yield proposal.reserve(self._queue[proposal.session].session.group)

    def _start(self, placement: Placement) -> None:
        arrival = self._queue.pop(placement.session)
        session = arrival.session
        pieces: Sequence[tuple[str, tuple[Share, ...]]] = [
            (m.node, m.shares) for m in placement.members
        ] or [(placement.node, placement.shares)]
        for node, shares in pieces:
            self._nodes.take(node, shares, session.owner_id)
        self._last_nodes[session.group] = placement.node
        lifetime = session.lifetime
        if lifetime is None:
            lifetime = self._policy_of(session.group).max_lifetime
        held = RunningSession(
            id=session.id,
            owner_id=session.owner_id,
            scopes=session.scopes,
            holdings=tuple(pieces),
            group=session.group,
            started=self._now,
            ends=None if lifetime is None else self._now + lifetime,
            job_priority=session.job_priority,
            preemptible=session.preemptible,
        )
        ends = None if arrival.run_time is None else self._now + arrival.run_time
        self._begin(_Running(held, arrival, charge_of(session)), ends)
        if session.id not in self._waits:
            self._waits[session.id] = _wait(arrival, self._now - arrival.at, "")

    def _displace(self, proposal: PreemptionPlan) -> None:
        """Let victims go at once; those that may start over wait again."""
        for victim in proposal.victims:
            running = self._running.get(victim.session)
            if running is None:
                continue
            self._end(running)
            self._displaced += 1
            if proposal.mode == "reschedule" and running.arrival is not None:
                self._queue[victim.session] = running.arrival
            else:
                self._ended += 1

    def _policy_of(self, group: str) -> GroupPolicy:
        return self._policies.get(group, GroupPolicy())

    def _groups(self) -> dict[str, GroupPolicy]:
        """Return each group's policy, with what its people hold by now."""
        return {
            group: replace(
                policy,
                shares=self._use.shares(policy),
                last_node=self._last_nodes.get(group, policy.last_node),
            )
            for group, policy in self._policies.items()
        }


class _Running:
    """A session that runs, who asked for it if that is known, and what it counts."""

    def __init__(
        self,
        session: RunningSession,
        arrival: Arrival | None,
        charge: Mapping[str, int],
    ) -> None:
        self.session, self.arrival, self.charge = session, arrival, charge
        self.held = held_by(session)


class _Use:
    """What is in use of the nodes, of limits and by whom, and has been."""

    def __init__(self, scenario: Scenario) -> None:
        self.capacity = _capacity(scenario.nodes)
        self.scopes: dict[ScopeKey, QuotaScope] = dict(scenario.scopes)
        self._weights = scenario.weights
        self._asking = {path_of(a.session)[:2] for a in scenario.arrivals}
        self._held: dict[str, int] = {}
        self._live: dict[Path, dict[str, int]] = {}
        self._sums: dict[Path, dict[str, int]] = {}
        self._states: dict[int, ShareState] = {}

    def count(self, running: _Running, sign: int) -> None:
        """Count a session that has started, or has ended."""
        session = running.session
        path = path_of(_named(session))
        # Passes have been given the old one, and keep it.
        live = dict(self._live.get(path, {}))
        for slot, amount in running.held.items():
            live[slot] = live.get(slot, 0) + sign * amount
            self._held[slot] = self._held.get(slot, 0) + sign * amount
        self._live[path] = {slot: amount for slot, amount in live.items() if amount}
        if not self._live[path]:
            del self._live[path]
        # What ran at the beginning is in the scenario's limits already.
        if running.arrival is not None or sign < 0:
            self._charge(session.scopes, running.charge, sign)

    def _charge(
        self, scopes: Iterable[ScopeKey], charge: Mapping[str, int], sign: int
    ) -> None:
        for key in scopes:
            scope = self.scopes.get(key)
            if scope is not None:
                used = dict(scope.used)
                for slot, amount in charge.items():
                    used[slot] = max(0, used.get(slot, 0) + sign * amount)
                self.scopes[key] = replace(scope, used=used)

    def last(self, seconds: int) -> None:
        """Add up who holds what for so long."""
        for path, held in self._live.items() if seconds > 0 else ():
            sums = self._sums.setdefault(path[:2], {})
            for slot, amount in held.items():
                sums[slot] = sums.get(slot, 0) + amount * seconds

    def now(self) -> dict[str, int]:
        """Return what is in use of what there is."""
        return {s: n for s, n in self._held.items() if n and s in self.capacity}

    def shares(self, policy: GroupPolicy) -> ShareState:
        """Return what a pass orders by."""
        told = self._states.get(id(policy))
        if told is None:
            told = policy.shares if policy.shares is not None else ShareState()
            told = self._states[id(policy)] = replace(
                told,
                capacity=told.capacity or self.capacity,
                weights={**told.weights, **self._weights},
            )
        return replace(told, live=dict(self._live))

    def weigh(self, lasted: int) -> dict[Path, float]:
        """Return what each project has had, of what it has had most of."""
        found = {}
        for path in sorted(self._asking | self._sums.keys()):
            parts = [
                amount / (self.capacity[slot] * lasted)
                for slot, amount in self._sums.get(path, {}).items()
                if self.capacity.get(slot)
            ]
            found[path] = max(parts, default=0.0) / self._weights.get(path, 1)
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
        if node.closed not in {"", DRAINED}:
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
