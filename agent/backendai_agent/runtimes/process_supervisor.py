"""Start, watch and end the processes of a container.

Each container has a small shell above it that outlives the agent. It holds a lock
while it lives and writes down the exit code; it knows nothing else. Whoever wants
to know about a container needs no parenthood: a process descriptor tells the end
of any process, our child or not.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from backendai_agent.runtimes.base import RuntimeFailure
from backendai_agent.runtimes.process_limits import Limits
from backendai_agent.runtimes.process_memory import (
    ProcessMemory,
    is_locked,
    start_time,
)
from backendai_agent.runtimes.process_sandbox import (
    INFO_FD,
    OPTIONS_FD,
    SECCOMP_FD,
    STARTED_FD,
)
from backendai_agent.runtimes.process_tiers import NONE

MARK: Final = "BACKENDAI_CONTAINER"
_LOCK_FD: Final = 3
_ALIVE_FD: Final = 4
_LOG_FDS: Final = (1, 2)

# $1 is the container's process folder, $2 the files to write 0 into, joined by
# colons; the rest is the command. The subshell joins the limits, never the shell
# itself: what kills the session must not kill the one who writes down why.
_SHELL: Final = f"""\
folder=$1 joins=$2
shift 2
echo $$ > "$folder/pid"
ulimit -c 0
(
  umask 022
  IFS=:
  for file in $joins; do echo 0 > "$file" || exit 125; done
  unset IFS
  echo 300 > /proc/self/oom_score_adj
  exec "$@" {_LOCK_FD}>&- {_ALIVE_FD}>&-
)
echo $? > "$folder/exit"
"""


class StillRunningError(RuntimeFailure):
    """Some process of a container could not be ended in time."""


def launch(
    memory: ProcessMemory, command: Sequence[str], *, joins: Sequence[str]
) -> int:
    """Start *command* under a supervising shell; returns the shell's process id."""
    lock = os.open(memory.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    opened = [lock]
    try:
        take_lock(lock)
        if not memory.alive.exists():
            os.mkfifo(memory.alive, 0o600)
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        wanted: dict[int, tuple[Path, int]] = {
            0: (Path(os.devnull), os.O_RDONLY),
            **dict.fromkeys(_LOG_FDS, (memory.log, append)),
            _ALIVE_FD: (memory.alive, os.O_RDWR),
            STARTED_FD: (memory.started, append),
            INFO_FD: (memory.info, append),
        }
        for target, path in {
            SECCOMP_FD: memory.seccomp,
            OPTIONS_FD: memory.options,
        }.items():
            if path.exists():
                wanted[target] = (path, os.O_RDONLY)
        places = {_LOCK_FD: lock}
        for target, (path, flags) in wanted.items():
            places[target] = os.open(path, flags | os.O_CLOEXEC, 0o600)
            opened.append(places[target])
        arguments = ["sh", "-c", _SHELL, "sh", str(memory.path), ":".join(joins)]
        mark = {MARK: memory.container.path.name}
        return spawn([*arguments, *command], environ=mark, places=places)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def spawn(
    command: Sequence[str], *, environ: Mapping[str, str], places: Mapping[int, int]
) -> int:
    """Start *command* detached, in a session of its own; returns its process id.

    *places* says which of our descriptors it gets under which number.
    """
    inherited = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
    given = {name: os.environ[name] for name in inherited if name in os.environ}
    # Every descriptor first gets a high number, so that none is overwritten
    # before it is put in its place.
    high = {
        target: fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, 64)
        for target, source in places.items()
    }
    try:
        return os.posix_spawnp(
            command[0],
            list(command),
            {"PATH": os.defpath, "LC_ALL": "C", **given, **environ},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, source, target) for target, source in high.items()
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM],
        )
    finally:
        for descriptor in high.values():
            os.close(descriptor)


def take_lock(lock: int) -> None:
    """Lock; whoever holds it now only looks whether it is held."""
    until = time.monotonic() + 2.0
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.001)
        else:
            return


class Watcher:
    """Tells on the event loop when watched processes end."""

    def __init__(self) -> None:
        self._descriptors: dict[str, int] = {}
        self._ended: dict[str, asyncio.Event] = {}
        self.changes: asyncio.Queue[str] = asyncio.Queue()

    def watch(self, name: str, pid: int, *, lock: Path) -> None:
        """Watch *pid*, which holds *lock* as long as it lives."""
        if name in self._descriptors:
            return
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self.changes.put_nowait(name)
            return
        if not is_locked(lock):  # it was another process of that id
            _reap(descriptor)
            os.close(descriptor)
            self.changes.put_nowait(name)
            return
        self._descriptors[name] = descriptor
        self._ended[name] = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._notice, name)

    def _notice(self, name: str) -> None:
        descriptor = self._descriptors.pop(name)
        asyncio.get_running_loop().remove_reader(descriptor)
        _reap(descriptor)
        os.close(descriptor)
        self._ended.pop(name).set()
        self.changes.put_nowait(name)

    async def wait(self, name: str, seconds: float) -> bool:
        """Wait until *name* has ended; returns whether it has."""
        event = self._ended.get(name)
        if event is None:
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
        return event.is_set()

    def close(self) -> None:
        """Stop watching. What was watched goes on."""
        loop = asyncio.get_running_loop()
        for descriptor in self._descriptors.values():
            loop.remove_reader(descriptor)
            os.close(descriptor)
        self._descriptors.clear()
        self._ended.clear()


def _reap(descriptor: int) -> None:
    """Collect the process if it was our child; others have other parents."""
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, descriptor, os.WEXITED | os.WNOHANG)


def main_processes(memory: ProcessMemory, *, isolated: bool) -> list[int]:
    """List the processes to ask for an end: those directly below the first one."""
    if isolated:
        init = memory.sandbox_init()
        return _children(init.pid) if init else []
    supervisor = memory.supervisor()
    return _children(supervisor) if supervisor else []


def ask_to_end(memory: ProcessMemory, *, isolated: bool) -> bool:
    """Send SIGTERM to the main program; tells whether there was one to ask."""
    asked = False
    for pid in main_processes(memory, isolated=isolated):
        asked = _signal(pid, signal.SIGTERM) or asked
    return asked


def end_all(
    memory: ProcessMemory, name: str, limits: Limits, *, patience: float
) -> None:
    """Kill everything of *name*, however far its start had come.

    Killing bubblewrap while it is setting up leaves its first child waiting for
    ever, and a killed shell may just have forked: so this looks again until there
    is nothing left. Raises :class:`StillRunningError` after *patience* seconds.
    """
    until = time.monotonic() + patience
    record = memory.read_record()
    # In a sandbox all ends with the first process. Elsewhere a process could hide
    # from its parents and its marks, but not from its user.
    uid = record.uid if record and record.tier == NONE else None
    while True:
        supervisor, init = memory.supervisor(), memory.sandbox_init()
        limits.kill(name)
        marked = list(find_marked(name))
        if uid is not None:
            marked += find_of_user(uid)
        for pid in (supervisor, init.pid if init else None, *marked):
            if pid is not None:
                _signal(pid, signal.SIGKILL)
        gone = supervisor is None and init is None and not marked
        if gone and not memory.is_supervised() and limits.is_empty(name):
            return
        if time.monotonic() > until:
            raise StillRunningError(f"processes of {name} do not end")
        time.sleep(0.003)


def find_marked(name: str) -> Iterator[int]:
    """Yield the processes that carry the mark of container *name*.

    The shell and bubblewrap carry it, and without isolation the whole session.
    """
    mark = f"{MARK}={name}".encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            environ = Path(entry.path, "environ").read_bytes()
        except OSError:  # gone, or not ours to look at
            continue
        if mark in environ.split(b"\0") and start_time(int(entry.name)):
            yield int(entry.name)


def find_of_user(uid: int) -> Iterator[int]:
    """Yield the processes of host user *uid*, which no two containers share."""
    wanted = f"Uid:\t{uid}\t".encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            status = Path(entry.path, "status").read_bytes()
        except OSError:  # it is gone
            continue
        if wanted in status and b"State:\tZ" not in status:
            yield int(entry.name)


def tree_memory(root: int) -> int:
    """Add up the memory of *root* and all below it, shared pages shared out."""
    total, seen, waiting = 0, set[int](), [root]
    while waiting:
        pid = waiting.pop()
        if pid not in seen:
            seen.add(pid)
            total += _memory_of(pid)
            waiting += _children(pid)
    return total


def _memory_of(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        # A program can close itself to inspection, but not hide its resident size.
        with contextlib.suppress(OSError, IndexError):
            pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                children += map(int, (task / "children").read_bytes().split())
    return children


def _signal(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
