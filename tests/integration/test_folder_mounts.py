"""Which folders a session gets: the twelve rules of mounts, from either database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.access import Principal
from backendai_hub.core.errors import InvalidRequestError, NotFoundError
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.mounts import Mount, MountRequest
from backendai_hub.core.tenancy import Role
from backendai_hub.core.vfolders import FolderPermission, StoragePermissionError
from backendai_hub.db.engine import Database
from backendai_hub.operations.session_mounts import choose_mounts
from backendai_hub.operations.users import ensure_user
from tests.folders import Archive, opened_archive, permit


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    roots = [str(tmp_path / "open")]
    async with opened_archive(
        database, tmp_path / "folders", unmanaged_roots=roots
    ) as opened:
        yield opened


async def choose(
    archive: Archive, who: Principal, *asked: MountRequest, project: str = ""
) -> list[Mount]:
    """Return what a session of somebody gets."""
    user = await ensure_user(archive.platform, who.name)
    request = SessionRequest(image="lab", mounts=list(asked))
    in_project = project or user.project_id or ""
    return await choose_mounts(archive.platform, who, user, in_project, request)


def ask(name: str, permission: str | None = None, **more: Any) -> MountRequest:
    wanted = None if permission is None else FolderPermission(permission)
    return MountRequest(folder=name, permission=wanted, **more)


async def test_m1_to_m3_what_is_asked_for_appears_where_it_is_asked_for(
    archive: Archive,
):
    alice = await archive.person("alice")
    data = await archive.make(alice, "data")
    await archive.make(alice, "more")
    for asked in (ask("data/a"), ask("data", subpath="a"), ask(data.id, subpath="a")):
        (mount,) = await choose(archive, alice, asked)
        told = (mount.folder_id, mount.subpath, mount.target)
        assert told == (data.id, "a", "/home/work/data"), "M1, M2"
    with pytest.raises(InvalidRequestError):
        await choose(archive, alice, ask("data/../more"))
    for target, place in (("sets", "/home/work/sets"), ("/sets", "/sets")):
        (mount,) = await choose(archive, alice, ask("data", target=target))
        assert mount.target == place, "M2"
    with pytest.raises(InvalidRequestError, match="twice"):
        await choose(archive, alice, ask("data"), ask("data/a", target="a"))
    with pytest.raises(InvalidRequestError, match="at '/home/work/data'"):
        await choose(archive, alice, ask("data"), ask("more", target="data/in"))


async def test_m4_to_m6_what_comes_by_itself_has_places_of_its_own(archive: Archive):
    alice = await archive.person("alice")
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)
    await archive.make(alice, ".cache")
    await archive.make(alice, ".linuxbrew")
    await archive.make(boss, ".local", project="default")
    mounts = await choose(archive, alice)
    assert {(m.folder_name, m.target, m.subpath) for m in mounts} == {
        (".cache", "/home/work/.cache", ""),
        (".linuxbrew", "/home/linuxbrew/.linuxbrew", ""),
        (".local", "/home/work/.local", alice.id),
    }
    assert all(mount.automatic for mount in mounts)
    others = [str(p) for p in HostPermission if p is not HostPermission.MOUNT]
    await permit(archive.platform, {"local": others})
    assert await choose(archive, alice) == [], "M4: silently"
    with pytest.raises(StoragePermissionError) as refused:
        await choose(archive, alice, ask(".cache"))
    for named in ("'.cache'", "storage host local", "mount-in-session"):
        assert named in refused.value.message, "M7"


async def test_m8_to_m9_nobody_gets_more_than_they_may_do(archive: Archive):
    office = archive.office
    lab = await office.make("project", name="lab", domain="default")
    store = await office.make(
        "project", name="store", domain="default", type="model-store"
    )
    for name in ("alice", "bob"):
        await archive.person(name)
    await office.join(lab.id, "alice")
    await office.join(store.id, "bob")
    archive.platform.actors.clear()
    alice, bob = await archive.person("alice"), await archive.person("bob")
    boss = await archive.person("boss", Role.DOMAIN_ADMIN)

    await archive.make(bob, "shared")
    await archive.share(bob, "shared", alice, "ro")
    (mount,) = await choose(archive, alice, ask("shared"))
    assert mount.permission == "ro"
    with pytest.raises(InvalidRequestError, match="mounted ro, not"):
        await choose(archive, alice, ask("shared", "rw"))
    (mount,) = await choose(archive, bob, ask("shared", "ro"))
    assert mount.permission == "ro"

    await archive.make(boss, "theirs", project="lab")
    with pytest.raises(InvalidRequestError, match="project lab"):
        await choose(archive, alice, ask("theirs"))
    (mount,) = await choose(archive, alice, ask("theirs"), project=lab.id)
    assert mount.permission == "rw"
    await archive.make(bob, "llm", project="store", usage_mode="model")
    (mount,) = await choose(archive, alice, ask("llm"))
    assert mount.permission == "ro"
    with pytest.raises(InvalidRequestError, match="mounted ro"):
        await choose(archive, alice, ask("llm", "rw"))


async def test_m10_to_m12_what_is_not_there_is_said_and_never_left_out(
    archive: Archive,
):
    root = await archive.person("root", Role.SUPERADMIN)
    inside = str(archive.root.parent / "open" / "sets")
    await archive.make(root, "data")
    await archive.make(root, "sets", unmanaged_path=inside)
    (mount,) = await choose(archive, root, ask("sets/2026"))
    assert (mount.unmanaged_path, mount.subpath) == (inside, "2026"), "M11"
    for unknown in ("dta", "00000000-0000-7000-8000-00000000000a"):
        with pytest.raises(NotFoundError):
            await choose(archive, root, ask("sets"), ask(unknown))
    await archive.trash(root, "data")
    with pytest.raises(NotFoundError):
        await choose(archive, root, ask("data"))
