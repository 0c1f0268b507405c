"""Tells those who wait why, a few at a time, and keeps count of how often it was tried.

Who has just come is told first; after them, who has waited longest for being told
something else than before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from backendai_hub.core.attempts import Result
from backendai_hub.core.sessions import WAITING_WORDS, SessionStatus
from backendai_hub.db.attempts import Tried
from backendai_hub.operations.kept_reasons import count_attempts, explain
from backendai_hub.operations.placement import AT_ONCE, in_batches
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import QueueView

_FIRST_WORDS = WAITING_WORDS[SessionStatus.PENDING]

_MOST_TOLD = 25
"""How many are told in one transaction: who comes meanwhile waits for its end."""

_LEAST_TRIED = 1000
"""So many counts may be of sessions that have gone before they are looked for."""


class Teller:
    """What has been decided about who waits, as far as it is not stored yet."""

    def __init__(
        self,
        platform: Platform,
        view: QueueView,
        clock: Callable[[], float],
        *,
        seconds: float,
    ) -> None:
        self._platform, self._view = platform, view
        self._clock, self._seconds = clock, seconds
        self._counted_at = clock()
        """When it was written down last how often those were tried without news; that
        is done every so many seconds."""
        self._first: dict[str, str] = {}
        """What those are to be told who have not been told anything."""
        self._others: dict[str, str] = {}
        """What others are to be told, who has waited longest for it first."""
        self._tried: Counter[str] = Counter()
        """How often each has been tried since that was written down."""

    def note(self, waiting: Mapping[str, str]) -> None:
        """Note why these wait."""
        known = self._view.records
        self._tried.update(waiting.keys())
        for session_id, reason in waiting.items():
            record = known.get(session_id)
            if record is None or record.reason == reason:
                self._first.pop(session_id, None)
                self._others.pop(session_id, None)
            elif record.reason == _FIRST_WORDS:
                self._first[session_id] = reason
            else:
                self._first.pop(session_id, None)
                self._others[session_id] = reason
        if len(self._tried) > _LEAST_TRIED + 2 * len(known):
            self._forget_gone()

    async def tell(self, is_called: Callable[[], bool]) -> None:
        """Store the reasons that are news, until somebody calls.

        What is left then is stored after the next passes, in turn.
        """
        waiting = [*self._first.items(), *self._others.items()]
        for some in in_batches(waiting, _MOST_TOLD):
            for session_id, _ in some:
                self._first.pop(session_id, None)
                self._others.pop(session_id, None)
            reasons = {i: reason for i, reason in some if self._is_news(i, reason)}
            if not reasons:
                continue
            counts = {i: self._tried.pop(i, 1) for i in reasons}
            await explain(self._platform, reasons, counts)
            if is_called():
                return
        if not waiting:
            await self._count()

    def _is_news(self, session_id: str, reason: str) -> bool:
        record = self._view.records.get(session_id)
        return (
            record is not None
            and record.status is SessionStatus.PENDING
            and record.reason != reason
        )

    def take_tried(self, ids: Iterable[str]) -> dict[str, Tried]:
        """Return attempts that are not written down, of sessions that still wait."""
        known = self._view.records
        return {
            i: Tried(i, Result.WAITING, known[i].reason, count)
            for i in ids
            if i in known and (count := self._tried.pop(i, 0))
        }

    async def _count(self) -> None:
        """Write down how often those were tried who have been tried most."""
        now = self._clock()
        if not self._tried or now - self._counted_at < self._seconds:
            return
        self._forget_gone()
        self._counted_at = now
        most = [session_id for session_id, _ in self._tried.most_common(AT_ONCE)]
        await count_attempts(self._platform, list(self.take_tried(most).values()))

    def _forget_gone(self) -> None:
        for session_id in self._tried.keys() - self._view.records.keys():
            del self._tried[session_id]
