"""Folders in real containers: whose they are, what is refused, what is left."""

from __future__ import annotations

import os
import shutil
import uuid

import docker
import pytest
from traitlets.config import Config

from backendai_agent.folders import container_folder
from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure
from backendai_agent.runtimes.docker import DockerRuntime
from backendai_agent.runtimes.docker_config import container_name
from backendai_hub.api.agents import ContainerSpec, DesiredState, Identity
from tests.integration.mounts_harness import OWNER, Host, no_mount_left, own_folder

tmp_path = own_folder
pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount"),
]


@pytest.fixture
def api():
    client = docker.APIClient(version="auto")
    yield client
    client.close()


@pytest.fixture
def site(api):
    """A network of this test's own, and an agent's name; all is removed again."""
    mark = uuid.uuid4().hex[:6]
    agent = f"agent-{mark}"
    config = Config()
    config.DockerRuntime.network = f"test-{mark}"
    config.DockerRuntime.subnet = f"10.214.{int(mark[:2], 16)}.0/24"
    config.DockerRuntime.command = ["/bin/sleep", "1000"]
    yield agent, config
    for row in api.containers(all=True, filters={"label": f"ai.backend.agent={agent}"}):
        api.remove_container(row["Id"], force=True, v=True)
    for network in api.networks(names=[f"test-{mark}"]):
        api.remove_network(network["Id"])


@pytest.fixture
async def runtime(site, tmp_path):
    agent, config = site
    made = DockerRuntime(config=config, data_dir=str(tmp_path / "a"), agent_id=agent)
    await made.open()
    async with no_mount_left(tmp_path):
        yield made
    await made.close()


@pytest.fixture
def host(tmp_path):
    (tmp_path / "host").mkdir()
    return Host(tmp_path / "host")


@pytest.fixture
async def keeper(host, tmp_path):
    keeper = host.mounts(tmp_path / "a")
    await keeper.open()
    return keeper


async def launch(runtime, keeper, *mounts, **changes):
    spec = ContainerSpec(
        id=str(uuid.uuid4()),
        session_id=str(uuid.uuid4()),
        desired=DesiredState.RUNNING,
        owner="alice",
        image=os.environ["BACKENDAI_TEST_SESSION_IMAGE"],
        mounts=list(mounts),
        **changes,
    )
    container_folder(runtime.data_dir, spec.id).make()
    async with keeper.shown(spec, runtime) as folders:
        await runtime.start(spec, ContainerPatch(folders=folders))
    return spec


def run(api, spec, command, *, user=""):
    """Run *command* in the container; returns its exit code and what it printed."""
    words = ["/bin/sh", "-c", command]
    made = api.exec_create(container_name(spec.id), words, user=user)
    said = api.exec_start(made["Id"]).decode()
    return api.exec_inspect(made["Id"])["ExitCode"], said


async def test_sessions_of_all_kinds_share_a_folder(runtime, host, keeper, api):
    folder = host.add()
    kinds = [
        {"profile": "full"},
        {"profile": "sudo"},
        {"profile": "locked"},
        {"identity": Identity(uid=4711, gid=4712)},
    ]
    for number, kind in enumerate(kinds):
        spec = await launch(runtime, keeper, folder.at("/home/work/data"), **kind)
        code, said = run(
            api,
            spec,
            'echo mine >> data/log && echo x > "data/$(id -u)" && mkdir -p data/sub &&'
            ' [ "$(stat -c %u:%g data/log)" = "$(id -u):$(id -g)" ] && cat data/log',
        )
        assert (code, said) == (0, "mine\n" * (number + 1)), kind
        await runtime.stop(spec.id, 0)
    owners = {folder.owner_of(path.name) for path in folder.path.iterdir()}
    assert owners == {OWNER}


async def test_read_only_is_read_only_even_for_root(runtime, host, keeper, api):
    outer, inner, alone = host.add("sub"), host.add(), host.add()
    inner.write("x", "kept")
    alone.write("x", "kept")
    spec = await launch(
        runtime,
        keeper,
        outer.at("/home/work/a"),
        inner.at("/home/work/a/sub", "ro"),
        alone.at("/data", "ro"),
    )
    for place in ("/home/work/a/sub", "/data"):
        for command in (
            "touch {}/y",
            "echo z > {}/x",
            "rm {}/x",
            "mv {}/x {}/y",
            "chmod 777 {}/x",
            "mkdir {}/z",
        ):
            code, said = run(api, spec, command.replace("{}", place))
            assert code != 0
            assert "Read-only file system" in said, command
        code, _ = run(api, spec, f"mount -o remount,rw,bind {place}")
        assert code != 0
        code, _ = run(api, spec, f"umount {place}")
        assert code != 0
        assert run(api, spec, f"cat {place}/x") == (0, "kept")
    assert run(api, spec, "touch a/beside")[0] == 0
    _, mounts = run(api, spec, "grep -E ' (/data|/home/work/a)' /proc/self/mountinfo")
    for line in mounts.splitlines():
        assert "nosuid,nodev" in line.split()[5]
    await runtime.stop(spec.id, 0)
    assert outer.owner_of("beside") == OWNER


async def test_root_in_a_session_gives_files_to_nobody_else(runtime, host, keeper, api):
    folder = host.add()
    (folder.path / "foreign").write_text("of root on the node")
    (folder.path / "foreign").chmod(0o600)
    spec = await launch(runtime, keeper, folder.at("/home/work/data"))
    assert run(api, spec, "touch data/x && chown 1234 data/x")[0] != 0
    assert run(api, spec, "touch data/y", user="1234")[0] != 0
    assert run(api, spec, "cat data/foreign")[0] != 0
    code, said = run(
        api,
        spec,
        "mkdir t && touch t/a && chown 33:33 t/a && tar cf t.tar t && cd data &&"
        " tar xf ../t.tar && stat -c %u t/a",
    )
    assert (code, said) == (0, "0\n")
    await runtime.stop(spec.id, 0)
    assert folder.owner_of("t/a") == folder.owner_of("x") == OWNER


async def test_a_container_removed_at_any_moment_leaves_folders_whole(
    runtime, host, keeper, api
):
    folder = host.add("deep/er")
    folder.write("deep/er/x", "precious")
    mounts = [folder.at("/home/work/data"), folder.at("/home/work/ro", "ro")]
    spec = await launch(runtime, keeper, *mounts)
    own = container_folder(runtime.data_dir, spec.id)
    assert run(api, spec, "cat data/deep/er/x") == (0, "precious")
    # As if the agent had lost its wits: while the container runs.
    own.remove()
    assert (folder.path / "deep/er/x").read_text() == "precious"
    await runtime.stop(spec.id, 0)
    own.remove()
    assert (folder.path / "deep/er/x").read_text() == "precious"

    spec = await launch(runtime, keeper, *mounts)
    api.remove_container(container_name(spec.id), force=True)
    await runtime.stop(spec.id, 0)
    container_folder(runtime.data_dir, spec.id).remove()
    assert (folder.path / "deep/er/x").read_text() == "precious"


async def test_an_engine_that_does_not_see_our_mounts_starts_nothing(
    runtime, host, keeper, tmp_path
):
    """Rather than showing the session an empty folder, whose files would be lost."""
    folder = host.add()
    spec = ContainerSpec(
        id=str(uuid.uuid4()),
        session_id=str(uuid.uuid4()),
        desired=DesiredState.RUNNING,
        image=os.environ["BACKENDAI_TEST_SESSION_IMAGE"],
        mounts=[folder.at("/home/work/data")],
    )
    container_folder(runtime.data_dir, spec.id).make()
    async with keeper.shown(spec, runtime) as folders:
        pass  # taken away again: just what the engine's own view would be
    with pytest.raises(RuntimeFailure, match="does not see the folders"):
        await runtime.start(spec, ContainerPatch(folders=folders))
    await runtime.stop(spec.id, 0)
    # The same container can be made once the folder is there again.
    async with keeper.shown(spec, runtime) as folders:
        container_folder(runtime.data_dir, spec.id).make()
        await runtime.start(spec, ContainerPatch(folders=folders))
    [seen] = await runtime.list()
    assert seen.running
    await runtime.stop(spec.id, 0)
    shutil.rmtree(tmp_path / "host")
