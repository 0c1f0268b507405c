"""What nodes have left that the ledger does not count: slices, and containers.

The ledger knows how many instances of each kind a device gives, and not where they
are. Nodes are locked when a plan is carried out, so that nobody else takes meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.db.agents import AgentRecord
from backendai_hub.db.allocations import CutDevice, load_cut_devices
from backendai_hub.db.snapshots import count_containers
from backendai_hub.scheduling.snapshot import Share


class Piece(Protocol):
    """One container that a placement makes."""

    @property
    def node(self) -> str:
        """The node's id."""

    @property
    def shares(self) -> tuple[Share, ...]:
        """What it takes there."""


class NodeRoom(NamedTuple):
    """What is in use of locked nodes, while one session after the other takes of it."""

    cut: dict[str, CutDevice]
    containers: dict[str, int]
    most: Mapping[str, int]

    def take(self, pieces: Iterable[Piece]) -> bool:
        """Take the room of all *pieces*, or nothing if any of it is not there."""
        cut, containers = dict(self.cut), dict(self.containers)
        for piece in pieces:
            count = containers[piece.node] = containers.get(piece.node, 0) + 1
            if count > self.most.get(piece.node, count):
                return False
            for share in piece.shares:
                device = cut.get(share.device)
                if device is None and not share.slices:
                    continue
                if device is None or not device.gives(share):
                    return False
                cut[share.device] = device.less(share)
        self.cut.update(cut)
        self.containers.update(containers)
        return True


async def load_node_room(
    connection: AsyncConnection,
    nodes: Mapping[str, AgentRecord],
    devices: Collection[str],
) -> NodeRoom:
    """Read what is in use of these nodes, which are locked, and of their devices."""
    most = {
        node.id: node.max_containers
        for node in nodes.values()
        if node.max_containers is not None
    }
    return NodeRoom(
        cut=await load_cut_devices(connection, devices),
        containers=await count_containers(connection, most),
        most=most,
    )
