"""What a site decides about folders: owners, hosts, sizes, and what people are told."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from backendai_hub.api.folders import GuestChange, LeaveRequest, ShareRequest
from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.errors import (
    ForbiddenError,
    InsufficientStorageError,
    InvalidRequestError,
    LimitReachedError,
)
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.mounts import MountRequest
from backendai_hub.core.tenancy import Role
from backendai_hub.core.vfolders import FolderPermission
from backendai_hub.db.engine import Database
from backendai_hub.operations import files, storage_hosts, uploads
from backendai_hub.operations import folder_sharing as sharing
from backendai_hub.operations.session_mounts import choose_mounts
from backendai_hub.operations.uploads import Wish
from backendai_hub.operations.users import ensure_user
from backendai_hub.storage.hosts import StorageHosts
from tests.folders import Archive, opened_archive, permit


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


def decided(archive: Archive, **changes: Any) -> Archive:
    """Return the same with other decisions of the site."""
    settings = dataclasses.replace(archive.platform.settings, **changes)
    platform = dataclasses.replace(archive.platform, settings=settings)
    return Archive(platform, archive.root)


async def test_v1_without_a_host_there_is_nowhere_to_keep_a_folder(archive: Archive):
    alice = await archive.person("alice")
    nowhere = dataclasses.replace(archive.platform, storage=StorageHosts())
    with pytest.raises(InvalidRequestError, match="no storage host is configured"):
        await Archive(nowhere, archive.root).make(alice, "data")


async def test_v6_a_site_says_whose_folders_there_may_be(archive: Archive):
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)
    only = decided(archive, folder_owners=frozenset({"project"}))
    with pytest.raises(InvalidRequestError, match="no folders of a user"):
        await only.make(boss, "data")
    only = decided(archive, folder_owners=frozenset({"user"}))
    await only.make(boss, "data")
    with pytest.raises(InvalidRequestError, match="no folders of a project"):
        await only.make(boss, "plans", project="default")


async def test_v9_a_project_has_as_many_folders_as_its_policy_says(archive: Archive):
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)
    await archive.office.change("project-policy", "default", max_vfolder_count=1)
    await archive.make(boss, "plans", project="default")
    with pytest.raises(LimitReachedError, match="1 of 1 that the project policy"):
        await archive.make(boss, "more", project="default")
    await archive.make(boss, "mine")


async def test_v12_a_projects_scope_holds_as_much_as_its_policy_says(archive: Archive):
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)
    await archive.office.change("project-policy", "default", max_quota_scope_size="1m")
    made = await archive.make(boss, "plans", project="default")
    user = await ensure_user(archive.platform, "boss")
    wish = Wish("file", (1 << 20) + 1, "fail")
    with pytest.raises(InsufficientStorageError, match="project default may keep 1m"):
        await uploads.begin_upload(archive.platform, boss, user, made.id, wish)


async def test_v12_a_scope_holds_as_much_as_its_owners_policy_says(archive: Archive):
    alice = await archive.person("alice")
    office = archive.office
    await office.change("user-policy", "default", max_quota_scope_size="1m")
    made = await archive.make(alice, "data")

    query = storage_hosts.ScopeQuery()
    page = await storage_hosts.list_quota_scopes(archive.platform, alice, query)
    (scope,) = page.items
    assert (scope.limit_bytes, scope.limit_from) == (1 << 20, "policy")
    user = await ensure_user(archive.platform, "alice")
    wish = Wish("file", (1 << 20) + 1, "fail")
    with pytest.raises(InsufficientStorageError, match="may keep 1m"):
        await uploads.begin_upload(archive.platform, alice, user, made.id, wish)


async def test_how_full_hosts_are_is_shown_as_far_as_the_site_wants(archive: Archive):
    alice = await archive.person("alice")
    root = await archive.person("root", Role.SUPERADMIN)
    for shows in (True, False):
        platform = decided(archive, storage_shows_use=shows).platform
        (theirs,) = await storage_hosts.list_hosts(platform, alice, None)
        assert (theirs.used_percent is not None) == shows
        assert theirs.total_bytes is None
        (all_of_it,) = await storage_hosts.list_hosts(platform, root, None)
        assert all_of_it.total_bytes


async def test_superadmins_make_others_leave_and_nobody_else_does(archive: Archive):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)
    root = await archive.person("root", Role.SUPERADMIN)
    made = await archive.make(alice, "data")
    await archive.share(alice, "data", bob)
    for_bob = LeaveRequest(user="bob")
    for who in (alice, boss):
        with pytest.raises(ForbiddenError, match="only a superadmin"):
            await sharing.leave_folder(archive.platform, who, made.id, for_bob)
    await sharing.leave_folder(archive.platform, root, made.id, for_bob)
    assert await archive.names(bob) == []


async def test_each_of_the_eight_permissions_is_needed_for_one_thing(archive: Archive):
    platform = archive.platform
    alice = await archive.person("alice")
    await archive.person("bob")
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)
    user = await ensure_user(platform, "alice")
    data = await archive.make(alice, "data")
    plans = await archive.make(boss, "plans", project="default")
    gone = await archive.make(alice, "gone")
    asked = SessionRequest(image="lab", mounts=[MountRequest(folder="data")])
    less = GuestChange(user="alice", permission=FolderPermission.READ_ONLY)
    deeds: dict[HostPermission, Callable[[], Awaitable[Any]]] = {
        HostPermission.CREATE: lambda: archive.make(alice, "more"),
        HostPermission.MODIFY: lambda: archive.change(alice, data.id, cloneable=True),
        HostPermission.MOUNT: lambda: choose_mounts(
            platform, alice, user, user.project_id or "", asked
        ),
        HostPermission.UPLOAD: lambda: uploads.begin_upload(
            platform, alice, user, data.id, Wish("a", 1)
        ),
        HostPermission.DOWNLOAD: lambda: files.open_for_content(
            platform, alice, user, data.id
        ),
        HostPermission.INVITE: lambda: archive.invite(alice, data.id, "bob"),
        HostPermission.SHARE: lambda: sharing.share_folder(
            platform, boss, plans.id, ShareRequest(changes=[less])
        ),
        HostPermission.DELETE: lambda: archive.trash(alice, gone.id),
    }
    assert set(deeds) == set(HostPermission)
    for lacking, deed in deeds.items():
        others = [str(p) for p in HostPermission if p is not lacking]
        await permit(platform, {"local": others})
        with pytest.raises(ForbiddenError, match=str(lacking)):
            await deed()
        await permit(platform, {"local": [str(lacking)]})
        await deed()
