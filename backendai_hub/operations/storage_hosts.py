"""Storage hosts as people see them, and the quota scopes on them."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import and_, or_, select, true

from backendai_hub.api.folders import (
    QuotaScope,
    QuotaScopeChange,
    QuotaScopePage,
    StorageHost,
    TaskPage,
)
from backendai_hub.core.access import Action, Principal, Reach, reach
from backendai_hub.core.audit import Act
from backendai_hub.core.cursors import read_cursor, write_cursor
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
)
from backendai_hub.core.fields import INFINITE
from backendai_hub.core.slots import parse_amount
from backendai_hub.core.tenancy import Actor
from backendai_hub.core.times import format_time
from backendai_hub.core.vfolders import (
    FolderTask,
    HostPermissions,
    TaskKind,
    TaskState,
    split_scope,
)
from backendai_hub.db import folder_tasks, folders, quota_scopes
from backendai_hub.db.quota_scopes import ScopeRecord
from backendai_hub.db.tables import (
    FolderRow,
    FolderTaskRow,
    ProjectRow,
    QuotaScopeRow,
    UserRow,
)
from backendai_hub.operations.folder_access import load_permissions
from backendai_hub.operations.folder_making import act_of, give_up
from backendai_hub.operations.platform import Platform

MOST_PER_PAGE: Final = 200


# --- hosts -----------------------------------------------------------------------


async def list_hosts(
    platform: Platform, principal: Principal, user: Actor | None
) -> list[StorageHost]:
    """List the hosts on which the caller may do anything; administrators see all."""
    async with platform.database.read() as connection:
        permissions = await load_permissions(connection, principal, user)
    everything = reach(principal, Action.READ_STORAGE_HOSTS) is Reach.ALL
    return [
        _show_host(platform, name, permissions, everything=everything)
        for name in platform.storage.names()
        if everything or name in permissions
    ]


def _show_host(
    platform: Platform, name: str, permissions: HostPermissions, *, everything: bool
) -> StorageHost:
    health = platform.storage.health()[name]
    used = None
    if health.total_bytes:
        used = round(100 * (1 - health.free_bytes / health.total_bytes), 1)
    if not (everything or platform.settings.storage_shows_use):
        used = None
    return StorageHost(
        name=name,
        is_default=name == platform.storage.default,
        state=str(health.state),
        permissions=sorted(permissions.get(name, ())),
        capabilities=sorted(health.capabilities),
        reason=health.reason if everything else "",
        since=format_time(health.since),
        used_percent=used,
        total_bytes=health.total_bytes if everything else None,
        free_bytes=health.free_bytes if everything else None,
    )


# --- quota scopes ----------------------------------------------------------------


class ScopeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which quota scopes: on one host, of one kind, and from where on."""

    host: str | None = None
    kind: str | None = None
    limit: int = 50
    after: str | None = None


async def list_quota_scopes(
    platform: Platform, principal: Principal, query: ScopeQuery
) -> QuotaScopePage:
    """List the quota scopes the caller may see: their own, their domain's, or all."""
    _check_limit(query.limit)
    condition = _scopes_in_sight(principal)
    if query.host is not None:
        condition &= QuotaScopeRow.host == query.host
    if query.kind is not None:
        condition &= QuotaScopeRow.kind == query.kind
    after = None if query.after is None else read_cursor(query.after, tuple[str, str])
    async with platform.database.read() as connection:
        found = await quota_scopes.list_scopes(
            connection, condition, after=after, limit=query.limit + 1
        )
    page = found[: query.limit]
    following = None
    if len(found) > query.limit:
        following = write_cursor(page[-1].host, page[-1].scope)
    return QuotaScopePage(
        items=[_show_scope(platform, scope) for scope in page], next=following
    )


def _scopes_in_sight(principal: Principal) -> Any:
    extent = reach(principal, Action.READ_QUOTA_SCOPES)
    if extent is Reach.ALL:
        return true()
    own = QuotaScopeRow.owner_id.in_(sorted(principal.holds))
    if extent is not Reach.DOMAIN:
        return own
    domain_id = principal.domain_id
    people = select(UserRow.id).where(UserRow.domain_id == domain_id)
    projects = select(ProjectRow.id).where(ProjectRow.domain_id == domain_id)
    return or_(
        own,
        QuotaScopeRow.owner_id.in_(people),
        QuotaScopeRow.owner_id.in_(projects),
    )


def _show_scope(platform: Platform, scope: ScopeRecord) -> QuotaScope:
    health = platform.storage.health().get(scope.host)
    own = scope.limit_bytes is not None
    return QuotaScope(
        host=scope.host,
        scope=scope.scope,
        kind=scope.kind,
        owner=scope.owner_name,
        owner_id=scope.owner_id,
        used_bytes=scope.used_bytes,
        used_files=scope.used_files,
        reserved_bytes=scope.reserved_bytes,
        limit_bytes=scope.most_bytes,
        limit_files=scope.most_files,
        limit_from="scope" if own else "policy",
        folders=scope.folders,
        enforced=health is not None and "quota" in health.capabilities,
        scanned_at=format_time(scope.scanned_at),
    )


async def change_quota_scope(
    platform: Platform,
    principal: Principal,
    host: str,
    scope: str,
    body: QuotaScopeChange,
) -> QuotaScope:
    """Give a quota scope limits of its own, or its policy's again."""
    split_scope(scope)
    if host not in platform.storage.names():
        raise NotFoundError(f"there is no storage host {host[:64]!r}")
    changes: dict[str, int | None] = {}
    if body.limit_bytes is not msgspec.UNSET:
        changes["limit_bytes"] = _read_size(body.limit_bytes)
    if body.limit_files is not msgspec.UNSET:
        changes["limit_files"] = _read_count(body.limit_files)
    async with platform.database.transaction() as tx:
        before = await quota_scopes.find_scope(tx.connection, host, scope)
        if before is None:
            kind, owner_id = split_scope(scope)
            row = UserRow if kind == "user" else ProjectRow
            known = select(row.id).where(row.id == owner_id)
            if (await tx.connection.execute(known)).first() is None:
                raise NotFoundError(f"there is no {kind} {owner_id}")
            before = await quota_scopes.ensure_scope(tx, host, scope)
        await quota_scopes.change_scope(tx, host, scope, **changes)
        now = await quota_scopes.find_scope(tx.connection, host, scope)
        assert now is not None
        tx.audit(
            Act(
                action=Action.CHANGE_QUOTA_SCOPE,
                object_kind="quota-scope",
                object_id=scope,
                object_name=f"{host}/{scope}",
                before={name: getattr(before, name) for name in changes},
                after=dict(changes),
            )
        )
        tx.wake("folders")
    return _show_scope(platform, now)


def _read_size(given: str | int | None) -> int | None:
    if given is None:
        return None
    if str(given).strip().lower() in {"-1", *INFINITE}:
        return quota_scopes.UNLIMITED
    try:
        return parse_amount("mem", given)
    except InvalidRequestError as error:
        message = error.message.removeprefix("mem: ")
        raise InvalidRequestError(f"limit_bytes: {message}") from None


def _read_count(given: int | None) -> int | None:
    if given is None or given == quota_scopes.UNLIMITED or 0 < given < 1 << 62:
        return given
    raise InvalidRequestError(
        "limit_files: give a number of files, -1 for no limit, or null for the policy's"
    )


# --- tasks -----------------------------------------------------------------------


class TaskQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks: of one folder, in one state, and from where on."""

    folder: str | None = None
    state: str | None = None
    limit: int = 20
    after: str | None = None


async def list_tasks(
    platform: Platform, principal: Principal, query: TaskQuery
) -> TaskPage:
    """List what is or was done to folders the caller sees, the newest first."""
    _check_limit(query.limit)
    condition = _tasks_in_sight(principal)
    row = FolderTaskRow
    if query.folder is not None:
        condition = and_(condition, row.folder_id == query.folder)
    if query.state is not None:
        if query.state not in set(TaskState):
            raise InvalidRequestError(
                f"state: {query.state[:32]!r} is not one of {', '.join(TaskState)}"
            )
        condition = and_(condition, row.state == query.state)
    async with platform.database.read() as connection:
        found = await folder_tasks.list_tasks(
            connection, condition, after=query.after, limit=query.limit + 1
        )
    page = found[: query.limit]
    more = len(found) > query.limit
    return TaskPage(
        items=[task.show() for task in page], next=page[-1].id if more else None
    )


def _tasks_in_sight(principal: Principal) -> Any:
    """Show everybody their own, and those in folders of theirs and their projects'.

    What others do in a folder that one only shares is not one's business.
    """
    extent = reach(principal, Action.READ_FOLDER_TASKS)
    if extent is Reach.ALL:
        return true()
    kept: Any = FolderRow.owner_id.in_(sorted(principal.holds))
    if extent is Reach.DOMAIN:
        kept |= FolderRow.domain_id == principal.domain_id
    return folder_tasks.is_about(principal.id, select(FolderRow.id).where(kept))


async def read_task(
    platform: Platform, principal: Principal, task_id: str
) -> FolderTask:
    """Return how far a task is."""
    async with platform.database.read() as connection:
        condition = and_(_tasks_in_sight(principal), FolderTaskRow.id == task_id)
        found = []
        if "\0" not in task_id:
            found = await folder_tasks.list_tasks(
                connection, condition, after=None, limit=1
            )
    if not found:
        raise NotFoundError(f"there is no task {task_id[:64]!r}")
    return found[0].show()


CANCELLABLE: Final = frozenset(
    {TaskKind.CLONE, TaskKind.COPY, TaskKind.EXTRACT, TaskKind.SCAN}
)


async def cancel_task(
    platform: Platform, principal: Principal, task_id: str
) -> FolderTask:
    """Stop a task; what it has half done is undone. Refused once it has ended."""
    await read_task(platform, principal, task_id)
    async with platform.database.transaction() as tx:
        # The folder first, as those lock it who end a task.
        about = await folder_tasks.find_task(tx.connection, task_id)
        assert about is not None
        folder = await folders.find_folder(tx.connection, about.folder_id, lock=True)
        task = await folder_tasks.find_task(tx.connection, task_id, lock=True)
        assert task is not None
        extent = reach(principal, Action.CANCEL_FOLDER_TASK)
        in_domain = folder is not None and folder.domain_id == principal.domain_id
        if not (
            task.user_id == principal.id
            or extent is Reach.ALL
            or (extent is Reach.DOMAIN and in_domain)
        ):
            raise ForbiddenError("only who has begun a task cancels it")
        if task.state not in folder_tasks.OPEN:
            raise ConflictError(
                f"this task has ended already ({task.state}); there is nothing to"
                " cancel"
            )
        if task.kind not in CANCELLABLE or folder is None:
            raise InvalidRequestError(
                f"a task of the kind {task.kind} is not cancelled"
            )
        said = f"cancelled by {principal.name}"
        if task.kind is TaskKind.CLONE:
            await give_up(platform, tx, task, folder, said, TaskState.CANCELLED)
        ended = await folder_tasks.end_task(
            tx, task.id, TaskState.CANCELLED, error=said
        )
        if ended:  # the room that was kept for it
            kept = quota_scopes.Room(
                task.arguments.get("reserved", 0),
                task.arguments.get("reserved_files", 0),
            )
            await quota_scopes.give_back(tx, folder, kept)
        tx.audit(act_of(Action.CANCEL_FOLDER_TASK, folder, after={"task": task.id}))
        tx.wake("folders")
    await platform.folder_work.cancel(task.id)
    return await read_task(platform, principal, task_id)


# --- cursors ---------------------------------------------------------------------


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MOST_PER_PAGE:
        raise InvalidRequestError(
            f"limit: {limit} is not between 1 and {MOST_PER_PAGE}"
        )
