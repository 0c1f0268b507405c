"""How uploads end: complete, after a crash, or not at all; and what they held."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from backendai_hub.core.access import Principal
from backendai_hub.core.errors import InsufficientStorageError, NotFoundError
from backendai_hub.core.slots import LARGEST
from backendai_hub.core.tenancy import Actor
from backendai_hub.core.uploads import HIGHEST, GoneError
from backendai_hub.core.vfolders import Folder
from backendai_hub.db import quota_scopes, uploads
from backendai_hub.db.engine import Database
from backendai_hub.db.quota_scopes import ScopeRecord
from backendai_hub.db.tables import UploadRow
from backendai_hub.operations import uploads as verbs
from backendai_hub.operations.uploads import Begun, Wish
from backendai_hub.operations.users import ensure_user
from backendai_hub.storage.ops import FinishUpload, ListUploads
from tests.folders import Archive, opened_archive
from tests.integration.test_storage_filesystems import mounted
from tests.storage import PART


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


class Person:
    """Somebody with a folder of their own, and an upload into it."""

    def __init__(self, archive: Archive, who: Principal, folder: Folder) -> None:
        self.archive = archive
        self.who = who
        self.folder = folder

    @classmethod
    async def new(cls, archive: Archive) -> Person:
        who = await archive.person("ann")
        return cls(archive, who, await archive.make(who, "data"))

    async def actor(self) -> Actor:
        return await ensure_user(self.archive.platform, "ann")

    async def begin(self, length: int, path: str = "a.bin") -> Begun:
        return await verbs.begin_upload(
            self.archive.platform,
            self.who,
            await self.actor(),
            self.folder.id,
            Wish(path, length),
        )

    async def send(self, begun: Begun, content: bytes) -> None:
        writer = await verbs.open_part(
            self.archive.platform,
            begun.upload,
            begun.opened,
            offset=0,
            checksum=None,
        )
        async with writer:
            for at in range(0, len(content), PART):
                await writer.write(content[at : at + PART])
            await writer.finish()

    async def standing(self, begun: Begun) -> verbs.Standing:
        return await verbs.tell_standing(
            self.archive.platform, self.who, await self.actor(), begun.upload.id
        )

    async def scope(self) -> ScopeRecord:
        async with self.archive.platform.database.read() as connection:
            (found,) = await quota_scopes.list_scopes(connection, True)
        return found

    async def pass_time(self, begun: Begun) -> None:
        """Let a day and more go by for one upload."""
        database = self.archive.platform.database
        past = database.clock() - timedelta(seconds=1)
        async with database.transaction() as tx:
            await tx.execute(
                update(UploadRow)
                .where(UploadRow.id == begun.upload.id)
                .values(expires_at=past)
            )

    async def left(self) -> list[str]:
        found = await self.archive.platform.storage.call(
            "local", ListUploads(scope=(await self.scope()).scope)
        )
        return found.names


async def test_that_a_file_appeared_is_written_down_later_by_who_finds_it(
    archive: Archive,
) -> None:
    person = await Person.new(archive)
    begun = await person.begin(5)
    await person.send(begun, b"hello")
    await archive.platform.storage.call(
        "local",
        FinishUpload(
            place=begun.opened.place, upload_id=begun.upload.id, path="a.bin", length=5
        ),
    )  # and here it has died

    assert (await person.standing(begun)).offset == 5
    assert (await person.standing(begun)).offset == 5  # asked twice, counted once
    scope = await person.scope()
    assert (scope.used_bytes, scope.reserved_bytes, scope.used_files) == (5, 0, 1)
    place = archive.place(person.folder, person.who.id)
    assert [p.name for p in place.iterdir()] == ["a.bin"]
    assert await person.left() == []


async def test_a_complete_file_appears_later_if_the_service_died_before(
    archive: Archive,
) -> None:
    person = await Person.new(archive)
    begun = await person.begin(5)
    await person.send(begun, b"hello")  # and here it has died
    assert (await person.standing(begun)).offset == 5
    place = archive.place(person.folder, person.who.id)
    assert (place / "a.bin").read_bytes() == b"hello"


async def test_nobody_announces_more_than_could_be_kept_anywhere(
    archive: Archive,
) -> None:
    """Also without a limit, sums stay numbers that the databases can tell."""
    person = await Person.new(archive)
    await person.begin(LARGEST, "much")
    for length in (1, LARGEST, HIGHEST):
        with pytest.raises(InsufficientStorageError, match="user ann may keep 1e"):
            await person.begin(length)
    assert (await person.scope()).reserved_bytes == LARGEST


async def test_an_upload_that_does_not_go_on_is_ended_and_its_room_given_back(
    archive: Archive,
) -> None:
    person = await Person.new(archive)
    begun, other = await person.begin(5), await person.begin(7, "b.bin")
    await person.send(begun, b"hel")
    assert (await person.scope()).reserved_bytes == 12
    await person.pass_time(begun)

    assert await verbs.sweep_uploads(archive.platform) == 1
    assert (await person.scope()).reserved_bytes == 7
    assert await person.left() == [other.upload.id]
    with pytest.raises(GoneError):
        await person.standing(begun)


async def test_it_is_forgotten_in_time_that_there_was_an_upload(
    archive: Archive,
) -> None:
    person = await Person.new(archive)
    begun = await person.begin(0)
    await verbs.note_part(archive.platform, begun.upload, begun.opened, 0)
    assert await verbs.sweep_uploads(archive.platform) == 0
    await person.pass_time(begun)
    assert await verbs.sweep_uploads(archive.platform) == 1
    with pytest.raises(NotFoundError):
        await person.standing(begun)


async def test_each_part_lets_an_upload_live_on(archive: Archive) -> None:
    person = await Person.new(archive)
    begun = await person.begin(5)
    await person.pass_time(begun)
    async with archive.platform.database.read() as connection:
        stale = await uploads.find_upload(connection, begun.upload.id)
    assert stale is not None
    await verbs.note_part(archive.platform, stale, begun.opened, 3)
    assert await verbs.sweep_uploads(archive.platform) == 0


@pytest.mark.mounts
@pytest.mark.parametrize("what", ["bytes", "files"])
async def test_what_finds_a_full_host_leaves_the_figures_right_and_others_go_on(
    database: Database, tmp_path: Path, what: str
) -> None:
    size = {"bytes": "size=8m", "files": "size=64m,nr_inodes=60"}[what]
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", size, "tmpfs") as where:
        async with opened_archive(database, where / "folders") as archive:
            person = await Person.new(archive)
            begun = await person.begin(4)
            await person.send(begun, b"kept")
            assert (await person.standing(begun)).offset == 4

            most = 20 << 20 if what == "bytes" else 1
            held: list[Begun] = []

            async def fill() -> None:
                for number in range(100):
                    held.append(await person.begin(most, f"more{number}"))
                    await person.send(held[-1], b"x" * most)

            with pytest.raises(InsufficientStorageError) as refused:
                await fill()
            assert refused.value.status == 507
            actor = await person.actor()
            for one in held:
                await verbs.end_upload(
                    archive.platform, person.who, actor, one.upload.id
                )

            scope = await person.scope()
            assert (scope.used_bytes, scope.reserved_bytes) == (4, 0)
            assert scope.used_files == 1
            assert await person.left() == []
            place = archive.place(person.folder, person.who.id)
            assert [p.name for p in place.iterdir()] == ["a.bin"]
            again = await person.begin(4, "again")
            await person.send(again, b"fits")
            assert (await person.standing(again)).offset == 4
