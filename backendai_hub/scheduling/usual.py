"""What people usually ask for: what has been learned, who waits, and else a guess."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.layouts import HOST_SLOTS
from backendai_hub.scheduling.scoring import Demand
from backendai_hub.scheduling.shapes import read_demand
from backendai_hub.scheduling.snapshot import Ask, PendingSession

Usual = Sequence[tuple[Demand, float]]

MOST: Final = 64
"""So many requests for several devices count as usual at most, and as many for one or a
part of one; the cost of a decision grows with them."""
MOST_PLAIN: Final = 16
"""How many requests without accelerators count beside them."""
_ENOUGH: Final = 20.0
"""How many requests say what is usual without a guess."""
LOOKED_AT: Final = 1000
"""How many of those who wait are looked at."""
_MOST_OFTEN: Final = 1e12
_MOST_REQUESTS: Final = 4096
"""Of so many requests it is remembered what they are as demands."""


def gather(
    cluster: Cluster,
    learned: Sequence[tuple[Ask, float]],
    queue: Sequence[PendingSession],
) -> list[tuple[Demand, float]]:
    """Add those who wait to what has been learned, all with the labels they insist on.

    Each of them counts as much as one request that has just come. If that is little to
    go by, a guess makes up for what is missing.
    """
    found: dict[Demand, float] = {}
    for ask, told in learned:
        # Whatever is told, no sum of it must be infinite or no number.
        weight = min(told, _MOST_OFTEN) if told > 0 else 0.0
        demand = _read(cluster, ask)
        found[demand] = found.get(demand, 0.0) + weight
    known: dict[tuple[int, int], Demand] = {}
    for session in queue[:LOOKED_AT]:
        for request in _requests(session):
            # The snapshot keeps these objects, so their identities stay their own.
            key = (id(request), id(session.labels))
            wanted = known.get(key)
            if wanted is None:
                wanted = known[key] = _read(cluster, _ask(request, session))
            found[wanted] = found.get(wanted, 0.0) + 1.0
    missing = _ENOUGH - sum(w for demand, w in found.items() if demand.milli)
    if missing > 0:
        guess = _guess(cluster)
        for demand, _ in guess:
            found[demand] = found.get(demand, 0.0) + missing / len(guess)
    return list(found.items())


def asks_of(session: PendingSession) -> list[Ask]:
    """Return what each container of *session* asks for."""
    return [_ask(request, session) for request in _requests(session)]


def _requests(session: PendingSession) -> list[ResourceSlots]:
    return [member.request for member in session.members] or [session.request]


def _ask(request: ResourceSlots, session: PendingSession) -> Ask:
    return Ask(request, tuple(sorted(session.labels.items())))


def _read(cluster: Cluster, ask: Ask) -> Demand:
    demands: dict[Ask, Demand] = cluster.known.setdefault(_read, {})
    demand = demands.get(ask)
    if demand is None:
        if len(demands) > _MOST_REQUESTS:
            demands.clear()
        demand = read_demand(cluster, ask.request)._replace(labels=ask.labels)
        demands[ask] = demand
    return demand


def find_usual(cluster: Cluster, typical: Usual) -> Usual:
    """Choose what counts as usual: the most frequent of each kind, wide ones first.

    They are chosen apart, or many wide requests that hardly ever come would leave no
    place for those that do.

    Without any it is a half, one, two, four and eight devices, each with its share of
    a node's cores and memory.
    """
    asked = [(d, w) for d, w in typical if w > 0]
    asked.sort(key=lambda item: (-item[1], item[0]))
    wide = [item for item in asked if item[0].milli >= 2 * MILLI]
    narrow = [item for item in asked if 0 < item[0].milli < 2 * MILLI]
    plain = [item for item in asked if not item[0].milli and any(item[0].amounts)]
    chosen = [*wide[:MOST], *narrow[:MOST]] or _guess(cluster)
    return [*chosen, *plain[:MOST_PLAIN]] if chosen else []


def _guess(cluster: Cluster) -> Usual:
    known: Usual | None = cluster.known.get(_guess)
    if known is None:
        found = sorted(_find_guess(cluster), key=lambda g: g[0].milli < 2 * MILLI)
        known = cluster.known[_guess] = found
    return known


def _find_guess(cluster: Cluster) -> Usual:
    found: dict[Demand, float] = {}
    columns = sorted(
        {
            cluster.column[slot]
            for node in cluster.nodes
            for device in node.devices
            if device.kind != "host"
            for slot in (*device.total, *device.profiles)
        }
    )
    for column in columns:
        nodes = cluster.total_of(column)
        if not nodes.any():
            continue
        most = int(nodes.max())
        row = int(nodes.argmax())
        for milli in (MILLI // 2, MILLI, 2 * MILLI, 4 * MILLI, 8 * MILLI):
            if milli > most or (milli < MILLI and cluster.is_profile(column)):
                continue
            amounts = [0] * len(cluster.slots)
            for host, slot in enumerate(cluster.slots):
                if slot in HOST_SLOTS:
                    amounts[host] = int(cluster.total_of(host)[row]) * milli // most
            amounts[column] = milli
            found[Demand(tuple(amounts), column, milli)] = 1.0
    return list(found.items())
