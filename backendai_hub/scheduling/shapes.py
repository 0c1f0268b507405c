"""Requests that are alike share a shape, and with it what is known about every node."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from backendai_hub.core.slots import MILLI, ResourceSlots, SlotType, slot_type
from backendai_hub.scheduling.cluster import Cluster, Mask, Vector
from backendai_hub.scheduling.layouts import HOST_SLOTS
from backendai_hub.scheduling.scoring import Demand, FloatVector
from backendai_hub.scheduling.snapshot import PendingSession

_NOT_YET: FloatVector = np.empty(0)
_MOST_KNOWN = 4096
"""So many sessions' requests are known by identity; a long queue may share none."""

Test = tuple[Vector, Vector]
"""A column and the least it must be, which makes an array of no dimensions."""


class Shape:
    """What is asked of a node, and each node's score for it, as far as known.

    The scores are kept for it by who places it. ``seen`` is the length of the
    cluster's log when they were made; -1 is never.
    """

    __slots__ = (
        "barred",
        "demand",
        "either",
        "entangled",
        "fraction",
        "items",
        "later",
        "never",
        "request",
        "scores",
        "seen",
        "session",
        "tests",
    )

    def __init__(
        self,
        cluster: Cluster,
        session: PendingSession,
        request: ResourceSlots,
        *,
        allow_split: bool,
    ) -> None:
        self.session = session
        self.request = request
        self.items = tuple(request.items())
        self.demand = read_demand(cluster, dict(self.items))
        self.fraction = 0 < self.demand.milli < MILLI
        self.never = False
        """Whether no node has such slots at all."""
        self.tests: list[Test] = []
        self.either: list[tuple[Vector, Vector, Vector]] = []
        profiles = 0
        for slot, amount in self.items:
            column = cluster.column.get(slot)
            if column is None:
                self.never = True
                continue
            profiles += cluster.is_profile(column)
            if allow_split and not cluster.is_profile(column) and _counts(slot):
                self.tests.append((cluster.free_of(column), np.array(amount)))
            else:
                self._add(cluster, column, slot, amount)
        self.entangled = profiles > 0 and len(self.items) > 1
        """Whether taking one slot may take away what another needs."""
        if cluster.limits_containers:
            self.tests.append((cluster.spare, np.array(1)))
        self.barred = cluster.barred(session)
        self.later = _postpone(cluster, session)
        self.scores: FloatVector = _NOT_YET
        self.seen = -1

    def _add(self, cluster: Cluster, column: int, slot: str, amount: int) -> None:
        least = np.array(amount)
        largest, units = cluster.largest_of(column), cluster.untouched_of(column)
        if not _counts(slot) or amount % MILLI:
            if cluster.is_profile(column):
                self.never = True
            self.tests.append((largest, least))
        elif cluster.only_units(column):
            self.tests.append((largest if amount == MILLI else units, least))
        elif not cluster.has_units(column):
            self.tests.append((largest, least))
        else:
            self.either.append((largest, units, least))


def _counts(slot: str) -> bool:
    return slot_type(slot) is SlotType.COUNT


def _postpone(cluster: Cluster, session: PendingSession) -> Mask | None:
    """Tell which nodes come second: those it does not prefer, or has failed on."""
    if not (session.nodes or session.avoid):
        return None
    later = np.zeros(len(cluster.nodes), bool)
    if session.nodes and not session.only_nodes:
        wanted = [cluster.row[n] for n in session.nodes if n in cluster.row]
        later[:] = True
        later[wanted] = False
    later[[cluster.row[n] for n in session.avoid if n in cluster.row]] = True
    return later if later.any() and not later.all() else None


def read_demand(cluster: Cluster, request: Mapping[str, int]) -> Demand:
    """Put *request* into the order of the cluster's columns."""
    amounts = tuple(request.get(slot, 0) for slot in cluster.slots)
    for column, slot in enumerate(cluster.slots):
        if amounts[column] and slot not in HOST_SLOTS and _counts(slot):
            return Demand(amounts, column, amounts[column])
    return Demand(amounts)


class Shapes:
    """The shapes of one cluster's queue, each built once."""

    def __init__(self, cluster: Cluster, *, allow_split: bool = False) -> None:
        self._cluster = cluster
        self._split = allow_split
        self._known: dict[object, Shape] = {}
        self._quick: dict[tuple[int, ...], Shape] = {}

    def of(self, session: PendingSession) -> Shape:
        """Return the shape of what *session* asks for in all."""
        plain = not (session.nodes or session.avoid or session.labels)
        # The snapshot keeps these objects, so their identities stay their own.
        quick = (
            id(session.request),
            id(session.references),
            id(session.architecture),
            id(session.group),
            session.protocol,
        )
        if plain and (shape := self._quick.get(quick)) is not None:
            return shape
        shape = self.asking(session, session.request)
        if plain:
            if len(self._quick) > _MOST_KNOWN:
                self._quick.clear()
            self._quick[quick] = shape
        return shape

    def asking(self, session: PendingSession, request: ResourceSlots) -> Shape:
        """Return the shape of *request*, on nodes that may run *session*."""
        key = (
            request,
            frozenset(session.references),
            session.architecture,
            session.group,
            session.nodes,
            session.only_nodes,
            session.avoid,
            frozenset(session.labels.items()),
            session.protocol,
        )
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = Shape(
                self._cluster, session, request, allow_split=self._split
            )
        return shape
