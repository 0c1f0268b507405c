"""An agent with Docker, killed at any moment of a start that mounts folders."""

from __future__ import annotations

import os
import signal
import uuid

import docker
import pytest

from tests.agent_hub import AGENT_ID, AgentHub, Authority
from tests.integration.agent_process import AgentProcess, make_spec
from tests.integration.mounts_harness import OWNER, Host, no_mount_left, own_folder

tmp_path = own_folder
pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount"),
]


@pytest.fixture
async def hub(tmp_path):
    hub = AgentHub(Authority(tmp_path / "ca"))
    await hub.open()
    yield hub
    await hub.close()


@pytest.fixture
def host(tmp_path):
    (tmp_path / "host").mkdir()
    return Host(tmp_path / "host")


@pytest.fixture
async def agent(tmp_path, hub, host):
    agent = AgentProcess(tmp_path, hub)
    mark = uuid.uuid4().hex[:6]
    agent.options = {
        "BackendAIAgent.runtime": "docker",
        "BackendAIAgent.storage_hosts": f"local={host.root}",
        "DockerRuntime.network": f"test-{mark}",
        "DockerRuntime.subnet": f"10.214.{int(mark[:2], 16)}.0/24",
    }
    async with no_mount_left(tmp_path):
        yield agent
        await agent.end(signal.SIGKILL)
    engine = docker.APIClient(version="auto")
    label = {"label": f"ai.backend.agent={AGENT_ID}"}
    for row in engine.containers(all=True, filters=label):
        engine.remove_container(row["Id"], force=True, v=True)
    for network in engine.networks(names=[f"test-{mark}"]):
        engine.remove_network(network["Id"])
    engine.close()


@pytest.mark.parametrize(
    "crash", ["agent.mounted", "agent.recorded", "agent.created", "agent.started"]
)
async def test_the_command_runs_once_and_nothing_stays_mounted(hub, host, agent, crash):
    folder = host.add("deep")
    folder.write("deep/kept", "precious")
    await agent.start(crashpoint=crash)
    job = make_spec(
        image=os.environ["BACKENDAI_TEST_SESSION_IMAGE"],
        command="cat data/deep/kept && echo begun >> data/log",
        mounts=[folder.at("/home/work/data")],
    )
    await hub.want(job)
    assert await agent.ended() == -signal.SIGKILL

    await agent.start()
    end = await hub.until_state(job.id, "exited")
    assert end.exit_code == 0, end
    assert (folder.path / "log").read_text() == "begun\n"
    assert folder.owner_of("log") == OWNER
    await hub.want_absent(job.id)
    await hub.until_state(job.id, "gone")
    assert agent.folders == []
    assert (folder.path / "deep/kept").read_text() == "precious"
