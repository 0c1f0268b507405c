"""Limits: which ones a request would break, said in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from backendai_hub.core.slots import ResourceSlots, describe_amount


class ScopeKind(StrEnum):
    """Whose use a ledger row counts. The order is the order of locking."""

    DOMAIN = "domain"
    PROJECT = "project"
    USER = "user"
    DEVICE = "device"


LOCK_ORDER: Final = tuple(ScopeKind)


class QuotaScope(msgspec.Struct, frozen=True, kw_only=True):
    """One scope's limits and use. A slot missing from ``limits`` is unlimited."""

    kind: ScopeKind
    id: str
    name: str
    limits: Mapping[str, int]
    used: Mapping[str, int]


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


def find_shortfalls(
    request: ResourceSlots, scopes: Sequence[QuotaScope]
) -> Iterator[QuotaShortfall]:
    """Yield every limit that *request* would break, widest scope first.

    A limit of zero forbids the slot. Lowering a limit below what is in use never
    stops what runs: it only keeps new requests waiting. The rule is Backend.AI's:
    a limit is broken if ``used + asked > limit``.
    """
    for scope in scopes:
        for slot, asked in request.items():
            limit = scope.limits.get(slot)
            used = scope.used.get(slot, 0)
            if limit is not None and used + asked > limit:
                yield QuotaShortfall(scope.kind, scope.name, slot, limit, used, asked)
