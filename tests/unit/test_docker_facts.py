"""What is said of the engine, of an ended container and of the fences."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

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


def is_blocked(rules, source, target):
    """Tell whether any of the rules refuses what goes from one address to another."""

    def matches(words):
        wanted = True
        for before, word, value in zip(["", *words], words, words[1:], strict=False):
            if word in {"-s", "-d"}:
                address = ip_address(source if word == "-s" else target)
                wanted &= (address in ip_network(value)) is (before != "!")
        return wanted

    return any(matches(words) for chain, words in rules if chain == "DOCKER-USER")


CLUSTERS = "10.215.0.0/16"
ONE, SISTER, ALONE = "10.215.4.2", "10.215.4.3", "10.213.0.9"
NEAR, FAR = "10.1.2.3", "11.0.0.1"


@pytest.mark.parametrize(
    ("network", "near_is_blocked"),
    [
        ("10.0.0.0/8", True),
        (CLUSTERS, False),
        ("10.215.4.0/24", False),
        ("10.215.4.3", False),
        ("10.128.0.0/9", False),
        ("0.0.0.0/0", True),
    ],
)
def test_containers_of_one_session_reach_each_other_whatever_is_blocked(
    network, near_is_blocked
):
    rules = list(firewall_rules([network], CLUSTERS))
    assert not is_blocked(rules, ONE, SISTER)
    for source in (ONE, ALONE):
        assert is_blocked(rules, source, NEAR) is near_is_blocked
        assert is_blocked(rules, source, FAR) is (network == "0.0.0.0/0")
    # What others send into sessions' own networks is blocked, as the site has said.
    assert is_blocked(rules, ALONE, SISTER)


def test_what_is_blocked_elsewhere_is_one_rule_and_nonsense_is_left_to_iptables():
    for network in ("169.254.0.0/16", "no network", "fd00::/8"):
        rules = list(firewall_rules([network], CLUSTERS))
        assert rules[1:] == [
            ("DOCKER-USER", ["-i", "bai-+", "-d", network, "-j", "REJECT"])
        ]


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
