"""Sharing folders: invitations, exceptions, leaving, new owners, and who is removed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from backendai_hub.api.folders import (
    GuestChange,
    InvitationChange,
    LeaveRequest,
    ShareRequest,
    TransferRequest,
)
from backendai_hub.core.access import Caller, Principal, reach
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InUseError,
    InvalidRequestError,
    NotFoundError,
)
from backendai_hub.core.mounts import MountRequest
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Role
from backendai_hub.core.vfolders import FolderPermission
from backendai_hub.db.engine import Database
from backendai_hub.handlers.folders import ActivityQuery
from backendai_hub.operations import folder_invitations
from backendai_hub.operations import folder_sharing as sharing
from backendai_hub.operations.folder_access import authorize_folder
from backendai_hub.operations.folder_transfers import transfer_folder
from backendai_hub.operations.folder_upkeep import count_scopes
from backendai_hub.operations.folders import read_activity
from backendai_hub.operations.members import MembersRequest, change_members
from backendai_hub.operations.nouns import purge_noun
from backendai_hub.operations.sessions import (
    list_messages,
    newest_message,
    terminate_session,
)
from tests.factories import principal_of, submit
from tests.folders import Archive, opened_archive, permit


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


async def set_permission(
    archive: Archive, who: Principal, folder: str, user: str, to: str | None
) -> Any:
    wanted = None if to is None else FolderPermission(to)
    body = ShareRequest(changes=[GuestChange(user=user, permission=wanted)])
    return await sharing.share_folder(archive.platform, who, folder, body)


async def test_an_invitation_is_accepted_changed_and_left(archive: Archive):
    platform = archive.platform
    alice, bob, eve = [await archive.person(n) for n in ("alice", "bob", "eve")]
    made = await archive.make(alice, "data")
    await archive.make(alice, ".cache")

    nobody, self_, good, twice = await archive.invite(
        alice, "data", "nobody", "alice", "bob", "BOB"
    )
    assert "nobody 'nobody'" in nobody.error
    assert "your own" in self_.error
    assert "invitation already" in twice.error
    with pytest.raises(InvalidRequestError, match="begins with a dot"):
        await archive.invite(alice, ".cache", "bob")
    with pytest.raises(NotFoundError):
        await archive.read(bob, "data")

    (seen,) = await folder_invitations.list_invitations(platform, bob, "pending")
    assert (seen.folder, seen.inviter, seen.permission) == ("data", "alice", "ro")
    assert await folder_invitations.list_invitations(platform, eve, "all") == []
    with pytest.raises(ForbiddenError, match="neither to you nor from you"):
        await folder_invitations.accept_invitation(platform, eve, good.invitation)
    with pytest.raises(ForbiddenError, match="neither"):
        await folder_invitations.decline_invitation(platform, eve, good.invitation)
    with pytest.raises(ForbiddenError, match="only who is invited"):
        await folder_invitations.accept_invitation(platform, alice, good.invitation)
    change = InvitationChange(permission=FolderPermission.READ_WRITE)
    with pytest.raises(ForbiddenError):
        await folder_invitations.change_invitation(
            platform, bob, good.invitation, change
        )
    await folder_invitations.change_invitation(platform, alice, good.invitation, change)

    # What one has oneself by that name comes first.
    own = await archive.make(bob, "data")
    with pytest.raises(ConflictError, match="'data' already"):
        await folder_invitations.accept_invitation(platform, bob, good.invitation)
    await archive.change(bob, own.id, name="mine")
    done = await folder_invitations.accept_invitation(platform, bob, good.invitation)
    assert done.state == "accepted"
    with pytest.raises(ConflictError, match="answered"):
        await folder_invitations.decline_invitation(platform, bob, good.invitation)
    got = await archive.read(bob, "data")
    assert (got.id, got.access, got.is_owner) == (made.id, "rw", False)
    assert await archive.names(bob) == ["data", "mine"]
    with pytest.raises(ConflictError, match=r"'data' \(of alice\)"):
        await archive.make(bob, "data")
    (again,) = await archive.invite(alice, "data", "bob")
    assert "has the folder already (rw)" in again.error

    for refused in (
        archive.change(bob, "data", name="other"),
        archive.trash(bob, "data"),
        archive.invite(bob, "data", "eve"),
        set_permission(archive, bob, "data", "bob", "wd"),
    ):
        with pytest.raises(ForbiddenError):
            await refused
    (guest,) = await set_permission(archive, alice, "data", "bob", "wd")
    assert (guest.user, guest.permission, guest.kind) == ("bob", "wd", "invited")
    with pytest.raises(InvalidRequestError, match="invite them first"):
        await set_permission(archive, alice, "data", "eve", "wd")

    with pytest.raises(InvalidRequestError, match="cannot leave"):
        await sharing.leave_folder(platform, alice, "data", LeaveRequest())
    await sharing.leave_folder(platform, bob, "data", LeaveRequest())
    assert await archive.names(bob) == ["mine"]
    page = await read_activity(platform, alice, made.id, ActivityQuery())
    told = [entry.action for entry in page.items]
    assert told[:2] == ["folder:leave", "folder:share"]
    assert "folder:create" in told


async def test_what_was_given_is_taken_back_also_from_who_is_not_active(
    archive: Archive,
):
    alice, bob = await archive.person("alice"), await archive.person("bob")
    root = await archive.person("root", Role.SUPERADMIN)
    for name in ("data", "sets"):
        await archive.make(alice, name)
        await archive.share(alice, name, bob, "rw")
    await archive.office.change("user", "bob", status="inactive")
    assert await set_permission(archive, alice, "data", "bob", None) == []
    leave = LeaveRequest(user="bob")
    await sharing.leave_folder(archive.platform, root, "sets", leave)
    (asked,) = await archive.invite(alice, "data", "bob")
    assert "nobody 'bob'" in asked.error, "who may not come in is not invited"
    await archive.office.change("user", "bob", status="active")
    assert await archive.names(await archive.person("bob")) == []


async def test_who_rejects_and_who_takes_back_is_told_apart(archive: Archive):
    platform = archive.platform
    alice, bob = await archive.person("alice"), await archive.person("bob")
    await archive.make(alice, "data")
    (first,) = await archive.invite(alice, "data", "bob")
    rejected = await folder_invitations.decline_invitation(
        platform, bob, first.invitation
    )
    assert rejected.state == "rejected"
    (second,) = await archive.invite(alice, "data", "bob")
    canceled = await folder_invitations.decline_invitation(
        platform, alice, second.invitation
    )
    assert canceled.state == "canceled"
    assert await folder_invitations.list_invitations(platform, bob, "pending") == []
    await permit(platform, {"local": ["create-vfolder"]})
    with pytest.raises(ForbiddenError, match="invite-others"):
        await archive.invite(alice, "data", "bob")


async def test_members_of_projects_have_exceptions_and_do_not_leave(archive: Archive):
    platform = archive.platform
    await archive.office.make("project", name="vision", domain="default")
    await archive.person("alice")
    await archive.person("bob")
    await archive.office.join("default:vision", "alice")
    alice, bob = await archive.person("alice"), await archive.person("bob")
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)
    await archive.make(boss, "shared", project="vision")
    with pytest.raises(InvalidRequestError, match="its members have it already"):
        await archive.invite(boss, "shared", "bob")
    with pytest.raises(InvalidRequestError, match="not a member"):
        await set_permission(archive, boss, "shared", "bob", "ro")
    with pytest.raises(ForbiddenError):
        await set_permission(archive, alice, "shared", "alice", "wd")
    await set_permission(archive, boss, "shared", "alice", "ro")
    assert (await archive.read(alice, "shared")).access == "ro"
    await set_permission(archive, boss, "shared", "alice", None)
    shared = await archive.read(alice, "shared")
    assert shared.access == "rw"
    await set_permission(archive, boss, "shared", "alice", "wd")
    await change_members(platform, boss, "vision", MembersRequest(remove=["alice"]))
    left = await archive.person("alice")
    with pytest.raises(NotFoundError):
        await authorize_folder(platform, left, None, shared.id)
    await archive.office.join("default:vision", "alice")
    await set_permission(archive, boss, "shared", "alice", None)
    with pytest.raises(InvalidRequestError, match="leaves a project's folder"):
        await sharing.leave_folder(platform, alice, "shared", LeaveRequest())
    with pytest.raises(NotFoundError):
        await archive.read(bob, "shared")


async def test_only_superadmins_give_folders_to_others(archive: Archive):
    platform = archive.platform
    alice, bob = await archive.person("alice"), await archive.person("bob")
    root = await archive.person("root", Role.SUPERADMIN)
    made = await archive.make(alice, "data")
    (archive.place(made, alice.id) / "a").write_bytes(b"kept")
    await archive.make(bob, "data")
    body = TransferRequest(user="bob")
    with pytest.raises(ConflictError, match="'data' already"):
        await transfer_folder(platform, root, made.id, body)
    await archive.change(bob, "data", name="mine")
    moved = await transfer_folder(platform, root, made.id, body)
    assert (moved.user, await archive.names(alice)) == ("bob", [])
    assert (await archive.read(bob, "data")).is_owner
    assert (archive.place(made, bob.id) / "a").read_bytes() == b"kept"
    await transfer_folder(platform, root, made.id, TransferRequest(project="default"))
    assert await archive.names(alice) == ["data"], "members have it"
    with pytest.raises(InvalidRequestError, match="either a user or a project"):
        await transfer_folder(platform, root, made.id, TransferRequest())


async def test_a_purged_users_folders_go_but_for_those_that_others_share(
    archive: Archive,
):
    office = archive.office
    alice, bob = await archive.person("alice"), await archive.person("bob")
    root = await archive.person("root", Role.SUPERADMIN)
    lonely = await archive.make(alice, "lonely")
    shared = await archive.make(alice, "shared")
    await archive.share(alice, "shared", bob, "rw")
    theirs = await archive.make(bob, "theirs")
    await archive.share(bob, "theirs", alice)
    await office.change("user", "alice", status="inactive")

    await purge_noun(archive.platform, root, noun_of("user"), "alice")
    await archive.settle()
    assert not archive.place(lonely, alice.id).exists()
    assert archive.place(shared, root.id).is_dir()
    kept = await archive.read(bob, "shared")
    assert (kept.user, kept.access, kept.status) == ("root", "rw", "ready")
    guests = await sharing.list_guests(archive.platform, bob, theirs.id)
    assert guests == []


async def test_what_others_share_goes_as_well_if_that_is_wanted(archive: Archive):
    platform, user = archive.platform, noun_of("user")
    alice, bob = await archive.person("alice"), await archive.person("bob")
    root = await archive.person("root", Role.SUPERADMIN)
    shared = await archive.make(alice, "shared")
    await archive.share(alice, "shared", bob, "rw")
    await archive.office.change("user", "alice", status="inactive")

    with pytest.raises(InvalidRequestError, match="there are shared-folders"):
        await purge_noun(platform, root, user, "alice", also=["sessions"])
    with pytest.raises(InvalidRequestError, match="there are none"):
        await purge_noun(platform, root, noun_of("domain"), "x", also=["users"])
    mounts = [MountRequest(folder="shared")]
    session = (await submit(platform, "bob", mounts=mounts)).session
    with pytest.raises(InUseError, match="mounted by 1 live session"):
        await purge_noun(platform, root, user, "alice", also=["shared-folders"])
    await terminate_session(platform, bob, session.id)

    await purge_noun(platform, root, user, "alice", also=["shared-folders"])
    await archive.settle()
    assert not archive.place(shared, alice.id).exists()
    for who in (bob, root):
        assert await archive.names(who) == []


async def test_a_purged_projects_folders_go_with_it(archive: Archive):
    office = archive.office
    project = await office.make("project", name="vision", domain="default")
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)
    made = await archive.make(boss, "shared", project="vision")
    place = archive.place(made, project.id)
    assert place.is_dir()
    await office.change("project", project.id, is_active=False)
    await office.purge("project", project.id)
    await archive.settle()
    assert not place.exists()


async def test_who_moves_to_another_domain_takes_their_folders_along(archive: Archive):
    office = archive.office
    alice, bob = await archive.person("alice"), await archive.person("bob")
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)
    made = await archive.make(alice, "data")
    await archive.share(alice, "data", bob)
    await archive.make(bob, "theirs")
    await archive.share(bob, "theirs", alice)
    assert (await archive.read(boss, made.id)).domain == "default"
    await office.make_domain("elsewhere", allowed_vfolder_hosts={"local": ["*"]})
    await office.change("user", "alice", domain="elsewhere")
    alice = await archive.person("alice")
    assert await archive.names(alice) == ["data"]
    assert (await archive.read(alice, "data")).domain == "elsewhere"
    assert await archive.names(bob) == ["theirs"]
    with pytest.raises(NotFoundError):
        await archive.read(boss, made.id)
    (outcome,) = await archive.invite(alice, "data", "bob")
    assert "nobody 'bob' in this domain" in outcome.error


async def test_the_spawner_sees_of_folders_what_is_chosen_on_its_page(archive: Archive):
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    (archive.place(made, alice.id) / "a").write_bytes(b"x" * 100_000)
    await count_scopes(archive.platform)
    spawner = await principal_of(archive.platform, "alice", Caller.SPAWNER)

    seen = await archive.read(spawner, made.id)

    assert (seen.name, seen.access, seen.is_owner) == ("data", "rw", True)
    assert (await archive.read(alice, made.id)).used_bytes > 0
    assert (seen.used_bytes, seen.creator, seen.created_at) == (0, "", "")
    for action in ("folder-activity:read", "folder-guest:read", "folder-task:read"):
        assert reach(spawner, action) is None


async def heard(archive: Archive, who: Principal, after: int) -> list[tuple[Any, ...]]:
    """Return what somebody is told of folders since event number *after*."""
    told = await list_messages(archive.platform, who, after=after, limit=1000)
    return [(m.kind, m.folder_id, m.text) for m in told if m.folder_id is not None]


async def test_guests_hear_that_a_folder_changes_not_what_its_owner_does(
    archive: Archive,
):
    alice, bob, eve = [await archive.person(n) for n in ("alice", "bob", "eve")]
    data = await archive.make(alice, "data")
    await archive.make(alice, "private")
    await archive.share(alice, "data", bob)
    last = await newest_message(archive.platform)

    await archive.change(alice, "data", name="data-of-march")
    await archive.change(alice, "private", name="private-too")
    await archive.invite(alice, "data-of-march", "eve")

    told = await heard(archive, bob, last)
    assert told == [("folder.changed", data.id, "")], "neither names nor other guests"
    assert [kind for kind, _, _ in await heard(archive, eve, last)] == [
        "folder.invitation"
    ]

    await set_permission(archive, alice, "data-of-march", "bob", None)
    last = await newest_message(archive.platform)
    await archive.change(alice, "data-of-march", name="data-again")
    assert await heard(archive, bob, last) == []
