"""What would be: the same passes as in service, in a time that only goes by here.

Whoever asks, asks when the scenario says so; who starts, runs as long as it says, or
until it is displaced. In between, nothing happens, so time jumps from one event to the
next: an end, an arrival, the end of a reserved window, or that somebody has run for
long enough to be displaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from backendai_hub.core.errors import InvalidRequestError, TooLargeError
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.scheduling.changes import charge_of
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.held import held_by, owner_of
from backendai_hub.scheduling.kept_nodes import KeptNodes
from backendai_hub.scheduling.outcome import Displaced, Moment, Outcome, Wait
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.scenario import Arrival, Scenario, default_groups, is_wide
from backendai_hub.scheduling.shares import path_of
from backendai_hub.scheduling.simulated_use import Held, Use
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    NodeState,
    PendingSession,
    Placement,
    Plan,
    PreemptionPlan,
    Reservation,
    RunningSession,
    Share,
    Snapshot,
)

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


class _Ripe(NamedTuple):
    """From some time on somebody may be displaced, if they still run."""

    running: Held


class _World:
    """Nodes, queue and use at one moment of the simulation."""

    def __init__(self, scenario: Scenario, nodes: Nodes) -> None:
        self._scenario = scenario
        self._now = scenario.begins
        self._nodes = nodes
        self._there = {node.id for node in scenario.nodes}
        self._use = Use(scenario)
        self._policies = {**default_groups(scenario), **scenario.groups}
        self._queue: dict[str, Arrival] = {}
        self._running: dict[str, Held] = {}
        self._number = count()
        self._events: list[tuple[int, int, Arrival | Held | _Ripe | None]] = []
        self._reserved: tuple[Reservation, ...] = ()
        self._last_nodes: dict[str, str] = {}
        self._reasons: Mapping[str, str] = {}
        self._waits: dict[str, Wait] = {}
        self._moments: list[Moment] = []
        self._displaced: list[Displaced] = []
        self._passes = self._ended = 0
        for session in scenario.running:
            self._begin(Held(session, None), session.ends)
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
            displaced=tuple(self._displaced),
        )

    def _next(self) -> int | None:
        """Tell when something happens next; the ends of the displaced do not."""
        while self._events:
            at, _, what = self._events[0]
            running = what.running if isinstance(what, _Ripe) else what
            if not isinstance(running, Held) or self._is_here(running):
                return at
            heappop(self._events)
        return None

    def _is_here(self, running: Held) -> bool:
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
            elif isinstance(what, Held) and self._is_here(what):
                self._end(what)
                self._ended += 1

    def _note(self) -> None:
        moment = Moment(
            self._now, len(self._queue), len(self._running), self._use.now()
        )
        self._moments.append(moment)

    # --- who comes and goes ----------------------------------------------------------

    def _begin(self, running: Held, ends: int | None) -> None:
        session = running.session
        self._running[session.id] = running
        if ends is not None:
            end = max(ends, self._now)
            heappush(self._events, (end, next(self._number), running))
        policy = self._policy_of(session.group)
        ripe = session.started + policy.preemption.min_runtime
        if policy.displaces and session.preemptible and ripe > self._now:
            heappush(self._events, (ripe, next(self._number), _Ripe(running)))
        self._use.count(running, 1)

    def _end(self, running: Held) -> None:
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
        self._begin(Held(held, arrival, charge_of(session)), ends)
        if session.id not in self._waits:
            self._waits[session.id] = _wait(arrival, self._now - arrival.at, "")

    def _displace(self, proposal: PreemptionPlan) -> None:
        """Let victims go at once; those that may start over wait again."""
        displacing = self._queue[proposal.session].session
        for victim in proposal.victims:
            running = self._running.get(victim.session)
            if running is None:
                continue
            self._end(running)
            self._displaced.append(
                Displaced(
                    at=self._now,
                    session=victim.session,
                    owner=owner_of(running.session),
                    by=displacing.id,
                    by_owner=path_of(displacing),
                    kind=proposal.kind,
                    mode=proposal.mode,
                    ran=self._now - running.session.started,
                )
            )
            if proposal.mode == "reschedule":
                again = running.arrival or self._ask_again(running.session)
                self._queue[victim.session] = again
            else:
                self._ended += 1

    def _ask_again(self, session: RunningSession) -> Arrival:
        """Describe somebody who ran at the beginning, and now waits to start over."""
        nodes = {node.id: node for node in self._scenario.nodes}
        here = [nodes[node] for node, _ in session.holdings if node in nodes]
        ends = session.ends
        return Arrival(
            at=self._now,
            run_time=None if ends is None else max(0, ends - session.started),
            session=PendingSession(
                id=session.id,
                owner_id=session.owner_id,
                request=ResourceSlots(held_by(session)),
                references={node.runtime: "" for node in here},
                architecture=here[0].architecture if here else "",
                scopes=session.scopes,
                group=session.group,
                since=self._now,
                job_priority=session.job_priority,
                preemptible=session.preemptible,
            ),
        )

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
