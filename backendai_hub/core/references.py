"""References of images: what may stand where somebody names one.

A reference is ``[host[:port]/]path[:tag][@digest]``, as registries and container
engines know it; the name of a prepared environment is one without the optional
parts. What is not a reference never reaches a runtime: it could be taken for an
option, or for a way out of a path.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from backendai_hub.core.errors import InvalidRequestError

LONGEST: Final = 512
DOCKER_HUB: Final = "docker.io"
"""The registry of references that name none."""

_HUB_HOSTS: Final = frozenset({DOCKER_HUB, f"index.{DOCKER_HUB}"})

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]{{2,39}}\])(?::[0-9]{{1,5}})?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE: Final = re.compile(
    rf"(?:(?P<host>{_HOST})/)?(?P<path>{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}))?",
    re.ASCII,
)


def is_reference(text: str) -> bool:
    """Tell whether *text* is a well-formed reference of an image."""
    return len(text) <= LONGEST and _REFERENCE.fullmatch(text) is not None


def check_reference(text: str) -> str:
    """Return *text* if it is a reference; raises InvalidRequestError otherwise."""
    if not is_reference(text):
        raise InvalidRequestError(
            f"{text[:80]!r} is not a reference of an image; write it as"
            " registry/name:tag or registry/name@sha256:…"
        )
    return text


def find_registry(reference: str) -> str:
    """Return the host, and port if any, of the registry that has *reference*."""
    first, slash, _ = reference.partition("/")
    is_host = first == "localhost" or not set(".:[").isdisjoint(first)
    if not slash or not is_host or first in _HUB_HOSTS:
        return DOCKER_HUB
    return first


def host_of(url: str) -> str:
    """Return how references name the registry that answers at *url*.

    The usual port of https is left out where the rest still looks like a host to
    engines, which take a word without dot and port for a folder of the usual registry.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return ""
    if host == f"registry-1.{DOCKER_HUB}" or host in _HUB_HOSTS:
        return DOCKER_HUB
    host = f"[{host}]" if ":" in host else host
    is_clear = host == "localhost" or not set(".[").isdisjoint(host)
    if is_clear and (port is None or (port == 443 and parts.scheme == "https")):
        return host
    return f"{host}:{port or (80 if parts.scheme == 'http' else 443)}"


def shorten(reference: str) -> str:
    """Return *reference* as engines list it: no default registry, digest over tag."""
    name, at, digest = reference.partition("@")
    if at:
        folder, slash, last = name.rpartition("/")
        name = f"{folder}{slash}{last.partition(':')[0]}"
    if find_registry(reference) == DOCKER_HUB:
        first, _, rest = name.partition("/")
        name = rest if first in _HUB_HOSTS else name
        name = name.removeprefix("library/")
    return f"{name}{at}{digest}"
