"""The line of those who wait for one resource group, and the group's nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from backendai_hub.scheduling import reasons
from backendai_hub.scheduling.backfill import Holding, Shadow, find_shadow
from backendai_hub.scheduling.cluster import Cluster, Mask
from backendai_hub.scheduling.gangs import Gang
from backendai_hub.scheduling.holds import Hold, free_part, hold_window
from backendai_hub.scheduling.mix import gather
from backendai_hub.scheduling.ordering import Bands, Order, ShareState
from backendai_hub.scheduling.placing import Placer, Room
from backendai_hub.scheduling.plugins import (
    UnknownPolicyError,
    find_placement,
    find_sequencer,
)
from backendai_hub.scheduling.preemption import find_victims
from backendai_hub.scheduling.scoring import Scorer
from backendai_hub.scheduling.shapes import Shape, Shapes
from backendai_hub.scheduling.snapshot import (
    ContainerPlacement,
    GroupPolicy,
    NodeState,
    PendingSession,
    Placement,
    PreemptionPlan,
    Reservation,
    RunningSession,
    Share,
    Snapshot,
)
from backendai_hub.scheduling.strategies import Concentrated, Dispersed, RoundRobin

Head = tuple[int, int]
"""Minus the priority, and the index in the snapshot's queue."""
_MOST_PREEMPTIONS = 8
"""How many preemptions one pass works out for one group."""


class Trial(NamedTuple):
    """A copy of a line's nodes, to see what would find room there."""

    placer: Placer
    shapes: Shapes
    attempt: Callable[[Placer, Shapes, PendingSession, Mask | None], list[Room] | None]

    def take(
        self, session: PendingSession, among: Mask | None = None
    ) -> list[Room] | None:
        """Take room for *session* on the copy, if there is any."""
        return self.attempt(self.placer, self.shapes, session, among)

    def fits(self, session: PendingSession) -> bool:
        """Tell whether *session* finds room; what it takes is given back."""
        rooms = self.take(session)
        for room in reversed(rooms or ()):
            self.placer.undo(room)
        return rooms is not None


class Line:
    """One group's queue in its order, and its nodes as the pass has left them."""

    def __init__(
        self,
        snapshot: Snapshot,
        indices: Sequence[int],
        nodes: Sequence[NodeState],
        policy: GroupPolicy,
    ) -> None:
        self.policy = policy
        self._queue = [snapshot.queue[i] for i in indices]
        self._indices = indices
        self._head = -1
        self._problem = "" if nodes else _nobody(snapshot)
        self.cluster = Cluster(nodes)
        self._order, scorer = self._follow(policy)
        self._placer = Placer(self.cluster, scorer, allow_split=policy.allow_split)
        self._shapes = Shapes(self.cluster, allow_split=policy.allow_split)
        self._no_room: dict[object, str] = {}
        self._hopeless: set[object] = set()
        """Those for whom nothing can be reserved."""
        self._now = snapshot.now
        self._running = [r for r in snapshot.running if _is_here(r, self.cluster)]
        self._started: list[Placement] = []
        self._ends: list[int | None] = []
        """When those who have just started end at the latest."""
        self._holds: list[Hold] = []
        self.reservations: list[Reservation] = []
        self.preemptions: list[PreemptionPlan] = []
        for window in snapshot.windows:
            for hold in hold_window(self.cluster, window, snapshot.now):
                self._put_aside(hold)
        self._keep_reserved(snapshot.reserved)

    def _follow(self, policy: GroupPolicy) -> tuple[Order, Scorer]:
        """Begin what the policy names; if it is not there, the line waits for it."""
        try:
            sequencer = find_sequencer(policy.sequencer)
            placement = find_placement(policy.placement)
        except UnknownPolicyError as error:
            self._problem = str(error)
            sequencer, placement = find_sequencer("fifo"), Dispersed()
        if isinstance(placement, RoundRobin):
            placement = placement.after(policy.last_node)
        shares = policy.shares if policy.shares is not None else ShareState()
        typical = gather(self.cluster, policy.typical, self._queue)
        order = Bands(self._queue, sequencer, shares)
        return order, placement.scorer(self.cluster, typical)

    # --- its order ---------------------------------------------------------------

    def advance(self) -> Head | None:
        """Go on to the next candidate, and return where it stands."""
        head = self._order.next()
        if head is None:
            return None
        self._head = head
        return -self._queue[head].priority, self._indices[head]

    def placed(self) -> None:
        """Note that the candidate got room."""
        self._order.placed(self._head)

    # --- its nodes ---------------------------------------------------------------

    def place(self, session: PendingSession) -> Placement | str:
        """Take room for *session*, or say why there is none."""
        if self._problem:
            return self._problem
        ends = self._end_of(session)
        beside = self._open_holds(session, ends) if self._holds else ()
        shape = self._shapes.of(session)
        key = self._class_of(session, shape, beside)
        known = self._no_room.get(key)
        if known is not None:
            return self._follow_others(session, key, known)
        rooms = self._try(self._placer, self._shapes, session, shape=shape)
        if rooms is None and beside:
            rooms = self._use_holds(session, beside)
        if rooms is None:
            return self._explain(session, key, beside)
        if self._holds:
            self._release(session)
        placement = self._write(session, rooms)
        self._started.append(placement)
        self._ends.append(ends)
        return placement

    def _class_of(
        self, session: PendingSession, shape: Shape, beside: Sequence[Hold]
    ) -> object:
        """Return what sessions have in common that find room, or none, together."""
        owner = "" if self.cluster.keeps_apart else session.owner_id
        displaces = self.policy.preemption.enabled
        if not (session.members or beside or displaces):
            return (shape, owner)
        asked = tuple(member.request for member in session.members)
        whom = (session.job_priority, session.owner_id, session.scopes)
        return (
            shape,
            owner,
            asked,
            session.layout,
            tuple(map(id, beside)),
            whom if displaces else (),
        )

    def _follow_others(self, session: PendingSession, key: object, reason: str) -> str:
        """Give *session* the reason of those like it, and a reservation if it is time.

        Others like it may have waited less long.
        """
        if key in self._hopeless or not self._is_patient(session):
            return reason
        told = self._reserve(session)
        if not told:
            self._hopeless.add(key)
        return f"{reason}; {told}" if told else reason

    def _try(
        self,
        placer: Placer,
        shapes: Shapes,
        session: PendingSession,
        among: Mask | None = None,
        *,
        shape: Shape | None = None,
    ) -> list[Room] | None:
        """Take room for all containers of *session*, or for none."""
        if session.members:
            return Gang(placer, shapes, session, among).place(self.policy.rack_label)
        shape = shape or shapes.of(session)
        while (row := placer.find(shape, session.owner_id, among)) >= 0:
            shares = placer.take(shape, row)
            if shares is not None:
                return [placer.settle(row, shares, session.owner_id)]
            placer.rule_out(shape, row)
        return None

    def _write(self, session: PendingSession, rooms: Sequence[Room]) -> Placement:
        nodes = self.cluster.nodes
        first = nodes[rooms[0].row]
        return Placement(
            session=session.id,
            node=first.id,
            image=session.references[first.runtime],
            shares=rooms[0].shares,
            members=tuple(
                ContainerPlacement(
                    member=member.name,
                    node=nodes[room.row].id,
                    image=session.references[nodes[room.row].runtime],
                    shares=room.shares,
                )
                for member, room in zip(session.members, rooms, strict=True)
            )
            if session.members
            else (),
        )

    # --- what is kept for others -----------------------------------------------------

    def _end_of(self, session: PendingSession) -> int | None:
        """Tell when *session* ends at the latest if it starts now."""
        lifetime = session.lifetime
        if lifetime is None:
            lifetime = self.policy.max_lifetime
        return None if lifetime is None else self._now + lifetime

    def _put_aside(self, hold: Hold) -> None:
        if hold.shares:
            hold.put_aside(self.cluster)
            self._holds.append(hold)

    def _open_holds(
        self, session: PendingSession, ends: int | None
    ) -> tuple[Hold, ...]:
        return tuple(
            h
            for h in self._holds
            if h.shares and h.lets(session, now=self._now, ends=ends)
        )

    def _use_holds(
        self, session: PendingSession, holds: Sequence[Hold]
    ) -> list[Room] | None:
        """Try again with what is kept for others but free until they need it."""
        for hold in holds:
            hold.put_back(self.cluster)
        rooms = self._try(self._placer, self._shapes, session)
        taken: dict[int, list[Share]] = {}
        for room in rooms or ():
            taken.setdefault(room.row, []).extend(room.shares)
        for hold in holds:
            if hold.row in taken:
                taken[hold.row] = hold.use(taken[hold.row])
            hold.put_aside(self.cluster)
        return rooms

    def _release(self, session: PendingSession) -> None:
        """Keep nothing any more for who has started."""
        own = [hold for hold in self._holds if hold.session == session.id]
        for hold in own:
            hold.put_back(self.cluster)
            self._holds.remove(hold)
        if own:
            self._no_room.clear()
            self.reservations = [
                r for r in self.reservations if r.session != session.id
            ]

    def _keep_reserved(self, reserved: Sequence[Reservation]) -> None:
        """Go on keeping what passes before have promised to those who still wait."""
        waiting = {session.id: session for session in self._queue}
        for one in reserved:
            session = waiting.get(one.session)
            if session is None or session.hold or self._problem:
                continue
            if not one.displacing:
                self._reserve(session, stay=one.parts[0].node)
                continue
            for part in one.parts:
                row = self.cluster.row.get(part.node)
                if row is not None:
                    free = self.cluster.clip(row, part.shares)
                    why = "kept for a session that displaces another"
                    self._put_aside(Hold(row, free, why=why, session=session.id))
            self.reservations.append(one)

    def _is_patient(self, session: PendingSession) -> bool:
        """Tell whether *session* has waited too long and nothing is reserved yet."""
        after = self.policy.reserve_after
        return (
            after is not None
            and self._now - session.since >= after
            and all(r.displacing and r.session != session.id for r in self.reservations)
        )

    def _reserve(self, session: PendingSession, *, stay: str = "") -> str:
        """Keep devices for *session* and say when it starts, if anything can be."""
        placer, shapes = self._copy()
        shape = shapes.of(session)
        if session.members:
            shape = max(
                (shapes.asking(session, m.request) for m in session.members),
                key=lambda s: s.demand.milli,
            )

        def attempt(row: int) -> list[Room] | None:
            if not placer.has_room(shape, row):
                return None
            among = None
            if not session.members:
                among = np.zeros(len(self.cluster.nodes), bool)
                among[row] = True
            return self._try(placer, shapes, session, among)

        rooms = self._try(placer, shapes, session)
        shadow = (
            Shadow(tuple(rooms), self._now, ())
            if rooms is not None
            else find_shadow(
                placer,
                attempt,
                self._holdings(),
                now=self._now,
                stay=self.cluster.row.get(stay, -1),
            )
        )
        if shadow is None:
            return ""
        for hold in shadow.keep(session.id, now=self._now):
            self._put_aside(hold)
        told = shadow.tell(placer, session.id, session.group)
        self.reservations.append(told)
        return reasons.tell_reservation(told, self.cluster)

    def _holdings(self) -> list[Holding]:
        """Return who holds what now, those included who have just started."""
        before = [
            Holding(self.cluster.row[node], shares, running.ends)
            for running in self._running
            for node, shares in running.holdings
            if node in self.cluster.row
        ]
        started = [
            Holding(self.cluster.row[part.node], part.shares, ends)
            for placement, ends in zip(self._started, self._ends, strict=True)
            for part in placement.members or (placement,)
        ]
        return before + started

    def _copy(self) -> tuple[Placer, Shapes]:
        """Return a copy of the cluster to try things on."""
        fork = self.cluster.fork()
        split = self.policy.allow_split
        scorer = Concentrated().scorer(fork, ())
        return Placer(fork, scorer, allow_split=split), Shapes(fork, allow_split=split)

    # --- what would be ---------------------------------------------------------------

    def trial(self, session: PendingSession) -> Trial:
        """Return a copy of the nodes to try things on, as *session* may use them."""
        fork = self.cluster.fork()
        for hold in self._open_holds(session, self._end_of(session)):
            hold.put_back(fork)
        split = self.policy.allow_split
        # Which nodes a cluster tries hangs on scores; whether one has room does not.
        placement = (
            find_placement(self.policy.placement)
            if session.members and not self._problem
            else Concentrated()
        )
        placer = Placer(fork, placement.scorer(fork, ()), allow_split=split)
        return Trial(placer, Shapes(fork, allow_split=split), self._try)

    @property
    def holdings(self) -> list[tuple[RunningSession, Holding]]:
        """What runs on its nodes, and what of it."""
        return [
            (running, Holding(self.cluster.row[node], shares, running.ends))
            for running in self._running
            for node, shares in running.holdings
            if node in self.cluster.row
        ]

    @property
    def queue(self) -> Sequence[PendingSession]:
        """Who waits for its nodes, in the order of submission."""
        return self._queue

    @property
    def problem(self) -> str:
        """Why nothing of it can start whatever there is, if so."""
        return self._problem

    def end_of(self, session: PendingSession) -> int | None:
        """Tell when *session* ends at the latest if it starts now."""
        return self._end_of(session)

    # --- why it waits ----------------------------------------------------------------

    def _explain(
        self, session: PendingSession, key: object, beside: Sequence[Hold]
    ) -> str:
        """Say why there is no room, and what is done about it."""
        parts = [reasons.explain_no_room(self.cluster, session)]
        others = [h for h in self._holds if h not in beside and h.shares]
        if others:
            parts.append(reasons.tell_holds(others))
        self._no_room[key] = "; ".join(parts)
        told = self._displace(session)
        if not told and self._is_patient(session):
            told = self._reserve(session)
            if not told:
                self._hopeless.add(key)
        return "; ".join([*parts, told] if told else parts)

    def _displace(self, session: PendingSession) -> str:
        """Work out who would have to go for *session*; nobody goes yet."""
        if (
            not self.policy.preemption.enabled
            or session.members
            or len(self.preemptions) >= _MOST_PREEMPTIONS
            or any(r.session == session.id for r in self.reservations)
        ):
            return ""
        chosen = {v.session for p in self.preemptions for v in p.victims}
        placer, shapes = self._copy()
        found = find_victims(
            placer,
            shapes.of(session),
            session,
            [r for r in self._running if r.id not in chosen],
            rules=self.policy.preemption,
            now=self._now,
        )
        if found is None:
            return ""
        victims = {v.session for v in found.victims}
        back = [
            share
            for running in self._running
            if running.id in victims
            for node, shares in running.holdings
            if node == found.node
            for share in shares
        ]
        row = self.cluster.row[found.node]
        why = "kept for a session that displaces another"
        self._put_aside(
            Hold(row, free_part(found.shares, back), why=why, session=session.id)
        )
        self.preemptions.append(found)
        return reasons.tell_preemption(found, self.cluster)


def _is_here(running: RunningSession, cluster: Cluster) -> bool:
    return any(node in cluster.row for node, _ in running.holdings)


def _nobody(snapshot: Snapshot) -> str:
    return reasons.NO_NODES_IN_GROUP if snapshot.nodes else reasons.NO_NODES


def split_queue(snapshot: Snapshot) -> list[Line]:
    """Return a line for each group; one for all if somebody waits for any group."""
    if any(not session.group for session in snapshot.queue):
        policy = snapshot.groups.get("", GroupPolicy())
        everybody = range(len(snapshot.queue))
        return [Line(snapshot, everybody, snapshot.nodes, policy)]
    indices: dict[str, list[int]] = {}
    for index, session in enumerate(snapshot.queue):
        indices.setdefault(session.group, []).append(index)
    nodes: dict[str, list[NodeState]] = {group: [] for group in indices}
    for node in snapshot.nodes:
        if node.group in nodes:
            nodes[node.group].append(node)
    return [
        Line(snapshot, indices[g], nodes[g], snapshot.groups.get(g, GroupPolicy()))
        for g in indices
    ]
