"""Carries out what :mod:`reconcile` decides, one thing at a time per container.

The loop is level-triggered: events, finished actions and new assignments only wake
it; what is done follows from a full look at what is wanted, seen and remembered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from backendai_agent.actions import FAILURES, Actions, Node, read_failure
from backendai_agent.folders import container_folder
from backendai_agent.images import Images
from backendai_agent.jobs import release, write_lease
from backendai_agent.reconcile import (
    Action,
    End,
    Probe,
    Showing,
    Start,
    Stop,
    Wait,
    Work,
    describe,
    diff,
    find_unknown,
)
from backendai_agent.records import Records
from backendai_agent.runtimes.base import Observed
from backendai_hub.api.agents import (
    AssignmentSet,
    ContainerReport,
    ContainerSpec,
    ContainerState,
    DesiredState,
)
from backendai_hub.core.ids import is_id


@dataclass(frozen=True)
class Account:
    """What the agent has to say of its containers, as of *generation*."""

    generation: int
    containers: list[ContainerReport]
    unknown: list[str]


@dataclass(frozen=True)
class _Task:
    work: Work
    task: asyncio.Task[None]


class Driver:
    """Keeps this node's containers as the hub service wants them.

    *on_change* is called whenever :meth:`account` says something new.
    """

    def __init__(self, node: Node, *, on_change: Callable[[], None]) -> None:
        self._node = node
        self._on_change = on_change
        self._records = Records(node.data_dir)
        self.images = Images(node.runtime)
        self._actions = Actions(
            node, records=self._records, images=self.images, show=self._show
        )
        self._desired: AssignmentSet | None = None
        self._accounted: AssignmentSet | None = None
        self._observed: list[Observed] = []
        self._tasks: dict[str, _Task] = {}
        self._showing: dict[str, Showing] = {}
        self._waiting: set[str] = set()
        self._released: set[str] = set()
        self._woken = asyncio.Event()
        self._told: Account | None = None
        self._failures = 0

    def assign(self, desired: AssignmentSet) -> None:
        """Take up what the hub service wants."""
        for spec in desired.containers:
            if not is_id(spec.id):
                self._node.log.error("refusing container id %r", spec.id[:80])
        self._desired = AssignmentSet(
            agent_id=desired.agent_id,
            generation=desired.generation,
            epoch=desired.epoch,
            containers=[spec for spec in desired.containers if is_id(spec.id)],
        )
        self.wake()

    def wake(self) -> None:
        """Look again soon."""
        self._woken.set()

    def account(self) -> Account | None:
        """Say where every container stands; None before the first full look."""
        if self._accounted is None:
            return None
        specs = self._accounted.containers
        past, showing = self._records.past, self._showing
        return Account(
            self._accounted.generation,
            [describe(s, past.get(s.id), showing.get(s.id)) for s in specs],
            find_unknown(specs, self._observed),
        )

    def list_running(self) -> list[ContainerSpec]:
        """List the containers wanted here that were seen running last."""
        running = {seen.id for seen in self._observed if seen.running}
        specs = self._accounted.containers if self._accounted else []
        return [spec for spec in specs if spec.id in running]

    def list_images(self) -> set[str]:
        """List the images that containers wanted here run in or are about to."""
        specs = self._desired.containers if self._desired else []
        running = DesiredState.RUNNING
        return {s.image for s in specs if s.image and s.desired is running}

    async def renew_leases(self) -> None:
        """Let what may run elsewhere run on here, for the service has heard of us."""
        for spec in self._desired.containers if self._desired else []:
            if not spec.lease_seconds or spec.desired is not DesiredState.RUNNING:
                continue
            until = self._node.leases.renew(spec.id, spec.lease_seconds)
            folder = container_folder(self._node.data_dir, spec.id)
            if until is None:
                continue
            try:
                await asyncio.to_thread(write_lease, folder, until)
            except FileNotFoundError:
                continue  # it has not begun, and is told when it does
            except OSError:
                self._node.log.exception(
                    "cannot renew the lease of container %s", spec.id
                )

    async def run(self) -> None:
        """Reconcile until cancelled. Containers keep running afterwards."""
        for container_id in await self._records.load():
            self._node.log.error("the record of container %s is damaged", container_id)
        listening = asyncio.create_task(self._listen())
        try:
            while True:
                self._woken.clear()
                pause = await self._try_pass()
                self._tell_changes()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._woken.wait()
        finally:
            tasks = [listening, *(entry.task for entry in self._tasks.values())]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self) -> None:
        """Wake up whenever the runtime says that something happened."""
        while True:
            try:
                async for _ in self._node.runtime.changes():
                    self.wake()
            except FAILURES as error:
                self._node.log.warning(
                    "lost the runtime's events: %s", read_failure(error)
                )
            await asyncio.sleep(1.0)
            self.wake()

    async def _try_pass(self) -> float:
        """Look once; returns how many seconds later to look again at the latest."""
        resync = self._node.timing.resync
        try:
            await self._pass()
        except FAILURES as error:
            self._failures += 1
            self._node.log.warning(
                "cannot look at this node's containers: %s", read_failure(error)
            )
            return float(min(resync, 2**self._failures))
        self._failures = 0
        return resync

    async def _pass(self) -> None:
        desired = self._desired
        before = set(self._tasks)
        async with asyncio.timeout(self._node.timing.call):
            observed = await self._node.runtime.list()
            await self.images.refresh_after(self._node.timing.resync)
        await self._records.learn_beginnings()
        await self._open_relays(observed)
        await self._release()
        self._observed = observed
        if desired is None:
            return
        # What was finished while we looked may look otherwise than we saw it.
        busy = dict.fromkeys(before, Work.SETTLING)
        busy |= {c: entry.work for c, entry in self._tasks.items()}
        past = self._records.past
        actions = diff(
            desired.containers, observed, past=past, busy=busy, whole=self._node.whole()
        )
        self._show_waiting([action for action in actions if isinstance(action, Wait)])
        for action in actions:
            self._begin(action)
        self._records.forget_removed({spec.id for spec in desired.containers})
        self._accounted = desired

    async def _open_relays(self, observed: list[Observed]) -> None:
        """Serve every running container its way to the platform, hub or no hub."""
        for seen in observed:
            if seen.running and is_id(seen.id):
                folder = container_folder(self._node.data_dir, seen.id)
                try:
                    if folder.run.is_dir():
                        await self._node.relays.open(seen.id, folder)
                except OSError:  # one spoilt folder must not hold up the others
                    self._node.log.exception("container %s has no relay", seen.id)

    async def _release(self) -> None:
        """Let the commands begin whose session's containers are all there."""
        specs = self._desired.containers if self._desired else []
        waiting = {
            spec.id
            for spec in specs
            if spec.desired is DesiredState.RUNNING
            and spec.command
            and spec.cluster.size > 1
            and not spec.cluster.waits
        }
        self._released &= waiting
        for container_id in sorted(waiting - self._released):
            folder = container_folder(self._node.data_dir, container_id)
            try:
                await asyncio.to_thread(release, folder)
            except FileNotFoundError:
                continue  # it is not there yet, or not any more
            except OSError:
                self._node.log.exception("cannot release container %s", container_id)
                continue
            self._released.add(container_id)
            self.wake()

    def _show_waiting(self, actions: list[Wait]) -> None:
        """Show what waits, and no longer what does not."""
        for container_id in self._waiting:
            self._showing.pop(container_id, None)
        self._waiting = {action.spec.id for action in actions}
        for action in actions:
            showing = Showing(ContainerState.PREPARING, reason=action.reason)
            self._showing[action.spec.id] = showing

    def _begin(self, action: Action) -> None:
        match action:
            case Start(spec):
                self._spawn(spec.id, Work.START, partial(self._actions.start, spec))
            case Probe(spec):
                self._spawn(spec.id, Work.PROBE, partial(self._actions.probe, spec))
            case Stop(spec, keep):
                stop = partial(self._actions.stop, spec, keep=keep)
                self._spawn(spec.id, Work.STOP, stop)
            case End(spec):
                self._spawn(spec.id, Work.STOP, partial(self._actions.end, action))

    def _spawn(
        self,
        container_id: str,
        work: Work,
        action: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        before = self._tasks.get(container_id)
        task = asyncio.create_task(_run_after(before.task if before else None, action))
        entry = self._tasks[container_id] = _Task(work, task)

        def finished(task: asyncio.Task[None]) -> None:
            if self._tasks.get(container_id) is not entry:
                return  # something more important took its place
            del self._tasks[container_id]
            self._showing.pop(container_id, None)
            error = None if task.cancelled() else task.exception()
            if error is not None:  # tried again at the next resync
                self._node.log.error(
                    "cannot %s container %s", work, container_id, exc_info=error
                )
                return
            self._tell_changes()
            self.wake()

        task.add_done_callback(finished)

    def _show(self, container_id: str, showing: Showing) -> None:
        self._showing[container_id] = showing
        self._tell_changes()

    def _tell_changes(self) -> None:
        account = self.account()
        if account != self._told:
            self._told = account
            self._on_change()


async def _run_after(
    before: asyncio.Task[None] | None,
    action: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    """Run *action* once *before* has been told to give up, and has."""
    if before is not None:
        before.cancel()
        await asyncio.wait({before})
    await action()
