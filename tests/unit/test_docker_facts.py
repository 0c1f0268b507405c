"""What is said of the engine, of an ended container and of the fences."""

from __future__ import annotations

import pytest

from backendai_agent.runtimes.docker_facts import (
    explain_end,
    fence,
    judge,
    user_offset,
)
from backendai_agent.runtimes.docker_images import references
from backendai_agent.runtimes.docker_network import firewall_rules, network_config

GOOD = {
    "ServerVersion": "28.2",
    "LiveRestoreEnabled": True,
    "CgroupVersion": "2",
    "Driver": "overlay2",
    "SecurityOptions": ["name=seccomp,profile=default", "name=userns"],
    "DockerRootDir": "/var/lib/docker/231072.231072",
}
VERSION = {"Components": [{"Name": "runc", "Version": "1.2.3"}]}


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"Status": "exited", "ExitCode": 3}, "exited with code 3"),
        ({"Status": "exited", "ExitCode": 137, "OOMKilled": True}, "out of memory"),
        ({"Status": "exited", "ExitCode": 137}, "killed (signal 9)"),
        ({"Status": "exited", "ExitCode": 139}, "ended by signal 11"),
        ({"Status": "created", "ExitCode": 0}, "never started"),
        (
            {"Status": "created", "ExitCode": 127, "Error": "no such file"},
            "never started: no such file",
        ),
        (
            {"Status": "exited", "ExitCode": 255, "Error": "shim went away"},
            "the container engine ended it: shim went away",
        ),
    ],
)
def test_the_end_of_a_container_is_told_in_words(state, words):
    assert explain_end(state) == words


def test_a_well_set_up_engine_needs_no_advice():
    isolation = judge(GOOD, VERSION)

    assert isolation.tier == "container with own users"
    assert isolation.limits == "cgroup v2"
    assert isolation.notes == ["Docker 28.2, runc 1.2.3, storage overlay2"]


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"LiveRestoreEnabled": False}, "live restore is off"),
        ({"SecurityOptions": ["name=userns"]}, "seccomp is off"),
        ({"SecurityOptions": ["name=seccomp"]}, "userns-remap would"),
    ],
)
def test_what_a_site_should_change_is_said(change, note):
    assert note in " ".join(judge(GOOD | change, VERSION).notes)


def test_remapped_users_begin_where_the_engine_says():
    assert user_offset(GOOD) == 231072
    assert user_offset(GOOD | {"SecurityOptions": []}) == 0


def test_an_image_goes_by_every_name_it_has():
    listed = [
        {"Id": "sha256:1", "RepoTags": ["lab:latest", "lab:4"], "RepoDigests": None},
        {
            "Id": "sha256:2",
            "RepoTags": ["<none>:<none>"],
            "RepoDigests": ["hub.example/x@sha256:3"],
        },
    ]
    assert references(listed) == [
        "hub.example/x@sha256:3",
        "lab",
        "lab:4",
        "lab:latest",
        "sha256:1",
        "sha256:2",
    ]


def test_sessions_cannot_talk_over_their_bridge():
    options = network_config("backendai", "10.1.0.0/16")["Options"]

    assert options["com.docker.network.bridge.enable_icc"] == "false"
    assert options["com.docker.network.bridge.name"] == "bai-backendai"


def test_the_node_and_link_local_addresses_are_fenced_off():
    rules = {
        chain: " ".join(words) for chain, words in firewall_rules(["169.254.0.0/16"])
    }

    assert rules["INPUT"] == "-i bai-+ -m conntrack --ctstate NEW -j REJECT"
    assert rules["DOCKER-USER"] == "-i bai-+ -d 169.254.0.0/16 -j REJECT"


@pytest.mark.parametrize(
    ("breach", "left_to_site", "tolerated", "network", "multi_user"),
    [
        ("", False, False, "fenced bridge", True),
        ("no iptables", False, False, "bridge", False),
        ("no iptables", False, True, "bridge", True),
        ("", True, False, "bridge", True),
    ],
)
def test_a_node_whose_sessions_reach_it_is_for_one_user(
    breach, left_to_site, tolerated, network, multi_user
):
    judged = judge(GOOD, VERSION)
    told = fence(judged, breach=breach, left_to_site=left_to_site, tolerated=tolerated)
    assert (told.network, told.multi_user) == (network, multi_user)
    assert any(breach in note for note in told.notes)
    assert ("reach this node" in told.notes[0].lower()) == (network == "bridge")
