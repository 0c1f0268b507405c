"""What the runtime knows of a container after a restart: files in its folder.

``<container>/process/`` holds, next to the session's log:

``record.json``   labels and choices of the start; no secrets
``lock``          held (flock) by the supervising shell for as long as it lives
``pid``           that shell's process id; believed only while the lock is held
``info``          bubblewrap's word on the sandbox: the id of its first process
``init``          that process's id and start time, written once it runs
``started``       not empty once the sandbox stands and the main program runs
``exit``          the main program's exit code, written by the shell at the end
``reason``        why we killed it, if we did
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from backendai_agent.folders import ContainerFolder, write_durably

_KEPT_LOG: Final = 2 << 20


class StartRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided when a container was started. Never holds secrets."""

    id: str
    session_id: str
    session_name: str = ""
    owner: str = ""
    image: str = ""
    cpu: int = 0
    memory: int = 0
    uid: int | None = None
    """The host user the session runs as, if it is not the agent's own."""
    gid: int | None = None
    """The host group it runs as, where that has another number than the user."""
    gids: tuple[int, ...] = ()
    tier: str = ""
    network: str = ""

    @property
    def group(self) -> int | None:
        """The host group the session runs as, if it is not the agent's own."""
        return self.uid if self.gid is None else self.gid


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that cannot be mistaken: its id and when it started."""

    pid: int
    started: int


class ProcessMemory:
    """The runtime's files of one container."""

    def __init__(self, container: ContainerFolder) -> None:
        self.container = container
        self.path = container.path / "process"
        self.record_file = self.path / "record.json"
        self.lock = self.path / "lock"
        self.pid = self.path / "pid"
        self.info = self.path / "info"
        self.init = self.path / "init"
        self.started = self.path / "started"
        self.exit = self.path / "exit"
        self.reason = self.path / "reason"
        self.log = self.path / "log"
        self.old_log = self.path / "log.old"
        self.etc = self.path / "etc"
        self.alive = self.path / "alive"
        self.network_lock = self.path / "network.lock"
        self.seccomp = self.path / "seccomp"
        self.options = self.path / "options"

    def read_record(self) -> StartRecord | None:
        """Return what was decided at the start; None if there was no start."""
        try:
            return msgspec.json.decode(self.record_file.read_bytes(), type=StartRecord)
        except (OSError, msgspec.MsgspecError):
            return None

    def write_record(self, record: StartRecord) -> None:
        """Write down the intent to start, before anything of it is done."""
        write_durably(self.record_file, msgspec.json.encode(record))

    def forget_run(self) -> None:
        """Remove the traces of an earlier run, so that none is taken for the next."""
        for path in (
            self.pid,
            self.info,
            self.init,
            self.started,
            self.exit,
            self.reason,
        ):
            path.unlink(missing_ok=True)

    def is_supervised(self) -> bool:
        """Tell whether the supervising shell lives."""
        return is_locked(self.lock)

    def supervisor(self) -> int | None:
        """Return the supervising shell's process id, if it lives and has told it."""
        if not self.is_supervised():
            return None
        text = _read(self.pid)
        return int(text) if text.isdigit() else None

    def has_started(self) -> bool:
        """Tell whether the main program was reached."""
        return _size(self.started) > 0

    def has_ended(self) -> bool:
        """Tell whether the shell wrote down the end."""
        return _size(self.exit) > 0

    def exit_code(self) -> int | None:
        """Return the main program's exit code, if it is known."""
        text = _read(self.exit)
        return int(text) if text.isdigit() else None

    def sandbox_init(self) -> ProcessIdentity | None:
        """Return the sandbox's first process as long as it lives.

        While the shell lives and has seen no end, bubblewrap's own word is true:
        it has not yet taken leave of that child. Later only an identity does.
        """
        written = _read(self.init).split()
        if len(written) == 2 and all(word.isdigit() for word in written):
            known = ProcessIdentity(int(written[0]), int(written[1]))
            return known if start_time(known.pid) == known.started else None
        if not self.is_supervised() or self.has_ended():
            return None
        with contextlib.suppress(ValueError, KeyError, TypeError):
            pid = int(json.loads(_read(self.info))["child-pid"])
            started = start_time(pid)
            if started is not None:
                return ProcessIdentity(pid, started)
        return None

    def learn_init(self) -> ProcessIdentity | None:
        """Write down who the sandbox's first process is, while that is certain."""
        identity = self.sandbox_init()
        if identity is not None and not self.init.exists():
            write_durably(self.init, f"{identity.pid} {identity.started}".encode())
        return identity

    def tail_log(self, lines: int) -> str:
        """Return the last *lines* lines the container printed."""
        if lines <= 0:
            return ""
        content = _tail(self.log)
        if content.count(b"\n") < lines:
            content = _tail(self.old_log) + content
        kept = content.splitlines(keepends=True)[-lines:]
        return b"".join(kept).decode("utf-8", "replace")

    def printed_at(self) -> float:
        """Return when the container printed something last; 0 if it never has."""
        try:
            return self.log.stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def bound_log(self, limit: int) -> bool:
        """Keep the log below *limit* bytes; the last part stays readable.

        Writers append, so that after the cut they go on at the new end.
        """
        if _size(self.log) <= limit:
            return False
        with self.log.open("r+b") as log:
            log.seek(-min(_KEPT_LOG, limit), os.SEEK_END)
            self.old_log.write_bytes(log.read(_KEPT_LOG))
            log.truncate(0)
        return True


def is_locked(path: Path) -> bool:
    """Tell whether some process holds the lock at *path*."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def start_time(pid: int) -> int | None:
    """Return when process *pid* started, in ticks since boot; None if it is gone.

    A process that has ended and only waits to be collected counts as gone.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in {b"Z", b"X"} else int(fields[19])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return ""
        raise


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _KEPT_LOG))
            return file.read()
    except FileNotFoundError:
        return b""
