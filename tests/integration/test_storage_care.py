"""What lies on storage hosts and belongs to nobody: found, left alone, and removed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, update

from backendai_hub.api.files import CopyRequest
from backendai_hub.api.storage import StorageCheckRequest
from backendai_hub.core.access import Principal
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Role
from backendai_hub.core.vfolders import Folder, FolderStatus
from backendai_hub.db.engine import Database
from backendai_hub.db.storage_remains import Thing, note_found
from backendai_hub.db.tables import (
    FolderRow,
    QuotaScopeRow,
    RemainRow,
    UploadRow,
)
from backendai_hub.operations import storage_care as verbs
from backendai_hub.operations import storage_checks as checks
from backendai_hub.operations.file_tasks import begin_copy
from backendai_hub.operations.folder_access import authorize_folder
from backendai_hub.operations.nouns import purge_noun
from backendai_hub.operations.uploads import Wish, begin_upload, open_part
from backendai_hub.operations.users import ensure_user
from backendai_hub.storage.ops import (
    BeginUpload,
    MakeFolder,
    MakeScope,
    Place,
    TrashEntry,
    WriteText,
)
from tests.folders import Archive, opened_archive
from tests.storage import Desk, new_id, running_hosts


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    roots = [str(tmp_path / "sets")]
    async with opened_archive(
        database, tmp_path / "folders", unmanaged_roots=roots
    ) as opened:
        yield opened


class House:
    """A storage host with a folder of alice's, and what nobody knows beside it."""

    def __init__(self, archive: Archive, alice: Principal, folder: Folder) -> None:
        self.archive = archive
        self.alice = alice
        self.folder = folder
        self.scope = f"user-{alice.id}"

    @classmethod
    async def new(cls, archive: Archive) -> House:
        alice = await archive.person("alice")
        return cls(archive, alice, await archive.make(alice, "data"))

    @property
    def top(self) -> Path:
        return self.archive.root / self.scope

    @property
    def place(self) -> Place:
        return Place(scope=self.scope, folder_id=self.folder.id)

    async def call(self, operation: Any) -> Any:
        return await self.archive.platform.storage.call("local", operation)

    async def lose_a_folder(self) -> Place:
        """Have a folder on the disk that no row tells of."""
        lost = Place(scope=self.scope, folder_id=new_id())
        await self.call(MakeFolder(place=lost))
        return lost

    async def lose_an_upload(self) -> str:
        upload_id = new_id()
        await self.call(BeginUpload(place=self.place, upload_id=upload_id))
        return upload_id

    async def look(self) -> list[tuple[str, str]]:
        await verbs.look_through(self.archive.platform, ["local"])
        async with self.archive.platform.database.read() as connection:
            rows = await connection.execute(
                select(RemainRow.kind, RemainRow.name).order_by(
                    RemainRow.kind, RemainRow.name
                )
            )
            return [(row.kind, row.name) for row in rows]

    async def grow_old(self) -> None:
        """Let the time of grace go by for everything that was found."""
        past = self.archive.platform.database.clock() - timedelta(days=2)
        async with self.archive.platform.database.transaction() as tx:
            await tx.execute(update(RemainRow).values(found_at=past))

    async def clean(self, *, repair: bool = False) -> int:
        return await verbs.remove_remains(
            self.archive.platform, ["local"], repair=repair
        )

    def uploads(self) -> list[str]:
        where = self.top / ".uploads"
        return sorted(path.name for path in where.iterdir()) if where.exists() else []


async def test_what_is_in_use_belongs_to_somebody(archive: Archive):
    house = await House.new(archive)
    actor = await ensure_user(archive.platform, "alice")
    await begin_upload(
        archive.platform, house.alice, actor, house.folder.id, Wish("a", 3)
    )
    path = archive.place(house.folder, house.alice.id)
    (path / "old").write_text("old")
    await house.call(
        TrashEntry(place=house.place, path="old", entry_id=new_id(), at="2026")
    )
    assert await house.look() == []


async def test_half_of_an_upload_that_nobody_knows_goes_after_its_time_of_grace(
    archive: Archive,
):
    house = await House.new(archive)
    lost = await house.lose_an_upload()
    assert await house.look() == [("upload", lost)]
    assert await house.clean() == 0, "it was found just now"
    assert house.uploads() == [lost]
    await house.grow_old()
    assert await house.look() == [("upload", lost)]
    assert await house.clean() == 1
    assert house.uploads() == []
    assert await house.look() == []


async def test_what_is_found_again_is_not_younger_for_it(archive: Archive):
    house = await House.new(archive)
    lost = await house.lose_an_upload()
    await house.look()
    await house.grow_old()
    await house.look()
    async with archive.platform.database.read() as connection:
        (found,) = await connection.scalars(select(RemainRow.found_at))
    assert archive.platform.database.clock() - found > timedelta(days=1), lost


async def test_a_folder_that_nobody_knows_is_reported_and_goes_when_that_is_said(
    archive: Archive,
):
    house = await House.new(archive)
    lost = await house.lose_a_folder()
    assert await house.look() == [("folder", lost.folder_id)]
    assert await house.clean(repair=True) == 0, "it was found just now"
    await house.grow_old()
    assert await house.clean() == 0, "it may be somebody's data"
    assert await house.clean(repair=True) == 1
    assert await house.look() == []
    assert archive.place(house.folder, house.alice.id).is_dir()


async def test_unfinished_work_and_the_trash_of_folders_that_are_gone_are_found(
    archive: Archive,
):
    house = await House.new(archive)
    one = new_id()
    for name in (f".staging/{one}/half", f".removing/{one}", f".cloning/{one}"):
        (house.top / name).mkdir(parents=True)
    (house.top / ".trash" / one / one).mkdir(parents=True)
    (house.top / "letter").write_text("to whom?")
    found = [
        ("cloning", one),
        ("removing", one),
        ("staging", one),
        ("trash", one),
        ("unknown", "letter"),
    ]
    assert await house.look() == found
    await house.grow_old()
    assert await house.clean() == 3
    assert await house.look() == found[3:]
    await house.grow_old()
    assert await house.clean(repair=True) == 1
    assert await house.look() == found[4:]
    assert (house.top / "letter").read_text() == "to whom?", "nothing of ours"


async def test_a_folder_that_somebody_works_on_is_left_alone(archive: Archive):
    house = await House.new(archive)
    async with archive.platform.database.transaction() as tx:
        await tx.execute(
            update(FolderRow)
            .where(FolderRow.id == house.folder.id)
            .values(status=str(FolderStatus.DELETE_ONGOING))
        )
    (house.top / ".removing" / house.folder.id).mkdir(parents=True)
    (house.top / ".removing" / f"{house.folder.id}.trash").mkdir()
    assert await house.look() == []


async def test_what_has_become_known_meanwhile_stays(archive: Archive):
    house = await House.new(archive)
    lost = await house.lose_an_upload()
    await house.look()
    await house.grow_old()
    database = archive.platform.database
    now = database.clock()
    async with database.transaction() as tx:
        await tx.execute(
            UploadRow.__table__.insert().values(  # type: ignore[attr-defined]
                id=lost,
                folder_id=house.folder.id,
                user_id=house.alice.id,
                path="a",
                length=1,
                created_at=now,
                modified_at=now,
                expires_at=now,
            )
        )
    assert await house.clean() == 0
    assert house.uploads() == [lost]
    assert await house.look() == []


async def test_a_crash_after_the_intent_leaves_it_to_the_next_look(archive: Archive):
    house = await House.new(archive)
    lost = await house.lose_an_upload()
    await house.look()
    await house.grow_old()
    async with archive.platform.database.transaction() as tx:
        await tx.execute(update(RemainRow).values(state="removing"))
    assert await house.clean() == 1, "the removal had not begun"
    assert house.uploads() == []
    lost = await house.lose_an_upload()
    await house.look()
    async with archive.platform.database.transaction() as tx:
        await tx.execute(update(RemainRow).values(state="removing"))
    (house.top / ".uploads" / lost).unlink()
    assert await house.look() == [], "it had ended, and nobody had been told"


async def test_the_scope_of_somebody_who_was_purged_goes(archive: Archive):
    house = await House.new(archive)
    root = await archive.person("root", Role.SUPERADMIN)
    await archive.make(root, "kept")
    await archive.office.change("user", "alice", status="inactive")
    await purge_noun(archive.platform, root, noun_of("user"), "alice")
    assert await house.look() == [], "their folders are still to be removed"
    await archive.settle()
    assert await house.look() == [("scope", "")]
    await house.grow_old()
    assert await house.clean() == 1
    assert not house.top.exists()
    async with archive.platform.database.read() as connection:
        known = list(await connection.scalars(select(QuotaScopeRow.scope)))
    assert known == [f"user-{root.id}"]
    assert await house.look() == []


async def test_nothing_is_touched_in_scopes_that_somebody_else_has_made(
    archive: Archive,
):
    house = await House.new(archive)
    theirs = f"user-{new_id()}"
    await house.call(MakeScope(scope=theirs))
    upload_id = new_id()
    place = Place(scope=theirs, folder_id=new_id())
    await house.call(MakeFolder(place=place))
    await house.call(BeginUpload(place=place, upload_id=upload_id))
    assert await house.look() == [
        ("folder", place.folder_id),
        ("scope", ""),
        ("upload", upload_id),
    ]
    await house.grow_old()
    assert await house.clean() == 0
    assert (archive.root / theirs / ".uploads" / upload_id).exists()
    assert await house.clean(repair=True) == 3, "but it is when that is said"
    assert not (archive.root / theirs).exists()


async def test_a_folder_whose_place_is_gone_is_told(archive: Archive):
    house = await House.new(archive)
    archive.place(house.folder, house.alice.id).rmdir()
    assert await house.look() == [("missing", house.folder.id)]
    await house.grow_old()
    assert await house.clean(repair=True) == 0
    assert await house.look() == [("missing", house.folder.id)]


async def test_administrators_ask_for_it_and_are_told(archive: Archive):
    house = await House.new(archive)
    lost = await house.lose_a_folder()
    told = await checks.check_storage(archive.platform, "root", StorageCheckRequest())
    assert (told.hosts, told.silent, told.removed) == (["local"], [], 0)
    (item,) = told.items
    assert (item.kind, item.name, item.removable) == (
        "folder",
        lost.folder_id,
        "repair",
    )
    assert not item.is_due
    await house.grow_old()
    told = await checks.check_storage(
        archive.platform, "root", StorageCheckRequest(host="local", repair=True)
    )
    assert (told.removed, told.items) == (1, [])


async def test_a_part_that_comes_while_its_folder_is_purged_leaves_nothing(
    archive: Archive,
):
    house = await House.new(archive)
    actor = await ensure_user(archive.platform, "alice")
    begun = await begin_upload(
        archive.platform, house.alice, actor, house.folder.id, Wish("a", 100)
    )
    writer = await open_part(
        archive.platform, begun.upload, begun.opened, offset=0, checksum=None
    )
    async with writer:
        await writer.write(b"some")
        await archive.trash(house.alice, "data")
        await archive.purge(house.alice, house.folder.id, "data")
        await archive.settle()
        assert house.uploads() == [], "gone while it was being sent"
        await writer.write(b"more")
    assert house.uploads() == []
    assert await house.look() == []


async def test_what_was_thrown_away_in_a_folder_goes_after_some_days(archive: Archive):
    house = await House.new(archive)
    path = archive.place(house.folder, house.alice.id)
    ids = {name: new_id() for name in ("old", "new")}
    times = {"old": "2020-01-01T00:00:00.000Z", "new": "2999-01-01T00:00:00.000Z"}
    for name, entry_id in ids.items():
        (path / name).write_text(name)
        operation = TrashEntry(
            place=house.place, path=name, entry_id=entry_id, at=times[name]
        )
        await house.call(operation)
    own = msgspec.structs.replace(house.place, within=house.alice.id)
    (path / house.alice.id).mkdir()
    (path / house.alice.id / "mine").write_text("mine")
    mine = TrashEntry(place=own, path="mine", entry_id=new_id(), at=times["old"])
    await house.call(mine)
    kept = dataclasses.replace(
        archive.platform,
        settings=dataclasses.replace(archive.platform.settings, file_trash_days=0),
    )
    trash = house.top / ".trash" / house.folder.id
    await verbs.care(kept)
    assert len(list(trash.iterdir())) == 3, "0 days: never"
    await verbs.care(archive.platform)
    left = sorted(path.name for path in trash.iterdir())
    assert left == sorted([ids["new"], f"of-{house.alice.id}"])
    assert list((trash / f"of-{house.alice.id}").iterdir()) == []
    assert json.loads((trash / ids["new"] / "note").read_text())["path"] == "new"


async def make_unmanaged(archive: Archive, tmp_path: Path, name: str) -> Folder:
    inside = tmp_path / "sets" / "one"
    inside.mkdir(parents=True, exist_ok=True)
    admin = await archive.person("admin", Role.SUPERADMIN)
    return await archive.make(admin, name, unmanaged_path=str(inside))


async def test_what_we_left_in_an_unmanaged_folder_goes_when_that_is_said(
    archive: Archive, tmp_path: Path
):
    house = await House.new(archive)
    made = await make_unmanaged(archive, tmp_path, "sets")
    inside = tmp_path / "sets" / "one"
    assert await house.look() == []
    assert list(inside.iterdir()) == [], "looking leaves nothing"
    place = Place(unmanaged=str(inside))
    upload, task = new_id(), f"task-{new_id()}"
    await house.call(BeginUpload(place=place, upload_id=upload))
    kept = inside / ".backendai"
    (kept / "ours" / ".staging" / task).mkdir(parents=True)
    await house.call(WriteText(place=place, path="mine", content=b"people's"))
    mine = TrashEntry(place=place, path="mine", entry_id=new_id(), at="2026")
    await house.call(mine)

    assert await house.look() == [("staging", task), ("upload", upload)]
    page = await checks.list_remains(archive.platform, checks.RemainsQuery())
    assert {one.scope for one in page.items} == {f"folder-{made.id}"}
    assert {one.removable for one in page.items} == {"repair"}
    await house.grow_old()
    assert await house.clean() == 0, "the folder is somebody else's"
    assert await house.clean(repair=True) == 2
    assert await house.look() == []
    assert list((kept / "ours" / ".uploads").iterdir()) == []
    assert list((kept / ".trash").rglob("entry")) != [], "people's own"


async def test_what_another_platform_has_on_its_way_is_neither_seen_nor_removed(
    archive: Archive, tmp_path: Path
):
    house = await House.new(archive)
    made = await make_unmanaged(archive, tmp_path, "sets")
    inside = tmp_path / "sets" / "one"
    place = Place(unmanaged=str(inside))
    described = {"path": str(tmp_path / "b"), "unmanaged_roots": [str(tmp_path)]}
    theirs = new_id()
    async with running_hosts({"local": described}, mark="theirs") as other:
        begun = BeginUpload(place=place, upload_id=theirs)
        await other.call("local", begun)
        old = inside / ".backendai" / ".uploads"
        old.mkdir()
        (old / new_id()).write_bytes(b"nobody's mark")

        assert await house.look() == []
        async with archive.platform.database.transaction() as tx:
            await note_found(
                tx, "local", f"folder-{made.id}", {Thing("upload", theirs): "lost"}
            )
        await house.grow_old()
        assert await house.clean(repair=True) == 1, "forgotten, for it is not there"
        assert len(list(old.iterdir())) == 1
        desk = Desk(other, place)
        await desk.send(theirs, b"content")
        assert (await desk.finish(theirs, "a", 7)).size == 7
    assert (inside / "a").read_bytes() == b"content"


async def test_what_is_on_its_way_to_one_place_by_another_name_belongs_to_somebody(
    archive: Archive, tmp_path: Path
):
    house = await House.new(archive)
    made = await make_unmanaged(archive, tmp_path, "sets")
    admin = await archive.person("admin", Role.SUPERADMIN)
    actor = await ensure_user(archive.platform, "admin")
    await begin_upload(archive.platform, admin, actor, made.id, Wish("a", 3))
    for column, other in (("unmanaged_path", made.unmanaged_path + "/"), ("host", "b")):
        again = await make_unmanaged(archive, tmp_path, f"by {column}")
        await begin_upload(archive.platform, admin, actor, again.id, Wish(column, 3))
        async with archive.platform.database.transaction() as tx:
            this = update(FolderRow).where(FolderRow.id == again.id)
            await tx.execute(this.values({column: other}))
    assert await house.look() == []


async def test_a_path_of_an_unmanaged_folder_is_spelled_in_one_way(
    archive: Archive, tmp_path: Path
):
    inside = tmp_path / "sets" / "one"
    inside.mkdir(parents=True)
    admin = await archive.person("admin", Role.SUPERADMIN)
    for number, path in enumerate((f"{inside}/", f"{tmp_path}/./sets//one")):
        made = await archive.make(admin, f"sets{number}", unmanaged_path=path)
        assert made.unmanaged_path == str(inside)


async def test_what_is_on_its_way_into_an_unmanaged_folder_belongs_to_somebody(
    archive: Archive, tmp_path: Path
):
    house = await House.new(archive)
    made = await make_unmanaged(archive, tmp_path, "sets")
    other = await make_unmanaged(archive, tmp_path, "same")
    admin = await archive.person("admin", Role.SUPERADMIN)
    actor = await ensure_user(archive.platform, "admin")
    for folder in (made, other):
        await begin_upload(archive.platform, admin, actor, folder.id, Wish("a", 3))
    assert await house.look() == []


async def test_an_unmanaged_folder_that_is_not_there_keeps_nobody_from_the_others(
    archive: Archive, tmp_path: Path
):
    house = await House.new(archive)
    await make_unmanaged(archive, tmp_path, "sets")
    lost = await house.lose_an_upload()
    (tmp_path / "sets" / "one").rmdir()
    assert await house.look() == [("upload", lost)]


async def test_what_belongs_to_a_task_stays_as_long_as_that_is_open(archive: Archive):
    house = await House.new(archive)
    (archive.place(house.folder, house.alice.id) / "a").write_text("a")
    opened = await authorize_folder(
        archive.platform, house.alice, None, house.folder.id, write=True
    )
    body = CopyRequest(path="a", target="b")
    begun = await begin_copy(archive.platform, opened, house.alice, body)
    kept, lost = f"task-{begun.task.id}", f"task-{new_id()}"
    for name in (kept, lost):
        (house.top / ".staging" / name).mkdir(parents=True)
    assert await house.look() == [("staging", lost)]
    await archive.settle()
    assert (house.top / ".staging" / lost).exists()
    assert not (house.top / ".staging" / kept).exists()
