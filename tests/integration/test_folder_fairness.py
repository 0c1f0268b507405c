"""One person's folders, streams and mistakes hold up nobody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backendai_hub.core.errors import HubError
from backendai_hub.db import quota_scopes
from backendai_hub.db.engine import Database
from backendai_hub.operations import uploads
from backendai_hub.operations.folder_upkeep import count_scopes
from backendai_hub.operations.users import ensure_user
from tests.folders import Archive, opened_archive


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


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
