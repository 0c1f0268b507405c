"""Calls that may never come back, each on a thread that nobody has to wait for.

A driver's library can hang for as long as its device does. Threads of a pool would be
used up by that one after the other; here the next call is refused until the last one
has come back.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class StillAwayError(TimeoutError):
    """An earlier call has not come back yet."""


class Apart:
    """One place that calls go to, one after the other."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._away: Future[Any] | None = None

    async def call(self, question: Callable[[], T], seconds: float) -> T:
        """Return what *question* returns, or raises.

        Raises :class:`TimeoutError` after so many seconds; it goes on until it is
        done, and meanwhile others get :class:`StillAwayError` at once.
        """
        if self._away is not None and not self._away.done():
            raise StillAwayError(f"{self.name} has not come back yet")
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()
        self._away = answer
        thread = threading.Thread(
            target=_settle, args=(answer, question), name=self.name, daemon=True
        )
        thread.start()
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(answer)


def _settle(answer: Future[T], question: Callable[[], T]) -> None:
    try:
        answer.set_result(question())
    except BaseException as error:  # noqa: BLE001 - raised where it is awaited
        answer.set_exception(error)
