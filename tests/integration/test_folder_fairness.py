"""One person's folders, streams and mistakes hold up nobody else's."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backendai_hub.core.access import Principal
from backendai_hub.core.errors import (
    HubError,
    InsufficientStorageError,
    LimitReachedError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)
from backendai_hub.core.tenancy import Role
from backendai_hub.core.vfolders import TaskKind, TaskState
from backendai_hub.db import folder_tasks, quota_scopes
from backendai_hub.db.engine import Database
from backendai_hub.db.signals import Signals
from backendai_hub.handlers.file_contents import taken_in_time
from backendai_hub.operations import file_contents, files, uploads
from backendai_hub.operations.folder_access import OpenFolder, authorize_folder
from backendai_hub.operations.folder_moves import NewOwner
from backendai_hub.operations.folder_purges import purge_folders_of_user
from backendai_hub.operations.folder_upkeep import count_scopes
from backendai_hub.operations.users import ensure_user
from backendai_hub.reconcilers.folders import (
    AT_ONCE,
    MOST_PER_PERSON,
    FoldersReconciler,
)
from backendai_hub.storage.channel import Channel, ServiceLeftError
from backendai_hub.storage.configuration import HostConfig
from backendai_hub.storage.ops import Place, ScanUsage, StatEntry, TrashEntry
from backendai_hub.storage.turns import Turns
from backendai_hub.storage.worker import Slots
from tests.folders import Archive, opened_archive


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


async def opened_folder(archive: Archive, who: Principal, folder_id: str) -> OpenFolder:
    """Open a folder as the API does."""
    user = await ensure_user(archive.platform, who.name)
    return await authorize_folder(archive.platform, who, user, folder_id)


async def test_scopes_without_folders_do_not_keep_others_from_being_counted(
    archive: Archive,
):
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    async with archive.platform.database.transaction() as tx:
        for number in range(100):
            scope = f"project-00000000-0000-4000-8000-{number:012x}"
            await quota_scopes.ensure_scope(tx, "local", scope)
    archive.place(made, alice.id).joinpath("f").write_bytes(b"x" * 100_000)

    assert await count_scopes(archive.platform) == 1
    assert (await archive.read(alice, "data")).used_bytes >= 100_000


async def test_a_path_is_refused_before_anything_is_sent(archive: Archive):
    alice = await archive.person("alice")
    user = await ensure_user(archive.platform, "alice")
    made = await archive.make(alice, "data")

    for path in ("../x", "a\0b", "", "a" * 300, "x/" * 5000 + "x"):
        for conflict in ("rename", "replace", "fail"):
            wish = uploads.Wish(path, 4, conflict)
            with pytest.raises(HubError) as refused:
                await uploads.begin_upload(archive.platform, alice, user, made.id, wish)
            assert 400 <= refused.value.status < 500, (path[:9], conflict)


async def test_who_has_all_of_their_turns_is_told_so_and_others_go_on(
    database: Database, tmp_path: Path
):
    bounds = {"most_per_user": 3, "turn_seconds": 0.3}
    async with opened_archive(database, tmp_path / "folders", **bounds) as archive:
        alice, bob = [await archive.person(name) for name in ("alice", "bob")]
        made = await archive.make(alice, "data")
        archive.place(made, alice.id).joinpath("f").write_bytes(b"x" * (8 << 20))
        mine = await opened_folder(archive, alice, made.id)
        theirs = await opened_folder(archive, bob, (await archive.make(bob, "own")).id)
        platform, everything = archive.platform, files.EntriesQuery()
        nothing = file_contents.Conditions()
        sent = [
            await file_contents.open_content(platform, mine, "f", nothing)
            for _ in range(3)
        ]

        with pytest.raises(TooManyRequestsError, match="under way") as refused:
            await files.list_entries(platform, mine, everything)
        assert refused.value.fields["retry_after"] > 0
        assert not (await files.list_entries(platform, theirs, everything)).items

        for one in sent:
            assert one.stream is not None
            one.stream.close()
            one.stream.close()
        # Ended twice, each gave its turn back once.
        assert len((await files.list_entries(platform, mine, everything)).items) == 1
        assert not platform.storage._turns["local"]._lines


async def test_one_folder_does_not_take_all_turns(tmp_path: Path):
    config = HostConfig(path=str(tmp_path), most_per_folder=1, turn_seconds=0.1)
    turns = Turns("local", config)
    places = [Place(folder_id="1", asker=who) for who in ("a", "b")]
    asked = [StatEntry(place=place, path="f") for place in places]

    end = await turns.take(asked[0])
    with pytest.raises(TooManyRequestsError):
        await turns.take(asked[1])
    end()
    (await turns.take(asked[1]))()


async def test_who_takes_nothing_of_a_download_is_not_waited_for():
    never = asyncio.get_running_loop().create_future()

    with pytest.raises(UnavailableError, match="nothing of it was taken"):
        await taken_in_time(never, 0.01)


def test_who_waits_for_a_slot_leaves_when_nobody_waits_for_them():
    slots = Slots(1)
    ours, theirs = socket.socketpair()
    channel = Channel(theirs)
    try:
        with slots.turn(channel):
            ours.close()
            with pytest.raises(ServiceLeftError), slots.turn(channel):
                pass
        with slots.turn(channel):
            pass
    finally:
        channel.close()


async def begun_upload(archive: Archive, who: Principal, folder_id: str) -> None:
    """Send three of four megabytes of a file."""
    user = await ensure_user(archive.platform, who.name)
    wish = uploads.Wish("f", 4 << 20, "fail")
    begun = await uploads.begin_upload(archive.platform, who, user, folder_id, wish)
    async with await uploads.open_part(
        archive.platform, begun.upload, begun.opened, offset=0, checksum=None
    ) as part:
        await part.write(b"x" * (3 << 20))
        await part.finish()


async def test_a_purged_folder_leaves_nothing_of_its_uploads(archive: Archive):
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    await begun_upload(archive, alice, made.id)
    scope = archive.root / f"user-{alice.id}"
    assert any(file.stat().st_size >= 3 << 20 for file in scope.rglob("*"))

    await archive.trash(alice, "data")
    await archive.purge(alice, made.id, "data")
    await archive.settle()

    assert not [file for file in scope.rglob("*") if file.is_file()]


async def test_a_purged_person_leaves_nothing_of_their_uploads(archive: Archive):
    root = await archive.person("root", Role.SUPERADMIN)
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    await begun_upload(archive, alice, made.id)
    scope = archive.root / f"user-{alice.id}"

    heir = NewOwner(kind="user", id=root.id, name="root", domain_id=root.domain_id)
    async with archive.platform.database.transaction() as tx:
        await purge_folders_of_user(archive.platform, tx, alice.id, heir=heir)
    await archive.settle()

    assert not [file for file in scope.rglob("*") if file.is_file()]


async def test_who_is_a_guest_is_not_told_how_full_the_owners_scope_is(
    archive: Archive,
):
    alice, bob = [await archive.person(name) for name in ("alice", "bob")]
    made = await archive.make(alice, "data")
    await archive.share(alice, "data", bob, "rw")
    async with archive.platform.database.transaction() as tx:
        await quota_scopes.change_scope(
            tx, "local", f"user-{alice.id}", limit_bytes=5 << 30, used_bytes=3 << 30
        )

    said = {}
    for who in (alice, bob):
        user = await ensure_user(archive.platform, who.name)
        wish = uploads.Wish("x", 10 << 30, "fail")
        with pytest.raises(InsufficientStorageError) as refused:
            await uploads.begin_upload(archive.platform, who, user, made.id, wish)
        said[who.name] = refused.value
    assert "5g" in said["alice"].message
    assert "5g" not in said["bob"].message
    assert not {"limit", "used"} & set(said["bob"].fields)


async def test_what_a_store_does_not_offer_is_not_opened_by_its_id(archive: Archive):
    root = await archive.person("root", Role.SUPERADMIN)
    alice = await archive.person("alice")
    store = await archive.office.make(
        "project", name="store", domain="default", type="model-store"
    )
    kept, thrown = [
        await archive.make(root, name, project="store", usage_mode="model")
        for name in ("kept", "thrown")
    ]
    await opened_folder(archive, alice, kept.id)
    await archive.trash(root, thrown.id)

    with pytest.raises(NotFoundError):
        await opened_folder(archive, alice, thrown.id)
    await archive.office.change("project", store.id, is_active=False)
    with pytest.raises(NotFoundError):
        await opened_folder(archive, alice, kept.id)


async def test_nobody_has_more_than_so_many_tasks_and_all_come_in_turn(
    archive: Archive,
):
    alice, bob = [await archive.person(name) for name in ("alice", "bob")]
    platform, kind = archive.platform, TaskKind.EMPTY_TRASH

    async def begin(who: Principal) -> str:
        task_id = platform.new_id()
        async with platform.database.transaction() as tx:
            await folder_tasks.insert_task(tx, task_id, kind, "a folder", who=who)
        return task_id

    hers = [await begin(alice) for _ in range(folder_tasks.MOST_OPEN)]
    with pytest.raises(LimitReachedError, match="that have not ended"):
        await begin(alice)
    his = [await begin(bob) for _ in range(2)]

    async with platform.database.read() as connection:
        tasks = await folder_tasks.list_open(connection)
    order = [task.id for task in folder_tasks.in_turn(tasks)]
    assert order[:5] == [hers[0], his[0], hers[1], his[1], hers[2]]
    async with platform.database.transaction() as tx:
        await folder_tasks.end_task(tx, hers[0], TaskState.DONE)
    await begin(alice)


async def test_so_many_tasks_of_one_person_and_of_one_host_are_under_way(
    archive: Archive,
):
    platform, kind = archive.platform, TaskKind.EMPTY_TRASH
    for name in ("alice", "bob", "carol"):
        who = await archive.person(name)
        folder = await archive.make(who, "own")
        for _ in range(MOST_PER_PERSON + 1):
            async with platform.database.transaction() as tx:
                await folder_tasks.insert_task(
                    tx, platform.new_id(), kind, folder.id, who=who
                )
    desk = FoldersReconciler(platform, Signals())
    assert await desk._begin_tasks() == AT_ONCE
    assert desk._busy.most_common(1)[0][1] == AT_ONCE, "of the host"
    people = {turn for turn in desk._busy if turn.startswith("person")}
    assert max(desk._busy[turn] for turn in people) <= MOST_PER_PERSON
    await platform.folder_work.wait_all()
    assert not desk._busy
    assert await desk._begin_tasks() == AT_ONCE
    await platform.folder_work.wait_all()


async def test_a_first_task_does_not_wait_for_all_of_somebody_elses(archive: Archive):
    alice, bob = [await archive.person(name) for name in ("alice", "bob")]
    platform, kind = archive.platform, TaskKind.EMPTY_TRASH
    folders = [await archive.make(who, "own") for who in (alice, bob)]
    for who, folder, count in ((alice, folders[0], AT_ONCE + 4), (bob, folders[1], 1)):
        for _ in range(count):
            async with platform.database.transaction() as tx:
                task_id = platform.new_id()
                await folder_tasks.insert_task(tx, task_id, kind, folder.id, who=who)

    await FoldersReconciler(platform, Signals())._begin_tasks()

    assert f"finish {task_id}" in platform.folder_work
    await platform.folder_work.wait_all()


async def test_what_is_in_a_folders_trash_counts_until_it_is_removed_for_good(
    archive: Archive,
):
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    archive.place(made, alice.id).joinpath("f").write_bytes(b"x" * 600_000)
    opened = await opened_folder(archive, alice, made.id)
    place = opened.place
    thrown = TrashEntry(
        place=place, path="f", entry_id=archive.platform.new_id(), at="2026-11-21"
    )
    await archive.platform.storage.call(opened.host, thrown)

    await count_scopes(archive.platform)

    assert (await archive.read(alice, "data")).used_bytes >= 600_000
    in_sight = await archive.platform.storage.call(opened.host, ScanUsage(place=place))
    assert in_sight.bytes == 0, "a copy of the folder has nothing of it"
