"""Heads of the audit kept outside of the database.

Whoever can write the database can take its newest rows away and set the head back;
what is left is a chain without a fault. A line in a file of its own, every few
minutes, tells that there was more.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from backendai_hub.core.audit import Head


class HeadFile:
    """JSON lines with the number, the hash and the time of each exported head."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def read(self) -> tuple[dict[int, Head], int]:
        """Return the heads by number, and how many lines cannot be read.

        A last line without an end was cut off by a crash, and does not count.
        """
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return {}, 0
        heads: dict[int, Head] = {}
        unreadable = 0
        for line in raw.split(b"\n")[:-1]:
            try:
                head = msgspec.json.decode(line, type=Head)
            except (msgspec.DecodeError, UnicodeDecodeError):
                unreadable += bool(line.strip())
                continue
            heads[head.seq] = head
        return heads, unreadable

    def append(self, head: Head) -> None:
        """Add a line, and see that it is on the disk."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        descriptor = os.open(self._path, flags, 0o600)
        try:
            line = msgspec.json.encode(head) + b"\n"
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                # A crash has cut the last line off. Its rest is made a line that holds
                # nothing, so that it is not taken for a part of this one.
                os.ftruncate(descriptor, self._end_of_lines(descriptor, size))
            os.write(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @staticmethod
    def _end_of_lines(descriptor: int, size: int) -> int:
        start = max(0, size - 4096)
        tail = os.pread(descriptor, size - start, start)
        return start + tail.rfind(b"\n") + 1
