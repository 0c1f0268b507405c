"""Who would have to go for a session to start: a dry run, which changes nothing.

By job priority, a victim must allow it, have strictly less of it, be in the scope that
the group names, and have run for long enough. Of the nodes where enough can go, that
one is chosen where least is lost. Sessions go as a whole, wherever their containers
are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from backendai_hub.core.groups import Preemption
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.scheduling.cluster import Cluster, Mask
from backendai_hub.scheduling.placing import Room
from backendai_hub.scheduling.snapshot import PendingSession, RunningSession
from backendai_hub.scheduling.trials import Trial

_MOST_NODES = 64
"""How many nodes are tried, those with the most candidates first."""
_MOST_TOGETHER = 256
"""How many candidates are looked at for what needs several nodes at once."""


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


def find_victims(
    trial: Trial,
    session: PendingSession,
    candidates: Sequence[RunningSession],
    *,
    order: str,
    now: int,
    due: Mapping[str, set[str]] | None = None,
) -> Found | None:
    """Return who of *candidates* would have to go, or None if all would not do.

    ``trial`` is on a copy of the cluster, where the session finds no room; it is left
    as it was. ``order`` names who goes first. With *due*, only those go who leave a
    slot that is due from them and lacks.
    """
    ordered = sorted(candidates, key=_ORDERS[order])
    if session.members and session.layout != "one-node":
        return _Search(trial, session, None).run(ordered[:_MOST_TOGETHER])
    cluster = trial.placer.cluster
    rows: dict[int, list[RunningSession]] = {}
    for other in ordered:
        for row in {cluster.row[n] for n, _ in other.holdings if n in cluster.row}:
            if due is None or due[other.id] & _lacking(cluster, session, row):
                rows.setdefault(row, []).append(other)
    serving = cluster.serving(session.owner_id)
    barred = trial.shapes.of(session).barred
    open_ = [r for r in rows if serving[r] and (barred is None or not barred[r])]
    best: tuple[Any, Found] | None = None
    for row in sorted(open_, key=lambda r: (-len(rows[r]), r))[:_MOST_NODES]:
        found = _Search(trial, session, row).run(rows[row])
        if found is None:
            continue
        cost = (
            len(found.victims) if order == "fewest-sessions" else 0,
            sum(v.job_priority for v in found.victims),
            sum(_size(v) * max(0, now - v.started) for v in found.victims),
            len(found.victims),
            row,
        )
        if best is None or cost < best[0]:
            best = cost, found
    return None if best is None else best[1]


def _lacking(cluster: Cluster, session: PendingSession, row: int) -> set[str]:
    """Return the slots that a node lacks; all, if each of them would do by itself."""
    asked = [(s, n) for s, n in session.request.items() if s in cluster.column]
    if session.members:
        lacking = {s for s, n in asked if cluster.free_of(cluster.column[s])[row] < n}
    else:
        lacking = {slot for slot, n in asked if not cluster.fits(slot, n)[row]}
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
            self._spare(gone)
            rooms = self._trial.take(self._session, self._among)
            for room in reversed(rooms or ()):
                self._trial.placer.undo(room)
        for other in gone:
            self._bring_back(other)
        return Found(tuple(rooms), tuple(gone)) if rooms else None

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


def let_go(trial: Trial, other: RunningSession) -> None:
    """Let *trial* be without a session that runs."""
    cluster = trial.placer.cluster
    for node, shares in other.holdings:
        row = cluster.row.get(node)
        if row is not None:
            cluster.give(row, shares)
            cluster.spare[row] += 1
