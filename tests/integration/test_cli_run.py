"""``backendai run``: commands on the cluster from a terminal, on a real service."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.client import Client
from backendai_hub.commandline import logs
from backendai_hub.core.sessions import SessionResult, SessionType
from tests.admin import make_administrator
from tests.commandline import with_keypair
from tests.harness import running_stack


async def test_a_job_runs_as_if_it_ran_here(tmp_path: Path):
    async with running_stack(tmp_path / "data") as stack:
        key = await make_administrator(stack)
        root = with_keypair(tmp_path / "root", stack.url, key.name, key.secret)

        done = await root.well("run", "--name", "good", "--", "echo", "it works")
        assert done.out == "it works\n"
        assert "good: TERMINATED, its command has succeeded" in done.err
        done = await root("run", "echo oh no; exit 3")
        assert (done.code, done.out) == (3, "oh no\n")
        done = await root("run", "--timeout", "1s", "sleep 30")
        assert done.code == 124
        assert "timed out after 1 s" in done.err
        done = await root("run", "--json", "echo words; exit 4")
        assert (done.code, done.json["result"]) == (4, "failure")
        assert "words" in done.err

        done = await root.well(
            *("run", "--json", "--detach", "--name", "long", "--retries", "2"),
            *("--resources", "cpu=0.5,mem=512m", "--env", "A=b", "--tag", "t1"),
            *("--timeout", "1h30m", "--", "sleep", "600"),
        )
        asked = done.json
        assert (asked["batch_timeout"], asked["max_attempts"]) == (5400, 3)
        assert (asked["slots"]["cpu"], asked["tag"]) == ("0.5", "t1")
        done = await root.well(
            *("run", "--json", "-d", "--after", "long", "--at", "+2h", "echo never")
        )
        waiting = done.json
        assert waiting["dependencies"] == [asked["id"]]
        assert waiting["starts_at"] is not None
        await root.well("session", "wait", "long")
        await root.well("session", "terminate", "long")
        gone = await root("session", "logs", waiting["id"], "--follow")
        assert gone.code == 0
        ended = await root.read("session", "show", waiting["id"])
        assert ended["status"] == "CANCELLED"
        assert "long" in ended["reason"]
        assert (await root.well("session", "logs", "good")).out == "it works\n"
        log = await root.read("session", "logs", "good", "--attempt", "1")
        assert (log["text"], log["live"]) == ("it works\n", False)

        for words, said in {
            ("--env", "A"): "NAME=VALUE",
            ("--timeout", "soon"): "duration",
            ("--at", "noon"): "time",
        }.items():
            refused = await root("run", *words, "true")
            assert refused.code == 2
            assert said in refused.err
        refused = await root("run", "--after", "nobody", "true")
        assert (refused.code, "no batch session" in refused.err) == (1, True)


async def test_who_follows_a_job_is_told_how_it_goes_and_looks_at_nothing_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(logs, "LOOK_SECONDS", 1e6)
    async with running_stack(tmp_path / "data") as stack:
        key = await make_administrator(stack)
        root = with_keypair(tmp_path / "root", stack.url, key.name, key.secret)

        done = await root.well("run", "--name", "good", "--", "echo", "it works")

    assert done.out == "it works\n"
    assert "good: TERMINATED, its command has succeeded" in done.err


async def test_the_same_from_python(tmp_path: Path):
    async with running_stack(tmp_path / "data") as stack:
        key = await make_administrator(stack)

        def work() -> None:
            with Client(
                stack.url, access_key=key.name, secret_key=key.secret
            ) as client:
                job = client.sessions.create(_request("echo hello; exit 2"))
                job = client.sessions.wait(job.id, until="ended")
                assert (job.result, job.exit_code) == (SessionResult.FAILURE, 2)
                assert client.sessions.log(job.id).text == "hello\n"

        await asyncio.to_thread(work)


def _request(command: str) -> SessionRequest:
    return SessionRequest(
        image="jupyterlab", type=SessionType.BATCH, startup_command=command
    )
