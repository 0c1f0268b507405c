"""What each container of a session is told of the others, and people of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.agents import ClusterPlace, ContainerSpec
from backendai_hub.core.clusters import ClusterRole
from backendai_hub.core.sessions import STARTING, TERMINAL, Session
from backendai_hub.db import agents, containers
from backendai_hub.db.agents import AgentRecord
from backendai_hub.db.containers import ContainerRecord
from backendai_hub.db.grants import load_grants
from backendai_hub.db.sessions import SessionRecord

ALONE: Final = ClusterPlace()
_OWN: Final = "its containers reach each other by name ({hosts}), and nobody else does"
_NODES: Final = (
    "its containers are on their nodes' own networks; the names {hosts} lead to the"
    " nodes, whose ports they share with everything else there"
)
_APART: Final = (
    "its containers cannot reach each other by name: they are on {count} nodes, and"
    " nodes have no network in common for them. Ask for cluster_mode single-node, or"
    " for a resource group with use_host_network"
)
_PROCESSES: Final = (
    "its containers cannot reach each other: this node's runtime ({runtime}) gives each"
    " a network of its own. They can share files, and a node with Docker gives them a"
    " network"
)
_SHARED: Final = (
    "its containers share their node's network, with everything else on that node; the"
    " names {hosts} lead to it"
)
_PRETENDED: Final = "nothing really runs, so there is no network"


async def load_places(
    connection: AsyncConnection, records: Mapping[str, tuple[SessionRecord, str]]
) -> dict[str, ClusterPlace]:
    """Say of the containers of clusters where they and the others are, by id."""
    several = [record for record, _ in records.values() if record.is_cluster]
    if not several:
        return {}
    members = {r.id: await containers.list_members(connection, r.id) for r in several}
    used = {m.agent_id for found in members.values() for m in found}
    nodes = {a.id: a for a in await agents.list_agents(connection, used)}
    return {
        member.id: _place(record, member, members[record.id], nodes)
        for record in several
        for member in members[record.id]
    }


def _place(
    record: SessionRecord,
    member: ContainerRecord,
    members: list[ContainerRecord],
    nodes: Mapping[str, AgentRecord],
) -> ClusterPlace:
    beside = tuple(m.host for m in members if m.agent_id == member.agent_id)
    is_main = member.role == ClusterRole.MAIN
    return ClusterPlace(
        mode=record.cluster_mode,
        role=member.role,
        idx=member.idx,
        host=member.host,
        hosts=tuple(m.host for m in members),
        beside=beside,
        addresses={m.host: _address_of(nodes[m.agent_id]) for m in members},
        waits=is_main and record.is_batch and record.status in STARTING,
    )


def _address_of(node: AgentRecord) -> str:
    return urlsplit(node.url).hostname or ""


def fit_in(spec: ContainerSpec, place: ClusterPlace) -> ContainerSpec:
    """Make *spec* that of the container in *place*.

    What is not the main container serves nobody: it gets none of JupyterHub's
    variables, which tell it who may let people in.
    """
    if place.role == ClusterRole.MAIN:
        return msgspec.structs.replace(spec, cluster=place)
    return msgspec.structs.replace(
        spec,
        cluster=place,
        environ={
            name: value
            for name, value in spec.environ.items()
            if not name.startswith("JUPYTERHUB_")
        },
        argv=[],
        command="",
        timeout_seconds=0.0,
        prefix="/",
    )


async def describe_network(connection: AsyncConnection, session: Session) -> str:
    """Say how the containers of a session reach each other, if there are several."""
    if session.cluster_size == 1 or not session.containers:
        return ""
    if session.status in TERMINAL:
        return ""
    members = await containers.list_members(connection, session.id)
    used = {m.agent_id for m in members}
    nodes = await agents.list_agents(connection, used)
    runtimes = {str(node.isolation.get("runtime", "")) for node in nodes}
    grants = await load_grants(connection, [session.id])
    hosts = ", ".join(m.host for m in members)
    runtime = next(iter(runtimes), "")
    if runtime == "fake":
        words = _PRETENDED
    elif runtime == "process" and len(nodes) == 1:
        shared = nodes[0].isolation.get("network") == "host"
        words = _SHARED if shared else _PROCESSES
    elif session.id in grants and grants[session.id].host_network:
        words = _NODES
    else:
        words = _OWN if len(nodes) == 1 else _APART
    return words.format(hosts=hosts, count=len(nodes), runtime=runtime)
