"""Sessions of several containers, and nodes that tell of each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from backendai_hub.api.agents import ContainerReport, ContainerSpec, ContainerState
from backendai_hub.core.sessions import Session
from backendai_hub.db import containers
from backendai_hub.db.containers import ContainerRecord
from backendai_hub.operations.nodes import load_assignments
from backendai_hub.operations.platform import Platform
from tests.factories import Node, seen
from tests.tenants import read

State = ContainerState


class Crew:
    """The containers of one session, and what their nodes have said of them."""

    def __init__(self, platform: Platform, nodes: Sequence[Node], session: Session):
        self.platform = platform
        self.nodes = {node.id: node for node in nodes}
        self.session = session
        self._told: dict[str, ContainerReport] = {}

    async def members(self) -> dict[str, ContainerRecord]:
        """Return the containers of the present attempt, by host."""
        async with self.platform.database.read() as connection:
            found = await containers.list_members(connection, self.session.id)
        return {member.host: member for member in found}

    async def nodes_of(self) -> dict[str, str]:
        """Tell on which node each container is."""
        members = await self.members()
        return {host: self.nodes[m.agent_id].name for host, m in members.items()}

    async def say(self, host: str, state: State, **changes: Any) -> None:
        """Have a container's node report it, beside all it has said before."""
        member = (await self.members())[host]
        self._told[member.id] = seen(member.id, state, **changes)
        await self._report(member.agent_id)

    async def all_are(self, state: State, *, but: Sequence[str] = ()) -> None:
        """Have every container reported so."""
        for host in await self.members():
            if host not in but:
                await self.say(host, state)

    async def _report(self, agent_id: str) -> None:
        async with self.platform.database.read() as connection:
            here = await containers.list_containers(connection, agent_id=agent_id)
        told = [self._told[c.id] for c in here if c.id in self._told]
        # What its node has not told of yet it has not been given yet.
        known = len(told) == len(here)
        changes = {} if known else {"generation": 0}
        await self.nodes[agent_id].report(told, **changes)

    async def wanted(self) -> dict[str, ContainerSpec]:
        """Return what the nodes are asked for that have containers of it, by host."""
        found = {}
        hosts = {m.id: host for host, m in (await self.members()).items()}
        for node in self.nodes.values():
            asked = await load_assignments(self.platform, node.id)
            found |= {hosts[c.id]: c for c in asked.containers if c.id in hosts}
        return found

    async def look(self) -> Session:
        """Read the session."""
        return await read(self.platform, self.session)
