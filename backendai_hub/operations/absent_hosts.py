"""What becomes of sessions that wait while a storage host is away.

What somebody has asked for is waited for, and the reason says so. What comes by itself
holds nobody up: whoever waits goes on without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.mounts import Mount
from backendai_hub.core.sessions import QUEUED
from backendai_hub.core.vfolders import HOST_LABEL
from backendai_hub.db import session_mounts, sessions
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.request_choices import load_place
from backendai_hub.scheduling.snapshot import NodeState

REACHED: Final = "yes"
"""What nodes are labelled that reach a storage host."""


def find_absence(platform: Platform, host: str, nodes: Sequence[NodeState]) -> str:
    """Say why nobody can have what is on a host now; empty: somebody can."""
    health = platform.storage.health().get(host)
    if health is not None and health.state == "down":
        return f"the storage host {host} is down"
    label = f"{HOST_LABEL}{host}"
    if nodes and not any(node.labels.get(label) == REACHED for node in nodes):
        return f"the storage host {host} is on no node of the resource group"
    return ""


def leave_out_absent(
    platform: Platform, mounts: Sequence[Mount], nodes: Sequence[NodeState]
) -> tuple[list[Mount], str]:
    """Leave out what comes by itself from hosts that are down, or that no node has.

    Nobody has asked for it, so for it nobody waits. Returns what is left, and in words
    what is not; what was asked for stays, and is waited for.
    """
    left, words = [], []
    for mount in mounts:
        why = find_absence(platform, mount.host, nodes) if mount.automatic else ""
        if why:
            words.append(f"{mount.folder_name}: {why}")
        else:
            left.append(mount)
    return left, f"without {'; '.join(words)}" if words else ""


def leave_out_resting(
    platform: Platform, labels: Mapping[str, str]
) -> Mapping[str, str]:
    """Leave out the labels of storage hosts that are down now and may come back."""
    resting = {
        f"{HOST_LABEL}{host}"
        for host, health in platform.storage.health().items()
        if health.state == "down"
    }
    return {name: value for name, value in labels.items() if name not in resting}


async def go_without(platform: Platform) -> int:
    """Let those who wait go on without what comes by itself from hosts that are away.

    Returns how many sessions it has changed.
    """
    async with platform.database.read() as connection:
        needed = await session_mounts.list_needed(connection)
    absent = {}
    for group_id, host in needed:
        place = await load_place(platform.database, group_id)
        why = find_absence(platform, host, place.nodes)
        if why:
            absent[group_id, host] = why
    changed = 0
    for (group_id, host), why in absent.items():
        async with platform.database.read() as connection:
            waiting = await session_mounts.list_holding(connection, group_id, host)
        for session_id in waiting:
            changed += await _go_without(platform, session_id, host, why)
    return changed


async def _go_without(platform: Platform, session_id: str, host: str, why: str) -> bool:
    async with platform.database.transaction() as tx:
        record = await sessions.get_record(tx.connection, session_id, lock=True)
        if record.status not in QUEUED:
            return False
        left_out = await session_mounts.drop_automatic(tx, session_id, host)
        if not left_out:
            return False
        mounts = (await session_mounts.load_mounts(tx.connection, [session_id])).get(
            session_id, []
        )
        labels = dict(record.labels)
        if not any(mount.host == host for mount in mounts):
            labels.pop(f"{HOST_LABEL}{host}", None)
        reason = f"goes on without {', '.join(left_out)}: {why}"
        await sessions.change_session(tx, record, labels=labels, reason=reason)
        tx.record(
            Event(
                kind=EventKind.SESSION_WAITING,
                text=reason,
                session_id=record.id,
                owner_id=record.owner_id,
                status=record.status,
            )
        )
        tx.wake("scheduler")
    return True
