"""Everybody who waits, and what is asked of all of them, kept up as they come and go.

However many wait, what has not changed is not looked at again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from heapq import heappop, heappush
from itertools import chain, islice
from typing import Final, NamedTuple, TypeVar

from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.scheduling.layouts import count_devices
from backendai_hub.scheduling.snapshot import WIDE, GroupPolicy, ScopeKey

Key = TypeVar("Key")

_FEW: Final = 100
"""More changes than that at once, and everything is put in order anew."""


class Kind(NamedTuple):
    """Those whose patience is the same."""

    group: str
    priority: int
    wide: bool


Turn = tuple[int, datetime, str]
"""Minus the priority, since when, and the id: the order of submission."""


class WaitingList:
    """The sessions that wait, in the order of submission, and what they add up to."""

    def __init__(self) -> None:
        self.records: dict[str, SessionRecord] = {}
        self.reserved: set[str] = set()
        """For whom others leave."""
        self.batch: set[str] = set()
        self.timed: set[str] = set()
        """Who is not to start before a time."""
        self.scopes: Counter[ScopeKey] = Counter()
        """Whose limits matter, and for how many."""
        self.groups: Counter[str] = Counter()
        self._turns: dict[str, list[Turn]] | None = {}
        """Those of each group, in order, as far as that is known."""
        self._kinds: dict[str, Kind] = {}
        self._longest: defaultdict[Kind, list[tuple[datetime, str]]] = defaultdict(list)
        """Those of each kind, as a heap in which some may have gone, or stand twice."""

    def update(
        self, found: Mapping[str, SessionRecord], ids: Collection[str] | None = None
    ) -> set[str]:
        """Know these in place of those of *ids*, or of all; return who is different."""
        records = self.records
        looked_at = records.keys() | found.keys() if ids is None else ids
        changed = {i for i in looked_at if records.get(i) != found.get(i)}
        if len(changed) > _FEW:
            self._turns = None
        for session_id in changed:
            old, new = records.pop(session_id, None), found.get(session_id)
            if old is not None:
                self._remove(old)
            if new is not None:
                records[session_id] = new
                self._add(new)
        return changed

    def _add(self, record: SessionRecord) -> None:
        self.scopes.update(record.scopes)
        self.groups[_group(record)] += 1
        if record.status is SessionStatus.RESERVED:
            self.reserved.add(record.id)
        if record.is_batch:
            self.batch.add(record.id)
        if record.starts_at is not None:
            self.timed.add(record.id)
        if self._turns is not None:
            insort(self._turns.setdefault(_group(record), []), _turn(record))
        kind = self._kinds[record.id] = _kind(record)
        heappush(self._longest[kind], (record.created_at, record.id))

    def _remove(self, record: SessionRecord) -> None:
        for scope in record.scopes:
            _count_down(self.scopes, scope)
        _count_down(self.groups, _group(record))
        del self._kinds[record.id]
        for some in (self.reserved, self.batch, self.timed):
            some.discard(record.id)
        if self._turns is not None:
            turns = self._turns[_group(record)]
            del turns[bisect_left(turns, _turn(record))]
            if not turns:
                del self._turns[_group(record)]

    # --- in order ------------------------------------------------------------------

    def in_order(self) -> Iterator[SessionRecord]:
        """Yield everybody in the order of submission, the highest priority first."""
        groups = self._in_order().values()
        turns = sorted(chain.from_iterable(groups)) if len(groups) > 1 else None
        if turns is None:
            turns = next(iter(groups), [])
        return map(self.records.__getitem__, (i for _, _, i in turns))

    def heads(self, group: str, most: int) -> list[str]:
        """Return the ids of the first of a group, at most so many, in order."""
        turns = self._in_order().get(group, ())
        return [session_id for _, _, session_id in islice(turns, most)]

    def sort(self, ids: Collection[str]) -> list[SessionRecord]:
        """Return these in the order of submission."""
        return sorted((self.records[i] for i in ids), key=_turn)

    def _in_order(self) -> dict[str, list[Turn]]:
        """Return those of each group, in order."""
        if self._turns is None:
            self._turns = {}
            for record in self.records.values():
                self._turns.setdefault(_group(record), []).append(_turn(record))
            for turns in self._turns.values():
                turns.sort()
        return self._turns

    # --- for how long ----------------------------------------------------------------

    def has_waited_long(
        self, policies: Mapping[str, GroupPolicy], now: datetime
    ) -> bool:
        """Tell whether anybody waits for whom something may be reserved."""
        for kind, since in self.longest():
            policy = policies.get(kind.group)
            if policy is None:
                continue
            after = policy.patience(kind.priority, wide=kind.wide)
            if after is not None and now.timestamp() - int(since.timestamp()) >= after:
                return True
        return False

    def longest(self) -> Iterator[tuple[Kind, datetime]]:
        """Yield of each kind since when the one waits who has waited longest."""
        for kind, waiting in list(self._longest.items()):
            if len(waiting) > 2 * len(self.records) + _FEW:
                there = {one for one in waiting if self._kinds.get(one[1]) == kind}
                waiting[:] = sorted(there)
            while waiting and self._kinds.get(waiting[0][1]) != kind:
                heappop(waiting)
            if waiting:
                yield kind, waiting[0][0]
            else:
                del self._longest[kind]


def _turn(record: SessionRecord) -> Turn:
    return -record.priority, record.created_at, record.id


def _kind(record: SessionRecord) -> Kind:
    wide = record.is_cluster or count_devices(record.request) >= WIDE
    return Kind(_group(record), record.priority, wide)


def _group(record: SessionRecord) -> str:
    return record.resource_group_id or ""


def _count_down(counter: Counter[Key], key: Key) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
