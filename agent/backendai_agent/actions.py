"""What can be done to one container: start, probe, stop, and write down its end.

Whoever calls sees to it that only one of these runs at a time for a container.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from backendai_agent.activation import (
    Surroundings,
    build_activation,
    write_activation,
)
from backendai_agent.apps import Apps
from backendai_agent.crashpoints import crashpoint
from backendai_agent.folders import ContainerFolder, container_folder
from backendai_agent.images import Images
from backendai_agent.jobs import OUT_OF_MEMORY, deliver_runner, read_outcome
from backendai_agent.leases import Leases
from backendai_agent.logs import Log
from backendai_agent.mounts import Mounts
from backendai_agent.outbox import LINES, Outbox, pack
from backendai_agent.preparation import find_omission, read_preparation
from backendai_agent.reconcile import End, Phase, Record, Showing, list_devices
from backendai_agent.records import Records
from backendai_agent.relay import Relays
from backendai_agent.runtimes.base import ContainerPatch, Runtime, RuntimeFailure
from backendai_hub.api.agents import ContainerSpec, ContainerState, DeviceShare
from backendai_hub.core.dotfiles import BOOTSTRAP_SECONDS

T = TypeVar("T")
Attach = Callable[[Sequence[DeviceShare]], Awaitable[ContainerPatch]]

FAILURES = (RuntimeFailure, TimeoutError, OSError)
"""What a runtime, or the node under it, may answer with."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How long things may take, in seconds."""

    resync: float = 10.0
    call: float = 60.0
    fetch: float = 1790.0
    ready: float = 110.0
    probe_every: float = 0.015
    stop_margin: float = 60.0
    retry_longest: float = 10.0


@dataclass(frozen=True, kw_only=True)
class Node:
    """What the actions work with: the parts of one agent."""

    runtime: Runtime
    data_dir: Path
    relays: Relays
    apps: Apps
    attach: Attach
    whole: Callable[[], Collection[str]] = frozenset
    base: str = "/"
    leases: Leases = field(default_factory=Leases)
    mounts: Mounts = field(default_factory=Mounts)
    starts: int = 4
    timing: Timing = field(default_factory=Timing)
    log: Log = field(default_factory=lambda: logging.getLogger(__name__))


def read_failure(error: BaseException) -> str:
    """Put *error* in words for the session's owner."""
    if isinstance(error, TimeoutError):
        return "the node did not get it done in time"
    return str(error) or type(error).__name__


class Actions:
    """Carries out single actions, and shows how far they have come."""

    def __init__(
        self,
        node: Node,
        *,
        records: Records,
        images: Images,
        show: Callable[[str, Showing], None],
    ) -> None:
        self._node = node
        self._runtime = node.runtime
        self._records = records
        self._images = images
        self._show = show
        self._outbox = Outbox(node.data_dir)
        self._starting = asyncio.Semaphore(node.starts)
        self._stop_failures: dict[str, int] = {}

    def _folder(self, container_id: str) -> ContainerFolder:
        return container_folder(self._node.data_dir, container_id)

    async def start(self, spec: ContainerSpec) -> None:
        """Start the container, or write down for its owner why it could not be."""
        crashpoint("agent.ordered")
        try:
            await self._make(spec)
        except FAILURES as error:
            await self._fail(spec, f"could not start: {read_failure(error)}")
        except Exception:
            self._node.log.exception("starting container %s failed", spec.id)
            await self._fail(spec, "could not start: the node's agent made an error")

    async def _make(self, spec: ContainerSpec) -> None:
        self._show(spec.id, Showing(ContainerState.PREPARING))
        folder = self._folder(spec.id)
        await asyncio.to_thread(folder.make)
        crashpoint("agent.prepared")
        await self._fetch(spec)
        patch = await self._node.attach(spec.shares)
        if spec.mounts:
            words = "mounting its folders"
            self._show(spec.id, Showing(ContainerState.PREPARING, reason=words))
        # Before its turn comes: a storage host that hangs holds up nobody else.
        async with self._node.mounts.shown(spec, self._runtime) as folders:
            patch = replace(patch, folders=folders)
            async with self._starting:
                await self._create(spec, folder, patch)

    async def _create(
        self, spec: ContainerSpec, folder: ContainerFolder, patch: ContainerPatch
    ) -> None:
        self._show(spec.id, Showing(ContainerState.CREATING))
        await self._activate(spec, folder, patch)
        record = Record(
            session_id=spec.session_id,
            phase=Phase.STARTING,
            devices=list_devices(spec),
            job=spec.is_job,
        )
        await self._records.save(spec.id, record)
        crashpoint("agent.recorded")
        limit = self._node.timing.call
        await _see_through(self._runtime.start(spec, patch), limit)
        crashpoint("agent.started")
        await self._remember(spec, Phase.STARTED)

    async def _fetch(self, spec: ContainerSpec) -> None:
        def progress(amount: float | None) -> None:
            rounded = None if amount is None else round(amount, 2)
            self._show(spec.id, Showing(ContainerState.PULLING, rounded))
            crashpoint("agent.pulling")

        async with asyncio.timeout(self._node.timing.fetch):
            await self._images.ensure(spec.image, progress, spec.credential)

    async def _activate(
        self, spec: ContainerSpec, folder: ContainerFolder, patch: ContainerPatch
    ) -> None:
        await self._node.relays.open(spec.id, folder)
        inside = getattr(self._runtime, "run_inside", None)
        around = Surroundings(
            base=self._node.base,
            run=str(inside(spec.id)) if inside else Surroundings.run,
            # On the node's own network a port could be taken by somebody else, who
            # would then be sent what is meant for this session.
            listen=None
            if spec.host_network
            else getattr(self._runtime, "listen", None),
        )
        until = 0.0
        if spec.lease_seconds:
            until = await self._node.leases.begin(spec.id, spec.lease_seconds)
        if spec.is_job:
            await asyncio.to_thread(deliver_runner, folder)
        activation = build_activation(spec, patch, around, lease_until=until)
        await asyncio.to_thread(write_activation, folder, activation)
        crashpoint("agent.activated")

    async def probe(self, spec: ContainerSpec) -> None:
        """Wait until JupyterLab answers, or the command begins: then it is RUNNING."""
        limit, words = self._node.timing.ready, ""
        awaited = "its command" if spec.is_job else "JupyterLab"
        if spec.bootstrap.strip():
            limit += BOOTSTRAP_SECONDS
            words = f"running the bootstrap script; {awaited} starts when it has ended"
        self._show(spec.id, Showing(ContainerState.CREATING, reason=words))
        crashpoint("agent.probing")
        try:
            async with asyncio.timeout(limit):
                await (self._begun(spec) if spec.is_job else self._answering(spec))
        except TimeoutError:
            verb = "begin" if spec.is_job else "answer"
            await self._fail(spec, f"{awaited} did not {verb} within {limit:.0f} s")
            return
        folder = self._folder(spec.id)
        omission = await asyncio.to_thread(find_omission, spec, folder)
        if omission:
            await self._fail(spec, omission)
            return
        crashpoint("agent.ready")
        await self._remember(spec, Phase.READY)

    async def _answering(self, spec: ContainerSpec) -> None:
        while not await self._node.apps.answers(spec.id, f"{spec.prefix}api"):  # noqa: ASYNC110 - another process is asked, no event here can tell
            await asyncio.sleep(self._node.timing.probe_every)

    async def _begun(self, spec: ContainerSpec) -> None:
        folder = self._folder(spec.id)
        while await asyncio.to_thread(read_outcome, folder) is None:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(self._node.timing.probe_every)

    async def stop(self, spec: ContainerSpec, *, keep: bool) -> None:
        """End the container and remove it; *keep* what its owner may still read.

        What a command has printed is kept for the service either way, to its last
        words: after it was told to end, and before it is removed. Waits a while after
        a failure, so that the next attempt comes later.
        """
        if spec.id not in self._records.past:
            self._show(spec.id, Showing(ContainerState.RUNNING, reason="stopping"))
        grace = spec.grace_seconds
        limit = grace + self._node.timing.stop_margin
        past = self._records.past.get(spec.id)
        try:
            if past is not None and past.job and past.phase is not Phase.ENDED:
                await _see_through(self._runtime.wind_down(spec.id, grace), limit)
                await self._keep_log(spec)
                grace = 0
            await _see_through(self._runtime.stop(spec.id, grace), limit)
            crashpoint("agent.removed")
            await self._close_lines(spec)
            if not keep:
                await asyncio.to_thread(self._folder(spec.id).remove)
                self._records.bury(spec.id, spec.session_id)
                self._node.leases.forget(spec.id)
        except FAILURES as error:
            await self._wait_to_retry(spec, read_failure(error))
        except Exception as error:
            reason = f"the node's agent made an error ({type(error).__name__})"
            self._node.log.debug("%s", reason, exc_info=True)
            await self._wait_to_retry(spec, reason)
        else:
            self._stop_failures.pop(spec.id, None)

    async def _wait_to_retry(self, spec: ContainerSpec, reason: str) -> None:
        failures = self._stop_failures.get(spec.id, 0) + 1
        self._stop_failures[spec.id] = failures
        self._node.log.error("cannot stop container %s: %s", spec.id, reason)
        past = self._records.past.get(spec.id)
        ready = past is None or past.phase is Phase.READY
        state = ContainerState.RUNNING if ready else ContainerState.CREATING
        self._show(spec.id, Showing(state, reason=f"stopping fails: {reason}"))
        longest = self._node.timing.retry_longest
        await asyncio.sleep(min(2.0 ** (failures - 1), longest))

    async def end(self, end: End) -> None:
        """Write down that the container ended by itself, and how."""
        spec = end.spec
        if spec.is_job:
            end = await self._judge(end)
            await self._keep_log(spec)
            crashpoint("agent.kept")
        reason = await self._explain(end)
        self._node.log.info("container %s ended: %s", spec.id, reason)
        record = Record(
            session_id=spec.session_id,
            phase=Phase.ENDED,
            began=True,
            state=end.state,
            reason=reason,
            exit_code=end.exit_code,
            devices=list_devices(spec),
            job=spec.is_job,
        )
        folder = self._folder(spec.id)
        await asyncio.to_thread(folder.make)
        await self._records.save(spec.id, record)
        await asyncio.to_thread(folder.activation.unlink, missing_ok=True)
        await self._close_lines(spec)

    async def _judge(self, end: End) -> End:
        """Say what an end says of the command: its exit code, if it came to that.

        Where the runner could not say how it ended, something ended it from outside,
        and what the command would have done is not known.
        """
        if end.state is not ContainerState.EXITED or end.reason == OUT_OF_MEMORY:
            return end
        told = await asyncio.to_thread(read_outcome, self._folder(end.spec.id))
        if told is not None and told.state == "ended":
            usual = f"its command ended with code {told.exit_code}"
            return replace(end, exit_code=told.exit_code, reason=told.reason or usual)
        if end.exit_code is None:
            return end
        reason = f"it was ended from outside ({end.reason})"
        return replace(end, exit_code=None, reason=reason)

    async def _keep_log(self, spec: ContainerSpec) -> None:
        """Keep what a container has printed until the service has it.

        One that was removed before we were interrupted prints nothing any more, and
        what was kept of it then stays.
        """
        try:
            async with asyncio.timeout(self._node.timing.call):
                text = await self._runtime.logs(spec.id, LINES)
        except FAILURES as error:
            text = f"(what it printed cannot be read: {read_failure(error)})\n"
        if text:
            await asyncio.to_thread(self._outbox.put, pack(spec.id, text))

    async def _explain(self, end: End) -> str:
        """Say why it ended; of its preparation, the session knows that best."""
        past = self._records.past.get(end.spec.id)
        if past is None or past.phase is Phase.READY:
            return end.reason
        told = await asyncio.to_thread(read_preparation, self._folder(end.spec.id))
        return (told.failure if told else "") or end.reason

    async def _fail(self, spec: ContainerSpec, reason: str) -> None:
        await self.end(End(spec, ContainerState.EXITED, reason))

    async def _close_lines(self, spec: ContainerSpec) -> None:
        await self._node.apps.drop(spec.id)
        await self._node.relays.drop(spec.id)

    async def _remember(self, spec: ContainerSpec, phase: Phase) -> None:
        record = Record(
            session_id=spec.session_id,
            phase=phase,
            began=True,
            devices=list_devices(spec),
            job=spec.is_job,
        )
        folder = self._folder(spec.id)
        if not folder.path.is_dir():  # adopted: its folder was lost
            await asyncio.to_thread(folder.make)
        await self._records.save(spec.id, record)


async def _see_through(call: Coroutine[Any, Any, T], limit: float) -> T:
    """Await a runtime's *call* to its end, even if we are told to give up.

    A call half done goes on in the runtime whether we wait or not; stopping a
    container while it is still being made would leave it behind.
    """
    task = asyncio.ensure_future(call)
    try:
        async with asyncio.timeout(limit):
            return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=limit)
        raise
    finally:
        if not task.done():
            task.cancel()
        elif not task.cancelled():
            task.exception()  # heard, if only by nobody who still waits
