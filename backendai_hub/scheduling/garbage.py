"""Decisions are not held up by a search for garbage, which they do not make.

Looking through a million objects for some that hold each other alive takes longer than
hundreds of decisions, and happens whenever enough new ones have been made. What a pass
makes goes by itself, so the search waits until the pass is over.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class _Pause:
    """Counts who wants the search to wait: passes are made in several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waited_for = 0
        self._was_on = False

    def begin(self) -> None:
        with self._lock:
            if not self._waited_for:
                self._was_on = gc.isenabled()
                gc.disable()
            self._waited_for += 1

    def end(self) -> None:
        with self._lock:
            self._waited_for -= 1
            if not self._waited_for and self._was_on:
                gc.enable()


_PAUSE = _Pause()


@contextmanager
def uncollected() -> Iterator[None]:
    """Let no search for garbage begin before this is left; what is off stays off."""
    _PAUSE.begin()
    try:
        yield
    finally:
        _PAUSE.end()
