"""Large files with the command line at a terminal, which is killed and goes on."""

from __future__ import annotations

import asyncio
import os
import pty
import random
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path

from tests.admin import make_administrator
from tests.commandline import CommandLine, with_keypair
from tests.harness import running_stack, until

PART = 8 << 20
"""So much the client sends at once, and the service has all of it or nothing."""
CONTENT = random.Random(9).randbytes(1 << 20) * 128
BAR = r"{}.*?134\.2 MB"


class AtTerminal:
    """A command that believes that somebody looks at it."""

    def __init__(self, process: asyncio.subprocess.Process, terminal: int) -> None:
        self.process = process
        self._shown = asyncio.create_task(asyncio.to_thread(_read_all, terminal))

    @classmethod
    async def begin(cls, of: CommandLine, *words: str) -> AtTerminal:
        terminal, inner = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "backendai_hub.cli", *words),
            env={
                **os.environ,
                **of.environ,
                "XDG_CACHE_HOME": str(of.home / "cache"),
                "TERM": "xterm",
                "COLUMNS": "100",
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=inner,
        )
        os.close(inner)
        return cls(process, terminal)

    async def end(self) -> tuple[int, str]:
        """Wait for its end; returns how it ended, and what was shown."""
        code = await self.process.wait()
        return code, await self._shown

    async def kill(self) -> str:
        self.process.kill()
        code, shown = await self.end()
        assert code == -signal.SIGKILL, shown
        return shown


def _read_all(terminal: int) -> str:
    found = b""
    with open(terminal, "rb", buffering=0) as file, suppress(OSError):
        while piece := file.read(4096):
            found += piece
    return found.decode(errors="replace")


def size_of(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


async def test_what_is_killed_on_the_way_goes_on_and_shows_how_far_it_is(
    tmp_path: Path,
) -> None:
    folders = tmp_path / "folders"
    flags = [f"--HubService.local_folders={folders}"]
    async with running_stack(tmp_path / "data", agent=False, flags=flags) as stack:
        key = await make_administrator(stack)
        root = with_keypair(tmp_path / "root", stack.url, key.name, key.secret)
        await root.well("folder", "create", "sets")
        source = tmp_path / "large.bin"
        source.write_bytes(CONTENT)

        upload = ("folder", "upload", "sets", str(source))
        sending = await AtTerminal.begin(root, *upload)
        await until(
            lambda: any(size_of(p) > PART for p in folders.glob("*/.uploads/*")),
            "more than a part of it has come",
        )
        shown = await sending.kill()
        assert re.search(BAR.format("sending"), shown, re.DOTALL), shown
        (begun,) = [path for path in folders.glob("*/.uploads/*") if path.suffix == ""]
        which = begun.stat().st_ino
        code, shown = await (await AtTerminal.begin(root, *upload)).end()
        assert code == 0, shown
        (there,) = folders.glob("*/??/??/*/large.bin")
        assert there.stat().st_ino == which, "it is the one that was begun"
        assert there.read_bytes() == CONTENT

        here = tmp_path / "here"
        here.mkdir()
        part = here / "large.bin.part"
        download = ("folder", "download", "sets", "large.bin", "--to", str(here))
        fetching = await AtTerminal.begin(root, *download)
        await until(lambda: size_of(part) > 0, "some of it is here")
        shown = await fetching.kill()
        assert re.search(BAR.format("fetching"), shown, re.DOTALL), shown
        assert 0 < size_of(part) < len(CONTENT)
        # What has come is not fetched again: it stays as we have marked it.
        mark = bytes([CONTENT[0] ^ 1])
        with part.open("r+b") as file:
            file.write(mark)
        code, shown = await (await AtTerminal.begin(root, *download)).end()
        assert code == 0, shown
        assert (here / "large.bin").read_bytes() == mark + CONTENT[1:]
