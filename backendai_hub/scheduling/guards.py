"""Policies of other packages, kept from doing harm.

What a policy that is not ours raises, or says that makes no sense, is noted as a fault
of its group: the group's sessions wait with that reason, and other groups go on. All
that is asked of it meanwhile gets an answer that is safe, so that nothing is left half
done. One that takes too long is replaced by one of ours for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import index as as_index
from threading import Thread
from typing import Any, Final, TypeVar

import numpy as np

from backendai_hub.scheduling.apart import Apart, TookTooLongError
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
from backendai_hub.scheduling.strategies import Dispersed

_HUGE = 1e300
_LEAST_SECONDS = 3.0
"""How long a policy may take at least for all its answers about one queue."""
_SECONDS_EACH: Final = 0.001
"""How much longer for each who is in the queue."""
_QUICK_SECONDS: Final = 0.1
"""Groups whose policies have taken longer come after all others."""
_PAUSE_TIMES: Final = 20
"""So many times as long nothing is asked of a policy that has taken longer."""
_MOST_STUCK: Final = 3
"""Of a policy of which so many calls have not ended nothing is asked any more."""
_OWN = "backendai_hub.scheduling."
_Answer = TypeVar("_Answer")


class Fault:
    """What has gone wrong with the policies of one group in one pass."""

    def __init__(
        self, now: int = 0, waiting: int = 0, policies: tuple[str, ...] = ()
    ) -> None:
        self.now = now
        """When the pass was begun, in seconds since 1970."""
        self.waiting = waiting
        """How many it is about."""
        self.policies = policies
        """What the group's policies are called."""
        self.told = ""
        """Why nothing of the group can start, in words for those who wait."""
        self.took = 0.0
        """How many seconds its policies have taken."""
        self.odd = ""
        """What a policy has done that it should not, though all get their turn."""

    @property
    def any(self) -> str:
        """What has gone wrong, whether or not it keeps anybody waiting."""
        return self.told or self.odd

    def note(self, kind: str, name: str, what: str) -> None:
        """Note something odd; what came first is told."""
        self.odd = self.odd or (
            f"the sequencer {name!r} {what}"
            if kind == "sequencer"
            else f"the placement {name!r} {what}"
        )

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


class _GivenUp:
    """A policy that took too long: since when, and what of it has not ended yet."""

    def __init__(self) -> None:
        self.since = self.pause = 0.0
        self._threads: list[Thread] = []

    def note(self, now: int, seconds: float, thread: Thread | None) -> None:
        """Note that it has been given up after so many seconds."""
        self.since, self.pause = now, _PAUSE_TIMES * seconds
        self._threads = [t for t in (*self._threads, thread) if t and t.is_alive()]

    @property
    def is_stuck(self) -> bool:
        """Tell whether asking it again would only leave one more call behind."""
        return sum(thread.is_alive() for thread in self._threads) >= _MOST_STUCK

    def pauses(self, now: int) -> bool:
        """Tell whether nothing is asked of it; clocks of passes may differ a little."""
        return self.is_stuck or abs(now - self.since) < self.pause


_given_up: dict[tuple[str, ...], _GivenUp] = {}
_took: dict[tuple[str, ...], float] = {}
"""How many seconds the policies of a group have taken the last time, by their names."""


def take_long(policies: tuple[str, ...]) -> bool:
    """Tell whether others should not wait for these policies, by their names.

    Nobody knows before they have been asked once.
    """
    return _took.get(policies, 0.0) > _QUICK_SECONDS


class _Asker:
    """Asks one policy in a thread of its own, unless it took too long lately."""

    def __init__(self, policy: object, fault: Fault, count: int) -> None:
        kind = type(policy)
        name = str(getattr(policy, "name", "?"))
        self._key = (kind.__module__, kind.__qualname__, name)
        self._fault = fault
        self._seconds = _LEAST_SECONDS + _SECONDS_EACH * count
        self._apart = Apart(self._seconds)
        known = _given_up.get(self._key)
        self._is_given_up = known is not None and known.pauses(fault.now)

    def ask(self, call: Callable[..., Any], *given: object) -> Any:
        if self._is_given_up:
            raise TookTooLongError("it is not asked")
        before = self._apart.took
        try:
            return self._apart.ask(partial(call, *given))
        except TookTooLongError:
            self._is_given_up = True
            known = _given_up.setdefault(self._key, _GivenUp())
            known.note(self._fault.now, self._seconds, self._apart.thread)
            raise
        finally:
            self._fault.took += self._apart.took - before
            _took[self._fault.policies] = self._fault.took

    @property
    def until(self) -> str:
        """Until when nothing is asked of one that took too long."""
        known = _given_up.get(self._key)
        if known is not None and known.is_stuck:
            return "until the service is restarted, for its calls do not end"
        return "until it is tried again"

    def close(self) -> None:
        self._apart.close()


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
    name = str(getattr(placement, "name", "?"))
    asker = _Asker(placement, fault, fault.waiting)
    usual = Dispersed().scorer(cluster, typical)
    try:
        scorer = asker.ask(placement.scorer, cluster, typical)
        picks = getattr(scorer, "pick", None) is not None
        checked = _CheckedPicker if picks else _CheckedScorer
        return checked(scorer, asker, usual, name, fault)
    except TookTooLongError:
        _note_slow(asker, name, fault)
        return usual
    except Exception as error:  # noqa: BLE001 - whatever others have written
        fault.fail("placement", name, error)
        return _Indifferent()


def _note_slow(asker: _Asker, name: str, fault: Fault) -> None:
    instead = f"nodes are chosen by {Dispersed.name!r}"
    fault.note("placement", name, f"took too long: {instead} {asker.until}")


class _Indifferent:
    """Finds all nodes equally good."""

    def score(self, demand: Demand, rows: IntVector) -> FloatVector:
        del demand
        return np.zeros(len(rows))

    def choose_device(self, demand: Demand, row: int, fitting: Sequence[int]) -> int:
        del demand, row
        return int(fitting[0])


class _CheckedScorer:
    """Asks a scorer, and answers in its place when it fails.

    One of ours answers for the rest of the pass when it takes too long.
    """

    def __init__(
        self, scorer: Scorer, asker: _Asker, usual: Scorer, name: str, fault: Fault
    ) -> None:
        self._scorer, self._asker, self._name = scorer, asker, name
        self._fault = fault
        self.anywhere = bool(getattr(scorer, "anywhere", False))
        self._usual: Scorer = usual
        self._instead: Scorer | None = None

    def score(self, demand: Demand, rows: IntVector) -> FloatVector:
        def check(given: object) -> FloatVector:
            scores = np.asarray(given, np.float64)
            _insist(scores.shape == rows.shape, "not a score for each node")
            # A score that is no number must not win, nor make a node vanish.
            return np.nan_to_num(scores, nan=_HUGE, posinf=_HUGE, neginf=-_HUGE)

        scores = self._ask(check, "score", demand, rows)
        if scores is None:
            scores = (self._instead or _Indifferent()).score(demand, rows)
        return scores

    def choose_device(self, demand: Demand, row: int, fitting: Sequence[int]) -> int:
        def check(given: Any) -> int:
            chosen = as_index(given)
            _insist(chosen in fitting, f"device {chosen} has no room")
            return chosen

        chosen = self._ask(check, "choose_device", demand, row, fitting)
        if chosen is None:
            instead = self._instead or _Indifferent()
            chosen = instead.choose_device(demand, row, fitting)
        return chosen

    def _ask(
        self, check: Callable[[Any], _Answer], what: str, *given: object
    ) -> _Answer | None:
        """Return a checked answer; None if another has to answer."""
        if self._fault.told or self._instead is not None:
            return None
        try:
            return check(self._asker.ask(getattr(self._scorer, what), *given))
        except TookTooLongError:
            self._instead = self._usual
            _note_slow(self._asker, self._name, self._fault)
        except Exception as error:  # noqa: BLE001 - whatever others have written
            self._fault.fail("placement", self._name, error)
        return None


class _CheckedPicker(_CheckedScorer):
    """Asks a scorer that also picks among the nodes itself."""

    def pick(self, scores: FloatVector) -> int:
        def check(given: Any) -> int:
            row = as_index(given)
            there = 0 <= row < len(scores) and bool(scores[row] < np.inf)
            _insist(there, f"node {row} has no room")
            return row

        row = self._ask(check, "pick", scores.copy())
        return int(scores.argmin()) if row is None else row


# --- sequencers -----------------------------------------------------------------------


_LEAST_WRONG = 100
"""So many senseless answers are passed over however short the queue is."""


def _go_on(order: Order, placed: int | None) -> int | None:
    """Tell an order who has got room, if somebody has, and ask for the next."""
    if placed is not None:
        order.placed(placed)
    return order.next()


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
        self._wrong = 0
        self._left: Iterator[int] | None = None
        self._order: Order | None = None
        self._placed: int | None = None
        """Who has got room and has not been told to the order yet."""
        self._asker = _Asker(sequencer, fault, len(queue))
        try:
            self._order = self._asker.ask(sequencer.order, queue, shares)
        except TookTooLongError:
            self._give_up()
        except Exception as error:  # noqa: BLE001 - whatever others have written
            self._fail(error)

    def next(self) -> int | None:
        if self._left is None:
            given = self._ask()
            if given is not None:
                self._given.add(given)
                return given
            self._asker.close()
            missing = set(range(self._count)) - self._given
            if missing and not self._fault.any:
                self._note(f"left out {len(missing)} of {self._count}")
            self._left = iter(sorted(missing))
        return next(self._left, None)

    def placed(self, index: int) -> None:
        self._placed = index

    def _ask(self) -> int | None:
        """Ask for the next that makes sense; None if there is none any more.

        One that names what makes none more often than there are sessions may come to no
        end: it is not asked any more.
        """
        while self._order is not None and not self._fault.told:
            try:
                order, placed, self._placed = self._order, self._placed, None
                given = self._asker.ask(_go_on, order, placed)
                if given is None:
                    return None
                given = as_index(given)
            except TookTooLongError:
                self._give_up()
                return None
            except Exception as error:  # noqa: BLE001 - whatever others have written
                self._fail(error)
                return None
            if 0 <= given < self._count and given not in self._given:
                return given
            self._wrong += 1
            if self._wrong > _LEAST_WRONG + self._count:
                self._fault.odd = f"the sequencer {self._name!r} comes to no end"
                self._order = None
            else:
                self._note(f"named number {given} twice or without there being one")
        return None

    def _give_up(self) -> None:
        """Ask nothing any more."""
        self._order = None
        self._note(f"took too long: first come, first served {self._asker.until}")

    def _note(self, what: str) -> None:
        self._fault.note("sequencer", self._name, what)

    def _fail(self, error: Exception) -> None:
        self._fault.fail("sequencer", self._name, error)
