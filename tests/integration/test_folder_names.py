"""What begins with a dot runs in sessions unasked: whose it is, and who is kept out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import update

from backendai_hub.api.files import (
    DirectoryRequest,
    EmptyRequest,
    RestoreFiles,
    TrashRequest,
)
from backendai_hub.api.folders import TransferRequest
from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.access import Principal
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    HubError,
    InvalidRequestError,
    NotFoundError,
)
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Role
from backendai_hub.db.engine import Database
from backendai_hub.db.tables import FolderRow
from backendai_hub.operations import folder_invitations
from backendai_hub.operations.file_trash import (
    TrashQuery,
    begin_emptying,
    list_trash,
    restore_entries,
    trash_entries,
)
from backendai_hub.operations.files import (
    EntriesQuery,
    list_entries,
    make_directory,
    stat_entry,
)
from backendai_hub.operations.folder_access import authorize_folder
from backendai_hub.operations.folder_transfers import transfer_folder
from backendai_hub.operations.nouns import purge_noun
from backendai_hub.operations.session_mounts import choose_mounts
from backendai_hub.operations.storage_hosts import cancel_task
from backendai_hub.operations.users import ensure_user
from tests.folders import Archive, opened_archive


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


async def list_unasked(archive: Archive, who: Principal) -> list[str]:
    user = await ensure_user(archive.platform, who.name)
    request = SessionRequest(image="lab")
    mounts = await choose_mounts(
        archive.platform, who, user, user.project_id or "", request
    )
    return [mount.folder_name for mount in mounts]


async def test_a_shared_folder_comes_out_of_the_trash_as_no_dot_folder(
    archive: Archive,
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data")
    await archive.share(alice, "data", bob)
    await archive.trash(alice, "data")

    with pytest.raises(ConflictError, match="such folders are not shared"):
        await archive.restore(alice, made.id, name=".ipython")

    assert await list_unasked(archive, bob) == []


async def test_an_invitation_into_what_is_a_dot_folder_now_is_not_accepted(
    archive: Archive,
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    await archive.make(alice, "data")
    (offered,) = await archive.invite(alice, "data", "bob")
    await archive.change(alice, "data", name=".ipython")

    with pytest.raises(ConflictError, match="not shared"):
        await folder_invitations.accept_invitation(
            archive.platform, bob, offered.invitation
        )

    assert await list_unasked(archive, bob) == []
    assert await list_unasked(archive, alice) == [".ipython"]


async def test_a_copy_for_a_project_is_no_dot_folder_whatever_stands_before_the_dot(
    archive: Archive,
):
    root = await archive.person("root", Role.SUPERADMIN)
    await archive.make(root, "data", cloneable=True)

    with pytest.raises(InvalidRequestError, match="begins with a dot"):
        await archive.clone(root, "data", " .ipython", project="default")


async def test_a_dot_folder_gets_no_new_owner(archive: Archive):
    root = await archive.person("root", Role.SUPERADMIN)
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, ".ipython")

    for body in (TransferRequest(user="bob"), TransferRequest(project="default")):
        with pytest.raises(ConflictError, match="rename it first"):
            await transfer_folder(archive.platform, root, made.id, body)

    assert await list_unasked(archive, bob) == []


async def test_cancelling_a_task_that_has_ended_changes_nothing(archive: Archive):
    root = await archive.person("root", Role.SUPERADMIN)
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data", cloneable=True)
    archive.place(made, alice.id).joinpath("file").write_bytes(b"kept")
    answer = await archive.clone(alice, "data", "copy")
    await archive.settle()
    copy = await archive.read(alice, "copy")
    await transfer_folder(archive.platform, root, copy.id, TransferRequest(user="bob"))
    before = await archive.tasks()

    with pytest.raises(HubError, match="ended already") as refused:
        await cancel_task(archive.platform, alice, answer.task.id)

    assert refused.value.status == 409
    await archive.settle()
    assert await archive.tasks() == before
    assert (await archive.read(bob, copy.id)).status == "ready"
    assert archive.place(copy, bob.id).joinpath("file").read_bytes() == b"kept"


async def test_of_a_projects_local_folder_everybody_has_their_own_part_only(
    archive: Archive,
):
    platform = archive.platform
    root = await archive.person("root", Role.SUPERADMIN)
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(root, ".local", project="default", cloneable=True)
    project_id = (await ensure_user(platform, "root")).project_id
    place = archive.place(made, project_id or "")

    for who in (alice, bob, root):
        user = await ensure_user(platform, who.name)
        opened = await authorize_folder(platform, who, user, made.id, write=True)
        await make_directory(platform, opened, DirectoryRequest(path=f"of-{who.name}"))
        seen = await list_entries(platform, opened, EntriesQuery())
        assert [entry.name for entry in seen.items] == [f"of-{who.name}"]
        with pytest.raises(NotFoundError):
            await stat_entry(platform, opened, alice.id)

    assert {p.name for p in place.iterdir()} == {alice.id, bob.id, root.id}
    assert [p.name for p in (place / bob.id).iterdir()] == ["of-bob"]


async def test_what_is_thrown_away_of_ones_own_part_is_ones_own(archive: Archive):
    platform = archive.platform
    root = await archive.person("root", Role.SUPERADMIN)
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(root, ".local", project="default")
    mine = await authorize_folder(platform, alice, None, made.id, write=True)
    theirs = await authorize_folder(platform, bob, None, made.id, write=True)
    await make_directory(platform, mine, DirectoryRequest(path="lib"))

    async def refused(name: str, error: HubError) -> None:
        raise error

    body = TrashRequest(paths=["lib"])
    await trash_entries(platform, mine, alice, body, refused)

    assert (await list_trash(platform, theirs, TrashQuery())).items == []
    await begin_emptying(platform, theirs, bob, EmptyRequest(ids=None))
    await archive.settle()
    (kept,) = (await list_trash(platform, mine, TrashQuery())).items
    await restore_entries(platform, mine, RestoreFiles(ids=[kept.id]), refused)
    assert (await stat_entry(platform, mine, "lib")).kind == "folder"


async def test_a_projects_local_folder_is_neither_copied_nor_renamed(
    archive: Archive,
):
    root = await archive.person("root", Role.SUPERADMIN)
    made = await archive.make(root, ".local", project="default", cloneable=True)
    await archive.make(root, "data", cloneable=True)

    with pytest.raises(ForbiddenError, match="own part"):
        await archive.clone(root, made.id, "parts")
    with pytest.raises(InvalidRequestError, match="part of their own"):
        await archive.change(root, made.id, name="parts")
    await archive.trash(root, made.id)
    with pytest.raises(InvalidRequestError, match="part of their own"):
        await archive.restore(root, made.id, name="parts")
    with pytest.raises(InvalidRequestError, match="part of their own"):
        await archive.clone(root, "data", ".local", project="default")


async def test_whom_a_dot_folder_is_left_to_does_not_get_it_unasked(archive: Archive):
    root = await archive.person("root", Role.SUPERADMIN)
    alice, bob = await archive.person("alice"), await archive.person("bob")
    made = await archive.make(alice, "data")
    await archive.share(alice, "data", bob)
    async with archive.platform.database.transaction() as tx:  # as it could once be
        row = update(FolderRow).where(FolderRow.id == made.id)
        await tx.execute(row.values(name=".ipython", name_key=".ipython"))
    await archive.office.change("user", "alice", status="inactive")

    await purge_noun(archive.platform, root, noun_of("user"), "alice")

    assert (await archive.read(root, made.id)).name.startswith("ipython ")
    assert await list_unasked(archive, root) == []
