"""What would be: simulations for administrators, one at a time and beside the loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from backendai_hub.api.simulations import (
    AddedRequest,
    AddedWait,
    QuotaRequest,
    SimulationProgress,
    SimulationReport,
    SimulationRequest,
)
from backendai_hub.core.errors import InvalidRequestError, TooManyRequestsError
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.simulation import WaitFigures
from backendai_hub.core.slots import parse_slots
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.scenarios import load_scenario
from backendai_hub.scheduling.figures import count_waits, find_figures
from backendai_hub.scheduling.held import owner_of
from backendai_hub.scheduling.outcome import Outcome, Wait
from backendai_hub.scheduling.plugins import UnknownPolicyError
from backendai_hub.scheduling.scenario import Arrival, Scenario, from_trace
from backendai_hub.scheduling.shares import Path, path_of
from backendai_hub.scheduling.simulate import check_bounds, simulate
from backendai_hub.scheduling.snapshot import PendingSession, ScopeKey
from backendai_hub.scheduling.trace import read_trace
from backendai_hub.scheduling.what_if import Change, QuotaChange, check_policies

MOST_SECONDS: Final = 60.0


class SimulationDesk:
    """Answers what would be; who comes while it is at work is asked to come again."""

    def __init__(self, *, most_seconds: float = MOST_SECONDS) -> None:
        self._most_seconds = most_seconds
        self._busy = False
        self._began = 0.0
        self._part = 0.0

    @property
    def progress(self) -> SimulationProgress:
        """How far the one is that is being made."""
        if not self._busy:
            return SimulationProgress(running=False, part=0.0, seconds=0.0)
        seconds = time.monotonic() - self._began
        return SimulationProgress(
            running=True, part=round(self._part, 4), seconds=round(seconds, 1)
        )

    def _advance(self, part: float) -> None:
        self._part = part

    async def simulate(
        self, platform: Platform, request: SimulationRequest
    ) -> SimulationReport:
        """Simulate what is asked for, in a thread of its own."""
        if self._busy:
            raise TooManyRequestsError(
                "another simulation is being made; ask again in a few seconds"
            )
        self._busy, self._part, self._began = True, 0.0, time.monotonic()
        try:
            live = None
            if request.trace is None:
                live = await load_scenario(platform, request.usual_run_time)
            until = time.monotonic() + self._most_seconds
            return await asyncio.to_thread(
                answer, request, live, lambda: time.monotonic() > until, self._advance
            )
        finally:
            self._busy = False


def answer(
    request: SimulationRequest,
    live: Scenario | None,
    stop: Callable[[], bool],
    progress: Callable[[float], None] = lambda part: None,
) -> SimulationReport:
    """Simulate a trace, or *live*, before and after what *request* changes."""
    scenario = live
    if scenario is None:
        scenario = from_trace(read_trace(request.trace or ""))
    scenario, assumed = _assume(scenario, request.usual_run_time)
    change = _read_change(request, scenario)
    changed = None if change == Change() else change.apply(scenario)
    check_bounds(changed or scenario)
    whole = 1 if changed is None else 2
    before = simulate(scenario, stop=stop, progress=lambda p: progress(p / whole))
    after = (
        None
        if changed is None
        else simulate(changed, stop=stop, progress=lambda p: progress(0.5 + p / 2))
    )
    return SimulationReport(
        before=find_figures(before, scenario.names),
        after=None if after is None else find_figures(after, scenario.names),
        added=[] if after is None else list(_tell_added(after)),
        assumed=assumed,
        held=scenario.held,
        recorded=_find_recorded(scenario),
    )


def _find_recorded(scenario: Scenario) -> WaitFigures | None:
    """Reckon how long those have waited of whom it was recorded."""
    known = [a for a in scenario.arrivals if a.waited is not None]
    if not known:
        return None
    return count_waits(
        Wait(
            session=arrival.session.id,
            owner=path_of(arrival.session),
            request=arrival.session.request,
            since=arrival.at,
            seconds=arrival.waited,
            wide=False,
            added=False,
        )
        for arrival in known
    )


def _assume(scenario: Scenario, usual: int) -> tuple[Scenario, int]:
    """Let those end some day who say nothing of it; tell how many they are."""
    arrivals = tuple(
        replace(a, run_time=usual) if a.run_time is None else a
        for a in scenario.arrivals
    )
    end = scenario.begins + usual
    running = tuple(
        replace(r, ends=end) if r.ends is None else r for r in scenario.running
    )
    count = sum(a.run_time is None for a in scenario.arrivals)
    count += sum(r.ends is None for r in scenario.running)
    return replace(scenario, arrivals=arrivals, running=running), count


def _read_change(request: SimulationRequest, scenario: Scenario) -> Change:
    change = Change(
        drain=tuple(request.drain),
        add=tuple(
            arrival
            for number, added in enumerate(request.add)
            for arrival in _arrivals(number, added, scenario)
        ),
        sequencer=request.sequencer,
        placement=request.placement,
        weights=request.weights,
        preemption={
            name: value
            for name, value in msgspec.structs.asdict(request.preemption).items()
            if value is not None
        },
        quotas=tuple(
            _read_quota(number, given) for number, given in enumerate(request.quotas)
        ),
    )
    try:
        check_policies(change)
    except UnknownPolicyError as error:
        raise InvalidRequestError(str(error)) from None
    return change


def _read_quota(number: int, given: QuotaRequest) -> QuotaChange:
    lifted = [slot for slot, amount in given.maximum.items() if amount is None]
    try:
        guaranteed = parse_slots(given.guaranteed)
        maximum = parse_slots(
            {slot: n for slot, n in given.maximum.items() if n is not None}
        )
    except InvalidRequestError as error:
        raise InvalidRequestError(f"quotas[{number}]: {error.message}") from None
    return QuotaChange(
        kind=ScopeKind(given.scope),
        name=given.name,
        # What is zero is said: it takes a guarantee away, or gives nothing at all.
        guaranteed={**dict.fromkeys(given.guaranteed, 0), **guaranteed},
        maximum={
            **dict.fromkeys(given.maximum, 0),
            **maximum,
            **dict.fromkeys(lifted),
        },
    )


def _arrivals(
    number: int, added: AddedRequest, scenario: Scenario
) -> Iterator[Arrival]:
    asked = parse_slots(added.slots)
    there = {slot for n in scenario.nodes for d in n.devices for slot in d.total}
    for slot in asked:
        if slot not in there:
            raise InvalidRequestError(f"add[{number}]: slots: no node has {slot!r}")
    if not len(asked):
        raise InvalidRequestError(f"add[{number}]: slots: it asks for nothing")
    group = _find_group(number, added, scenario)
    scopes = _find_scopes(added, scenario)
    fitting = [n for n in scenario.nodes if group in {"", n.group}]
    at = scenario.begins + added.submit
    for i in range(added.count):
        session = PendingSession(
            id=f"added {number}.{i}",
            owner_id=scopes[-1][1],
            request=asked,
            references={n.runtime: "" for n in fitting},
            architecture=fitting[0].architecture if fitting else "",
            scopes=scopes,
            group=group,
            since=at,
            lifetime=added.run_time,
            job_priority=added.job_priority,
            preemptible=added.preemptible,
        )
        yield Arrival(at=at, session=session, run_time=added.run_time, added=True)


def _find_scopes(added: AddedRequest, scenario: Scenario) -> tuple[ScopeKey, ...]:
    """Return whose limits and guarantees count for what is added."""
    known = _known_paths(scenario)
    names = scenario.names

    def is_called(key: str, name: str) -> bool:
        return name in {key, names.get(key)}

    paths = [path for path in known if is_called(path[1], added.project)]
    domain, project = paths[0][:2] if paths else ("default", added.project)
    users = [p[2] for p in known if len(p) > 2 and is_called(p[2], added.owner)]
    return (
        (ScopeKind.DOMAIN, domain),
        (ScopeKind.PROJECT, project),
        (ScopeKind.USER, users[0] if users else added.owner),
    )


def _known_paths(scenario: Scenario) -> list[Path]:
    """List the projects and users that the scenario knows, with their domains."""
    found = {path_of(arrival.session) for arrival in scenario.arrivals}
    found |= {owner_of(running) for running in scenario.running}
    for policy in scenario.groups.values():
        found |= {path for path in policy.quotas if len(path) > 1}
    found |= set(scenario.projects)
    return sorted(found)


def _find_group(number: int, added: AddedRequest, scenario: Scenario) -> str:
    """Return the group's id: the one named, or the one with the most nodes."""
    groups = [node.group for node in scenario.nodes]
    if added.resource_group is None:
        return max(groups, key=groups.count, default="")
    for group in groups:
        if added.resource_group in {group, scenario.names.get(group)}:
            return group
    raise InvalidRequestError(
        f"add[{number}]: resource_group: no node is in {added.resource_group[:64]!r}"
    )


def _tell_added(after: Outcome) -> Iterator[AddedWait]:
    for wait in after.waits:
        if wait.added:
            asked: Mapping[str, str] = wait.request.to_text()
            yield AddedWait(
                request=" ".join(f"{slot}={amount}" for slot, amount in asked.items()),
                seconds=wait.seconds,
                reason=wait.reason,
            )
