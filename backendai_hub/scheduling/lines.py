"""The line of those who wait for one resource group, and the group's nodes."""

from __future__ import annotations

from collections.abc import Sequence

from backendai_hub.scheduling import reasons
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.ordering import Bands, Order, ShareState
from backendai_hub.scheduling.placing import Placer
from backendai_hub.scheduling.plugins import (
    UnknownPolicyError,
    find_placement,
    find_sequencer,
)
from backendai_hub.scheduling.scoring import Scorer
from backendai_hub.scheduling.shapes import Shapes, read_demand
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    NodeState,
    PendingSession,
    Placement,
    Share,
    Snapshot,
)
from backendai_hub.scheduling.strategies import Dispersed, RoundRobin

Head = tuple[int, int]
"""Minus the priority, and the index in the snapshot's queue."""


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
        typical = [
            (read_demand(self.cluster, asked), weight)
            for asked, weight in policy.typical
        ]
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
        shape = self._shapes.of(session)
        owner = "" if self.cluster.keeps_apart else session.owner_id
        known = self._no_room.get((shape, owner))
        if known is not None:
            return known
        found = self._place_alone(session)
        if found is None:
            reason = reasons.explain_no_room(self.cluster, session)
            self._no_room[shape, owner] = reason
            return reason
        return found

    def _place_alone(self, session: PendingSession) -> Placement | None:
        shape = self._shapes.of(session)
        while (row := self._placer.find(shape, session.owner_id)) >= 0:
            shares = self._placer.take(shape, row)
            if shares is None:
                self._placer.rule_out(shape, row)
                continue
            return self._settle(session, row, shares)
        return None

    def _settle(
        self, session: PendingSession, row: int, shares: Sequence[Share]
    ) -> Placement:
        node = self.cluster.nodes[row]
        self.cluster.claim(row, session.owner_id)
        self.cluster.spare[row] -= 1
        return Placement(
            session=session.id,
            node=node.id,
            image=session.references[node.runtime],
            shares=tuple(shares),
        )


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
