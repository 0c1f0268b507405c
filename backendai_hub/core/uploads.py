"""Uploads: what the headers of the tus protocol, version 1.0, may say.

A file comes in parts; after each, the platform says how much of it is safe, and whoever
was cut off goes on from there.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from backendai_hub.core.errors import InvalidRequestError, MalformedRequestError

VERSION: Final = "1.0.0"
EXTENSIONS: Final = (
    "creation",
    "creation-with-upload",
    "termination",
    "expiration",
    "checksum",
)
CHUNK_TYPE: Final = "application/offset+octet-stream"
HIGHEST: Final = (1 << 63) - 1
"""No file is longer; JSON and the databases can still tell such a number."""

ChecksumKind = Literal["sha1", "sha256", "md5", "crc32"]
CHECKSUMS: Final[Mapping[ChecksumKind, int]] = MappingProxyType(
    {"sha1": 20, "sha256": 32, "md5": 16, "crc32": 4}
)
"""The checksums a chunk may come with, and how many bytes each has."""

CONFLICTS: Final = ("fail", "replace", "rename")
_KEY = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,64}")
_NUMBER = re.compile(r"[0-9]{1,19}")
_MOST_METADATA: Final = 16 << 10
_MOST_KEYS: Final = 32


class UnknownVersionError(InvalidRequestError):
    """The client speaks another version of the protocol."""

    code = "tus-version"
    title = "This version of the upload protocol is not spoken here"
    status = 412


class WrongTypeError(InvalidRequestError):
    """A chunk came as something else."""

    code = "media-type"
    title = "The content is of the wrong type"
    status = 415


class GoneError(InvalidRequestError):
    """It was here and is no more."""

    code = "gone"
    title = "This is over"
    status = 410


class Checksum(msgspec.Struct, frozen=True):
    """What a chunk has to amount to; ``digits`` are hexadecimal."""

    kind: ChecksumKind
    digits: str


class UploadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A file on its way; ``path`` is where it is to appear in its folder."""

    id: str
    folder_id: str
    user_id: str | None
    path: str
    length: int
    conflict: str
    state: str
    reserved_bytes: int
    reserved_files: int
    created_at: datetime
    expires_at: datetime


def check_version(given: str | None) -> None:
    """Refuse clients that speak no version of ours."""
    if given != VERSION:
        said = "no version" if given is None else f"version {given[:16]!r}"
        raise UnknownVersionError(
            f"Tus-Resumable: you named {said} of the tus protocol; use {VERSION}"
        )


def read_number(header: str, given: str | None) -> int:
    """Read a header that counts bytes."""
    if given is None or _NUMBER.fullmatch(given.strip()) is None:
        raise MalformedRequestError(
            f"{header}: {(given or '')[:32]!r} is no number of bytes"
        )
    number = int(given)
    if number > HIGHEST:
        raise InvalidRequestError(
            f"{header}: {number} is too much; the most is {HIGHEST} bytes"
        )
    return number


def read_metadata(given: str | None) -> dict[str, str]:
    """Read ``Upload-Metadata``: pairs of a key and a text in base64."""
    if not given or not given.strip():
        return {}
    if len(given) > _MOST_METADATA:
        raise InvalidRequestError(
            f"Upload-Metadata: {len(given)} characters; the most is {_MOST_METADATA}"
        )
    found: dict[str, str] = {}
    for pair in given.split(","):
        key, _, value = pair.strip().partition(" ")
        if _KEY.fullmatch(key) is None or key in found:
            raise MalformedRequestError(
                f"Upload-Metadata: {key[:64]!r} is no key, or there twice"
            )
        found[key] = _read_text(key, value.strip())
    if len(found) > _MOST_KEYS:
        raise InvalidRequestError(
            f"Upload-Metadata: {len(found)} keys; the most is {_MOST_KEYS}"
        )
    return found


def _read_text(key: str, value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise MalformedRequestError(
            f"Upload-Metadata: the value of {key!r} is not text in base64"
        ) from error


def choose_path(metadata: Mapping[str, str]) -> str:
    """Return where an upload is to appear: by ``path``, or in ``folder`` by its name.

    Clients of the protocol send ``filename`` or ``name`` by habit, and those that send
    whole folders ``relativePath`` as well.
    """
    whole = metadata.get("path")
    if whole:
        return whole
    relative = metadata.get("relativePath", "")
    name = metadata.get("filename") or metadata.get("name") or ""
    if relative in {"", "null"}:
        relative = name
    if not relative:
        raise InvalidRequestError(
            "Upload-Metadata: say where the file is to be, as 'path', or at least what"
            " it is called, as 'filename'"
        )
    folder = metadata.get("folder", "").strip("/")
    return f"{folder}/{relative}" if folder else relative


def choose_conflict(metadata: Mapping[str, str]) -> str:
    """Return what is to happen where there is a file of that name already."""
    chosen = metadata.get("conflict", CONFLICTS[0])
    if chosen not in CONFLICTS:
        raise InvalidRequestError(
            f"Upload-Metadata: {chosen[:32]!r} is no 'conflict'; use"
            f" {', '.join(CONFLICTS)}"
        )
    return chosen


def read_checksum(given: str | None) -> Checksum | None:
    """Read ``Upload-Checksum``: what is used, and its value in base64."""
    if given is None:
        return None
    name, _, value = given.strip().partition(" ")
    kind = _kind_of(name)
    try:
        digest = base64.b64decode(value.strip(), validate=True)
    except binascii.Error as error:
        raise MalformedRequestError(
            "Upload-Checksum: its value is not in base64"
        ) from error
    if len(digest) != CHECKSUMS[kind]:
        raise MalformedRequestError(
            f"Upload-Checksum: a {kind} has {CHECKSUMS[kind]} bytes, not {len(digest)}"
        )
    return Checksum(kind, digest.hex())


def _kind_of(name: str) -> ChecksumKind:
    for kind in CHECKSUMS:
        if name == kind:
            return kind
    raise MalformedRequestError(
        f"Upload-Checksum: {name[:16]!r} is not known here; use {', '.join(CHECKSUMS)}"
    )
