"""What the container engine is asked for, as a pure function of the specification.

Nothing here can express a privileged container, a device that was not allocated or
a path that is not the agent's own: there is no way to pass such a wish through, so
there is nothing to filter. Of the node's namespaces only that of its network can be
had, where both the resource group's administrator and the node's operator say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from backendai_agent.addresses import is_address
from backendai_agent.folders import INSIDE, ContainerFolder
from backendai_agent.jobs import find_main_program
from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure
from backendai_agent.runtimes.identities import check_identity
from backendai_hub.api.agents import ContainerSpec, Identity

HOME: Final = "/home/work"
PORT: Final = 8888
NAME_PREFIX: Final = "backendai-"
SESSION_NETWORK: Final = "backendai-session-"
USER_ID: Final = 1000
"""Who a session is in the profiles that are not root."""

LABEL_CONTAINER: Final = "ai.backend.container"
LABEL_SESSION: Final = "ai.backend.session"
LABEL_AGENT: Final = "ai.backend.agent"
LABEL_OWNER: Final = "ai.backend.owner"

CAPABILITIES: Final = (
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
)
"""Enough to install packages, add users and change owners; not enough to reach out."""

ONLY_IN_OWN_NETWORK: Final = frozenset({"NET_BIND_SERVICE"})
"""On the node's own network it would let a session take a web server's place there."""

HOST_NETWORK: Final = "host"
"""What the engine calls the node's own network."""

PROCESSES: Final = 2048
OPEN_FILES: Final = 1 << 16
QUOTA_PERIOD: Final = 100_000
SMALLEST_QUOTA: Final = 1000
DEFAULT_SHARED_MEMORY: Final = 64 << 20
NO_DEVICES: Final = {"NVIDIA_VISIBLE_DEVICES": "void"}
"""Images ask for ``all`` in their own environment; nobody gets what is not theirs."""

KEEP_OWNER: Final = {"TAR_OPTIONS": "--no-same-owner"}
"""Files in folders are always the session's own; root's tar would insist on others."""

NVIDIA: Final = "nvidia.com/gpu="


@dataclass(frozen=True)
class Profile:
    """What the processes of a container may do inside it."""

    user: str
    capabilities: tuple[str, ...] = CAPABILITIES
    no_new_privileges: bool = True
    read_only: bool = False
    groups: tuple[int, ...] = ()


PROFILES: Final[Mapping[str, Profile]] = {
    "full": Profile(user="0:0"),
    "sudo": Profile(user=f"{USER_ID}:{USER_ID}", no_new_privileges=False),
    "locked": Profile(user=f"{USER_ID}:{USER_ID}", capabilities=(), read_only=True),
}


@dataclass(frozen=True)
class Surface:
    """What is the same for every container of this node.

    ``nvidia`` tells whether the engine has NVIDIA's runtime, ``cdi`` whether it
    understands device names such as ``vendor.com/gpu=0``, ``host_network`` whether
    sessions may be on the node's own network.
    """

    agent_id: str
    network: str
    command: Sequence[str]
    open_files: int = OPEN_FILES
    nvidia: bool = False
    cdi: bool = False
    host_network: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)


def container_name(container_id: str) -> str:
    """Return the engine's name for our container: what makes starting idempotent."""
    return NAME_PREFIX + container_id


def find_profile(name: str) -> Profile:
    """Return the profile *name*; raises RuntimeFailure if there is none."""
    try:
        return PROFILES[name]
    except KeyError:
        raise RuntimeFailure(
            f"there is no isolation profile {name!r}; there are {', '.join(PROFILES)}"
        ) from None


def choose_profile(spec: ContainerSpec) -> Profile:
    """Return what *spec*'s processes may do; raises RuntimeFailure if it is refused.

    Who is a given user of the node has no power at all, unless sudo is to work; then
    what sudo may grant stays within what root in a container may do anyway.
    """
    profile = find_profile(spec.profile)
    check_identity(spec.identity)
    if spec.sudo and profile.read_only:
        raise RuntimeFailure(f"there is no sudo in the profile {spec.profile!r}")
    if spec.identity is not None:
        profile = _as_identity(profile, spec.identity)
    if spec.sudo:
        profile = replace(profile, capabilities=CAPABILITIES, no_new_privileges=False)
    if spec.host_network:
        kept = [c for c in profile.capabilities if c not in ONLY_IN_OWN_NETWORK]
        profile = replace(profile, capabilities=tuple(kept))
    return profile


def _as_identity(profile: Profile, identity: Identity) -> Profile:
    uid, gid = profile.user.split(":")
    if identity.uid is not None:
        uid = gid = str(identity.uid)
        profile = replace(profile, capabilities=(), no_new_privileges=True)
    if identity.gid is not None:
        gid = str(identity.gid)
    return replace(profile, user=f"{uid}:{gid}", groups=tuple(identity.gids))


def choose_network(spec: ContainerSpec, surface: Surface) -> str:
    """Return the engine's name of the network that *spec* is on."""
    if has_own_network(spec):
        return session_network(spec.session_id)
    if not spec.host_network:
        return surface.network
    if not surface.host_network:
        raise RuntimeFailure(
            "the session's resource group asks for the node's own network, which this"
            " node's operator has not allowed: on it, nothing closes the node's"
            " services, the cloud's metadata and other sessions' ports to a session"
            " (DockerRuntime.allow_host_network)"
        )
    return HOST_NETWORK


def container_config(
    spec: ContainerSpec,
    patch: ContainerPatch,
    *,
    folder: ContainerFolder,
    surface: Surface,
) -> dict[str, Any]:
    """Build the body of the engine's ``POST /containers/create``.

    Holds no secret of *spec*: its environment and arguments travel by file.
    """
    profile = choose_profile(spec)
    environ = {
        **NO_DEVICES,
        **(KEEP_OWNER if patch.folders else {}),
        **surface.environ,
        **patch.environ,
        "HOME": HOME,
        "BACKENDAI_RUN_DIR": INSIDE,
    }
    return {
        "Image": spec.image,
        "Entrypoint": find_main_program(surface.command, spec, INSIDE),
        "Cmd": [],
        "User": profile.user,
        "WorkingDir": HOME,
        "Hostname": spec.cluster.host,
        "Env": [f"{name}={value}" for name, value in sorted(environ.items())],
        "Labels": {
            LABEL_CONTAINER: spec.id,
            LABEL_SESSION: spec.session_id,
            LABEL_AGENT: surface.agent_id,
            LABEL_OWNER: spec.owner,
        },
        "Healthcheck": {"Test": ["NONE"]},
        "StopSignal": "SIGTERM",
        "OpenStdin": False,
        "Tty": False,
        "HostConfig": _host_config(
            spec, patch, folder=folder, surface=surface, profile=profile
        ),
        **_networking(spec, surface),
    }


def _networking(spec: ContainerSpec, surface: Surface) -> dict[str, Any]:
    """Give the container its name on its session's own network."""
    if not has_own_network(spec):
        return {}
    endpoint = {"Aliases": [spec.cluster.host]}
    endpoints = {choose_network(spec, surface): endpoint}
    return {"NetworkingConfig": {"EndpointsConfig": endpoints}}


def has_own_network(spec: ContainerSpec) -> bool:
    """Tell whether the session has a network of its own, on this node."""
    return spec.cluster.is_together and not spec.host_network


def session_network(session_id: str) -> str:
    """Return the engine's name for a session's own network."""
    return SESSION_NETWORK + session_id


def _hosts(spec: ContainerSpec) -> list[str]:
    """List where the session's other containers are, on their nodes' own networks."""
    place = spec.cluster
    if not spec.host_network or place.size == 1:
        return []
    found = {name: place.addresses.get(name, "") for name in place.hosts}
    found |= dict.fromkeys(place.beside, "127.0.0.1")
    return [f"{name}:{where}" for name, where in found.items() if is_address(where)]


def _host_config(
    spec: ContainerSpec,
    patch: ContainerPatch,
    *,
    folder: ContainerFolder,
    surface: Surface,
    profile: Profile,
) -> dict[str, Any]:
    nodes, requests = _devices(patch, surface)
    config: dict[str, Any] = {
        "NetworkMode": choose_network(spec, surface),
        "Mounts": _mounts(patch, folder),
        "Init": True,
        "Privileged": False,
        "CapDrop": ["ALL"],
        "CapAdd": list(profile.capabilities),
        "GroupAdd": [str(group) for group in profile.groups],
        "SecurityOpt": ["no-new-privileges"] if profile.no_new_privileges else [],
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "ReadonlyRootfs": profile.read_only,
        "PidsLimit": PROCESSES,
        "Ulimits": [
            {
                "Name": "nofile",
                "Soft": min(OPEN_FILES, surface.open_files),
                "Hard": surface.open_files,
            },
            {"Name": "core", "Soft": 0, "Hard": 0},
        ],
        "RestartPolicy": {"Name": "no"},
        "AutoRemove": False,
        "LogConfig": {
            "Type": "json-file",
            "Config": {"max-size": "10m", "max-file": "3"},
        },
        "Devices": nodes,
        "DeviceRequests": requests,
        **_limits(spec),
    }
    if hosts := _hosts(spec):
        config["ExtraHosts"] = hosts
    if profile.read_only:
        config["Tmpfs"] = dict.fromkeys(("/run", "/tmp"), "rw,nosuid,nodev,size=64m")  # noqa: S108 - inside
    return config


def _limits(spec: ContainerSpec) -> dict[str, Any]:
    """Return the limits of *spec*; what it does not name is not limited.

    Swap counts as memory, so that a session cannot slow its neighbours by swapping.
    """
    shared = spec.shmem or DEFAULT_SHARED_MEMORY
    limits: dict[str, Any] = {}
    if spec.cpu:
        limits["CpuPeriod"] = QUOTA_PERIOD
        quota = spec.cpu * QUOTA_PERIOD // 1000
        limits["CpuQuota"] = max(SMALLEST_QUOTA, quota)
    if spec.memory:
        limits["Memory"] = limits["MemorySwap"] = spec.memory
        shared = min(shared, spec.memory)
    limits["ShmSize"] = shared
    return limits


def _mounts(patch: ContainerPatch, folder: ContainerFolder) -> list[dict[str, Any]]:
    """Bind the container's own folders, what accelerators bring, and virtual folders.

    Sources must exist: the engine refuses to start the container otherwise. It is not
    told again that a mount of the agent's is read-only: saying so would make it take
    away from the mount what else the agent has set on it.
    """
    wanted = [
        (str(folder.run), INSIDE, False),
        (str(folder.work), HOME, False),
        *patch.mounts,
        *((shown.source, shown.target, shown.read_only) for shown in patch.folders),
    ]
    return [
        {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}
        for source, target, read_only in wanted
    ]


def _devices(
    patch: ContainerPatch, surface: Surface
) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Split the allocated devices into device nodes and requests to the engine."""
    nodes, named = [], []
    for device in patch.devices:
        if device.startswith("/dev/"):
            nodes.append(
                {
                    "PathOnHost": device,
                    "PathInContainer": device,
                    "CgroupPermissions": "rw",
                }
            )
        else:
            named.append(device)
    return nodes, _requests(named, surface)


def _requests(named: Sequence[str], surface: Surface) -> list[dict[str, Any]]:
    if not named:
        return []
    if surface.nvidia and all(name.startswith(NVIDIA) for name in named):
        return [
            {
                "Driver": "nvidia",
                "DeviceIDs": [name.removeprefix(NVIDIA) for name in named],
                "Capabilities": [["gpu", "compute", "utility"]],
            }
        ]
    if surface.cdi:
        return [{"Driver": "cdi", "DeviceIDs": list(named)}]
    raise RuntimeFailure(
        f"this node's container engine cannot hand over {', '.join(named)}: it needs"
        " Docker 25 or newer with a CDI specification, or NVIDIA's container toolkit"
    )
