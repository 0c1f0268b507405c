"""Who would have to go for a session to start: a dry run, which changes nothing.

By job priority, a victim must allow it, have strictly less of it, be in the scope that
the group names, and have run for long enough. Of the nodes where enough can go, that
one is chosen where least is lost. Sessions go as a whole, wherever their containers
are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from backendai_hub.core.groups import Preemption
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.cluster import Cluster, Mask
from backendai_hub.scheduling.gangs import Gang
from backendai_hub.scheduling.placing import Room
from backendai_hub.scheduling.snapshot import PendingSession, RunningSession
from backendai_hub.scheduling.trials import Trial

Kind = Literal["priority", "reclaim"]
_MOST_NODES = 64
"""Of how many nodes where enough can go the best is chosen; those where none can are
not counted."""
_MOST_TOGETHER = 64
"""Of more who would have to go on several nodes, only those are looked at one by one
who are where the containers find room."""


def can_go(other: RunningSession, *, rules: Preemption, now: int) -> bool:
    """Tell whether *other* may be displaced at all."""
    return (
        other.preemptible
        and not (other.leaving or other.system)
        and now - other.started >= rules.min_runtime
    )


def may_displace(
    session: PendingSession, other: RunningSession, rules: Preemption, now: int
) -> bool:
    """Tell whether *other* may be displaced for *session* by job priority."""
    return (
        can_go(other, rules=rules, now=now)
        and other.group == session.group
        and other.job_priority < session.job_priority
        and _same_scope(session, other, rules.victim_scope)
    )


def _same_scope(session: PendingSession, other: RunningSession, scope: str) -> bool:
    if scope == "resource-group":
        return True
    if scope == "user":
        return session.owner_id == other.owner_id
    kind = ScopeKind(scope)
    return not {k for k in session.scopes if k[0] is kind}.isdisjoint(other.scopes)


def _size(session: RunningSession) -> int:
    """Sum up the accelerators a session holds, then its other counts."""
    return sum(
        share.amount
        for _, shares in session.holdings
        for share in shares
        if share.slot not in {"cpu", "mem"} and not share.slot.endswith(".mem")
    )


_ORDERS: dict[str, Callable[[RunningSession], Any]] = {
    "oldest": lambda s: (s.started, s.id),
    "newest": lambda s: (-s.started, s.id),
    "fewest-sessions": lambda s: (-_size(s), s.id),
    "smallest-resources": lambda s: (_size(s), s.id),
}


class Found(NamedTuple):
    """Where a session would start, and who would have to go."""

    rooms: tuple[Room, ...]
    victims: tuple[RunningSession, ...]


class Way(NamedTuple):
    """Why others may have to go, and who they are."""

    kind: Kind
    candidates: Sequence[RunningSession]
    order: str
    """Who goes first."""
    due: Mapping[str, set[str]] | None = None
    """With it, only those go who leave a slot that is due from them and lacks."""


def find_victims(
    trial: Trial, session: PendingSession, way: Way, *, now: int, among: Mask
) -> Found | None:
    """Return who would have to go in that *way*, or None if all would not do.

    ``trial`` is on a copy of the cluster, where the session finds no room; it is left
    as it was. ``among`` are the nodes that are of use to it when everybody has gone
    who can.
    """
    order, due = way.order, way.due
    cluster = trial.placer.cluster
    useful = trial.shapes.of(session).barred
    useful = np.ones(len(cluster.nodes), bool) if useful is None else ~useful
    useful &= cluster.serving(session.owner_id)
    useful &= among
    candidates = sorted(way.candidates, key=_ORDERS[order])
    rows = _by_row(cluster, session, candidates, useful)
    if session.members and session.layout != "one-node":
        together = {other.id: other for others in rows.values() for other in others}
        ordered = sorted(together.values(), key=_ORDERS[order])
        return _Search(trial, session, None).run(ordered)
    if due is not None:
        lacking = {row: _lacking(cluster, session, row) for row in rows}
        rows = {
            row: kept
            for row, others in rows.items()
            if (kept := [o for o in others if due[o.id] & lacking[row]])
        }
    least = {
        row: (
            min(v.job_priority for v in others),
            min(_size(v) * max(0, now - v.started) for v in others),
            row,
        )
        for row, others in rows.items()
    }
    best: tuple[Any, Found] | None = None
    count = 0
    for row in sorted(rows, key=least.__getitem__):
        found = _Search(trial, session, row).run(rows[row])
        if found is None:
            continue
        count += 1
        cost = (
            len(found.victims) if order == "fewest-sessions" else 0,
            sum(v.job_priority for v in found.victims),
            sum(_size(v) * max(0, now - v.started) for v in found.victims),
            len(found.victims),
            row,
        )
        if best is None or cost < best[0]:
            best = cost, found
        if count == _MOST_NODES:
            break
    return None if best is None else best[1]


def _by_row(
    cluster: Cluster,
    session: PendingSession,
    ordered: Iterable[RunningSession],
    useful: Mask,
) -> dict[int, list[RunningSession]]:
    """Return on each useful node who of *ordered* has anything that is asked for.

    Where containers lack slots of which others have enough, only who holds some of the
    lacking ones is of use. Where nodes count containers, everybody is.
    """
    rows: dict[int, list[RunningSession]] = {}
    wanted: dict[int, set[str]] = {}
    for other in ordered:
        for node, shares in other.holdings:
            row = cluster.row.get(node)
            if row is None or not useful[row]:
                continue
            if row not in wanted:
                wanted[row] = _wanted(cluster, session, row)
            if (
                cluster.limits_containers
                or cluster.is_sliced(row)
                or not wanted[row].isdisjoint(share.slot for share in shares)
            ):
                found = rows.setdefault(row, [])
                if not found or found[-1] is not other:
                    found.append(other)
    return rows


def _wanted(cluster: Cluster, session: PendingSession, row: int) -> set[str]:
    """Return the slots of which there may not be enough for all containers."""
    lacking = set()
    for slot, amount in session.request.items() if session.members else ():
        whole = all(m.request.get(slot, 0) % MILLI == 0 for m in session.members)
        if slot in cluster.column and not (
            cluster.gives(row, slot, amount)
            and (whole or cluster.largest_of(cluster.column[slot])[row] >= amount)
        ):
            lacking.add(slot)
    return lacking or _lacking(cluster, session, row)


def _lacking(cluster: Cluster, session: PendingSession, row: int) -> set[str]:
    """Return the slots that a node lacks; all, if each of them would do by itself."""
    asked = [(s, n) for s, n in session.request.items() if s in cluster.column]
    if session.members:
        lacking = {s for s, n in asked if cluster.free_of(cluster.column[s])[row] < n}
    else:
        lacking = {slot for slot, n in asked if not cluster.gives(row, slot, n)}
    return lacking or {slot for slot, _ in asked}


class _Search:
    """Lets sessions of one node go, or of all, until another one finds room."""

    def __init__(self, trial: Trial, session: PendingSession, row: int | None) -> None:
        self._trial, self._session, self._row = trial, session, row
        self._cluster = trial.placer.cluster
        self._shape = None if session.members else trial.shapes.of(session)
        self._among: Mask | None = None
        if row is not None:
            self._among = np.zeros(len(self._cluster.nodes), bool)
            self._among[row] = True

    def run(self, candidates: Sequence[RunningSession]) -> Found | None:
        """Let candidates go until there is room, then keep who need not have gone."""
        gone: list[RunningSession] = []
        waiting = list(candidates)
        step = 1
        while waiting and not self._fits():
            for other in waiting[:step]:
                self._let_go(other)
            gone += waiting[:step]
            del waiting[:step]
            step = 1 if self._row is not None else 2 * step
        rooms = None
        if gone and self._fits():
            if len(gone) > _MOST_TOGETHER:
                gone = self._spare_elsewhere(gone)
            self._spare(gone)
            rooms = self._try()
        for other in gone:
            self._bring_back(other)
        return Found(tuple(rooms), tuple(gone)) if rooms else None

    def _spare_elsewhere(self, gone: list[RunningSession]) -> list[RunningSession]:
        """Bring those back who are not where there is room now."""
        nodes = {self._cluster.nodes[room.row].id for room in self._try() or ()}
        there = {s.id for s in gone if not nodes.isdisjoint(n for n, _ in s.holdings)}
        for other in gone:
            if other.id not in there:
                self._bring_back(other)
        if self._fits():
            return [other for other in gone if other.id in there]
        for other in gone:
            if other.id not in there:
                self._let_go(other)
        return gone

    def _try(self) -> list[Room] | None:
        rooms = self._trial.take(self._session, self._among)
        for room in reversed(rooms or ()):
            self._trial.placer.undo(room)
        return rooms

    def _spare(self, gone: list[RunningSession]) -> None:
        """Bring those back without whom there is room, the last one first."""
        for other in reversed(list(gone)):
            self._bring_back(other)
            if self._fits():
                gone.remove(other)
            else:
                self._let_go(other)

    def _fits(self) -> bool:
        if self._shape is not None and self._row is not None:
            return self._trial.placer.has_room(self._shape, self._row)
        return self._trial.fits(self._session, self._among)

    def _let_go(self, other: RunningSession) -> None:
        let_go(self._trial, other)

    def _bring_back(self, other: RunningSession) -> None:
        for node, shares in other.holdings:
            row = self._cluster.row.get(node)
            if row is not None:
                self._cluster.spare[row] -= 1
                self._cluster.take(row, shares)


def find_useful(trial: Trial, session: PendingSession) -> Mask:
    """Tell which nodes of *trial* have room for *session*, or for a part of it.

    Where none has, none has either when less is free.
    """
    if session.members:
        return Gang(trial.placer, trial.shapes, session).useful()
    return trial.placer.room(trial.shapes.of(session))


def let_go(trial: Trial, other: RunningSession) -> None:
    """Let *trial* be without a session that runs."""
    cluster = trial.placer.cluster
    for node, shares in other.holdings:
        row = cluster.row.get(node)
        if row is not None:
            cluster.give(row, shares)
            cluster.spare[row] += 1
