"""Applying a plan: many placements in one short transaction, each guarded.

What a placement takes is locked first and looked at as it is then: the session has to
wait still, the node has to take it, and every limit and device has to have the room.
One that does not hold any more is left out and changes nothing; the others go through.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from sqlalchemy.exc import IntegrityError

from backendai_hub.core.agents import AgentStatus, join_labels, protocol_for
from backendai_hub.core.attempts import Result
from backendai_hub.core.clusters import Seat, list_seats
from backendai_hub.core.errors import ConflictError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.preemptions import Ending
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import QUEUED, SessionStatus
from backendai_hub.db import (
    agents,
    ledger,
    preemptions,
    sessions,
)
from backendai_hub.db.agents import AgentRecord
from backendai_hub.db.allocations import insert_allocations
from backendai_hub.db.attempts import Tried, note_attempts
from backendai_hub.db.containers import ContainerRecord, insert_containers
from backendai_hub.db.engine import Transaction
from backendai_hub.db.ledger import Entry, Key, Row
from backendai_hub.db.limits import Scopes, recall_limits
from backendai_hub.db.reservations import load_windows
from backendai_hub.db.session_mounts import load_mounts
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.stops import list_stops
from backendai_hub.operations.kept_reasons import explain
from backendai_hub.operations.lifecycle import move
from backendai_hub.operations.node_room import load_node_room
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.session_mounts import find_uncertain, find_withdrawn
from backendai_hub.scheduling.snapshot import (
    Placement,
    Plan,
    ReservedWindow,
    Share,
)

Thing = TypeVar("Thing")

log = logging.getLogger("backendai_hub.operations.placement")

AT_ONCE: Final = 100
"""How many sessions are placed, or get a new reason, in one transaction."""


async def apply_plan(platform: Platform, plan: Plan) -> int:
    """Apply *plan*; return how many sessions have been placed.

    A placement that no longer holds (the session was cancelled, the room is gone)
    changes nothing: the next pass sees the new state.
    """
    placed = 0
    for batch in in_batches(plan.placements):
        placed += await place(platform, batch, heeded=plan.windows)
    for some in in_batches(sorted(plan.waiting.items())):
        await explain(platform, dict(some))
    return placed


def in_batches(
    things: Sequence[Thing], most: int = AT_ONCE
) -> Iterator[Sequence[Thing]]:
    """Yield *things* in parts that are small enough for one transaction."""
    for start in range(0, len(things), most):
        yield things[start : start + most]


async def place(
    platform: Platform,
    batch: Sequence[Placement],
    waited: Mapping[str, Tried] = MappingProxyType({}),
    heeded: Collection[ReservedWindow] = (),
) -> int:
    """Carry out these placements in one transaction; return how many held.

    *waited* are earlier attempts for these sessions that are not written down yet, and
    *heeded* the reservations that have been thought of: what touches another does not
    hold.

    If one of them makes it fail for a reason that nobody has thought of, the others
    are carried out without it.
    """
    try:
        async with platform.database.transaction() as tx:
            held = await _place(platform, tx, batch, heeded)
            await note_attempts(tx, [waited[i] for i in held if i in waited])
            await note_attempts(
                tx, [Tried(i, Result.PLACED, w) for i, w in held.items()]
            )
    except (ConflictError, IntegrityError) as error:
        if len(batch) == 1:
            log.warning("session %s was not placed: %s", batch[0].session, error)
            return 0
    else:
        left = [
            placement.session for placement in batch if placement.session not in held
        ]
        if left:
            await _end_withdrawn(platform, left)
        return len(held)
    half = len(batch) // 2
    return sum(
        [
            await place(platform, part, waited, heeded)
            for part in (batch[:half], batch[half:])
        ]
    )


async def _end_withdrawn(platform: Platform, ids: Sequence[str]) -> None:
    """End those whose folders were taken back while they waited."""
    async with platform.database.read() as connection:
        mounting = await load_mounts(connection, ids)
        if not mounting:
            return
        records = await sessions.get_records(connection, list(mounting))
        withdrawn = await find_withdrawn(connection, [r for r, _ in records.values()])
    for session_id, reason in withdrawn.items():
        async with platform.database.transaction() as tx:
            record = await sessions.get_record(tx.connection, session_id, lock=True)
            if record.status in QUEUED:
                await move(tx, record, SessionStatus.CANCELLED, reason)


class _Piece(NamedTuple):
    """One container that a placement makes."""

    node: str
    image: str
    shares: tuple[Share, ...]
    seat: Seat


def _pieces(placement: Placement) -> list[_Piece]:
    seats = list_seats(len(placement.members) or 1)
    if placement.members:
        return [
            _Piece(m.node, m.image, m.shares, seat)
            for m, seat in zip(placement.members, seats, strict=True)
        ]
    return [_Piece(placement.node, placement.image, placement.shares, seats[0])]


def _is_whole(record: SessionRecord, placement: Placement) -> bool:
    """Tell whether the placement has room for every container there is to be."""
    return len(_pieces(placement)) == record.cluster_size


async def _place(
    platform: Platform,
    tx: Transaction,
    batch: Sequence[Placement],
    heeded: Collection[ReservedWindow],
) -> dict[str, str]:
    """Place those that hold; return what is told to each of them."""
    # Locked always in this order: sessions, ledger, nodes.
    records = await sessions.lock_records(tx.connection, {p.session for p in batch})
    there = [
        (records[p.session], p)
        for p in batch
        if p.session in records and records[p.session].status in QUEUED
    ]
    there = await _leave_out_stopped(tx, there)
    reserved = await find_reserved_since(tx, heeded) if there else set()
    there = [
        (r, p) for r, p in there if reserved.isdisjoint(x.node for x in _pieces(p))
    ]
    if not there:
        return {}
    limits = await recall_limits(platform.database, [record for record, _ in there])
    room = Room(
        await ledger.lock_rows(tx, [e for r, p in there for e in _entries(r, p)]),
        limits,
    )
    nodes = await agents.lock_agents(
        tx, {piece.node for _, p in there for piece in _pieces(p)}
    )
    node_room = await load_node_room(
        tx.connection,
        nodes,
        {s.device for _, p in there for piece in _pieces(p) for s in piece.shares},
    )
    uncertain = await find_uncertain(tx, [record for record, _ in there])
    held = [
        (record, placement)
        for record, placement in there
        if record.id not in uncertain
        and _is_whole(record, placement)
        and all(_takes(nodes.get(p.node), record) for p in _pieces(placement))
        # Before the ledger: what it refuses may stay taken here, which costs a pass,
        # while nothing may stay taken there.
        and node_room.take(_pieces(placement))
        and room.take(_entries(record, placement))
    ]
    if not held:
        return {}
    await ledger.take_all(tx, room.taken, room.limits)
    return await _write(platform, tx, held, nodes)


async def _leave_out_stopped(
    tx: Transaction, there: Sequence[tuple[SessionRecord, Placement]]
) -> list[tuple[SessionRecord, Placement]]:
    """Return those that nobody has held since the plan, and whose group goes on."""
    asked = {i for r, _ in there for i in (r.id, r.resource_group_id) if i is not None}
    stopped = {stop.target_id for stop in await list_stops(tx.connection, asked)}
    return [
        (record, placement)
        for record, placement in there
        if stopped.isdisjoint((record.id, record.resource_group_id))
    ]


async def find_reserved_since(
    tx: Transaction, heeded: Collection[ReservedWindow]
) -> set[str]:
    """Return the nodes that a reservation is about which was not *heeded*.

    It may be open to who was to start there, or begin when that is over: the next pass
    tells, which knows of it.
    """
    there = await load_windows(tx.connection, tx.now)
    return {node for window in there if window not in heeded for node in window.nodes}


def _takes(node: AgentRecord | None, record: SessionRecord) -> bool:
    """Tell whether the node is still what the plan took it for; its row is locked."""
    return (
        node is not None
        and node.resource_group_id == record.resource_group_id
        and node.status is AgentStatus.ALIVE
        and node.schedulable
        and node.protocol >= protocol_for(record.type, record.cluster_size)
        and record.labels.items() <= join_labels(node.labels, node.set_labels).items()
    )


def _entries(record: SessionRecord, placement: Placement) -> list[Entry]:
    entries = [
        Entry(ScopeKind.DEVICE, s.device, s.slot, s.amount)
        for piece in _pieces(placement)
        for s in piece.shares
    ]
    entries += [
        Entry(kind, owner, slot, amount)
        for kind, owner in record.scopes
        for slot, amount in record.charge.items()
    ]
    return entries


class Room:
    """What locked rows have left, while one session after the other takes of it."""

    def __init__(self, rows: Mapping[Key, Row], scopes: Scopes) -> None:
        self._rows = rows
        self._scopes = scopes
        self.taken: dict[Key, int] = {}
        self.limits: dict[Key, int | None] = {}

    def take(self, entries: Sequence[Entry]) -> bool:
        """Take all of it, or nothing if any of it is not there."""
        asked: dict[Key, int] = {}
        for entry in entries:
            key = (entry.kind, entry.owner_id, entry.slot)
            asked[key] = asked.get(key, 0) + entry.amount
        if not all(self.has(key, amount) for key, amount in asked.items()):
            return False
        for key, amount in asked.items():
            self.taken[key] = self.taken.get(key, 0) + amount
        return True

    def has(self, key: Key, amount: int) -> bool:
        """Tell whether *amount* is left."""
        row = self._rows.get(key)
        if row is None:
            return False
        limit = self.limits.get(key)
        if key not in self.limits:
            limit = self.limits[key] = self.limit_of(key, row)
        return limit is None or row.used + self.taken.get(key, 0) + amount <= limit

    def limit_of(self, key: Key, row: Row) -> int | None:
        """Return the limit: a device's own, a tenant's from where it is said."""
        kind, owner, slot = key
        if kind is ScopeKind.DEVICE:
            return row.quota or 0
        scope = self._scopes.get((kind, owner))
        return None if scope is None else scope.limit_of(slot)


def _describe(placement: Placement, nodes: Mapping[str, AgentRecord]) -> str:
    """Say where a session has been placed."""
    pieces = _pieces(placement)
    names = list(dict.fromkeys(nodes[piece.node].name for piece in pieces))
    if len(names) == 1:
        return f"placed on {names[0]}, which has not taken it up yet"
    where = ", ".join(f"{p.seat.host} on {nodes[p.node].name}" for p in pieces)
    return f"placed on {len(names)} nodes, which have not taken it up yet: {where}"


async def _write(
    platform: Platform,
    tx: Transaction,
    held: Sequence[tuple[SessionRecord, Placement]],
    nodes: Mapping[str, AgentRecord],
) -> dict[str, str]:
    used = {piece.node for _, placement in held for piece in _pieces(placement)}
    await agents.bump_generations(tx, used)
    rows, shares = [], []
    for record, placement in held:
        for piece in _pieces(placement):
            container = ContainerRecord(
                id=platform.new_id(),
                session_id=record.id,
                agent_id=piece.node,
                desired="running",
                image=piece.image,
                generation=nodes[piece.node].generation + 1,
                created_at=tx.now,
                gone_at=None,
                role=str(piece.seat.role),
                idx=piece.seat.idx,
                host=piece.seat.host,
            )
            rows.append(container)
            shares += [
                {
                    "id": platform.new_id(),
                    "session_id": record.id,
                    "container_id": container.id,
                    "device_id": share.device,
                    "slot": share.slot,
                    "amount": share.amount,
                    "slices": share.slices,
                }
                for share in piece.shares
            ]
    await insert_containers(tx, rows)
    await insert_allocations(tx, shares, {record.owner_id for record, _ in held})
    placed = [(record, p.node, _describe(p, nodes)) for record, p in held]
    await sessions.schedule_sessions(tx, placed)
    reserved = [r.id for r, _ in held if r.status is SessionStatus.RESERVED]
    if reserved:
        await preemptions.close_plans(tx, reserved, Ending.STARTED)
    for record, node, reason in placed:
        tx.record(
            Event(
                kind=EventKind.SESSION_SCHEDULED,
                text=reason,
                session_id=record.id,
                owner_id=record.owner_id,
                agent_id=node,
                status=SessionStatus.SCHEDULED,
            )
        )
    tx.wake("attachments")
    return {record.id: reason for record, _, reason in placed}
