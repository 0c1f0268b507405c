"""Reading what a request asks for that only batch sessions, or few others, have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core import batch as rules
from backendai_hub.core.access import Action, Caller, Principal, can
from backendai_hub.core.agents import check_labels
from backendai_hub.core.errors import ForbiddenError, InvalidRequestError
from backendai_hub.core.names import fold
from backendai_hub.core.sessions import TERMINAL, SessionType
from backendai_hub.core.tenancy import Actor
from backendai_hub.db import agents, batch
from backendai_hub.db.groups import GroupRecord

_ONLY_BATCH: tuple[tuple[str, Any], ...] = (
    ("startup_command", None),
    ("batch_timeout", None),
    ("starts_at", None),
    ("dependencies", []),
    ("max_attempts", 1),
)
_RESERVED = ("JUPYTERHUB_", "BACKENDAI_", "JPY_")


def check_batch(principal: Principal, request: SessionRequest) -> None:
    """Refuse what does not go together, whatever there is in the database."""
    rules.check_tag(request.tag)
    check_labels(request.labels)
    if request.job_priority is not None and abs(request.job_priority) >= 1 << 31:
        raise InvalidRequestError(
            f"job_priority: {request.job_priority} is not a number of 32 bits"
        )
    if request.type is not SessionType.BATCH:
        for name, usual in _ONLY_BATCH:
            if getattr(request, name) != usual:
                raise InvalidRequestError(
                    f"{name}: only batch sessions have it; leave it out, or set type"
                    " to 'batch'"
                )
        return
    if principal.caller is Caller.SPAWNER:
        raise InvalidRequestError("type: a batch session is no JupyterHub server")
    rules.check_command(request.startup_command)
    rules.check_limits(request.batch_timeout, request.max_attempts)
    rules.check_start(request.starts_at)
    rules.check_dependencies(request.name, request.dependencies)
    for name in request.environ:
        if name.startswith(_RESERVED):
            raise InvalidRequestError(
                f"environ: {name[:64]!r} is the platform's to set; choose another name"
            )


class Extras(msgspec.Struct, frozen=True):
    """Fields of the session's row, and the ids of what it waits for."""

    fields: dict[str, Any]
    dependencies: list[str]


async def read_extras(
    connection: AsyncConnection,
    principal: Principal,
    user: Actor,
    *,
    request: SessionRequest,
    group: GroupRecord,
) -> Extras:
    """Look up what a request names; raises a refusal for what is not there."""
    job_priority = request.job_priority
    if job_priority is None:
        job_priority = group.session_options.job_priority
    fields: dict[str, Any] = {
        "batch_timeout": request.batch_timeout,
        "starts_at": request.starts_at,
        "max_attempts": request.max_attempts,
        "tag": request.tag,
        "job_priority": job_priority,
        "is_preemptible": request.is_preemptible,
        "labels": request.labels,
    }
    if request.agents or request.preferred_agents:
        if not can(principal, Action.READ_AGENTS):
            raise ForbiddenError(
                "agents: only administrators choose nodes; leave it out"
            )
        for name in ("agents", "preferred_agents"):
            wanted = getattr(request, name)
            fields[name] = await _find_agents(connection, name, wanted, group)
    return Extras(fields, await _find_dependencies(connection, user, request))


async def _find_agents(
    connection: AsyncConnection, field: str, names: Sequence[str], group: GroupRecord
) -> list[str]:
    known = [
        a
        for a in await agents.list_agents(connection)
        if a.resource_group_id == group.id
    ]
    found = []
    for name in names:
        same = [a.id for a in known if name == a.id or fold(name) == fold(a.name)]
        if not same:
            there = ", ".join(a.name for a in known) or "none"
            raise InvalidRequestError(
                f"{field}: the resource group {group.name} has no node {name[:64]!r};"
                f" there are {there}"
            )
        found += same
    return list(dict.fromkeys(found))


async def _find_dependencies(
    connection: AsyncConnection, user: Actor, request: SessionRequest
) -> list[str]:
    """Return the ids of what the session waits for; nobody else's are seen."""
    found: list[str] = []
    for reference in request.dependencies:
        known = await batch.find_session(connection, user.id, reference)
        if known is None:
            raise InvalidRequestError(
                f"dependencies: you have no batch session {reference[:64]!r}; name one"
                " by its id or its name"
            )
        if known.status in TERMINAL and not known.has_succeeded:
            raise InvalidRequestError(
                f"dependencies: {known.name} has not succeeded ({known.status}), so"
                " what waits for it would never start"
            )
        found.append(known.id)
    return list(dict.fromkeys(found))
