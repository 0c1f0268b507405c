"""What belongs to nobody, and what is on its way, with the command line alone."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

from tests.admin import KeyAPI, make_administrator
from tests.commandline import with_keypair
from tests.harness import running_stack


async def test_hosts_are_checked_and_uploads_are_ended_from_the_shell(
    tmp_path: Path,
) -> None:
    flags = [f"--HubService.local_folders={tmp_path / 'folders'}"]
    async with running_stack(tmp_path / "data", agent=False, flags=flags) as stack:
        key = await make_administrator(stack)
        assert key.secret is not None
        root = with_keypair(tmp_path / "root", stack.url, key.name, key.secret)
        made = await root.read("folder", "create", "sets")
        assert await root.read("admin", "storage", "check") == []
        (host,) = await root.read("admin", "storage", "hosts")
        assert (host["name"], host["capabilities"]) == ("local", [])

        (scope,) = (tmp_path / "folders").iterdir()
        lost = uuid.uuid4()
        digits = lost.hex
        (scope / digits[:2] / digits[2:4] / digits[4:]).mkdir(parents=True)
        (found,) = await root.read("admin", "storage", "check", "--host", "local")
        assert (found["kind"], found["name"]) == ("folder", str(lost))
        repaired = await root.well("admin", "storage", "check", "--repair")
        assert "0 removed; what was found less than 24 hours ago" in repaired.err
        unknown = await root("admin", "storage", "check", "--host", "nowhere")
        assert (unknown.code != 0, "no storage host" in unknown.err) == (True, True)

        async with KeyAPI(stack.url, key.name, key.secret) as api:
            status, said, _ = await api.ask(
                "POST",
                f"api/folders/{made['id']}/uploads",
                headers={
                    "Tus-Resumable": "1.0.0",
                    "Upload-Length": "10",
                    "Upload-Metadata": "filename YS5iaW4=",
                },
            )
        assert status == 201, said
        (upload,) = await root.read("folder", "uploads", "sets")
        assert (upload["path"], upload["received"]) == ("a.bin", 0)
        await root.well("folder", "uploads", "sets", "--end", upload["id"])
        assert await root.read("folder", "uploads", "sets") == []


async def test_two_platforms_keep_their_things_in_one_folder_under_marks_of_their_own(
    tmp_path: Path,
) -> None:
    sets = tmp_path / "sets"
    sets.mkdir()
    for name in ("one", "two"):
        host = {"path": str(tmp_path / name), "unmanaged_roots": [str(tmp_path)]}
        flags = [f"--HubService.storage_hosts={json.dumps({'local': host})}"]
        folder = tmp_path / f"{name}-data"
        async with running_stack(folder, agent=False, flags=flags) as stack:
            key = await make_administrator(stack)
            assert key.secret is not None
            async with KeyAPI(stack.url, key.name, key.secret) as api:
                made = await api.make("folders", name="sets", unmanaged_path=str(sets))
                place = f"api/folders/{made['id']}/text"
                said = await api.send(
                    "PUT", place, params={"path": name}, json={"text": name}
                )
                assert said[0] == 200, said
    assert sorted(path.name for path in sets.iterdir()) == [".backendai", "one", "two"]
    marks = sorted(path.name for path in (sets / ".backendai").iterdir())
    assert len(marks) == 2
    assert all(re.fullmatch(r"[0-9a-f]{32}", mark) for mark in marks)
