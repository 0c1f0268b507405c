"""Nodes: joining, what they should run, and which ones can be counted on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from backendai_hub.api.agents import (
    USUAL_GRACE,
    AssignmentSet,
    ContainerSpec,
    DesiredState,
    DeviceShare,
    EnrollAnswer,
    EnrollRequest,
    RegistryCredential,
    Route,
    RouteTable,
    SessionFile,
)
from backendai_hub.core.access import Action
from backendai_hub.core.agents import (
    AgentStatus,
)
from backendai_hub.core.audit import Act
from backendai_hub.core.clusters import ClusterRole
from backendai_hub.core.errors import ForbiddenError, InvalidRequestError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.groups import SchedulerOptions
from backendai_hub.core.images import Image
from backendai_hub.core.sessions import STARTING, SessionStatus
from backendai_hub.db import (
    agents,
    containers,
    installs,
    preemptions,
    session_lists,
    session_mounts,
    sessions,
)
from backendai_hub.db.agents import AgentRecord
from backendai_hub.db.containers import ContainerRecord
from backendai_hub.db.engine import Transaction
from backendai_hub.db.grants import NOTHING, load_grants
from backendai_hub.db.groups import find_group
from backendai_hub.db.images import load_images
from backendai_hub.db.installs import RegistryLogin
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.shares import list_rules
from backendai_hub.db.tables import ResourceGroupRow
from backendai_hub.db.tenancy import default_id
from backendai_hub.operations.cluster_places import ALONE, fit_in, load_places
from backendai_hub.operations.installs import choose_login, list_wanted
from backendai_hub.operations.lifecycle import ROUTES
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.session_mounts import specify

_UNKNOWN = ForbiddenError(
    "the enrolment token is not valid: it was used, has expired, or never existed;"
    " ask for a new one"
)


def digest(token: str) -> str:
    """Hash a token for storage."""
    return hashlib.sha256(token.encode()).hexdigest()


async def accept_token(platform: Platform, token: str, hours: float = 24.0) -> None:
    """Let *token* enrol one node within the next *hours*."""
    async with platform.database.transaction() as tx:
        expires_at = tx.now + timedelta(hours=hours)
        await agents.add_enroll_token(tx, digest(token), expires_at)


async def enroll_agent(platform: Platform, request: EnrollRequest) -> EnrollAnswer:
    """Give a new node its identity, for a token that works once.

    The same machine may repeat the request until it has reported for the first
    time, since it may have lost the answer.
    """
    if not 1 <= len(request.name) <= 255 or not 1 <= len(request.machine_id) <= 255:
        raise InvalidRequestError("name and machine_id have 1 to 255 characters")
    async with platform.database.transaction() as tx:
        token = await agents.get_enroll_token(tx.connection, digest(request.token))
        if token is None or token.expires_at < tx.now:
            raise _UNKNOWN
        if token.agent_id is not None:
            known = await agents.get_agent(tx.connection, token.agent_id)
            if token.machine_id != request.machine_id or known.first_seen_at:
                raise _UNKNOWN
            agent_id = known.id
        else:
            agent_id = platform.new_id()
            new = _new_agent(agent_id, request.name, request.machine_id, tx.now)
            group_id = await _initial_group(tx, request.resource_group)
            new = msgspec.structs.replace(new, resource_group_id=group_id)
            await agents.insert_agent(tx, new)
            await agents.use_enroll_token(tx, token.hash, agent_id, request.machine_id)
            tx.audit(
                Act(
                    action=Action.ENROLL_AGENT,
                    object_kind="agent",
                    object_id=agent_id,
                    object_name=request.name,
                    actor=request.name,
                    credential="enroll-token",
                )
            )
            tx.record(
                Event(
                    kind=EventKind.AGENT_ENROLLED,
                    text=f"node {request.name} has joined",
                    agent_id=agent_id,
                )
            )
        certificate = platform.authority.sign_agent(request.csr, agent_id, tx.now)
    return EnrollAnswer(
        agent_id=agent_id,
        certificate=certificate,
        authority=platform.authority.certificate_pem,
    )


async def _initial_group(tx: Transaction, name: str | None) -> str | None:
    """Return the resource group a new node joins: the one it names, or the default.

    Later its group is what administrators say, whatever the node's configuration is.
    """
    if name is not None:
        found = await find_group(tx.connection, name)
        if found is not None:
            return found
    return await default_id(tx.connection, ResourceGroupRow)


def _new_agent(agent_id: str, name: str, machine_id: str, now: datetime) -> AgentRecord:
    return AgentRecord(
        id=agent_id,
        name=name,
        machine_id=machine_id,
        status=AgentStatus.LOST,
        schedulable=True,
        epoch=1,
        sequence=0,
        generation=1,
        url="",
        architecture="",
        version="",
        isolation={},
        images=[],
        unknown=[],
        enrolled_at=now,
        first_seen_at=None,
        last_seen_at=None,
    )


async def renew_certificate(
    platform: Platform, agent_id: str, csr: str
) -> EnrollAnswer:
    """Give a node that proves its identity a certificate for longer."""
    async with platform.database.read() as connection:
        await agents.get_agent(connection, agent_id)
    certificate = platform.authority.sign_agent(
        csr, agent_id, platform.database.clock()
    )
    return EnrollAnswer(
        agent_id=agent_id,
        certificate=certificate,
        authority=platform.authority.certificate_pem,
    )


# --- what a node should run ------------------------------------------------------


async def load_assignments(platform: Platform, agent_id: str) -> AssignmentSet:
    """Build the complete list of what one node should have."""
    async with platform.database.read() as connection:
        agent = await agents.get_agent(connection, agent_id)
        known = await containers.list_containers(connection, agent_id=agent_id)
        wanted = [c for c in known if c.desired == "running"]
        records = await sessions.get_records(connection, [c.session_id for c in wanted])
        secrets = await sessions.get_secrets(connection, list(records))
        grants = await load_grants(connection, list(records))
        places = await load_places(connection, records)
        mounts = await session_mounts.load_mounts(connection, list(records))
        leaving = {c.session_id for c in known if c.desired == "absent"}
        graces = await preemptions.load_graces(connection, leaving)
        groups = {r.resource_group_id or "" for r, _ in records.values() if r.is_batch}
        rules = {g.id: g.options for g in await list_rules(connection, groups)}
        chosen = {r.image_id for r, _ in records.values() if r.image_id is not None}
        images = await load_images(connection, sorted(chosen))
        asked = await installs.list_installs(
            connection, agent_id=agent_id, is_open=True
        )
        sources = {*chosen, *(install.image_id for install in asked)}
        logins = await installs.list_logins(connection, sources)
        shares: dict[str, list[DeviceShare]] = {}
        for container, share in await containers.list_shares(
            connection, [c.id for c in wanted]
        ):
            shares.setdefault(container, []).append(share)
    return AssignmentSet(
        agent_id=agent_id,
        generation=agent.generation,
        epoch=agent.epoch,
        heartbeat_seconds=platform.settings.heartbeat_seconds,
        images=list_wanted(platform, asked, logins),
        containers=[
            fit_in(
                msgspec.structs.replace(
                    _spec(c, *records[c.session_id], shares.get(c.id, []), born),
                    **_job(platform, records[c.session_id][0], born, rules),
                    **msgspec.structs.asdict(grants.get(c.session_id, NOTHING)),
                    references=_references(images, records[c.session_id][0]),
                    mounts=specify(platform, mounts.get(c.session_id, ())),
                    credential=_login(platform, c, records[c.session_id][0], logins),
                ),
                places.get(c.id, ALONE),
            )
            if (born := _born(platform, secrets, c)) is not None
            else ContainerSpec(
                id=c.id,
                session_id=c.session_id,
                desired=DesiredState.ABSENT,
                grace_seconds=float(graces.get(c.session_id, USUAL_GRACE)),
            )
            for c in known
        ],
    )


def _references(images: Mapping[str, Image], record: SessionRecord) -> dict[str, str]:
    image = images.get(record.image_id or "")
    return {} if image is None else image.references


def _login(
    platform: Platform,
    container: ContainerRecord,
    record: SessionRecord,
    logins: Mapping[str, RegistryLogin],
) -> RegistryCredential | None:
    """Return the login for fetching the image, for as long as it may be needed."""
    if record.status not in STARTING:
        return None
    login = logins.get(record.image_id or "")
    return choose_login(platform, login, container.image)


def _born(
    platform: Platform, secrets: Mapping[str, bytes], container: ContainerRecord
) -> Mapping[str, Any] | None:
    if container.desired != "running" or container.session_id not in secrets:
        return None
    born: Mapping[str, Any] = platform.vault.open(secrets[container.session_id])
    return born


def _spec(
    container: ContainerRecord,
    session: SessionRecord,
    owner: str,
    shares: list[DeviceShare],
    born: Mapping[str, Any],
) -> ContainerSpec:
    return ContainerSpec(
        id=container.id,
        session_id=session.id,
        desired=DesiredState.RUNNING,
        session_name=session.name,
        owner=owner,
        image=container.image,
        cpu=session.slots.get("cpu", 0),
        memory=session.slots.get("mem", 0),
        shmem=session.shmem,
        shares=shares,
        environ=dict(born["environ"]),
        argv=list(born["argv"]),
        files=msgspec.convert(born.get("files", []), list[SessionFile]),
        bootstrap=born.get("bootstrap", ""),
        prefix=session.prefix or "/",
    )


def _job(
    platform: Platform,
    session: SessionRecord,
    born: Mapping[str, Any],
    rules: Mapping[str, SchedulerOptions],
) -> dict[str, Any]:
    """Return what a container's specification says of a batch session only.

    Its runner is told when it begins how long its command may take to end: as long as
    it would have to make room for others. Whoever ends it sooner does so themselves.
    """
    if not session.is_batch:
        return {}
    options = rules.get(session.resource_group_id or "", SchedulerOptions())
    lease = platform.settings.lease_seconds if session.is_leased else 0.0
    return {
        "command": born.get("command", ""),
        "grace_seconds": max(USUAL_GRACE, float(options.preemption.grace_seconds)),
        "timeout_seconds": float(session.batch_timeout or 0),
        "lease_seconds": lease,
    }


async def load_routes(platform: Platform) -> RouteTable:
    """Build the route table of the data plane."""
    async with platform.database.read() as connection:
        version = await agents.get_version(connection, ROUTES)
        urls = {a.id: a.url for a in await agents.list_agents(connection)}
        running = await session_lists.list_records(
            connection,
            [
                SessionStatus.RUNNING,
                SessionStatus.PREEMPTED,
                SessionStatus.TERMINATING,
            ],
        )
        mains = {
            c.session_id: c.id
            for c in await containers.list_containers(connection)
            if c.role == ClusterRole.MAIN
        }
    return RouteTable(
        version=version,
        routes=[
            Route(
                prefix=r.prefix,
                agent_id=r.agent_id,
                agent_url=urls[r.agent_id],
                container=mains[r.id],
            )
            for r in running
            if r.prefix and r.agent_id and r.id in mains
        ],
    )


# --- who can be counted on -------------------------------------------------------


def judge_agent(
    last_seen: datetime, now: datetime, suspect: float, lost: float
) -> AgentStatus:
    """Tell a node's status from its silence; times in seconds."""
    silence = (now - last_seen).total_seconds()
    if silence >= lost:
        return AgentStatus.LOST
    return AgentStatus.SUSPECT if silence >= suspect else AgentStatus.ALIVE


async def judge_agents(platform: Platform, grace_from: datetime) -> int:
    """Mark silent nodes; their sessions keep their slots. Return how many changed.

    Silence is counted from *grace_from* at the earliest: the time since which this
    process has been listening without a stall of its own.
    """
    settings = platform.settings
    async with platform.database.read() as connection:
        records = await agents.list_agents(connection)
    now = platform.database.clock()
    changes = []
    for record in records:
        if record.last_seen_at is None or record.status is AgentStatus.TERMINATED:
            continue
        # Seen in what is still to come: before our clock was set back, whenever.
        seen = record.last_seen_at if record.last_seen_at <= now else grace_from
        heard = max(seen, grace_from)
        status = judge_agent(
            heard, now, settings.suspect_seconds, settings.lost_seconds
        )
        # Only silence is judged here: coming back is the report's to say.
        if status is not AgentStatus.ALIVE and status is not record.status:
            if record.status is AgentStatus.LOST:
                continue
            changes.append((record, status))
    if changes:
        async with platform.database.transaction() as tx:
            for record, status in changes:
                await agents.change_agent(tx, record, status=status)
                tx.record(
                    Event(
                        kind=EventKind.AGENT_STATUS,
                        text=f"node {record.name} does not answer: {status}",
                        agent_id=record.id,
                    )
                )
            tx.wake("scheduler")
    return len(changes)
