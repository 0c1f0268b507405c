"""The files in a folder with the command line alone, on a real service."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from backendai_hub.cli import main
from tests.admin import make_administrator
from tests.commandline import column, with_keypair
from tests.harness import running_stack

CONTENT = random.Random(7).randbytes(200_000)


async def test_files_from_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = [f"--HubService.local_folders={tmp_path / 'folders'}"]
    async with running_stack(tmp_path / "data", agent=False, flags=flags) as stack:
        key = await make_administrator(stack)
        home = tmp_path / "root"
        root = with_keypair(home, stack.url, key.name, key.secret)
        await root.well("folder", "create", "sets", "--permission", "wd")

        source = tmp_path / "runs"
        (source / "1").mkdir(parents=True)
        (source / "empty").mkdir()
        (source / "1/weights").write_bytes(CONTENT)
        (source / "log").write_text("first\n")
        (source / "link").symlink_to("log")
        sent = await root.well("folder", "upload", "sets", str(source), "--to", "in")
        assert sorted(sent.out.splitlines()) == [
            "in/runs/1/weights is uploaded",
            "in/runs/log is uploaded",
        ]
        listed = await root.read("folder", "ls", "sets", "in/runs")
        assert [e["name"] for e in listed] == ["1", "empty", "log"]
        assert (
            await root.well("folder", "cat", "sets", "in/runs/log")
        ).out == "first\n"

        again = await root("folder", "upload", "sets", str(source), "--to", "in")
        assert again.code == 1
        assert "exists already" in again.err

        target = tmp_path / "here"
        target.mkdir()
        await root.well("folder", "download", "sets", "in/runs", "--to", str(target))
        assert (target / "runs/1/weights").read_bytes() == CONTENT
        assert (target / "runs/empty").is_dir()
        packed = ["--archive", "zip", "--to", str(target)]
        await root.well("folder", "download", "sets", "in/runs", *packed)
        assert (target / "runs.zip").stat().st_size > 200_000
        await root.well("folder", "download", "sets", "/", *packed)
        assert (target / "sets.zip").stat().st_size > 200_000

        await root.well("folder", "mkdir", "sets", "a/b", "-p")
        await root.well("folder", "mv", "sets", "in/runs/log", "a/b/log")
        await root.well("folder", "cp", "sets", "a/b", "a/c", "--wait")
        await root.well("folder", "upload", "sets", str(target / "runs.zip"))
        await root.well("folder", "extract", "sets", "runs.zip", "out", "--wait")
        names = column(await root.well("folder", "ls", "sets"), 3)
        assert names == ["a", "in", "out", "runs.zip"]

        for name, value in root.environ.items():
            monkeypatch.setenv(name, value)

        def complete(*words: str) -> list[str]:
            shell = ShellComplete(main, {}, "backendai", "_BACKENDAI_COMPLETE")
            found = shell.get_completions(["folder", *words[:-1]], words[-1])
            return [item.value for item in found]

        assert await asyncio.to_thread(complete, "ls", "s") == ["sets"]
        found = await asyncio.to_thread(complete, "cat", "sets", "a/b/")
        assert found == ["a/b/log"]
        assert await asyncio.to_thread(complete, "ls", "sets", "i") == ["in/"]

        partly = await root("folder", "rm", "sets", "a/c", "nothing")
        assert partly.code == 5
        (thrown,) = await root.read("folder", "trash", "sets")
        assert (thrown["path"], thrown["thrown_by"]) == ("a/c", "root")
        await root.well("folder", "untrash", "sets", "a/c")
        names = column(await root.well("folder", "ls", "sets", "a"), 3)
        assert names == ["b", "c"]
        await root.well("folder", "rm", "sets", "a")
        assert (await root("folder", "trash", "sets", "--empty")).code == 2, "it asks"
        await root.well("folder", "trash", "sets", "--empty", "--yes")
        assert await root.read("folder", "trash", "sets") == []
