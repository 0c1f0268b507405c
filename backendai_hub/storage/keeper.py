"""Keeps a host's worker running, and knows how the host is."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from backendai_hub.core.errors import HubError, UnavailableError
from backendai_hub.storage import wire
from backendai_hub.storage.connection import Connection, SilentError
from backendai_hub.storage.ops import Health, HostReport
from backendai_hub.storage.process import WorkerProcess
from backendai_hub.storage.worker import Setup

log = logging.getLogger("backendai_hub.storage")

START_SECONDS: Final = 30.0
"""How long a worker may take until its first answer, at least."""
STEADY_SECONDS: Final = 60.0
"""A worker that lived so long did not fail at its start."""
LONGEST_PAUSE: Final = 60.0
FIRST_PAUSE: Final = 0.1
MOST_UNDEAD: Final = 3
MOST_STUCK: Final = 16
BUSY: Final = 0.1
"""A silent worker that computed for this part of the time does not hang."""
DYING_SECONDS: Final = 2.0

HostState = Literal["starting", "ok", "slow", "down"]


class HostHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How a storage host is, since when, and why if it is not well."""

    state: HostState
    since: datetime
    reason: str = ""
    capabilities: frozenset[str] = frozenset()
    total_bytes: int = 0
    free_bytes: int = 0
    total_files: int = 0
    free_files: int = 0
    pid: int | None = None
    """Of its worker."""


class HangingError(UnavailableError):
    """The worker answers, but too much of what it does hangs."""


class Keeper:
    """One host's worker: started, watched, and replaced when it hangs or ends."""

    def __init__(
        self, setup: Setup, on_change: Callable[[str, HostHealth], None]
    ) -> None:
        self.name = setup.name
        self._setup = setup
        self._on_change = on_change
        self._worker: WorkerProcess | None = None
        self._undead: list[WorkerProcess] = []
        self._suspected = asyncio.Event()
        self._settled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.health = HostHealth(state="starting", since=datetime.now(UTC))

    def start(self) -> None:
        """Begin; the host may still turn out to be down."""
        self._task = asyncio.create_task(self._keep(), name=f"storage {self.name}")

    async def close(self) -> None:
        """End the worker, whatever it does: all of it can be done again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for worker in self._undead:
            worker.forget()

    async def connect(
        self, deadline: float, on_close: Callable[[], None] = lambda: None
    ) -> Connection:
        """Connect to the worker; refuse at once while the host is down.

        Who connects is to close it, which calls *on_close* once.
        """
        with suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), deadline)
        worker = self._worker
        if self.health.state in {"starting", "down"} or worker is None:
            # Why may name what is only for administrators to know, such as paths.
            raise UnavailableError(
                f"storage host {self.name} is not available since"
                f" {self.health.since:%H:%M:%S} UTC; administrators see why"
            )
        # Whenever something takes too long, the host itself is looked at.
        suspect = self._suspected.set
        return Connection(self.name, worker.connect(), deadline, suspect, on_close)

    # --- the loop ----------------------------------------------------------------

    async def _keep(self) -> None:
        failures = 0
        while True:
            began = time.monotonic()
            reason = await self._run()
            failures = 0 if time.monotonic() - began > STEADY_SECONDS else failures + 1
            log.warning("storage host %s: %s; starting another", self.name, reason)
            self._set("down", reason)
            await asyncio.sleep(
                min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures, 16))
            )
            await self._bury()

    async def _run(self) -> str:
        """Start a worker, watch it, and say why it has to be replaced."""
        try:
            worker = WorkerProcess(self._setup)
        except OSError as error:
            return f"no worker can be started: {error}"
        self._worker = worker
        try:
            return await self._watch(worker)
        finally:
            self._worker = None
            worker.kill()
            await self._see_off(worker)

    async def _see_off(self, worker: WorkerProcess) -> None:
        try:
            async with asyncio.timeout(DYING_SECONDS):
                await worker.ended.wait()
        except TimeoutError:
            self._undead.append(worker)
        except asyncio.CancelledError:
            worker.forget()
            raise

    async def _bury(self) -> None:
        """Wait while too many workers hang in the kernel: more would not help."""
        while True:
            self._undead = [one for one in self._undead if not one.ended.is_set()]
            if len(self._undead) < MOST_UNDEAD:
                return
            self._set(
                "down",
                f"{len(self._undead)} of its workers hang in the storage and cannot be"
                " ended; when one has, another is started",
            )
            waits = [asyncio.create_task(one.ended.wait()) for one in self._undead]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()

    async def _watch(self, worker: WorkerProcess) -> str:
        config = self._setup.config
        patience = max(START_SECONDS, config.hang_seconds)
        while True:
            self._suspected.clear()
            before, began = worker.effort(), time.monotonic()
            look = asyncio.create_task(self._look(worker, patience))
            try:
                await asyncio.wait([look], timeout=config.slow_seconds)
                if not look.done() and self.health.state == "ok":
                    self._set("slow", "it takes long to answer")
                await look
            except HangingError as error:
                return error.message
            except SilentError:
                worked = worker.effort().since(before)
                if worked < BUSY * (time.monotonic() - began):
                    return f"it has not answered for {patience:g} s"
                # It hangs nowhere: what it does for many leaves it no time to say so.
                self._set("slow", "it has very much to do")
            except UnavailableError as error:
                if worker.ended.is_set():
                    return f"its worker {worker.describe_end()}"
                self._set("down", error.message)
            except HubError as error:
                self._set("down", error.message)
            finally:
                look.cancel()
            patience = config.hang_seconds
            await self._pause(worker, config.check_seconds)
            if worker.ended.is_set():
                return f"its worker {worker.describe_end()}"

    async def _look(self, worker: WorkerProcess, patience: float) -> None:
        first = self.health.pid != worker.pid
        began = time.monotonic()
        sock = worker.connect()
        connection = Connection(self.name, sock, patience, tells_all=True)
        operation = Health()
        try:
            await connection.ask(operation)
            reply = await connection.hear()
        finally:
            connection.close()
        assert isinstance(reply, wire.Answer)
        report: HostReport = wire.read_answer(operation, reply)
        took = time.monotonic() - began
        if report.stuck >= MOST_STUCK:
            raise HangingError(f"{report.stuck} requests hang")
        # At first it also has to start, which says nothing about the storage.
        slow = took > self._setup.config.slow_seconds and not first
        reason = f"it took {took:.1f} s to answer" if slow else ""
        self._set("slow" if slow else "ok", reason, report)

    async def _pause(self, worker: WorkerProcess, seconds: float) -> None:
        waits = [
            asyncio.create_task(worker.ended.wait()),
            asyncio.create_task(self._suspected.wait()),
        ]
        try:
            await asyncio.wait(
                waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for wait in waits:
                wait.cancel()

    def _set(
        self, state: HostState, reason: str, report: HostReport | None = None
    ) -> None:
        before = self.health
        now = before.since if before.state == state else datetime.now(UTC)
        worker = self._worker
        self.health = msgspec.structs.replace(
            before,
            state=state,
            reason=reason,
            since=now,
            pid=worker.pid if worker is not None else None,
        )
        if report is not None:
            self.health = msgspec.structs.replace(
                self.health,
                capabilities=frozenset(report.capabilities),
                total_bytes=report.total_bytes,
                free_bytes=report.free_bytes,
                total_files=report.total_files,
                free_files=report.free_files,
            )
        self._settled.set()
        if before.state != state:
            self._on_change(self.name, self.health)
