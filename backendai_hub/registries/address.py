"""Where a registry answers, and which addresses are the same place."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from backendai_hub.core.errors import InvalidRequestError

_PORTS: Final = {"http": 80, "https": 443}
# People write the name that references have; the API answers elsewhere.
_ANSWERS_AT: Final = {
    "docker.io": "registry-1.docker.io",
    "index.docker.io": "registry-1.docker.io",
}


class Origin(msgspec.Struct, frozen=True):
    """Scheme, host and port: what credentials are given to."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


def find_origin(url: str) -> Origin | None:
    """Return whom *url* asks; None if it is not a plain http or https address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or _has_odd_letters(url):
        return None
    if "@" in parts.netloc:
        return None
    return Origin(parts.scheme, parts.hostname, port or _PORTS[parts.scheme])


def is_off_limits(host: str) -> bool:
    """Tell whether *host* is an address at which no registry is.

    Link-local addresses are those at which clouds tell machines their secrets.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    plain = getattr(address, "ipv4_mapped", None) or address
    return bool(plain.is_link_local or plain.is_multicast or plain.is_unspecified)


def read_address(url: str) -> Origin:
    """Read the address of a registry, as administrators write it."""
    origin = find_origin(url)
    if origin is None or not _is_bare(urlsplit(url)):
        # The address itself is not shown: a password may be written in it.
        raise InvalidRequestError(
            "a registry's address is https://host or https://host:port, without a"
            " path; user name and password are fields of their own"
        )
    if is_off_limits(origin.host):
        raise InvalidRequestError(
            f"a registry's address is not {origin.host}: link-local, multicast and"
            " unspecified addresses are never asked"
        )
    host = _ANSWERS_AT.get(origin.host, origin.host)
    return Origin(origin.scheme, host, origin.port)


def _is_bare(parts: SplitResult) -> bool:
    return parts.path in {"", "/"} and not parts.query and not parts.fragment


def _has_odd_letters(url: str) -> bool:
    return any(letter <= " " or letter > "~" or letter == "\\" for letter in url)
