"""Policies of other packages, kept from doing harm.

What a policy that is not ours raises, or says that makes no sense, is noted as a fault
of its group: the group's sessions wait with that reason, and other groups go on. All
that is asked of it meanwhile gets an answer that is safe, so that nothing is left half
done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import index as as_index

import numpy as np

from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.ordering import Order, Sequencer
from backendai_hub.scheduling.scoring import (
    Demand,
    FloatVector,
    IntVector,
    PlacementPolicy,
    Scorer,
)
from backendai_hub.scheduling.shares import ShareState
from backendai_hub.scheduling.snapshot import PendingSession

_HUGE = 1e300
_OWN = "backendai_hub.scheduling."


class Fault:
    """What has gone wrong with the policies of one group in one pass."""

    def __init__(self) -> None:
        self.told = ""
        """Why nothing of the group can start, in words for those who wait."""
        self.odd = ""
        """What a sequencer has done that it should not, though all get their turn."""

    @property
    def any(self) -> str:
        """What has gone wrong, whether or not it keeps anybody waiting."""
        return self.told or self.odd

    def fail(self, kind: str, name: str, error: object) -> None:
        """Note that a policy has failed; what came first is told."""
        what = type(error).__name__ if isinstance(error, Exception) else "answer"
        self.told = self.told or (
            f"the {kind} {name!r} of its resource group failed ({what}: {error}); it"
            " starts once an administrator has mended or replaced that"
        )


def is_own(policy: object) -> bool:
    """Tell whether a policy comes with the product: nothing of it is checked."""
    return type(policy).__module__.startswith(_OWN)


# --- placements -----------------------------------------------------------------------


def _insist(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - read as a sentence
    if not holds:
        raise ValueError(otherwise)


def make_scorer(
    placement: PlacementPolicy,
    cluster: Cluster,
    typical: Sequence[tuple[Demand, float]],
    fault: Fault,
) -> Scorer:
    """Have a placement policy make what scores nodes, and see that it does."""
    if is_own(placement):
        return placement.scorer(cluster, typical)
    try:
        return _CheckedScorer(
            placement.scorer(cluster, typical), placement.name, cluster, fault
        )
    except Exception as error:  # noqa: BLE001 - whatever others have written
        fault.fail("placement", getattr(placement, "name", "?"), error)
        return _Indifferent()


class _Indifferent:
    """Finds all nodes equally good."""

    def score(self, demand: Demand, rows: IntVector) -> FloatVector:
        del demand
        return np.zeros(len(rows))

    def choose_device(self, demand: Demand, row: int, fitting: Sequence[int]) -> int:
        del demand, row
        return int(fitting[0])


class _CheckedScorer:
    """Asks a scorer, and answers in its place when it fails."""

    def __init__(
        self, scorer: Scorer, name: str, cluster: Cluster, fault: Fault
    ) -> None:
        self._scorer, self._name = scorer, name
        self._rows, self._fault = len(cluster.nodes), fault
        self.anywhere = bool(getattr(scorer, "anywhere", False))
        chooser = getattr(scorer, "pick", None)
        self._pick: Callable[[FloatVector], int] | None = chooser
        self.pick = None if chooser is None else self._choose

    def score(self, demand: Demand, rows: IntVector) -> FloatVector:
        if not self._fault.told:
            try:
                given = np.asarray(self._scorer.score(demand, rows), np.float64)
                _insist(given.shape == rows.shape, "not a score for each node")
                # A score that is no number must not win, nor make a node vanish.
                return np.nan_to_num(given, nan=_HUGE, posinf=_HUGE, neginf=-_HUGE)
            except Exception as error:  # noqa: BLE001 - whatever others have written
                self._fault.fail("placement", self._name, error)
        return np.zeros(len(rows))

    def choose_device(self, demand: Demand, row: int, fitting: Sequence[int]) -> int:
        if not self._fault.told:
            try:
                chosen = as_index(self._scorer.choose_device(demand, row, fitting))
                _insist(chosen in fitting, f"device {chosen} has no room")
            except Exception as error:  # noqa: BLE001 - whatever others have written
                self._fault.fail("placement", self._name, error)
            else:
                return chosen
        return int(fitting[0])

    def _choose(self, scores: FloatVector) -> int:
        if not self._fault.told and self._pick is not None:
            try:
                row = as_index(self._pick(scores.copy()))
                there = 0 <= row < self._rows and bool(scores[row] < np.inf)
                _insist(there, f"node {row} has no room")
            except Exception as error:  # noqa: BLE001 - whatever others have written
                self._fault.fail("placement", self._name, error)
            else:
                return row
        return int(scores.argmin())


# --- sequencers -----------------------------------------------------------------------


class CheckedSequencer:
    """Has a sequencer order queues, and sees that everybody gets exactly one turn."""

    def __init__(self, sequencer: Sequencer, fault: Fault) -> None:
        self.name = str(getattr(sequencer, "name", "?"))
        self._sequencer, self._fault = sequencer, fault

    def order(self, queue: Sequence[PendingSession], shares: ShareState) -> Order:
        """Begin a pass over *queue*."""
        return _CheckedOrder(self._sequencer, queue, shares, self._fault)


def check_sequencer(sequencer: Sequencer, fault: Fault) -> Sequencer:
    """Return a sequencer that cannot do harm."""
    return sequencer if is_own(sequencer) else CheckedSequencer(sequencer, fault)


class _CheckedOrder:
    """Asks an order, and gives those a turn whom it leaves out.

    Whom it names twice, or who is not there, is passed over.
    """

    def __init__(
        self,
        sequencer: Sequencer,
        queue: Sequence[PendingSession],
        shares: ShareState,
        fault: Fault,
    ) -> None:
        self._name = getattr(sequencer, "name", "?")
        self._fault, self._count = fault, len(queue)
        self._given: set[int] = set()
        self._left: Iterator[int] | None = None
        self._order: Order | None = None
        try:
            self._order = sequencer.order(queue, shares)
        except Exception as error:  # noqa: BLE001 - whatever others have written
            self._fail(error)

    def next(self) -> int | None:
        if self._left is None:
            given = self._ask()
            if given is not None:
                self._given.add(given)
                return given
            missing = set(range(self._count)) - self._given
            if missing and not self._fault.told:
                self._note(f"left out {len(missing)} of {self._count}")
            self._left = iter(sorted(missing))
        return next(self._left, None)

    def placed(self, index: int) -> None:
        if self._left is None and self._order is not None:
            try:
                self._order.placed(index)
            except Exception as error:  # noqa: BLE001 - whatever others have written
                self._fail(error)

    def _ask(self) -> int | None:
        """Ask for the next that makes sense; None if there is none any more."""
        for _ in range(self._count + 1):
            if self._order is None or self._fault.told:
                return None
            try:
                given = self._order.next()
                if given is None:
                    return None
                given = as_index(given)
            except Exception as error:  # noqa: BLE001 - whatever others have written
                self._fail(error)
                return None
            if 0 <= given < self._count and given not in self._given:
                return given
            self._note(f"named number {given} twice or without there being one")
        return None

    def _note(self, what: str) -> None:
        self._fault.odd = self._fault.odd or f"the sequencer {self._name!r} {what}"

    def _fail(self, error: Exception) -> None:
        self._fault.fail("sequencer", self._name, error)
