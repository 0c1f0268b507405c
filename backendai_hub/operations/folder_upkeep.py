"""What time does to folders: the trash, sizes on disk, limits, and old rows."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from backendai_hub.core.errors import HubError
from backendai_hub.core.vfolders import FolderStatus
from backendai_hub.db import folder_tasks, folders, quota_scopes
from backendai_hub.db.folders import FolderRecord
from backendai_hub.db.quota_scopes import ScopeRecord
from backendai_hub.db.tables import FolderRow, QuotaScopeRow
from backendai_hub.operations.folder_access import place_of
from backendai_hub.operations.folder_making import forget_folder
from backendai_hub.operations.folder_work import LONG
from backendai_hub.operations.folders import begin_removal
from backendai_hub.operations.platform import Platform
from backendai_hub.storage.ops import MakeScope, ScanUsage, ScopeUsage

log = logging.getLogger("backendai_hub.folders")

SCAN_SECONDS: Final = 300.0
"""A scope is counted anew this long after it was counted."""
KEEP_DAYS: Final = 7
"""How long it stays known that a folder was removed, or a task has ended."""
_PER_PASS: Final = 100


# --- the trash -------------------------------------------------------------------


async def empty_trash(platform: Platform) -> int:
    """Remove for good what was thrown away long enough ago; return how much.

    By the database's own clock, and never what a live session still has.
    """
    days = platform.settings.folder_trash_days
    if not days:
        return 0
    async with platform.database.read() as connection:
        until = await folder_tasks.read_time(connection) - timedelta(days=days)
        due = await folders.list_folders(connection, _thrown_before(until))
    removed = 0
    for folder in due[:_PER_PASS]:
        removed += await _remove(platform, folder)
    return removed


def _thrown_before(moment: object) -> object:
    return (FolderRow.status == str(FolderStatus.DELETE_PENDING)) & (
        FolderRow.trashed_at <= moment
    )


async def _remove(platform: Platform, folder: FolderRecord) -> bool:
    try:
        async with platform.database.transaction() as tx:
            now = await folders.find_folder(tx.connection, folder.id, lock=True)
            if now is None or now.trashed_at != folder.trashed_at:
                return False
            await begin_removal(platform, tx, now, None)
    except HubError as error:
        log.info("folder %s stays in the trash: %s", folder.id, error.message)
        return False
    return True


async def forget_removed(platform: Platform) -> int:
    """Forget folders that were removed, and tasks that ended, some days ago."""
    async with platform.database.transaction() as tx:
        until = await folder_tasks.read_time(tx.connection) - timedelta(days=KEEP_DAYS)
        gone = await folders.list_folders(
            tx.connection,
            (FolderRow.status == str(FolderStatus.DELETE_COMPLETE))
            & (FolderRow.status_changed_at < until),
        )
        for folder in gone:
            await forget_folder(tx, folder.id)
        await folder_tasks.forget_tasks(tx, KEEP_DAYS)
    return len(gone)


# --- sizes and limits ------------------------------------------------------------


async def count_scopes(platform: Platform) -> int:
    """Count anew what has not been counted for a while; return how many scopes."""
    hosts = _awake(platform)
    old = platform.database.clock() - timedelta(seconds=SCAN_SECONDS)
    async with platform.database.read() as connection:
        due = await quota_scopes.list_due(connection, hosts, old, _PER_PASS)
    counted = 0
    for scope in due:
        counted += await _count(platform, scope)
    return counted


def _awake(platform: Platform) -> list[str]:
    """Return the hosts that answer: the others are not waited for."""
    return [
        name
        for name, health in platform.storage.health().items()
        if health.state in {"ok", "slow"}
    ]


async def _count(platform: Platform, scope: ScopeRecord) -> bool:
    try:
        use = await platform.storage.call(scope.host, ScopeUsage(scope=scope.scope))
        size, files = use.bytes, use.files
        if not use.known:
            counted = await platform.storage.call(
                scope.host, ScanUsage(scope=scope.scope), deadline=LONG
            )
            size, files = counted.kept, counted.files
        elif not use.counts_files:
            async with platform.database.read() as connection:
                files = await quota_scopes.sum_files(connection, scope)
    except HubError as error:
        log.info("scope %s on %s: %s", scope.scope, scope.host, error.message)
        return False
    async with platform.database.transaction() as tx:
        await quota_scopes.note_scan(tx, scope, counted_bytes=size, counted_files=files)
    await _count_folders(platform, scope)
    return True


async def _count_folders(platform: Platform, scope: ScopeRecord) -> None:
    """Count each folder of a scope for itself, too."""
    async with platform.database.read() as connection:
        found = await folders.list_folders(
            connection,
            (FolderRow.host == scope.host)
            & (FolderRow.scope == scope.scope)
            & FolderRow.status.in_([str(s) for s in _COUNTED]),
        )
    for folder in found:
        try:
            counted = await platform.storage.call(
                folder.host,
                ScanUsage(place=place_of(folder), with_trash=True),
                deadline=LONG,
            )
        except HubError as error:
            log.info("folder %s: %s", folder.id, error.message)
            continue
        async with platform.database.transaction() as tx:
            await folders.note_size(tx, folder, counted.kept, counted.files)


_COUNTED: Final = (FolderStatus.READY, FolderStatus.DELETE_PENDING)


async def apply_limits(platform: Platform) -> int:
    """Tell hosts the limits that policies or administrators have changed."""
    hosts = _awake(platform)
    async with platform.database.read() as connection:
        known = await quota_scopes.list_scopes(
            connection, QuotaScopeRow.host.in_(hosts), limit=100_000
        )
    changed = [
        scope
        for scope in known
        if scope.folders
        and (scope.most_bytes, scope.most_files)
        != (scope.applied_bytes, scope.applied_files)
    ]
    for scope in changed:
        await _apply(platform, scope)
    return len(changed)


async def _apply(platform: Platform, scope: ScopeRecord) -> None:
    try:
        await platform.storage.call(
            scope.host,
            MakeScope(
                scope=scope.scope,
                limit_bytes=scope.most_bytes,
                limit_files=scope.most_files,
            ),
        )
    except HubError as error:
        log.warning("limit of %s on %s: %s", scope.scope, scope.host, error.message)
        return
    async with platform.database.transaction() as tx:
        await quota_scopes.change_scope(
            tx,
            scope.host,
            scope.scope,
            applied_bytes=scope.most_bytes,
            applied_files=scope.most_files,
            applied_at=tx.now,
        )
