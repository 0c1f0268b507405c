"""The one bridge all single-container sessions of a node share, and its fences.

Sessions on it reach the internet and nothing near: not each other (the bridge does
not forward between its own ports), not the node (a firewall rule refuses new
connections from the bridge), not the cloud's metadata service (link-local).
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any, Final

import docker
import docker.errors

from backendai_agent.runtimes.base import RuntimeFailure

BRIDGE_PREFIX: Final = "bai"
FIREWALL_SECONDS: Final = 20
ICC: Final = "com.docker.network.bridge.enable_icc"
BRIDGE_NAME: Final = "com.docker.network.bridge.name"


def network_config(name: str, subnet: str) -> dict[str, Any]:
    """Build the body of the engine's ``POST /networks/create``.

    The subnet is named because the engine's own pool ends after thirty networks.
    """
    return {
        "Name": name,
        "Driver": "bridge",
        "CheckDuplicate": True,
        "Internal": False,
        "Attachable": False,
        "Labels": {"ai.backend.network": "sessions"},
        "IPAM": {"Driver": "default", "Config": [{"Subnet": subnet}]},
        "Options": {
            BRIDGE_NAME: f"{BRIDGE_PREFIX}-{name}"[:15],
            ICC: "false",
        },
    }


def ensure_network(api: docker.APIClient, name: str, subnet: str) -> None:
    """Make the bridge *name* unless it is there; refuses one that is not fenced."""
    if _find(api, name):
        return
    config = network_config(name, subnet)
    try:
        api.create_network(
            name,
            driver=config["Driver"],
            options=config["Options"],
            ipam=config["IPAM"],
            check_duplicate=True,
            labels=config["Labels"],
        )
    except docker.errors.APIError:
        if not _find(api, name):  # another agent on this engine made it meanwhile
            raise


def _find(api: docker.APIClient, name: str) -> bool:
    for network in api.networks(names=[name]):
        if network["Name"] == name:
            _check(name, network)
            return True
    return False


def _check(name: str, network: dict[str, Any]) -> None:
    options = network.get("Options") or {}
    fenced = options.get(ICC) == "false"
    if not fenced or not options.get(BRIDGE_NAME, "").startswith(BRIDGE_PREFIX):
        raise RuntimeFailure(
            f"the network {name} on this node was not made for sessions, which could"
            f" reach each other on it; remove it (docker network rm {name}) or set"
            " another name with DockerRuntime.network"
        )


def check_can_share_network(user: str, *, offset: int) -> None:
    """Raise RuntimeFailure unless a session as *user* can be on the node's network.

    There it listens on a socket in its folder, which is its own user's alone.
    """
    if offset:
        raise RuntimeFailure(
            "sessions cannot be on this node's own network: its container engine has"
            " users of its own (userns-remap), and does not do both"
        )
    if os.geteuid() not in {0, int(user.partition(":")[0])}:
        raise RuntimeFailure(
            "sessions on the node's own network need an agent that runs as root"
        )


def firewall_rules(
    blocked: Sequence[str], own: str = ""
) -> Iterator[tuple[str, list[str]]]:
    """Yield the chain and the words of every rule that fences the bridges.

    *own* are the addresses of sessions' own networks. The containers of one session
    reach each other there, whatever is blocked; no rule depends on another's place.
    """
    new = ["-m", "conntrack", "--ctstate", "NEW"]
    yield "INPUT", [*_BRIDGE, *new, "-j", "REJECT"]
    for network in blocked:
        shared = _overlap(network, own)
        if shared is None:
            yield "DOCKER-USER", _block(network)
            continue
        yield "DOCKER-USER", _block(str(shared), unless_from=own)
        around = ipaddress.ip_network(network, strict=False)
        if around != shared:
            # The two are of one version, since they overlap.
            for part in around.address_exclude(shared):  # type: ignore[arg-type]
                yield "DOCKER-USER", _block(str(part))


_BRIDGE: Final = ("-i", f"{BRIDGE_PREFIX}-+")


def _block(network: str, *, unless_from: str = "") -> list[str]:
    source = ["!", "-s", unless_from] if unless_from else []
    return [*_BRIDGE, *source, "-d", network, "-j", "REJECT"]


def _overlap(
    network: str, own: str
) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Return the part of *network* that sessions' own networks are in, if any is."""
    try:
        one, other = (ipaddress.ip_network(n, strict=False) for n in (network, own))
    except ValueError:
        return None  # iptables says what is wrong with it, or knows more than we do
    if one.version != other.version or not one.overlaps(other):
        return None
    return max(one, other, key=lambda n: n.prefixlen)


def set_firewall(blocked: Sequence[str], own: str = "") -> None:
    """Put the rules in place, each once; raises RuntimeFailure if one cannot be."""
    iptables = shutil.which("iptables", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if iptables is None:
        raise RuntimeFailure("there is no iptables on this node")
    rules = list(firewall_rules(blocked, own))
    for chain, words in rules:
        if _iptables(iptables, "-C", chain, words) is not None:
            problem = _iptables(iptables, "-I", chain, words)
            if problem is not None:
                raise RuntimeFailure(f"iptables -I {chain}: {problem}")
    # What was set before sessions had networks of their own would cut these off.
    for network in blocked:
        whole = ("DOCKER-USER", _block(network))
        if whole not in rules and _iptables(iptables, "-C", *whole) is None:
            _iptables(iptables, "-D", *whole)


def _iptables(program: str, verb: str, chain: str, words: Sequence[str]) -> str | None:
    """Run iptables and return its complaint, if it has one."""
    command = [program, "-w", "5", verb, chain, *words]
    try:
        done = subprocess.run(  # noqa: S603 - no word of it is a user's
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=FIREWALL_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip() or "refused"
