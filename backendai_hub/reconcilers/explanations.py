"""Keeps why each session waits, for those who ask and those who listen."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from itertools import chain, islice, zip_longest
from typing import Final

from backendai_hub.db.signals import Signals
from backendai_hub.operations.explain import ExplanationDesk
from backendai_hub.operations.kept_explanations import keep_explanations
from backendai_hub.operations.platform import Platform
from backendai_hub.reconcilers.base import Reconciler

AT_ONCE: Final = 20
"""How many are explained after one pass, however many wait."""
_HEADS: Final = 3
"""How many of each queue's first are among them."""


class Turns:
    """Whose turn it is to be explained.

    The heads of the queues, who has not had a turn yet, and whose turn was longest ago
    take turns: however few are explained after a pass, nobody waits for ever.
    """

    def __init__(self) -> None:
        self._had: dict[str, int] = {}
        self._count = self._passes = 0

    def choose(self, lines: Sequence[Sequence[str]]) -> Sequence[str]:
        """Pick those whose turn it is; whoever waits no more is forgotten."""
        everybody = list(chain.from_iterable(lines))
        had = {i: self._had[i] for i in everybody if i in self._had}
        self._had = had
        new = [i for i in everybody if i not in had]
        heads = [i for line in lines for i in line[:_HEADS]]
        kinds = [
            nsmallest(AT_ONCE // 4, heads, key=lambda i: had.get(i, 0)),
            new[:AT_ONCE],
            nsmallest(AT_ONCE, had, key=had.__getitem__),
        ]
        self._passes += 1
        begin = self._passes % len(kinds)
        in_turn = zip_longest(*kinds[begin:], *kinds[:begin])
        found = dict.fromkeys(i for i in chain.from_iterable(in_turn) if i is not None)
        return list(islice(found, AT_ONCE))

    def note(self, session_id: str) -> None:
        """Note that a session has had its turn."""
        self._count += 1
        self._had[session_id] = self._count


class ExplanationsReconciler(Reconciler):
    """Look at the queue as it was left; explain some of it; keep what is new.

    It looks through the same desk as whoever asks, and rests ten times as long as it
    works, so that however many wait it takes a tenth of one processor at most.
    """

    name = "explanations"
    resync_seconds = 5.0
    rest = 10.0
    longest_rest = 30.0

    def __init__(
        self, platform: Platform, signals: Signals, desk: ExplanationDesk
    ) -> None:
        super().__init__(platform, signals)
        self._desk = desk
        self._turns = Turns()

    async def reconcile(self) -> int:
        """Run one pass and return how many have something new to be told."""
        told = await self._desk.tell_owners(self.platform, self._turns.choose)
        for why in told:
            self._turns.note(why.session)
        return await keep_explanations(self.platform, told) if told else 0
