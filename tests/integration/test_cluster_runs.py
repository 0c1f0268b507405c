"""Clusters for real: a service, an agent, and containers that really run together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import docker
import docker.errors
import pytest
from traitlets.config import Config

from backendai_agent.runtimes.docker import DockerRuntime
from backendai_agent.runtimes.docker_config import session_network
from backendai_hub.operations.nodes import accept_token
from tests.admin import KeyAPI, admin_api, opened_database
from tests.factories import make_platform
from tests.harness import Stack, until

WORKER = (
    'if [ "$BACKENDAI_CLUSTER_ROLE" = sub ]; then'
    ' echo "I am $BACKENDAI_CLUSTER_HOST" > hello;'
    " nohup python3 -m http.server 9000 >/dev/null 2>&1 & fi"
)
"""What every container does before it is there: the others serve a page."""

FETCH = """
import os, socket, time, urllib.request
print(socket.gethostname(), os.environ["BACKENDAI_CLUSTER_HOSTS"])
for host in os.environ["BACKENDAI_CLUSTER_HOSTS"].split(",")[1:]:
    for _ in range(600):
        try:
            page = urllib.request.urlopen(f"http://{host}:9000/hello", timeout=5)
        except OSError:
            time.sleep(0.1)
        else:
            print(host, "says:", page.read().decode().strip())
            break
"""


class Site(NamedTuple):
    """A running service, and its administrator."""

    stack: Stack
    api: KeyAPI


@asynccontextmanager
async def site(folder: Path, runtime: str, *flags: str) -> AsyncIterator[KeyAPI]:
    """Run a service with one node, and let everybody have clusters."""
    async with whole_site(folder, runtime, *flags) as made:
        yield made.api


@asynccontextmanager
async def whole_site(folder: Path, runtime: str, *flags: str) -> AsyncIterator[Site]:
    stack = Stack(folder)
    try:
        await stack.start_service()
        async with admin_api(stack) as api:
            await api.change("keypair-policies/default", max_containers_per_session=0)
            await stack.start_agent(*flags, runtime=runtime)
            yield Site(stack, api)
            everybodys = {"status": "live", "owner": "*"}
            live = await api.get("api/sessions", params=everybodys)
            for session in live["items"]:
                path = f"api/sessions/{session['id']}/terminate"
                await api.send("POST", path, json={})
                await end(api, session)
    finally:
        stack.stop()


async def ask(api: KeyAPI, command: str, **request: Any) -> dict[str, Any]:
    wanted = {"cluster_size": 2, "slots": {"cpu": "0.1"}, **request}
    status, body = await api.create(type="batch", startup_command=command, **wanted)
    assert status == 201, body
    return dict(body)


async def end(api: KeyAPI, session: dict[str, Any]) -> dict[str, Any]:
    ends = ("TERMINATED", "ERROR", "CANCELLED")
    return await api.reach(session["id"], *ends, seconds=90)


async def log(api: KeyAPI, session: dict[str, Any], **query: Any) -> str:
    found = await api.get(f"api/sessions/{session['id']}/log", params=query)
    return str(found["text"])


@pytest.fixture
def engine() -> Iterator[docker.APIClient]:
    client = docker.APIClient(version="auto")
    yield client
    client.close()


def networks_of(engine: docker.APIClient, session_id: str) -> list[dict[str, Any]]:
    return list(engine.networks(names=[session_network(session_id)]))


async def test_all_containers_run_and_end_with_the_main_one(tmp_path: Path):
    async with site(tmp_path / "data", "fake") as api:
        session = await ask(api, "echo done; sleep 0.2", cluster_size=3)
        ended = await end(api, session)
        assert (ended["status"], ended["result"]) == ("TERMINATED", "success"), ended
        assert [c["host"] for c in ended["containers"]] == ["main1", "sub1", "sub2"]
        assert await log(api, session) == "done\n"
        status, body = await api.refused(
            "GET", f"api/sessions/{session['id']}/log", params={"host": "sub9"}
        )
        assert status == 422
        assert "there are main1, sub1, sub2" in body


async def test_one_that_does_not_start_ends_the_others(tmp_path: Path):
    flag = "--FakeRuntime.fail_hosts=sub1"
    async with site(tmp_path / "data", "fake", flag) as api:
        ended = await end(api, await ask(api, "sleep 60"))
        assert ended["status"] == "ERROR"
        words = (
            "container sub1: could not start: the fake runtime was told to fail sub1"
        )
        assert ended["reason"] == words
        assert ended["containers"][0]["state"] == "gone"


@pytest.mark.docker
async def test_containers_find_each_other_on_a_bridge_of_their_own(
    tmp_path: Path, engine: docker.APIClient
):
    async with site(tmp_path / "data", "docker") as api:
        session = await ask(
            api, f"python3 -c '{FETCH}'; sleep 600", bootstrap_script=WORKER
        )
        await api.reach(session["id"], "RUNNING", seconds=120)

        async def greeted() -> bool:
            return "sub1 says: I am sub1" in await log(api, session)

        await until(greeted, "the main container has heard the other one")
        assert (await log(api, session)).startswith("main1 main1,sub1")
        (network,) = networks_of(engine, session["id"])
        on_it = engine.inspect_network(network["Id"])["Containers"]
        assert len(on_it) == 2
        assert "backendai" not in {n["Name"] for n in on_it.values()}
        shown = await api.get(f"api/sessions/{session['id']}")
        assert "reach each other by name (main1, sub1)" in shown["cluster_network"]
        await api.send("POST", f"api/sessions/{session['id']}/terminate", json={})
        await end(api, session)

        async def gone() -> bool:
            return not await asyncio.to_thread(networks_of, engine, session["id"])

        await until(gone, "its network is gone")


PROBE = """
import socket
for port in (8888, 9000):
    try:
        socket.create_connection(("{address}", port), timeout=2).close()
    except OSError:
        print("closed")
    else:
        print("open")
"""


@pytest.mark.docker
async def test_people_reach_the_main_container_and_other_sessions_none(
    tmp_path: Path, engine: docker.APIClient
):
    async with whole_site(tmp_path / "data", "docker") as (stack, api):
        async with stack.client("alice") as alice:
            request = {"cluster_size": 2, "slots": {"cpu": "0.1"}}
            session = await alice.launch("wide", bootstrap_script=WORKER, **request)
            # It runs, so JupyterLab has answered on the session's own network.
            await alice.reach(session["id"], "RUNNING", seconds=120)
        (network,) = networks_of(engine, session["id"])
        found = engine.inspect_network(network["Id"])["Containers"].values()
        addresses = [end["IPv4Address"].partition("/")[0] for end in found]
        assert len(addresses) == 2
        probes = "".join(PROBE.format(address=address) for address in addresses)
        other = await ask(api, f"python3 -c '{probes}'", cluster_size=1)
        await end(api, other)
        assert await log(api, other) == "closed\n" * 4


async def test_containers_on_two_nodes_run_together(tmp_path: Path):
    async with whole_site(tmp_path / "data", "fake") as (stack, api):
        stack.folder.key("enroll.token").write_text("token-of-the-second")
        async with opened_database(stack) as database:
            await accept_token(make_platform(database), "token-of-the-second")
        await stack.start_agent("--BackendAIAgent.name=second", name="second")

        async def both() -> bool:
            there = (await api.get("api/agents"))["items"]
            return [a["status"] for a in there] == ["ALIVE", "ALIVE"]

        await until(both, "both nodes are there")
        session = await ask(
            api,
            "echo done; sleep 0.1",
            cluster_mode="multi-node",
            cluster_strategy="spread",
        )
        ended = await end(api, session)
        assert (ended["status"], ended["result"]) == ("TERMINATED", "success"), ended
        assert len({c["node"] for c in ended["containers"]}) == 2


@pytest.mark.docker
async def test_a_network_that_a_crash_has_left_behind_is_removed(
    tmp_path: Path, engine: docker.APIClient
):
    left = "00000000-0000-7000-8000-00000000c1a5"
    agent = f"agent-{os.getpid()}"
    labels = {
        "ai.backend.network": "session",
        "ai.backend.agent": agent,
        "ai.backend.session": left,
    }
    engine.create_network(session_network(left), driver="bridge", labels=labels)
    config = Config()
    runtime = DockerRuntime(config=config, data_dir=str(tmp_path), agent_id=agent)
    await runtime.open()
    try:
        await runtime.list()
        assert not networks_of(engine, left)
    finally:
        await runtime.close()


@pytest.mark.bwrap
async def test_processes_of_a_cluster_know_who_they_are(tmp_path: Path):
    async with site(tmp_path / "data", "process") as api:
        session = await ask(
            api,
            'echo "$(hostname) $BACKENDAI_CLUSTER_LOCAL_RANK'
            ' $BACKENDAI_CLUSTER_REPLICAS"',
        )
        ended = await end(api, session)
        assert (ended["status"], ended["result"]) == ("TERMINATED", "success"), ended
        assert await log(api, session) == "main1 0 main:1,sub:1\n"
