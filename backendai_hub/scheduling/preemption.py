"""Who would have to go for a session to start: a dry run, which changes nothing.

A victim must allow it, have strictly less job priority, be in the scope that the group
names, and have run for long enough. Of the nodes where enough can go, that one is
chosen where least is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from backendai_hub.core.groups import Preemption
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.scheduling.placing import Placer
from backendai_hub.scheduling.shapes import Shape
from backendai_hub.scheduling.snapshot import (
    PendingSession,
    PreemptionPlan,
    RunningSession,
    Share,
    Victim,
)

_MOST_NODES = 64
"""How many nodes are tried, those with the most candidates first."""


def may_displace(
    session: PendingSession, other: RunningSession, rules: Preemption, now: int
) -> bool:
    """Tell whether *other* may be displaced for *session*."""
    return (
        other.preemptible
        and other.group == session.group
        and other.job_priority < session.job_priority
        and now - other.started >= rules.min_runtime
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


def find_victims(
    placer: Placer,
    shape: Shape,
    session: PendingSession,
    running: Iterable[RunningSession],
    *,
    rules: Preemption,
    now: int,
) -> PreemptionPlan | None:
    """Return who would have to go, or None; ``placer`` is on a copy of the cluster."""
    rows: dict[int, list[RunningSession]] = {}
    for other in running:
        if may_displace(session, other, rules, now):
            for node in {node for node, _ in other.holdings}:
                row = placer.cluster.row.get(node)
                if row is not None:
                    rows.setdefault(row, []).append(other)
    best: tuple[Any, int, list[RunningSession], tuple[Share, ...]] | None = None
    serving = placer.cluster.serving(session.owner_id)
    order = sorted(rows, key=lambda row: (-len(rows[row]), row))
    for row in [r for r in order if serving[r]][:_MOST_NODES]:
        candidates = sorted(rows[row], key=_ORDERS[rules.order])
        found = _try_node(placer, shape, row, candidates)
        if found is None:
            continue
        victims, shares = found
        cost = (
            len(victims) if rules.order == "fewest-sessions" else 0,
            sum(v.job_priority for v in victims),
            sum(_size(v) * max(0, now - v.started) for v in victims),
            len(victims),
            row,
        )
        if best is None or cost < best[0]:
            best = (cost, row, victims, shares)
    if best is None:
        return None
    _, row, victims, shares = best
    return PreemptionPlan(
        session=session.id,
        node=placer.cluster.nodes[row].id,
        shares=shares,
        mode=rules.mode,
        victims=tuple(Victim(session=v.id, reason=_tell(v, session)) for v in victims),
    )


def _try_node(
    placer: Placer, shape: Shape, row: int, candidates: Sequence[RunningSession]
) -> tuple[list[RunningSession], tuple[Share, ...]] | None:
    """Let candidates go until there is room, then keep who need not have gone."""
    gone: list[RunningSession] = []
    for other in candidates:
        if placer.has_room(shape, row):
            break
        _let_go(placer, row, other)
        gone.append(other)
    shares: tuple[Share, ...] | None = None
    if placer.has_room(shape, row):
        for other in list(gone):
            _bring_back(placer, row, other)
            if placer.has_room(shape, row):
                gone.remove(other)
            else:
                _let_go(placer, row, other)
        taken = placer.take(shape, row)
        if taken is not None:
            shares = tuple(taken)
            placer.cluster.give(row, taken)
    for other in gone:
        _bring_back(placer, row, other)
    return None if shares is None or not gone else (gone, shares)


def _on(placer: Placer, row: int, other: RunningSession) -> list[Share]:
    node = placer.cluster.nodes[row].id
    return [s for where, shares in other.holdings if where == node for s in shares]


def _let_go(placer: Placer, row: int, other: RunningSession) -> None:
    placer.cluster.give(row, _on(placer, row, other))
    placer.cluster.spare[row] += 1


def _bring_back(placer: Placer, row: int, other: RunningSession) -> None:
    placer.cluster.spare[row] -= 1
    placer.cluster.take(row, _on(placer, row, other))


def _tell(victim: RunningSession, session: PendingSession) -> str:
    return (
        f"its job priority {victim.job_priority} is below {session.job_priority},"
        f" and it holds what session {session.id} needs"
    )
