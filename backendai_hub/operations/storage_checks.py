"""What administrators are told of what belongs to nobody, and what they ask for."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import msgspec

from backendai_hub.api.storage import (
    Remain,
    RemainsPage,
    StorageCheck,
    StorageCheckRequest,
)
from backendai_hub.core.errors import (
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
)
from backendai_hub.core.times import format_time
from backendai_hub.db import storage_remains
from backendai_hub.db.folder_tasks import read_time
from backendai_hub.db.storage_remains import RemainRecord, Thing
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.remain_rules import choose_remover
from backendai_hub.operations.storage_care import (
    CHECK,
    awake,
    is_checking,
    look_through,
    remove_remains,
)

WAIT_SECONDS: Final = 20.0
"""So long who asks for a check waits; then it goes on alone."""
_PAGE: Final = 1000


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
    page = found[: query.limit]
    until = now - platform.settings.storage_grace
    following = None
    if len(found) > query.limit:
        last = page[-1]
        following = "/".join((last.host, last.scope, last.kind, last.name))
    return RemainsPage(
        items=[_show(one, is_due=one.found_at <= until) for one in page],
        next=following,
        running=is_checking(platform),
    )


def _read_cursor(after: str) -> tuple[str, str, str, str]:
    parts = after.split("/", 3)
    if len(parts) != 4 or "\0" in after:
        raise MalformedRequestError("after: not a cursor of this list")
    host, scope, kind, name = parts
    return host, scope, kind, name


def _show(remain: RemainRecord, *, is_due: bool) -> Remain:
    thing = Thing(remain.kind, remain.name)
    return Remain(
        host=remain.host,
        scope=remain.scope,
        kind=remain.kind,
        name=remain.name,
        reason=remain.reason,
        found_at=format_time(remain.found_at) or "",
        removable=choose_remover(thing, remain.scope),
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

    name = f"{CHECK} {body.repair} {' '.join(hosts)}"
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
