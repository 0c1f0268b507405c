"""Taking in what a node sees, and drawing the consequences once.

Containers are never restarted, so what is seen of one only moves forward, and a
report may be repeated or come late without harm. Only *absence* is drawn from a
fresh report of a node that has taken up the assignment in question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.agents import (
    PROTOCOL_VERSION,
    AgentReport,
    ContainerReport,
    ContainerState,
    ReportAnswer,
)
from backendai_hub.core.agents import AgentStatus, Device, check_node
from backendai_hub.core.errors import ConflictError, ForbiddenError, InvalidRequestError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import (
    STARTING,
    TERMINAL,
    TRANSITIONS,
    WAITING_WORDS,
    SessionStatus,
)
from backendai_hub.core.slots import slot_type
from backendai_hub.db import agents, containers, installs, ledger, nouns, sessions
from backendai_hub.db.agents import AgentRecord, DeviceRecord
from backendai_hub.db.containers import ContainerRecord
from backendai_hub.db.engine import Transaction
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations import clusters
from backendai_hub.operations.batch import end_attempt
from backendai_hub.operations.clusters import PHASES, describe_end, has_ended_well
from backendai_hub.operations.installs import accept_images
from backendai_hub.operations.lifecycle import ROUTES, explain, leave, move
from backendai_hub.operations.platform import Platform

_ENDED = {ContainerState.EXITED, ContainerState.GONE}


async def accept_report(
    platform: Platform, agent_id: str, report: AgentReport
) -> ReportAnswer:
    """Store what a node says of itself and move its sessions accordingly.

    Raises :class:`ConflictError` for a second machine with the same identity and
    for a protocol that is not ours.
    """
    check_node(report.labels, report.max_containers)
    for device in report.devices:
        device.check()
    fresh, agent = await _note_agent(platform, agent_id, report)
    async with platform.database.read() as connection:
        known = await containers.list_containers(connection, agent_id=agent_id)
        records = await sessions.get_records(connection, [c.session_id for c in known])
        asked = await installs.list_installs(
            connection, agent_id=agent_id, is_open=True
        )
    if fresh and asked:
        await accept_images(platform, agent_id, asked, report)
    seen = {c.id: c for c in report.containers}
    for container in known:
        state = seen.get(container.id)
        record, _ = records[container.session_id]
        took_up = fresh and report.generation >= container.generation
        if container.former:
            gone = took_up if state is None else state.state is ContainerState.GONE
            if gone:
                await _forget(platform, container)
        elif state is None:
            if took_up and record.status not in STARTING:
                await _absent(platform, container)
        elif _is_news(record, container, state):
            await _advance(platform, container, state, report.generation)
    await _reopen(platform, agent, report, {c.id for c in known})
    async with platform.database.read() as connection:
        agent = await agents.get_agent(connection, agent_id)
    return ReportAnswer(generation=agent.generation, epoch=agent.epoch)


async def _note_agent(
    platform: Platform, agent_id: str, report: AgentReport
) -> tuple[bool, AgentRecord]:
    """Write the node's own row; tell whether the report is newer than the last."""
    if abs(report.protocol - PROTOCOL_VERSION) > 1:
        raise InvalidRequestError(
            f"this agent speaks protocol {report.protocol}, the hub service"
            f" {PROTOCOL_VERSION}; upgrade the older one"
        )
    async with platform.database.transaction() as tx:
        agent = await agents.get_agent(tx.connection, agent_id, lock=True)
        if agent.machine_id != report.machine_id:
            raise ConflictError(
                f"node {agent.name} is another machine; its identity was copied."
                " Enrol this machine with a token of its own"
            )
        if agent.status is AgentStatus.TERMINATED:
            raise ForbiddenError(f"node {agent.name} was removed; enrol it again")
        fresh = report.sequence > agent.sequence
        if not fresh:
            return False, agent
        unknown = sorted(set(report.unknown))[:1000]
        await agents.change_agent(
            tx,
            agent,
            status=AgentStatus.ALIVE,
            sequence=report.sequence,
            url=report.url,
            architecture=report.architecture,
            version=report.version,
            protocol=report.protocol,
            isolation=msgspec.to_builtins(report.isolation),
            images=report.images,
            unknown=unknown,
            labels=report.labels,
            max_containers=report.max_containers,
            first_seen_at=agent.first_seen_at or tx.now,
            last_seen_at=tx.now,
        )
        if agent.url != report.url:
            await agents.bump_version(tx, ROUTES)
        if agent.status is not AgentStatus.ALIVE:
            tx.record(
                Event(
                    kind=EventKind.AGENT_STATUS,
                    text=f"node {agent.name} answers",
                    agent_id=agent_id,
                )
            )
            tx.wake("scheduler")
        if set(unknown) - set(agent.unknown):
            tx.record(
                Event(
                    kind=EventKind.AGENT_UNKNOWN_CONTAINERS,
                    text=f"node {agent.name} sees {len(unknown)} containers it was"
                    " never given; they are left alone",
                    agent_id=agent_id,
                )
            )
    await _note_devices(platform, agent_id, report.devices)
    return True, agent


async def _note_devices(
    platform: Platform, agent_id: str, devices: list[Device]
) -> None:
    """Keep device rows and their capacity as the node reports them, by stable id.

    A device that is not reported any more offers nothing, and keeps its row and
    what is still held of it. Nearly always nothing has changed, and nothing is
    written. The node's own row is not locked meanwhile: placing locks the ledger
    first and the node's row last.
    """
    async with platform.database.read() as connection:
        known = await _known_devices(connection, agent_id)
    if _described(known) == {d.id: (d.offer, _traits(d)) for d in devices}:
        return
    async with platform.database.transaction() as tx:
        known = await _known_devices(tx.connection, agent_id)
        for slot in sorted({slot for device in devices for slot in device.offer}):
            await nouns.ensure_slot_type(
                tx, platform.new_id(), slot, slot_type=str(slot_type(slot)), rank=1000
            )
        # Ledger rows are locked in the order in which placing takes them.
        for device in sorted(devices, key=lambda d: _row_id(known, d)):
            record, have = known.pop(device.id, (None, {}))
            if record is None:
                record = _new_device(platform.new_id(), agent_id, device)
                await agents.insert_device(tx, record)
            elif not record.present or _traits(record) != _traits(device):
                traits = _traits(device)
                await agents.change_device(tx, record.id, present=True, **traits)
            offer = device.offer
            for slot in sorted({*offer, *have}):
                amount = offer.get(slot, 0)
                if slot not in have or have[slot].quota != amount:
                    await ledger.set_quota(
                        tx, ScopeKind.DEVICE, record.id, slot, amount
                    )
        for record, _ in known.values():
            if record is not None and record.present:
                await agents.change_device(tx, record.id, present=False)
        tx.wake("scheduler")


_Known = dict[str, tuple[DeviceRecord | None, Mapping[str, agents.Balance]]]


async def _known_devices(connection: AsyncConnection, agent_id: str) -> _Known:
    records = await agents.list_devices(connection, [agent_id])
    balances = await agents.list_balances(
        connection, [ScopeKind.DEVICE], [r.id for r in records]
    )
    return {r.name: (r, balances.get((ScopeKind.DEVICE, r.id), {})) for r in records}


def _row_id(known: _Known, device: Device) -> str:
    record, _ = known.get(device.id, (None, {}))
    return "" if record is None else record.id


def _traits(device: Device | DeviceRecord) -> dict[str, Any]:
    """Return what a device is like, whatever it offers."""
    return {
        "kind": device.kind,
        "model": device.model,
        "numa": device.numa,
        "whole": device.whole,
        "links": device.links,
        "profiles": device.profiles,
        "slices": device.slices,
    }


def _described(known: _Known) -> dict[str, tuple[dict[str, int], dict[str, Any]]]:
    """Describe the devices that are here as a report would."""
    return {
        name: ({s: b.quota for s, b in slots.items() if b.quota}, _traits(record))
        for name, (record, slots) in known.items()
        if record is not None and record.present
    }


def _new_device(device_id: str, agent_id: str, device: Device) -> DeviceRecord:
    return DeviceRecord(
        id=device_id,
        agent_id=agent_id,
        name=device.id,
        present=True,
        **_traits(device),
    )


def _is_news(
    record: SessionRecord, container: ContainerRecord, seen: ContainerReport
) -> bool:
    """Tell whether a report of a container may change anything."""
    if seen.state is ContainerState.GONE:
        return True
    if record.status in TERMINAL:
        return False
    if record.is_cluster:
        return clusters.is_news(container, seen)
    if seen.state in _ENDED or PHASES[seen.state] in TRANSITIONS[record.status]:
        return True
    same = record.status in STARTING and PHASES[seen.state] is record.status
    return same and bool(seen.reason) and seen.reason != record.reason


async def _advance(
    platform: Platform,
    container: ContainerRecord,
    seen: ContainerReport,
    generation: int,
) -> None:
    """Move a container's session to what is seen of it, if that is news.

    The node had taken up the assignments of *generation* by then.
    """
    async with platform.database.transaction() as tx:
        record = await sessions.get_record(
            tx.connection, container.session_id, lock=True
        )
        if seen.state is ContainerState.GONE:
            await containers.mark_gone(tx, [container.id])
        if record.status in TERMINAL or await _is_former(tx, container):
            return
        if record.is_cluster:
            await clusters.advance(tx, record, container.id, seen)
            return
        await clusters.note(tx, container.id, seen)
        if seen.state in _ENDED:
            if not await _has_just_finished(tx, record, seen, generation):
                await _end(tx, record, seen)
            return
        status = PHASES[seen.state]
        if status in TRANSITIONS[record.status]:
            words = WAITING_WORDS.get(status, "")
            reason = seen.reason or words
            if status is SessionStatus.RUNNING:
                reason = ""
            changes = clusters.allow_time(tx, status, bootstrap=seen.bootstrap)
            await move(tx, record, status, reason, **changes)
        elif status is record.status and seen.reason and status in STARTING:
            await explain(tx, record, seen.reason)


async def _is_former(tx: Transaction, container: ContainerRecord) -> bool:
    """Tell whether the session has begun anew since the containers were listed."""
    rows = await containers.list_containers(tx.connection, ids=[container.id])
    return all(row.former for row in rows)


async def _has_just_finished(
    tx: Transaction, record: SessionRecord, seen: ContainerReport, generation: int
) -> bool:
    """End a batch session whose command ended before its node was told to stop it.

    It was to make room, but what it was for is done: its exit code counts.
    """
    if record.status is not SessionStatus.PREEMPTED or not record.is_batch:
        return False
    (row,) = await containers.list_containers(tx.connection, ids=[seen.id])
    if generation >= row.generation or seen.exit_code is None:
        return False
    await end_attempt(tx, record, seen)
    return True


async def _forget(platform: Platform, container: ContainerRecord) -> None:
    """A container of an attempt that was over long ago has left its node."""
    async with platform.database.transaction() as tx:
        await containers.mark_gone(tx, [container.id])


async def _end(tx: Transaction, record: SessionRecord, seen: ContainerReport) -> None:
    if record.status is SessionStatus.PREEMPTED:
        await leave(tx, record)
        return
    if record.is_batch and record.status is not SessionStatus.TERMINATING:
        await end_attempt(tx, record, seen)
        return
    if record.status is SessionStatus.TERMINATING:
        # A forced or graceful stop is over when the process is; why it was asked
        # for is the better reason.
        reason = record.reason.split(";", 1)[0]
        code = seen.exit_code if record.exit_code is None else record.exit_code
        await move(tx, record, SessionStatus.TERMINATED, reason, exit_code=code)
        return
    await move(
        tx,
        record,
        SessionStatus.TERMINATED
        if has_ended_well(record, seen)
        else SessionStatus.ERROR,
        describe_end(seen),
        exit_code=seen.exit_code,
    )


async def _absent(platform: Platform, container: ContainerRecord) -> None:
    """A node that knows of the assignment sees no such container."""
    async with platform.database.transaction() as tx:
        record = await sessions.get_record(
            tx.connection, container.session_id, lock=True
        )
        if record.status in STARTING:
            return  # not begun yet; the state's deadline bounds it
        await containers.mark_gone(tx, [container.id])
        if record.status not in TERMINAL and not await _is_former(tx, container):
            gone = ContainerReport(
                id=container.id,
                session_id=record.id,
                state=ContainerState.GONE,
            )
            if record.is_cluster:
                await clusters.advance(tx, record, container.id, gone)
            else:
                await _end(tx, record, gone)


async def _reopen(
    platform: Platform, agent: AgentRecord, report: AgentReport, known: set[str]
) -> None:
    """Have leftovers of ended sessions removed that have turned up again."""
    ids = [c.id for c in report.containers if c.state not in _ENDED]
    stray = [i for i in (*ids, *report.unknown) if i not in known]
    if not stray:
        return
    async with platform.database.read() as connection:
        rows = await containers.list_containers(
            connection, agent_id=agent.id, ids=stray[:1000]
        )
        records = await sessions.get_records(connection, [r.session_id for r in rows])
    ended = [
        row.id
        for row in rows
        if row.gone_at is not None
        and (row.former or records[row.session_id][0].status in TERMINAL)
    ]
    if not ended:
        return
    async with platform.database.transaction() as tx:
        generation = await agents.bump_generation(tx, agent.id)
        for container_id in ended:
            await containers.reopen_container(tx, container_id, generation)
