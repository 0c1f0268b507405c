"""What simulations begin with: how things are, and what was asked for before."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.simulations import ExportedTrace, TraceQuery
from backendai_hub.core.images import Image
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import QUEUED
from backendai_hub.db import histories
from backendai_hub.db.batch import tell_waits
from backendai_hub.db.limits import load_limits
from backendai_hub.db.reservations import load_windows
from backendai_hub.db.running import load_names, load_running
from backendai_hub.db.session_lists import list_records, list_since
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.snapshots import load_nodes
from backendai_hub.db.versions import Stale
from backendai_hub.operations.explain_words import LONG_AGO
from backendai_hub.operations.group_policies import GroupPolicies
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.prepare import pending
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.scheduling.held import take
from backendai_hub.scheduling.scenario import (
    Arrival,
    Scenario,
    count_use,
    from_snapshot,
)
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    NodeState,
    PendingSession,
    RunningSession,
)
from backendai_hub.scheduling.telling import to_records
from backendai_hub.scheduling.trace import write_trace

_KINDS: Final = (ScopeKind.DOMAIN, ScopeKind.PROJECT, ScopeKind.USER)
USUAL_RUN_TIME: Final = 14_400
MOST_SESSIONS: Final = 8_000
"""How many a trace of the past has; what is written of them can be read again."""


async def load_scenario(platform: Platform, usual_run_time: int) -> Scenario:
    """Read how things are."""
    snapshot = await load_snapshot(platform)
    clock = platform.database.clock
    async with platform.database.read() as connection:
        nodes = await load_nodes(connection)
        running = await load_running(connection)
        waiting = await list_records(connection, QUEUED)
        asked = {session.group for session in snapshot.queue}
        # Groups in which nobody waits have rules, too, for who is added.
        groups = await _load_groups(platform, connection, nodes, asked)
        windows = await load_windows(connection, clock())
        names = await load_names(connection)
        projects = await histories.load_projects(connection)
    snapshot = replace(
        snapshot,
        nodes=nodes,
        running=running,
        windows=windows,
        groups={**snapshot.groups, **groups},
        now=int(clock().timestamp()),
    )
    scenario = from_snapshot(
        snapshot,
        usual_run_time=usual_run_time,
        names={**names, **{node.id: node.name for node in nodes}},
        starts=_find_starts(waiting, snapshot.queue),
    )
    return replace(scenario, projects=projects)


def _find_starts(
    waiting: Iterable[SessionRecord], queue: Iterable[PendingSession]
) -> dict[str, int]:
    """Tell when those begin to ask whom nothing but their time holds up.

    Who is held, or waits for another session as well, does not ask at that time.
    """
    holds = {session.id: session.hold for session in queue}
    return {
        record.id: int(record.starts_at.timestamp())
        for record in waiting
        if record.starts_at is not None
        and holds.get(record.id)
        and holds[record.id] == tell_waits(record, (), LONG_AGO)
    }


async def _load_groups(
    platform: Platform,
    connection: AsyncConnection,
    nodes: Sequence[NodeState],
    asked: Collection[str] = (),
) -> Mapping[str, GroupPolicy]:
    """Read the rules of groups that are *asked* for or have nodes, with their quotas.

    And what shares are reckoned from, whichever order they have: there may be another.
    """
    policies = GroupPolicies(platform, always_shares=True)
    groups = {node.group for node in nodes} | set(asked)
    await policies.read(connection, groups, nodes, Stale(everything=True))
    return policies.found


async def export_trace(
    platform: Platform, query: TraceQuery | None = None
) -> ExportedTrace:
    """Write how things are, or what has run in the last days, as a trace."""
    query = query or TraceQuery()
    left_out = 0
    if query.days is None:
        scenario = await load_scenario(platform, USUAL_RUN_TIME)
    else:
        scenario, left_out = await load_past(platform, timedelta(days=query.days))
    if query.pseudonyms:
        scenario = hide_names(scenario)
    text = await asyncio.to_thread(lambda: write_trace(list(to_records(scenario))))
    return ExportedTrace(
        trace=text,
        nodes=len(scenario.nodes),
        requests=len(scenario.arrivals),
        left_out=left_out,
    )


def hide_names(scenario: Scenario) -> Scenario:
    """Return the same with numbers for domains, projects and users."""
    people = [a.session.scopes for a in scenario.arrivals]
    people += [running.scopes for running in scenario.running]
    known = {key for scopes in people for key in scopes} | set(scenario.scopes)
    for policy in scenario.groups.values():
        for path in policy.quotas:
            known |= set(zip(_KINDS, path, strict=False))
    known |= {key for window in scenario.windows for key in window.open_to}
    hidden: dict[str, str] = {}
    for kind, key in sorted(known):
        hidden[key] = f"{kind.value}-{len(hidden) + 1}"
    return replace(
        scenario,
        names={**scenario.names, **hidden},
        scopes={
            (kind, key): replace(scope, name=hidden[key])
            for (kind, key), scope in scenario.scopes.items()
        },
    )


# --- what has been --------------------------------------------------------------------


async def load_past(platform: Platform, span: timedelta) -> tuple[Scenario, int]:
    """Read what was asked for and has run in the last *span*; and how many are missing.

    Nodes, limits and rules are those of now: what they were is not kept. Who was never
    placed and does not wait any more has taken no room from anybody, and is left out.
    """
    now = platform.database.clock()
    async with platform.database.read() as connection:
        records = await list_since(connection, now - span, MOST_SESSIONS)
        begins = _find_begin(records, now - span)
        nodes = [_empty(node) for node in await load_nodes(connection)]
        groups = await _load_groups(platform, connection, nodes)
        names = await load_names(connection)
        owners = {record.owner_id for record in records}
        names |= await histories.load_people(connection, owners)
        early = [r for r in records if r.scheduled_at and r.scheduled_at < begins]
        held = await histories.load_held(connection, [r.id for r in early])
        architectures = await histories.load_architectures(connection)
        scopes = await load_limits(connection, records)
    placed, nodes, missing = _place(early, held, nodes, begins)
    began = {record.id for record in early}
    arrivals = [
        _arrive(record, architectures.get(record.image_id or "", ""), begins)
        for record in records
        if record.id not in began
    ]
    return Scenario(
        begins=int(begins.timestamp()),
        nodes=tuple(nodes),
        arrivals=tuple(sorted(arrivals, key=lambda a: (a.at, a.session.id))),
        running=tuple(placed),
        scopes=count_use(scopes, placed),
        groups=groups,
        names={**names, **{node.id: node.name for node in nodes}},
    ), missing


def _find_begin(records: Sequence[SessionRecord], since: datetime) -> datetime:
    """Begin later where there are more than fit: what is there is there as a whole."""
    if len(records) < MOST_SESSIONS:
        return since
    return max(since, min(record.created_at for record in records))


def _empty(node: NodeState) -> NodeState:
    """Return a node as it is when nobody runs there."""
    devices = tuple(replace(d, free=d.total, sliced=0) for d in node.devices)
    return replace(node, devices=devices, containers=0, sole_owner=None)


def _place(
    early: Iterable[SessionRecord],
    held: Mapping[str, histories.Holdings],
    nodes: Sequence[NodeState],
    begins: datetime,
) -> tuple[list[RunningSession], list[NodeState], int]:
    """Put those on their nodes who ran at the beginning; count who cannot be."""
    there = {node.id: node for node in nodes}
    placed: list[RunningSession] = []
    missing = 0
    for record in early:
        changed = dict(there)
        try:
            for node, shares in held[record.id]:
                changed[node] = take(changed[node], shares)
        except (KeyError, ValueError):
            # Its node or devices are not there any more, or are others.
            missing += 1
            continue
        there = changed
        placed.append(_running(record, held[record.id]))
    return placed, list(there.values()), missing


def _running(record: SessionRecord, held: histories.Holdings) -> RunningSession:
    began, ended = record.scheduled_at, record.ended_at
    return RunningSession(
        id=record.id,
        owner_id=record.owner_id,
        scopes=record.scopes,
        holdings=held,
        group=record.resource_group_id or "",
        started=0 if began is None else int(began.timestamp()),
        ends=None if ended is None else int(ended.timestamp()),
        job_priority=record.job_priority,
        preemptible=record.is_preemptible,
    )


def _arrive(record: SessionRecord, architecture: str, begins: datetime) -> Arrival:
    """Tell when it asked, how long it ran, and, if it was placed once, its wait."""
    asked = max(filter(None, (record.created_at, record.starts_at, begins)))
    began, ended = record.scheduled_at, record.ended_at
    image = Image(name=record.image, references={}, architecture=architecture)
    again = record.requeues or record.preemptions
    at = int(asked.timestamp())
    session: PendingSession = replace(
        pending(record, image), priority=record.priority, since=at
    )
    return Arrival(
        at=at,
        session=session,
        run_time=None
        if began is None or ended is None
        else max(0, int(ended.timestamp()) - int(began.timestamp())),
        waited=None if began is None or again else max(0, int(began.timestamp()) - at),
    )
