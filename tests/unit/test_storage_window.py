"""Large files on their way to the disk: no failure is lost, however late it comes."""

from __future__ import annotations

import errno
import os

import pytest

from backendai_hub.storage.durable import Window

STEP = 8 << 20


class Late(Window):
    """A disk that says only after the last byte has come that it cannot write."""

    def _sync(self, offset: int, length: int, flags: int) -> None:
        del offset, length, flags
        with self._changed:
            self._changed.wait_for(lambda: self._is_over)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _awaits(self, end: int) -> bool:
        with self._changed:  # it begins with this step also if all is over by then
            return self._changed.wait_for(lambda: self._end >= end)


def test_what_fails_after_the_last_byte_has_come_is_told_at_the_end():
    with pytest.raises(OSError, match="Input/output error"), Late(-1, 0) as window:
        window.reach(STEP)


def test_what_went_wrong_before_is_told_and_not_what_the_disk_says_then():
    window = Late(-1, 0)
    window.reach(STEP)
    with pytest.raises(ZeroDivisionError), window:
        _ = STEP // 0
