"""The rules of virtual folders as a noun: making one, changing it, showing it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.access import Caller, Principal, Target
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.nouns import Noun, Verb
from backendai_hub.core.tenancy import ProjectType
from backendai_hub.core.times import format_time
from backendai_hub.core.vfolders import (
    RECOVERABLE,
    Folder,
    FolderPermission,
    FolderStatus,
    Ownership,
    TaskKind,
    UsageMode,
    check_name_of_project,
    check_permitted,
    check_stays_shared_out,
    is_automount,
    scope_name,
)
from backendai_hub.db import folder_grants, folder_tasks, folders, nouns, quota_scopes
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folders import FolderRecord
from backendai_hub.db.nouns import Item
from backendai_hub.db.session_mounts import count_live
from backendai_hub.db.tables import DomainRow, FolderRow, UserRow
from backendai_hub.operations.folder_access import (
    choose_access,
    load_permissions,
    manages,
    owns,
    require_owner,
)
from backendai_hub.operations.folder_checks import (
    check_active,
    check_may_make,
    check_offered,
    check_unmanaged,
    check_updatable,
    choose_host,
    find_project,
    refuse_taken,
    refuse_taken_for_guests,
    refuse_too_many,
    spell_path,
)
from backendai_hub.operations.folder_making import finish_creation
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.rules import Columns, Rules


class FolderRules(Rules):
    """A folder belongs to somebody, lies somewhere, and keeps its name to itself."""

    # --- making one --------------------------------------------------------------

    async def complete(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        columns: Columns,
    ) -> Columns:
        """Find out whose it is to be, where, and in which quota scope."""
        permitted = await load_permissions(tx.connection, principal, None)
        host = choose_host(platform, columns["host"], permitted)
        project = await find_project(tx, columns["project_id"])
        kind = Ownership.USER if project is None else Ownership.PROJECT
        check_offered(platform, kind)
        owner_id = principal.id
        domain_id = principal.domain_id
        if project is not None:
            check_name_of_project(columns["name"])
            check_active(project)
            owner_id, domain_id = project["id"], project["domain_id"]
            if project["type"] == ProjectType.MODEL_STORE:
                columns = _as_model(columns)
            check_may_make(principal, project, columns["usage_mode"])
        return {
            **columns,
            "unmanaged_path": spell_path(columns["unmanaged_path"]),
            "host": host,
            "ownership_type": str(kind),
            "owner_id": owner_id,
            "user_id": principal.id if project is None else None,
            "domain_id": domain_id,
            "creator": principal.name,
            "creator_id": principal.id,
            "scope": "" if columns["unmanaged_path"] else scope_name(kind, owner_id),
        }

    def target(self, item_id: str, columns: Columns, principal: Principal) -> Target:
        """A folder is its owner's, in the owner's domain."""
        del item_id, principal
        return Target(columns["owner_id"], columns["domain_id"])

    async def check(
        self,
        platform: Platform,
        tx: Transaction,
        principal: Principal,
        old: Item | None,
        columns: Columns,
    ) -> None:
        """Refuse what is not permitted, too many, or named like another."""
        if old is None:
            permissions = await load_permissions(tx.connection, principal, None)
            check_permitted(permissions, columns["host"], HostPermission.CREATE)
            owner_id = columns["owner_id"]
            kind = Ownership(columns["ownership_type"])
            await refuse_too_many(tx, owner_id, kind)
            await refuse_taken(tx, principal.id, owner_id, columns["name"])
            if columns["unmanaged_path"]:
                check_unmanaged(platform, columns["host"], columns["unmanaged_path"])
            return
        await self._check_change(tx, principal, old, columns)

    async def _check_change(
        self, tx: Transaction, principal: Principal, old: Item, columns: Columns
    ) -> None:
        folder = await folders.find_folder(tx.connection, old["id"], lock=True)
        assert folder is not None
        action = self.noun.action(Verb.UPDATE)
        await require_owner(
            tx.connection, principal, folder, action, HostPermission.MODIFY
        )
        check_updatable(folder)
        if folder.is_model_store and "permission" in columns:
            raise InvalidRequestError(
                "permission: what lies in a model store is read-only for all but who"
                " made it; share it with those who are to write"
            )
        name = columns.get("name")
        if name is None:
            return
        if folder.project_id is not None:
            check_name_of_project(name)
        check_stays_shared_out(folder.ownership_type, folder.name, name)
        if is_automount(name):
            await refuse_taken_for_guests(tx, folder, name)
        whose = folder.user_id or principal.id
        await refuse_taken(tx, whose, folder.owner_id, name, other_than=folder.id)

    async def create(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        item_id: str,
        columns: Columns,
    ) -> dict[str, Any]:
        """Store the intent; :meth:`settle` makes the folder itself."""
        del noun
        managed = not columns["unmanaged_path"]
        status = FolderStatus.PERFORMING if managed else FolderStatus.READY
        values = {**columns, "id": item_id, "status": str(status)}
        await folders.insert_folder(tx, values)
        folder = await folders.find_folder(tx.connection, item_id)
        if folder is None:
            return {}
        if folder.is_model_store:
            await folder_grants.put_grant(
                tx,
                item_id,
                columns["creator_id"],
                FolderPermission.READ_WRITE,
                kind="override",
            )
        if managed:
            await quota_scopes.ensure_scope(tx, folder.host, folder.scope)
            task_id = platform.new_id()
            await folder_tasks.insert_task(tx, task_id, TaskKind.CREATE, item_id)
        else:
            tx.record(
                Event(
                    kind=EventKind.FOLDER_CREATED,
                    text=f"folder {folder.name} has been made",
                    actor=folder.creator,
                    owner_id=folder.owner_id,
                    folder_id=folder.id,
                    status=str(status),
                )
            )
        return {}

    async def settle(
        self, platform: Platform, principal: Principal, noun: Noun, shown: Any
    ) -> Any:
        """Have the folder made on its host; if it cannot be, there is none."""
        del noun
        await finish_creation(platform, shown.id)
        async with platform.database.read() as connection:
            item = await nouns.find_item(connection, self.noun, shown.id)
            assert item is not None
            made = await self.present(connection, self.noun, [item])
            return (await self.personalise(platform, connection, principal, made))[0]

    # --- changing and showing ----------------------------------------------------

    async def change(
        self,
        platform: Platform,
        tx: Transaction,
        noun: Noun,
        old: Item,
        changes: Columns,
    ) -> Columns:
        """Tell that it is another now."""
        name = changes.get("name")
        what = (
            f"renamed to {name}" if name else f"changed: {', '.join(sorted(changes))}"
        )
        tx.record(
            Event(
                kind=EventKind.FOLDER_CHANGED,
                text=f"folder {old['name']} has been {what}",
                owner_id=old["owner_id"],
                folder_id=old["id"],
                status=old["status"],
            )
        )
        return await super().change(platform, tx, noun, old, changes)

    async def present(
        self, connection: AsyncConnection, noun: Noun, items: Sequence[Item]
    ) -> list[Any]:
        """Show folders with their owners' names and how many sessions have them."""
        live = await count_live(connection, [item["id"] for item in items])
        users = await _load_names(connection, UserRow, [i["user_id"] for i in items])
        domains = await _load_names(
            connection, DomainRow, [i["domain_id"] for i in items]
        )
        shown = []
        for item in items:
            mounted = live.get(item["id"], 0)
            status = item["status"]
            if mounted and status == FolderStatus.READY:
                status = str(FolderStatus.MOUNTED)
            shown.append(
                nouns.present(
                    noun,
                    item,
                    user=users.get(item["user_id"]),
                    domain=domains.get(item["domain_id"], ""),
                    status=status,
                    mounted_by=mounted,
                )
            )
        return shown

    async def personalise(
        self,
        platform: Platform,
        connection: AsyncConnection,
        principal: Principal,
        shown: list[Any],
    ) -> list[Any]:
        """Say what the caller may do inside each of them, and how long it stays."""
        ids = [folder.id for folder in shown]
        known = await folders.list_folders(connection, FolderRow.id.in_(ids))
        records = {record.id: record for record in known}
        given = await folder_grants.load_grants_of(connection, principal.id, ids)
        seen: list[Folder] = []
        for folder in shown:
            record = records.get(folder.id)
            if record is None:
                continue
            access = choose_access(principal, record, given.get(record.id))
            managed = manages(principal, record, self.noun.action(Verb.READ))
            seen.append(
                msgspec.structs.replace(
                    folder,
                    # Where things lie on machines is their operators' business.
                    unmanaged_path=folder.unmanaged_path if managed else "",
                    access=None if access is None else str(access),
                    is_owner=owns(principal, record),
                    purge_at=purge_time(platform, record),
                )
            )
        if principal.caller is Caller.SPAWNER:
            return [as_choice(folder) for folder in seen]
        return seen


def as_choice(folder: Folder) -> Folder:
    """Keep of a folder what people see while they choose for a session."""
    return Folder(
        id=folder.id,
        name=folder.name,
        host=folder.host,
        project=folder.project,
        usage_mode=folder.usage_mode,
        permission=folder.permission,
        ownership_type=folder.ownership_type,
        user=folder.user,
        status=folder.status,
        access=folder.access,
        is_owner=folder.is_owner,
    )


def purge_time(platform: Platform, folder: FolderRecord) -> str | None:
    """Return when a folder that is in the trash is removed for good."""
    days = platform.settings.folder_trash_days
    if folder.trashed_at is None or not days or folder.status not in RECOVERABLE:
        return None
    return format_time(folder.trashed_at + timedelta(days=days))


def _as_model(columns: Columns) -> Columns:
    """Keep a model store to models, which only their makers change."""
    if columns["usage_mode"] not in {UsageMode.GENERAL, UsageMode.MODEL}:
        raise InvalidRequestError(
            "usage_mode: a model store holds folders of the usage mode 'model' only"
        )
    return {
        **columns,
        "usage_mode": str(UsageMode.MODEL),
        "permission": str(FolderPermission.READ_ONLY),
    }


async def _load_names(
    connection: AsyncConnection, row: Any, ids: Sequence[str | None]
) -> dict[str | None, str]:
    wanted = sorted({one for one in ids if one is not None})
    if not wanted:
        return {}
    found = await connection.execute(select(row.id, row.name).where(row.id.in_(wanted)))
    return {str(key): str(name) for key, name in found}
