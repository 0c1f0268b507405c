"""One process of the platform: started or adopted, watched, and started again.

A process is alive while it holds its lock. The supervisor may die and come back:
it then finds the lock held and *adopts* the process instead of starting a second
one, provided it was started in the same way as it would be started now.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from backendai_hub.client.lockfile import holder
from backendai_hub.launcher.events import Event, EventKind, Tell
from backendai_hub.launcher.files import write_private
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.logs import open_log, read_tail

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
CALM = 10.0
"""A process that ran this many seconds starts again without a long pause."""


@dataclass(frozen=True)
class Command:
    """How a process is started. ``environ`` is added to the launcher's own."""

    name: str
    argv: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)
    version: str = ""

    @property
    def fingerprint(self) -> str:
        """A digest that changes whenever the process would be started differently."""
        parts = [self.version, *self.argv]
        parts += [f"{name}={self.environ[name]}" for name in sorted(self.environ)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is noted of a process when it starts, for the next supervisor."""

    pid: int
    fingerprint: str


def next_pause(pause: float, lifetime: float) -> float:
    """Return how long to wait after a crash, given the previous wait."""
    if lifetime >= CALM or pause == 0:
        return FIRST_PAUSE
    return min(pause * 2, LONGEST_PAUSE)


def describe_exit(code: int | None) -> str:
    """Say how a process ended."""
    if code is None:
        return "ended"
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


class Child:
    """Keeps one process running until told to stop."""

    def __init__(self, command: Command, *, folder: DataFolder, tell: Tell) -> None:
        self.command = command
        self.crashes = 0
        self.pid: int | None = None
        self.last_words = ""
        self._folder = folder
        self._tell = tell
        self._stopping = asyncio.Event()
        self._adopted = False
        self._popen: subprocess.Popen[bytes] | None = None
        self._pidfd: int | None = None

    @property
    def name(self) -> str:
        """The process's name, such as ``router``."""
        return self.command.name

    async def keep(self) -> None:
        """Start the process, or adopt it, and start it again whenever it ends."""
        pause = 0.0
        await self._adopt_or_replace()
        while not self._stopping.is_set():
            if self._pidfd is None:
                self._spawn()
            begun = time.monotonic()
            code = await self._wait()
            if self._stopping.is_set():
                return
            self.crashes += 1
            self.last_words = read_tail(self._folder.log(self.name))
            self._say(EventKind.CRASHED, describe_exit(code), detail=self.last_words)
            pause = next_pause(pause, time.monotonic() - begun)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def stop(self, grace: float, *, release_adopted: bool = False) -> None:
        """Ask the process to end, and end it if it has not within *grace* seconds.

        With *release_adopted*, a process that ran before us is left running.
        """
        self._stopping.set()
        if self._pidfd is None or (release_adopted and self._adopted):
            return
        self._signal(signal.SIGTERM)
        ended = await self._wait_at_most(grace)
        if not ended:
            self._signal(signal.SIGKILL)
            await self._wait_at_most(5.0)
        how = "stopped" if ended else f"did not stop within {grace:g} s and was killed"
        self._say(EventKind.STOPPED, how)

    def _say(self, kind: EventKind, text: str, *, detail: str = "") -> None:
        self._tell(Event(kind=kind, process=self.name, text=text, detail=detail))

    async def _adopt_or_replace(self) -> None:
        pid = holder(self._folder.lock(self.name))
        if pid is None:
            return
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        self.pid = pid
        if _read_record(self._folder.record(self.name)) == Record(
            pid=pid, fingerprint=self.command.fingerprint
        ):
            self._adopted = True
            self._say(EventKind.ADOPTED, f"runs already as process {pid}; adopted")
            return
        self._say(
            EventKind.NOTE, f"runs with other settings as process {pid}; restarting it"
        )
        self._signal(signal.SIGTERM)
        if not await self._wait_at_most(10.0):
            self._signal(signal.SIGKILL)
            await self._wait_at_most(5.0)
        self._forget()

    def _spawn(self) -> None:
        environ = {
            k: v for k, v in os.environ.items() if not k.startswith("JUPYTERHUB")
        }
        environ |= {"PYTHONUNBUFFERED": "1", **self.command.environ}
        with open_log(self._folder.log(self.name)) as log:
            self._popen = subprocess.Popen(  # noqa: S603 - our own programs
                self.command.argv,
                env=environ,
                cwd=self._folder.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o077,
            )
        self.pid = self._popen.pid
        self._pidfd = os.pidfd_open(self.pid)
        record = Record(pid=self.pid, fingerprint=self.command.fingerprint)
        write_private(self._folder.record(self.name), msgspec.json.encode(record))
        self._say(EventKind.STARTED, f"started as process {self.pid}")

    async def _wait(self) -> int | None:
        """Wait until the process has ended; its exit code, if it was our child."""
        if self._pidfd is None:
            return None
        await _wait_readable(self._pidfd)
        code = self._popen.wait() if self._popen is not None else None
        self._forget()
        return code

    async def _wait_at_most(self, seconds: float) -> bool:
        if self._pidfd is None:
            return True
        # A descriptor of its own: keep() may be watching, and closing, the other.
        descriptor = os.dup(self._pidfd)
        try:
            await asyncio.wait_for(_wait_readable(descriptor), seconds)
        except TimeoutError:
            return False
        else:
            return True
        finally:
            os.close(descriptor)

    def _signal(self, number: signal.Signals) -> None:
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def _forget(self) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd)
        self._pidfd = None
        self._popen = None
        self._adopted = False
        self.pid = None


async def _wait_readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)


def _read_record(path: Path) -> Record | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
