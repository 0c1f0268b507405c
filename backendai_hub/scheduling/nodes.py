"""What nodes are, and who may run where, whatever room they have.

None of it changes during a pass but the owners of nodes that serve only one person.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from backendai_hub.scheduling.obstacles import Mask, Obstacles, Vector
from backendai_hub.scheduling.snapshot import NodeState, PendingSession

__all__ = ["ANYBODY", "NOBODY", "Mask", "Nodes", "Vector"]

ANYBODY, NOBODY = -1, -2


class Nodes:
    """The nodes of a cluster by row, and which of them may run a session at all."""

    def __init__(self, nodes: Sequence[NodeState]) -> None:
        self.nodes = tuple(nodes)
        self.row = {node.id: i for i, node in enumerate(self.nodes)}
        self.open: Mask = np.array([not n.closed for n in nodes], bool)
        self.accelerated: Mask = np.array(
            [any(d.kind != "host" for d in n.devices) for n in nodes], bool
        )
        self.keeps_apart = all(n.multi_user for n in nodes)
        """Whether every node serves every user."""
        self._people: dict[str, int] = {}
        self._owner: Vector = np.full(len(self.nodes), ANYBODY, np.int64)
        for row, node in enumerate(self.nodes):
            if node.sole_owner is not None:
                self.claim(row, node.sole_owner)
        self.closures = _number([node.closed for node in nodes])
        """Why each node takes nothing new: an index into words."""
        self.known: dict[object, Any] = {}
        """What others have found out that follows from how the nodes are built alone;
        copies share it."""
        self._groups: dict[str, Mask] = {}
        self._barred: dict[int, Mask] = {}
        self._compared = Obstacles(self.nodes, self.row)
        self._obstacles: dict[object, tuple[Vector, list[str]]] = {}

    def unshare(self) -> None:
        """Get arrays of one's own for everything that changes."""
        self._owner, self._people = self._owner.copy(), dict(self._people)

    def eligible(self, session: PendingSession) -> Mask:
        """Tell which nodes may run *session* at all, whatever room they have."""
        fixed = self.able(session)
        return fixed & self.open & self.serving(session.owner_id)

    def able(self, session: PendingSession) -> Mask:
        """Tell which nodes can run *session* and have what it insists on."""
        mask: Mask = self.obstacles(session)[0] == 0
        return mask

    def obstacles(self, session: PendingSession) -> tuple[Vector, list[str]]:
        """Tell for each node why it can never run *session*: an index into words."""
        key = (
            frozenset(session.references),
            session.architecture,
            session.group,
            session.nodes if session.only_nodes else (),
            frozenset(session.labels.items()),
            session.protocol,
        )
        found = self._obstacles.get(key)
        if found is None:
            found = self._obstacles[key] = self._compared.find(session)
        return found

    def barred(self, session: PendingSession) -> Mask | None:
        """Tell which nodes may not run *session*, whoever it is; None if all may."""
        obstacles = self.obstacles(session)[0]
        mask = self._barred.get(id(obstacles))
        if mask is None:
            mask = self._barred[id(obstacles)] = (obstacles > 0) | ~self.open
        return mask if mask.any() else None

    def read_labels(self, queue: Iterable[PendingSession]) -> None:
        """Look up what labels *queue* insists on, before anybody's turn has come."""
        for label in {label for session in queue for label in session.labels}:
            self._compared.read_label(label)

    def in_group(self, group: str) -> Mask:
        """Tell which nodes are in a resource group; without one, all are."""
        mask = self._groups.get(group)
        if mask is None:
            mask = self._groups[group] = np.array(
                [group in {"", node.group} for node in self.nodes], bool
            )
        return mask

    def serving(self, owner_id: str) -> Mask:
        """Tell which nodes serve *owner_id*: all but those that others have claimed."""
        person = self._people.get(owner_id, NOBODY)
        mask: Mask = (self._owner == ANYBODY) | (self._owner == person)
        return mask

    def claim(self, row: int, owner_id: str) -> None:
        """Note that *owner_id* uses a node, which may have to serve nobody else now."""
        if not self.nodes[row].multi_user:
            self._owner[row] = self._people.setdefault(owner_id, len(self._people))

    def owner_of(self, row: int) -> int:
        """Return who has claimed a node, as a token for :meth:`unclaim`."""
        return int(self._owner[row])

    def unclaim(self, row: int, owner: int) -> None:
        """Let a node belong to whom it belonged before."""
        self._owner[row] = owner

    def racks(self, label: str) -> dict[str, Mask]:
        """Return which nodes are in each rack, as *label* tells."""
        found: dict[str, list[int]] = {}
        for row, node in enumerate(self.nodes):
            if label in node.labels:
                found.setdefault(node.labels[label], []).append(row)
        masks = {}
        for name in sorted(found):
            masks[name] = np.zeros(len(self.nodes), bool)
            masks[name][found[name]] = True
        return masks


def _number(words: Sequence[str]) -> tuple[Vector, list[str]]:
    """Return each word as an index into the list of different ones; "" is 0."""
    known = {"": 0}
    numbers = [known.setdefault(word, len(known)) for word in words]
    return np.array(numbers, np.int64), list(known)
