"""A node that tells what is printed on it, over real TLS; what prints is not there."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from backendai_agent.apps import Apps
from backendai_agent.folders import container_folder
from backendai_agent.forwarding import make_server
from backendai_agent.outbox import Outbox
from backendai_agent.runtimes.base import ContainerPatch
from backendai_agent.runtimes.fake import FakeRuntime
from backendai_agent.server import DataPlane
from backendai_hub.client.agents import AgentClient
from tests.agent_hub import AGENT_ID, HUB, Authority
from tests.integration.agent_process import make_spec


class LogNode:
    """One node's data plane, and the hub service's client of it."""

    def __init__(self, runtime: FakeRuntime, client: AgentClient) -> None:
        self.runtime = runtime
        self.client = client
        self.url = ""
        self.read = 0
        """How often a log was read here."""
        self.asked = 0
        """How often somebody began to wait for more of one."""
        self.waiting = 0

    async def run(self, container_id: str) -> None:
        """Have a container print its first line, a while ago."""
        container_folder(self.runtime.data_dir, container_id).make()
        await self.runtime.start(make_spec(id=container_id), ContainerPatch())
        self.runtime._containers[container_id].printed_at = 0.0

    def print(self, container_id: str, line: str, *, ago: float = 0.0) -> None:
        container = self.runtime._containers[container_id]
        container.print(line)
        container.printed_at -= ago

    async def end(self, container_id: str) -> None:
        """End a container that has said nothing for a while."""
        # The runtime would print a last word first, and who waits might hear of that.
        self.runtime._containers[container_id].ended = True


class CountingPlane(DataPlane):
    """What counts its visitors."""

    node: LogNode

    async def _logs(self, request, container):
        self.node.read += 1
        return await super()._logs(request, container)

    async def _news(self, request, container):
        self.node.asked += 1
        self.node.waiting += 1
        try:
            return await super()._news(request, container)
        finally:
            self.node.waiting -= 1


@asynccontextmanager
async def open_log_node(
    folder: Path, agent_id: str = AGENT_ID
) -> AsyncIterator[LogNode]:
    authority = Authority(folder / "ca")
    certificate, key = authority.issue(HUB, "hub")
    client = AgentClient(authority=authority.file, certificate=certificate, key=key)
    runtime = FakeRuntime(data_dir=str(folder))
    await runtime.open()
    apps = Apps(runtime)
    log = logging.getLogger("test")
    plane = CountingPlane(runtime, apps, Outbox(folder), log=log)
    plane.node = LogNode(runtime, client)
    name = f"{agent_id}.agent.backendai.internal"
    context = authority.server_context(name, "agent")
    context.verify_mode = ssl.CERT_REQUIRED
    runner = web.ServerRunner(make_server(plane.handle), shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    plane.node.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield plane.node
    finally:
        await client.close()
        await runner.cleanup()
        await apps.close()
        await runtime.close()
