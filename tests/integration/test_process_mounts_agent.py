"""Whole agents and folders: batch sessions on two nodes, and agents killed anywhere."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from backendai_agent import mounts_kernel as kernel
from backendai_hub.api.agents import ClusterPlace
from tests.agent_hub import AgentHub, Authority
from tests.integration.agent_process import AgentProcess, make_spec
from tests.integration.mounts_harness import (
    OWNER,
    Host,
    hung,
    no_mount_left,
    own_folder,
)

tmp_path = own_folder
pytestmark = [
    pytest.mark.bwrap,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount"),
]
CRASHES = [
    "agent.ordered",
    "agent.prepared",
    "agent.mounted",
    "agent.activated",
    "agent.recorded",
    "agent.created",
    "agent.started",
    "agent.probing",
    "agent.ready",
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
async def make_agent(tmp_path, hub, host):
    """Make agents that know the host, and see that none leaves a mount."""
    made = []

    def make(name):
        (tmp_path / name).mkdir()
        agent = AgentProcess(tmp_path / name, hub)
        agent.options = {
            "BackendAIAgent.runtime": "process",
            "BackendAIAgent.storage_hosts": f"local={host.root}",
            "ProcessRuntime.network": "none",
            "ProcessRuntime.first_uid": str(400000 + 20000 * len(made)),
        }
        made.append(agent)
        return agent

    async with no_mount_left(tmp_path):
        yield make
        for agent in made:
            await agent.end(signal.SIGKILL)
        for path in kernel.list_below(tmp_path):
            raise AssertionError(f"{path} is still mounted")


def make_job(command, *mounts, **changes):
    return make_spec(
        image="jupyterlab", command=command, mounts=list(mounts), **changes
    )


async def ended(hub, spec):
    return await hub.until_state(spec.id, "exited")


async def remove(hub, spec):
    await hub.want_absent(spec.id)
    await hub.until_state(spec.id, "gone")


async def test_two_nodes_share_a_folder(hub, host, make_agent):
    folder = host.add("in")
    jobs = [
        make_job("echo one > data/x; id -u > data/first", folder.at("/home/work/data")),
        make_job(
            'cat data/x && echo two >> data/x && [ "$(id -u)" != "$(cat data/first)" ]',
            folder.at("/home/work/data", "wd"),
        ),
    ]
    for name, job in zip(("left", "right"), jobs, strict=True):
        agent = make_agent(name)
        await agent.start()
        report = await hub.until(lambda r: r.storage_hosts == ["local"])
        assert report.labels["storage/local"] == "yes"
        await hub.want(job)
        end = await ended(hub, job)
        assert (end.exit_code, end.reason) == (0, "its command ended with code 0")
        await remove(hub, job)
        assert agent.folders == []
        await agent.end()
        await hub.forget(job.id)
        hub.reports.clear()
    assert (folder.path / "x").read_text() == "one\ntwo\n"
    assert folder.owner_of("x") == OWNER


@pytest.mark.parametrize("crash", CRASHES)
async def test_an_agent_killed_anywhere_starts_it_once_and_leaves_no_mount(
    hub, host, make_agent, crash
):
    folder = host.add()
    folder.write("kept", "precious")
    agent = make_agent("node")
    await agent.start(crashpoint=crash)
    job = make_job(
        "echo begun >> data/log; test -f data/end || sleep 0.1;"
        " while ! test -f data/end; do sleep 0.1; done",
        folder.at("/home/work/data"),
    )
    await hub.want(job)
    assert await agent.ended() == -signal.SIGKILL

    await agent.start()
    await hub.until_state(job.id, "running")
    assert kernel.list_below(agent.data_dir) == []
    folder.write("end", "")
    end = await ended(hub, job)
    assert end.exit_code == 0, end
    await remove(hub, job)
    assert agent.folders == []
    assert (folder.path / "log").read_text() == "begun\n"
    assert (folder.path / "kept").read_text() == "precious"


@pytest.mark.parametrize("crash", ["agent.stopping", "agent.removed"])
async def test_an_agent_killed_while_removing_leaves_the_folder_whole(
    hub, host, make_agent, crash
):
    folder = host.add("deep")
    folder.write("deep/kept", "precious")
    agent = make_agent("node")
    await agent.start(crashpoint=crash)
    job = make_job("sleep 1000", folder.at("/home/work/data"))
    await hub.want(job)
    await hub.until_state(job.id, "running")
    await hub.want_absent(job.id)
    assert await agent.ended() == -signal.SIGKILL
    await agent.start()
    await hub.until_state(job.id, "gone")
    assert agent.folders == []
    assert (folder.path / "deep/kept").read_text() == "precious"


async def test_every_container_of_a_cluster_sees_the_folders(hub, host, make_agent):
    folder = host.add()
    agent = make_agent("node")
    await agent.start()
    mount = folder.at("/home/work/data")
    main = make_job("echo main > data/main", mount)
    sub = make_spec(
        image="jupyterlab",
        mounts=[mount],
        session_id=main.session_id,
        cluster=ClusterPlace(
            role="sub", host="sub1", hosts=("main1", "sub1"), beside=("main1",)
        ),
    )
    await hub.want(main, sub)
    assert (await ended(hub, main)).exit_code == 0
    await hub.until_state(sub.id, "running")
    inside = next(
        path
        for path in agent.data_dir.joinpath("containers", sub.id).glob("process/init")
    )
    pid = inside.read_text().split()[0]
    seen = Path(f"/proc/{pid}/root/home/work/data/main").stat()
    assert seen.st_ino == (folder.path / "main").stat().st_ino
    for spec in (main, sub):
        await remove(hub, spec)


async def test_the_first_that_is_heard_of_a_node_tells_its_storage_hosts(
    hub, host, make_agent
):
    agent = make_agent("node")
    agent.options["BackendAIAgent.first_look_seconds"] = "60"
    await agent.start()
    await hub.after_reports(1)
    first = hub.reports[0]
    assert (first.storage_hosts, first.labels["storage/local"]) == (["local"], "yes")


async def test_a_node_is_heard_of_although_a_storage_host_hangs(
    hub, make_agent, tmp_path
):
    stuck = Host(tmp_path / "stuck", name="stuck")
    stuck.root.mkdir()
    agent = make_agent("node")
    agent.options["BackendAIAgent.storage_hosts"] = f"stuck={stuck.root}"
    agent.options["BackendAIAgent.first_look_seconds"] = "0.2"
    with hung(stuck.root):
        await agent.start()
        await hub.after_reports(1)
        assert hub.reports[0].storage_hosts == []
    await hub.until(lambda r: r.storage_hosts == ["stuck"])


async def test_a_host_that_comes_later_is_noticed(hub, host, make_agent, tmp_path):
    agent = make_agent("node")
    host.root.rename(tmp_path / "not-yet")
    await agent.start()
    report = await hub.until(lambda r: bool(r.isolation))
    assert report.storage_hosts == []
    assert "storage/local" not in report.labels
    (tmp_path / "not-yet").rename(host.root)
    report = await hub.until(lambda r: r.storage_hosts == ["local"])
    assert report.labels["storage/local"] == "yes"


async def test_a_folder_that_is_gone_is_said_to_the_owner(hub, host, make_agent):
    folder = host.add()
    agent = make_agent("node")
    await agent.start()
    job = make_job("true", folder.at("/home/work/data"))
    folder.path.rename(folder.path.with_name("elsewhere"))
    await hub.want(job)
    end = await ended(hub, job)
    assert end.reason == (
        "could not start: the folder for /home/work/data is not on the storage host"
        " 'local' any more (No such file or directory)"
    )
    unknown = make_job("true", folder.at("/home/work/data", host="other"))
    await hub.want(unknown)
    end = await ended(hub, unknown)
    assert "does not have the storage host 'other'" in end.reason
    for spec in (job, unknown):
        await remove(hub, spec)


async def test_one_slow_turn_at_a_time_does_not_wait_for_a_host_that_hangs(
    hub, make_agent, tmp_path
):
    """Four starts may go on at once; those that wait for a host are none of them."""
    stuck = Host(tmp_path / "stuck", name="stuck")
    stuck.root.mkdir()
    hanging = stuck.add()
    agent = make_agent("node")
    agent.options["BackendAIAgent.start_concurrency"] = "1"
    agent.options["BackendAIAgent.mount_seconds"] = "60"
    agent.options["BackendAIAgent.storage_hosts"] = f"stuck={stuck.root}"
    await agent.start()
    await hub.until(lambda r: r.storage_hosts == ["stuck"])
    with hung(stuck.root):
        waiting = [make_job("true", hanging.at("/home/work/data")) for _ in range(3)]
        free = make_job("true")
        await hub.want(*waiting)
        await hub.until(
            lambda r: [c.reason for c in r.containers] == ["mounting its folders"] * 3
        )
        await hub.want(free)
        assert (await ended(hub, free)).exit_code == 0
        assert hub.states(waiting[0].id) == ["preparing"]
    for job in waiting:
        await ended(hub, job)  # one way or the other: the host has let go of them
    for spec in (*waiting, free):
        await remove(hub, spec)
