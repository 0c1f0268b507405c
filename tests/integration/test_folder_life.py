"""What becomes of folders: the trash, removal, copies, mounts, crashes, time."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import update

from backendai_hub.api.folders import TransferRequest
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    HubError,
    InsufficientStorageError,
    InvalidRequestError,
    NotFoundError,
)
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.mounts import MountRequest
from backendai_hub.core.tenancy import Role
from backendai_hub.core.vfolders import FolderBusyError, FolderPermission
from backendai_hub.db import folder_tasks, folders, quota_scopes
from backendai_hub.db.engine import Database
from backendai_hub.db.session_mounts import load_mounts
from backendai_hub.db.tables import FolderRow, FolderTaskRow
from backendai_hub.operations.folder_access import authorize_folder
from backendai_hub.operations.folder_transfers import transfer_folder
from backendai_hub.operations.folder_upkeep import count_scopes, empty_trash
from backendai_hub.operations.nodes import load_assignments
from backendai_hub.operations.reports import accept_report
from backendai_hub.operations.sessions import terminate_session
from backendai_hub.operations.users import ensure_user
from tests.factories import add_node, schedule, submit
from tests.folders import Archive, opened_archive
from tests.tenants import make_ready


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


async def test_what_is_thrown_away_comes_back_with_all_that_was_in_it(
    archive: Archive,
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data")
    place = archive.place(made, alice.id)
    (place / "a.txt").write_bytes(b"kept")

    thrown = await archive.trash(alice, "data")
    assert thrown.status == "delete-pending"
    assert thrown.trashed_at is not None
    assert thrown.purge_at is not None
    kept = datetime.fromisoformat(thrown.purge_at) - datetime.fromisoformat(
        thrown.trashed_at
    )
    assert kept == timedelta(days=30)
    with pytest.raises(ConflictError, match="in the trash already"):
        await archive.trash(alice, made.id)
    with pytest.raises(ConflictError, match="restore it first"):
        await archive.change(alice, made.id, name="other")
    with pytest.raises(ConflictError, match="restore it first"):
        await authorize_folder(archive.platform, alice, None, made.id, write=True)
    with pytest.raises(NotFoundError):
        await archive.restore(bob, made.id)

    newer = await archive.make(alice, "data")
    with pytest.raises(ConflictError, match="takes it back by another"):
        await archive.restore(alice, made.id)
    back = await archive.restore(alice, made.id, "old data")
    assert (back.status, back.name, back.trashed_at) == ("ready", "old data", None)
    assert (place / "a.txt").read_bytes() == b"kept"
    with pytest.raises(ConflictError, match="not in the trash"):
        await archive.restore(alice, newer.id)


async def test_nothing_is_removed_for_good_but_what_is_named_in_so_many_letters(
    archive: Archive,
):
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    place = archive.place(made, alice.id)
    with pytest.raises(ConflictError, match="into the trash first"):
        await archive.purge(alice, "data", "data")
    await archive.trash(alice, "data")
    for typed in ("", "Data", "data ", made.id):
        with pytest.raises(InvalidRequestError, match="type its name, 'data'"):
            await archive.purge(alice, made.id, typed)
    with pytest.raises(ForbiddenError, match="only administrators"):
        await archive.purge(alice, "data", "data", force=True)
    going = await archive.purge(alice, "data", "data")
    assert going is not None
    assert going.status == "delete-ongoing"
    await archive.settle()
    assert not place.exists()
    assert (await archive.read(alice, made.id)).status == "delete-complete"
    assert await archive.purge(alice, made.id, "data") is None, "forgotten"
    assert await archive.names(alice) == []


async def test_a_folder_stays_while_live_sessions_have_it(archive: Archive):
    platform = archive.platform
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    await archive.make(alice, ".cache")
    node = await add_node(platform)
    node_labels = {"storage/local": "yes"}
    await accept_report(
        platform,
        node.id,
        msgspec.structs.replace(node.make_report(), labels=node_labels),
    )
    request = MountRequest(folder="data/in", permission=FolderPermission.READ_ONLY)
    session = (await submit(platform, mounts=[request])).session
    async with platform.database.read() as connection:
        mounts = (await load_mounts(connection, [session.id]))[session.id]
    assert [(m.folder_name, m.target, m.permission) for m in mounts] == [
        (".cache", "/home/work/.cache", "rw"),
        ("data", "/home/work/data", "ro"),
    ]
    assert (await archive.read(alice, "data")).status == "mounted"
    assert await archive.names(alice, status="mounted") == [".cache", "data"]
    assert await archive.names(alice, status="ready") == []

    with pytest.raises(FolderBusyError, match=f"1 live session: {session.name}") as no:
        await archive.trash(alice, "data")
    assert no.value.fields["sessions"] == [session.id]
    renamed = await archive.change(alice, "data", name="sets")
    assert renamed.mounted_by == 1, "names are no paths"

    await make_ready(platform, session.id)
    assert await schedule(platform) == 1
    (spec,) = (await load_assignments(platform, node.id)).containers
    cache, data = spec.mounts
    assert data.parts == list(archive.place(made, alice.id).parts[-4:])
    assert (data.host, data.subpath, data.permission) == ("local", ["in"], "ro")
    assert (cache.target, cache.read_only, data.read_only) == (
        "/home/work/.cache",
        False,
        True,
    )
    await terminate_session(platform, alice, session.id, force=True)
    assert (await archive.trash(alice, "sets")).status == "delete-pending"


async def test_a_session_is_refused_with_what_is_wrong_about_its_folders(
    archive: Archive,
):
    platform = archive.platform
    alice = await archive.person("alice")
    await archive.make(alice, "data")
    for folder, words in (
        ("dta", "did you mean 'data'"),
        ("data/../x", "stays inside"),
    ):
        with pytest.raises(HubError, match=words):
            await submit(platform, mounts=[MountRequest(folder=folder)])
    await archive.trash(alice, "data")
    with pytest.raises(NotFoundError):
        await submit(platform, mounts=[MountRequest(folder="data")])
    assert (await submit(platform)).created, "without folders it goes on"


async def test_the_trash_is_emptied_by_the_databases_clock_and_no_other(
    archive: Archive,
):
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    await archive.trash(alice, "data")
    database = archive.platform.database
    database.clock.pass_(10 * 365 * 86_400)  # type: ignore[attr-defined]
    assert await empty_trash(archive.platform) == 0, "V42: only this process is late"
    async with database.transaction() as tx:
        now = await folder_tasks.read_time(tx.connection)
        before = now - timedelta(days=30, seconds=1)
        await tx.execute(
            update(FolderRow).where(FolderRow.id == made.id).values(trashed_at=before)
        )
    assert await empty_trash(archive.platform) == 1
    await archive.settle()
    assert not archive.place(made, alice.id).exists()


async def test_a_removal_that_was_interrupted_goes_on(archive: Archive):
    """CP25: the service ends after the intent is stored, or in the middle of it."""
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    place = archive.place(made, alice.id)
    for number in range(20):
        (place / str(number)).mkdir()
    await archive.trash(alice, "data")
    await archive.purge(alice, "data", "data")
    async with archive.platform.database.transaction() as tx:
        # As a service that ended while it was at work has left it.
        of_it = FolderTaskRow.kind == "remove"
        await tx.execute(update(FolderTaskRow).where(of_it).values(state="running"))
    for number in range(10):
        (place / str(number)).rmdir()
    await archive.settle()
    assert not place.exists()
    assert (await archive.read(alice, made.id)).status == "delete-complete"


async def test_a_creation_that_was_interrupted_is_finished(archive: Archive):
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    place = archive.place(made, alice.id)
    place.rmdir()
    async with archive.platform.database.transaction() as tx:
        await tx.execute(update(FolderRow).values(status="performing"))
        await tx.execute(update(FolderTaskRow).values(state="running", ended_at=None))
    await archive.settle()
    assert place.is_dir()
    assert (await archive.read(alice, made.id)).status == "ready"


async def test_a_copy_is_whole_or_not_there_at_all(archive: Archive):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data")
    place = archive.place(made, alice.id)
    (place / "deep").mkdir()
    (place / "deep" / "a.bin").write_bytes(b"x" * 5000)
    with pytest.raises(ForbiddenError, match="not cloneable"):
        await archive.clone(alice, "data", "copy")
    await archive.change(alice, "data", cloneable=True)
    with pytest.raises(NotFoundError):
        await archive.clone(bob, made.id, "copy")
    with pytest.raises(ConflictError):
        await archive.clone(alice, "data", "DATA")

    answer = await archive.clone(alice, "data", "copy")
    assert answer.folder.status == "cloning"
    with pytest.raises(ConflictError, match="busy"):
        await archive.trash(alice, "data")
    await archive.settle()
    copy = await archive.read(alice, "copy")
    assert (copy.status, copy.used_bytes) == ("ready", 5000)
    there = archive.place(copy, alice.id) / "deep" / "a.bin"
    assert there.read_bytes() == b"x" * 5000
    await archive.change(alice, "copy", cloneable=True)

    # A copy that does not fit leaves nothing but what it was refused for.
    await archive.office.change("user-policy", "default", max_quota_scope_size="7000")
    await archive.clone(alice, "copy", "third")
    await archive.settle()
    assert await archive.names(alice) == ["copy", "data"]
    kinds = await archive.tasks()
    assert kinds.count(("clone", "failed")) == 1
    async with archive.platform.database.read() as connection:
        scope = await quota_scopes.find_scope(connection, "local", copy_scope(alice.id))
    assert scope is not None
    assert scope.reserved_bytes == 0


async def test_a_copy_for_a_project_is_the_projects(archive: Archive):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)
    made = await archive.make(alice, "data", cloneable=True)
    (archive.place(made, alice.id) / "a.bin").write_bytes(b"kept")
    await archive.share(alice, "data", boss)
    with pytest.raises(ForbiddenError, match="made by administrators"):
        await archive.clone(alice, "data", "plans", project="default")

    answer = await archive.clone(boss, made.id, "plans", project="default")
    assert answer.task.kind == "clone"
    await archive.settle()
    copy = await archive.read(bob, "plans")
    assert (copy.status, copy.ownership_type, copy.user) == ("ready", "project", None)
    assert (copy.project, copy.access, copy.used_bytes) == ("default", "rw", 4)
    project_id = (await ensure_user(archive.platform, "boss")).project_id or ""
    assert (archive.place(copy, project_id) / "a.bin").read_bytes() == b"kept"
    assert (archive.place(made, alice.id) / "a.bin").read_bytes() == b"kept"


@pytest.mark.parametrize("kind", ["user", "project"])
async def test_v6_nothing_becomes_a_kind_of_folder_that_the_site_does_not_have(
    archive: Archive, kind: str
):
    root = await archive.person("root", Role.SUPERADMIN)
    await archive.make(root, "mine", cloneable=True)
    ours = await archive.make(root, "ours", project="default", cloneable=True)
    source, project, to = {
        "user": (ours.id, None, TransferRequest(user="root")),
        "project": ("mine", "default", TransferRequest(project="default")),
    }[kind]
    settings = archive.platform.settings
    others = frozenset({"user", "project"} - {kind})
    settings = dataclasses.replace(settings, folder_owners=others)
    platform = dataclasses.replace(archive.platform, settings=settings)
    site = Archive(platform, archive.root)
    with pytest.raises(InvalidRequestError, match=f"no folders of a {kind}"):
        await site.clone(root, source, "copy", project=project)
    with pytest.raises(InvalidRequestError, match=f"no folders of a {kind}"):
        await transfer_folder(platform, root, source, to)


def copy_scope(user_id: str) -> str:
    return f"user-{user_id}"


async def test_reservations_never_pass_a_limit_and_are_given_back(archive: Archive):
    alice = await archive.person("alice")
    made = await archive.make(alice, "data", max_size="600")
    database = archive.platform.database
    await archive.office.change("user-policy", "default", max_quota_scope_size="1000")
    other = await archive.make(alice, "other")

    async def change(folder_id: str, what: str, **amounts: int) -> None:
        async with database.transaction() as tx:
            folder = await folders.find_folder(tx.connection, folder_id)
            assert folder is not None
            if what == "reserve":
                await quota_scopes.reserve(tx, folder, **amounts)
            else:
                await quota_scopes.settle(tx, folder, **amounts)

    await change(made.id, "reserve", amount=500)
    with pytest.raises(InsufficientStorageError, match="folder 'data' may hold 600"):
        await change(made.id, "reserve", amount=101)
    await change(other.id, "reserve", amount=500)
    with pytest.raises(InsufficientStorageError, match="user alice may keep 1000"):
        await change(other.id, "reserve", amount=1)
    await change(other.id, "settle", reserved=500, used=200, files=1)
    await change(other.id, "reserve", amount=300)
    with pytest.raises(InsufficientStorageError):
        await change(other.id, "reserve", amount=1)


async def test_what_is_on_disk_is_counted_for_scopes_and_folders(archive: Archive):
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    (archive.place(made, alice.id) / "a.bin").write_bytes(b"x" * 3000)
    assert await count_scopes(archive.platform) == 1
    found = await archive.read(alice, "data")
    assert (found.used_bytes, found.used_files) == (3000, 1)
    assert found.scanned_at is not None
    assert await count_scopes(archive.platform) == 0, "not again at once"


async def test_who_may_open_a_folder_and_how_far(archive: Archive):
    platform = archive.platform
    alice, bob = await archive.person("alice"), await archive.person("bob")
    root = await archive.person("root", Role.SUPERADMIN)
    made = await archive.make(alice, "data")
    opened = await authorize_folder(
        platform, alice, None, made.id, need=HostPermission.UPLOAD, write=True
    )
    assert (opened.host, opened.permission, opened.is_owners) == ("local", "rw", True)
    opened.check_may_delete()
    with pytest.raises(NotFoundError):
        await authorize_folder(platform, bob, None, made.id)
    with pytest.raises(ForbiddenError, match="do not look into it"):
        await authorize_folder(platform, root, None, made.id)

    await archive.share(alice, "data", bob, "ro")
    assert (await authorize_folder(platform, bob, None, made.id)).permission == "ro"
    with pytest.raises(ForbiddenError, match="read-only for you"):
        await authorize_folder(platform, bob, None, made.id, write=True)
    await archive.office.change(
        "domain", "default", allowed_vfolder_hosts={"local": ["mount-in-session"]}
    )
    with pytest.raises(ForbiddenError, match="upload-file"):
        await authorize_folder(
            platform, alice, None, made.id, need=HostPermission.UPLOAD
        )
