"""What the containers of a cluster are told, and what their runtimes make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from backendai_agent.activation import Surroundings, build_environ
from backendai_agent.folders import ContainerFolder
from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure
from backendai_agent.runtimes.docker_config import Surface, container_config
from backendai_agent.runtimes.fake import FakeRuntime
from backendai_agent.runtimes.process_preparation import find_others
from backendai_agent.runtimes.process_sandbox import synthesise_etc
from backendai_hub.api.agents import ClusterPlace, ContainerSpec, DesiredState
from backendai_hub.core.clusters import (
    ClusterMode,
    ClusterStrategy,
    check_size,
    choose_strategy,
    describe_replicas,
    list_seats,
)
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.ids import make_id

SESSION = make_id(2, b"0123456789")
HOSTS = ("main1", "sub1", "sub2")
SURFACE = Surface(
    agent_id="agent", network="backendai", command=["python", "-m", "lab"]
)


def make_place(host: str = "sub1", **changes: Any) -> ClusterPlace:
    role, idx = host[:-1], int(host[-1])
    return ClusterPlace(
        **{"role": role, "idx": idx, "host": host, "hosts": HOSTS, **changes}
    )


def make_spec(place: ClusterPlace, **changes: Any) -> ContainerSpec:
    return ContainerSpec(
        **{
            "id": make_id(1, b"0123456789"),
            "session_id": SESSION,
            "desired": DesiredState.RUNNING,
            "image": "image",
            "cluster": place,
            **changes,
        }
    )


def docker(spec: ContainerSpec, **surface: Any) -> dict[str, Any]:
    known = {f: getattr(SURFACE, f) for f in SURFACE.__dataclass_fields__}
    return container_config(
        spec,
        ContainerPatch(),
        folder=ContainerFolder(Path("/agent")),
        surface=Surface(**{**known, **surface}),
    )


def test_the_first_seat_is_the_main_one():
    assert [seat.host for seat in list_seats(3)] == list(HOSTS)
    assert [describe_replicas(n) for n in (1, 3)] == ["main:1", "main:1,sub:2"]


def test_a_cluster_that_may_be_on_several_nodes_is_packed_unless_it_says_otherwise():
    multi, single = ClusterMode.MULTI_NODE, ClusterMode.SINGLE_NODE
    assert choose_strategy(multi, None) is ClusterStrategy.PACK
    assert choose_strategy(multi, ClusterStrategy.SPREAD) is ClusterStrategy.SPREAD
    assert choose_strategy(single, None) is None
    with pytest.raises(InvalidRequestError, match="cluster_mode multi-node"):
        choose_strategy(single, ClusterStrategy.PACK)
    check_size(500)
    with pytest.raises(InvalidRequestError, match="501 containers are more than 500"):
        check_size(501)


def test_every_container_finds_the_cluster_in_its_environment():
    place = make_place("sub2", mode="multi-node")
    environ = build_environ(make_spec(place), ContainerPatch(), Surroundings())
    told = {k: v for k, v in environ.items() if k.startswith("BACKENDAI_CLUSTER_")}
    assert told == {
        "BACKENDAI_CLUSTER_SIZE": "3",
        "BACKENDAI_CLUSTER_REPLICAS": "main:1,sub:2",
        "BACKENDAI_CLUSTER_HOSTS": "main1,sub1,sub2",
        "BACKENDAI_CLUSTER_HOST": "sub2",
        "BACKENDAI_CLUSTER_ROLE": "sub",
        "BACKENDAI_CLUSTER_IDX": "2",
        "BACKENDAI_CLUSTER_LOCAL_RANK": "2",
        "BACKENDAI_CLUSTER_MODE": "multi-node",
    }


def test_nobody_makes_themselves_another_container():
    spec = make_spec(make_place(), environ={"BACKENDAI_CLUSTER_ROLE": "main"})
    environ = build_environ(spec, ContainerPatch(), Surroundings())
    assert environ["BACKENDAI_CLUSTER_ROLE"] == "sub"


def test_together_on_a_node_they_get_a_network_of_their_own():
    config = docker(make_spec(make_place(beside=HOSTS)))
    name = f"backendai-session-{SESSION}"
    assert config["HostConfig"]["NetworkMode"] == name
    endpoints = config["NetworkingConfig"]["EndpointsConfig"]
    assert endpoints == {name: {"Aliases": ["sub1"]}}
    assert config["Hostname"] == "sub1"
    assert "ExtraHosts" not in config["HostConfig"]


def test_on_several_nodes_no_name_leads_anywhere():
    place = make_place(beside=("sub1",), addresses=dict.fromkeys(HOSTS, "192.0.2.1"))
    config = docker(make_spec(place))
    assert config["HostConfig"]["NetworkMode"] == "backendai"
    assert "NetworkingConfig" not in config
    assert "ExtraHosts" not in config["HostConfig"]


def test_on_the_nodes_own_networks_names_lead_to_the_nodes():
    addresses = {"main1": "192.0.2.1", "sub1": "192.0.2.2", "sub2": "a-name"}
    place = make_place(beside=("sub1",), addresses=addresses)
    config = docker(make_spec(place, host_network=True), host_network=True)
    assert config["HostConfig"]["NetworkMode"] == "host"
    assert config["HostConfig"]["ExtraHosts"] == ["main1:192.0.2.1", "sub1:127.0.0.1"]


def test_a_session_of_one_container_is_where_it_always_was():
    config = docker(make_spec(ClusterPlace()))
    assert config["HostConfig"]["NetworkMode"] == "backendai"
    assert config["Hostname"] == "main1"


def test_processes_find_each_other_only_on_a_network_that_they_share():
    addresses = {"main1": "192.0.2.1", "sub1": "192.0.2.2", "sub2": "192.0.2.2"}
    spec = make_spec(make_place(beside=("sub1", "sub2"), addresses=addresses))
    assert find_others(spec, "slirp") == {}
    others = find_others(spec, "host")
    assert others == {"main1": "192.0.2.1", "sub2": "127.0.0.1"}
    files = synthesise_etc(
        uid=1, gid=1, hostname="sub1", nameservers=(), shell="/bin/sh", others=others
    )
    assert "127.0.0.1\tlocalhost sub1\n" in files["hosts"]
    assert "192.0.2.1\tmain1\n127.0.0.1\tsub2\n" in files["hosts"]


async def test_the_fake_runtime_fails_the_containers_that_it_is_told_to(
    tmp_path: Path,
):
    runtime = FakeRuntime(data_dir=str(tmp_path), fail_hosts=["sub1"], start_seconds=0)
    await runtime.open()
    try:
        with pytest.raises(RuntimeFailure, match="told to fail sub1"):
            await runtime.start(make_spec(make_place("sub1")), ContainerPatch())
    finally:
        await runtime.close()
