"""Whose turn it is: one order for each group's queue, priority bands first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from backendai_hub.core.quotas import ScopeKind
from backendai_hub.scheduling.snapshot import PendingSession


class ShareState(msgspec.Struct, frozen=True, kw_only=True):
    """What owners use, have used and may use in one group."""

    capacity: Mapping[str, int] = {}
    live: Mapping[tuple[ScopeKind, str], Mapping[str, int]] = {}
    history: Mapping[tuple[ScopeKind, str], float] = {}
    weights: Mapping[tuple[ScopeKind, str], float] = {}


class Order(Protocol):
    """One pass over one group's queue."""

    def next(self) -> int | None:
        """Return the index of the next candidate; each comes at most once."""
        ...

    def placed(self, index: int) -> None:
        """Note that it got room: its owners' shares grow, their keys move at once."""
        ...


class Sequencer(Protocol):
    """A plugin of the entry point group ``backendai_hub.sequencers``."""

    name: str

    def order(self, queue: Sequence[PendingSession], shares: ShareState) -> Order:
        """Return the order of one band of a queue."""
        ...


class _Fixed:
    """An order that nothing changes."""

    def __init__(self, indices: Sequence[int]) -> None:
        self._indices = iter(indices)

    def next(self) -> int | None:
        return next(self._indices, None)

    def placed(self, index: int) -> None:
        """Change nothing: the order was fixed from the start."""


class Fifo:
    """First come, first served."""

    name = "fifo"

    def order(self, queue: Sequence[PendingSession], shares: ShareState) -> Order:
        """Return the queue's own order."""
        return _Fixed(range(len(queue)))


class Bands:
    """An order in which a higher priority comes first, whatever the sequencer says."""

    def __init__(
        self,
        queue: Sequence[PendingSession],
        sequencer: Sequencer,
        shares: ShareState,
    ) -> None:
        members: dict[int, list[int]] = {}
        for index, session in enumerate(queue):
            members.setdefault(session.priority, []).append(index)
        self._bands = [members[priority] for priority in sorted(members)]
        self._queue, self._sequencer, self._shares = queue, sequencer, shares
        self._band: list[int] = []
        self._order: Order = _Fixed(())
        self._places: dict[int, int] = {}

    def next(self) -> int | None:
        """Return the next candidate of this band, or of the one below."""
        while (place := self._order.next()) is None:
            if not self._bands:
                return None
            self._band = self._bands.pop()
            self._order = self._sequencer.order(
                [self._queue[i] for i in self._band], self._shares
            )
        index = self._band[place]
        self._places[index] = place
        return index

    def placed(self, index: int) -> None:
        """Tell the band's order, which the index is of."""
        self._order.placed(self._places[index])
