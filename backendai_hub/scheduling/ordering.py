"""Whose turn it is: the orders in which a queue is worked off.

A queue is in the order of submission. It is worked off in *bands* of one priority,
the highest first; within a band a *sequencer* decides. What waits for a quota, another
session or a point in time keeps its place: an order is only asked for the next one and
told which has got room, so nothing can fall behind by waiting.

Sequencers are plugins of the group ``backendai_hub.sequencers``. Those here are
``fifo``, ``lifo``, ``drf`` and ``fair-share``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

from backendai_hub.scheduling.shares import (
    ShareState,
    ShareTree,
    people_of,
    tenants_of,
)
from backendai_hub.scheduling.snapshot import PendingSession

__all__ = [
    "SEQUENCERS",
    "Bands",
    "Drf",
    "FairShare",
    "Fifo",
    "Lifo",
    "Order",
    "Sequencer",
    "ShareState",
]


class Order(Protocol):
    """One pass over one queue.

    ``next`` gives the index of the next candidate, each at most once, and None at the
    end. ``placed`` says that the one given last has got room; who says nothing and
    asks for the next says that it has not.
    """

    def next(self) -> int | None:
        """Return the index of the next candidate."""
        ...

    def placed(self, index: int) -> None:
        """Note that the one given last got room: its owners' keys move at once."""
        ...


class Sequencer(Protocol):
    """An order within one band. It must not change what it is given."""

    name: str

    def order(self, queue: Sequence[PendingSession], shares: ShareState) -> Order:
        """Begin a pass over *queue*, of one priority and in order of submission."""
        ...


class Fifo:
    """Who has come first is served first."""

    name = "fifo"

    def order(self, queue: Sequence[PendingSession], shares: ShareState) -> Order:
        """Begin a pass."""
        del shares
        return _Fixed(iter(range(len(queue))))


class Lifo:
    """Who has come last is served first."""

    name = "lifo"

    def order(self, queue: Sequence[PendingSession], shares: ShareState) -> Order:
        """Begin a pass."""
        del shares
        return _Fixed(iter(range(len(queue) - 1, -1, -1)))


class Drf:
    """The user whose dominant share is the smallest is served first.

    That is the largest part they hold of any slot of the group, in all projects.
    """

    name = "drf"

    def order(self, queue: Sequence[PendingSession], shares: ShareState) -> Order:
        """Begin a pass."""
        return ShareTree(queue, shares.without_history(), people_of)


class FairShare:
    """The domain furthest below its due, in it the project, in it the user.

    What counts is the larger of what is held now and what has been held before, by
    weight. Who has neither is first.
    """

    name = "fair-share"

    def order(self, queue: Sequence[PendingSession], shares: ShareState) -> Order:
        """Begin a pass."""
        return ShareTree(queue, shares, tenants_of)


SEQUENCERS: Final[Mapping[str, Sequencer]] = MappingProxyType(
    {s.name: s for s in (Fifo(), Lifo(), Drf(), FairShare())}
)
"""Those that come with the product, by name."""


class _Fixed:
    """An order that does not depend on who gets room."""

    def __init__(self, indexes: Iterator[int]) -> None:
        self._indexes = indexes

    def next(self) -> int | None:
        return next(self._indexes, None)

    def placed(self, index: int) -> None:
        """Change nothing: the order was fixed from the start."""


class Bands:
    """The order of a whole queue: band after band, the highest priority first.

    A band begins with the shares that the one before has left.
    """

    def __init__(
        self,
        queue: Sequence[PendingSession],
        sequencer: Sequencer,
        shares: ShareState,
    ) -> None:
        members: dict[int, list[int]] = {}
        for index, session in enumerate(queue):
            try:
                members[session.priority].append(index)
            except KeyError:
                members[session.priority] = [index]
        self._bands = [members[priority] for priority in sorted(members)]
        self._queue, self._sequencer, self._shares = queue, sequencer, shares
        self._band: Sequence[int] = ()
        self._order: Order = _Fixed(iter(()))
        self._given: int | None = None
        self._placed: list[int] = []

    def next(self) -> int | None:
        """Return the next candidate of this band, or of the one below."""
        while (given := self._order.next()) is None:
            self._given = None
            if not self._bands:
                return None
            self._begin(self._bands.pop())
        self._given = given
        return self._band[given]

    def _begin(self, band: list[int]) -> None:
        if self._placed:
            self._shares = self._shares.plus(
                [self._queue[index] for index in self._placed]
            )
            self._placed = []
        self._band = band
        within = [self._queue[index] for index in band]
        self._order = self._sequencer.order(within, self._shares)

    def placed(self, index: int) -> None:
        """Note that the candidate given last got room."""
        if self._given is None or self._band[self._given] != index:
            raise ValueError(f"{index} is not the candidate that was given last")
        self._order.placed(self._given)
        self._placed.append(index)
