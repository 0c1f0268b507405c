"""Names of the OCI distribution API: repositories, tags and digests.

They become parts of addresses, and come back from registries into tables and pages:
what does not follow the grammar goes neither way.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from backendai_hub.core.errors import InvalidRequestError

LONGEST_REPOSITORY: Final = 255
DIGEST: Final = r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}"

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY: Final = re.compile(rf"{_PART}(?:/{_PART})*", re.ASCII)
_TAG: Final = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}", re.ASCII)
_DIGEST: Final = re.compile(DIGEST, re.ASCII)


def is_repository(name: str) -> bool:
    """Tell whether *name* can be a repository's, such as ``team/lab``."""
    return len(name) <= LONGEST_REPOSITORY and _REPOSITORY.fullmatch(name) is not None


def is_tag(name: str) -> bool:
    """Tell whether *name* can be a tag's."""
    return _TAG.fullmatch(name) is not None


def is_digest(text: str) -> bool:
    """Tell whether *text* is a digest that can be checked here."""
    return _DIGEST.fullmatch(text) is not None


def check_repository(name: str) -> str:
    """Return *name* if a repository can have it."""
    if not is_repository(name):
        raise InvalidRequestError(
            f"{name[:80]!r} is not the name of a repository; write lower-case letters,"
            " digits and single . _ - between them, in parts divided by /"
        )
    return name


def check_digest(text: str) -> str:
    """Return *text* if it is a digest."""
    if not is_digest(text):
        raise InvalidRequestError(
            f"{text[:80]!r} is not a digest; it is sha256: and 64 hexadecimal digits"
        )
    return text


def check_reference(text: str) -> str:
    """Return *text* if it is a tag or a digest."""
    if not (is_tag(text) or is_digest(text)):
        raise InvalidRequestError(
            f"{text[:80]!r} is neither a tag nor a digest; tags are up to 128 letters,"
            " digits and . _ -"
        )
    return text


def matches_digest(content: bytes, digest: str) -> bool:
    """Tell whether *content* is what *digest* names."""
    algorithm, _, told = digest.partition(":")
    return hashlib.new(algorithm, content).hexdigest() == told


def digest_of(content: bytes) -> str:
    """Return the digest that names *content*."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
