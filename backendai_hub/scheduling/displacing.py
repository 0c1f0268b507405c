"""Whom a pass proposes to displace, for those who find no room in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from backendai_hub.scheduling import reasons
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.keeping import Keeper
from backendai_hub.scheduling.placing import Room
from backendai_hub.scheduling.preemption import (
    Found,
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
_MOST_SEARCHES = 64
"""How many one pass looks for at most, for one group."""


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
    ) -> None:
        self._cluster, self._policy, self._keeper = cluster, policy, keeper
        self._running, self._now = running, now
        self._served: set[str] = set()
        self._going = {r.id for r in running if r.leaving}
        self._searches = 0
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

    def propose(self, session: PendingSession) -> str:
        """Propose who goes for *session*, and tell it; empty if nobody can."""
        if self.is_served(session) or any(
            r.session == session.id for r in self._keeper.reservations
        ):
            return ""
        candidates = self._candidates(session)
        if not candidates or self._is_tired():
            return ""
        self._searches += 1
        trial = self._without_leaving()
        if self._going:
            rooms = trial.take(session)
            if rooms is not None:
                self._keeper.promised += [(r.row, r.shares) for r in rooms]
                return reasons.tell_coming(rooms, self._cluster)
        order = self._policy.preemption.order
        found = find_victims(trial, session, candidates, order=order, now=self._now)
        if found is None:
            return ""
        plan = self._write(session, found, "priority")
        self._enter(plan, found)
        return reasons.tell_preemption(plan, self._cluster)

    def _is_tired(self) -> bool:
        return (
            len(self.proposals) >= _MOST_PROPOSALS or self._searches >= _MOST_SEARCHES
        )

    def _candidates(self, session: PendingSession) -> list[RunningSession]:
        rules = self._policy.preemption
        if not rules.enabled:
            return []
        return [
            other
            for other in self._running
            if other.id not in self._going
            and may_displace(session, other, rules, self._now)
        ]

    def _without_leaving(self) -> Trial:
        """Return a copy of the nodes without those who go, and what they leave whom."""
        trial = copy_nodes(self._cluster, self._policy)
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
        kind: Literal["priority", "reclaim"],
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
                Victim(session=v.id, reason=reasons.tell_victim(v, session))
                for v in found.victims
            ),
        )

    def _part(self, room: Room) -> ReservedPart:
        node = self._cluster.nodes[room.row]
        return ReservedPart(node=node.id, shares=room.shares)

    def _enter(self, plan: PreemptionPlan, found: Found) -> None:
        """Keep the free part of what it needs, so that nobody else gets it."""
        self._going.update(v.id for v in found.victims)
        leaving = (r for r in self._running if r.id in self._going)
        back = list(self._held(leaving))
        self._keeper.keep_displaced(plan.session, plan.parts, back)
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
