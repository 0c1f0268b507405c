"""One agent at work: driver, data plane and link, and the order they start in.

The driver comes first, so that running sessions get their way to the platform back
at once; then identity, data plane and the link to the hub service.
"""

from __future__ import annotations

import asyncio
import platform
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from aiohttp import web
from yarl import URL

from backendai_agent.accelerators.base import Accelerator
from backendai_agent.actions import Node, Timing, read_failure
from backendai_agent.addresses import Address, address_towards, find_port
from backendai_agent.apps import Apps
from backendai_agent.certs import (
    EnrollmentRefusedError,
    Identity,
    enroll,
    read_machine_id,
    trusting,
)
from backendai_agent.driver import Driver
from backendai_agent.folders import write_durably
from backendai_agent.forwarding import make_server
from backendai_agent.image_keeper import ImageKeeper, KeeperTiming
from backendai_agent.inventory import Inventory
from backendai_agent.leases import Leases
from backendai_agent.link import (
    LINK_ERRORS,
    Link,
    LinkSettings,
    LinkTiming,
    next_pause,
)
from backendai_agent.logs import Log
from backendai_agent.meter import Measurable, Meter
from backendai_agent.mounts import Mounts, MountSettings
from backendai_agent.numbering import Numbering
from backendai_agent.outbox import Outbox
from backendai_agent.relay import CONNECTIONS, Relays
from backendai_agent.runtimes.base import Runtime
from backendai_agent.server import DataPlane
from backendai_hub.api.agents import (
    PROTOCOL_VERSION,
    AgentReport,
    AssignmentSet,
    EnrollRequest,
)
from backendai_hub.core.agents import Isolation

REDISCOVER_SECONDS = 60.0
AWAIT_SECONDS = 10.0
FIRST_LOOK_SECONDS = 5.0
"""So long a new agent keeps its first report back for its storage hosts' answers:
nobody should hear of a node without them when they are only a moment away."""
RENEW_CHECK_SECONDS = 3600.0
RENEW_RETRY_SECONDS = 60.0
ENROLL_LONGEST_PAUSE = 30.0
LOOPBACK = Address("127.0.0.1", 0)


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """What the agent has to know; the traits of ``app.py`` explain each."""

    name: str
    data_dir: Path
    hub_url: str
    platform_url: str
    version: str
    service_url: str = ""
    ca_file: Path | None = None
    token_file: Path | None = None
    listen: Address = LOOPBACK
    advertise: Address | None = None
    starts: int = 4
    image_fetches: int = 2
    relay_connections: int = CONNECTIONS
    labels: Mapping[str, str] = field(default_factory=dict)
    max_containers: int | None = None
    mounts: MountSettings = field(default_factory=MountSettings)
    timing: Timing = field(default_factory=Timing)
    link: LinkTiming = field(default_factory=LinkTiming)
    usage_seconds: float = 5.0
    first_look_seconds: float = FIRST_LOOK_SECONDS


class Agent:
    """The parts of one agent, put together."""

    def __init__(
        self,
        settings: AgentSettings,
        runtime: Runtime,
        accelerators: Sequence[Accelerator],
        *,
        log: Log,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._log = log
        self._identity = Identity(settings.data_dir)
        self._inventory = Inventory(accelerators, log=log)
        self._relays = Relays(
            settings.platform_url,
            settings.service_url,
            log=log,
            connections=settings.relay_connections,
        )
        self._apps = Apps(runtime)
        self._leases = Leases()
        self._mounts = Mounts(settings.data_dir, settings.mounts, log=log)
        base = URL(settings.platform_url).path
        node = Node(
            runtime=runtime,
            data_dir=settings.data_dir,
            relays=self._relays,
            apps=self._apps,
            attach=self._inventory.attach,
            whole=self._inventory.list_whole,
            leases=self._leases,
            mounts=self._mounts,
            base=base if base.endswith("/") else f"{base}/",
            starts=settings.starts,
            timing=settings.timing,
            log=log,
        )
        self.driver = Driver(node, on_change=self._say)
        self._keeper = ImageKeeper(
            self.driver.images,
            needed=self.driver.list_images,
            on_change=self._say,
            log=log,
            limit=settings.image_fetches,
            timing=KeeperTiming(resync=settings.timing.resync),
        )
        there = Measurable(
            runtime=runtime,
            accelerators=accelerators,
            running=self.driver.list_running,
            devices=lambda: self._inventory.devices,
        )
        self._meter = Meter(there, tell=self._tell_usage, log=log)
        self._link: Link | None = None
        self._isolation: Isolation | None = None
        self._machine_id = ""
        self._looked = asyncio.Event()
        self.url = ""

    async def run(self, isolation: Isolation) -> None:
        """Work until cancelled; the runtime is open, and stays so."""
        self._isolation = isolation
        data_dir = self._settings.data_dir
        self._machine_id = await asyncio.to_thread(read_machine_id, data_dir)
        await self._inventory.discover()
        await self._mounts.open()
        if not self._identity.is_known():
            await self._enroll()  # new: there is nothing to take care of yet
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.driver.run())
                group.create_task(self._keeper.run())
                group.create_task(self._connect())
                group.create_task(self._rediscover())
                group.create_task(self._look_at_storage())
                group.create_task(self._meter.run(self._settings.usage_seconds))
        finally:
            await self._relays.close()
            await self._apps.close()

    # -- what the link asks of us ----------------------------------------------------

    def take(self, desired: AssignmentSet) -> None:
        """Hand the hub service's wishes to the driver.

        The image is taken by what this node's runtime calls it: the hub service may
        still think of the runtime this node had before its last restart.
        """
        runtime = "" if self._isolation is None else self._isolation.runtime
        containers = [
            msgspec.structs.replace(c, image=c.references.get(runtime, c.image))
            for c in desired.containers
        ]
        self.driver.assign(msgspec.structs.replace(desired, containers=containers))
        self._keeper.assign(desired.images)

    def report(self, sequence: int, epoch: int) -> AgentReport | None:
        """Describe the whole node."""
        account = self.driver.account()
        if account is None or self._isolation is None:
            return None
        return AgentReport(
            protocol=PROTOCOL_VERSION,
            version=self._settings.version,
            epoch=epoch,
            sequence=sequence,
            machine_id=self._machine_id,
            url=self.url,
            architecture=platform.machine(),
            generation=account.generation,
            devices=self._inventory.devices,
            containers=account.containers,
            unknown=account.unknown,
            isolation=self._describe(self._isolation),
            images=self.driver.images.present,
            image_progress=self._keeper.account(),
            labels={**self._settings.labels, **self._mounts.labels},
            max_containers=self._settings.max_containers,
            storage_hosts=list(self._mounts.present),
        )

    def _describe(self, opened: Isolation) -> Isolation:
        now: Isolation = getattr(self._runtime, "isolation_now", opened)
        return msgspec.structs.replace(now, notes=[*now.notes, *self._mounts.notes])

    async def hear(self, sent_at: float) -> None:
        """Note that the service has taken a report; leases begin anew."""
        self._leases.hear(sent_at)
        await self.driver.renew_leases()

    def _say(self) -> None:
        if self._link is not None:
            self._link.say()

    def _tell_usage(self, content: bytes) -> None:
        if self._link is not None:
            self._link.tell_usage(content)

    # -- identity, data plane, link --------------------------------------------------

    async def _connect(self) -> None:
        await self._enroll()
        client = self._identity.client_context()
        server = self._identity.server_context()
        outbox = Outbox(self._settings.data_dir)
        plane = DataPlane(self._runtime, self._apps, outbox, log=self._log)
        runner = web.ServerRunner(make_server(plane.handle), shutdown_timeout=2.0)
        await runner.setup()
        try:
            await self._listen(runner, server)
            sequence = Numbering(
                self._settings.data_dir / "sequence",
                now=time.time_ns() // 1_000_000,
                log=self._log,
            )
            settings = LinkSettings(
                hub_url=self._settings.hub_url,
                epoch_file=self._settings.data_dir / "epoch",
                sequence=sequence,
                outbox=outbox,
                timing=self._settings.link,
            )
            self._link = Link(settings, self, context=client, log=self._log)
            self._log.info(
                "agent %s serves %s and follows %s",
                self._identity.agent_id,
                self.url,
                self._settings.hub_url,
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.first_look_seconds):
                    await self._looked.wait()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._link.run())
                group.create_task(self._renew(client, server))
        finally:
            await runner.cleanup()

    async def _listen(self, runner: web.ServerRunner, context: ssl.SSLContext) -> None:
        """Serve, on the same port as before if any port will do."""
        listen = self._settings.listen
        port_file = self._settings.data_dir / "agent.port"
        port = listen.port or find_port(listen.host, port_file)
        site = web.TCPSite(runner, listen.host, port, ssl_context=context)
        await site.start()
        port = int(runner.addresses[0][1])
        await asyncio.to_thread(write_durably, port_file, f"{port}\n".encode())
        advertise = self._settings.advertise
        if advertise is None:
            hub = URL(self._settings.hub_url)
            advertise = await asyncio.to_thread(
                address_towards, listen, hub.host or "127.0.0.1", hub.port or 443
            )
        self.url = f"https://{Address(advertise.host, advertise.port or port)}"

    async def _enroll(self) -> None:
        """Get a certificate, however long the hub service takes to come up."""
        settings = self._settings
        if self._identity.is_enrolled(datetime.now(UTC)):
            return
        token = await asyncio.to_thread(_read_token, settings.token_file)
        if settings.ca_file is None:
            raise EnrollmentRefusedError(
                "this node is new and was given no ca_file to recognise the hub by"
            )
        context = trusting(settings.ca_file)
        request = EnrollRequest(
            token=token,
            name=settings.name,
            csr=await asyncio.to_thread(self._identity.make_request),
            machine_id=self._machine_id,
        )
        failures = 0
        while True:
            try:
                await enroll(
                    self._identity, request, hub_url=settings.hub_url, context=context
                )
            except LINK_ERRORS as error:
                failures += 1
                self._log.warning("cannot enrol yet: %s", read_failure(error))
                await asyncio.sleep(next_pause(failures, ENROLL_LONGEST_PAUSE, 0.5))
            else:
                self._log.info("enrolled as agent %s", self._identity.agent_id)
                return

    async def _renew(self, *contexts: ssl.SSLContext) -> None:
        """Renew the certificate when less than a third of its life is left."""
        while True:
            left = (self._identity.renew_at() - datetime.now(UTC)).total_seconds()
            if left > 0:
                await asyncio.sleep(min(left, RENEW_CHECK_SECONDS))
                continue
            request = EnrollRequest(
                token="",
                name=self._settings.name,
                csr=await asyncio.to_thread(self._identity.make_request),
                machine_id=self._machine_id,
            )
            try:
                await enroll(
                    self._identity,
                    request,
                    hub_url=self._settings.hub_url,
                    context=contexts[0],
                    route="renew",
                )
            except (EnrollmentRefusedError, *LINK_ERRORS) as error:
                self._log.error("cannot renew the certificate: %s", error)
                await asyncio.sleep(RENEW_RETRY_SECONDS)
                continue
            for context in contexts:
                self._identity.reload(context)
            self._log.info("the certificate was renewed")

    async def _rediscover(self) -> None:
        """Notice devices that come and go."""
        while True:
            await asyncio.sleep(REDISCOVER_SECONDS)
            before = self._inventory.devices
            await self._inventory.discover()
            if self._inventory.devices != before:
                self._log.warning("the devices of this node have changed")
                self._say()

    async def _look_at_storage(self) -> None:
        """Notice storage hosts that come and go; one that is missing, soon."""
        pause = 0.5
        while True:
            if await self._mounts.look():
                self._say()
            self._looked.set()
            if self._mounts.is_complete:
                pause = 0.5
                await asyncio.sleep(REDISCOVER_SECONDS)
            else:
                await asyncio.sleep(pause)
                pause = min(AWAIT_SECONDS, 2 * pause)


def _read_token(path: Path | None) -> str:
    try:
        return path.read_text("ascii").strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise EnrollmentRefusedError(
            f"this node is new, and its enrolment token cannot be read: {error}"
        ) from error
