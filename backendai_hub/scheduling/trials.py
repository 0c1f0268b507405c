"""Finding room for whole sessions, in earnest and on copies of the nodes."""

from __future__ import annotations

from typing import NamedTuple

from backendai_hub.scheduling.cluster import Cluster, Mask
from backendai_hub.scheduling.gangs import Gang
from backendai_hub.scheduling.guards import Fault, make_scorer
from backendai_hub.scheduling.placing import Placer, Room
from backendai_hub.scheduling.scoring import PlacementPolicy
from backendai_hub.scheduling.shapes import Shape, Shapes
from backendai_hub.scheduling.snapshot import GroupPolicy, PendingSession
from backendai_hub.scheduling.strategies import Concentrated


class Trial(NamedTuple):
    """The nodes, or a copy of them, with what finds room there."""

    placer: Placer
    shapes: Shapes
    rack_label: str

    def take(
        self,
        session: PendingSession,
        among: Mask | None = None,
        shape: Shape | None = None,
    ) -> list[Room] | None:
        """Take room for all containers of *session*, or for none."""
        placer = self.placer
        if session.members:
            return Gang(placer, self.shapes, session, among).place(self.rack_label)
        shape = shape or self.shapes.of(session)
        while (row := placer.find(shape, session.owner_id, among)) >= 0:
            shares = placer.take(shape, row)
            if shares is not None:
                return [placer.settle(row, shares, session.owner_id)]
            placer.rule_out(shape, row)
        return None

    def fits(self, session: PendingSession, among: Mask | None = None) -> bool:
        """Tell whether *session* finds room; what it takes is given back."""
        rooms = self.take(session, among)
        for room in reversed(rooms or ()):
            self.placer.undo(room)
        return rooms is not None


def copy_nodes(
    cluster: Cluster,
    policy: GroupPolicy,
    placement: PlacementPolicy | None = None,
    fault: Fault | None = None,
) -> Trial:
    """Return a copy of the nodes to try things on, placing close together."""
    fork = cluster.fork()
    split = policy.allow_split
    scorer = make_scorer(placement or Concentrated(), fork, (), fault or Fault())
    placer = Placer(fork, scorer, allow_split=split)
    return Trial(placer, Shapes(fork, allow_split=split), policy.rack_label)
