"""What would become of a session that somebody only thinks of; nothing is stored."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.explanations import DryRun, Objection
from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.access import Action, Principal, can
from backendai_hub.core.objections import AllObjections
from backendai_hub.core.tenancy import Actor
from backendai_hub.db import session_lists
from backendai_hub.db.batch import list_unfinished, tell_waits
from backendai_hub.db.deadlines import load_lifetimes
from backendai_hub.db.groups import load_holds
from backendai_hub.operations.described import describe
from backendai_hub.operations.explain import ExplanationDesk
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.prepare import (
    Asking,
    Completed,
    Prepared,
    complete,
    prepare,
)
from backendai_hub.operations.submit import check_queue, name_taken
from backendai_hub.scheduling.snapshot import PendingSession


class _Ready(NamedTuple):
    """A request against which nothing speaks."""

    prepared: Prepared
    completed: Completed


async def try_out(
    platform: Platform,
    principal: Principal,
    user: Actor,
    request: SessionRequest,
    desk: ExplanationDesk,
) -> DryRun:
    """Tell what a request would be refused for, or where it would start, or why not.

    It is read, and looked at by the scheduler, as one that is really meant.
    """
    objections = AllObjections()
    asking = Asking(platform, principal, user, request)
    ready = await _read(asking, objections)
    if objections.found or ready is None:
        return DryRun(
            refused=[Objection(code=e.code, text=e.message) for e in objections.found]
        )
    record = ready.completed.record
    async with platform.database.read() as connection:
        session = await _describe(connection, platform, ready)
    verdict = await desk.consider(platform, principal, record, session)
    sees_nodes = can(principal, Action.READ_AGENTS)
    return DryRun(
        starts_now=verdict.why is None,
        nodes=list(verdict.nodes) if sees_nodes else [],
        project=user.projects.get(record.project_id),
        resource_group=ready.prepared.group.name,
        slots=record.request.to_text(),
        mounts=ready.completed.mounts,
        why=verdict.why,
    )


async def _read(asking: Asking, objections: AllObjections) -> _Ready | None:
    """Look at everything that may speak against it."""
    with objections.noted():
        prepared = await prepare(asking, objections)
        if prepared is None:
            return None
        completed = await complete(asking, prepared, objections)
        record = completed.record
        async with asking.platform.database.read() as connection:
            await check_queue(connection, asking, record, prepared.caps, objections)
            name = asking.request.name
            taken = name and await session_lists.find_live(
                connection, asking.user.id, name=name
            )
        if taken:
            objections.add(name_taken(record.name))
        return _Ready(prepared, completed)
    return None


async def _describe(
    connection: AsyncConnection, platform: Platform, ready: _Ready
) -> PendingSession:
    """Describe it to the scheduler as it would be in the queue."""
    record, image = ready.completed.record, ready.prepared.image
    unmet = await list_unfinished(connection, ready.completed.dependencies)
    holds = await load_holds(connection, [record])
    lifetimes = await load_lifetimes(connection, [record])
    return describe(
        record,
        image,
        (
            holds.get(record.id, ""),
            tell_waits(record, unmet, platform.database.clock()),
        ),
        lifetimes.get(record.id),
    )
