"""What the scheduler decides from, kept in memory and read anew where it has changed.

The database is the truth. A view begins empty and reads everything once; after that,
every transaction of this process tells what it has changed (:mod:`..db.versions`), and
only that is read again. A view and one that has just been made are always the same;
the tests hold them against each other.

Reading tells whether anybody could *gain* from it: somebody new waits, room has become
free, a limit has been raised. If nobody could, the last plan still stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.images import Image
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db.batch import Dependency, load_unmet, tell_all_waits
from backendai_hub.db.deadlines import load_lifetimes, load_returns
from backendai_hub.db.groups import load_holds
from backendai_hub.db.images import load_images
from backendai_hub.db.limits import Scopes, add_use, recall_limits
from backendai_hub.db.preemptions import load_reserved
from backendai_hub.db.reservations import load_windows
from backendai_hub.db.running import load_running
from backendai_hub.db.session_lists import list_waiting
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.snapshots import find_nodes, load_nodes
from backendai_hub.db.versions import Stale
from backendai_hub.operations.group_policies import GroupPolicies
from backendai_hub.operations.moments import Moments
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.prepare import pending
from backendai_hub.scheduling.layouts import count_devices
from backendai_hub.scheduling.snapshot import (
    WIDE,
    NodeState,
    PendingSession,
    Plan,
    Reservation,
    ReservedWindow,
    RunningSession,
    Snapshot,
)

Thing = TypeVar("Thing")

_MOST_GUESTS = 64
_AT_A_TIME = 500
"""How many are described before others have their turn in this process."""


class QueueView:
    """The queue, its limits and the nodes, as of the last reading."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._stale = platform.database.versions.follow()
        self._images: dict[str, Image] = {}
        self._holds: dict[str, str] = {}
        self._lifetimes: dict[str, int] = {}
        self._windows: tuple[ReservedWindow, ...] = ()
        self._waits: dict[str, str] = {}
        self._scopes: Scopes = {}
        self._nodes: dict[str, NodeState] = {}
        self._policies = GroupPolicies(platform)
        self._running: tuple[RunningSession, ...] = ()
        self._reserved: tuple[Reservation, ...] = ()
        self._kept: dict[str, Reservation] = {}
        self._queue: dict[str, PendingSession] = {}
        self.records: dict[str, SessionRecord] = {}
        """Every session that waits, by id."""
        self.unmet: Mapping[str, Sequence[Dependency]] = {}
        """Which sessions have to succeed first, by who waits for them."""
        self._moments = Moments(platform.database.clock())
        self._guests: dict[str, SessionRecord] = {}
        self.placed: set[str] = set()
        """Whom the scheduler has placed since the last reading: room they have taken,
        and left none."""

    def knows(self, guest: SessionRecord) -> bool:
        """Tell whether what matters for *guest* is read anyway."""
        return _key_of(guest) in self._guests

    def invite(self, guest: SessionRecord) -> bool:
        """Read what matters for *guest*, too, who is not in the queue.

        The latest few are remembered, so that asking again costs nothing; tells
        whether this one is new.
        """
        key = _key_of(guest)
        is_new = key not in self._guests
        if is_new:
            while len(self._guests) >= _MOST_GUESTS:
                del self._guests[next(iter(self._guests))]
            self._stale.tenancy = True
        self._guests[key] = guest
        return is_new

    @property
    def _everybody(self) -> list[SessionRecord]:
        return [*self.records.values(), *self._guests.values()]

    def until_next_moment(self) -> float | None:
        """Return in how many seconds somebody could start just because it is time."""
        return self._moments.until_next(self._platform.database.clock())

    def forget(self) -> None:
        """Read everything anew the next time."""
        self._stale.merge(Stale(everything=True))

    def note(self, queue: Sequence[PendingSession], plan: Plan) -> None:
        """Learn from what has been decided of *queue* for the next decisions."""
        self._policies.note(queue, plan.placements)
        self._reserved = tuple(r for r in plan.reservations if not r.displacing)

    async def refresh(self) -> bool:
        """Read what has changed; tell whether anybody could start who could not."""
        stale = self._stale.take()
        try:
            async with self._platform.database.read() as connection:
                return await self._read(connection, stale)
        except BaseException:
            # Nobody knows how far it came: read and describe everything the next time.
            self._queue.clear()
            self.forget()
            raise

    def snapshot(self) -> Snapshot:
        """Return everything a plan is made from."""
        if not self._everybody:
            return Snapshot(nodes=(), queue=(), scopes={})
        turns = sorted(
            self.records.values(), key=lambda r: (-r.priority, r.created_at, r.id)
        )
        return Snapshot(
            nodes=tuple(sorted(self._nodes.values(), key=lambda n: (n.name, n.id))),
            queue=tuple(self._queue[record.id] for record in turns),
            scopes=dict(self._scopes),
            windows=self._windows,
            running=self._running,
            reserved=(*self._kept.values(), *self._reserved),
            now=int(self._platform.database.clock().timestamp()),
            groups=self._policies.found,
        )

    async def _read(self, connection: AsyncConnection, stale: Stale) -> bool:
        changed = await self._read_sessions(connection, stale)
        if not self._everybody:
            # Nobody asks what there is: it is read once somebody does.
            stale.all_sessions = False
            stale.sessions.clear()
            self._stale.merge(stale)
            for what in (self._queue, self._holds, self._lifetimes, self._waits):
                what.clear()
            self._kept = {}
            return False
        gained = await self._read_queue(connection, stale, changed)
        if stale.use or stale.tenancy or changed:
            limits = await recall_limits(self._platform.database, self._everybody)
            scopes = await add_use(connection, limits)
            gained |= _is_wider(self._scopes, scopes)
            self._scopes = scopes
        if stale.tenancy:
            now = self._platform.database.clock()
            windows = await load_windows(connection, now)
            gained |= windows != self._windows
            self._windows = windows
        self._moments.note(self.records.values(), self._windows)
        gained |= self._moments.pass_by(self._platform.database.clock())
        gained |= await self._read_nodes(connection, stale)
        kept = await self._read_kept(connection)
        gained |= kept.keys() != self._kept.keys()
        self._kept = kept
        groups = {r.resource_group_id or "" for r in self._everybody}
        gained |= await self._policies.read(
            connection, groups, self._nodes.values(), stale
        )
        # What runs, and until when, matters to those who get devices reserved or
        # displace others.
        matters = self._is_anybody_displaced() or self._has_waited_long()
        self._running = await load_running(connection) if matters else ()
        return gained

    async def _read_kept(self, connection: AsyncConnection) -> dict[str, Reservation]:
        """Read what is kept for whom while others leave: the database knows it."""
        reserved = [
            i for i, r in self.records.items() if r.status is SessionStatus.RESERVED
        ]
        return await load_reserved(connection, reserved) if reserved else {}

    def _is_anybody_displaced(self) -> bool:
        """Tell whether in any group somebody may have to go for somebody else."""
        return any(policy.displaces for policy in self._policies.found.values())

    def _has_waited_long(self) -> bool:
        """Tell whether anybody waits for whom something may be reserved."""
        now, groups = self._platform.database.clock(), self._policies.found
        for record in self.records.values():
            policy = groups.get(record.resource_group_id or "")
            if policy is None:
                continue
            wide = record.is_cluster or count_devices(record.request) >= WIDE
            after = policy.patience(record.priority, wide=wide)
            since = self._queue[record.id].since
            if after is not None and now.timestamp() - since >= after:
                return True
        return False

    async def _read_sessions(
        self, connection: AsyncConnection, stale: Stale
    ) -> set[str]:
        """Read who waits; return the ids of those who have come, gone or changed."""
        if not stale.all_sessions and not stale.sessions:
            return set()
        ids = None if stale.all_sessions else stale.sessions
        found = {r.id: r for r in await list_waiting(connection, ids)}
        before = self.records
        self.records = {
            **(
                {} if ids is None else {i: r for i, r in before.items() if i not in ids}
            ),
            **found,
        }
        return {
            i
            for i in (before.keys() | found.keys() if ids is None else ids)
            if before.get(i) != found.get(i)
        }

    async def _read_queue(
        self, connection: AsyncConnection, stale: Stale, changed: set[str]
    ) -> bool:
        """Describe who waits anew; tell whether anybody looks different."""
        records = self.records
        self.unmet = await load_unmet(connection, records.values())
        now = self._platform.database.clock()
        waits = tell_all_waits(records.values(), self.unmet, now)
        # Other sessions and the time change them, whatever becomes of their own rows.
        changed |= {
            i
            for i in waits.keys() | self._waits.keys()
            if waits.get(i) != self._waits.get(i)
        }
        self._waits = waits
        anew = stale.images or stale.tenancy
        asking = [records[i] for i in (records if anew else changed & records.keys())]
        repainted = await self._read_images(connection, stale, asking)
        returns: dict[str, datetime] = {}
        if asking:
            holds = await load_holds(connection, asking)
            lifetimes = await load_lifetimes(connection, asking)
            returns = await load_returns(connection, asking)
            moved = {
                r.id
                for r in asking
                if _moves(self._holds, r.id, holds.get(r.id))
                | _moves(self._lifetimes, r.id, lifetimes.get(r.id))
            }
            # Most of what is looked at anew is as it was: it need not be said again.
            asking = [
                record
                for record in asking
                if record.id in changed
                or record.id in moved
                or record.id not in self._queue
                or record.image_id in repainted
            ]
        gone = self._queue.keys() - records.keys()
        # Whoever leaves without having been placed may have stood in others' way.
        left = bool(gone - self.placed)
        self.placed.clear()
        for session_id in gone:
            del self._queue[session_id]
            self._holds.pop(session_id, None)
            self._lifetimes.pop(session_id, None)
        differs = False
        for start in range(0, len(asking), _AT_A_TIME):
            for record in asking[start : start + _AT_A_TIME]:
                new = self._describe(record, returns.get(record.id))
                differs |= self._queue.get(record.id) != new
                self._queue[record.id] = new
            await asyncio.sleep(0)
        return differs or left

    async def _read_images(
        self, connection: AsyncConnection, stale: Stale, asking: Sequence[SessionRecord]
    ) -> set[str]:
        """Read the images of these that are not known; return which look different."""
        chosen = {r.image_id for r in asking if r.image_id is not None}
        missing = chosen if stale.images else chosen - self._images.keys()
        if not missing:
            return set()
        found = await load_images(connection, sorted(missing))
        known = {} if stale.images else self._images
        different = {i for i in missing if self._images.get(i) != found.get(i)}
        self._images = {**known, **found}
        return different

    def _describe(
        self, record: SessionRecord, since: datetime | None
    ) -> PendingSession:
        image = self._images.get(record.image_id or "")
        if image is None:
            hold = (
                f"the environment {record.image} is not there any more; ask for another"
            )
            return pending(record, Image(name=record.image, references={}), hold=hold)
        holds = (self._holds.get(record.id, ""), self._waits.get(record.id, ""))
        return describe(record, image, holds, self._lifetimes.get(record.id), since)

    async def _read_nodes(self, connection: AsyncConnection, stale: Stale) -> bool:
        """Read the nodes that have changed; tell whether any has gained room."""
        if stale.all_nodes:
            ids = None
        else:
            ids = set(stale.nodes)
            if stale.devices:
                ids |= await find_nodes(connection, stale.devices)
            if not ids:
                return False
        found = {n.id: n for n in await load_nodes(connection, ids)}
        before = self._nodes
        kept = {} if ids is None else {i: n for i, n in before.items() if i not in ids}
        self._nodes = {**kept, **found}
        return any(_has_gained(before.get(i), node) for i, node in found.items())


def _key_of(guest: SessionRecord) -> str:
    return repr((guest.scopes, guest.resource_group_id))


def _moves(known: dict[str, Thing], session_id: str, new: Thing | None) -> bool:
    """Note what there is of a session now; tell whether that is something else."""
    if known.get(session_id) == new:
        return False
    if new is None:
        del known[session_id]
    else:
        known[session_id] = new
    return True


def describe(
    record: SessionRecord,
    image: Image,
    holds: Iterable[str],
    lifetime: int | None,
    since: datetime | None = None,
) -> PendingSession:
    """Describe a session to the scheduler, with its place and time in the queue.

    *since* is when it came back there; its place is still that of who came then.
    """
    limits = (record.batch_timeout, lifetime)
    return msgspec.structs.replace(
        pending(record, image, hold="; ".join(filter(None, holds))),
        priority=record.priority,
        since=int((since or record.created_at).timestamp()),
        lifetime=min(filter(None, limits), default=None),
    )


def _is_wider(old: Scopes, new: Scopes) -> bool:
    """Tell whether any limit has been raised, or less is used of it."""
    for key, scope in new.items():
        before = old.get(key)
        if before is None or before.limits != scope.limits:
            return True
        if before.unspecified != scope.unspecified:
            return True
        if any(scope.used.get(slot, 0) < used for slot, used in before.used.items()):
            return True
    return False


def _has_gained(old: NodeState | None, new: NodeState) -> bool:
    """Tell whether a node could take something that it could not take before."""
    if old is None or len(old.devices) != len(new.devices):
        return True
    for before, after in zip(old.devices, new.devices, strict=True):
        if any(after.free.get(s, 0) > n for s, n in before.free.items()):
            return True
        if before.sliced & ~after.sliced:
            return True
        alike = msgspec.structs.replace(after, free=before.free, sliced=before.sliced)
        if alike != before:
            return True
    same = msgspec.structs.replace(new, devices=old.devices)
    if new.containers > old.containers:
        same = msgspec.structs.replace(same, containers=old.containers)
    if new.sole_owner is not None and old.sole_owner is None:
        same = msgspec.structs.replace(same, sole_owner=None)
    return same != old


async def load_snapshot(platform: Platform) -> Snapshot:
    """Read what the scheduler decides from, in one consistent view."""
    view = QueueView(platform)
    await view.refresh()
    return view.snapshot()
