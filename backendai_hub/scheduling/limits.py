"""The limits of domains, projects, users and keypairs, counted down during a pass."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from backendai_hub.core.quotas import QuotaScope, QuotaShortfall, find_shortfalls
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.scheduling.snapshot import ScopeKey

Charge = tuple[tuple[str, int], ...]
"""What a session counts in each of its scopes."""

_NO_LIMIT = 1 << 80


class _Room(dict[str, int]):
    """How much more each slot of one scope may be used; filled as slots come up."""

    def __init__(self, scope: QuotaScope) -> None:
        super().__init__()
        self.scope = scope
        self.taken: dict[str, int] = {}
        self.changes = 0

    def __missing__(self, slot: str) -> int:
        limit = self.scope.limit_of(slot)
        room = _NO_LIMIT if limit is None else limit - self.scope.used.get(slot, 0)
        self[slot] = room
        return room

    def now(self) -> QuotaScope:
        """Return the scope as it is by now."""
        used = dict(self.scope.used)
        for slot, room in self.items():
            limit = self.scope.limit_of(slot)
            if limit is not None:
                used[slot] = limit - room
        return replace(self.scope, used=used)


Rooms = tuple[_Room, ...]


class Limits:
    """What the scopes of a snapshot still allow."""

    def __init__(self, scopes: Mapping[ScopeKey, QuotaScope]) -> None:
        self._rooms = {key: _Room(scope) for key, scope in scopes.items()}
        self._lists: dict[tuple[ScopeKey, ...], tuple[_Room, ...]] = {}
        self._told: dict[object, tuple[int, str]] = {}

    def of(self, scopes: tuple[ScopeKey, ...]) -> Rooms:
        """Return what some scopes still allow."""
        rooms = self._lists.get(scopes)
        if rooms is None:
            found = (self._rooms.get(key) for key in scopes)
            rooms = self._lists[scopes] = tuple(r for r in found if r is not None)
        return rooms

    def allow(self, rooms: Rooms, charge: Charge) -> bool:
        """Tell whether no limit is in the way."""
        for room in rooms:
            for slot, amount in charge:
                if room[slot] < amount:
                    return False
        return True

    def take(self, rooms: Rooms, charge: Charge) -> None:
        """Count a session that has been placed."""
        for room in rooms:
            room.changes += 1
            for slot, amount in charge:
                room[slot] -= amount

    def left(self, scopes: tuple[ScopeKey, ...], slot: str) -> int:
        """Return how much more of *slot* may be used in all of these scopes."""
        return min((room[slot] for room in self.of(scopes)), default=_NO_LIMIT)

    def shortfalls(
        self, scopes: tuple[ScopeKey, ...], charge: Charge
    ) -> list[tuple[ScopeKey, QuotaShortfall]]:
        """Return every limit in the way, with whose it is."""
        return [
            ((room.scope.kind, room.scope.id), shortfall)
            for room in self.of(scopes)
            for shortfall in find_shortfalls(ResourceSlots(dict(charge)), [room.now()])
        ]

    def explain(self, scopes: tuple[ScopeKey, ...], charge: Charge) -> str:
        """Name every limit in the way, with numbers."""
        rooms = self.of(scopes)
        changes = sum(room.changes for room in rooms)
        key = (scopes, charge)
        known = self._told.get(key)
        if known is None or known[0] != changes:
            shortfalls = find_shortfalls(
                ResourceSlots(dict(charge)), [room.now() for room in rooms]
            )
            known = self._told[key] = (changes, "; ".join(map(str, shortfalls)))
        return known[1]
