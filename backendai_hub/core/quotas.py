"""Limits: which ones a request would break, said in words.

The arithmetic is Backend.AI's: a limit is broken if ``used + asked > limit``, for any
slot, in any of the scopes a session counts in (its domain, project, user and keypair).
Use is what placed sessions hold, from their placement until they have ended; sessions
that wait count nowhere. Sessions are counted like a slot of their own, so that one
mechanism admits, explains and frees both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from backendai_hub.core.slots import MILLI, ResourceSlots, describe_amount

SESSIONS: Final = "sessions"
"""Counts placed sessions, in thousandths like every count."""
SYSTEM_SESSIONS: Final = "sftp-sessions"
"""Counts placed system sessions, which hold no quota but their own."""
COUNTERS: Final = frozenset({SESSIONS, SYSTEM_SESSIONS})


class ScopeKind(StrEnum):
    """Whose use a ledger row counts. The order is the order of locking."""

    DOMAIN = "domain"
    PROJECT = "project"
    USER = "user"
    KEYPAIR = "keypair"
    DEVICE = "device"

    # It is part of most keys there are; that of enumerations is not written in C.
    __hash__ = str.__hash__


LOCK_ORDER: Final = tuple(ScopeKind)
TENANTS: Final = tuple(kind for kind in ScopeKind if kind is not ScopeKind.DEVICE)


class QuotaScope(msgspec.Struct, frozen=True, kw_only=True):
    """One scope's limits and use, in smallest units.

    A slot whose limit is None is unlimited. ``unspecified`` is the limit of slots that
    are not listed: None is no limit, 0 none of it. It says nothing of counters.
    """

    kind: ScopeKind
    id: str
    name: str
    limits: Mapping[str, int | None]
    used: Mapping[str, int]
    unspecified: int | None = None

    def limit_of(self, slot: str) -> int | None:
        """Return the limit of *slot*; None is no limit."""
        default = None if slot in COUNTERS else self.unspecified
        return self.limits.get(slot, default)


class QuotaShortfall(msgspec.Struct, frozen=True):
    """One limit a request would break; amounts are in smallest units."""

    kind: ScopeKind
    name: str
    slot: str
    limit: int
    used: int
    asked: int

    def __str__(self) -> str:
        used, limit, asked = (
            describe_amount(self.slot, n) for n in (self.used, self.limit, self.asked)
        )
        return (
            f"{self.kind} {self.name}: {self.slot} {used} of {limit} in use,"
            f" asks {asked}"
        )


def charge(request: ResourceSlots, *, system: bool = False) -> ResourceSlots:
    """Return what a session with *request* counts in each of its scopes.

    System sessions (SFTP and the like) count only as themselves.
    """
    if system:
        return ResourceSlots({SYSTEM_SESSIONS: MILLI})
    return request + ResourceSlots({SESSIONS: MILLI})


def find_shortfalls(
    request: ResourceSlots, scopes: Sequence[QuotaScope]
) -> Iterator[QuotaShortfall]:
    """Yield every limit that *request* would break, widest scope first.

    A limit of zero forbids the slot. Lowering a limit below what is in use never
    stops what runs: it only keeps new requests waiting.
    """
    for scope in scopes:
        for slot, asked in request.items():
            limit = scope.limit_of(slot)
            used = scope.used.get(slot, 0)
            if limit is not None and used + asked > limit:
                yield QuotaShortfall(scope.kind, scope.name, slot, limit, used, asked)
