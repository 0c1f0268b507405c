"""What the page of a pending server shows, kept once for all tabs that show it."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from time import monotonic
from typing import Any, Final, NamedTuple

import msgspec

from backendai_hub.api.explanations import Why
from backendai_hub.core.sessions import (
    TERMINAL,
    WAITING_WORDS,
    Session,
    SessionStatus,
)

_S = SessionStatus
_REMEMBERED: Final = 100


class Phase(msgspec.Struct, frozen=True):
    """A stretch of the progress bar; ``pace`` seconds fill about two thirds of it."""

    begin: float
    end: float
    pace: float


PHASES: Final[Mapping[SessionStatus | None, Phase]] = {
    None: Phase(0, 5, 5),
    _S.PENDING: Phase(5, 35, 120),
    _S.RESERVED: Phase(35, 40, 30),
    _S.SCHEDULED: Phase(40, 45, 5),
    _S.PREPARING: Phase(45, 55, 5),
    _S.PULLING: Phase(55, 75, 60),
    _S.CREATING: Phase(75, 95, 4),
    _S.RUNNING: Phase(95, 99, 2),
}
_ENDING: Final = Phase(95, 99, 10)


def estimate(status: SessionStatus | None, seconds: float) -> int:
    """Return a percentage that always grows and never reaches the phase's end."""
    phase = PHASES.get(status, _ENDING)
    done = 1 - math.exp(-max(seconds, 0.0) / phase.pace)
    return int(phase.begin + (phase.end - phase.begin) * done)


class SpawnProgress:
    """The story of one start: told by the spawner, read by any number of tabs."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._steps: deque[dict[str, Any]] = deque(maxlen=_REMEMBERED)
        self._told = 0
        self._status: SessionStatus | None = None
        self._began = self._since = clock()
        self._changed = asyncio.Event()
        self._finished = False

    def show(self, session: Session, why: Why | None = None) -> None:
        """Tell where *session* is, if that differs from what was told last.

        *why* tells more of what it waits for.
        """
        if session.status is not self._status:
            self._status = session.status
            self._since = self._clock()
        message, headline, reason = describe(session)
        self.tell(message, headline=headline, reason=reason, why=tell_why(why))
        if session.status is _S.RUNNING or session.status in TERMINAL:
            self.finish()

    def tell(
        self,
        message: str,
        *,
        headline: str = "",
        reason: str = "",
        why: Mapping[str, Any] | None = None,
    ) -> None:
        """Tell *message*, unless it is what was told last.

        A page with room for both shows *headline* and *reason* instead, which say the
        same in two parts.
        """
        last = self._steps[-1] if self._steps else {}
        if last.get("message") == message and last.get("why") == why:
            return
        self._told += 1
        step = {
            **self._now(),
            "number": self._told,
            "message": message,
            "headline": headline or message,
            "reason": reason,
            "why": why,
        }
        self._steps.append(step)
        self._wake()

    def finish(self) -> None:
        """End the story; readers see what was told and stop."""
        self._finished = True
        self._wake()

    async def steps(self, tick: float = 5.0) -> AsyncIterator[dict[str, Any]]:
        """Yield what was and is told, and every *tick* seconds how far the bar is."""
        seen = 0
        while True:
            changed = self._changed
            for step in tuple(self._steps):
                if step["number"] > seen:
                    seen = step["number"]
                    yield step
            if self._finished:
                return
            if changed is not self._changed:
                continue
            try:
                await asyncio.wait_for(changed.wait(), tick)
            except TimeoutError:
                yield self._now()

    def _now(self) -> dict[str, Any]:
        now = self._clock()
        return {
            "progress": estimate(self._status, now - self._since),
            "phase": str(self._status or "REQUESTED"),
            "elapsed": round(now - self._began, 1),
        }

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def tell_why(why: Why | None) -> dict[str, Any] | None:
    """Say what a page shows of an explanation; None if there is nothing to it."""
    if why is None or why.position is None:
        return None
    return {
        "position": why.position,
        "waiting": why.waiting,
        "reasons": why.reasons,
        "change": why.changes[0].text if why.changes else "",
        "starts": why.starts_at or "",
        "earliest": why.at_the_earliest,
        "hangs": why.hangs_on,
    }


class Description(NamedTuple):
    """What a session is doing: in one sentence, and in two parts."""

    message: str
    headline: str
    reason: str


def describe(session: Session) -> Description:
    """Say what *session* is doing, and why it waits, no words twice."""
    if session.status is _S.RUNNING:
        return Description("The session is running", "The session is running", "")
    words = WAITING_WORDS.get(session.status, f"the session is {session.status}")
    headline = _capitalize(words)
    reason = session.reason.strip()
    # Reasons often say the state's own words already.
    said = reason.lower().find(words.lower())
    if said < 0:
        message = f"{headline}: {reason}" if reason else headline
        return Description(message, headline, reason)
    more = reason[len(words) :].lstrip(" .:;,") if said == 0 else reason
    return Description(_capitalize(reason), headline, more)


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
