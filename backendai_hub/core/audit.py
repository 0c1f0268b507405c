"""Acts: who did what to which object, and how it ended.

One row for every change, refusal and login, chained by a keyed hash so that what has
been written cannot be altered, removed or reordered without being seen. A *head* is
the number and the hash of the newest row.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import msgspec

LOGIN: Final = "login"
"""The action of coming in: with a password, at the console, by a keypair."""

LOGOUT: Final = "logout"
"""The action of leaving: logging out of a browser."""

GENESIS: Final = "0" * 64
"""What stands for the hash of the row before the first."""

_READING: Final = frozenset(
    {"read", "open", "serve", "check", "verify", "installs", "download"}
)


class Result(StrEnum):
    """How an act ended."""

    SUCCESS = "success"
    REFUSED = "refused"
    FAILED = "failed"


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation did to one object; the request it came with is added to it.

    ``before`` and ``after`` hold the fields that changed, as the API shows them.
    Secrets are never among them. ``actor``, ``actor_id``, ``address`` and
    ``credential`` are given only where they are not those of the request: at a login
    JupyterHub asks, but somebody else has come.
    """

    action: str
    object_kind: str
    object_name: str
    object_id: str | None = None
    domain_id: str | None = None
    owner_id: str | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    result: Result = Result.SUCCESS
    code: str = ""
    message: str = ""
    actor: str | None = None
    actor_id: str | None = None
    address: str | None = None
    credential: str | None = None


class Asking(msgspec.Struct, kw_only=True):
    """The request that acts come with.

    ``actor`` is who really asks, ``acted_as`` for whom if for somebody else.
    ``domain_id`` is the domain that sees what names no other; whose acts concern the
    whole site has none. ``written`` counts the rows this request has left.
    """

    request_id: str
    address: str
    elapsed: Callable[[], float]
    """Seconds since the request came in."""
    actor: str = ""
    actor_id: str | None = None
    acted_as: str = ""
    acted_as_id: str | None = None
    credential: str = ""
    domain_id: str | None = None
    written: int = 0


class Entry(msgspec.Struct, frozen=True):
    """One row as it is stored, but for its hash. The order of fields is for ever."""

    seq: int
    at: datetime
    request_id: str
    actor_id: str | None
    actor: str
    acted_as: str
    credential: str
    address: str
    action: str
    object_kind: str
    object_id: str | None
    object_name: str
    domain_id: str | None
    owner_id: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    result: str
    code: str
    message: str
    duration_ms: float


_AT: Final = Entry.__struct_fields__.index("at")
_DURATION: Final = Entry.__struct_fields__.index("duration_ms")


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The newest row's number and hash; ``at`` is when that was so."""

    seq: int
    hash: str
    at: str = ""


def is_change(action: str, method: str) -> bool:
    """Tell whether a request does something, rather than look at it."""
    reads = action.partition(":")[2] in _READING
    return method not in {"GET", "HEAD", "OPTIONS"} and not reads


def derive_audit_key(database_key: bytes) -> bytes:
    """Derive the key of the chain, so that no key has two uses."""
    return hmac.digest(database_key, b"audit chain", "sha256")


def canonical(entry: Entry) -> bytes:
    """Encode everything of a row but its hash, in one way whatever it was read from.

    A JSON list of the fields in their order; documents with their keys sorted.
    """
    fields = list(msgspec.structs.astuple(entry))
    fields[_AT] = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    fields[_DURATION] = f"{entry.duration_ms:.3f}"
    return _ENCODER.encode(fields).encode("ascii")


_ENCODER: Final = json.JSONEncoder(
    sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")
)


def chain(key: bytes, previous: str, entry: Entry) -> str:
    """Return the hash of a row that follows the one whose hash is *previous*."""
    return hmac.digest(
        key, previous.encode("ascii", "replace") + canonical(entry), "sha256"
    ).hex()


class Break(msgspec.Struct, frozen=True, kw_only=True):
    """Where the chain does not hold; ``seq`` is the number of the row."""

    seq: int
    kind: str
    detail: str


class ChainCheck:
    """Follows the rows in their order and finds what is not as it was written.

    *exported* are heads that were kept outside of the database, by number.
    """

    def __init__(self, key: bytes, exported: Mapping[int, Head]) -> None:
        self._key = key
        self._exported = exported
        self._last = Head(seq=0, hash=GENESIS)
        self._instead = ""
        """What the last row's hash ought to be, where it is another."""
        self.rows = 0
        self.breaks: list[Break] = []
        self.found = 0

    def follow(self, entry: Entry, stored: str) -> None:
        """Take the next row."""
        self.rows += 1
        if entry.seq != self._last.seq + 1:
            self._note_gap(self._last.seq + 1, entry.seq - 1)
            # What it followed is gone, so its own hash cannot be told good from bad.
            self._instead = ""
        else:
            self._check_link(entry, stored)
        kept = self._exported.get(entry.seq)
        if kept is not None and kept.hash != stored:
            self._note(
                entry.seq,
                "replaced",
                f"row {entry.seq} is another one than was here at {kept.at}",
            )
        self._last = Head(seq=entry.seq, hash=stored)

    def _check_link(self, entry: Entry, stored: str) -> None:
        made = chain(self._key, self._last.hash, entry)
        if made == stored:
            self._instead = ""
            return
        if self._instead and chain(self._key, self._instead, entry) == stored:
            self._instead = ""  # only the hash of the row before is wrong
            return
        self._note(
            entry.seq, "altered", f"row {entry.seq} is not what was written there"
        )
        self._instead = made

    def end(self, head: Head | None) -> list[Break]:
        """Compare where the rows end with *head* and with what was exported."""
        last = self._last
        newest = max(self._exported, default=0)
        if head is None:
            if last.seq or newest:
                self._note(last.seq, "head", "the head is missing")
        elif head.seq > last.seq:
            self._note_gap(last.seq + 1, head.seq)
        elif head.seq < last.seq or head.hash != last.hash:
            self._note(
                last.seq,
                "head",
                f"the head is that of row {head.seq}, but the last row is {last.seq}"
                if head.seq != last.seq
                else f"the head is another than that of row {last.seq}",
            )
        if newest > max(last.seq, 0 if head is None else head.seq):
            kept = self._exported[newest]
            self._note(
                last.seq + 1,
                "truncated",
                f"rows {last.seq + 1} to {newest} were here at {kept.at}",
            )
        return self.breaks

    def _note_gap(self, first: int, last: int) -> None:
        what = f"row {first} is" if first == last else f"rows {first} to {last} are"
        self._note(first, "missing", f"{what} missing")

    def _note(self, seq: int, kind: str, detail: str) -> None:
        """Keep the first thousand; the count goes on."""
        self.found += 1
        if len(self.breaks) < _MOST_BREAKS:
            self.breaks.append(Break(seq=seq, kind=kind, detail=detail))


_MOST_BREAKS: Final = 1000
