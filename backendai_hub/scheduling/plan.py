"""One pass: a pure function from what is to who starts where, and why others wait.

Requests are tried in the order of the queue and nobody blocks those behind: what
cannot start now is explained and passed over. Requests of the same shape that found
no room are not tried again in the same pass, since a pass only takes room away.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from backendai_hub.core.quotas import QuotaScope, ScopeKind, find_shortfalls
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.scheduling.cluster import Cluster, Mask
from backendai_hub.scheduling.reasons import explain_no_room
from backendai_hub.scheduling.snapshot import (
    PendingSession,
    Placement,
    Plan,
    Share,
    Snapshot,
)

ScopeUse = dict[tuple[ScopeKind, str], dict[str, int]]


def plan(snapshot: Snapshot) -> Plan:
    """Decide one pass. Deterministic; the snapshot is not changed."""
    cluster = Cluster(snapshot.nodes)
    used: ScopeUse = {key: dict(s.used) for key, s in snapshot.scopes.items()}
    placements: list[Placement] = []
    waiting: dict[str, str] = {}
    no_room: dict[object, str] = {}
    for session in snapshot.queue:
        refusal = session.hold or _find_shortfalls(session, snapshot.scopes, used)
        if refusal:
            waiting[session.id] = refusal
            continue
        shape = _shape(session, cluster)
        if shape in no_room:
            waiting[session.id] = no_room[shape]
            continue
        placement = _place(cluster, session)
        if placement is None:
            reason = explain_no_room(cluster, session)
            no_room[shape] = waiting[session.id] = reason
            continue
        placements.append(placement)
        for scope in session.scopes:
            bag = used.setdefault(scope, {})
            for slot, amount in _charge(session).items():
                bag[slot] = bag.get(slot, 0) + amount
    return Plan(placements=tuple(placements), waiting=waiting)


def _shape(session: PendingSession, cluster: Cluster) -> object:
    """Return what sessions have in common that find room, or none, together."""
    references = frozenset(session.references.items())
    owner = "" if cluster.keeps_apart else session.owner_id
    return (
        session.request,
        references,
        session.architecture,
        owner,
        session.group,
    )


def _charge(session: PendingSession) -> ResourceSlots:
    return session.request if session.charge is None else session.charge


def _find_shortfalls(
    session: PendingSession,
    scopes: Mapping[tuple[ScopeKind, str], QuotaScope],
    used: ScopeUse,
) -> str:
    now = [
        QuotaScope(
            kind=scope.kind,
            id=scope.id,
            name=scope.name,
            limits=scope.limits,
            used=used[key],
            unspecified=scope.unspecified,
        )
        for key in session.scopes
        if (scope := scopes.get(key)) is not None
    ]
    return "; ".join(map(str, find_shortfalls(_charge(session), now)))


def _place(cluster: Cluster, session: PendingSession) -> Placement | None:
    if not cluster.nodes:
        return None
    mask = cluster.eligible(session)
    for slot, amount in session.request.items():
        mask = mask & cluster.fits(slot, amount)
    while mask.any():
        row = _choose_node(cluster, session.request, mask)
        shares = _choose_devices(cluster, row, session.request)
        if shares is not None:
            cluster.take(row, shares)
            node = cluster.nodes[row]
            cluster.claim(row, session.owner_id)
            return Placement(
                session=session.id,
                node=node.id,
                image=session.references[node.runtime],
                shares=tuple(shares),
            )
        mask[row] = False
    return None


def _choose_node(cluster: Cluster, request: ResourceSlots, mask: Mask) -> int:
    """Choose the emptiest node, keeping plain jobs off nodes with accelerators."""
    rows = np.flatnonzero(mask)
    columns = [cluster.column[slot] for slot in request]
    total = np.maximum(cluster.total[rows][:, columns], 1)
    share = (cluster.free[rows][:, columns] / total).min(axis=1)
    if set(request) <= {"cpu", "mem"}:
        share = share - 2.0 * cluster.accelerated[rows]
    return int(rows[int(np.argmax(share))])


def _choose_devices(
    cluster: Cluster, row: int, request: ResourceSlots
) -> list[Share] | None:
    shares: list[Share] = []
    for slot, amount in request.items():
        chosen = cluster.choose_devices(row, slot, amount)
        if chosen is None:
            return None
        shares.extend(chosen)
    return shares
