"""Whom a pass proposes to displace, for those who find no room in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

from backendai_hub.scheduling import reasons
from backendai_hub.scheduling.cluster import Cluster, Mask
from backendai_hub.scheduling.guarantees import Guarantees
from backendai_hub.scheduling.holds import Hold
from backendai_hub.scheduling.keeping import Keeper
from backendai_hub.scheduling.placing import Room
from backendai_hub.scheduling.preemption import (
    Found,
    Kind,
    Way,
    can_go,
    find_useful,
    find_victims,
    let_go,
    may_displace,
)
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    PendingSession,
    PreemptionPlan,
    Reservation,
    ReservedPart,
    RunningSession,
    Share,
    Victim,
)
from backendai_hub.scheduling.trials import Trial, copy_nodes

_MOST_PROPOSALS = 8
"""How many one pass makes for one group."""
_MOST_SEARCHES = 48
"""How many one pass looks for at most, for one group, in the order of the queue."""
_MOST_DRAWN = 16
"""How many of the others it draws by lot, so that everybody has a turn in the end."""
_MOST_LEVELS = 8
"""Of so many job priorities it is known where everybody of less has gone."""


class Displacer:
    """Proposes who goes for whom; nobody goes yet.

    One proposal for each session, none for who has one from a pass before, and nobody
    is displaced twice. Who leaves anyway is reckoned to have left: nobody else goes
    for room that comes by itself.
    """

    def __init__(
        self,
        cluster: Cluster,
        policy: GroupPolicy,
        keeper: Keeper,
        running: Sequence[RunningSession],
        now: int,
        *,
        waiting: int = 0,
    ) -> None:
        self._cluster, self._policy, self._keeper = cluster, policy, keeper
        self._running, self._now, self._waiting = running, now, waiting
        self._served: set[str] = set()
        self._going = {r.id for r in running if r.leaving}
        self._searches = 0
        self._emptied: dict[int | None, Trial] = {}
        self.proposals: list[PreemptionPlan] = []

    def go_on(self, reserved: Reservation) -> None:
        """Go on with what an earlier pass has proposed."""
        self._keeper.keep_displaced(reserved.session, reserved.parts)
        self._keeper.reservations.append(reserved)
        self._served.add(reserved.session)
        self._going.update(reserved.victims)

    def is_served(self, session: PendingSession) -> bool:
        """Tell whether others already leave, or are asked to, for *session*."""
        return session.id in self._served

    def propose(self, session: PendingSession, guarantees: Guarantees | None) -> str:
        """Propose who goes for *session*, and tell it; empty if nobody can.

        Who borrows what it is guaranteed goes first; then who has less job priority.
        """
        if (
            not self._running
            or not self._may_propose()
            or self.is_served(session)
            or any(r.session == session.id for r in self._keeper.reservations)
        ):
            return ""
        entitled = guarantees is not None and guarantees.is_entitled(session)
        useful = self._find_useful(session, entitled=entitled)
        if not useful.any() or not self._has_turn(session):
            return ""
        ways = [
            self._reclaimable(session, guarantees) if entitled else None,
            self._of_less_priority(session, guarantees),
        ]
        open_ = [way for way in ways if way is not None and way.candidates]
        if not open_:
            return ""
        self._searches += 1
        beside = self._beside(session, entitled=entitled)
        trial = self._without_leaving(beside)
        if self._going:
            rooms = trial.take(session)
            if rooms is not None:
                self._keeper.promised += [(r.row, r.shares) for r in rooms]
                return reasons.tell_coming(rooms, self._cluster)
        for way in open_:
            found = find_victims(trial, session, way, now=self._now, among=useful)
            if found is not None:
                plan = self._write(session, found, way.kind)
                self._enter(plan, found, beside)
                return reasons.tell_preemption(plan, self._cluster)
        return ""

    def _beside(self, session: PendingSession, *, entitled: bool) -> tuple[Hold, ...]:
        """Return the holds whose devices it may have for good."""
        return tuple(
            hold
            for hold in self._keeper.holds
            if hold.shares
            and (hold.is_meant_for(session) or (entitled and hold.borrows))
        )

    def _may_propose(self) -> bool:
        return self._policy.displaces and len(self.proposals) < _MOST_PROPOSALS

    def _has_turn(self, session: PendingSession) -> bool:
        """Tell whether to search for *session*: for the first, and others by lot.

        The lot hangs on the time, so that it is another one in the next pass.
        """
        if self._searches < _MOST_SEARCHES:
            return True
        if self._searches >= _MOST_SEARCHES + _MOST_DRAWN:
            return False
        lot = crc32(f"{self._now} {session.id}".encode())
        return lot % max(1, self._waiting // _MOST_DRAWN) == 0

    def _find_useful(self, session: PendingSession, *, entitled: bool) -> Mask:
        """Tell which nodes are of use if everybody goes who may and nothing is kept.

        It costs next to nothing for many who wait, and for most of those for whom
        nobody can be displaced it is none.
        """
        level = None if entitled else session.job_priority
        if level not in self._emptied and len(self._emptied) >= _MOST_LEVELS:
            level = None
        trial = self._emptied.get(level)
        if trial is None:
            trial = self._emptied[level] = copy_nodes(self._cluster, self._policy)
            for hold in self._keeper.holds:
                hold.put_back(trial.placer.cluster)
            rules = self._policy.preemption
            for other in self._running:
                if other.id in self._going or (
                    (level is None or other.job_priority < level)
                    and can_go(other, rules=rules, now=self._now)
                ):
                    let_go(trial, other)
        return find_useful(trial, session)

    def _reclaimable(
        self, session: PendingSession, guarantees: Guarantees | None
    ) -> Way | None:
        assert guarantees is not None
        rules = self._policy.preemption
        found = {
            other.id: (other, due)
            for other, due in guarantees.find_reclaimable(session)
            if other.id not in self._going and can_go(other, rules=rules, now=self._now)
        }
        due = {i: slots for i, (_, slots) in found.items()}
        return Way("reclaim", [other for other, _ in found.values()], "newest", due)

    def _of_less_priority(
        self, session: PendingSession, guarantees: Guarantees | None
    ) -> Way | None:
        rules = self._policy.preemption
        if not rules.enabled:
            return None
        found = [
            other
            for other in self._running
            if other.id not in self._going
            and may_displace(session, other, rules, self._now)
            and not (guarantees is not None and guarantees.protects(other, session))
        ]
        return Way("priority", found, rules.order)

    def _without_leaving(self, beside: Sequence[Hold]) -> Trial:
        """Return a copy of the nodes without those who go, and what they leave whom."""
        trial = copy_nodes(self._cluster, self._policy)
        for hold in beside:
            hold.put_back(trial.placer.cluster)
        for other in self._running:
            if other.id in self._going:
                let_go(trial, other)
        fork = trial.placer.cluster
        for row, shares in self._keeper.promised:
            fork.take(row, fork.clip(row, shares))
        return trial

    def _write(
        self,
        session: PendingSession,
        found: Found,
        kind: Kind,
    ) -> PreemptionPlan:
        parts = tuple(self._part(room) for room in found.rooms)
        return PreemptionPlan(
            session=session.id,
            node=parts[0].node,
            shares=parts[0].shares,
            members=parts if session.members else (),
            mode=self._policy.preemption.mode,
            kind=kind,
            victims=tuple(
                Victim(session=v.id, reason=reasons.tell_victim(v, session, kind))
                for v in found.victims
            ),
        )

    def _part(self, room: Room) -> ReservedPart:
        node = self._cluster.nodes[room.row]
        return ReservedPart(node=node.id, shares=room.shares)

    def _enter(
        self, plan: PreemptionPlan, found: Found, beside: Sequence[Hold]
    ) -> None:
        """Keep the free part of what it needs, so that nobody else gets it."""
        self._going.update(v.id for v in found.victims)
        self._emptied.clear()
        leaving = (r for r in self._running if r.id in self._going)
        back = list(self._held(leaving))
        self._keeper.keep_displaced(plan.session, plan.parts, back, beside)
        self._served.add(plan.session)
        self.proposals.append(plan)

    def _held(
        self, sessions: Iterable[RunningSession]
    ) -> Iterable[tuple[int, Sequence[Share]]]:
        for session in sessions:
            for node, shares in session.holdings:
                row = self._cluster.row.get(node)
                if row is not None:
                    yield row, shares
