"""One queue for each resource group, or a single one for all nodes.

Groups whose policies have taken long the last time come last, one after the other:
everybody else is decided about before anything is asked of those policies.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.guards import take_long
from backendai_hub.scheduling.lines import Build, Line
from backendai_hub.scheduling.snapshot import GroupPolicy, NodeState, Snapshot

Begin = Callable[[], Line]
"""Begins the line of a group."""


def split_queue(
    snapshot: Snapshot, build: Build = Cluster
) -> tuple[list[Begin], list[Begin]]:
    """Return how to begin a line for each group, and those that come after all others.

    It is one line for all if somebody waits for any group.
    """
    if any(not session.group for session in snapshot.queue):
        policy = snapshot.groups.get("", GroupPolicy())
        everybody = range(len(snapshot.queue))
        return [partial(Line, snapshot, everybody, snapshot.nodes, policy, build)], []
    indices: dict[str, list[int]] = {}
    for index, session in enumerate(snapshot.queue):
        indices.setdefault(session.group, []).append(index)
    nodes: dict[str, list[NodeState]] = {group: [] for group in indices}
    for node in snapshot.nodes:
        if node.group in nodes:
            nodes[node.group].append(node)
    first: list[Begin] = []
    last: list[Begin] = []
    for group, there in indices.items():
        policy = snapshot.groups.get(group, GroupPolicy())
        begin = partial(Line, snapshot, there, nodes[group], policy, build)
        (last if take_long(policy.names) else first).append(begin)
    return first, last
