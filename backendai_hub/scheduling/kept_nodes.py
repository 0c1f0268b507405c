"""Nodes whose arrays outlive a pass: what comes and goes is taken and given back.

Building arrays from what nodes report takes longer than a pass over them. Whoever
makes many passes keeps them here, tells what starts and ends, and lets every pass have
a copy to use up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from backendai_hub.scheduling.cluster import ANYBODY, Cluster
from backendai_hub.scheduling.snapshot import NodeState, Share


class _Move(NamedTuple):
    node: str
    shares: tuple[Share, ...]
    owner: str
    starts: bool


class KeptNodes:
    """The nodes of all groups as they are by now."""

    def __init__(self, states: Sequence[NodeState]) -> None:
        self.states = tuple(states)
        """The nodes as they were at the beginning."""
        self._clusters: dict[tuple[str, int], Cluster] = {}
        self._moves: list[_Move] = []
        self._serving = Serving(states)

    def build(self, nodes: Sequence[NodeState]) -> Cluster:
        """Return arrays of *nodes*, which are all of a group or all there are."""
        key = (nodes[0].id if nodes else "", len(nodes))
        cluster = self._clusters.get(key)
        if cluster is None:
            cluster = self._clusters[key] = Cluster(nodes)
            for move in self._moves:
                _carry_out(move, cluster)
            for node in self.states:
                self._serving.tell(node.id, cluster)
            cluster.log.clear()
        return cluster.fork()

    def take(self, node: str, shares: Sequence[Share], owner: str) -> None:
        """Note that somebody has started on a node."""
        self._serving.begin(node, owner)
        self._move(_Move(node, tuple(shares), owner, starts=True))

    def give(self, node: str, shares: Sequence[Share], owner: str) -> None:
        """Note that somebody has ended on a node."""
        self._serving.end(node, owner)
        self._move(_Move(node, tuple(shares), owner, starts=False))

    def _move(self, move: _Move) -> None:
        self._moves.append(move)
        for cluster in self._clusters.values():
            _carry_out(move, cluster)
            self._serving.tell(move.node, cluster)
            cluster.log.clear()


def _carry_out(move: _Move, cluster: Cluster) -> None:
    row = cluster.row.get(move.node)
    if row is None:
        return
    if move.starts:
        cluster.take(row, move.shares)
        cluster.spare[row] -= 1
    else:
        cluster.give(row, move.shares)
        cluster.spare[row] += 1


class Serving:
    """Whom nodes serve that serve one person at a time."""

    def __init__(self, states: Sequence[NodeState]) -> None:
        self.owners = {n.id: n.sole_owner for n in states if not n.multi_user}
        self._counts = {node: Counter[str]() for node in self.owners}

    def begin(self, node: str, owner: str) -> None:
        """Note that a session of *owner* runs there."""
        if node in self.owners:
            self.owners[node] = owner
            self._counts[node][owner] += 1

    def end(self, node: str, owner: str) -> None:
        """Note that one has ended: after the last, the node is anybody's."""
        if node not in self.owners:
            return
        self._counts[node][owner] -= 1
        if self._counts[node][owner] <= 0:
            del self._counts[node][owner]
            self.owners[node] = None

    def tell(self, node: str, cluster: Cluster) -> None:
        """Write into a cluster whom a node serves."""
        row = cluster.row.get(node)
        if row is None or node not in self.owners:
            return
        owner = self.owners[node]
        if owner is None:
            cluster.unclaim(row, ANYBODY)
        else:
            cluster.claim(row, owner)
