"""Finding a node and its devices for a request: the part that must be quick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from backendai_hub.scheduling.cluster import ANYBODY, Cluster, Mask
from backendai_hub.scheduling.scoring import FloatVector, IntVector, Scorer
from backendai_hub.scheduling.shapes import Shape
from backendai_hub.scheduling.snapshot import Share
from backendai_hub.scheduling.strategies import RankedScorer

_HUGE = 1e300
_MOST_SHAPES = 256
"""So many shapes keep a row of scores; the others are scored anew each time."""
_FEW_NODES = 2048
"""Up to so many nodes, scoring all of them costs less than picking out some."""


class Room(NamedTuple):
    """What one container has taken, with whom its node belonged to before."""

    row: int
    shares: tuple[Share, ...]
    owner: int


class Placer:
    """Chooses nodes of one cluster by one policy's scores.

    Each shape keeps its scores; only nodes that have changed since it was last asked
    for are scored again, unless those are so many that all are.
    """

    def __init__(
        self, cluster: Cluster, scorer: Scorer, *, allow_split: bool = False
    ) -> None:
        self.cluster = cluster
        self._scorer = scorer
        self.allow_split = allow_split
        self._anywhere = bool(getattr(scorer, "anywhere", False))
        self._cheap = self._anywhere and len(cluster.nodes) <= _FEW_NODES
        self._pick: Callable[[FloatVector], int] | None = getattr(scorer, "pick", None)
        count = len(cluster.nodes)
        self._all: IntVector = np.arange(count)
        self._rows = 0
        self._shared: FloatVector = np.empty(count)
        self._shared_by: Shape | None = None
        self._plain: Scorer | None = None
        self._bad: Mask = np.empty(count, bool)
        self._more: Mask = np.empty(count, bool)

    def find(self, shape: Shape, owner_id: str, among: Mask | None = None) -> int:
        """Return the best node with room, or -1; *among* leaves others out."""
        if shape.never or not len(self._all):
            return -1
        scores = self._renew(shape)
        if among is None and self.cluster.keeps_apart and shape.later is None:
            return self._best(scores)
        if among is not None:
            scores = np.where(among, scores, np.inf)
        if not self.cluster.keeps_apart:
            scores = np.where(self.cluster.serving(owner_id), scores, np.inf)
        if shape.later is not None:
            row = self._best(np.where(shape.later, np.inf, scores))
            if row >= 0:
                return row
        return self._best(scores)

    def _best(self, scores: FloatVector) -> int:
        row = int(scores.argmin())
        if scores[row] == np.inf:
            return -1
        return row if self._pick is None else self._pick(scores)

    def room(self, shape: Shape) -> Mask:
        """Tell which nodes have room for *shape*, whomever they serve."""
        if shape.never:
            return np.zeros(len(self._all), bool)
        mask: Mask = self._renew(shape) < np.inf
        return mask

    def has_room(self, shape: Shape, row: int) -> bool:
        """Tell whether one node has room for *shape*, whomever it serves."""
        if shape.never or (shape.barred is not None and shape.barred[row]):
            return False
        # Forecasts ask this thousands of times, and Python's integers compare fastest.
        for column, least in shape.tests:
            if column.item(row) < least.item():
                return False
        for one, several, least in shape.either:
            if max(one.item(row), several.item(row)) < least.item():
                return False
        return True

    def rule_out(self, shape: Shape, row: int) -> None:
        """Note that a node has no room after all, until it changes."""
        shape.scores[row] = np.inf

    def _renew(self, shape: Shape) -> FloatVector:
        if len(shape.scores) != len(self._all):
            self._lend_row(shape)
        if shape.scores is self._shared and self._shared_by is not shape:
            self._shared_by, shape.seen = shape, -1
        log = self.cluster.log
        seen, now = shape.seen, len(log)
        if seen == now:
            return shape.scores
        shape.seen = now
        changed = now - seen
        if (
            seen < 0
            or changed * 2 > len(self._all)
            or (self._cheap and changed > 1)
            or shape.scores is self._shared
        ):
            self._score_all(shape)
        else:
            self._score_some(shape, log[seen:])
        return shape.scores

    def _lend_row(self, shape: Shape) -> None:
        """Give a shape a row for its scores, of its own while there are few."""
        self._rows += 1
        own = self._rows <= _MOST_SHAPES
        shape.scores = np.empty(len(self._all)) if own else self._shared

    def _score_all(self, shape: Shape) -> None:
        bad, more = self._bad, self._more
        if shape.barred is not None:
            np.copyto(bad, shape.barred)
        else:
            bad.fill(False)  # noqa: FBT003 - numpy has no other name for it
        for column, least in shape.tests:
            np.less(column, least, out=more)
            np.logical_or(bad, more, out=bad)
        for one, several, least in shape.either:
            np.less(one, least, out=more)
            more &= several < least
            np.logical_or(bad, more, out=bad)
        scorer = self._scorer
        if shape.scores is self._shared and not self._anywhere:
            # Too many shapes to score them by anything that takes long.
            self._plain = self._plain or RankedScorer(self.cluster, sign=1)
            scorer = self._plain
        if self._anywhere or scorer is self._plain:
            scores = scorer.score(shape.demand, self._all)
            np.copyto(shape.scores, scores)
            np.putmask(shape.scores, bad, np.inf)
        else:
            shape.scores.fill(np.inf)
            self._ask(shape, np.flatnonzero(~bad))

    def _score_some(self, shape: Shape, changed: Sequence[int]) -> None:
        rows = np.array(changed if self._anywhere else [*dict.fromkeys(changed)])
        bad = np.zeros(len(rows), bool) if shape.barred is None else shape.barred[rows]
        for column, least in shape.tests:
            bad |= column.take(rows) < least
        for one, several, least in shape.either:
            bad |= (one[rows] < least) & (several[rows] < least)
        if self._anywhere:
            scores = self._scorer.score(shape.demand, rows)
            scores[bad] = np.inf
            shape.scores[rows] = scores
        else:
            shape.scores[rows] = np.inf
            self._ask(shape, rows[~bad])

    def _ask(self, shape: Shape, rows: IntVector) -> None:
        """Ask a scorer that is only asked about nodes with room."""
        if len(rows):
            scores = self._scorer.score(shape.demand, rows)
            # A score that is no number must not win, nor make a node vanish.
            shape.scores[rows] = np.nan_to_num(scores, nan=_HUGE, posinf=_HUGE)

    # --- devices -----------------------------------------------------------------

    def take(self, shape: Shape, row: int) -> list[Share] | None:
        """Choose devices of a node and take them; None if it has no room after all."""
        cluster = self.cluster
        shares: list[Share] = []
        before = len(cluster.log)
        prefer = None
        if shape.fraction:
            prefer = partial(self._scorer.choose_device, shape.demand, row)
        for slot, amount in shape.items:
            chosen = cluster.choose_devices(
                row,
                slot,
                amount,
                split=self.allow_split,
                prefer=prefer,
            )
            if chosen is None:
                if shape.entangled and shares:
                    cluster.give(row, shares)
                    # Nothing has changed: it must not be looked at once more.
                    del cluster.log[before:]
                return None
            if shape.entangled:
                cluster.take(row, chosen)
            shares += chosen
        if not shape.entangled:
            cluster.take(row, shares)
        return shares

    def settle(self, row: int, shares: Sequence[Share], owner_id: str) -> Room:
        """Note whose container it is that has taken *shares*."""
        cluster = self.cluster
        cluster.spare[row] -= 1
        if cluster.keeps_apart:
            return Room(row, tuple(shares), ANYBODY)
        owner = cluster.owner_of(row)
        cluster.claim(row, owner_id)
        return Room(row, tuple(shares), owner)

    def undo(self, room: Room) -> None:
        """Give back what a container has taken, as if it had never been there."""
        self.cluster.spare[room.row] += 1
        if not self.cluster.keeps_apart:
            self.cluster.unclaim(room.row, room.owner)
        self.cluster.give(room.row, room.shares)
