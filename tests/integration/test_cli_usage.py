"""What sessions use, from a terminal."""

from __future__ import annotations

import asyncio

import pytest

from backendai_hub.commandline import usage
from backendai_hub.commandline.usage import make_row, write_bytes
from backendai_hub.core.live_usage import UsageNow
from tests.admin import make_administrator
from tests.commandline import column, with_keypair
from tests.harness import running_stack, until

FLAGS = ("--BackendAIAgent.usage_seconds=0.3", "--FakeRuntime.busy_swing=0")


async def test_what_sessions_use_is_shown_and_watched(tmp_path, monkeypatch):
    monkeypatch.setattr(usage, "EVERY_SECONDS", 0.1)
    async with running_stack(tmp_path / "data", agent=False) as stack:
        await stack.start_agent(*FLAGS, "--FakeRuntime.busy=0.5")
        key = await make_administrator(stack)
        root = with_keypair(tmp_path / "root", stack.url, key.name, key.secret)
        async with stack.client("root") as spawner:
            made = await spawner.launch("train", slots={"cpu": "0.5", "mem": "1g"})
            name = (await spawner.reach(made["id"], "RUNNING"))["name"]

            async def measured() -> bool:
                shown = await root.read("session", "usage", name)
                return shown["now"] is not None and shown["now"]["cpu"] is not None

            await until(measured, "it is measured")
            listed = await root.well("session", "usage", "--owner", "*")
            one = await root.well("session", "usage", name)
            live = await root.read("session", "usage")
            watching = asyncio.create_task(root("session", "usage", name, "--watch"))
            await spawner.send("POST", f"api/sessions/{made['id']}/terminate", json={})
            await spawner.reach(made["id"], "TERMINATED")
            async with asyncio.timeout(60):
                watched = await watching
        ended = await root.well("session", "usage", made["id"])
        wrong = await root("session", "usage", name, "--owner", "*")

    [line] = listed.lines
    assert line[0] == f"root/{name}"
    assert line[2] == "512m/1.0g"
    assert one.lines[0][0] == name
    assert "core seconds" in one.err
    assert [item["session_id"] for item in live] == [made["id"]]
    assert (watched.code, set(column(watched, 0))) in [(0, {name}), (0, set())]
    assert ended.out == ""
    assert "memory at most" in ended.err
    assert wrong.code == 2


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (None, None),
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (1536, "1.5k"),
        (200 << 20, "200m"),
        (80 << 30, "80.0g"),
        (5 << 70, "5242880p"),
    ],
)
def test_bytes_are_written_as_people_do(number, written):
    assert write_bytes(number) == written


def test_what_was_not_measured_is_left_empty():
    used = UsageNow(at=0.0, cpu=0.5, memory_limit=1 << 30, read_rate=0.0)

    row = make_row("train", used)

    assert row["cpu"] == "0.5"
    assert row["read"] == "0/s"
    assert (row["memory"], row["devices"], row["write"]) == (None, None, None)
    assert set(make_row("train", None).values()) == {"train", None}
