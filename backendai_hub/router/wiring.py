"""From the settings to the values that the router's parts are made with."""

from __future__ import annotations

import os
import socket
import ssl
from pathlib import Path
from typing import Final

from backendai_hub.core.configuration import ConfigurationError
from backendai_hub.router.gateway import Credentials
from backendai_hub.router.listeners import Endpoint, TlsFiles
from backendai_hub.router.requests import Limits
from backendai_hub.router.settings import RouterSettings
from backendai_hub.router.upstreams import UpstreamSettings

_TLS_VERSIONS: Final = {
    "": ssl.TLSVersion.TLSv1_2,
    "TLSv1_2": ssl.TLSVersion.TLSv1_2,
    "TLSv1_3": ssl.TLSVersion.TLSv1_3,
}


def parse_address(text: str) -> Endpoint:
    """Read ``address:port``."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigurationError(f"{text!r} is not an address and a port")
    return Endpoint(host.removeprefix("[").removesuffix("]"), int(port))


def public_endpoint(settings: RouterSettings) -> Endpoint:
    """Return where browsers come in."""
    if settings.socket:
        return Endpoint(socket=settings.socket)
    return Endpoint(_address(settings.ip), settings.port)


def api_endpoint(settings: RouterSettings) -> Endpoint:
    """Return where the REST API is."""
    if settings.api_socket:
        return Endpoint(socket=settings.api_socket)
    return Endpoint(_address(settings.api_ip), settings.api_port or settings.port + 1)


def gateway_addresses(endpoint: Endpoint) -> frozenset[tuple[str, int]]:
    """Return the targets by which a public route can mean our own gateway."""
    hosts = {endpoint.ip, "127.0.0.1", "localhost"}
    return frozenset((host, endpoint.port) for host in hosts)


def limits(settings: RouterSettings) -> Limits:
    """Return how large requests may be."""
    return Limits(
        line=settings.max_line_size,
        field=settings.max_field_size,
        fields=settings.max_headers,
        head=settings.max_head_size,
        body=settings.max_body_size,
    )


def upstream_settings(settings: RouterSettings) -> UpstreamSettings:
    """Return how targets are talked to."""
    files = TlsFiles(
        settings.client_ssl_key,
        settings.client_ssl_cert,
        settings.client_ssl_ca,
        minimum=_tls_version(settings),
        ciphers=settings.ssl_ciphers,
    )
    context = files.client_context()
    if settings.insecure:
        if context is not None:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return UpstreamSettings(
            read_timeout=_seconds(settings.proxy_timeout), tls=context or False
        )
    return UpstreamSettings(
        read_timeout=_seconds(settings.proxy_timeout), tls=context or True
    )


def body_timeout(settings: RouterSettings) -> float | None:
    """Return how long a client may stall while it sends a body."""
    return _seconds(settings.timeout)


def public_tls(settings: RouterSettings) -> ssl.SSLContext | None:
    """Return the context of the public port, if it speaks TLS."""
    return TlsFiles(
        settings.ssl_key,
        settings.ssl_cert,
        settings.ssl_ca,
        request_certificate=settings.ssl_request_cert,
        reject_unauthorized=settings.ssl_reject_unauthorized,
        passphrase=os.environ.get("CONFIGPROXY_SSL_KEY_PASSPHRASE"),
        minimum=_tls_version(settings),
        ciphers=settings.ssl_ciphers,
        dh_parameters=settings.ssl_dhparam,
    ).server_context()


def api_tls(settings: RouterSettings) -> ssl.SSLContext | None:
    """Return the context of the REST API, if it speaks TLS."""
    return TlsFiles(
        settings.api_ssl_key,
        settings.api_ssl_cert,
        settings.api_ssl_ca,
        request_certificate=settings.api_ssl_request_cert,
        reject_unauthorized=settings.api_ssl_reject_unauthorized,
        passphrase=os.environ.get("CONFIGPROXY_API_SSL_KEY_PASSPHRASE"),
        minimum=_tls_version(settings),
        ciphers=settings.ssl_ciphers,
        dh_parameters=settings.ssl_dhparam,
    ).server_context()


def credentials(settings: RouterSettings) -> Credentials | None:
    """Return what we show to agents; None if it is not configured."""
    given = (settings.tls_ca, settings.tls_cert, settings.tls_key)
    if not any(given):
        return None
    if not all(given):
        raise ConfigurationError("tls-ca, tls-cert and tls-key are needed together")
    made = Credentials(*map(Path, given))
    made.context()  # a file that cannot be read is told of now, not at a request
    return made


def custom_headers(settings: RouterSettings) -> dict[str, str]:
    """Return the headers that every request gets."""
    headers = {}
    for text in settings.custom_headers:
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            raise ConfigurationError(f"custom-header {text!r} has no colon")
        headers[name.strip()] = value.strip()
    return headers


def _address(ip: str) -> str:
    if ip == "*":
        return ""
    if ip == "localhost":
        # One address, not two: an IPv6 loopback may be missing in a container.
        return socket.gethostbyname("localhost")
    return ip


def _seconds(milliseconds: int) -> float | None:
    return milliseconds / 1000 if milliseconds else None


def _tls_version(settings: RouterSettings) -> ssl.TLSVersion:
    try:
        return _TLS_VERSIONS[settings.ssl_protocol]
    except KeyError:
        raise ConfigurationError(
            f"ssl-protocol {settings.ssl_protocol!r} is not one of TLSv1_2, TLSv1_3"
        ) from None
