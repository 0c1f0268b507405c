"""Who holds how much of a group, and whose share of it is the smallest.

A *path* names a scope by the ids of the scopes it is in: ``(domain,)``,
``(domain, project)`` and ``(domain, project, user)``. The *live share* of a scope is
the largest part that it holds of any slot of the group; its *share* is the larger of
this and of what history counts against it, divided by its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from types import MappingProxyType

import msgspec

from backendai_hub.core.fair_share import clamp_usage, clamp_weight
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.scheduling.snapshot import PendingSession

Path = tuple[str, ...]
Amounts = Mapping[str, int]

_NONE: Mapping[str, int] = MappingProxyType({})
_MOST_KNOWN = 4096
"""Of so many requests it is kept what they count; a long queue may share none."""


class ShareState(msgspec.Struct, frozen=True, kw_only=True):
    """What one group's shares are reckoned from, as plain data.

    ``live`` is what users hold now, by their paths and in smallest units. A scope that
    is not named in ``weights`` has the default one, and one not named in ``history``
    has none.
    """

    capacity: Mapping[str, int] = _NONE
    live: Mapping[Path, Mapping[str, int]] = MappingProxyType({})
    weights: Mapping[Path, float] = MappingProxyType({})
    default_weight: float = 1.0
    history: Mapping[Path, float] = MappingProxyType({})
    ignored: frozenset[str] = frozenset()
    """Slots whose weight is zero: holding them costs nobody their turn."""

    def without_history(self) -> ShareState:
        """Return what is held, all scopes and slots weighing the same."""
        return ShareState(capacity=self.capacity, live=self.live)

    def plus(self, placed: Iterable[PendingSession]) -> ShareState:
        """Return the state after these sessions have got room as well."""
        changed: dict[Path, dict[str, int]] = {}
        held_by: dict[object, dict[str, int]] = {}
        for session in placed:
            held = held_by.get(session.scopes)
            if held is None:
                path = path_of(session)
                held = changed.setdefault(path, dict(self.live.get(path, _NONE)))
                held_by[session.scopes] = held
            for slot, amount in amounts_of(session).items():
                held[slot] = held.get(slot, 0) + amount
        return msgspec.structs.replace(self, live={**self.live, **changed})


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What one scope holds, and how much that is, by weight and without."""

    held: Mapping[str, int]
    weight: float
    live: float
    dominant: str | None
    """The slot of which it holds most, if it holds any."""
    history: float
    share: float
    """The larger of live and history by weight; the smallest is served first."""


def find_standings(state: ShareState, paths: Iterable[Path]) -> dict[Path, Standing]:
    """Say how these scopes stand, as an order of fair share sees them."""
    held: dict[Path, dict[str, int]] = {}
    for user, amounts in state.live.items():
        for depth in range(1, len(user) + 1):
            sums = held.setdefault(user[:depth], {})
            for slot, amount in amounts.items():
                sums[slot] = sums.get(slot, 0) + amount
    return {path: _stand(state, path, held.get(path, {})) for path in paths}


def _stand(state: ShareState, path: Path, held: Mapping[str, int]) -> Standing:
    parts = {
        slot: held.get(slot, 0) / total
        for slot, total in state.capacity.items()
        if total > 0 and slot not in state.ignored and held.get(slot, 0)
    }
    dominant = max(parts, key=parts.__getitem__, default=None)
    live = 0.0 if dominant is None else parts[dominant]
    weight = clamp_weight(state.weights.get(path, state.default_weight))
    history = clamp_usage(state.history.get(path, 0.0))
    return Standing(
        held=held,
        weight=weight,
        live=live,
        dominant=dominant,
        history=history,
        share=max(live, history) / weight,
    )


def path_of(session: PendingSession) -> Path:
    """Name the user of a session in their project and domain."""
    scopes = dict(session.scopes)
    return (
        scopes.get(ScopeKind.DOMAIN, ""),
        scopes.get(ScopeKind.PROJECT, ""),
        scopes.get(ScopeKind.USER, session.owner_id),
    )


def amounts_of(session: PendingSession) -> ResourceSlots:
    """Return what a session counts against its owners' shares."""
    return session.request if session.charge is None else session.charge


def tenants_of(path: Path) -> tuple[Path, ...]:
    """Name domain, project and user."""
    return (path[:1], path[:2], path)


def people_of(path: Path) -> tuple[Path, ...]:
    """Name the user only, whatever the project."""
    return (path[2:],)


class _Scope:
    """A scope that has something in the queue; the root has no parent.

    ``heap`` holds the scopes in it as ``(key, index, scope)``: the key is the weighted
    share, and the index, which decides between equals, is that of the session that the
    scope would start next. ``queue`` holds a user's sessions, of which ``at`` is next.
    """

    __slots__ = ("at", "heap", "key", "parent", "queue", "share", "use", "weight")

    def __init__(self, parent: _Scope | None, weight: float, share: float) -> None:
        self.parent = parent
        self.weight = weight
        self.share = share
        self.key = share / weight
        self.use: list[int] = []
        self.heap: list[tuple[float, int, _Scope]] = []
        self.queue: list[int] = []
        self.at = 0


class ShareTree:
    """An order of a queue in which the smallest weighted share is always next.

    There is one candidate of each owner in the heaps, so what a step costs grows with
    the logarithm of the number of owners, and not with the queue. Keys move with every
    placement: two owners of equal weight take turns, however much each has submitted.
    """

    def __init__(
        self,
        queue: Sequence[PendingSession],
        shares: ShareState,
        levels: Callable[[Path], tuple[Path, ...]],
    ) -> None:
        self._queue = queue
        slots = [
            slot
            for slot, amount in shares.capacity.items()
            if amount > 0 and slot not in shares.ignored
        ]
        self._column = {slot: i for i, slot in enumerate(slots)}
        self._capacity = [shares.capacity[slot] for slot in slots]
        self._asked: dict[int, list[tuple[int, int]]] = {}
        self._root = _Scope(None, 1.0, 0.0)
        self._scopes: dict[Path, _Scope] = {}
        self._fill(queue, shares, levels)
        self._count(shares, levels)
        self._heap_up()
        self._given = -1
        self._owner: _Scope | None = None

    def _fill(
        self,
        queue: Sequence[PendingSession],
        shares: ShareState,
        levels: Callable[[Path], tuple[Path, ...]],
    ) -> None:
        """Give every session to its owner. The only step that looks at all of them."""
        queues: dict[object, list[int]] = {}
        for index, session in enumerate(queue):
            try:
                queues[session.scopes].append(index)
            except KeyError:
                owner = self._scope(levels(path_of(session)), shares)
                # Several keypairs of a user are one owner.
                queues[session.scopes] = owner.queue
                owner.queue.append(index)

    def _scope(self, paths: tuple[Path, ...], shares: ShareState) -> _Scope:
        parent = self._root
        for path in paths:
            found = self._scopes.get(path)
            if found is None:
                found = self._scopes[path] = _Scope(
                    parent,
                    clamp_weight(shares.weights.get(path, shares.default_weight)),
                    clamp_usage(shares.history.get(path, 0.0)),
                )
                found.use = [0] * len(self._capacity)
            parent = found
        return parent

    def _count(
        self, shares: ShareState, levels: Callable[[Path], tuple[Path, ...]]
    ) -> None:
        for path, held in shares.live.items():
            amounts = self._columns(held)
            for name in levels(path):
                scope = self._scopes.get(name)
                if scope is not None:
                    self._add(scope, amounts)

    def _columns(self, amounts: Amounts) -> list[tuple[int, int]]:
        column = self._column
        return [(column[s], n) for s, n in amounts.items() if s in column]

    def _add(self, scope: _Scope, amounts: list[tuple[int, int]]) -> None:
        use, capacity, share = scope.use, self._capacity, scope.share
        for column, amount in amounts:
            use[column] = now = use[column] + amount
            share = max(share, now / capacity[column])
        scope.share = share
        scope.key = share / scope.weight

    def _heap_up(self) -> None:
        # Scopes were made from the outside in, so the innermost come first here.
        for scope in reversed(self._scopes.values()):
            assert scope.parent is not None
            if scope.queue:
                first = scope.queue[0]
            else:
                heapify(scope.heap)
                first = scope.heap[0][1]
            scope.parent.heap.append((scope.key, first, scope))
        heapify(self._root.heap)

    def next(self) -> int | None:
        """Give the first session of the user with the smallest share."""
        if self._owner is not None:
            self._move_on(self._owner)
        heap = self._root.heap
        if not heap:
            self._owner = None
            self._given = -1
            return None
        scope = heap[0][2]
        while scope.heap:
            scope = scope.heap[0][2]
        self._owner = scope
        self._given = given = scope.queue[scope.at]
        return given

    def _move_on(self, owner: _Scope) -> None:
        """Put the owner served last, and what it is in, where they belong now."""
        owner.at = at = owner.at + 1
        left = at < len(owner.queue)
        entry = (owner.key, owner.queue[at] if left else 0, owner)
        scope = owner.parent
        while scope is not None:
            heap = scope.heap
            # Who was served last is at the top of every heap above it.
            if left:
                heapreplace(heap, entry)
            else:
                heappop(heap)
                left = bool(heap)
            entry = (scope.key, heap[0][1] if left else 0, scope)
            scope = scope.parent

    def placed(self, index: int) -> None:
        """Let the shares of the session's owners grow."""
        scope = self._owner
        if scope is None or index != self._given:
            raise ValueError(f"{index} is not the candidate that was given last")
        asked = amounts_of(self._queue[index])
        # The queue keeps these objects, so their identities stay their own.
        amounts = self._asked.get(id(asked))
        if amounts is None:
            if len(self._asked) > _MOST_KNOWN:
                self._asked.clear()
            amounts = self._asked[id(asked)] = self._columns(asked)
        capacity = self._capacity
        # This is what a placement costs, so it does what `_add` does without its call.
        while (parent := scope.parent) is not None:
            use, share = scope.use, scope.share
            for column, amount in amounts:
                use[column] = now = use[column] + amount
                part = now / capacity[column]
                if part > share:  # noqa: PLR1730 - max() is a call, too
                    share = part
            scope.share = share
            scope.key = share / scope.weight
            scope = parent
