"""Taking in what nodes measure, and showing it to who may see it.

Nothing of it is written down as it comes: it stays in memory for some minutes. A node
is believed of its own containers and of nobody else's; the rest is left out silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from backendai_hub.core.access import Action, Principal, Reach, Target, can
from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.errors import ForbiddenError, MalformedRequestError
from backendai_hub.core.ids import is_id
from backendai_hub.core.live_usage import (
    ContainerUsage,
    LiveSession,
    LiveUsage,
    SessionUsage,
    UsageTotals,
)
from backendai_hub.core.measures import Measures, Sample
from backendai_hub.core.usage_keeper import (
    KEPT_SECONDS,
    Known,
    join,
    join_series,
    join_totals,
)
from backendai_hub.db import agents
from backendai_hub.db.container_usage import load_totals, write_totals
from backendai_hub.db.subjects import load_subjects
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.sessions import get_allowed, sight_of

MOST_LIVE = 1000
"""Of how many sessions one is told at once."""
MOST_NAMED = 200
"""As many as are on a page of sessions; their ids fit into what proxies let through."""
MOST_WRITTEN = 1000
"""The sums of how many containers are written down at once."""
STEP_SECONDS = 5.0
"""How close to each other the moments of a sum of several containers are."""
EVERYBODY = "*"


class SessionUsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Only what was measured after the moment ``since``, in Unix seconds."""

    since: float = 0.0


class LiveUsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions: one's own; with ``owner=*`` all that one may see.

    Or with ``sessions`` those whose ids are named, separated by commas.
    """

    sessions: str | None = None
    owner: str | None = None


# -- taking in ------------------------------------------------------------------------


async def accept_measures(platform: Platform, agent_id: str, told: Measures) -> None:
    """Keep what a node has measured of itself and of its own containers."""
    told.check()
    now = platform.database.clock().timestamp()
    book = platform.usage
    name = await _find_name(platform, agent_id, now)
    if told.node != Sample():
        book.keeper.note_node(now, agent_id, name, told.node)
    samples = {sample.id: sample for sample in told.containers}
    await _learn(platform, agent_id, list(samples), now)
    for container_id, sample in samples.items():
        subject = book.keeper.subject(container_id)
        if subject is not None and subject.agent_id == agent_id:
            book.keeper.note(now, sample)


async def _find_name(platform: Platform, agent_id: str, now: float) -> str:
    """Return what a node is called; raises if it is none of ours any more."""
    name = platform.usage.find_name(agent_id, now)
    if name is None:
        async with platform.database.read() as connection:
            agent = await agents.get_agent(connection, agent_id)
        if agent.status is AgentStatus.TERMINATED:
            raise ForbiddenError(f"node {agent.name} was removed; enrol it again")
        name = agent.name
        platform.usage.note_name(agent_id, name, now)
    return name


async def _learn(platform: Platform, agent_id: str, ids: list[str], now: float) -> None:
    """Look up whose containers these are, unless that is known."""
    book = platform.usage
    asked = book.choose_unknown(agent_id, filter(is_id, ids), now)
    if not asked:
        return
    async with platform.database.read() as connection:
        found = await load_subjects(connection, agent_id, asked)
        written = await load_totals(connection, containers=[s.id for s in found])
    for subject in found:
        if book.keeper.subject(subject.id) is None:
            book.keeper.learn(subject, written.get(subject.id, UsageTotals()))
    book.note_strange(agent_id, {*asked} - {s.id for s in found}, now)


async def write_down(platform: Platform, *, also_running: bool = False) -> int:
    """Write down what containers have used that have ended; or all of them.

    Lets go of what is too old to be shown, too. Returns how many were written.
    """
    keeper = platform.usage.keeper
    now = platform.database.clock().timestamp()
    totals = dict(
        islice(
            keeper.list_unwritten(now, also_running=also_running).items(), MOST_WRITTEN
        )
    )
    if totals:
        async with platform.database.transaction() as tx:
            await write_totals(tx, totals)
        for container_id, used in totals.items():
            keeper.note_written(container_id, used)
    keeper.forget_old(now)
    return len(totals)


# -- showing --------------------------------------------------------------------------


async def read_usage(
    platform: Platform, principal: Principal, session_id: str, query: SessionUsageQuery
) -> SessionUsage:
    """Return what one session uses, and has used in the last minutes and in all."""
    async with platform.database.read() as connection:
        await get_allowed(connection, principal, session_id, Action.READ_SESSION)
        totals = await load_totals(connection, session_id=session_id)
    keeper = platform.usage.keeper
    now = platform.database.clock().timestamp()
    known = keeper.list_known(session_id, now, query.since)
    totals |= {part.subject.id: part.totals for part in known}
    several = len(known) > 1
    return SessionUsage(
        session_id=session_id,
        kept_from=keeper.kept_from,
        kept_seconds=KEPT_SECONDS,
        now=join([part.now for part in known if part.now is not None]),
        totals=join_totals(totals.values()),
        series=join_series([part.series for part in known], STEP_SECONDS),
        devices=[device for part in known for device in part.devices],
        containers=[_show_container(part) for part in known] if several else [],
    )


def _show_container(part: Known) -> ContainerUsage:
    return ContainerUsage(
        id=part.subject.id,
        host=part.subject.host,
        node=part.subject.node,
        now=part.now,
        series=part.series,
    )


def read_live(
    platform: Platform, principal: Principal, query: LiveUsageQuery, *, after: int = 0
) -> LiveUsage:
    """Return what many sessions use now, as far as *principal* may see them.

    With *after*, only what was heard of since the keeper had that number.
    """
    if query.owner not in {None, EVERYBODY}:
        raise MalformedRequestError(
            f"owner: leave it out for your own sessions, or use {EVERYBODY!r}"
        )
    keeper = platform.usage.keeper
    now = platform.database.clock().timestamp()
    everybody = query.owner == EVERYBODY and query.sessions is None
    sees_nodes = everybody and can(principal, Action.READ_AGENTS)
    return LiveUsage(
        at=now,
        items=_choose(platform, principal, query, now, after),
        nodes=keeper.list_nodes(now, after=after) if sees_nodes else [],
    )


def has_news(platform: Platform, principal: Principal, *, after: int) -> bool:
    """Tell whether anything *principal* may see was heard of since that number."""
    keeper = platform.usage.keeper
    if can(principal, Action.READ_AGENTS):
        return keeper.number > after
    now = platform.database.clock().timestamp()
    query = LiveUsageQuery(owner=EVERYBODY)
    found = _find_visible(platform, principal, query, now, after)
    return next(iter(found), None) is not None


def _choose(
    platform: Platform,
    principal: Principal,
    query: LiveUsageQuery,
    now: float,
    after: int,
) -> list[LiveSession]:
    if query.sessions is not None:
        return _find_named(platform, principal, query.sessions, now)
    found = _find_visible(platform, principal, query, now, after)
    return list(islice(found, MOST_LIVE))


def _find_visible(
    platform: Platform,
    principal: Principal,
    query: LiveUsageQuery,
    now: float,
    after: int,
) -> Iterator[LiveSession]:
    keeper = platform.usage.keeper
    sight = sight_of(principal)
    if query.owner is None or sight.extent in {None, Reach.OWN}:
        return keeper.list_owned(sight.user_id, now, after=after)
    domain_id = sight.domain_id if sight.extent is Reach.DOMAIN else None
    return keeper.list_live(now, after=after, domain_id=domain_id)


def _find_named(
    platform: Platform, principal: Principal, named: str, now: float
) -> list[LiveSession]:
    """Return those of the named sessions that are measured and may be seen."""
    ids = dict.fromkeys(filter(None, named.split(",")))
    if len(ids) > MOST_NAMED:
        raise MalformedRequestError(f"sessions: name at most {MOST_NAMED} at once")
    keeper = platform.usage.keeper
    found = []
    for session_id in ids:
        whose = keeper.whose(session_id)
        if whose is None or not can(principal, Action.READ_SESSION, Target(*whose)):
            continue
        shown = keeper.find_live(session_id, now)
        if shown is not None:
            found.append(shown)
    return found
