"""Free ports on this machine."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from backendai_hub.core.errors import HubError
from backendai_hub.launcher.state import State

FIRST_PUBLIC_PORT: Final = 8000
INNER_PORTS: Final = range(10_100, 32_700)
"""Below what Linux hands to outgoing connections, so that a remembered port is not
taken by chance while the platform is down."""

_OWNERS: Final = {
    "proxy_api": "router",
    "gateway": "router",
    "hub": "hub",
    "service": "service",
    "agents": "service",
}


class PortTakenError(HubError):
    """The port that was asked for belongs to another program."""

    code = "port-taken"
    title = "The port is in use"


def is_free(host: str, port: int) -> bool:
    """Tell whether a server could listen on *port* of *host* now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES, errno.EPERM}:
                return False
            raise
    return True


def choose_ports(
    state: State,
    *,
    host: str,
    wanted: int | None,
    running: Iterable[str],
    free: Callable[[str, int], bool] = is_free,
) -> State:
    """Return *state* with a usable port for everything.

    Ports chosen before are kept as long as their process runs or nobody else took
    them. The public port is never changed silently: people have its address.
    Raises :class:`PortTakenError`.
    """
    alive = set(running)
    chosen = {"public": _public_port(state, host, wanted, alive, free)}
    for name, owner in _OWNERS.items():
        port = getattr(state, name)
        if port == 0 or (owner not in alive and not free("127.0.0.1", port)):
            port = _pick_inner(chosen.values(), free)
        chosen[name] = port
    return msgspec.structs.replace(state, **chosen)


def _public_port(
    state: State,
    host: str,
    wanted: int | None,
    alive: set[str],
    free: Callable[[str, int], bool],
) -> int:
    port = wanted or state.public
    if port:
        if (port == state.public and "router" in alive) or free(host, port):
            return port
        raise PortTakenError(
            f"port {port} of {host} is used by another program, or may not be used;"
            " stop that program or choose another port with --port"
        )
    for candidate in range(FIRST_PUBLIC_PORT, FIRST_PUBLIC_PORT + 100):
        if free(host, candidate):
            return candidate
    raise PortTakenError(f"no port of {host} is free; choose one with --port")


def _pick_inner(taken: Iterable[int], free: Callable[[str, int], bool]) -> int:
    used = set(taken)
    for _ in range(1000):
        port = random.choice(INNER_PORTS)  # noqa: S311 - not a secret
        if port not in used and free("127.0.0.1", port):
            return port
    raise PortTakenError("no inner port of 127.0.0.1 is free")
