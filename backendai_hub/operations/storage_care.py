"""Comparing what lies on storage hosts with what the platform knows.

Whatever happens, a row tells of what is on a disk: it is written first. What no row
tells of was left by a crash, a restored database or a host that was away. It is noted,
with the database's time, when it is seen for the first time. What nobody can miss
(halves of uploads, copies and removals, scopes of people who are gone) is removed after
a time of grace; folders and what was thrown away in them are reported, and removed when
an administrator says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final, Literal

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.storage import (
    Remain,
    RemainsPage,
    StorageCheck,
    StorageCheckRequest,
)
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import (
    HubError,
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
)
from backendai_hub.core.times import format_time
from backendai_hub.db import quota_scopes, storage_remains
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folder_tasks import read_time
from backendai_hub.db.storage_remains import Known, RemainRecord, Thing
from backendai_hub.operations.file_trash import empty_old_trash
from backendai_hub.operations.folder_work import LONG
from backendai_hub.operations.platform import Platform
from backendai_hub.storage.ops import (
    ListRemains,
    ListScopes,
    Place,
    RemoveRemain,
    RemoveScope,
)
from backendai_hub.storage.places import TASK

log = logging.getLogger("backendai_hub.storage")

SCOPE: Final = "scope"
MISSING: Final = "missing"
WAIT_SECONDS: Final = 20.0
"""So long who asks for a check waits; then it goes on alone."""
_CHECK: Final = "check storage"
_LONGEST: Final = 256
_PAGE: Final = 1000

REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "folder": "no folder has this id any more",
        "trash": "the folder that this was thrown away in is gone",
        "upload": "there is no such upload any more",
        "removing": "its removal was not ended",
        "cloning": "its copying was not ended",
        "staging": "it was not ended when the storage's worker was",
        "unknown": "the platform puts nothing here; look at it yourself",
        SCOPE: "its user or project is gone",
        MISSING: "the folder is not on the storage",
    }
)
UNMISSED: Final = frozenset({"upload", "removing", "cloning", "staging", SCOPE})
"""What is removed without asking: it was never complete, or is on its way out."""
REPAIRED: Final = UNMISSED | {"folder", "trash"}
"""What is removed when an administrator says so."""


def find_strange(things: Collection[Thing], known: Known) -> dict[Thing, str]:
    """Choose what nobody knows, with the reason in words."""
    there = {thing.name for thing in things if thing.kind == "folder"}
    strange = [thing for thing in things if not _is_known(thing, known)]
    strange += [Thing(MISSING, one) for one in known.settled - there - known.busy]
    if not known.has_owner and not known.folders and not known.is_unmanaged:
        strange.append(Thing(SCOPE, ""))
    return {
        Thing(thing.kind, thing.name[:_LONGEST]): REASONS[thing.kind]
        for thing in strange
    }


def _is_known(thing: Thing, known: Known) -> bool:
    alive = known.folders | known.busy
    if thing.kind == "upload":
        return thing.name in known.uploads
    if thing.kind in {"folder", "trash", "cloning"}:
        return thing.name in alive
    if thing.kind == "staging":
        return thing.name.startswith(TASK) and thing.name[len(TASK) :] in known.tasks
    if thing.kind == "removing":
        return thing.name.removesuffix(".trash") in alive
    return False


def choose_remover(
    thing: Thing, scope: str, ended: Collection[str]
) -> Literal["alone", "repair", "no"]:
    """Tell who removes something: the platform alone, when that is said, or nobody.

    An unmanaged folder may be another platform's, too, and what lies in it be of use
    there. Of what nobody knows here only what our own tasks have left is surely ours:
    those that have *ended*.
    """
    if storage_remains.is_unmanaged(scope):
        return "repair" if _task_of(thing) in ended else "no"
    if thing.kind in UNMISSED:
        return "alone"
    return "repair" if thing.kind in REPAIRED else "no"


def _task_of(thing: Thing) -> str:
    """Return the id of the task that something is said to belong to, if any."""
    if thing.kind != "staging" or not thing.name.startswith(TASK):
        return ""
    return thing.name.removeprefix(TASK)


async def _list_ended(
    connection: AsyncConnection, remains: Collection[RemainRecord]
) -> frozenset[str]:
    """Find which of our tasks that have ended left some of this."""
    tasks = {_task_of(Thing(one.kind, one.name)) for one in remains}
    return await storage_remains.list_ended_tasks(connection, tasks - {""})


def may_go(
    thing: Thing, scope: str, known: Known, ended: Collection[str], *, repair: bool
) -> bool:
    """Tell whether something is to be removed, once its time of grace is over.

    Without being asked nothing is touched in scopes that this platform has not made:
    somebody else may use the storage, too.
    """
    remover = choose_remover(thing, scope, ended)
    if repair:
        return remover != "no"
    return remover == "alone" and (known.is_ours or known.has_owner)


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
        ended = await _list_ended(tx.connection, [remain])
        if not may_go(thing, scope, known, ended, repair=repair):
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
    return _is_known(Thing(remain.kind, remain.name), known)


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


# --- for administrators ------------------------------------------------------------


class RemainsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which of what was found: on one host, and from where on."""

    host: str | None = None
    limit: int = 200
    after: str | None = None


async def list_remains(platform: Platform, query: RemainsQuery) -> RemainsPage:
    """List what was found on storage hosts and belongs to nobody."""
    if not 1 <= query.limit <= _PAGE:
        raise InvalidRequestError(f"limit: {query.limit} is not between 1 and {_PAGE}")
    hosts = [query.host] if query.host is not None else platform.storage.names()
    after = None if query.after is None else _read_cursor(query.after)
    async with platform.database.read() as connection:
        now = await read_time(connection)
        found = await storage_remains.list_remains(
            connection, hosts, after=after, limit=query.limit + 1
        )
        ended = await _list_ended(connection, found)
    page = found[: query.limit]
    until = now - platform.settings.storage_grace
    following = None
    if len(found) > query.limit:
        last = page[-1]
        following = "/".join((last.host, last.scope, last.kind, last.name))
    return RemainsPage(
        items=[_show(one, ended, is_due=one.found_at <= until) for one in page],
        next=following,
        running=any(name.startswith(_CHECK) for name in platform.folder_work.names()),
    )


def _read_cursor(after: str) -> tuple[str, str, str, str]:
    parts = after.split("/", 3)
    if len(parts) != 4 or "\0" in after:
        raise MalformedRequestError("after: not a cursor of this list")
    host, scope, kind, name = parts
    return host, scope, kind, name


def _show(remain: RemainRecord, ended: Collection[str], *, is_due: bool) -> Remain:
    thing = Thing(remain.kind, remain.name)
    return Remain(
        host=remain.host,
        scope=remain.scope,
        kind=remain.kind,
        name=remain.name,
        reason=remain.reason,
        found_at=format_time(remain.found_at) or "",
        removable=choose_remover(thing, remain.scope, ended),
        is_due=is_due,
    )


async def check_storage(
    platform: Platform, who: str, body: StorageCheckRequest
) -> StorageCheck:
    """Look through hosts now; with ``repair`` remove what has had its time."""
    if body.host is not None and body.host not in platform.storage.names():
        raise NotFoundError(f"there is no storage host {body.host[:64]!r}")
    asked = platform.storage.names() if body.host is None else (body.host,)
    hosts = [name for name in awake(platform) if name in asked]

    async def work() -> int:
        await look_through(platform, hosts)
        if not body.repair:
            return 0
        return await remove_remains(platform, hosts, repair=True, who=who)

    name = f"{_CHECK} {body.repair} {' '.join(hosts)}"
    checking = platform.folder_work.begin(name, work)
    done, _ = await asyncio.wait([checking], timeout=WAIT_SECONDS)
    page = await list_remains(platform, RemainsQuery(host=body.host, limit=_PAGE))
    return StorageCheck(
        hosts=hosts,
        silent=sorted(set(asked) - set(hosts)),
        running=not done,
        removed=checking.result() if done else 0,
        items=page.items,
        next=page.next,
        grace_hours=platform.settings.storage_grace / timedelta(hours=1),
    )
