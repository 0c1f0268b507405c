"""What control groups tell of a container, by files of version 1 or 2.

Where a container's group lies is read from its first process, and never guessed: the
engine may have put it anywhere. A group is the container's only if its path carries the
container's *mark*; otherwise the processes are added up one by one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backendai_agent.measuring.processes import (
    add_cpu_seconds,
    add_disk,
    add_memory,
    read_network,
    read_tree,
)
from backendai_agent.measuring.readings import Reading

_V2: Final = ""
_NANO: Final = 1_000_000_000
_MICRO: Final = 1_000_000


@dataclass(frozen=True)
class Root:
    """A container's first process, and the word by which its control group is known."""

    pid: int
    mark: str


@dataclass(frozen=True)
class _Mount:
    """Where a hierarchy of control groups is seen, from which of its groups on."""

    place: str
    top: str

    def find(self, path: str) -> str | None:
        """Return where the group *path* lies; None if it is not below this mount."""
        if self.top == "/":
            return self.place + path
        if path == self.top or path.startswith(f"{self.top}/"):
            return self.place + path.removeprefix(self.top)
        return None


class GroupReader:
    """Reads containers of this node; *root* is where its ``/proc`` lies."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._proc = root / "proc"
        self._mounts = _read_mounts(root)

    def read(self, root: Root) -> Reading | None:
        """Return what a container uses; None if its first process is gone."""
        try:
            groups = self._find_groups(root)
        except OSError:
            return None
        return self._read_groups(root, groups) or self._add_up(root.pid)

    def read_own(self, root: Root) -> Reading | None:
        """Return what a container uses that has groups of its own, or else None.

        A process without them is somebody else's: of another machine, or a later one.
        """
        try:
            groups = self._find_groups(root)
        except OSError:
            return None
        return self._read_groups(root, groups)

    def _read_groups(self, root: Root, groups: Mapping[str, str]) -> Reading | None:
        if "memory" in groups and "cpuacct" in groups:
            return self._read_v1(root, groups)
        if _V2 in groups and _exists(f"{groups[_V2]}/memory.current"):
            return self._read_v2(root, groups[_V2])
        return None

    def _find_groups(self, root: Root) -> Mapping[str, str]:
        """Return the folders of the container's own groups, by controller."""
        found: dict[str, str] = {}
        text = _read(f"{self._proc}/{root.pid}/cgroup")
        for line in text.splitlines():
            _, controllers, path = line.split(":", 2)
            if root.mark not in path:
                continue
            for controller in controllers.split(","):
                mount = self._mounts.get(controller)
                place = None if mount is None else mount.find(path)
                if place is not None:
                    found[controller] = place
        return found

    def _read_v1(self, root: Root, groups: Mapping[str, str]) -> Reading:
        memory = groups["memory"]
        nanoseconds = _number(f"{groups['cpuacct']}/cpuacct.usage")
        used = _number(f"{memory}/memory.usage_in_bytes")
        idle = _keyed(f"{memory}/memory.stat").get("total_inactive_file", 0)
        # What the block controller of version 1 counts leaves out nearly all writes.
        read, written = add_disk(self._proc, _members(memory))
        received, sent = read_network(self._proc, root.pid)
        return Reading(
            cpu_seconds=None if nanoseconds is None else nanoseconds / _NANO,
            memory=None if used is None else max(0, used - idle),
            read_bytes=read,
            written_bytes=written,
            received_bytes=received,
            sent_bytes=sent,
        )

    def _read_v2(self, root: Root, group: str) -> Reading:
        microseconds = _keyed(f"{group}/cpu.stat").get("usage_usec")
        used = _number(f"{group}/memory.current")
        idle = _keyed(f"{group}/memory.stat").get("inactive_file", 0)
        read, written = self._read_disk(group)
        received, sent = read_network(self._proc, root.pid)
        return Reading(
            cpu_seconds=None if microseconds is None else microseconds / _MICRO,
            memory=None if used is None else max(0, used - idle),
            read_bytes=read,
            written_bytes=written,
            received_bytes=received,
            sent_bytes=sent,
        )

    def _read_disk(self, group: str) -> tuple[int | None, int | None]:
        """Return what the group's disks count, or else what its processes do."""
        try:
            lines = _read(f"{group}/io.stat").splitlines()
        except OSError:  # the controller is not on for this group
            return add_disk(self._proc, _members(group))
        read = written = 0
        for line in lines:
            told = dict(word.split("=") for word in line.split()[1:] if "=" in word)
            read += int(told.get("rbytes", 0))
            written += int(told.get("wbytes", 0))
        return read, written

    def _add_up(self, pid: int) -> Reading:
        pids = read_tree(self._proc, pid)
        read, written = add_disk(self._proc, pids)
        received, sent = read_network(self._proc, pid)
        return Reading(
            cpu_seconds=add_cpu_seconds(self._proc, pids),
            memory=add_memory(self._proc, pids),
            read_bytes=read,
            written_bytes=written,
            received_bytes=received,
            sent_bytes=sent,
        )


def _read_mounts(root: Path) -> dict[str, _Mount]:
    """Find where each controller's groups are seen; version 2 has no name."""
    found: dict[str, _Mount] = {}
    with contextlib.suppress(OSError):
        for line in _read(f"{root}/proc/self/mountinfo").splitlines():
            before, _, after = line.partition(" - ")
            kind, _, options = after.split(" ", 2)
            top, place = before.split()[3:5]
            mount = _Mount(str(root / place.lstrip("/")), top)
            if kind == "cgroup2":
                found.setdefault(_V2, mount)
            elif kind == "cgroup":
                for option in options.split()[-1].split(","):
                    found.setdefault(option, mount)
    return found


def _members(group: str) -> list[int]:
    with contextlib.suppress(OSError, ValueError):
        return [pid for pid in map(int, _read(f"{group}/cgroup.procs").split()) if pid]
    return []


def _keyed(path: str) -> dict[str, int]:
    with contextlib.suppress(OSError, ValueError):
        pairs = (line.split() for line in _read(path).splitlines())
        return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}
    return {}


def _number(path: str) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(_read(path))
    return None


def _exists(path: str) -> bool:
    return Path(path).is_file()


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:  # noqa: PTH123 - a thousand each time
        return file.read()
