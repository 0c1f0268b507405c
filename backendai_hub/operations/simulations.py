"""What would be: simulations for administrators, one at a time and beside the loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from backendai_hub.api.simulations import (
    AddedRequest,
    AddedWait,
    ExportedTrace,
    SimulationReport,
    SimulationRequest,
)
from backendai_hub.core.errors import InvalidRequestError, TooManyRequestsError
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import parse_slots
from backendai_hub.db.reservations import load_windows
from backendai_hub.db.running import load_names, load_running
from backendai_hub.db.snapshots import load_nodes
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.scheduling.figures import find_figures
from backendai_hub.scheduling.plugins import UnknownPolicyError
from backendai_hub.scheduling.scenario import (
    Arrival,
    Scenario,
    from_snapshot,
    from_trace,
    to_records,
)
from backendai_hub.scheduling.simulate import Outcome, check_bounds, simulate
from backendai_hub.scheduling.snapshot import PendingSession
from backendai_hub.scheduling.trace import read_trace, write_trace
from backendai_hub.scheduling.what_if import Change, check_policies

MOST_SECONDS: Final = 60.0
USUAL_RUN_TIME: Final = 14_400


class SimulationDesk:
    """Answers what would be; who comes while it is at work is asked to come again."""

    def __init__(self, *, most_seconds: float = MOST_SECONDS) -> None:
        self._most_seconds = most_seconds
        self._busy = False

    async def simulate(
        self, platform: Platform, request: SimulationRequest
    ) -> SimulationReport:
        """Simulate what is asked for, in a thread of its own."""
        if self._busy:
            raise TooManyRequestsError(
                "another simulation is being made; ask again in a few seconds"
            )
        self._busy = True
        try:
            live = None
            if request.trace is None:
                live = await load_scenario(platform, request.usual_run_time)
            until = time.monotonic() + self._most_seconds
            return await asyncio.to_thread(
                answer, request, live, lambda: time.monotonic() > until
            )
        finally:
            self._busy = False


async def load_scenario(platform: Platform, usual_run_time: int) -> Scenario:
    """Read how things are."""
    snapshot = await load_snapshot(platform)
    async with platform.database.read() as connection:
        nodes = await load_nodes(connection)
        running = await load_running(connection)
        names = await load_names(connection)
        windows = await load_windows(connection, platform.database.clock())
    now = int(platform.database.clock().timestamp())
    snapshot = replace(snapshot, nodes=nodes, running=running, windows=windows, now=now)
    named = {**names, **{node.id: node.name for node in nodes}}
    return from_snapshot(snapshot, usual_run_time=usual_run_time, names=named)


async def export_trace(platform: Platform) -> ExportedTrace:
    """Write how things are as a trace."""
    scenario = await load_scenario(platform, USUAL_RUN_TIME)
    text = await asyncio.to_thread(lambda: write_trace(list(to_records(scenario))))
    return ExportedTrace(
        trace=text, nodes=len(scenario.nodes), requests=len(scenario.arrivals)
    )


def answer(
    request: SimulationRequest, live: Scenario | None, stop: Callable[[], bool]
) -> SimulationReport:
    """Simulate a trace, or *live*, before and after what *request* changes."""
    scenario = live
    if scenario is None:
        scenario = from_trace(read_trace(request.trace or ""))
    scenario, assumed = _assume(scenario, request.usual_run_time)
    change = _read_change(request, scenario)
    changed = None if change == Change() else change.apply(scenario)
    check_bounds(changed or scenario)
    before = simulate(scenario, stop=stop)
    after = None if changed is None else simulate(changed, stop=stop)
    return SimulationReport(
        before=find_figures(before),
        after=None if after is None else find_figures(after),
        added=[] if after is None else list(_tell_added(after)),
        assumed=assumed,
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
    )
    try:
        check_policies(change)
    except UnknownPolicyError as error:
        raise InvalidRequestError(str(error)) from None
    return change


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
    ids = {name: key for key, name in scenario.names.items()}
    fitting = [n for n in scenario.nodes if group in {"", n.group}]
    at = scenario.begins + added.submit
    for i in range(added.count):
        session = PendingSession(
            id=f"added {number}.{i}",
            owner_id=ids.get(added.owner, added.owner),
            request=asked,
            references={n.runtime: "" for n in fitting},
            architecture=fitting[0].architecture if fitting else "",
            scopes=(
                (ScopeKind.DOMAIN, "default"),
                (ScopeKind.PROJECT, ids.get(added.project, added.project)),
                (ScopeKind.USER, ids.get(added.owner, added.owner)),
            ),
            group=group,
            since=at,
            lifetime=added.run_time,
        )
        yield Arrival(at=at, session=session, run_time=added.run_time, added=True)


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
