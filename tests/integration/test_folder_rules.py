"""Making virtual folders: the twelve rules, one by one, on both databases.

Each story has a storage host of its own, so that one story tells several rules.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    HubError,
    InvalidRequestError,
    LimitReachedError,
    NotFoundError,
)
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.tenancy import Role
from backendai_hub.core.vfolders import StoragePermissionError
from backendai_hub.db.engine import Database
from backendai_hub.operations.folder_access import authorize_folder
from tests.folders import Archive, opened_archive, permit


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    roots = [str(tmp_path / "open")]
    async with opened_archive(
        database, tmp_path / "folders", unmanaged_roots=roots
    ) as opened:
        yield opened


async def test_a_folder_is_made_on_disk_and_belongs_to_who_made_it(archive: Archive):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data")
    assert (made.status, made.user, made.ownership_type) == ("ready", "alice", "user")
    assert made.host == "local", "V1: the default one"
    assert (made.access, made.is_owner, made.mounted_by) == ("rw", True, 0)
    assert archive.place(made, alice.id).is_dir()
    assert await archive.names(alice) == ["data"]
    assert await archive.names(bob) == []
    with pytest.raises(NotFoundError):
        await archive.read(bob, made.id)

    with pytest.raises(InvalidRequestError, match="there is no storage host 'far'"):
        await archive.make(alice, "more", host="far")
    for name in (
        ".ssh",
        ".JUPYTER",
        ".bashrc",
        "a/b",
        "..",
        "x" * 65,
        "new",
        ".x_profile",
    ):
        with pytest.raises(InvalidRequestError, match="name: "):
            await archive.make(alice, name)
    assert (await archive.make(alice, ".cache")).name == ".cache", "V3"
    with pytest.raises(ConflictError, match="'data' already"):
        await archive.make(alice, "ＤＡＴＡ")
    assert (await archive.make(bob, "data")).user == "bob", "V10: others' do not count"

    changed = await archive.change(alice, "data", name="sets", cloneable=True)
    assert (changed.name, changed.cloneable, changed.revision) == ("sets", True, 3)
    assert archive.place(changed, alice.id).is_dir(), "names are no paths"
    with pytest.raises(ConflictError):
        await archive.change(alice, "sets", name=".cache")
    with pytest.raises(NotFoundError):
        await archive.change(bob, made.id, name="mine")


async def test_unmanaged_folders_are_for_superadmins_and_touch_no_disk(
    archive: Archive,
):
    root = await archive.person("root", Role.SUPERADMIN)
    alice = await archive.person("alice")
    inside = str(archive.root.parent / "open" / "sets")
    with pytest.raises(ForbiddenError, match="unmanaged_path"):
        await archive.make(alice, "sets", unmanaged_path=inside)
    for path in ("/etc", f"{inside}/../../x", "relative", str(archive.root)):
        with pytest.raises(InvalidRequestError, match="unmanaged_path"):
            await archive.make(root, "sets", unmanaged_path=path)
    made = await archive.make(root, "sets", unmanaged_path=inside)
    assert (made.status, made.unmanaged_path) == ("ready", inside)
    assert await archive.tasks() == [], "no storage call was made"
    await archive.share(root, "sets", alice)
    assert (await archive.read(root, made.id)).unmanaged_path == inside
    assert (await archive.read(alice, made.id)).unmanaged_path == "", "operators' only"
    await archive.trash(root, "sets")
    await archive.purge(root, "sets", "sets")
    await archive.settle()
    assert (await archive.read(root, made.id)).status == "delete-complete"


async def test_folders_of_projects_are_made_by_their_administrators(archive: Archive):
    office = archive.office
    await office.make("project", name="vision", domain="default")
    await office.make("project", name="store", domain="default", type="model-store")
    alice, bob = await archive.person("alice"), await archive.person("bob")
    await office.join("default:vision", "alice", "bob")
    await office.join("default:store", "alice")
    archive.platform.actors.clear()
    alice, bob = await archive.person("alice"), await archive.person("bob")
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)

    with pytest.raises(ForbiddenError, match="made by administrators"):
        await archive.make(alice, "shared", project="vision")
    shared = await archive.make(boss, "shared", project="vision")
    assert (shared.ownership_type, shared.project, shared.user) == (
        "project",
        "vision",
        None,
    )
    assert await archive.names(alice) == await archive.names(bob) == ["shared"]
    with pytest.raises(InvalidRequestError, match=r"only have '\.local'"):
        await archive.make(boss, ".cache", project="vision")
    assert (await archive.make(boss, ".local", project="vision")).status == "ready"
    with pytest.raises(ForbiddenError, match="its administrators"):
        await archive.change(alice, "shared", name="mine")
    for name in (".cache", ".config"):
        with pytest.raises(InvalidRequestError, match=r"only have '\.local'"):
            await archive.change(boss, shared.id, name=name)
    with pytest.raises(ConflictError, match=r"'shared' \(of vision\)"):
        await archive.make(alice, "shared")
    with pytest.raises(ConflictError, match=r"'shared' \(of vision\)"):
        await archive.make(boss, "shared", project="vision")
    assert (await archive.make(boss, "shared")).user == "boss", "V10: no member"

    # V7: a model store holds models, which only who made them changes.
    with pytest.raises(InvalidRequestError, match="usage mode 'model' only"):
        await archive.make(alice, "llm", project="store", usage_mode="data")
    model = await archive.make(alice, "llm", project="store", permission="wd")
    assert (model.usage_mode, model.permission, model.access) == ("model", "ro", "rw")
    assert (await archive.read(bob, "llm")).access == "ro", "the domain reads it"
    with pytest.raises(InvalidRequestError, match="there is no project 'store'"):
        await archive.make(bob, "other", project="store")
    assert (await archive.change(alice, "llm", name="llm2")).name == "llm2"
    with pytest.raises(InvalidRequestError, match="read-only for all but who made it"):
        await archive.change(alice, "llm2", permission="rw")

    await office.change("project", "default:vision", is_active=False)
    with pytest.raises(InvalidRequestError, match="vision is inactive"):
        await archive.make(boss, "plans", project="vision")


async def test_folders_of_projects_are_not_made_by_administrators_of_other_domains(
    archive: Archive,
):
    await archive.office.make("domain", name="far")
    theirs = await archive.office.make("project", name="lab", domain="far")
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)
    for project in ("lab", "far:lab", theirs.id):
        with pytest.raises(HubError, match="project"):
            await archive.make(boss, "shared", project=project)
    root = await archive.person("root", Role.SUPERADMIN)
    made = await archive.make(root, "shared", project="far:lab")
    assert (made.project, made.domain) == ("lab", "far")


async def test_what_hosts_permit_is_what_anything_of_somebody_permits(archive: Archive):
    alice = await archive.person("alice")
    await permit(archive.platform, {"local": ["modify-vfolder"]})
    with pytest.raises(
        StoragePermissionError, match=r"local: you lack.*create-vfolder"
    ):
        await archive.make(alice, "data")
    office = archive.office
    await office.change(
        "project",
        "default:default",
        allowed_vfolder_hosts={"local": ["create-vfolder"]},
    )
    await archive.make(alice, "data")
    with pytest.raises(StoragePermissionError, match="delete-vfolder"):
        await archive.trash(alice, "data")
    await office.change(
        "keypair-policy", "default", allowed_vfolder_hosts={"local": ["delete-vfolder"]}
    )
    assert (await archive.trash(alice, "data")).status == "delete-pending"
    await office.change("project", "default:default", is_active=False)
    with pytest.raises(StoragePermissionError):
        await archive.make(alice, "more")


async def test_of_fifty_requests_at_once_as_many_go_through_as_the_policy_allows(
    archive: Archive,
):
    alice = await archive.person("alice")
    await archive.office.change("user-policy", "default", max_vfolder_count=7)

    async def attempt(number: int) -> HubError | None:
        try:
            await archive.make(alice, f"f{number}")
        except HubError as error:
            return error
        return None

    ended = await asyncio.gather(*(attempt(n) for n in range(50)))
    refused = [error for error in ended if error is not None]
    assert len(refused) == 43
    assert all(isinstance(error, LimitReachedError) for error in refused), refused
    assert "7 of 7" in refused[0].message
    assert len(await archive.names(alice)) == 7
    first = (await archive.names(alice))[0]
    await archive.trash(alice, first)
    with pytest.raises(LimitReachedError, match="trash included"):
        await archive.make(alice, "one-more")


async def test_of_two_requests_for_one_name_at_once_one_goes_through(archive: Archive):
    alice = await archive.person("alice")
    ended = await asyncio.gather(
        *(archive.make(alice, "data") for _ in range(5)), return_exceptions=True
    )
    refused = [one for one in ended if isinstance(one, ConflictError)]
    assert len(refused) == 4, ended
    assert await archive.names(alice) == ["data"]


@pytest.mark.parametrize(("need", "most"), [(None, 1), (HostPermission.UPLOAD, 4)])
async def test_who_opens_their_own_folder_is_asked_about_once(
    archive: Archive, need: HostPermission | None, most: int
):
    """And what hosts permit is asked only where something has to be permitted."""
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    database, asked = archive.platform.database, []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        asked.append(statement)

    engine = database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        await authorize_folder(archive.platform, alice, None, made.id, need=need)
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert len([one for one in asked if "SELECT" in one]) == most


async def test_a_host_that_fails_leaves_no_row(database: Database, tmp_path: Path):
    (tmp_path / "folders").mkdir()
    troubles = tmp_path / "troubles.json"
    troubles.write_text('{"fail": {"make-folder": "the disk is on fire"}}')
    async with opened_archive(
        database, tmp_path / "folders", driver="fake", troubles_file=str(troubles)
    ) as archive:
        alice = await archive.person("alice")
        with pytest.raises(HubError, match="administrators see why"):
            await archive.make(alice, "data")
        assert await archive.names(alice) == [], "V11"
        troubles.write_text("{}")
        made = await archive.make(alice, "data")
        await archive.settle()
        assert archive.place(made, alice.id).is_dir()
        assert await archive.tasks() == [
            ("create", "failed"),
            ("remove", "done"),
            ("create", "done"),
        ]
