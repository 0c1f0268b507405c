"""Shows containers the folders that they were given, and keeps nothing of it.

The mounts of a container lie in a small file system of their own, mounted at
``<data_dir>/mounts/<id>``, for as long as its start takes: whatever runs containers
binds them into the container, which keeps what it has bound. So none is there while
containers run, none has to be found again after a restart, and taking the one mount
away takes all of them. They are apart from the container's folder, which is removed
with all in it. And an engine that does not see our mounts finds no folder at all at
these paths, rather than an empty one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from backendai_agent import mounts_kernel as kernel
from backendai_agent.crashpoints import crashpoint
from backendai_agent.logs import Log
from backendai_agent.mounts_plan import Site, Step, plan_steps
from backendai_agent.mounts_program import Order, Outcome
from backendai_agent.runtimes.base import (
    Resident,
    Runtime,
    RuntimeFailure,
    ShownFolder,
)
from backendai_hub.api.agents import ContainerSpec
from backendai_hub.core.configuration import ConfigurationError
from backendai_hub.core.ids import is_id

PROGRAM: Final = ("-m", "backendai_agent.mounts_program")
LABEL: Final = "storage/"
"""What, with a storage host's name, labels the nodes that have it."""
PRESENT: Final = "yes"
_LONGEST: Final = 1 << 16
_FAREWELL: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class MountSettings:
    """What the operator says: where storage hosts are, and how long they may take."""

    hosts: Mapping[str, str] = field(default_factory=dict)
    unmanaged_roots: Sequence[str] = ()
    seconds: float = 20.0


def label_hosts(hosts: Iterable[str]) -> dict[str, str]:
    """Return how a node that has *hosts* is labelled."""
    return {f"{LABEL}{host}": PRESENT for host in hosts}


def check_storage(settings: MountSettings, data_dir: Path) -> None:
    """Refuse places that sessions must not see, or that are no places.

    The agent's own folder holds its key and other sessions' secrets.
    """
    for place in (*settings.hosts.values(), *settings.unmanaged_roots):
        path = Path(place)
        if not path.is_absolute() or ".." in path.parts:
            raise ConfigurationError(f"storage: {place!r} is not an absolute path")
        if path.is_relative_to(data_dir) or data_dir.is_relative_to(path):
            raise ConfigurationError(
                f"storage: {place} and the agent's own folder {data_dir} lie one in"
                " the other; sessions could then see the agent's key"
            )


class Mounts:
    """The storage hosts of this node, and what containers see of them."""

    def __init__(
        self,
        data_dir: Path | str = ".",
        settings: MountSettings | None = None,
        *,
        log: Log | None = None,
    ) -> None:
        self._settings = settings or MountSettings()
        self._folder = Path(os.path.realpath(data_dir)) / "mounts"
        self._log = log or logging.getLogger(__name__)
        self._site = Site(
            hosts=self._settings.hosts,
            unmanaged_roots=tuple(self._settings.unmanaged_roots),
        )
        self._lost: dict[str, asyncio.subprocess.Process] = {}
        self._looked = False
        self.present: list[str] = []

    @property
    def is_complete(self) -> bool:
        """Whether every host answered when they were looked at."""
        return len(self.present) == len(self._settings.hosts)

    @property
    def notes(self) -> list[str]:
        """What people should know of this node's storage."""
        if not self._settings.hosts or self._site.may_mount:
            return []
        return [
            "its agent may not mount: sessions see whole folders only, and only those"
            " whose files are of the user that they run as"
        ]

    @property
    def labels(self) -> dict[str, str]:
        """How this node is labelled for the hosts that answer."""
        return label_hosts(self.present)

    async def open(self) -> None:
        """Take away what a killed agent has left, and see what is possible here.

        No storage host is asked for anything yet: one that hangs must not keep
        sessions that run from anything.
        """
        await asyncio.to_thread(self._sweep)
        may_mount = await asyncio.to_thread(self._try_to_mount)
        self._site = replace(self._site, may_mount=may_mount)

    async def look(self) -> bool:
        """See which hosts answer; returns whether others do than before."""
        hosts = self._settings.hosts
        looks = [self._answers(host, path) for host, path in hosts.items()]
        answers = await asyncio.gather(*looks)
        before, self.present = (
            self.present,
            [host for host, there in zip(hosts, answers, strict=True) if there],
        )
        for host in sorted({*self.present} - {*before}):
            self._log.info("the storage host %s is there", host)
        expected = before if self._looked else hosts
        for host in sorted({*expected} - {*self.present}):
            self._log.error("the storage host %s is not there", host)
        self._looked = True
        return self.present != before

    @contextlib.asynccontextmanager
    async def shown(
        self, spec: ContainerSpec, runtime: Runtime
    ) -> AsyncIterator[tuple[ShownFolder, ...]]:
        """Make what *spec* mounts ready for its start; afterwards take it away.

        Raises RuntimeFailure, with words for the session's owner, if it cannot all be.
        """
        if not spec.mounts:
            yield ()
            return
        resident = await self._find_resident(spec, runtime)
        steps = plan_steps(spec.mounts, self._site, resident)
        if resident.way == "bind" and self._site.may_mount:
            room = self._room(spec.id)
            user = (resident.uid, resident.gid)
            try:
                yield await self._bind(room, steps, user)
            finally:
                self._take_away(room)
        else:
            await self._ask(Order(parent=os.getpid(), room="", steps=steps))
            yield tuple(_own_path(step) for step in steps)

    async def _find_resident(self, spec: ContainerSpec, runtime: Runtime) -> Resident:
        find = getattr(runtime, "resident", None)
        if find is None:
            raise RuntimeFailure(
                f"this node's runtime {runtime.name!r} cannot show folders to sessions"
            )
        found: Resident = await find(spec)
        return found

    def _room(self, container_id: str) -> Path:
        if not is_id(container_id):
            raise ValueError(f"{container_id[:80]!r} is not a container id")
        return self._folder / container_id

    async def _bind(
        self, room: Path, steps: Sequence[Step], user: tuple[int, int]
    ) -> tuple[ShownFolder, ...]:
        await asyncio.to_thread(self._clear, room)
        order = Order(parent=os.getpid(), room=str(room), steps=list(steps), user=user)
        await self._ask(order)
        crashpoint("agent.mounted")
        return tuple(
            ShownFolder(str(room / str(number)), step.target)
            for number, step in enumerate(steps)
            if step.inside is None  # the others are seen through these
        )

    async def _ask(self, order: Order) -> None:
        """Let the program carry out *order*; raises RuntimeFailure if it does not."""
        hosts = ", ".join(sorted({repr(step.host) for step in order.steps}))
        try:
            async with asyncio.timeout(self._settings.seconds):
                said = await self._run(order)
        except TimeoutError:
            raise RuntimeFailure(
                f"the storage host {hosts} did not answer within"
                f" {self._settings.seconds:g} s on this node"
            ) from None
        try:
            failure = msgspec.json.decode(said, type=Outcome).failure
        except msgspec.MsgspecError:
            failure = "the node's agent could not mount the session's folders"
        if failure:
            raise RuntimeFailure(failure)

    async def _run(self, order: Order, *, host: str = "") -> bytes:
        """Run the program; however we stop waiting, it is told to end."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd="/",
        )
        try:
            said, _ = await process.communicate(msgspec.json.encode(order))
            return said[:_LONGEST]
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL):
                    await process.wait()
            if process.returncode is None and host:
                self._lost[host] = process
            raise

    async def _answers(self, host: str, path: str) -> bool:
        lost = self._lost.get(host)
        if lost is not None and lost.returncode is None:
            return False  # who asked last has not even ended yet
        self._lost.pop(host, None)
        step = Step(
            host=host,
            target="",
            root=path,
            parts=[],
            subpath=[],
            make=False,
            read_only=True,
            owner=None,
        )
        order = Order(parent=os.getpid(), room="", steps=[step])
        try:
            async with asyncio.timeout(self._settings.seconds):
                said = await self._run(order, host=host)
            return not msgspec.json.decode(said, type=Outcome).failure
        except (TimeoutError, OSError, msgspec.MsgspecError):
            return False

    # -- clearing away ---------------------------------------------------------------

    def _clear(self, room: Path) -> None:
        """Have *room* there with nothing in it, whatever an earlier start left."""
        self._take_away(room)
        room.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _take_away(self, room: Path) -> None:
        """Undo all that was mounted in *room*; never waits, absent is success."""
        while str(room) in kernel.list_below(self._folder):
            kernel.detach(str(room))
        with contextlib.suppress(FileNotFoundError):
            room.rmdir()

    def _sweep(self) -> None:
        """Take away what another agent process had mounted when it was killed."""
        while left := kernel.list_below(self._folder):
            self._log.warning("taking away what was left mounted at %s", left[0])
            kernel.detach(left[0])  # and what lies deeper with it
        if self._folder.is_dir():
            for room in self._folder.iterdir():
                with contextlib.suppress(OSError):
                    room.rmdir()

    def _try_to_mount(self) -> bool:
        """Tell whether we may mount: not as a plain user, nor in most containers.

        Old kernels lack what is needed to do it safely.
        """
        wanted = self._settings.hosts or self._settings.unmanaged_roots
        if os.geteuid() != 0 or not wanted:
            return False
        room = self._folder / "trial"
        try:
            self._clear(room)
            kernel.mount_room(str(room))
            kernel.try_tree(str(room))
        except OSError as error:
            self._log.warning("folders cannot be mounted here: %s", error)
            return False
        finally:
            with contextlib.suppress(OSError):
                self._take_away(room)
        return True


def _own_path(step: Step) -> ShownFolder:
    source = str(Path(step.root, *step.parts))
    return ShownFolder(source, step.target, read_only=step.read_only)
