"""Showing who made room for whom, and who would have to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.preemptions import (
    PreemptionPage,
    PreemptionQuery,
    PreemptionTrial,
    PreemptionTrialRequest,
    ProposedPreemption,
)
from backendai_hub.core.access import Action, Principal, Reach, Target, can, reach
from backendai_hub.core.errors import InvalidRequestError, MalformedRequestError
from backendai_hub.core.ids import is_id
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.preemptions import (
    EnactedPreemption,
    Ending,
    Fate,
    PreemptedSession,
)
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.core.times import format_time
from backendai_hub.db import agents, preemptions, session_views
from backendai_hub.db.preemptions import PlanFilter, ShownPlan, Side
from backendai_hub.db.running import load_running
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations.nouns import find_visible
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import PreemptionPlan

MOST_PER_PAGE = 200
_GROUP = noun_of("resource-group")


async def list_preemptions(
    platform: Platform, principal: Principal, query: PreemptionQuery
) -> PreemptionPage:
    """Return one page of what was carried out, as far as the caller is concerned.

    Of the sessions of a plan the caller reads those they may see anyway.
    """
    if not 1 <= query.limit <= MOST_PER_PAGE:
        raise InvalidRequestError(
            f"limit: {query.limit} is not between 1 and {MOST_PER_PAGE}"
        )
    if query.after is not None and not is_id(query.after):
        raise MalformedRequestError(
            "after: not a cursor of this list; leave it out for the first page"
        )
    async with platform.database.read() as connection:
        group = None
        if query.resource_group is not None:
            found = await find_visible(
                connection, principal, _GROUP, query.resource_group, least=Reach.OWN
            )
            group = str(found["id"])
        plans = await preemptions.list_plans(
            connection,
            _choose(principal, query, group),
            limit=query.limit + 1,
            before=query.after,
        )
        page = plans[: query.limit]
        ids = [one.id for one in page]
        waiting = await preemptions.list_waiting_sides(connection, ids)
        victims = await preemptions.list_victims(connection, ids)
        nodes = {a.id: a.name for a in await agents.list_agents(connection)}
    return PreemptionPage(
        items=[
            _show(principal, one, waiting[one.id], victims.get(one.id, []), nodes)
            for one in page
        ],
        next=page[-1].id if len(plans) > query.limit else None,
    )


def _choose(
    principal: Principal, query: PreemptionQuery, group: str | None
) -> PlanFilter:
    extent = reach(principal, Action.READ_SESSION)
    return PlanFilter(
        owner_id=principal.id if extent in {None, Reach.OWN} else None,
        domain_id=principal.domain_id if extent is Reach.DOMAIN else None,
        session_id=query.session,
        group_id=group,
        kind=query.kind,
        is_open=query.open,
    )


def _may_see(principal: Principal, side: Side) -> bool:
    target = Target(side.owner_id, side.domain_id)
    return can(principal, Action.READ_SESSION, target)


def _show(
    principal: Principal,
    found: ShownPlan,
    waiting: Side,
    victims: Sequence[Side],
    nodes: Mapping[str, str],
) -> EnactedPreemption:
    seen = [victim for victim in victims if _may_see(principal, victim)]
    known = _may_see(principal, waiting)
    return EnactedPreemption(
        id=found.id,
        kind=found.kind,
        mode=found.mode,
        resource_group=found.group,
        nodes=sorted({nodes.get(part.node, part.node) for part in found.parts}),
        created_at=format_time(found.created_at) or "",
        expires_at=format_time(found.expires_at) or "",
        session=waiting.id if known else None,
        name=waiting.name if known else None,
        owner=waiting.owner if known else None,
        closed_at=format_time(found.closed_at),
        ending=None if found.outcome is None else Ending(found.outcome),
        victims=[_show_victim(victim) for victim in seen],
        others=len(victims) - len(seen),
    )


def _show_victim(side: Side) -> PreemptedSession:
    return PreemptedSession(
        id=side.id,
        name=side.name,
        owner=side.owner,
        reason=side.reason,
        fate=None if side.outcome is None else Fate(side.outcome),
        left_at=format_time(side.left_at),
    )


async def tell_room(connection: AsyncConnection, record: SessionRecord) -> str:
    """Say how far it is with the room that a session waits for, or makes."""
    if record.status is SessionStatus.RESERVED:
        left, count = await preemptions.count_leaving(connection, record.id)
        return f"{left} of {count} sessions have left that make room for it"
    if record.status is SessionStatus.PREEMPTED:
        again = record.ends_as == SessionStatus.PENDING
        return "it makes room for another session; when it has left its node, it" + (
            " waits in the queue again" if again else " ends"
        )
    return ""


# --- what would be -------------------------------------------------------------------


async def try_rules(
    platform: Platform,
    principal: Principal,
    reference: str,
    body: PreemptionTrialRequest,
) -> PreemptionTrial:
    """Say who would have to leave now if a group had these rules; nobody leaves."""
    async with platform.database.read() as connection:
        group = await find_visible(connection, principal, _GROUP, reference)
        running = await load_running(connection)
        nodes = {a.id: a.name for a in await agents.list_agents(connection)}
    snapshot = await load_snapshot(platform)
    queue = tuple(s for s in snapshot.queue if s.group == group["id"])
    policies = {}
    enabled = False
    for key, policy in snapshot.groups.items():
        if key == group["id"]:
            enabled = policy.preemption.enabled
            given = msgspec.structs.asdict(body)
            chosen = {name: v for name, v in given.items() if v is not None}
            rules = replace(policy.preemption, enabled=True, **chosen)
            policies[key] = replace(policy, preemption=rules)
    proposals: tuple[PreemptionPlan, ...] = ()
    if queue:
        asked = replace(snapshot, queue=queue, groups=policies, running=running)
        proposals = (await asyncio.to_thread(plan, asked)).preemptions
    ids = {p.session for p in proposals}
    ids |= {v.session for p in proposals for v in p.victims}
    shown: dict[str, Session] = {}
    if ids:
        async with platform.database.read() as connection:
            found = await session_views.get_sessions(connection, sorted(ids))
        shown = {session.id: session for session in found}
    return PreemptionTrial(
        resource_group=group["name"],
        enabled=enabled,
        waiting=len(queue),
        items=[
            _show_proposal(proposal, shown, nodes)
            for proposal in proposals
            if proposal.session in shown
        ],
    )


def _show_proposal(
    proposal: PreemptionPlan, shown: Mapping[str, Session], nodes: Mapping[str, str]
) -> ProposedPreemption:
    waiting = shown[proposal.session]
    return ProposedPreemption(
        session=waiting.id,
        name=waiting.name,
        owner=waiting.owner,
        kind=proposal.kind,
        mode=proposal.mode,
        nodes=sorted({nodes.get(part.node, part.node) for part in proposal.parts}),
        victims=[
            PreemptedSession(
                id=victim.session,
                name=shown[victim.session].name,
                owner=shown[victim.session].owner,
                reason=victim.reason,
            )
            for victim in proposal.victims
            if victim.session in shown
        ],
    )
