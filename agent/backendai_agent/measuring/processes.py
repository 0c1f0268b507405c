"""What the kernel tells of processes: of one, and of one with all below it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TIMES: Final = slice(11, 15)
"""Of the fields behind a process's name: its own times, and those of who has ended."""
_RESIDENT: Final = 1
_LOOPBACK: Final = b"lo"


def read_tree(proc: Path, root: int) -> list[int]:
    """List *root* and all processes below it; nothing if it is gone."""
    found: list[int] = []
    waiting = [root] if (proc / str(root)).is_dir() else []
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += _read_children(proc, pid)
    return found


def _read_children(proc: Path, pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in (proc / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                listed = _read(proc, pid, f"task/{task.name}/children")
                children += map(int, listed.split())
    return children


def add_cpu_seconds(proc: Path, pids: Iterable[int]) -> float | None:
    """Add up what processes have computed, with those of theirs that have ended."""
    ticks = None
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            stat = _read(proc, pid, "stat")
            fields = stat[stat.rindex(b")") + 2 :].split()
            ticks = (ticks or 0) + sum(map(int, fields[_TIMES]))
    return None if ticks is None else ticks / _TICKS


def add_memory(proc: Path, pids: Iterable[int]) -> int | None:
    """Add up what is resident of processes; what they share counts for each."""
    pages = None
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            resident = int(_read(proc, pid, "statm").split()[_RESIDENT])
            pages = (pages or 0) + resident
    return None if pages is None else pages * _PAGE


def add_disk(proc: Path, pids: Iterable[int]) -> tuple[int | None, int | None]:
    """Add up what processes have had read from and written to disks.

    What was found in memory is not read, and what is not written yet counts already.
    A process that has ended counts with its parent, if that is among them.
    """
    read = written = None
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            told = dict(
                line.split(b": ") for line in _read(proc, pid, "io").splitlines()
            )
            read = (read or 0) + int(told.get(b"read_bytes", 0))
            written = (written or 0) + int(told.get(b"write_bytes", 0))
    return read, written


def read_network(proc: Path, pid: int) -> tuple[int | None, int | None]:
    """Return what came in and went out on a process's network, if it has its own."""
    try:
        own = (proc / "self/ns/net").stat().st_ino
        if (proc / str(pid) / "ns/net").stat().st_ino == own:
            return None, None  # it is on the node's, and nobody can tell it apart
        return count_network(_read(proc, pid, "net/dev"))
    except (OSError, ValueError, IndexError):
        return None, None


def count_network(
    table: bytes, only: frozenset[bytes] | None = None
) -> tuple[int | None, int | None]:
    """Add up the interfaces of a table, but for the loopback; or *only* some."""
    received = sent = None
    for line in table.splitlines()[2:]:
        name, _, counters = line.partition(b":")
        name = name.strip()
        if name == _LOOPBACK or (only is not None and name not in only):
            continue
        fields = counters.split()
        received = (received or 0) + int(fields[0])
        sent = (sent or 0) + int(fields[8])
    return received, sent


def _read(proc: Path, pid: int, name: str) -> bytes:
    path = f"{proc}/{pid}/{name}"
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a thousand each time
        return file.read()
