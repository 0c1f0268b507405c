"""Making virtual folders: the twelve rules, one by one, on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backendai_hub.core.errors import (
    NotFoundError,
)
from backendai_hub.db.engine import Database
from tests.folders import Archive, opened_archive


@pytest.fixture
async def archive(database: Database, tmp_path: Path) -> AsyncIterator[Archive]:
    async with opened_archive(database, tmp_path / "folders") as opened:
        yield opened


async def test_a_folder_is_made_on_disk_and_belongs_to_who_made_it(archive: Archive):
    alice = await archive.person("alice")
    made = await archive.make(alice, "data")
    assert (made.status, made.host, made.user, made.ownership_type) == (
        "ready",
        "local",
        "alice",
        "user",
    )
    assert (made.access, made.is_owner, made.mounted_by) == ("rw", True, 0)
    assert archive.place(made, alice.id).is_dir()
    assert await archive.names(alice) == ["data"]
    assert await archive.names(await archive.person("bob")) == []
    with pytest.raises(NotFoundError):
        await archive.read(await archive.person("bob"), made.id)
