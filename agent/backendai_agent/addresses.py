"""Addresses: read from settings, and found out where they were left open."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Address:
    """A host (name or number) and a port; port 0 means any."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str, *, port: int | None = None) -> Address:
    """Read ``host:port``, ``[v6]:port``, or a host alone if *port* is given."""
    host, colon, number = text.strip().rpartition(":")
    if not colon or text.endswith("]") or (":" in host and not host.startswith("[")):
        host, number = text.strip(), "" if port is None else str(port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (number.isascii() and number.isdigit()):
        raise ValueError(f"{text!r} is not an address; write host:port")
    if int(number) > 65535:
        raise ValueError(f"{text!r}: ports end at 65535")
    return Address(host, int(number))


def find_port(host: str, port_file: Path) -> int:
    """Return the port used last time if it is free, so that routes stay right."""
    try:
        port = int(port_file.read_text("ascii"))
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except (OSError, ValueError, OverflowError):
        return 0
    return port


def address_towards(listen: Address, host: str, port: int) -> Address:
    """Return *listen*, or where that is every address, the one that faces *host*.

    No packet is sent: the kernel only says which way it would go.
    """
    try:
        if not ipaddress.ip_address(listen.host).is_unspecified:
            return listen
    except ValueError:
        return listen
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(
            host, port, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(target)
            return Address(str(probe.getsockname()[0]), listen.port)
    except OSError:
        return Address("127.0.0.1", listen.port)


def is_address(text: str) -> bool:
    """Tell whether *text* is an IP address, and no name."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
