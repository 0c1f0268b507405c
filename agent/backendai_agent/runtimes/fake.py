"""A runtime without containers: for tests, demonstrations and large fleets.

It behaves like a real one, as slowly and unreliably as its settings say. What it
"runs" is kept in one small file per container, so that its containers survive the
agent like real ones do, even a ``kill -9``. With the same ``seed`` the same things
go wrong for the same containers. Of a bootstrap script only a last line ``exit N`` is
understood; files and script can be read in the container's small file. What a batch
session's command does is foreseen (:mod:`.fake_jobs`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import WSMsgType, web
from traitlets import Bool, Dict, Float, Int, List, Unicode
from traitlets.config import Configurable

from backendai_agent.crashpoints import crashpoint
from backendai_agent.folders import container_folder, write_durably
from backendai_agent.measuring.readings import Reading
from backendai_agent.measuring.waves import Wave
from backendai_agent.runtimes.base import (
    STAMP_SECONDS,
    ContainerPatch,
    Endpoint,
    LogNews,
    Observed,
    Progress,
    Resident,
    RuntimeFailure,
)
from backendai_agent.runtimes.fake_jobs import FakeJob, read_command
from backendai_hub.api.agents import ContainerSpec, RegistryCredential, SessionFile
from backendai_hub.core.agents import Isolation
from backendai_hub.core.references import find_registry

LAST_WORDS = "told to end"
_LOG_SECONDS = 0.02


class FakeContainer(msgspec.Struct, kw_only=True):
    """One container that does not exist."""

    id: str
    session_id: str
    image: str = ""
    started_at: float | None = None
    ended: bool = False
    exit_code: int | None = None
    reason: str = ""
    environ: dict[str, str] = {}
    files: list[SessionFile] = []
    bootstrap: str = ""
    lines: list[str] = []
    printed_at: float = 0.0
    job: FakeJob | None = None
    is_job: bool = False
    host: str = "main1"
    hosts: tuple[str, ...] = ("main1",)
    folders: dict[str, str] = {}
    """What it would see where: source on the node, by target."""
    waits: bool = False

    def print(self, line: str) -> None:
        """Have the container print a line."""
        self.lines.append(line)
        self.printed_at = time.time()


class FakeImages(msgspec.Struct, kw_only=True):
    """What became of environments that do not exist."""

    fetched: set[str] = set()
    discarded: set[str] = set()


class FakeRuntime(Configurable):
    """Pretends to run containers; every session is a small page."""

    name = "fake"

    data_dir = Unicode(help="Where containers are remembered; empty: agent's folder.")
    persist = Bool(default_value=True, help="Remember containers across restarts.").tag(
        config=True
    )
    seed = Int(0, help="Chooses which containers fail.").tag(config=True)
    present = List(
        Unicode(), default_value=["fake"], help="Environments that need no fetching."
    ).tag(config=True)
    missing = List(Unicode(), help="Environments that cannot be fetched.").tag(
        config=True
    )
    private = Dict(
        value_trait=Unicode(),
        key_trait=Unicode(),
        help="Environments that only who knows this password can fetch, as anybody.",
    ).tag(config=True)
    fetch_seconds = Float(0.5, min=0, help="How long fetching takes.").tag(config=True)
    start_seconds = Float(0.1, min=0, help="How long starting takes.").tag(config=True)
    stop_seconds = Float(0.0, min=0, help="How long stopping takes.").tag(config=True)
    answer_seconds = Float(
        0.0, min=0, help="How long after its start a container answers."
    ).tag(config=True)
    fail_start = Float(0.0, min=0, max=1, help="Probability that a start fails.").tag(
        config=True
    )
    fail_every = Int(0, min=0, help="Let every nth start fail; 0: none.").tag(
        config=True
    )
    fail_hosts = List(
        Unicode(),
        help="Containers of clusters whose start fails, such as sub1.",
    ).tag(config=True)
    die_after = Float(
        0.0, min=0, help="Seconds after which containers end; 0: never."
    ).tag(config=True)
    die_code = Int(1, help="The exit code containers end with.").tag(config=True)
    job_seconds = Float(
        0.1, min=0, help="How long a batch session's command takes."
    ).tag(config=True)
    job_code = Int(0, help="The exit code a batch session's command ends with.").tag(
        config=True
    )
    measured = Bool(
        default_value=True, help="Whether anybody can tell what containers use."
    ).tag(config=True)
    busy = Float(
        0.35,
        min=0,
        max=1,
        help="What part of its processors and memory each container seems to use, on"
        " average.",
    ).tag(config=True)
    busy_swing = Float(
        0.25, min=0, max=1, help="By how much that goes up and down, in waves."
    ).tag(config=True)
    busy_seconds = Float(
        90.0, min=1, help="How long a wave takes; each container is at another place."
    ).tag(config=True)
    disk_rate = Int(
        4 << 20, min=0, help="Bytes in a second that each seems to read, and to write."
    ).tag(config=True)
    network_rate = Int(
        1 << 20, min=0, help="Bytes in a second that come in and go out of each."
    ).tag(config=True)
    oom = Float(
        0.0, min=0, max=1, help="Probability that an end is for lack of memory."
    ).tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._containers: dict[str, FakeContainer] = {}
        self._listeners: list[asyncio.Queue[str]] = []
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._going_on: set[asyncio.Task[None]] = set()
        self._images = FakeImages()
        self._starts = 0
        self._page = web.AppRunner(_make_page(), access_log=None, shutdown_timeout=0.5)
        self._port = 0

    @property
    def _folder(self) -> Path:
        return self._root / "fake-containers"

    @property
    def _images_file(self) -> Path:
        return self._root / "fake-images.json"

    @property
    def _root(self) -> Path:
        return Path(self.data_dir or getattr(self.parent, "data_dir", "."))

    async def open(self) -> Isolation:
        """Serve the page and remember what ran before."""
        await self._page.setup()
        site = web.TCPSite(self._page, "127.0.0.1", 0)
        await site.start()
        self._port = self._page.addresses[0][1]
        if self.persist:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for path in sorted(self._folder.glob("*.json")):
                found = msgspec.json.decode(path.read_bytes(), type=FakeContainer)
                self._containers[found.id] = found
            await self._begin_rest()
            if self._images_file.is_file():
                known = self._images_file.read_bytes()
                self._images = msgspec.json.decode(known, type=FakeImages)
        return Isolation(
            runtime="fake",
            tier="none",
            limits="none",
            network="none",
            multi_user=True,
            notes=["Nothing really runs here."],
        )

    async def close(self) -> None:
        """Stop serving the page; what "runs" goes on."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        await asyncio.gather(*self._going_on, return_exceptions=True)
        await self._page.cleanup()

    async def images(self) -> list[str]:
        """List the environments that are here."""
        return sorted({*self.present, *self._images.fetched} - self._images.discarded)

    async def fetch(
        self,
        image: str,
        progress: Progress,
        credential: RegistryCredential | None = None,
    ) -> None:
        """Take a while, in ten steps."""
        for step in range(10):
            progress(step / 10)
            await asyncio.sleep(self.fetch_seconds / 10)
        if image in self.missing:
            raise RuntimeFailure(f"there is no environment {image}")
        if image in self.private and credential != _login(image, self.private[image]):
            raise RuntimeFailure(f"the registry of {image} wants another login")
        self._images.fetched.add(image)
        self._images.discarded.discard(image)
        await self._save_images()

    async def discard(self, image: str) -> None:
        """Forget the environment, unless a container runs in it."""
        if any(c.image == image and not c.ended for c in self._containers.values()):
            raise RuntimeFailure(f"a container runs in {image}")
        self._images.fetched.discard(image)
        self._images.discarded.add(image)
        await self._save_images()

    async def _save_images(self) -> None:
        if self.persist:
            content = msgspec.json.encode(self._images)
            await asyncio.to_thread(write_durably, self._images_file, content)

    async def resident(self, spec: ContainerSpec) -> Resident:
        """Nothing runs, so it can be anybody; folders have only to be there."""
        del spec
        return Resident(os.geteuid(), os.getegid(), way="none")

    async def start(self, spec: ContainerSpec, patch: ContainerPatch) -> None:
        """Start the container unless it is here already.

        As with a real engine, giving up waiting does not undo what was asked.
        """
        await asyncio.shield(self._go_on(self._start(spec, patch)))

    async def _start(self, spec: ContainerSpec, patch: ContainerPatch) -> None:
        known = self._containers.get(spec.id)
        if known is not None and known.started_at is not None:
            return
        self._starts += 1
        dice = random.Random(f"{self.seed}:{spec.id}")  # noqa: S311 - not a secret
        every = self.fail_every
        if dice.random() < self.fail_start or (every and self._starts % every == 0):
            raise RuntimeFailure("the fake runtime was told to fail")
        if spec.cluster.host in self.fail_hosts:
            raise RuntimeFailure(
                f"the fake runtime was told to fail {spec.cluster.host}"
            )
        fresh = FakeContainer(id=spec.id, session_id=spec.session_id, image=spec.image)
        await self._save(fresh)
        crashpoint("agent.created")
        await asyncio.sleep(self.start_seconds)
        fresh.started_at = time.time()
        fresh.environ = dict(patch.environ)
        fresh.lines = [f"{spec.image} started for {spec.owner or 'nobody'}"]
        fresh.files, fresh.bootstrap = spec.files, spec.bootstrap
        fresh.is_job = spec.is_job
        fresh.folders = {shown.target: shown.source for shown in patch.folders}
        fresh.host, fresh.hosts = spec.cluster.host, spec.cluster.hosts
        if spec.command:
            fresh.waits = spec.cluster.size > 1
            fresh.job = read_command(
                spec, seconds=self.job_seconds, exit_code=self.job_code
            )
            fresh.lines = list(fresh.job.lines)
        fresh.printed_at = time.time()
        await self._save(fresh)
        await asyncio.to_thread(self._note_start, fresh)
        await self._begin(fresh)
        self._tell(spec.id)

    async def _begin_rest(self) -> None:
        """Let main programs begin that an agent killed meanwhile kept from it.

        A real program does not need the agent that started its container.
        """
        noted = set()
        if self._starts_file.exists():
            noted = set(self._starts_file.read_text().splitlines())
        for found in self._containers.values():
            folder = container_folder(self._root, found.id)
            started = found.started_at is not None and not found.ended
            if started and found.id not in noted:
                self._note_start(found)
            if started and folder.run.is_dir() and not folder.preparation.exists():
                await self._begin(found)
            else:
                self._arm(found)

    @property
    def _starts_file(self) -> Path:
        return self._root / "fake-starts.log"

    def _note_start(self, container: FakeContainer) -> None:
        with self._starts_file.open("a") as log:
            log.write(f"{container.id}\n")

    async def _begin(self, container: FakeContainer) -> None:
        failure = await asyncio.to_thread(self._prepare, container)
        if failure:
            await self.end(container.id, 1, "exited with code 1")
        self._arm(container)

    def _prepare(self, container: FakeContainer) -> str:
        """Do what a main program does first: take up its activation, and its script."""
        folder = container_folder(self._root, container.id)
        folder.activation.unlink(missing_ok=True)
        if container.is_job:
            write_durably(folder.outcome, msgspec.json.encode({"state": "running"}))
        bootstrap = container.bootstrap
        last = re.search(r"^exit (0*[1-9]\d*)\s*\Z", bootstrap, re.MULTILINE)
        failure = f"the bootstrap script ended with exit code {last[1]}" if last else ""
        write_durably(folder.preparation, msgspec.json.encode({"failure": failure}))
        return failure

    async def wind_down(self, container_id: str, grace: float) -> None:
        """Let the container say that it was told to end; nothing in it takes long."""
        del grace
        found = self._containers.get(container_id)
        if found is not None and not found.ended:
            found.print(LAST_WORDS)

    async def stop(self, container_id: str, grace: float) -> None:
        """Remove the container."""
        if container_id not in self._containers:
            return
        crashpoint("agent.stopping")
        await asyncio.sleep(self.stop_seconds)
        await self._drop(container_id)

    async def lose(self, container_id: str) -> None:
        """Let the container vanish, as if somebody had removed it."""
        await self._drop(container_id)
        self._tell(container_id)

    async def _drop(self, container_id: str) -> None:
        self._containers.pop(container_id, None)
        timer = self._timers.pop(container_id, None)
        if timer is not None:
            timer.cancel()
        if self.persist:
            path = self._folder / f"{container_id}.json"
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def list(self) -> list[Observed]:
        """List the containers; one made but never started is not running."""
        for found in list(self._containers.values()):
            if found.waits and container_folder(self._root, found.id).released.exists():
                found.waits, found.started_at = False, time.time()
                await self._save(found)
                self._arm(found)
        return [
            Observed(
                id=found.id,
                session_id=found.session_id,
                running=found.started_at is not None and not found.ended,
                exit_code=found.exit_code,
                reason=found.reason if found.ended else "",
            )
            for found in self._containers.values()
        ]

    async def endpoint(self, container_id: str, app: str) -> Endpoint | None:
        """All running containers answer with the same page."""
        found = self._containers.get(container_id)
        if found is None or found.ended or found.started_at is None or app != "lab":
            return None
        if time.time() < found.started_at + self.answer_seconds:
            return None
        return Endpoint(host="127.0.0.1", port=self._port)

    async def changes(self) -> AsyncIterator[str]:
        """Yield the id of each container that began, ended or vanished."""
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._listeners.append(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._listeners.remove(queue)

    async def logs(self, container_id: str, tail: int) -> str:
        """Return what the container would have printed."""
        found = self._containers.get(container_id)
        lines = found.lines[-tail:] if found else []
        return "".join(f"{line}\n" for line in lines)

    async def hear_log(self, container_id: str, age: float) -> LogNews:
        """Wait until the container would have printed something."""
        since = time.time() - age - STAMP_SECONDS
        while found := self._containers.get(container_id):
            if found.printed_at >= since:
                return LogNews.PRINTED
            if found.ended:
                return LogNews.ENDED
            await asyncio.sleep(_LOG_SECONDS)
        return LogNews.ABSENT

    def measure(self, specs: Sequence[ContainerSpec]) -> dict[str, Reading]:
        """Tell what containers would use: the settings say."""
        now = time.time()
        wave = Wave(self.busy, self.busy_swing, self.busy_seconds)
        found = {}
        for spec in specs if self.measured else ():
            container = self._containers.get(spec.id)
            if container is not None and container.started_at is not None:
                found[spec.id] = self._invent(spec, wave, container.started_at, now)
        return found

    def _invent(
        self, spec: ContainerSpec, wave: Wave, since: float, now: float
    ) -> Reading:
        place = random.Random(spec.id).uniform(0, wave.seconds)  # noqa: S311 - no secret
        busy = wave.sum_until(now + place) - wave.sum_until(since + place)
        return Reading(
            cpu_seconds=spec.cpu / 1000 * busy,
            memory=int(spec.memory * wave.at(now + place)),
            read_bytes=int(self.disk_rate * busy),
            written_bytes=int(self.disk_rate * busy),
            received_bytes=int(self.network_rate * busy),
            sent_bytes=int(self.network_rate * busy),
        )

    async def end(self, container_id: str, exit_code: int, reason: str) -> None:
        """Let the container's main program end."""
        found = self._containers.get(container_id)
        if found is None or found.ended:
            return
        if found.job is None:
            found.print(reason)
        else:  # a runner leaves its word before it ends
            told = {"state": "ended", "exit_code": exit_code, "reason": reason}
            outcome = container_folder(self._root, container_id).outcome
            content = msgspec.json.encode(told)
            await asyncio.to_thread(write_durably, outcome, content)
        found.ended, found.exit_code, found.reason = True, exit_code, reason
        await self._save(found)
        self._tell(container_id)

    def _arm(self, container: FakeContainer) -> None:
        seconds = self.die_after if container.job is None else container.job.seconds
        immortal = not self.die_after and container.job is None
        if immortal or container.ended or container.started_at is None:
            return
        if container.waits:  # for the others of its session
            return
        dice = random.Random(f"{self.seed}:end:{container.id}")  # noqa: S311
        code, reason = self.die_code, f"exited with code {self.die_code}"
        if container.job is not None:
            code, reason = container.job.exit_code, container.job.reason
        if dice.random() < self.oom:
            code, reason = 137, "out of memory"
        loop = asyncio.get_running_loop()
        left = max(0.0, container.started_at + seconds - time.time())

        def die() -> None:
            self._timers.pop(container.id, None)
            self._go_on(self.end(container.id, code, reason))

        self._timers[container.id] = loop.call_later(left, die)

    def _go_on(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._going_on.add(task)

        def finished(task: asyncio.Task[None]) -> None:
            self._going_on.discard(task)
            if not task.cancelled():
                task.exception()  # heard, if only by nobody who still waits

        task.add_done_callback(finished)
        return task

    async def _save(self, container: FakeContainer) -> None:
        self._containers[container.id] = container
        if self.persist:
            path = self._folder / f"{container.id}.json"
            content = msgspec.json.encode(container)
            await asyncio.to_thread(write_durably, path, content)

    def _tell(self, container_id: str) -> None:
        for queue in self._listeners:
            queue.put_nowait(container_id)


def _login(image: str, password: str) -> RegistryCredential:
    registry = find_registry(image)
    return RegistryCredential(registry=registry, username="anybody", password=password)


def _make_page() -> web.Application:
    async def answer(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(
            protocols=request.headers.get("Sec-WebSocket-Protocol", "")
            .replace(" ", "")
            .split(",")
        )
        if not socket.can_prepare(request).ok:
            return web.Response(
                text=f"<!doctype html><title>fake</title><p>{request.method} works",
                content_type="text/html",
            )
        await socket.prepare(request)
        with contextlib.suppress(ConnectionError):
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await socket.send_str(message.data)
                elif message.type is WSMsgType.BINARY:
                    await socket.send_bytes(message.data)
        return socket

    page = web.Application(client_max_size=1 << 30)
    page.router.add_route("*", "/{path:.*}", answer)
    return page
