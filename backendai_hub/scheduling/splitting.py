"""One queue for each resource group, or a single one for all nodes."""

from __future__ import annotations

from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.lines import Build, Line
from backendai_hub.scheduling.snapshot import GroupPolicy, NodeState, Snapshot


def split_queue(snapshot: Snapshot, build: Build = Cluster) -> list[Line]:
    """Return a line for each group; one for all if somebody waits for any group."""
    if any(not session.group for session in snapshot.queue):
        policy = snapshot.groups.get("", GroupPolicy())
        everybody = range(len(snapshot.queue))
        return [Line(snapshot, everybody, snapshot.nodes, policy, build)]
    indices: dict[str, list[int]] = {}
    for index, session in enumerate(snapshot.queue):
        indices.setdefault(session.group, []).append(index)
    nodes: dict[str, list[NodeState]] = {group: [] for group in indices}
    for node in snapshot.nodes:
        if node.group in nodes:
            nodes[node.group].append(node)
    return [
        Line(
            snapshot,
            indices[g],
            nodes[g],
            snapshot.groups.get(g, GroupPolicy()),
            build,
        )
        for g in indices
    ]
