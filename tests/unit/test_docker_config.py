"""What the container engine may be asked for, whatever a session asks for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_agent.folders import ContainerFolder
from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure, ShownFolder
from backendai_agent.runtimes.docker_config import (
    CAPABILITIES,
    PROFILES,
    Surface,
    container_config,
)
from backendai_agent.runtimes.docker_people import add_group, add_user
from backendai_hub.api.agents import ContainerSpec, DesiredState, Identity

FOLDER = ContainerFolder(Path("/var/lib/backendai/agent/containers/the-id"))
SURFACE = Surface(
    agent_id="the-agent",
    network="backendai",
    command=["/opt/backendai/bin/python", "-I", "-m", "backendai_lab.boot"],
    open_files=20000,
)

TOP = {
    *("Image", "Entrypoint", "Cmd", "User", "WorkingDir", "Hostname", "Env", "Labels"),
    *("Healthcheck", "StopSignal", "OpenStdin", "Tty", "HostConfig"),
}
HOST = {
    *("NetworkMode", "Mounts", "Init", "Privileged", "CapDrop", "CapAdd"),
    *("SecurityOpt", "IpcMode", "CgroupnsMode", "ReadonlyRootfs", "PidsLimit"),
    *("Ulimits", "RestartPolicy", "AutoRemove", "LogConfig", "Devices"),
    *(
        "DeviceRequests",
        "GroupAdd",
        "CpuPeriod",
        "CpuQuota",
        "Memory",
        "MemorySwap",
        "ShmSize",
    ),
    "Tmpfs",
}
"""The golden list: every key the engine may ever be sent. Widen it with thought."""


def make_spec(**changes):
    return ContainerSpec(
        **{
            "id": "00000000-0000-7000-8000-000000000001",
            "session_id": "the-session",
            "desired": DesiredState.RUNNING,
            "owner": "alice",
            "image": "backendai/jupyterlab:4",
            "cpu": 1500,
            "memory": 1 << 30,
            "prefix": "/user/alice/",
            "environ": {"JUPYTERHUB_API_TOKEN": "secret-of-alice"},
            "argv": ["--secret=of-alice"],
            **changes,
        }
    )


def make_config(spec, patch=ContainerPatch(), surface=SURFACE):  # noqa: B008 - frozen
    return container_config(spec, patch, folder=FOLDER, surface=surface)


text = st.text(max_size=12) | st.sampled_from(
    ["--privileged", "host", "/var/run/docker.sock", "/", "root", "0:0", "../../etc"]
)
numbers = st.none() | st.integers(1, 3)
specs = st.builds(
    ContainerSpec,
    id=text,
    session_id=text,
    desired=st.sampled_from(DesiredState),
    session_name=text,
    owner=text,
    image=text,
    cpu=st.integers(0, 4),
    memory=st.integers(0, 4),
    shmem=st.integers(0, 4),
    environ=st.dictionaries(text, text, max_size=3),
    argv=st.lists(text, max_size=3),
    prefix=text,
    profile=st.sampled_from(sorted(PROFILES)),
    sudo=st.booleans(),
    identity=st.none()
    | st.builds(
        Identity,
        uid=numbers,
        gid=numbers,
        gids=st.lists(st.integers(1, 3), max_size=2),
    ),
    grace_seconds=st.floats(0, 10),
).filter(lambda spec: not (spec.sudo and spec.profile == "locked"))
patches = st.builds(
    ContainerPatch,
    environ=st.dictionaries(text, text, max_size=2),
    devices=st.lists(st.sampled_from(["/dev/a0", "/dev/b1"]), max_size=2).map(tuple),
    mounts=st.just(()) | st.just((("/opt/driver", "/opt/driver", True),)),
    folders=st.just(()) | st.just((ShownFolder("/agent/mounts/c/0", "/home/work/d"),)),
)


@given(specs, patches)
def test_nothing_a_session_says_reaches_beyond_its_container(spec, patch):
    config = make_config(spec, patch)
    host = config["HostConfig"]

    assert set(config) <= TOP
    assert set(host) <= HOST
    assert host["Privileged"] is False
    assert host["CapDrop"] == ["ALL"]
    assert set(host["CapAdd"]) <= set(CAPABILITIES)
    assert not {"SYS_ADMIN", "NET_RAW", "NET_ADMIN", "SYS_PTRACE"} & set(host["CapAdd"])
    assert set(host["SecurityOpt"]) <= {"no-new-privileges"}
    assert host["NetworkMode"] == SURFACE.network
    assert host["IpcMode"] == host["CgroupnsMode"] == "private"
    assert host["RestartPolicy"] == {"Name": "no"}
    assert [d["PathOnHost"] for d in host["Devices"]] == list(patch.devices)
    assert host["DeviceRequests"] == []
    own = {str(FOLDER.run), str(FOLDER.work), *(m[0] for m in patch.mounts)}
    own |= {shown.source for shown in patch.folders}
    assert {mount["Source"] for mount in host["Mounts"]} == own
    assert {mount["Type"] for mount in host["Mounts"]} == {"bind"}
    assert config["Entrypoint"] == SURFACE.command
    assert config["Cmd"] == []
    assert host["PidsLimit"] == 2048


@given(specs)
def test_only_what_the_node_sets_is_in_the_environment(spec):
    names = {entry.partition("=")[0] for entry in make_config(spec)["Env"]}

    assert names == {"HOME", "BACKENDAI_RUN_DIR", "NVIDIA_VISIBLE_DEVICES"}


def test_folders_come_last_and_outer_ones_first():
    folders = (
        ShownFolder("/agent/mounts/c/0", "/home/work/a"),
        ShownFolder("/srv/x", "/home/work/a/b", read_only=True),
    )
    config = make_config(make_spec(), ContainerPatch(folders=folders))

    mounts = config["HostConfig"]["Mounts"]
    assert [(m["Target"], m["ReadOnly"]) for m in mounts[-2:]] == [
        ("/home/work/a", False),
        ("/home/work/a/b", True),
    ]
    assert "TAR_OPTIONS=--no-same-owner" in config["Env"]


def test_secrets_are_no_part_of_the_configuration():
    assert "of-alice" not in json.dumps(make_config(make_spec()))


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_limits_are_exactly_those_of_the_specification(cpu, memory, shmem):
    spec = make_spec(cpu=cpu, memory=memory, shmem=shmem)
    host = make_config(spec)["HostConfig"]

    assert ("CpuQuota" in host) == bool(cpu)
    if cpu:
        assert host["CpuQuota"] >= 1000  # the engine refuses less
    assert host.get("Memory", 0) == host.get("MemorySwap", 0) == memory
    if memory:
        assert host["ShmSize"] <= memory


def test_a_core_and_a_half_is_150_milliseconds_of_every_100():
    host = make_config(make_spec(cpu=1500))["HostConfig"]

    assert host["CpuQuota"] / host["CpuPeriod"] == 1.5


def test_a_full_session_is_root_but_gains_no_privileges():
    config = make_config(make_spec(profile="full"))

    assert config["User"] == "0:0"
    assert config["HostConfig"]["SecurityOpt"] == ["no-new-privileges"]
    assert config["HostConfig"]["ReadonlyRootfs"] is False


def test_a_sudo_session_is_a_user_who_may_become_root():
    config = make_config(make_spec(profile="sudo"))

    assert config["User"] == "1000:1000"
    assert config["HostConfig"]["SecurityOpt"] == []


def test_a_locked_session_can_write_only_where_it_should():
    config = make_config(make_spec(profile="locked"))
    host = config["HostConfig"]

    assert config["User"] == "1000:1000"
    assert host["ReadonlyRootfs"] is True
    assert host["CapAdd"] == []
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert set(host["Tmpfs"]) == {"/run", "/tmp"}


def test_a_profile_nobody_defined_is_refused_by_name():
    with pytest.raises(RuntimeFailure, match=r"no isolation profile .open.; there"):
        make_config(make_spec(profile="open"))


@pytest.mark.parametrize(
    ("nvidia", "cdi", "driver", "ids"),
    [
        (True, False, "nvidia", ["GPU-1"]),
        (True, True, "nvidia", ["GPU-1"]),
        (False, True, "cdi", ["nvidia.com/gpu=GPU-1"]),
    ],
)
def test_a_gpu_is_asked_for_by_name_in_the_way_the_engine_knows(
    nvidia, cdi, driver, ids
):
    surface = Surface(agent_id="a", network="n", command=["c"], nvidia=nvidia, cdi=cdi)
    patch = ContainerPatch(
        environ={"NVIDIA_VISIBLE_DEVICES": "GPU-1"}, devices=("nvidia.com/gpu=GPU-1",)
    )
    config = make_config(make_spec(), patch, surface)
    (request,) = config["HostConfig"]["DeviceRequests"]

    assert (request["Driver"], request["DeviceIDs"]) == (driver, ids)
    assert "NVIDIA_VISIBLE_DEVICES=GPU-1" in config["Env"]


def test_a_gpu_that_the_engine_cannot_hand_over_is_refused_in_words():
    patch = ContainerPatch(devices=("nvidia.com/gpu=GPU-1",))
    with pytest.raises(RuntimeFailure, match=r"cannot hand over nvidia\.com/gpu=GPU-1"):
        make_config(make_spec(), patch)


def test_open_files_stay_below_what_this_node_allows():
    (files, core) = make_config(make_spec())["HostConfig"]["Ulimits"]

    assert files == {"Name": "nofile", "Soft": 20000, "Hard": 20000}
    assert core == {"Name": "core", "Soft": 0, "Hard": 0}


@given(specs)
def test_only_sudo_can_gain_power_and_only_a_containers_own(spec):
    config = make_config(spec)
    host = config["HostConfig"]
    free = spec.sudo or spec.profile == "sudo"

    if spec.identity is not None and spec.identity.uid is not None:
        assert config["User"].partition(":")[0] == str(spec.identity.uid)
        assert spec.sudo or host["CapAdd"] == []
        free = spec.sudo
    assert host["SecurityOpt"] == ([] if free else ["no-new-privileges"])


def test_there_is_no_sudo_where_nothing_may_be_written():
    with pytest.raises(RuntimeFailure, match="no sudo in the profile 'locked'"):
        make_config(make_spec(profile="locked", sudo=True))


def test_the_nodes_network_takes_two_to_agree():
    spec = make_spec(host_network=True)
    with pytest.raises(RuntimeFailure, match="this node's operator has not allowed"):
        make_config(spec)
    agreed = replace(SURFACE, host_network=True)
    host = make_config(spec, surface=agreed)["HostConfig"]
    assert host["NetworkMode"] == "host"
    assert "NET_BIND_SERVICE" not in host["CapAdd"]
    alone = make_config(make_spec(), surface=agreed)["HostConfig"]
    assert alone["NetworkMode"] == SURFACE.network


def test_a_name_is_written_for_the_user_and_for_nobody_else():
    passwd = "root:x:0:0::/root:/bin/sh\nwork:x:1000:1000::/:/bin/sh\nann:x:7:7::/:/x"
    named = add_user(passwd, uid=7, gid=8).splitlines()
    assert named == [
        "root:x:0:0::/root:/bin/sh",
        "work:x:7:8::/home/work:/bin/bash",
    ]
    assert add_user(passwd, uid=0, gid=8) == passwd
    assert add_group("staff:x:8:\n", gid=8) == "staff:x:8:\n"
    assert add_group("work:x:1000:\n", gid=8) == "work:x:8:\n"
