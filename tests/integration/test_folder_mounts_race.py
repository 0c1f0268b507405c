"""A folder is thrown away and mounted at the same moment: one of the two gives way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.errors import ConflictError, HubError
from backendai_hub.core.mounts import MountRequest
from backendai_hub.db.engine import Database
from backendai_hub.operations.session_mounts import choose_mounts, store_mounts
from backendai_hub.operations.users import ensure_user
from tests.factories import submit
from tests.folders import opened_archive


async def test_no_live_session_has_a_folder_of_the_trash(
    database: Database, tmp_path: Path
):
    async with opened_archive(database, tmp_path / "folders") as archive:
        alice = await archive.person("alice")
        for number in range(8):
            name = f"data{number}"
            made = await archive.make(alice, name)
            mount = submit(
                archive.platform,
                server=f"s{number}",
                mounts=[MountRequest(folder=name)],
            )
            thrown, mounted = await asyncio.gather(
                archive.trash(alice, name), mount, return_exceptions=True
            )
            for ended in (thrown, mounted):
                assert not isinstance(ended, BaseException) or isinstance(
                    ended, HubError
                ), ended
            refused = [e for e in (thrown, mounted) if isinstance(e, HubError)]
            assert len(refused) == 1, (thrown, mounted)
            found = await archive.read(alice, made.id)
            if found.status == "delete-pending":
                assert found.mounted_by == 0
            else:
                assert (found.status, found.mounted_by) == ("mounted", 1)


async def test_what_was_thrown_away_since_it_was_chosen_is_not_stored(
    database: Database, tmp_path: Path
):
    async with opened_archive(database, tmp_path / "folders") as archive:
        platform = archive.platform
        alice = await archive.person("alice")
        await archive.make(alice, "data")
        user = await ensure_user(platform, "alice")
        session = (await submit(platform)).session
        request = SessionRequest(image="lab", mounts=[MountRequest(folder="data")])
        chosen = await choose_mounts(
            platform, alice, user, user.project_id or "", request
        )
        await archive.trash(alice, "data")
        with pytest.raises(ConflictError, match="just been thrown away"):
            async with platform.database.transaction() as tx:
                await store_mounts(tx, session.id, chosen)
