"""Comparing what lies on storage hosts with what the platform knows.

Whatever happens, a row tells of what is on a disk: it is written first. What no row
tells of was left by a crash, a restored database or a host that was away. It is noted,
with the database's time, when it is seen for the first time, and removed after a time
of grace by whom :mod:`.remain_rules` say.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

import msgspec

from backendai_hub.core.audit import Act
from backendai_hub.core.errors import HubError, NotFoundError
from backendai_hub.core.times import format_time
from backendai_hub.db import quota_scopes, storage_remains
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folder_tasks import read_time
from backendai_hub.db.storage_remains import Known, RemainRecord, Thing
from backendai_hub.operations.file_trash import empty_old_trash
from backendai_hub.operations.folder_work import LONG
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.remain_rules import (
    SCOPE,
    find_strange,
    is_known,
    may_go,
)
from backendai_hub.storage.ops import (
    ListRemains,
    ListScopes,
    Place,
    RemoveRemain,
    RemoveScope,
)

log = logging.getLogger("backendai_hub.storage")

CHECK: Final = "check storage"
"""So begin the names of looks that somebody has asked for."""

# --- looking -----------------------------------------------------------------------


async def look_through(platform: Platform, hosts: Collection[str]) -> list[str]:
    """Compare some hosts with the rows, and note what belongs to nobody.

    Returns the folders that something was thrown away in.
    """
    with_trash = []
    for host in sorted(hosts):
        for scope in await _list_scopes(platform, host):
            with_trash += await _look_into(platform, host, scope)
    return with_trash


async def _list_scopes(platform: Platform, host: str) -> list[str]:
    there = set(await list_all(platform, host, ListScopes()))
    async with platform.database.read() as connection:
        there |= await storage_remains.list_known_scopes(connection, host)
        there |= await storage_remains.list_scopes_with_remains(connection, host)
        there |= (await storage_remains.list_unmanaged(connection, host)).keys()
    return sorted(there)


async def list_all(
    platform: Platform, host: str, operation: ListScopes | ListRemains
) -> list[str]:
    """Return all pages of a list of names."""
    names: list[str] = []
    while True:
        page = await platform.storage.call(host, operation, deadline=LONG)
        names += page.names
        if not page.after:
            return names
        operation = msgspec.structs.replace(operation, after=page.after)


async def _look_into(platform: Platform, host: str, scope: str) -> list[str]:
    there = await _list_what_lies(platform, host, scope)
    if there is None:
        return []
    things = [Thing(*one.split("/", 1)) for one in there]
    # The rows after the disk: of what was made meanwhile, the row was there first.
    async with platform.database.transaction() as tx:
        known = await storage_remains.load_known(tx.connection, host, scope)
        found = find_strange(things, known)
        if await storage_remains.is_being_removed(tx.connection, host, scope):
            found.pop(Thing(SCOPE, ""), None)
        await storage_remains.note_found(tx, host, scope, found)
    thrown = {thing.name for thing in things if thing.kind == "trash"}
    return sorted(thrown & known.settled)


async def _list_what_lies(
    platform: Platform, host: str, scope: str
) -> list[str] | None:
    """List what lies in a scope; ``None`` where nobody can look."""
    operation = ListRemains(scope=scope)
    if storage_remains.is_unmanaged(scope):
        place = await _find_unmanaged(platform, host, scope)
        if place is None:
            return []
        operation = ListRemains(place=place)
    try:
        return await list_all(platform, host, operation)
    except NotFoundError:
        return []
    except HubError as error:
        if operation.place is None:
            raise
        # Its path is an administrator's; what is there is no reason to stop here.
        log.info("%s on %s was not looked through: %s", scope, host, error.message)
        return None


async def _find_unmanaged(platform: Platform, host: str, scope: str) -> Place | None:
    async with platform.database.read() as connection:
        paths = await storage_remains.list_unmanaged(connection, host)
    return Place(unmanaged=paths[scope]) if scope in paths else None


# --- removing ----------------------------------------------------------------------


async def remove_remains(
    platform: Platform, hosts: Collection[str], *, repair: bool = False, who: str = ""
) -> int:
    """Remove what has belonged to nobody for long enough; return how much."""
    async with platform.database.read() as connection:
        until = await read_time(connection) - platform.settings.storage_grace
        due = await storage_remains.list_remains(connection, hosts, before=until)
    removed = 0
    # A scope goes after what lies in it.
    for remain in sorted(due, key=lambda one: one.kind == SCOPE):
        try:
            removed += await _remove(platform, remain, repair=repair, who=who)
        except HubError as error:
            log.warning(
                "%s %s in %s on %s stays: %s",
                remain.kind,
                remain.name,
                remain.scope,
                remain.host,
                error.message,
            )
            async with platform.database.transaction() as tx:
                await storage_remains.note_reason(tx, remain, error.message)
    return removed


async def _remove(
    platform: Platform, remain: RemainRecord, *, repair: bool, who: str
) -> bool:
    host, scope = remain.host, remain.scope
    thing = Thing(remain.kind, remain.name)
    async with platform.database.transaction() as tx:
        known = await storage_remains.load_known(tx.connection, host, scope)
        if await _is_known_now(tx, remain, known):
            await storage_remains.forget(tx, host, scope, thing)
            return False
        if not may_go(thing, scope, known, repair=repair):
            return False
        if not await storage_remains.intend_removal(tx, remain):
            return False
        tx.audit(
            Act(
                action="storage:remove",
                object_kind="storage-remain",
                object_id=remain.name or scope,
                object_name=f"{host}/{scope}/{remain.kind}/{remain.name}",
                before={"found_at": format_time(remain.found_at)},
                actor=who or "system",
            )
        )
    await _remove_from(platform, host, scope, thing)
    async with platform.database.transaction() as tx:
        await storage_remains.forget(tx, host, scope, thing)
        if thing.kind == SCOPE:
            await quota_scopes.drop_scope(tx, host, scope)
    return True


async def _remove_from(platform: Platform, host: str, scope: str, thing: Thing) -> None:
    if thing.kind == SCOPE:
        await platform.storage.call(host, RemoveScope(scope=scope), deadline=LONG)
        return
    operation = RemoveRemain(scope=scope, kind=thing.kind, name=thing.name)  # type: ignore[arg-type]
    if storage_remains.is_unmanaged(scope):
        place = await _find_unmanaged(platform, host, scope)
        if place is None:
            return  # whose folder it was, has what is in it
        operation = msgspec.structs.replace(operation, scope="", place=place)
    await platform.storage.call(host, operation, deadline=LONG)


async def _is_known_now(tx: Transaction, remain: RemainRecord, known: Known) -> bool:
    if remain.kind == SCOPE:
        return (
            known.has_owner
            or bool(known.folders)
            or await storage_remains.is_being_removed(
                tx.connection, remain.host, remain.scope
            )
        )
    return is_known(Thing(remain.kind, remain.name), known)


async def care(platform: Platform) -> int:
    """Look through all hosts that answer, and remove what has had its time."""
    removed = 0
    for host in awake(platform):
        try:
            with_trash = await look_through(platform, [host])
            removed += await remove_remains(platform, [host])
            for folder_id in with_trash:
                removed += await empty_old_trash(platform, folder_id)
        except HubError as error:
            log.info("storage host %s was not looked through: %s", host, error.message)
    return removed


def awake(platform: Platform) -> list[str]:
    """Return the hosts that answer: the others are not waited for."""
    return [
        name
        for name, health in platform.storage.health().items()
        if health.state in {"ok", "slow"}
    ]


def is_checking(platform: Platform) -> bool:
    """Tell whether hosts are being looked through because somebody asked for it."""
    return any(name.startswith(CHECK) for name in platform.folder_work.names())
