"""A worker's process, as the service sees it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec

from backendai_hub.core.errors import UnavailableError
from backendai_hub.storage.worker import Setup


class Effort(NamedTuple):
    """What a process has done up to a moment."""

    ran: float
    waited: dict[str, float]
    """For a processor, by thread; one that has ended is left out."""

    def since(self, before: Effort) -> float:
        """Return the seconds that it was busy, or would have been."""
        threads = self.waited.keys() & before.waited.keys()
        waited = sum(self.waited[one] - before.waited[one] for one in threads)
        return self.ran - before.ran + waited


class WorkerProcess:
    """One process; it is reached over a socket that only we have the other end of."""

    def __init__(self, setup: Setup) -> None:
        self._name = setup.name
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        ours.setblocking(False)  # noqa: FBT003 - the standard library's signature
        try:
            ours.send(msgspec.msgpack.encode(setup))
            # The parent whose end ends it is this thread: the one of the loop.
            self._popen = subprocess.Popen(  # noqa: S603 - our own program
                [
                    sys.executable,
                    "-m",
                    "backendai_hub.storage.worker",
                    str(os.getpid()),
                ],
                stdin=theirs.fileno(),
                cwd="/",
            )
        finally:
            theirs.close()
        self.pid = self._popen.pid
        self.ended = asyncio.Event()
        """Set when the process is gone."""
        self._watched = os.pidfd_open(self.pid)
        asyncio.get_running_loop().add_reader(self._watched, self._reap)

    def connect(self) -> socket.socket:
        """Return our end of a new connection to it."""
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:  # there are no descriptors left for the moment
            raise UnavailableError(
                f"storage host {self._name}: no connection to its worker can be made"
            ) from error
        try:
            socket.send_fds(self._control, [b"c"], [theirs.fileno()])
        except OSError as error:
            ours.close()
            raise UnavailableError(
                f"storage host {self._name}: its worker takes no more requests"
            ) from error
        finally:
            theirs.close()
        return ours

    def effort(self) -> Effort:
        """Tell how much it has computed, and how long it waited for a processor.

        A storage that hangs lets it do neither.
        """
        waited = {}
        tasks: list[Path] = []
        with contextlib.suppress(OSError):  # there may be no descriptors left
            tasks = list(Path(f"/proc/{self.pid}/task").glob("*/schedstat"))
        for path in tasks:
            with contextlib.suppress(OSError, ValueError):
                _, nanoseconds, *_ = path.read_text(encoding="ascii").split()
                waited[path.parent.name] = int(nanoseconds) / 1e9
        ran = 0.0
        with contextlib.suppress(OSError, ValueError, IndexError):
            said = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8")
            facts = said.rpartition(")")[2].split()
            ran = (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")
        return Effort(ran, waited)

    def describe_end(self) -> str:
        """Say how it ended."""
        code = self._popen.returncode
        if code is None:
            return "was ended"
        return f"ended by signal {-code}" if code < 0 else f"ended with code {code}"

    def kill(self) -> None:
        """End it. In a filesystem that hangs, it may take until that answers."""
        with contextlib.suppress(ProcessLookupError):
            self._popen.send_signal(signal.SIGKILL)
        self._control.close()

    def forget(self) -> None:
        """Let go of what is held of it, though it may not be gone."""
        if self._watched >= 0:
            asyncio.get_running_loop().remove_reader(self._watched)
            os.close(self._watched)
            self._watched = -1
        if self._popen.poll() is None:
            # It cannot be waited for, and Python would complain at its end.
            self._popen.returncode = -signal.SIGKILL
        self._control.close()

    def _reap(self) -> None:
        self._popen.poll()
        self.ended.set()
        self.forget()
