"""What a session's main program is told: environment, arguments, files and script.

The program waits for ``activation.json`` in its ``run`` folder, reads it, removes
it and becomes the single-user server. Secrets therefore never appear in the
runtime's own records, and the missing file proves that the program began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from backendai_agent.folders import INSIDE, ContainerFolder, write_durably
from backendai_agent.jobs import describe_job
from backendai_agent.runtimes.base import ContainerPatch
from backendai_hub.api.agents import ContainerSpec
from backendai_hub.core.clusters import describe_replicas
from backendai_hub.core.dotfiles import BOOTSTRAP_SECONDS

THREADS: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "RAYON_NUM_THREADS",
    "GOMAXPROCS",
)
"""Libraries that would start one thread for each core of the whole node."""


QUIET_KERNELS: Final = ("--KernelManager.transport=ipc",)
"""Kernels on sockets of their own folder instead of ports of the node's loopback.

Whoever shares the node's network could otherwise listen to what they print.
"""


@dataclass(frozen=True)
class Surroundings:
    """How a container sees its node: its run folder, its listener, the platform.

    ``base`` is the path the platform lives under, with slashes at both ends.
    """

    base: str = "/"
    run: str = INSIDE
    listen: str | None = None

    @property
    def socket_url(self) -> str:
        """The platform's address inside the container, without a path."""
        return f"http+unix://{quote(f'{self.run}/hub.sock', safe='')}"

    def through_socket(self, url: str) -> str:
        """Rewrite the address *url* of the platform to go through the socket."""
        parts = urlsplit(url)
        query = f"?{parts.query}" if parts.query else ""
        return f"{self.socket_url}{parts.path}{query}"


def build_environ(
    spec: ContainerSpec, patch: ContainerPatch, around: Surroundings
) -> dict[str, str]:
    """Build the whole environment: defaults, the user's, then ours.

    The user's variables win over thread counts; nothing wins over what identifies
    the session or leads to the platform.
    """
    cores = str(max(1, -(-spec.cpu // 1000)))
    environ = dict.fromkeys(THREADS, cores) if spec.cpu else {}
    environ |= spec.environ
    environ |= patch.environ
    environ |= _identify(spec)
    if spec.sudo:
        environ["SUDO_SESSION_ENABLED"] = "1"
    else:  # whoever says so themselves is not believed
        environ.pop("SUDO_SESSION_ENABLED", None)
    environ |= {
        "BACKENDAI_LISTEN": around.listen or f"unix:{around.run}/lab.sock",
        "BACKENDAI_API_URL": (
            f"{around.socket_url}{around.base}services/backendai/api/"
        ),
        "JUPYTERHUB_API_URL": f"{around.socket_url}{around.base}hub/api",
    }
    activity = spec.environ.get("JUPYTERHUB_ACTIVITY_URL")
    if activity:
        environ["JUPYTERHUB_ACTIVITY_URL"] = around.through_socket(activity)
    return environ


def _identify(spec: ContainerSpec) -> dict[str, str]:
    place = spec.cluster
    return {
        "BACKENDAI_SESSION_ID": spec.session_id,
        "BACKENDAI_SESSION_NAME": spec.session_name,
        "BACKENDAI_KERNEL_ID": spec.id,
        "BACKENDAI_KERNEL_IMAGE": spec.image,
        "BACKENDAI_CLUSTER_SIZE": str(place.size),
        "BACKENDAI_CLUSTER_REPLICAS": describe_replicas(place.size),
        "BACKENDAI_CLUSTER_HOSTS": ",".join(place.hosts),
        "BACKENDAI_CLUSTER_HOST": place.host,
        "BACKENDAI_CLUSTER_ROLE": place.role,
        "BACKENDAI_CLUSTER_IDX": str(place.idx),
        "BACKENDAI_CLUSTER_LOCAL_RANK": str(place.rank),
        "BACKENDAI_CLUSTER_MODE": place.mode,
        "BACKENDAI_USER_NAME": spec.owner,
    }


def build_activation(
    spec: ContainerSpec,
    patch: ContainerPatch,
    around: Surroundings,
    *,
    lease_until: float = 0.0,
) -> dict[str, Any]:
    """Build the content of ``activation.json``."""
    job = {"job": describe_job(spec, lease_until)} if spec.is_job else {}
    return {
        **job,
        "environ": build_environ(spec, patch, around),
        "argv": [*spec.argv, *(QUIET_KERNELS if spec.host_network else ())],
        "files": msgspec.to_builtins(spec.files),
        "bootstrap": spec.bootstrap,
        "bootstrap_seconds": BOOTSTRAP_SECONDS,
    }


def write_activation(folder: ContainerFolder, activation: dict[str, Any]) -> None:
    """Put *activation* where the container finds it, readable by it alone."""
    write_durably(folder.activation, msgspec.json.encode(activation))
