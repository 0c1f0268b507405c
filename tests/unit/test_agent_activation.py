"""What a session is told when it starts."""

from __future__ import annotations

import json
import stat

from backendai_agent.activation import (
    THREADS,
    Surroundings,
    build_activation,
    build_environ,
    write_activation,
)
from backendai_agent.folders import container_folder
from backendai_agent.runtimes.base import ContainerPatch
from backendai_hub.api.agents import ContainerSpec, DesiredState

CONTAINER = "0190a0e0-0000-7000-8000-000000000001"
SOCKET = "http+unix://%2Frun%2Fbackendai%2Fhub.sock"


def make_spec(**changes):
    given = {
        "id": CONTAINER,
        "session_id": "s-1",
        "desired": DesiredState.RUNNING,
        "session_name": "train",
        "owner": "alice",
        "image": "python",
        "cpu": 2500,
        "prefix": "/user/alice/train/",
    }
    return ContainerSpec(**(given | changes))


def environ(spec=None, patch=None, around=None):
    return build_environ(
        spec or make_spec(), patch or ContainerPatch(), around or Surroundings()
    )


def test_the_platform_is_reached_through_the_socket_only():
    spec = make_spec(
        environ={
            "JUPYTERHUB_API_URL": "http://127.0.0.1:8081/jupyter/hub/api",
            "JUPYTERHUB_ACTIVITY_URL": (
                "http://127.0.0.1:8081/jupyter/hub/api/users/alice/activity"
            ),
        }
    )
    told = environ(spec, around=Surroundings(base="/jupyter/"))

    assert told["JUPYTERHUB_API_URL"] == f"{SOCKET}/jupyter/hub/api"
    assert told["JUPYTERHUB_ACTIVITY_URL"] == (
        f"{SOCKET}/jupyter/hub/api/users/alice/activity"
    )
    assert told["BACKENDAI_API_URL"] == f"{SOCKET}/jupyter/services/backendai/api/"


def test_jupyterlab_is_told_where_to_listen():
    assert environ()["BACKENDAI_LISTEN"] == "unix:/run/backendai/lab.sock"
    outside = Surroundings(run="/srv/c/run")
    assert environ(around=outside)["BACKENDAI_LISTEN"] == "unix:/srv/c/run/lab.sock"
    docker = Surroundings(listen="tcp:0.0.0.0:8888")
    assert environ(around=docker)["BACKENDAI_LISTEN"] == "tcp:0.0.0.0:8888"


def test_thread_counts_follow_the_cores_unless_the_user_says_otherwise():
    told = environ(make_spec(environ={"OMP_NUM_THREADS": "1"}))
    assert told["OMP_NUM_THREADS"] == "1"
    assert {told[name] for name in THREADS} == {"1", "3"}
    assert environ(make_spec(cpu=100))["MKL_NUM_THREADS"] == "1"
    assert "MKL_NUM_THREADS" not in environ(make_spec(cpu=0))


def test_what_identifies_the_session_cannot_be_overridden():
    spec = make_spec(
        environ={"BACKENDAI_SESSION_ID": "other", "BACKENDAI_USER_NAME": "root"}
    )
    told = environ(spec)
    assert told["BACKENDAI_SESSION_ID"] == "s-1"
    assert told["BACKENDAI_USER_NAME"] == "alice"
    assert told["BACKENDAI_KERNEL_ID"] == CONTAINER
    assert told["BACKENDAI_CLUSTER_HOST"] == "main1"


def test_devices_win_over_what_the_user_says_of_them():
    patch = ContainerPatch(environ={"NVIDIA_VISIBLE_DEVICES": "GPU-1"})
    spec = make_spec(environ={"NVIDIA_VISIBLE_DEVICES": "all"})
    assert environ(spec, patch)["NVIDIA_VISIBLE_DEVICES"] == "GPU-1"


def test_the_file_is_for_the_container_alone_and_complete(tmp_path):
    folder = container_folder(tmp_path, CONTAINER)
    folder.make()
    activation = build_activation(
        make_spec(argv=["--debug"]), ContainerPatch(), Surroundings()
    )
    write_activation(folder, activation)
    write_activation(folder, activation)

    assert json.loads(folder.activation.read_text()) == activation
    assert activation["argv"] == ["--debug"]
    assert stat.S_IMODE(folder.activation.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert [p.name for p in folder.run.iterdir()] == ["activation.json"]


def test_who_may_use_sudo_is_told_so_and_nobody_else_can_say_it():
    assert environ(make_spec(sudo=True))["SUDO_SESSION_ENABLED"] == "1"
    claimed = make_spec(environ={"SUDO_SESSION_ENABLED": "1"})
    assert "SUDO_SESSION_ENABLED" not in environ(claimed)


def test_on_the_nodes_network_kernels_open_no_ports():
    shared = build_activation(
        make_spec(host_network=True), ContainerPatch(), Surroundings()
    )
    assert "--KernelManager.transport=ipc" in shared["argv"]
    alone = build_activation(make_spec(), ContainerPatch(), Surroundings())
    assert "--KernelManager.transport=ipc" not in alone["argv"]
