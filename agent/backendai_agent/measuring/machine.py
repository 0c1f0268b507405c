"""What is used of the whole node, by whomever."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from backendai_agent.measuring.processes import count_network
from backendai_agent.measuring.readings import Reading

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_SECTOR: Final = 512
_BUSY: Final = (1, 2, 3, 6, 7, 8)
"""Of a line of processor times: all but idle, waiting, and what guests are counted."""


def read_machine(root: Path = Path("/")) -> Reading:
    """Read the node's processors, memory, disks and networks."""
    used, total = _read_memory(root)
    read, written = _read_disks(root)
    received, sent = _read_networks(root)
    seconds, cores = _read_processors(root)
    return Reading(
        cpu_seconds=seconds,
        cpu_limit=cores,
        memory=used,
        memory_limit=total,
        read_bytes=read,
        written_bytes=written,
        received_bytes=received,
        sent_bytes=sent,
    )


def _read_processors(root: Path) -> tuple[float | None, float | None]:
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = (root / "proc/stat").read_text("ascii").splitlines()
        words = lines[0].split()
        ticks = sum(int(words[field]) for field in _BUSY)
        cores = sum(1 for line in lines[1:] if line.startswith("cpu"))
        return ticks / _TICKS, float(cores)
    return None, None


def _read_memory(root: Path) -> tuple[int | None, int | None]:
    with contextlib.suppress(OSError, ValueError, KeyError):
        lines = (root / "proc/meminfo").read_text("ascii").splitlines()
        told = {line.partition(":")[0]: line.split()[1] for line in lines}
        total = int(told["MemTotal"]) * 1024
        return total - int(told["MemAvailable"]) * 1024, total
    return None, None


def _read_disks(root: Path) -> tuple[int | None, int | None]:
    """Add up the disks that are hardware; what lies on them counts once."""
    read = written = None
    with contextlib.suppress(OSError):
        for disk in (root / "sys/block").iterdir():
            if not (disk / "device").exists():
                continue
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = (disk / "stat").read_text("ascii").split()
                read = (read or 0) + int(words[2]) * _SECTOR
                written = (written or 0) + int(words[6]) * _SECTOR
    return read, written


def _read_networks(root: Path) -> tuple[int | None, int | None]:
    """Add up the interfaces that are hardware, or that lead out of the node."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        net = root / "sys/class/net"
        outside = {n.name.encode() for n in net.iterdir() if (n / "device").exists()}
        for line in (root / "proc/net/route").read_bytes().splitlines()[1:]:
            name, destination, *_ = line.split()
            if destination == b"00000000":
                outside.add(name)
        table = (root / "proc/net/dev").read_bytes()
        return count_network(table, frozenset(outside))
    return None, None
