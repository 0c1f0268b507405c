"""What administrators say of a person or a resource group, in real containers."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from backendai_agent.activation import (
    Surroundings,
    build_activation,
    write_activation,
)
from backendai_agent.apps import Apps
from backendai_agent.folders import container_folder
from backendai_agent.runtimes.base import RuntimeFailure
from backendai_agent.runtimes.docker_config import container_name
from backendai_hub.api.agents import Identity
from tests.integration import test_docker_runtime as sessions
from tests.integration.test_docker_runtime import (
    NO_PATCH,
    PREFIX,
    SLEEP,
    make_spec,
    run_inside,
    start,
    until,
    until_answers,
)

pytestmark = pytest.mark.docker

image, api, site, runtime = (
    sessions.image,
    sessions.api,
    sessions.site,
    sessions.runtime,
)

CAROL = Identity(uid=54321, gid=54322, gids=[54400, 54401])


def status_of(api, spec, field):
    # An engine with much to do may lose what is printed by who ends at once.
    first = api.inspect_container(container_name(spec.id))["State"]["Pid"]
    lines = Path(f"/proc/{first}/status").read_text().splitlines()
    found = [line for line in lines if line.startswith(f"{field}:")]
    return found[0].partition(":")[2].split()


# -- as whom a session runs ------------------------------------------------------


async def test_a_session_runs_with_the_numbers_of_its_owner(runtime, image, api):
    spec = make_spec(image, identity=CAROL)
    folder = await start(runtime, spec)
    assert await until_answers(runtime, spec) == 200

    assert status_of(api, spec, "Uid") == ["54321"] * 4
    assert status_of(api, spec, "Gid") == ["54322"] * 4
    assert status_of(api, spec, "Groups")[-2:] == ["54400", "54401"]
    assert status_of(api, spec, "CapBnd") == ["0000000000000000"]
    assert status_of(api, spec, "NoNewPrivs") == ["1"]
    code, printed = run_inside(api, spec, "sh", "-c", "touch ~/mine; whoami; id -gn")
    assert (code, printed) == (0, "work\nwork\n")
    made = (folder.work / "mine").stat()
    assert (made.st_uid, made.st_gid) == (54321, 54322)


async def test_only_a_group_may_be_given(runtime, image, api):
    spec = make_spec(image, identity=Identity(gid=54322, gids=[54400]))
    runtime.command = SLEEP
    await start(runtime, spec)
    assert run_inside(api, spec, "id", "-u") == (0, "0\n")
    assert status_of(api, spec, "Gid") == ["54322"] * 4
    assert "54400" in status_of(api, spec, "Groups")


@pytest.mark.parametrize(
    "identity",
    [
        Identity(uid=0),
        Identity(uid=5000, gid=0),
        Identity(uid=5000, gids=[0]),
        Identity(uid=-1),
    ],
)
async def test_nobody_is_made_root(runtime, image, api, identity):
    spec = make_spec(image, identity=identity)
    with pytest.raises(RuntimeFailure, match="runs neither as user nor as group"):
        await start(runtime, spec)
    assert await runtime.list() == []


async def test_an_agent_that_is_not_root_says_that_it_cannot(
    runtime, image, monkeypatch
):
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    with pytest.raises(RuntimeFailure, match="need an agent that runs as root"):
        await start(runtime, make_spec(image, identity=CAROL))


# -- sudo ------------------------------------------------------------------------


@pytest.mark.parametrize("identity", [None, CAROL])
async def test_sudo_works_in_the_sessions_of_who_may_use_it(
    runtime, image, api, identity
):
    spec = make_spec(image, sudo=True, identity=identity)
    await start(runtime, spec)
    assert await until_answers(runtime, spec) == 200
    assert status_of(api, spec, "NoNewPrivs") == ["0"]
    code, printed = run_inside(api, spec, "sudo", "-n", "sh", "-c", "id -u; id -u bin")
    assert (code, printed) == (0, "0\n2\n")
    code, _ = run_inside(api, spec, "sudo", "-n", "useradd", "bob")
    assert code == 0
    for argv in (["mount", "-t", "tmpfs", "none", "/mnt"], ["dmesg"]):
        code, _ = run_inside(api, spec, "sudo", "-n", *argv)
        assert code != 0, argv


@pytest.mark.parametrize("identity", [None, CAROL])
async def test_nobody_else_gains_anything(runtime, image, api, identity):
    spec = make_spec(image, identity=identity)
    runtime.command = SLEEP
    await start(runtime, spec)
    assert status_of(api, spec, "NoNewPrivs") == ["1"]
    if identity is not None:
        code, _ = run_inside(api, spec, "sudo", "-n", "true")
        assert code != 0


# -- the node's own network ------------------------------------------------------


async def test_the_nodes_network_is_refused_until_its_operator_allows_it(
    runtime, image
):
    with pytest.raises(RuntimeFailure, match="this node's operator has not allowed"):
        await start(runtime, make_spec(image, host_network=True))
    assert await runtime.list() == []


async def test_a_session_on_the_nodes_network_answers_in_its_folder_only(
    runtime, image, api
):
    runtime.allow_host_network = True
    spec = make_spec(image, host_network=True)
    folder = container_folder(runtime.data_dir, spec.id)
    folder.make()
    write_activation(folder, build_activation(spec, NO_PATCH, Surroundings()))
    await runtime.start(spec, NO_PATCH)
    apps = Apps(runtime)
    try:

        async def answers():
            return await apps.answers(spec.id, f"{PREFIX}api")

        assert await until(answers)
    finally:
        await apps.close()
    assert (await runtime.endpoint(spec.id, "lab")).socket == folder.lab_socket
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        near = await asyncio.to_thread(sessions.reaches, api, spec, "127.0.0.1", port)
    assert near, "it is not on the node's network"
    pid = api.inspect_container(container_name(spec.id))["State"]["Pid"]
    assert not (ports_of(api, spec, pid)), "somebody else could take these ports"
    await runtime.stop(spec.id, 1.0)
    assert await runtime.list() == []


def ports_of(api, spec, pid):
    """Return the ports that the processes of the session's container listen on."""
    program = (
        "import os, glob\n"
        "own = {os.readlink(f) for f in glob.glob('/proc/[0-9]*/fd/*')"
        " if os.path.islink(f)}\n"
        "for name in ('tcp', 'tcp6'):\n"
        "    for line in list(open(f'/proc/net/{name}'))[1:]:\n"
        "        words = line.split()\n"
        "        if words[3] == '0A' and f'socket:[{words[9]}]' in own:\n"
        "            print(words[1])\n"
    )
    code, printed = run_inside(api, spec, "/opt/backendai/bin/python", "-c", program)
    assert code == 0, printed
    return printed.split()


async def test_on_the_nodes_network_no_service_of_it_can_be_replaced(
    runtime, image, api
):
    runtime.allow_host_network = True
    runtime.command = SLEEP
    spec = make_spec(image, host_network=True)
    await start(runtime, spec)
    config = api.inspect_container(container_name(spec.id))["HostConfig"]
    assert config["NetworkMode"] == "host"
    assert not {"CAP_NET_BIND_SERVICE", "NET_BIND_SERVICE"} & set(config["CapAdd"])
    code, _ = run_inside(api, spec, "ip", "link", "add", "mine", "type", "dummy")
    assert code != 0
    seen = [each.id for each in await runtime.list()]
    assert seen == [spec.id]


async def test_what_the_nodes_network_gives_up_is_told(runtime):
    runtime.allow_host_network = True
    await runtime._fence()
    assert any("SHARE THIS NODE'S NETWORK" in n for n in runtime.isolation_now.notes)
