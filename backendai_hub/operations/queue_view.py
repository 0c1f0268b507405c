"""What the scheduler decides from, kept in memory and read anew where it has changed.

The database is the truth. A view begins empty and reads everything once; after that,
every transaction of this process tells what it has changed (:mod:`..db.versions`), and
only that is read again. A view and one that has just been made are always the same;
the tests hold them against each other.

Reading tells whether anybody could *gain* from it: somebody new waits, room has become
free, a limit has been raised. If nobody could, the last plan still stands. If only some
have come, it stands for all others, and just those need one, however many wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.images import Image
from backendai_hub.db.batch import Dependency, load_unmet, tell_all_waits
from backendai_hub.db.deadlines import load_lifetimes, load_returns
from backendai_hub.db.groups import load_holds
from backendai_hub.db.limits import Scopes, add_use, recall_limits_of
from backendai_hub.db.preemptions import load_reserved
from backendai_hub.db.reservations import load_windows
from backendai_hub.db.running import load_running
from backendai_hub.db.session_lists import list_waiting
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.snapshots import find_nodes, load_nodes
from backendai_hub.db.versions import Stale
from backendai_hub.operations.described import Alike, describe
from backendai_hub.operations.gains import News, has_gained, is_wider, moves
from backendai_hub.operations.group_policies import GroupPolicies
from backendai_hub.operations.guests import Guests
from backendai_hub.operations.known_images import KnownImages
from backendai_hub.operations.moments import Moments
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.prepare import pending
from backendai_hub.operations.waiting_list import WaitingList
from backendai_hub.scheduling.keeping import may_be_kept_room
from backendai_hub.scheduling.mix import LOOKED_AT
from backendai_hub.scheduling.snapshot import (
    NodeState,
    PendingSession,
    Placement,
    Plan,
    Reservation,
    ReservedWindow,
    RunningSession,
    Snapshot,
)

_MOST_NODES = 1000
"""Where more have changed, all are read: they have too many devices to name."""
_AT_A_TIME = 500
"""How many are described before others have their turn in this process."""


class QueueView:
    """The queue, its limits and the nodes, as of the last reading."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._stale = platform.database.versions.follow()
        self._images = KnownImages()
        self._alike = Alike()
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
        self._waiting = WaitingList()
        self._limits: Scopes = {}
        self.unmet: Mapping[str, Sequence[Dependency]] = {}
        """Which sessions have to succeed first, by who waits for them."""
        self._moments = Moments(platform.database.clock())
        self._guests = Guests()
        self.placed: set[str] = set()
        """Whom the scheduler has placed since the last reading: room they have taken,
        and left none."""
        self._doubtful: set[str] = set()
        self._news = News()

    @property
    def records(self) -> Mapping[str, SessionRecord]:
        """Every session that waits, by id; it changes as they come and go."""
        return self._waiting.records

    def knows(self, guest: SessionRecord) -> bool:
        """Tell whether what matters for *guest* is read anyway."""
        return guest in self._guests

    def invite(self, guest: SessionRecord) -> bool:
        """Read what matters for *guest*, too, who is not in the queue.

        The latest few are remembered, so that asking again costs nothing; tells
        whether this one is new.
        """
        is_new = guest not in self._guests
        if is_new:
            self._stale.tenancy = True
        self._guests.add(guest)
        return is_new

    def take_news(self) -> News:
        """Return what has been found since this was asked last."""
        news, self._news = self._news, News()
        return news

    def until_next_moment(self) -> float | None:
        """Return in how many seconds somebody could start just because it is time."""
        return self._moments.until_next(self._platform.database.clock())

    def forget(self) -> None:
        """Read everything anew the next time."""
        self._stale.merge(Stale(everything=True))

    def doubt(self, placements: Iterable[Placement]) -> None:
        """Look anew at what these placements are about: they did not hold."""
        for placement in placements:
            self._doubtful.add(placement.session)
            self._stale.sessions.add(placement.session)
            self._stale.nodes.add(placement.node)
            self._stale.nodes.update(part.node for part in placement.members)
        self._stale.use = True

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

    def snapshot(self, came: Collection[str] | None = None) -> Snapshot:
        """Return everything a plan is made from, for all who wait.

        Or just for those who *came*, if nobody else could gain, and for whom something
        is kept; the first of their queues show what is asked for. Where others may have
        to go, these are decided about as well: time alone may let them displace.
        """
        if not self.records and not self._guests:
            return Snapshot(nodes=(), queue=(), scopes={})
        turns: Iterable[SessionRecord] = self._waiting.in_order()
        shown: dict[str, tuple[PendingSession, ...]] = {}
        if came is not None:
            there, shown = self._list_with(came)
            turns = self._waiting.sort(there)
        return Snapshot(
            nodes=tuple(sorted(self._nodes.values(), key=lambda n: (n.name, n.id))),
            queue=tuple(self._queue[record.id] for record in turns),
            scopes=dict(self._scopes),
            windows=self._windows,
            running=self._running,
            reserved=(*self._kept.values(), *self._reserved),
            now=self._now(),
            groups=self._policies.found,
            shown=shown,
            whole=came is None,
        )

    def is_enough(self, came: Collection[str]) -> bool:
        """Tell whether it is worth while, and right, to plan for just those who *came*.

        Not where others have a claim on what is guaranteed to them, or wait for any
        group; nor where one of them may get devices reserved, since only a pass over
        everybody knows whose turn that is.
        """
        groups = self._waiting.groups
        if len(self.records) <= LOOKED_AT + 2 * len(came) or "" in groups:
            return False
        found = self._policies.found
        if any(group in found and found[group].quotas for group in groups):
            return False
        return not may_be_kept_room(
            self.describe(came), self._reserved, found, self._now()
        )

    def describe(self, ids: Iterable[str]) -> list[PendingSession]:
        """Return those of these sessions that wait, as the scheduler sees them."""
        return [self._queue[i] for i in ids if i in self._queue]

    def _now(self) -> int:
        return int(self._platform.database.clock().timestamp())

    def _list_with(
        self, came: Collection[str]
    ) -> tuple[set[str], dict[str, tuple[PendingSession, ...]]]:
        """Return who is decided about if just those *came*, and who is only shown."""
        there = {i for i in came if i in self.records}
        kept = {r.session for r in self._reserved} | self._kept.keys()
        policies = self._policies.found
        shown = {}
        for group in {self.records[i].resource_group_id or "" for i in there}:
            heads = self._waiting.heads(group, LOOKED_AT)
            policy = policies.get(group)
            if policy is None or policy.displaces:
                there |= set(heads)
            else:
                shown[group] = tuple(self._queue[i] for i in heads)
        return there | (kept & self.records.keys()), shown

    async def _read(self, connection: AsyncConnection, stale: Stale) -> bool:
        changed = await self._read_sessions(connection, stale)
        if not self.records and not self._guests:
            # Nobody asks what there is: it is read once somebody does.
            stale.all_sessions = False
            stale.sessions.clear()
            self._stale.merge(stale)
            for what in (self._queue, self._holds, self._lifetimes, self._waits):
                what.clear()
            self._kept = {}
            return False
        news = await self._read_queue(connection, stale, changed)
        gained = news.gained
        if stale.use or stale.tenancy or changed:
            gained |= await self._read_scopes(connection, stale)
        if stale.tenancy:
            now = self._platform.database.clock()
            windows = await load_windows(connection, now)
            gained |= windows != self._windows
            self._windows = windows
        timed = [self.records[i] for i in self._waiting.timed]
        self._moments.note(timed, self._windows)
        gained |= self._moments.pass_by(self._platform.database.clock())
        gained |= await self._read_nodes(connection, stale)
        kept = await self._read_kept(connection)
        gained |= kept.keys() != self._kept.keys()
        self._kept = kept
        groups = self._waiting.groups.keys() | self._guests.groups
        gained |= await self._policies.read(
            connection, groups, self._nodes.values(), stale
        )
        # What runs, and until when, matters to those who get devices reserved or
        # displace others.
        now, found = self._platform.database.clock(), self._policies.found
        matters = any(policy.displaces for policy in found.values())
        matters |= self._waiting.has_waited_long(found, now)
        self._running = await load_running(connection) if matters else ()
        self._news.came |= news.came
        self._news.gained |= gained
        return gained or bool(news.came)

    async def _read_scopes(self, connection: AsyncConnection, stale: Stale) -> bool:
        """Read limits and what is used of them; tell whether any is wider."""
        wanted = self._waiting.scopes.keys() | self._guests.scopes
        if stale.tenancy or not self._limits.keys() >= wanted:
            self._limits = await recall_limits_of(
                self._platform.database, frozenset(wanted)
            )
        limits = {key: v for key, v in self._limits.items() if key in wanted}
        scopes = await add_use(connection, limits)
        wider = is_wider(self._scopes, scopes)
        self._scopes = scopes
        return wider

    async def _read_kept(self, connection: AsyncConnection) -> dict[str, Reservation]:
        """Read what is kept for whom while others leave: the database knows it."""
        reserved = sorted(self._waiting.reserved)
        return await load_reserved(connection, reserved) if reserved else {}

    async def _read_sessions(
        self, connection: AsyncConnection, stale: Stale
    ) -> set[str]:
        """Read who waits; return the ids of those who have come, gone or changed."""
        if not stale.all_sessions and not stale.sessions:
            return set()
        ids = None if stale.all_sessions else stale.sessions
        found = {r.id: r for r in await list_waiting(connection, ids)}
        doubtful, self._doubtful = self._doubtful, set()
        return self._waiting.update(found, ids) | doubtful

    async def _read_queue(
        self, connection: AsyncConnection, stale: Stale, changed: set[str]
    ) -> News:
        """Describe who waits anew; tell who has come, and whether others may gain."""
        records, jobs = self.records, self._waiting.batch
        self.unmet = await load_unmet(connection, map(records.__getitem__, jobs))
        now = self._platform.database.clock()
        held_up = self.unmet.keys() | self._waiting.timed
        some = [records[i] for i in held_up if i in records]
        waits = tell_all_waits(some, self.unmet, now)
        # Other sessions and the time change them, whatever becomes of their own rows.
        changed |= {
            i
            for i in waits.keys() | self._waits.keys()
            if waits.get(i) != self._waits.get(i)
        }
        self._waits = waits
        anew = stale.images or stale.tenancy
        # Not as sets: what waits is not gone through for the few that have changed.
        asking = [records[i] for i in (records if anew else changed) if i in records]
        repainted = await self._images.read(
            connection, {r.image_id for r in asking}, anew=stale.images
        )
        returns: dict[str, datetime] = {}
        if asking:
            holds = await load_holds(connection, asking)
            lifetimes = await load_lifetimes(connection, asking)
            returns = await load_returns(connection, asking)
            moved = {
                r.id
                for r in asking
                if moves(self._holds, r.id, holds.get(r.id))
                | moves(self._lifetimes, r.id, lifetimes.get(r.id))
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
        gone = {i for i in ([*self._queue] if anew else changed) if i not in records}
        # Whoever leaves without having been placed may have stood in others' way.
        left = bool(gone - self.placed)
        self.placed.clear()
        for session_id in gone:
            self._queue.pop(session_id, None)
            self._holds.pop(session_id, None)
            self._lifetimes.pop(session_id, None)
        news = News(gained=left)
        for start in range(0, len(asking), _AT_A_TIME):
            for record in asking[start : start + _AT_A_TIME]:
                new = self._describe(record, returns.get(record.id))
                old = self._queue.get(record.id)
                news.gained |= old is not None and old != new
                if old is None or old.priority < new.priority:
                    news.came.add(record.id)
                self._queue[record.id] = new
            await asyncio.sleep(0)
        return news

    def _describe(
        self, record: SessionRecord, since: datetime | None
    ) -> PendingSession:
        image = self._images.get(record.image_id)
        if image is None:
            hold = (
                f"the environment {record.image} is not there any more; ask for another"
            )
            return pending(record, Image(name=record.image, references={}), hold=hold)
        holds = (self._holds.get(record.id, ""), self._waits.get(record.id, ""))
        lifetime = self._lifetimes.get(record.id)
        return self._alike.share(describe(record, image, holds, lifetime, since))

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
            if len(ids) > _MOST_NODES:
                ids = None
        found = {n.id: n for n in await load_nodes(connection, ids)}
        before = self._nodes
        kept = {} if ids is None else {i: n for i, n in before.items() if i not in ids}
        self._nodes = {**kept, **found}
        return any(has_gained(before.get(i), node) for i, node in found.items())


async def load_snapshot(platform: Platform) -> Snapshot:
    """Read what the scheduler decides from, in one consistent view."""
    view = QueueView(platform)
    await view.refresh()
    return view.snapshot()
