"""The ``backendai`` command, run in this process as people run it in a shell."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from backendai_hub.cli import main


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, for programs."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[list[str]]:
        """What it printed, as lines of columns."""
        return [line.split("\t") for line in self.out.splitlines()]


class CommandLine:
    """A shell of somebody with a home of their own."""

    def __init__(self, home: Path, **environ: str) -> None:
        self.home = home
        self.environ: dict[str, str] = {
            "XDG_CONFIG_HOME": str(home / "config"),
            "BACKENDAI_DATA_DIR": str(home / "no-platform-here"),
            "BACKENDAI_ENDPOINT": "",
            "BACKENDAI_API_URL": "",
            "BACKENDAI_ACCESS_KEY": "",
            "BACKENDAI_SECRET_KEY": "",
            "BACKENDAI_PROFILE": "",
            "JUPYTERHUB_API_TOKEN": "",
            **environ,
        }

    @property
    def store(self) -> Path:
        """Where logins are kept."""
        return self.home / "config" / "backendai" / "credentials.json"

    def run(self, *words: str, say: str = "") -> Done:
        """Run a command to its end."""
        result = CliRunner().invoke(main, words, input=say, env=self.environ)
        if result.exception is not None and not isinstance(
            result.exception, SystemExit
        ):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    async def __call__(self, *words: str, say: str = "") -> Done:
        """Run a command beside the loop of a test."""
        return await asyncio.to_thread(self.run, *words, say=say)

    async def well(self, *words: str, say: str = "") -> Done:
        """Run a command that has to go well."""
        done = await self(*words, say=say)
        assert done.code == 0, (words, done)
        return done

    async def read(self, *words: str) -> Any:
        """Run a command that has to go well, and return its JSON."""
        return (await self.well(*words, "--json")).json


def with_keypair(
    home: Path, url: str, access_key: str, secret: str | None, **more: str
) -> CommandLine:
    """Return the shell of somebody who has set their keypair in the environment."""
    assert secret is not None
    environ: Mapping[str, str] = {
        "BACKENDAI_ENDPOINT": url,
        "BACKENDAI_ACCESS_KEY": access_key,
        "BACKENDAI_SECRET_KEY": secret,
        **more,
    }
    return CommandLine(home, **environ)


def column(done: Done, number: int) -> Sequence[str]:
    """Return one column of what was printed."""
    return [line[number] for line in done.lines]
