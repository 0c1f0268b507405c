"""A bridge of its own for each session that has all its containers on this node.

On it they find each other by name, and nothing else is on it; outwards it is fenced
like the bridge that other sessions share. A network is there from the start of the
session's first container on, and goes when the last one has gone. What a crash has
left, or the engine would not remove, is found again by its label.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import docker
import docker.errors

from backendai_agent.runtimes.base import RuntimeFailure
from backendai_agent.runtimes.docker_config import (
    LABEL_AGENT,
    LABEL_SESSION,
    session_network,
)
from backendai_agent.runtimes.docker_network import BRIDGE_NAME, BRIDGE_PREFIX

LABEL_NETWORK: Final = "ai.backend.network"
_OF_SESSION: Final = "session"
_LEAST_BITS: Final = 4
_TRIES: Final = 32


class SessionNetworks:
    """The networks of this agent's sessions on one engine; for several threads."""

    def __init__(
        self, subnets: str, log: logging.Logger | logging.LoggerAdapter[Any]
    ) -> None:
        self._subnets = ipaddress.ip_network(subnets)
        self._log = log
        self._lock = threading.Lock()
        self._needed: Counter[str] = Counter()

    @contextmanager
    def needed(
        self, api: docker.APIClient, session_id: str, *, size: int, owner: str
    ) -> Iterator[None]:
        """Have the session's network there while one of its containers is made."""
        with self._lock:
            self._needed[session_id] += 1
        try:
            with self._lock:
                if not _find(api, session_network(session_id)):
                    self._make(api, session_id, size=size, owner=owner)
            yield
        finally:
            with self._lock:
                self._needed[session_id] -= 1
                self._needed += Counter()  # drops what nobody needs

    def sweep(self, api: docker.APIClient, owner: str, session_id: str = "") -> None:
        """Remove networks that no container is left on: this session's, or any.

        What the engine does not remove is left for the next time.
        """
        labels = [f"{LABEL_NETWORK}={_OF_SESSION}", f"{LABEL_AGENT}={owner}"]
        labels += [f"{LABEL_SESSION}={session_id}"] if session_id else []
        for network in api.networks(filters={"label": labels}):
            found = (network.get("Labels") or {}).get(LABEL_SESSION, "")
            with self._lock:
                if self._needed[found] or _has_containers(api, found):
                    continue
                try:
                    api.remove_network(network["Id"])
                except docker.errors.APIError as error:
                    if error.status_code != 404:
                        self._log.warning(
                            "the network of session %s stays for now: %s",
                            found,
                            error.explanation,
                        )

    def _make(
        self, api: docker.APIClient, session_id: str, *, size: int, owner: str
    ) -> None:
        name = session_network(session_id)
        ipam: Any
        problem = "all of them are taken"
        for subnet in self._free_subnets(api, size):
            ipam = {"Driver": "default", "Config": [{"Subnet": subnet}]}
            try:
                api.create_network(
                    name,
                    driver="bridge",
                    options={BRIDGE_NAME: f"{BRIDGE_PREFIX}-{session_id[-11:]}"},
                    ipam=ipam,
                    check_duplicate=True,
                    labels={
                        LABEL_NETWORK: _OF_SESSION,
                        LABEL_AGENT: owner,
                        LABEL_SESSION: session_id,
                    },
                )
            except docker.errors.APIError as error:
                if "overlap" not in str(error.explanation).lower():
                    raise
                problem = str(error.explanation)  # somebody was faster
            else:
                return
        raise RuntimeFailure(
            f"there are no addresses left in {self._subnets} for the session's own"
            f" network: {problem} (DockerRuntime.cluster_subnets)"
        )

    def _free_subnets(self, api: docker.APIClient, size: int) -> Iterator[str]:
        """Yield subnets for so many containers that nobody uses, as far as is known."""
        bits = max(_LEAST_BITS, (size + 2).bit_length())
        if bits > self._subnets.max_prefixlen - self._subnets.prefixlen:
            return
        taken = [
            ipaddress.ip_network(config["Subnet"])
            for network in api.networks()
            for config in (network.get("IPAM") or {}).get("Config") or ()
            if config.get("Subnet")
        ]
        same = [n for n in taken if n.version == self._subnets.version]
        tries = 0
        for subnet in self._subnets.subnets(
            new_prefix=self._subnets.max_prefixlen - bits
        ):
            if any(subnet.overlaps(other) for other in same):
                continue
            yield str(subnet)
            tries += 1
            if tries == _TRIES:
                return


def _find(api: docker.APIClient, name: str) -> bool:
    return any(network["Name"] == name for network in api.networks(names=[name]))


def _has_containers(api: docker.APIClient, session_id: str) -> bool:
    labels = {"label": f"{LABEL_SESSION}={session_id}"}
    return bool(api.containers(all=True, filters=labels))
