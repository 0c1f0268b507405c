"""What administrators change about a node."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from backendai_hub.core.access import Action, Principal
from backendai_hub.core.agents import Agent, check_labels
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import (
    InUseError,
    InvalidRequestError,
    NotFoundError,
)
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.operators import StopKind
from backendai_hub.db import agents
from backendai_hub.db.agents import AgentRecord
from backendai_hub.db.engine import Transaction
from backendai_hub.db.session_lists import count_on_agent
from backendai_hub.db.stops import drop_stop
from backendai_hub.operations.node_lists import find_named, read_agent
from backendai_hub.operations.nouns import find_visible
from backendai_hub.operations.platform import Platform


class AgentChange(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A node's resource group and labels, and whether it takes new sessions.

    With ``force`` a node changes its group although sessions run on it; these go on.
    ``labels`` are added to the node's own, and win over them: an empty one takes a
    label away, and null leaves it to the node again.
    """

    resource_group: str | None = None
    schedulable: bool | None = None
    force: bool = False
    labels: dict[str, str | None] = {}


async def change_agent(
    platform: Platform, principal: Principal, reference: str, body: AgentChange
) -> Agent:
    """Move a node to another resource group, label it, or let it take nothing new."""
    async with platform.database.transaction() as tx:
        record = await find_agent(tx, reference)
        changes: dict[str, object] = {}
        if body.schedulable is not None and body.schedulable != record.schedulable:
            changes["schedulable"] = body.schedulable
            if body.schedulable:
                await drop_stop(tx, StopKind.NODE, record.id)
        if body.resource_group is not None:
            group_id = await _group(tx, principal, body.resource_group)
            if group_id != record.resource_group_id:
                await _refuse_busy(tx, record, force=body.force)
                changes["resource_group_id"] = group_id
        labels = _relabel(record.set_labels, body.labels)
        if labels != record.set_labels:
            changes["set_labels"] = labels
        if changes:
            await agents.change_agent(tx, record, **changes)
            tx.audit(
                Act(
                    action=Action.UPDATE_AGENT,
                    object_kind="agent",
                    object_id=record.id,
                    object_name=record.name,
                    before={name: getattr(record, name) for name in changes},
                    after=dict(changes),
                )
            )
            tx.wake("scheduler")
    return await read_agent(platform, record.id)


def _relabel(
    given: Mapping[str, str], changes: Mapping[str, str | None]
) -> dict[str, str]:
    """Return what operators say of a node's labels once they have said *changes*."""
    check_labels({name: value or "" for name, value in changes.items()})
    said = {**given, **changes}
    labels = {name: value for name, value in sorted(said.items()) if value is not None}
    check_labels(labels)
    return labels


async def find_agent(tx: Transaction, reference: str) -> AgentRecord:
    """Find a node by its name or id, and keep others from changing it."""
    record = await find_named(tx.connection, reference)
    return await agents.get_agent(tx.connection, record.id, lock=True)


async def _group(tx: Transaction, principal: Principal, name: str) -> str:
    try:
        group = await find_visible(
            tx.connection, principal, noun_of("resource-group"), name
        )
    except NotFoundError as error:
        raise InvalidRequestError(f"resource_group: {error.message}") from None
    return str(group["id"])


async def _refuse_busy(tx: Transaction, record: AgentRecord, *, force: bool) -> None:
    busy = await count_on_agent(tx.connection, record.id)
    if busy and not force:
        raise InUseError(
            f"{busy} live sessions are on {record.name}; let them end first, or say"
            " 'force' to move the node with them"
        )
