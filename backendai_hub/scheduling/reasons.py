"""Why a session waits, in sentences with numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np

from backendai_hub.core.slots import ResourceSlots, describe_amount
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.snapshot import PendingSession

NO_NODES = "no node has joined yet; it starts when one does"
NO_NODES_IN_GROUP = "no node is in its resource group yet; it starts when one is"


def explain_no_room(cluster: Cluster, session: PendingSession) -> str:
    """Say, slot by slot, what keeps *session* from starting now."""
    if not cluster.nodes:
        return NO_NODES
    rows = _group(cluster, session)
    if not rows:
        return NO_NODES_IN_GROUP
    unfit: Counter[str] = Counter()
    candidates: list[int] = []
    serving = cluster.serving(session.owner_id).tolist()
    for row in rows:
        node = cluster.nodes[row]
        why = (
            node.closed
            or ("" if node.runtime in session.references else "cannot run this image")
            or (
                ""
                if node.architecture == session.architecture
                else f"is {node.architecture}, not {session.architecture}"
            )
            or (
                ""
                if serving[row]
                else "cannot keep users apart and serves somebody else"
            )
        )
        if why:
            unfit[why] += 1
        else:
            candidates.append(row)
    nodes = "1 node" if len(rows) == 1 else f"{len(rows)} nodes"
    parts = [f"{count} of {nodes}: {why}" for why, count in unfit.items()]
    if candidates:
        parts.extend(_shortfalls(cluster, session.request, candidates, nodes))
    return "; ".join(parts) or "the node that had room has just been taken"


def _group(cluster: Cluster, session: PendingSession) -> list[int]:
    """Return the nodes of the session's resource group; others are not told of."""
    return [
        row
        for row, node in enumerate(cluster.nodes)
        if session.group in {"", node.group}
    ]


def _shortfalls(
    cluster: Cluster, request: ResourceSlots, candidates: list[int], nodes: str
) -> list[str]:
    parts = []
    together = np.ones(len(cluster.nodes), bool)
    for slot, amount in request.items():
        fits = cluster.fits(slot, amount)
        together &= fits
        if fits[candidates].any():
            continue
        column = cluster.column.get(slot)
        best, piece, name = 0, 0, cluster.nodes[candidates[0]].name
        if column is not None:
            row = candidates[int(np.argmax(cluster.free[candidates, column]))]
            best, name = int(cluster.free[row, column]), cluster.nodes[row].name
            piece = int(cluster.largest[row, column])
        parts.append(
            f"{slot}: asks {describe_amount(slot, amount)},"
            f" {describe_amount(slot, best)} free on {name}"
            + _in_pieces(slot, amount, best, piece)
            + (f", the best of {len(candidates)} nodes" if len(candidates) > 1 else "")
        )
    if not parts and not together[candidates].any():
        parts.append(f"no single one of {nodes} has all of it free at once")
    return parts


def _in_pieces(slot: str, amount: int, together: int, piece: int) -> str:
    """Say why enough *together* is not enough: no device has it by itself."""
    if together < amount:
        return ""
    return f" in pieces of at most {describe_amount(slot, piece)}"


def explain_never(cluster: Cluster, session: PendingSession) -> str | None:
    """Say what no node could ever give, or None if some node could.

    Judged by what nodes have in all, whether or not they answer at the moment.
    """
    usable = [
        row
        for row in _group(cluster, session)
        if cluster.nodes[row].runtime in session.references
        and cluster.nodes[row].architecture == session.architecture
    ]
    if not usable:
        return "no node can run this image"
    possible = np.ones(len(cluster.nodes), bool)
    parts = []
    for slot, amount in session.request.items():
        fits = cluster.fits(slot, amount, ever=True)
        possible &= fits
        if fits[usable].any():
            continue
        column = cluster.column.get(slot)
        most = piece = 0
        if column is not None:
            row = usable[int(np.argmax(cluster.total[usable, column]))]
            most = int(cluster.total[row, column])
            piece = int(cluster.biggest[row, column])
        parts.append(
            f"{slot}: asks {describe_amount(slot, amount)}, the largest node has"
            f" {describe_amount(slot, most)}" + _in_pieces(slot, amount, most, piece)
        )
    if parts:
        return "; ".join(parts)
    if not possible[usable].any():
        return "no single node has all of it, even when empty"
    return None
