"""What a registry asks for when it answers 401, and whom it may send us to.

A *challenge* is one offer of its ``WWW-Authenticate`` headers: ``Basic``, or
``Bearer`` with the *realm* that gives out tokens for a *service* and *scopes*.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from backendai_hub.registries.address import Origin, find_origin

_LONGEST: Final = 8192
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - the grammar of RFC 9110
_NEXT: Final = re.compile(
    rf"[\s,]*(?:(?P<name>{_TOKEN})\s*=\s*"
    r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s,"]*))'
    rf"|(?P<scheme>{_TOKEN})(?=[\s,]|$))"
)


class Challenge(msgspec.Struct, frozen=True):
    """One way in that the registry offers."""

    scheme: str
    realm: str = ""
    service: str = ""
    scopes: tuple[str, ...] = ()


def read_challenges(headers: Iterable[str]) -> list[Challenge]:
    """Read every challenge of these ``WWW-Authenticate`` headers."""
    return [
        Challenge(
            scheme=scheme,
            realm=given.get("realm", ""),
            service=given.get("service", ""),
            scopes=tuple(given.get("scope", "").split()),
        )
        for header in headers
        for scheme, given in _split(header[:_LONGEST])
    ]


def choose_challenge(challenges: Iterable[Challenge]) -> Challenge | None:
    """Choose the one to answer: tokens before passwords, None if neither is known."""
    offered = {challenge.scheme: challenge for challenge in challenges}
    bearer = offered.get("bearer")
    return bearer if bearer and bearer.realm else offered.get("basic")


def is_safe_realm(realm: str, registry: Origin) -> bool:
    """Tell whether the password may be sent to *realm*.

    Over https, or over plain http to the host that the registry itself is on if it
    is spoken to over plain http as well: nobody learns more than before.
    """
    origin = find_origin(realm)
    if origin is None:
        return False
    if origin.scheme == "https":
        return True
    return registry.scheme == "http" and origin.host == registry.host


def _split(header: str) -> Iterator[tuple[str, dict[str, str]]]:
    scheme, given = "", dict[str, str]()
    at = 0
    while found := _NEXT.match(header, at):
        at = found.end()
        if found["scheme"]:
            if scheme:
                yield scheme, given
            scheme, given = found["scheme"].lower(), {}
        else:
            text = found["bare"]
            if text is None:
                text = re.sub(r"\\(.)", r"\1", found["quoted"])
            given.setdefault(found["name"].lower(), text)
    if scheme:
        yield scheme, given
