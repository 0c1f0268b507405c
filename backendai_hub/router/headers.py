"""Which headers pass the router, and what it says about where a request came from."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from aiohttp import hdrs
from aiohttp.web import BaseRequest
from multidict import CIMultiDict, MultiMapping

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: Headers about one connection, which say nothing about the next one.
HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)

#: What the router itself says about where a request came from.
_WRITTEN: Final = frozenset(
    {"x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto"}
)

#: Headers by which a proxy speaks for its client; a client may not speak so itself.
#: So are all others that begin with ``x-forwarded-``.
_FORWARDING: Final = frozenset(
    {"x-original-url", "x-real-ip", "x-rewrite-url", "x-scheme"}
)

_NEVER_PASSED: Final = HOP_BY_HOP | {"expect", "forwarded", "host"}
_LOOPBACK: Final = "127.0.0.1"  # a Unix socket has no address; its peer is here
_PORTS: Final = {"http": "80", "https": "443"}


class TrustedProxies:
    """The peers whose word about their own clients is believed."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks: tuple[Network, ...] = tuple(
            ipaddress.ip_network(network, strict=False) for network in networks
        )

    def __contains__(self, address: object) -> bool:
        if not self._networks or not isinstance(address, str):
            return False
        try:
            peer = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped:
            peer = peer.ipv4_mapped
        return any(peer in network for network in self._networks)


@dataclass(frozen=True, slots=True)
class HeaderRules:
    """How requests are dressed before they go on."""

    trusted: TrustedProxies
    x_forward: bool = True
    change_origin: bool = False
    custom: Mapping[str, str] = field(default_factory=dict)


def is_upgrade(request: BaseRequest) -> bool:
    """Tell whether the client asks for a WebSocket."""
    headers = request.headers
    upgrade = headers.get(hdrs.UPGRADE)
    return (
        upgrade is not None
        and upgrade.strip().lower() == "websocket"
        and "upgrade" in _named(headers)
    )


def request_headers(
    request: BaseRequest, rules: HeaderRules, *, host: str, upstream_host: str
) -> CIMultiDict[str]:
    """Return the headers to send on for *request*, which was addressed to *host*."""
    inbound = request.headers
    named = _named(inbound)
    trusted = (peer_of(request) or _LOOPBACK) in rules.trusted
    outbound: CIMultiDict[str] = CIMultiDict()
    for name, value in inbound.items():
        lower = name.lower()
        if lower in _NEVER_PASSED or lower in named:
            continue
        if _speaks_for_clients(lower) and (
            not trusted or (rules.x_forward and lower in _WRITTEN)
        ):
            continue
        outbound.add(name, sendable(value))
    outbound[hdrs.HOST] = upstream_host if rules.change_origin or not host else host
    if rules.x_forward:
        outbound.extend(_forwarding(request, host=host, trusted=trusted))
    for name, value in rules.custom.items():
        outbound[name] = value
    return outbound


def upgrade_headers(headers: CIMultiDict[str]) -> CIMultiDict[str]:
    """Add to *headers* what makes the request one for a WebSocket."""
    headers[hdrs.CONNECTION] = "Upgrade"
    headers[hdrs.UPGRADE] = "websocket"
    return headers


def response_headers(upstream: MultiMapping[str]) -> CIMultiDict[str]:
    """Return the headers to send back; repeated ones stay repeated."""
    named = _named(upstream)
    outbound: CIMultiDict[str] = CIMultiDict()
    for name, value in upstream.items():
        lower = name.lower()
        if lower not in HOP_BY_HOP and lower not in named:
            outbound.add(name, sendable(value))
    return outbound


def sendable(value: str) -> str:
    """Return *value* such that it can be written again.

    Header bytes that are not UTF-8 arrive as lone surrogates; they are read as
    Latin-1, as HTTP once meant them.
    """
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape").decode("latin-1")
    return value


def scheme_of(request: BaseRequest) -> str:
    """Return how the client reached us: ``http`` or ``https``."""
    transport = request.transport
    secure = transport is not None and transport.get_extra_info("sslcontext")
    return "https" if secure else "http"


def peer_of(request: BaseRequest) -> str:
    """Return the address of whoever holds the other end of the connection."""
    peer = request.transport and request.transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else ""


def _speaks_for_clients(lower: str) -> bool:
    return lower.startswith("x-forwarded-") or lower in _FORWARDING


def _forwarding(request: BaseRequest, *, host: str, trusted: bool) -> dict[str, str]:
    scheme = scheme_of(request)
    fresh = {
        "X-Forwarded-For": peer_of(request) or _LOOPBACK,
        "X-Forwarded-Proto": scheme,
        "X-Forwarded-Host": host,
        "X-Forwarded-Port": port_of(host) or _PORTS[scheme],
    }
    if not trusted:
        return fresh
    inbound = request.headers
    before = ", ".join(inbound.getall("X-Forwarded-For", ()))
    if before:
        fresh["X-Forwarded-For"] = sendable(f"{before}, {fresh['X-Forwarded-For']}")
    for name in ("X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port"):
        said = inbound.get(name)
        if said:
            fresh[name] = sendable(said)
    return fresh


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port, in lower case."""
    if host.startswith("["):
        return host.partition("]")[0].removeprefix("[").lower()
    return host.partition(":")[0].lower()


def port_of(host: str) -> str:
    """Return the port in a Host header, empty if it names none."""
    return host.rpartition("]")[2].partition(":")[2]


def _named(headers: MultiMapping[str]) -> frozenset[str] | set[str]:
    values = headers.getall(hdrs.CONNECTION, ())
    if not values:
        return frozenset()
    return {
        option.strip().lower() for value in values for option in value.split(",")
    } - {"host", "content-length"}
