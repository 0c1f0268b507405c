"""Batch sessions for real: a service, an agent, and commands that really run."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from backendai_hub.operations.nodes import accept_token
from tests.admin import KeyAPI, admin_api, opened_database
from tests.factories import make_platform
from tests.harness import Stack, until


class Site:
    """A service with one node, and somebody who asks for batch sessions."""

    def __init__(self, stack: Stack, api: KeyAPI, runtime: str) -> None:
        self.stack = stack
        self.api = api
        self.runtime = runtime

    async def start_agent(self, *flags: str, name: str = "agent") -> None:
        await self.stack.start_agent(*flags, name=name, runtime=self.runtime)

    async def ask(self, command: str, **request: Any) -> dict[str, Any]:
        status, body = await self.api.create(
            type="batch", startup_command=command, slots={"cpu": "0.1"}, **request
        )
        assert status == 201, body
        return dict(body)

    async def end(self, session: dict[str, Any]) -> dict[str, Any]:
        ends = ("TERMINATED", "ERROR", "CANCELLED")
        return await self.api.reach(session["id"], *ends, seconds=90)

    async def log(self, session: dict[str, Any], **query: Any) -> dict[str, Any]:
        found = await self.api.get(f"api/sessions/{session['id']}/log", params=query)
        return dict(found)


@asynccontextmanager
async def site(folder: Path, runtime: str, *flags: str) -> AsyncIterator[Site]:
    stack = Stack(folder)
    try:
        await stack.start_service(*flags)
        async with admin_api(stack) as api:
            made = Site(stack, api, runtime)
            await made.start_agent()
            yield made
            for session in (await api.get("api/sessions", params={"status": "live"}))[
                "items"
            ]:
                await api.send(
                    "POST", f"api/sessions/{session['id']}/terminate", json={}
                )
                await made.end(session)
    finally:
        stack.stop()


RUNTIMES = [
    pytest.param("fake"),
    pytest.param("process", marks=pytest.mark.bwrap),
    pytest.param("docker", marks=pytest.mark.docker),
]


@pytest.mark.parametrize("runtime", RUNTIMES)
async def test_commands_end_as_they_do_and_what_they_print_is_kept(
    tmp_path: Path, runtime: str
):
    async with site(tmp_path / "data", runtime) as running:
        good = await running.ask("echo it works", name="good")
        bad = await running.ask("echo oh no; exit 3", name="bad")
        long = await running.ask("echo slow; sleep 60", batch_timeout=3)

        ended = await running.end(good)
        assert ended["result"] == "success", ended
        assert ended["status"] == "TERMINATED"
        assert (ended["exit_code"], ended["attempts"]) == (0, 1)
        assert (await running.log(good))["text"] == "it works\n"
        ended = await running.end(bad)
        assert (ended["status"], ended["result"]) == ("TERMINATED", "failure")
        assert (ended["exit_code"], ended["reason"]) == (
            3,
            "its command ended with code 3",
        )
        assert (await running.log(bad))["text"] == "oh no\n"
        ended = await running.end(long)
        assert ended["reason"] == "timed out after 3 s"
        assert (ended["exit_code"], ended["result"]) == (124, "failure")
        assert (await running.log(long))["text"] == "slow\n"


@pytest.mark.parametrize("runtime", RUNTIMES[1:])
async def test_a_command_finds_its_home_and_what_it_was_told(
    tmp_path: Path, runtime: str
):
    async with site(tmp_path / "data", runtime) as running:
        told = await running.ask(
            'echo "$WORD $BACKENDAI_SESSION_NAME $BACKENDAI_SESSION_ID"; pwd; ls',
            name="told",
            environ={"WORD": "hello"},
            bootstrap_script="echo prepared > made-before",
        )
        ended = await running.end(told)
        log = (await running.log(told))["text"].splitlines()
        assert ended["result"] == "success", (ended, log)
        assert f"hello told {told['id']}" in log
        assert "made-before" in log
        if runtime == "docker":
            assert "/home/work" in log
        failing = await running.ask("true", bootstrap_script="exit 5")
        ended = await running.end(failing)
        assert (ended["status"], ended["result"]) == ("TERMINATED", "failure")
        assert "exit code 5" in ended["reason"]


@pytest.mark.parametrize("runtime", RUNTIMES[1:])
async def test_what_a_running_command_prints_is_seen_and_it_can_be_stopped(
    tmp_path: Path, runtime: str
):
    async with site(tmp_path / "data", runtime) as running:
        session = await running.ask(
            "trap 'sleep 0.2; echo last words; exit 1' TERM;"
            " echo begun; sleep 600 & wait"
        )
        await running.api.reach(session["id"], "RUNNING", seconds=60)

        async def printed() -> bool:
            return (await running.log(session))["text"] == "begun\n"

        await until(printed, "its output is seen while it runs")
        assert (await running.log(session))["live"]
        await running.api.send(
            "POST", f"api/sessions/{session['id']}/terminate", json={}
        )
        ended = await running.end(session)
        assert (ended["status"], ended["result"]) == ("TERMINATED", "undefined")
        # Also what it says after it was told to end.
        assert (await running.log(session))["text"] == "begun\nlast words\n"
        assert not (await running.log(session))["live"]


@pytest.mark.parametrize("runtime", RUNTIMES[1:])
@pytest.mark.parametrize("moment", ["agent.started", "agent.ready", "agent.kept"])
async def test_an_end_survives_the_death_of_the_agent(
    tmp_path: Path, runtime: str, moment: str, monkeypatch: pytest.MonkeyPatch
):
    """V30 and V32: it runs once, and its exit code and last words are not lost."""
    async with site(tmp_path / "data", runtime) as running:
        running.stack.programs["agent"].stop()
        monkeypatch.setenv("BACKENDAI_CRASHPOINT", moment)
        await running.start_agent()
        monkeypatch.delenv("BACKENDAI_CRASHPOINT")
        session = await running.ask("date +%s.%N; sleep 1; echo last words; exit 7")
        died = running.stack.programs["agent"].process
        assert died is not None
        await until(lambda: died.poll() is not None, "the agent dies", 60)
        assert died.returncode == -signal.SIGKILL
        await running.start_agent()

        ended = await running.end(session)
        assert (ended["exit_code"], ended["result"]) == (7, "failure")
        printed = (await running.log(session))["text"].splitlines()
        assert (len(printed), printed[1]) == (2, "last words")


@pytest.mark.bwrap
async def test_a_lost_node_is_left_and_no_two_attempts_overlap(tmp_path: Path):
    """V31: the first attempt stops itself before the second one begins elsewhere."""
    command = "for i in $(seq 400); do date +%s.%N; sleep 0.05; done"
    flags = (
        "--HubService.lease_seconds=8",
        "--HubService.lease_margin_seconds=7",
        "--HubService.suspect_seconds=1",
        "--HubService.lost_seconds=2",
        "--HubService.heartbeat_seconds=0.5",
    )
    async with site(tmp_path / "data", "process", *flags) as running:
        session = await running.ask(command, max_attempts=2)
        await running.api.reach(session["id"], "RUNNING", seconds=60)
        running.stack.programs["agent"].kill()
        token = running.stack.folder.key("enroll.token")
        token.write_text(await make_token(running.stack))
        await running.start_agent("--BackendAIAgent.name=second", name="agent-2")
        program = running.stack.programs["agent-2"]

        async def two() -> bool:
            assert program.process is not None
            assert program.process.poll() is None, program.said()
            there = await running.api.get("api/agents")
            return len(there["items"]) == 2

        await until(two, "there are two nodes")
        ended = await running.end(session)
        assert (ended["result"], ended["attempts"]) == ("success", 2), ended
        await running.start_agent()

        async def told() -> bool:
            path = f"api/sessions/{session['id']}/log?attempt=1"
            status, log = await running.api.send("GET", path)
            return status == 200 and bool(log["text"])

        await until(told, "the node that came back tells what the first one printed")
        first = (await running.log(session, attempt=1))["text"].split()
        second = (await running.log(session, attempt=2))["text"].split()
        assert len(first) < 400
        assert len(second) == 400
        assert float(first[-1]) < float(second[0])


async def make_token(stack: Stack) -> str:
    """Let one more node join."""
    async with opened_database(stack) as database:
        await accept_token(make_platform(database), "token-of-the-second")
    return "token-of-the-second"
