"""What real containers use is read of their control groups, and no engine is asked."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import docker
import pytest
from traitlets.config import Config

from backendai_agent.folders import container_folder
from backendai_agent.measuring.readings import Reading
from backendai_agent.runtimes.base import ContainerPatch
from backendai_agent.runtimes.docker import DockerRuntime
from backendai_agent.runtimes.docker_config import container_name
from backendai_hub.api.agents import ContainerSpec, DesiredState
from tests.harness import until

pytestmark = pytest.mark.docker
BURN = "head -c 4000000 /dev/urandom > /tmp/x; while :; do :; done"


@pytest.fixture
def api() -> Iterator[docker.APIClient]:
    client = docker.APIClient(version="auto")
    yield client
    client.close()


@pytest.fixture
async def runtime(
    api: docker.APIClient, tmp_path: Path
) -> AsyncIterator[DockerRuntime]:
    """A runtime of this test's own, whose containers keep one core busy."""
    mark = uuid.uuid4().hex[:6]
    agent = f"agent-{mark}"
    config = Config()
    config.DockerRuntime.network = f"test-{mark}"
    config.DockerRuntime.subnet = f"10.214.{int(mark[:2], 16)}.0/24"
    config.DockerRuntime.command = ["/bin/sh", "-c", BURN]
    made = DockerRuntime(config=config, data_dir=str(tmp_path), agent_id=agent)
    await made.open()
    yield made
    await made.close()
    for row in api.containers(all=True, filters={"label": f"ai.backend.agent={agent}"}):
        api.remove_container(row["Id"], force=True, v=True)
    for network in api.networks(names=[f"test-{mark}"]):
        api.remove_network(network["Id"])


async def launch(runtime: DockerRuntime) -> ContainerSpec:
    spec = ContainerSpec(
        id=str(uuid.uuid4()),
        session_id=str(uuid.uuid4()),
        desired=DesiredState.RUNNING,
        owner="alice",
        image=os.environ["BACKENDAI_TEST_SESSION_IMAGE"],
        cpu=1000,
        memory=256 << 20,
    )
    container_folder(runtime.data_dir, spec.id).make()
    await runtime.start(spec, ContainerPatch())
    return spec


async def test_a_container_that_keeps_a_core_busy_is_seen_to(
    runtime: DockerRuntime, api: docker.APIClient
):
    spec = await launch(runtime)
    quiet = ContainerSpec(id=str(uuid.uuid4()), session_id="", desired=spec.desired)

    def has_computed(seconds: float) -> Reading | None:
        reading = runtime.measure([spec, quiet]).get(spec.id)
        done = reading is not None and (reading.cpu_seconds or 0) >= seconds
        return reading if done else None

    first = await until(lambda: has_computed(0.5), "half a second of computing")
    began = time.monotonic()
    later = await until(lambda: has_computed(first.cpu_seconds + 0.5), "more of it")

    passed = time.monotonic() - began
    assert later.cpu_seconds - first.cpu_seconds < 2 * passed + 1, "one core at most"
    assert 0 < later.memory <= 256 << 20
    assert None not in (later.received_bytes, later.sent_bytes)
    if os.geteuid() == 0:  # others are not told of processes that are not theirs
        assert later.written_bytes is not None
    assert quiet.id not in runtime.measure([spec, quiet]), "there is no such container"
    api.kill(container_name(spec.id))
    await until(lambda: spec.id not in runtime.measure([spec]), "nothing to measure")


async def test_a_container_that_was_started_anew_is_found_again(
    runtime: DockerRuntime, api: docker.APIClient
):
    spec = await launch(runtime)
    await until(lambda: runtime.measure([spec]), "it is measured")

    api.restart(container_name(spec.id), timeout=0)

    await until(lambda: runtime.measure([spec]), "it is measured again")
