"""Asking code of other packages in a thread of its own, and not for ever.

Whoever asks waits for a bounded time, all answers together. Code that has not answered
by then is given up: its thread is told to end, and nobody waits for it.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from weakref import finalize

_Work = Callable[[], Any]
_Answer = tuple[Any, Exception | None]


class TookTooLongError(TimeoutError):
    """No answer has come in time, and none is waited for any more."""


class Apart:
    """A thread that is asked one thing after the other, for so many seconds in all."""

    def __init__(self, seconds: float) -> None:
        self._seconds = self._left = seconds
        self._asked: SimpleQueue[_Work | None] = SimpleQueue()
        self._answers: SimpleQueue[_Answer] = SimpleQueue()
        self.thread: Thread | None = None
        self._end = finalize(self, self._asked.put, None)

    @property
    def took(self) -> float:
        """How many seconds all answers together have taken."""
        return self._seconds - self._left

    def ask(self, work: _Work) -> Any:
        """Return what *work* answers, or raise what it raises."""
        if self._left <= 0:
            self._end()
            raise TookTooLongError(f"no more answers in {self._seconds:g} s")
        if self.thread is None:
            self.thread = Thread(
                target=_serve, args=(self._asked, self._answers), daemon=True
            )
            self.thread.start()
        began = time.monotonic()
        self._asked.put(work)
        try:
            answer, error = self._answers.get(timeout=self._left)
        except Empty:
            self._left = 0.0
            self._give_up(self.thread)
            raise TookTooLongError(f"no answer in {self._seconds:g} s") from None
        self._left -= time.monotonic() - began
        if error is None:
            return answer
        try:
            raise error
        finally:
            del error  # it knows this frame, which would keep it and the thread

    def close(self) -> None:
        """Ask nothing any more."""
        self._end()

    def _give_up(self, thread: Thread) -> None:
        """End a thread as far as that is possible: one that computes, not one that
        waits for something outside."""
        if thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            )
        self._end()


def _serve(asked: SimpleQueue[_Work | None], answers: SimpleQueue[_Answer]) -> None:
    """Answer until nobody asks any more; nothing is held on to in between."""
    with suppress(SystemExit):
        while (work := asked.get()) is not None:
            try:
                answers.put((work(), None))
            except Exception as error:  # noqa: BLE001 - whatever others have written
                answers.put((None, error))
            del work
