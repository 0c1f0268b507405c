"""What sessions use, from a real agent through the real service to who asks."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from backendai_hub.client.sse import read_events
from tests.admin import admin_api
from tests.harness import API, Stack, running_stack, until

HUB_NAME = "hub.backendai.internal"
FLAGS = (
    "--BackendAIAgent.usage_seconds=0.3",
    "--BackendAIAgent.accelerators=host",
    "--BackendAIAgent.accelerators=fake",
    "--FakeAccelerator.count=2",
    "--FakeAccelerator.busy=0.5",
    "--FakeAccelerator.busy_swing=0",
    "--FakeRuntime.busy=0.5",
    "--FakeRuntime.busy_swing=0",
)


@pytest.fixture
async def stack(tmp_path: Path, migrated_url: str) -> AsyncIterator[Stack]:
    """A service, and an agent that measures often and has GPUs that are not there."""
    async with running_stack(tmp_path / "data", migrated_url, agent=False) as running:
        await running.start_agent(*FLAGS)
        yield running


async def launch(person: API, name: str = "one", **slots: str) -> dict[str, Any]:
    wanted = {"cpu": "0.5", "mem": "512m", **slots}
    session = await person.launch(name, slots=wanted)
    return await person.reach(session["id"], "RUNNING")


async def until_measured(person: API, session_id: str, samples: int) -> dict[str, Any]:
    last: dict[str, Any] = {}

    async def measured() -> bool:
        last.update(await person.get(f"api/sessions/{session_id}/usage"))
        return len(last["series"]["time"]) >= samples and last["now"] is not None

    await until(measured, "the session is measured")
    return last


async def test_what_a_session_uses_is_told_live_and_by_series(stack: Stack):
    async with stack.client("alice") as alice:
        session = await launch(alice, **{"cuda.device": "1"})
        shown = await until_measured(alice, session["id"], 3)
        live = await alice.get("api/usage/live")
        since = shown["series"]["time"][1]
        later = await alice.get(f"api/sessions/{session['id']}/usage?since={since}")

    now = shown["now"]
    assert now["cpu"] > 0
    assert (now["cpu_limit"], now["memory_limit"]) == (0.5, 512 << 20)
    assert now["memory"] == 256 << 20
    assert now["utilization"] == 0.5
    assert len(now["devices"]) == 1
    assert {len(v) for v in shown["series"].values()} == {len(shown["series"]["time"])}
    assert shown["totals"]["cpu_seconds"] > 0
    assert shown["totals"]["device_seconds"] > 0
    assert later["series"]["time"][0] > since
    assert [item["session_id"] for item in live["items"]] == [session["id"]]


async def test_who_reads_the_stream_hears_of_use_only_if_they_ask(stack: Stack):
    async with stack.client("alice") as alice, stack.client("bob") as bob:
        mine, his = await launch(alice), await launch(bob, "two")
        await until_measured(bob, his["id"], 1)
        heard = await listen(stack, "alice", "?usage=1", 2)
        quiet = await listen(stack, "alice", "?after=0", 2)
        status, _ = await bob.send("GET", "api/events?usage=nobody")

    assert {event["event"] for event in heard} == {"usage"}
    told = [item for event in heard for item in event["data"]["items"]]
    assert {item["session_id"] for item in told} == {mine["id"]}
    assert heard[0]["data"]["at"] < heard[1]["data"]["at"]
    assert {event["event"] for event in quiet} == {"session"}
    assert status == 400


async def listen(
    stack: Stack, user: str, query: str, events: int
) -> list[dict[str, Any]]:
    """Read so many events of the stream."""
    headers = {
        "Authorization": f"token {stack.token('spawner')}",
        "X-Backendai-Act-For": user,
    }
    found: list[dict[str, Any]] = []
    async with (
        asyncio.timeout(60),
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{stack.url}api/events{query}") as answer,
    ):
        async for event in read_events(answer.content):
            found.append({"event": event.event, "data": json.loads(event.text)})
            if len(found) == events:
                break
    return found


async def test_administrators_see_everybodys_and_nodes_use_and_nonsense_is_refused(
    stack: Stack,
):
    async with admin_api(stack) as root, stack.client("alice") as alice:
        session = await launch(alice)
        await until_measured(alice, session["id"], 1)
        live = await root.get("api/usage/live?owner=*")
        [agent] = (await root.get("api/agents"))["items"]

    assert [item["session_id"] for item in live["items"]] == [session["id"]]
    [node] = live["nodes"]
    assert node["name"] == agent["name"]
    assert node["cpu_limit"] >= 1
    assert 0 < node["memory"] < node["memory_limit"]
    assert len(node["devices"]) == 2
    assert agent["usage"]["memory_limit"] == node["memory_limit"]
    await refuse_nonsense(stack)


async def refuse_nonsense(stack: Stack) -> None:
    """Send as a node what no node can have measured."""
    context = await asyncio.to_thread(certificate_of, stack)
    url = f"https://127.0.0.1:{stack.agents_port}/agent/v1/usage"
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(headers=headers) as node:

        async def put(body: Any) -> int:
            sent = io.BytesIO(json.dumps(body).encode())
            async with node.put(
                url, data=sent, ssl=context, server_hostname=HUB_NAME
            ) as answer:
                return answer.status

        assert await put({"node": [], "containers": []}) == 204
        assert await put({"containers": [["one", -1.0]]}) == 422
        assert await put({"containers": [["x" * 129]]}) == 422
        assert await put({"containers": [[str(n)] for n in range(2001)]}) == 422
        assert await put({"containers": "all of them"}) == 400
        assert await put({"node": ["n" * (2 << 20)]}) == 413


def certificate_of(stack: Stack) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(stack.folder.key("ca.crt")))
    folder = stack.folder.root / "agent"
    context.load_cert_chain(folder / "agent.crt", folder / "agent.key")
    return context


async def test_a_driver_that_hangs_delays_no_report(tmp_path: Path):
    async with running_stack(tmp_path / "data", agent=False) as stack:
        await stack.start_agent(*FLAGS, "--FakeAccelerator.hangs=True")
        async with stack.client("alice") as alice:
            session = await launch(alice, **{"cuda.device": "1"})
            shown = await until_measured(alice, session["id"], 2)
            said = stack.programs["agent"].said()

    assert shown["now"]["cpu"] is not None
    assert shown["now"]["utilization"] is None, "missing, and not 0"
    assert shown["now"]["devices"] == []
    assert said.count("measuring fake does not work") == 1


async def test_a_restart_of_the_service_begins_anew_and_says_so(stack: Stack):
    async with stack.client("alice") as alice:
        session = await launch(alice)
        before = await until_measured(alice, session["id"], 3)
        stack.programs["service"].stop()
        await stack.start_service()
        after = await until_measured(alice, session["id"], 1)

    assert after["kept_from"] > before["series"]["time"][-1]
    assert after["series"]["time"][0] > before["series"]["time"][-1]
    assert after["totals"]["cpu_seconds"] >= before["totals"]["cpu_seconds"]
