"""Virtual folders made through the operations, on a real storage host of the test's."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from backendai_hub.api.folders import (
    CloneRequest,
    InviteRequest,
    PurgeRequest,
    RestoreRequest,
)
from backendai_hub.core.access import Caller, Principal
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Role
from backendai_hub.core.vfolders import (
    Folder,
    FolderPermission,
    Ownership,
    folder_parts,
    scope_name,
)
from backendai_hub.db.engine import Database
from backendai_hub.db.signals import Signals
from backendai_hub.db.tables import FolderTaskRow, UserRow
from backendai_hub.operations import (
    folder_cloning,
    folder_invitations,
    folders,
    nouns,
)
from backendai_hub.operations.platform import Platform, new_id
from backendai_hub.operations.users import ensure_user
from backendai_hub.reconcilers.folders import FoldersReconciler
from backendai_hub.storage.hosts import StorageHosts
from tests.factories import make_platform, prepare, principal_of
from tests.harness import until
from tests.tenants import Office

EVERYTHING = ["*"]


@dataclass
class Archive:
    """A platform with a storage host called local, and people who use it."""

    platform: Platform
    root: Path

    @property
    def office(self) -> Office:
        return Office(self.platform)

    async def person(self, name: str, role: Role = Role.USER) -> Principal:
        """Return somebody as the API sees them, with all scopes of their role."""
        caller = {
            Role.USER: Caller.USER,
            Role.DOMAIN_ADMIN: Caller.DOMAIN_ADMIN,
            Role.SUPERADMIN: Caller.SUPERADMIN,
            Role.MONITOR: Caller.MONITOR,
        }[role]
        if role is not Role.USER:
            await ensure_user(self.platform, name)
            async with self.platform.database.transaction() as tx:
                await tx.execute(
                    update(UserRow).where(UserRow.name == name).values(role=str(role))
                )
        return await principal_of(self.platform, name, caller)

    async def make(self, who: Principal | str, name: str, **fields: Any) -> Folder:
        if isinstance(who, str):
            who = await self.person(who)
        noun = noun_of("folder")
        body = noun.create_type(name=name, **fields)
        made: Folder = await nouns.create_noun(self.platform, who, noun, body)
        return made

    async def change(self, who: Principal, reference: str, **fields: Any) -> Folder:
        noun = noun_of("folder")
        body = noun.change_type(**fields)
        changed: Folder = await nouns.change_noun(
            self.platform, who, noun, reference, body
        )
        return changed

    async def read(self, who: Principal, reference: str) -> Folder:
        found: Folder = await nouns.read_noun(
            self.platform, who, noun_of("folder"), reference
        )
        return found

    async def names(self, who: Principal, **query: str) -> list[str]:
        found, _ = await nouns.list_nouns(self.platform, who, noun_of("folder"), query)
        return [folder.name for folder in found]

    async def trash(self, who: Principal, reference: str) -> Folder:
        return await folders.trash_folder(self.platform, who, reference)

    async def restore(
        self, who: Principal, reference: str, name: str | None = None
    ) -> Folder:
        body = RestoreRequest(name=name)
        return await folders.restore_folder(self.platform, who, reference, body)

    async def purge(
        self, who: Principal, reference: str, typed: str, *, force: bool = False
    ) -> Folder | None:
        body = PurgeRequest(name=typed, force=force)
        return await folders.purge_folder(self.platform, who, reference, body)

    async def clone(
        self, who: Principal, reference: str, name: str, **more: Any
    ) -> Any:
        body = CloneRequest(name=name, **more)
        return await folder_cloning.clone_folder(self.platform, who, reference, body)

    async def invite(
        self, who: Principal, reference: str, *users: str, permission: str = "ro"
    ) -> list[Any]:
        body = InviteRequest(users=list(users), permission=FolderPermission(permission))
        return await folder_invitations.invite_people(
            self.platform, who, reference, body
        )

    async def share(
        self, who: Principal, reference: str, guest: Principal, permission: str = "ro"
    ) -> None:
        """Invite somebody, who accepts."""
        (outcome,) = await self.invite(
            who, reference, guest.name, permission=permission
        )
        assert outcome.error is None, outcome
        await folder_invitations.accept_invitation(
            self.platform, guest, outcome.invitation
        )

    async def settle(self) -> None:
        """Let everything that has been decided be done on disk."""
        reconciler = FoldersReconciler(self.platform, Signals())
        while await reconciler._begin_tasks() or len(self.platform.folder_work):
            await self.platform.folder_work.wait_all()

    def place(self, folder: Folder, owner_id: str) -> Path:
        """Return where a folder is on disk."""
        kind = Ownership(folder.ownership_type)
        return self.root.joinpath(*folder_parts(scope_name(kind, owner_id), folder.id))

    async def tasks(self) -> list[tuple[str, str]]:
        async with self.platform.database.read() as connection:
            rows = await connection.execute(
                select(FolderTaskRow.kind, FolderTaskRow.state).order_by(
                    FolderTaskRow.id
                )
            )
            return [(row.kind, row.state) for row in rows]


@asynccontextmanager
async def opened_archive(
    database: Database, folder: Path, *, mark: str = "ours", **host: Any
) -> AsyncIterator[Archive]:
    """Start a platform with a storage host in *folder*."""
    described = {"local": {"driver": "dir", "path": str(folder), **host}}
    hosts = StorageHosts(described, "local", mark=mark)
    hosts.start()
    try:
        await until(
            lambda: all(h.state != "starting" for h in hosts.health().values()),
            "the storage host has said how it is",
        )
        made = dataclasses.replace(
            make_platform(database), storage=hosts, new_id=new_id
        )
        await prepare(made)
        await permit(made, {"local": EVERYTHING})
        yield Archive(made, folder)
        await made.folder_work.close()
    finally:
        await hosts.close()


async def permit(
    platform: Platform, hosts: dict[str, list[str]], domain: str = "default"
) -> None:
    """Say what the people of a domain may do on storage hosts."""
    await Office(platform).change("domain", domain, allowed_vfolder_hosts=hosts)
