"""What keeps a session within its processors, memory and number of processes.

From strict to weak: control groups we may write ourselves (version 1 or 2), scopes
of the user's systemd, and a watchdog that looks every few seconds. All speak the
same small protocol, so the runtime does not care which one it got.
"""

# ruff: noqa: D102 - the base class says what each method does

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backendai_agent.runtimes.base import RuntimeFailure

CPU_PERIOD: Final = 100_000
_LEAST_QUOTA: Final = 1_000
_PATIENCE: Final = 10.0


@dataclass(frozen=True)
class Bounds:
    """What one session may use: thousandths of a core, bytes, processes."""

    cpu: int = 0
    memory: int = 0
    pids: int = 0


class LimitsFailure(RuntimeFailure):
    """Limits could not be set or lifted."""


class Limits:
    """Sets, watches and lifts the limits of sessions, each known by its name.

    What a kind cannot do it leaves as it is here: nothing to prepare, nothing to
    kill or lift, nothing seen.
    """

    kind = "none"
    notes: tuple[str, ...] = ()

    def create(self, name: str, bounds: Bounds) -> None:
        """Prepare limits for *name*; doing it twice is fine."""

    def joins(self, name: str) -> list[str]:
        """List the files a process writes 0 into to come under the limits."""
        return []

    def wrap(self, name: str, bounds: Bounds) -> list[str]:
        """Return the words to put before the command, outside the sandbox."""
        return []

    def inner(self, bounds: Bounds) -> list[str]:
        """Return the words to put before the command inside the sandbox."""
        return []

    def kill(self, name: str) -> None:
        """Kill all that runs under *name*, as far as these limits can tell."""

    def is_empty(self, name: str) -> bool:
        """Tell whether nothing runs under *name*, as far as these limits can tell."""
        return True

    def remove(self, name: str) -> None:
        """Lift the limits of *name*; absent is success."""

    def out_of_memory(self, name: str) -> bool:
        """Tell whether something under *name* was killed for want of memory."""
        return False

    def names(self) -> set[str]:
        """List all names that have limits now."""
        return set()


# -- control groups, version 1 -------------------------------------------------------

_V1_NEEDED: Final = ("cpu", "cpuacct", "memory", "pids", "freezer")


class CgroupV1(Limits):
    """One folder for each controller, under ``<prefix>/<name>``."""

    kind = "cgroup v1"

    def __init__(self, mounts: Mapping[str, Path], prefix: str) -> None:
        self._mounts = {name: mounts[name] for name in _V1_NEEDED}
        self._prefix = prefix

    def _folder(self, controller: str, name: str) -> Path:
        return self._mounts[controller] / self._prefix / name

    def create(self, name: str, bounds: Bounds) -> None:
        for controller in _V1_NEEDED:
            _make_group(self._folder(controller, name))
        if bounds.cpu:
            cpu = self._folder("cpu", name)
            quota = max(_LEAST_QUOTA, bounds.cpu * CPU_PERIOD // 1000)
            _write(cpu / "cpu.cfs_period_us", CPU_PERIOD)
            _write(cpu / "cpu.cfs_quota_us", quota)
        if bounds.memory:
            self._limit_memory(self._folder("memory", name), bounds.memory)
        if bounds.pids:
            _write(self._folder("pids", name) / "pids.max", bounds.pids)

    @staticmethod
    def _limit_memory(memory: Path, limit: int) -> None:
        swap = memory / "memory.memsw.limit_in_bytes"
        if swap.exists():  # it may never be below the other: lift it first
            _write(swap, -1)
        _write(memory / "memory.limit_in_bytes", limit)
        if swap.exists():
            _write(swap, limit)

    def joins(self, name: str) -> list[str]:
        folders = dict.fromkeys(self._folder(c, name).resolve() for c in _V1_NEEDED)
        return [str(folder / "cgroup.procs") for folder in folders]

    def wrap(self, name: str, bounds: Bounds) -> list[str]:
        return []

    def inner(self, bounds: Bounds) -> list[str]:
        return []

    def kill(self, name: str) -> None:
        """Kill all at once: what is frozen cannot fork away from the signal."""
        state = self._folder("freezer", name) / "freezer.state"
        with contextlib.suppress(OSError):
            _write(state, "FROZEN")
        for controller in ("freezer", "pids", "memory"):
            _kill_listed(self._folder(controller, name) / "cgroup.procs")
        with contextlib.suppress(OSError):
            _write(state, "THAWED")

    def is_empty(self, name: str) -> bool:
        return not any(
            _listed(self._folder(controller, name) / "cgroup.procs")
            for controller in _V1_NEEDED
        )

    def remove(self, name: str) -> None:
        for controller in _V1_NEEDED:
            _remove_group(self._folder(controller, name), self._mounts[controller])

    def out_of_memory(self, name: str) -> bool:
        memory = self._folder("memory", name)
        return _keyed(memory / "memory.oom_control").get("oom_kill", 0) > 0

    def names(self) -> set[str]:
        return _folder_names(self._mounts["pids"] / self._prefix)


# -- control groups, version 2 -------------------------------------------------------

_V2_NEEDED: Final = ("cpu", "memory", "pids")


class CgroupV2(Limits):
    """One folder for each session below *base*, which is ours to write."""

    kind = "cgroup v2"

    def __init__(self, base: Path, prefix: str) -> None:
        self._base = base
        self._prefix = prefix

    def _folder(self, name: str) -> Path:
        return self._base / self._prefix / name

    def create(self, name: str, bounds: Bounds) -> None:
        folder = self._folder(name)
        _make_group(folder)
        for parent in (self._base, *_between(self._base, folder)):
            _write(parent / "cgroup.subtree_control", "+cpu +memory +pids")
        if bounds.cpu:
            quota = max(_LEAST_QUOTA, bounds.cpu * CPU_PERIOD // 1000)
            _write(folder / "cpu.max", f"{quota} {CPU_PERIOD}")
        if bounds.memory:
            _write(folder / "memory.max", bounds.memory)
            if (folder / "memory.swap.max").exists():
                _write(folder / "memory.swap.max", 0)
        if bounds.pids:
            _write(folder / "pids.max", bounds.pids)

    def joins(self, name: str) -> list[str]:
        return [str(self._folder(name) / "cgroup.procs")]

    def wrap(self, name: str, bounds: Bounds) -> list[str]:
        return []

    def inner(self, bounds: Bounds) -> list[str]:
        return []

    def kill(self, name: str) -> None:
        folder = self._folder(name)
        switch = folder / "cgroup.kill"
        if switch.exists():
            with contextlib.suppress(FileNotFoundError):
                _write(switch, 1)
                return
        with contextlib.suppress(OSError):
            _write(folder / "cgroup.freeze", 1)
        _kill_listed(folder / "cgroup.procs")
        with contextlib.suppress(OSError):
            _write(folder / "cgroup.freeze", 0)

    def is_empty(self, name: str) -> bool:
        return not _listed(self._folder(name) / "cgroup.procs")

    def remove(self, name: str) -> None:
        _remove_group(self._folder(name), self._base)

    def out_of_memory(self, name: str) -> bool:
        events = _keyed(self._folder(name) / "memory.events")
        return events.get("oom_kill", 0) > 0

    def names(self) -> set[str]:
        return _folder_names(self._base / self._prefix)


# -- scopes of the user's systemd ----------------------------------------------------


class SystemdUser(Limits):
    """Transient scopes of ``systemd --user``, which has had limits delegated."""

    kind = "systemd-user"

    def __init__(self, *, run: str = "systemd-run", control: str = "systemctl") -> None:
        self._run = run
        self._control = control

    @staticmethod
    def _unit(name: str) -> str:
        return f"backendai-{name}.scope"

    def create(self, name: str, bounds: Bounds) -> None:
        self._ask("reset-failed", self._unit(name))

    def wrap(self, name: str, bounds: Bounds) -> list[str]:
        words = [self._run, "--user", "--scope", "--quiet"]
        words.append(f"--unit={self._unit(name)}")
        properties = {"CPUQuota": f"{max(1, bounds.cpu // 10)}%" if bounds.cpu else ""}
        properties["MemoryMax"] = str(bounds.memory or "")
        properties["MemorySwapMax"] = "0" if bounds.memory else ""
        properties["TasksMax"] = str(bounds.pids or "")
        words += [
            f"--property={key}={value}" for key, value in properties.items() if value
        ]
        return [*words, "--"]

    def kill(self, name: str) -> None:
        self._ask("kill", "--signal=SIGKILL", self._unit(name))

    def is_empty(self, name: str) -> bool:
        state = self._ask("show", "--property=ActiveState", "--value", self._unit(name))
        return state in {"", "inactive", "failed"}

    def remove(self, name: str) -> None:
        self._ask("stop", self._unit(name))
        self._ask("reset-failed", self._unit(name))

    def out_of_memory(self, name: str) -> bool:
        result = self._ask("show", "--property=Result", "--value", self._unit(name))
        return result == "oom-kill"

    def _ask(self, *words: str) -> str:
        command = [self._control, "--user", *words]
        try:
            answer = subprocess.run(  # noqa: S603 - fixed words and a unit's name
                command, capture_output=True, text=True, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LimitsFailure(f"{' '.join(command)}: {error}") from error
        return answer.stdout.strip()


# -- nothing but watching ------------------------------------------------------------


class Watchdog(Limits):
    """No kernel help: processors by affinity, memory by looking, see ``watch``."""

    kind = "watchdog"
    notes = (
        "limits are watched every few seconds, not enforced by the kernel:"
        " a session can exceed its memory for a moment",
    )

    def __init__(self, *, taskset: str | None, prlimit: str | None) -> None:
        self._taskset = taskset
        self._prlimit = prlimit
        self._next = itertools.count()

    def joins(self, name: str) -> list[str]:
        return []

    def wrap(self, name: str, bounds: Bounds) -> list[str]:
        if not (self._taskset and bounds.cpu):
            return []
        cores = sorted(os.sched_getaffinity(0))
        wanted = max(1, -(-bounds.cpu // 1000))
        if wanted >= len(cores):
            return []
        chosen = [cores[next(self._next) % len(cores)] for _ in range(wanted)]
        return [self._taskset, "--cpu-list", ",".join(map(str, chosen))]

    def inner(self, bounds: Bounds) -> list[str]:
        if not (self._prlimit and bounds.pids):
            return []
        return [self._prlimit, f"--nproc={bounds.pids}:{bounds.pids}", "--"]


# -- the files -----------------------------------------------------------------------


def _write(path: Path, value: object) -> None:
    try:
        path.write_text(f"{value}", encoding="ascii")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LimitsFailure(f"cannot write {value} to {path}: {error}") from error


def _listed(procs: Path) -> list[int]:
    try:
        return [int(line) for line in procs.read_text().split()]
    except OSError:  # removed meanwhile
        return []


def _kill_listed(procs: Path) -> None:
    for pid in _listed(procs):
        if pid > 0:  # 0 is a process of a namespace that we cannot see
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _keyed(path: Path) -> dict[str, int]:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    pairs = (line.split() for line in lines)
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def _folder_names(folder: Path) -> set[str]:
    try:
        return {entry.name for entry in folder.iterdir() if entry.is_dir()}
    except OSError:
        return set()


def _between(base: Path, folder: Path) -> Iterator[Path]:
    """Yield the folders below *base* and above *folder*, topmost first."""
    parents: Sequence[Path] = folder.parents
    return reversed([p for p in parents if base in p.parents])


def _make_group(folder: Path) -> None:
    """Make *folder*, although others take away parents that they leave empty."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, FileNotFoundError):  # it is gone again meanwhile
            if time.monotonic() > until:
                raise
        else:
            return


def _remove_group(folder: Path, top: Path) -> None:
    """Remove *folder*, and those above it that it leaves empty, up to *top*."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            folder.rmdir()
            break
        except FileNotFoundError:
            break
        except OSError as error:
            # What ends is waited for; what is not ours stays not ours.
            waits = error.errno in {errno.EBUSY, errno.ENOTEMPTY}
            if waits:
                _kill_listed(folder / "cgroup.procs")
            if not waits or time.monotonic() > until:
                raise LimitsFailure(f"cannot remove {folder}: {error}") from error
            time.sleep(0.005)
    for parent in folder.parents:
        if parent == top or top not in parent.parents:
            return
        try:
            parent.rmdir()
        except OSError:
            return
