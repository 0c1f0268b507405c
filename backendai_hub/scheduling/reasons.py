"""Why a session waits, in sentences with numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from backendai_hub.core.slots import MILLI, SlotType, describe_amount, slot_type
from backendai_hub.scheduling.cluster import Cluster, Mask, Vector
from backendai_hub.scheduling.holds import Hold
from backendai_hub.scheduling.placing import Room
from backendai_hub.scheduling.snapshot import (
    PendingSession,
    PreemptionPlan,
    Reservation,
    RunningSession,
)
from backendai_hub.scheduling.strategies import comparing_order

if TYPE_CHECKING:
    from backendai_hub.scheduling.trials import Trial

NO_NODES = "no node has joined yet; it starts when one does"
NO_NODES_IN_GROUP = "no node is in its resource group yet; it starts when one is"
DISPLACES = "it starts once the sessions have left that make room for it"
_OTHERS = "cannot keep users apart and serves somebody else"
_FULL = "runs as many containers as it may"


def explain_no_room(
    cluster: Cluster,
    session: PendingSession,
    holds: Sequence[Hold] = (),
    trial: Trial | None = None,
) -> str:
    """Say, slot by slot, what keeps *session* from starting now.

    *holds* are kept for others, and part of what is free all the same. On *trial* it is
    found out how many containers of a cluster have room.
    """
    if not cluster.nodes:
        return NO_NODES
    rows = _group(cluster, session)
    if not rows.any():
        return NO_NODES_IN_GROUP
    count = int(rows.sum())
    unfit, candidates = _sort_out(cluster, session, rows)
    parts = [
        f"{many} of 1 node: {why}" if count == 1 else f"{many} of {count} nodes: {why}"
        for why, many in unfit.items()
    ]
    if session.members:
        parts += _explain_members(cluster, session, candidates, holds)
        if len(candidates) and len(parts) == len(unfit):
            parts.append(_explain_together(session, trial, holds))
    elif len(candidates):
        parts += _shortfalls(cluster, session.request, candidates, holds)
    return "; ".join(parts) or "the node that had room has just been taken"


def _group(cluster: Cluster, session: PendingSession) -> Mask:
    """Return the nodes of the session's resource group; others are not told of."""
    return cluster.in_group(session.group)


def _sort_out(
    cluster: Cluster, session: PendingSession, rows: Mask
) -> tuple[dict[str, int], Vector]:
    """Count the nodes that may not run it, by why, and return the others."""
    closed, words = cluster.closures
    obstacles, more = cluster.obstacles(session)
    names = [*words, *more, _OTHERS, _FULL]
    beyond = np.where(obstacles > 0, obstacles + len(words), 0)
    why = np.where(closed > 0, closed, beyond)
    why[(why == 0) & ~cluster.serving(session.owner_id)] = len(names) - 2
    if cluster.limits_containers:
        why[(why == 0) & (cluster.spare < 1)] = len(names) - 1
    codes, first, counts = np.unique(why[rows], return_index=True, return_counts=True)
    order = np.argsort(first)
    unfit = {names[int(codes[i])]: int(counts[i]) for i in order if codes[i]}
    return unfit, np.flatnonzero(rows & (why == 0))


def _shortfalls(
    cluster: Cluster,
    request: Mapping[str, int],
    candidates: Vector,
    holds: Sequence[Hold] = (),
) -> list[str]:
    """Say which slots no candidate has, or what those lack that have the scarcest."""
    parts = []
    fits = {slot: cluster.fits(slot, n)[candidates] for slot, n in request.items()}
    for slot, amount in request.items():
        if not fits[slot].any():
            kept = _kept(cluster, slot, holds)[candidates]
            parts.append(_nowhere(cluster, slot, amount, candidates, kept))
    return parts or _together(cluster, request, fits, candidates)


def _kept(cluster: Cluster, slot: str, holds: Sequence[Hold]) -> Vector:
    """Return how much of *slot* each node keeps for others although it is free."""
    kept = np.zeros(len(cluster.nodes), np.int64)
    for hold in holds:
        kept[hold.row] += sum(s.amount for s in hold.shares if s.slot == slot)
    return kept


def _nowhere(
    cluster: Cluster, slot: str, amount: int, candidates: Vector, kept: Vector
) -> str:
    column = cluster.column.get(slot)
    best, aside, piece, row = 0, 0, 0, int(candidates[0])
    if column is not None:
        free = cluster.free_of(column)[candidates]
        place = int(np.argmax(free + kept))
        row, best, aside = int(candidates[place]), int(free[place]), int(kept[place])
        piece = int(cluster.largest_of(column)[row])
    return (
        f"{slot}: asks {describe_amount(slot, amount)},"
        f" {describe_amount(slot, best + aside)} free on {cluster.nodes[row].name}"
        + (f" but {describe_amount(slot, aside)} of it kept" if aside else "")
        + _in_pieces(slot, amount, best, piece)
        + (f", the best of {len(candidates)} nodes" if len(candidates) > 1 else "")
    )


def _in_pieces(slot: str, amount: int, together: int, piece: int) -> str:
    """Say why enough *together* is not enough: no device has it by itself."""
    if together < amount:
        return ""
    return f" in pieces of at most {describe_amount(slot, piece)}"


def _together(
    cluster: Cluster,
    request: Mapping[str, int],
    fits: Mapping[str, Mask],
    candidates: Vector,
) -> list[str]:
    """Say what the nodes lack that have enough of the scarcest slot."""
    order = [
        cluster.slots[c]
        for c in comparing_order(cluster.slots)
        if cluster.slots[c] in request
    ]
    if not order:
        return []
    scarce, parts = order[0], []
    left = fits[scarce].copy()
    for slot in order[1:]:
        lacking = left & ~fits[slot]
        if not lacking.any():
            continue
        left &= fits[slot]
        rows = candidates[lacking]
        short = request[slot] - _most(cluster, slot, request[slot])[rows]
        nearest = int(np.argmin(short))
        many = len(rows)
        parts.append(
            f"{many} of {len(candidates)} {'node' if len(candidates) == 1 else 'nodes'}"
            f" {'has' if many == 1 else 'have'} {_amount(scarce, request[scarce])} free"
            f" but not {_amount(slot, request[slot])};"
            f" nearest {cluster.nodes[int(rows[nearest])].name} lacks"
            f" {describe_amount(slot, int(short[nearest]))}"
        )
    return parts


def _most(cluster: Cluster, slot: str, amount: int) -> Vector:
    """Return how much of *slot* each node can give in a way that counts."""
    column = cluster.column[slot]
    most = cluster.largest_of(column)
    if slot_type(slot) is SlotType.COUNT and amount % MILLI == 0:
        most = np.maximum(most, cluster.untouched_of(column))
    return most


def _amount(slot: str, amount: int) -> str:
    """Write an amount with its slot: ``2 cuda.device``, ``64 GiB mem``."""
    return f"{describe_amount(slot, amount)} {slot}"


def _explain_members(
    cluster: Cluster,
    session: PendingSession,
    candidates: Vector,
    holds: Sequence[Hold],
) -> list[str]:
    """Say for a cluster which member finds no room even by itself."""
    if not len(candidates):
        return []
    for member in session.members:
        room = np.ones(len(candidates), bool)
        for slot, amount in member.request.items():
            room &= cluster.fits(slot, amount)[candidates]
        if not room.any():
            parts = _shortfalls(cluster, member.request, candidates, holds)
            return [f"container {member.name}: {part}" for part in parts]
    return []


def _explain_together(
    session: PendingSession, trial: Trial | None, holds: Sequence[Hold]
) -> str:
    """Say how many containers of a cluster find room, and what the next one lacks."""
    where = "one node has" if session.layout == "one-node" else "the nodes have"
    told = (
        f"its {len(session.members)} containers start together or not at all, and"
        f" {where}"
    )
    if trial is None:
        return f"{told} no room for all of them now"
    rooms = _place_most(trial, session)
    cluster, next_one = trial.placer.cluster, session.members[len(rooms)]
    lacking: list[str] = []
    try:
        _, rows = _sort_out(cluster, session, _group(cluster, session))
        if session.layout == "one-node" and rooms:
            rows = np.intersect1d(rows, [rooms[0].row])
        if rooms and len(rows):
            lacking = _shortfalls(cluster, next_one.request, rows, holds)
    finally:
        for room in reversed(rooms):
            trial.placer.undo(room)
    told = f"{told} room for {len(rooms)} of them now"
    return "; ".join([told, *(f"container {next_one.name}: {one}" for one in lacking)])


def _place_most(trial: Trial, session: PendingSession) -> list[Room]:
    """Take room for the first containers, as many of them as find it together."""
    least, most = 0, len(session.members) - 1
    while least < most:
        middle = (least + most + 1) // 2
        if trial.fits(replace(session, members=session.members[:middle])):
            least = middle
        else:
            most = middle - 1
    if not least:
        return []
    return trial.take(replace(session, members=session.members[:least])) or []


# --- what is done about it ---------------------------------------------------------


def tell_holds(holds: Sequence[Hold]) -> str:
    """Say what is free but kept for others."""
    counts: dict[str, set[int]] = {}
    for hold in holds:
        counts.setdefault(hold.why, set()).add(hold.row)
    return "; ".join(
        f"devices of {len(rows)} {'node' if len(rows) == 1 else 'nodes'} are {why}"
        for why, rows in counts.items()
    )


def tell_reservation(reservation: Reservation, cluster: Cluster) -> str:
    """Say what is kept for it, and when it starts at the latest."""
    names = sorted({cluster.nodes[cluster.row[p.node]].name for p in reservation.parts})
    place = f"devices of {', '.join(names)} are kept for it"
    if reservation.starts is None:
        return f"{place} as they become free; when those there end is not known"
    moment = datetime.fromtimestamp(reservation.starts, UTC)
    return f"{place}; it starts at the latest at {moment:%Y-%m-%d %H:%M} UTC"


def tell_preemption(plan: PreemptionPlan, cluster: Cluster) -> str:
    """Say who would have to go."""
    count = len(plan.victims)
    names = {p.node: cluster.nodes[cluster.row[p.node]].name for p in plan.parts}
    whose = "that borrow" if plan.kind == "reclaim" else "of less job priority"
    if count == 1 and plan.kind == "reclaim":
        whose = "that borrows"
    return (
        f"{'1 session' if count == 1 else f'{count} sessions'} {whose} on"
        f" {', '.join(sorted(names.values()))} would have to go for it"
    )


def tell_victim(victim: RunningSession, session: PendingSession, kind: str) -> str:
    """Say why a session has to go, to those whose it is."""
    if kind == "reclaim":
        return (
            f"it borrows what others are guaranteed, and session {session.id} needs it"
            " within that guarantee"
        )
    return (
        f"its job priority {victim.job_priority} is below {session.job_priority},"
        f" and it holds what session {session.id} needs"
    )


def tell_coming(rooms: Sequence[Room], cluster: Cluster) -> str:
    """Say where room becomes free by itself."""
    names = sorted({cluster.nodes[room.row].name for room in rooms})
    return f"there is room on {', '.join(names)} once those have left that are ending"


def explain_never(cluster: Cluster, session: PendingSession) -> str | None:
    """Say what no node could ever give, or None if some node could.

    Judged by what nodes have in all, whether or not they answer at the moment.
    """
    usable = np.flatnonzero(cluster.able(session))
    if not len(usable):
        return _why_unusable(cluster, session)
    if session.members:
        return _never_together(cluster, session, usable)
    return _never(cluster, session.request, usable)


def _why_unusable(cluster: Cluster, session: PendingSession) -> str:
    obstacles, words = cluster.obstacles(session)
    left = {words[int(c)] for c in np.unique(obstacles[_group(cluster, session)])}
    known = ("is not labelled", "is not one", "is without")
    labels = sorted(word for word in left if word.startswith(known))
    return f"every node {labels[0]}" if labels else "no node can run this image"


def _never_together(
    cluster: Cluster, session: PendingSession, usable: Vector
) -> str | None:
    for member in session.members:
        why = _never(cluster, member.request, usable)
        if why is not None:
            return f"container {member.name}: {why}"
    together: dict[str, int] = {}
    for member in session.members:
        for slot, amount in member.request.items():
            together[slot] = together.get(slot, 0) + amount
    one = session.layout == "one-node"
    for slot, amount in together.items():
        total = cluster.total_of(cluster.column[slot])[usable]
        most = int(total.max() if one else total.sum())
        if most < amount:
            where = "the largest node has" if one else "all nodes together have"
            return (
                f"{slot}: its containers ask {describe_amount(slot, amount)}, {where}"
                f" {describe_amount(slot, most)}"
            )
    return None


def _never(cluster: Cluster, request: Mapping[str, int], usable: Vector) -> str | None:
    possible = np.ones(len(usable), bool)
    parts = []
    for slot, amount in request.items():
        fits = cluster.fits(slot, amount, ever=True)[usable]
        possible &= fits
        if fits.any():
            continue
        column = cluster.column.get(slot)
        most = piece = 0
        if column is not None:
            total = cluster.total_of(column)[usable]
            row = int(usable[int(np.argmax(total))])
            most, piece = int(total.max()), int(cluster.biggest_of(column)[row])
        parts.append(
            f"{slot}: asks {describe_amount(slot, amount)}, the largest node has"
            f" {describe_amount(slot, most)}" + _in_pieces(slot, amount, most, piece)
        )
    if parts:
        return "; ".join(parts)
    if not possible.any():
        return "no single node has all of it, even when empty"
    return None
