"""Applying a plan: each placement in one short, guarded transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.errors import ConflictError
from backendai_hub.core.images import Image
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db import agents, sessions
from backendai_hub.db.agents import AgentRecord
from backendai_hub.db.allocations import insert_allocations
from backendai_hub.db.engine import Transaction
from backendai_hub.db.groups import load_holds
from backendai_hub.db.images import load_images
from backendai_hub.db.ledger import Entry, take
from backendai_hub.db.limits import load_scopes
from backendai_hub.db.sessions import ContainerRecord, SessionRecord
from backendai_hub.db.snapshots import load_nodes
from backendai_hub.operations.lifecycle import explain, move
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.submit import pending
from backendai_hub.scheduling.snapshot import Placement, Plan, Snapshot

_EXPLAINED_AT_ONCE = 100
"""How many sessions get a new reason in one transaction, which holds up others."""


async def load_snapshot(platform: Platform) -> Snapshot:
    """Read what the scheduler decides from, in one consistent view."""
    async with platform.database.read() as connection:
        records = [
            r
            for r in await sessions.list_records(connection, [SessionStatus.PENDING])
            if r.ready
        ]
        if not records:
            return Snapshot(nodes=(), queue=(), scopes={})
        chosen = {r.image_id for r in records if r.image_id is not None}
        images = await load_images(connection, sorted(chosen))
        nodes = await load_nodes(connection)
        scopes = await load_scopes(connection, records)
        holds = await load_holds(connection, records)
    queue = tuple(
        pending(r, images[r.image_id], hold=holds.get(r.id, ""))
        if r.image_id in images
        else pending(r, Image(name=r.image, references={}), hold=_forgotten(r))
        for r in records
    )
    return Snapshot(nodes=nodes, queue=queue, scopes=scopes)


def _forgotten(record: SessionRecord) -> str:
    return f"the environment {record.image} is not there any more; ask for another"


async def apply_plan(platform: Platform, plan: Plan) -> int:
    """Apply *plan*; return how many sessions have been placed.

    A placement that no longer holds (the session was cancelled, the room is gone)
    changes nothing: the next pass sees the new state.
    """
    placed = 0
    for placement in plan.placements:
        try:
            async with platform.database.transaction() as tx:
                await _place(platform, tx, placement)
        except ConflictError:
            continue
        placed += 1
    await _explain(platform, plan.waiting)
    return placed


async def _place(platform: Platform, tx: Transaction, placement: Placement) -> None:
    record = await sessions.get_record(tx.connection, placement.session, lock=True)
    if record.status is not SessionStatus.PENDING:
        raise ConflictError(f"session {record.id} is {record.status} by now")
    limits = await load_scopes(tx.connection, [record])
    await take(tx, _entries(record, placement), limits)
    generation = await agents.bump_generation(tx, placement.node)
    node = await agents.get_agent(tx.connection, placement.node)
    _check_node(node, record)
    container = ContainerRecord(
        id=platform.new_id(),
        session_id=record.id,
        agent_id=placement.node,
        desired="running",
        image=placement.image,
        generation=generation,
        created_at=tx.now,
        gone_at=None,
    )
    await sessions.insert_container(tx, container)
    await insert_allocations(
        tx,
        [
            {
                "id": platform.new_id(),
                "session_id": record.id,
                "container_id": container.id,
                "device_id": share.device,
                "slot": share.slot,
                "amount": share.amount,
            }
            for share in placement.shares
        ],
        record.owner_id,
    )
    await move(
        tx,
        record,
        SessionStatus.SCHEDULED,
        f"placed on {node.name}, which has not taken it up yet",
        agent_id=placement.node,
    )


def _check_node(node: AgentRecord, record: SessionRecord) -> None:
    """See that the node is still what the plan took it for; its row is locked."""
    if (
        node.resource_group_id != record.resource_group_id
        or node.status is not AgentStatus.ALIVE
        or not node.schedulable
    ):
        raise ConflictError(f"node {node.name} takes no such session any more")


def _entries(record: SessionRecord, placement: Placement) -> Sequence[Entry]:
    entries = [
        Entry(ScopeKind.DEVICE, s.device, s.slot, s.amount) for s in placement.shares
    ]
    entries += [
        Entry(kind, owner, slot, amount)
        for kind, owner in record.scopes
        for slot, amount in record.charge.items()
    ]
    return entries


async def _explain(platform: Platform, waiting: Mapping[str, str]) -> None:
    """Store the reasons that have changed, in one transaction."""
    if not waiting:
        return
    async with platform.database.glance() as connection:
        known = await sessions.list_reasons(connection)
    # In the order of ids, as everybody who locks several sessions does.
    news = sorted(i for i, reason in known.items() if waiting.get(i, reason) != reason)
    for start in range(0, len(news), _EXPLAINED_AT_ONCE):
        some = news[start : start + _EXPLAINED_AT_ONCE]
        async with platform.database.read() as connection:
            records = await sessions.get_records(connection, some)
        async with platform.database.transaction() as tx:
            for session_id in some:
                if session_id not in records:
                    continue
                # One that has just moved on needs no reason any more.
                with suppress(ConflictError):
                    await explain(tx, records[session_id][0], waiting[session_id])
