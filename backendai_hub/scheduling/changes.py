"""What would have to be different for a session to start now.

A change is looked for on the nodes as a pass has left them, and tried there with the
same code that places sessions: one that is named does start it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from backendai_hub.core.quotas import SESSIONS, QuotaShortfall
from backendai_hub.core.slots import (
    MILLI,
    ResourceSlots,
    SlotType,
    describe_amount,
    slot_type,
)
from backendai_hub.scheduling.cluster import Cluster, Mask, Vector
from backendai_hub.scheduling.limits import Limits
from backendai_hub.scheduling.lines import Line
from backendai_hub.scheduling.snapshot import PendingSession, ScopeKey, Snapshot

_MEBIBYTE = 1 << 20


class Less(msgspec.Struct, frozen=True, kw_only=True):
    """How much less a scope would have to use of a slot that it has a limit for."""

    scope: ScopeKey
    name: str
    slot: str
    amount: int


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What would be different; whatever is not said stays as it is."""

    request: ResourceSlots | None = None
    """It asks for this instead."""
    containers: int | None = None
    """It has only so many containers, the first ones."""
    anywhere: bool = False
    """It runs on other nodes than those it names, too."""
    without_labels: tuple[str, ...] = ()
    group: str | None = None
    """It waits in another resource group."""
    less: tuple[Less, ...] = ()
    """Others use less."""

    @property
    def is_own(self) -> bool:
        """Tell whether who has asked for the session can bring it about alone."""
        return not self.less

    def of(self, session: PendingSession) -> PendingSession:
        """Return *session* as it would be."""
        changes: dict[str, object] = {}
        if self.request is not None:
            changes["request"] = self.request
        if self.containers is not None:
            members = session.members[: self.containers]
            changes["members"] = members
            changes["request"] = sum((m.request for m in members), ResourceSlots())
        request = changes.get("request")
        if isinstance(request, ResourceSlots) and session.charge is not None:
            changes["charge"] = _recharge(session, request)
        if self.anywhere:
            changes["only_nodes"] = False
        if self.without_labels:
            left = session.labels.items()
            changes["labels"] = {k: v for k, v in left if k not in self.without_labels}
        if self.group is not None:
            changes["group"] = self.group
        return replace(session, **changes) if changes else session

    def apply(self, snapshot: Snapshot, session_id: str) -> Snapshot:
        """Return *snapshot* as it would be."""
        scopes = dict(snapshot.scopes)
        for less in self.less:
            scope = scopes[less.scope]
            used = {**scope.used, less.slot: scope.used.get(less.slot, 0) - less.amount}
            scopes[less.scope] = replace(scope, used=used)
        queue = tuple(self.of(s) if s.id == session_id else s for s in snapshot.queue)
        return replace(snapshot, queue=queue, scopes=scopes)


def _recharge(session: PendingSession, request: ResourceSlots) -> ResourceSlots:
    """Return what *session* counts in its scopes if it asks for *request* instead."""
    charge = dict(session.charge or {})
    for slot, amount in session.request.items():
        if slot in charge:
            charge[slot] += request[slot] - amount
    return ResourceSlots(charge)


def charge_of(session: PendingSession) -> ResourceSlots:
    """Return what *session* counts in each of its scopes."""
    return session.request if session.charge is None else session.charge


class Search(NamedTuple):
    """Where changes for one session are looked for."""

    session: PendingSession
    line: Line
    limits: Limits
    least: Mapping[str, int]
    """What it has to ask for at least, whatever there is."""
    before: Callable[[], Sequence[PendingSession]] = tuple
    """Tells who is served before it."""
    proves: Callable[[Change], bool] = bool
    """Tells by a whole pass whether a change starts it."""

    def find(self) -> Iterator[Change]:
        """Yield changes, those that cost least first."""
        allowed = self._is_allowed(self.session)
        candidates: Iterator[Change]
        if self.session.members:
            places, smaller = self._places(), self._fewer_containers()
        else:
            places, smaller = self._places(), self._smaller(self.session)
        candidates = chain(places if allowed else (), smaller)
        found = [change for change in candidates if self._starts(change)]
        yield from found
        if not allowed:
            yield from self._less_used([Change(), *self._places()])

    def _starts(self, change: Change) -> bool:
        changed = change.of(self.session)
        return self._is_allowed(changed) and self.line.trial(changed).fits(changed)

    def _is_allowed(self, session: PendingSession) -> bool:
        charge = tuple(charge_of(session).items())
        allowed = self.limits.allow(self.limits.of(session.scopes), charge)
        return allowed and not self.line.refuse(session)

    # --- elsewhere -------------------------------------------------------------------

    def _places(self) -> Iterator[Change]:
        session = self.session
        if session.nodes and session.only_nodes:
            yield Change(anywhere=True)
        for label in session.labels:
            yield Change(without_labels=(label,))
        if len(session.labels) > 1:
            yield Change(without_labels=tuple(session.labels))
        if session.labels and session.nodes and session.only_nodes:
            yield Change(anywhere=True, without_labels=tuple(session.labels))

    # --- less of it ------------------------------------------------------------------

    def _fewer_containers(self) -> Iterator[Change]:
        """Yield the most containers that find room; fewer never need more."""
        least, most = 1, len(self.session.members) - 1
        while least < most:
            middle = (least + most + 1) // 2
            if self._starts(Change(containers=middle)):
                least = middle
            else:
                most = middle - 1
        if most:
            yield Change(containers=least)

    def _smaller(self, session: PendingSession) -> Iterator[Change]:
        """Yield less of everything that lacks on the nearest node, then of one slot."""
        trial = self.line.trial(session)
        cluster = trial.placer.cluster
        rows = np.flatnonzero(cluster.eligible(session) & (cluster.spare >= 1))
        request = session.request
        if not len(rows) or any(slot not in cluster.column for slot in request):
            return
        room = {slot: self._room(cluster, slot, rows) for slot in request}
        possible = np.ones(len(rows), bool)
        for slot, most in room.items():
            possible &= most >= max(1, min(request[slot], self.least.get(slot, 1)))
        seen: set[ResourceSlots] = set()
        for among in self._ways(room, possible):
            lost = sum(((request[s] - most) / request[s] for s, most in room.items()))
            best = int(np.argmin(np.where(among, lost, np.inf)))
            smaller = ResourceSlots({s: int(most[best]) for s, most in room.items()})
            if smaller not in seen and smaller != request:
                seen.add(smaller)
                yield Change(request=smaller)

    def _ways(self, room: Mapping[str, Vector], possible: Mask) -> Iterator[Mask]:
        """Tell among which nodes the nearest is looked for, one way after another."""
        if possible.any():
            yield possible
        request = self.session.request
        for slot in request:
            others = possible.copy()
            for other, most in room.items():
                if other != slot:
                    others &= most >= request[other]
            if others.any():
                yield others

    def _room(self, cluster: Cluster, slot: str, rows: Vector) -> Vector:
        """Return how much of *slot* each node, and every limit, would give it."""
        asked = self.session.request[slot]
        most = asked
        if slot in charge_of(self.session):
            most = max(0, min(asked, self.limits.left(self.session.scopes, slot)))
        if self.line.guarantees is not None:
            most = max(0, min(most, self.line.guarantees.left(self.session, slot)))
        column = cluster.column[slot]
        if slot_type(slot) is not SlotType.COUNT:
            return _round_sizes(np.minimum(cluster.largest_of(column)[rows], most))
        largest, several = cluster.largest_of(column), cluster.untouched_of(column)
        if self.line.policy.allow_split and not cluster.is_profile(column):
            largest = cluster.free_of(column)
        one = np.minimum(largest[rows], most)
        if cluster.is_profile(column) or slot.endswith(".device"):
            one = _whole(one)
        return np.maximum(one, _whole(np.minimum(several[rows], most)))

    # --- others less -----------------------------------------------------------------

    def _less_used(self, ways: Sequence[Change]) -> Iterator[Change]:
        """Yield what others would have to leave, if there is room but no allowance."""
        if self.line.refuse(self.session):
            return
        found = self.limits.shortfalls(
            self.session.scopes, tuple(charge_of(self.session).items())
        )
        if any(lacking.asked > lacking.limit for _, lacking in found):
            return  # whatever others leave, it may never have as much
        rivals = {scope: self._rivals(scope) for scope, _ in found}
        less = tuple(_less(scope, one, rivals[scope]) for scope, one in found)
        for way in ways:
            changed = way.of(self.session)
            if not self.line.trial(changed).fits(changed):
                continue
            change = replace(way, less=less)
            # Whoever is served before may take more than has been reckoned with.
            if not any(rivals.values()) or self.proves(change):
                yield change
                return

    def _rivals(self, scope: ScopeKey) -> list[PendingSession]:
        """Return who takes what becomes free in *scope* before it does."""
        return [
            one
            for one in self.before()
            if scope in one.scopes and not one.hold and not self._is_allowed(one)
        ]


def _less(
    scope: ScopeKey, lacking: QuotaShortfall, rivals: Sequence[PendingSession]
) -> Less:
    amount = lacking.used + lacking.asked - lacking.limit
    amount += sum(charge_of(one)[lacking.slot] for one in rivals)
    return Less(scope=scope, name=lacking.name, slot=lacking.slot, amount=amount)


def _whole(amounts: Vector) -> Vector:
    return amounts // MILLI * MILLI


def _round_sizes(amounts: Vector) -> Vector:
    """Round sizes down to what people write."""
    rounded: Vector = np.where(
        amounts >= _MEBIBYTE, amounts // _MEBIBYTE * _MEBIBYTE, amounts
    )
    return rounded


# --- in words ------------------------------------------------------------------------


def tell_change(
    change: Change, session: PendingSession, names: Mapping[str, str] | None = None
) -> str:
    """Say what would start it, such as "with 0.5 cuda.shares instead of 1"."""
    known = names or {}
    return " and ".join(
        [
            *_tell_less(change),
            *_tell_request(change, session),
            *_tell_place(change, session, known),
        ]
    )


def _tell_less(change: Change) -> Iterator[str]:
    for less in change.less:
        kind, _ = less.scope
        if less.slot == SESSIONS:
            count = less.amount // MILLI
            what = f"had {count} {'session' if count == 1 else 'sessions'} less running"
        else:
            what = f"used {describe_amount(less.slot, less.amount)} {less.slot} less"
        yield f"if {kind} {less.name} {what}"


def _tell_request(change: Change, session: PendingSession) -> Iterator[str]:
    if change.containers is not None:
        count = change.containers
        containers = "1 container" if count == 1 else f"{count} containers"
        yield f"with {containers} instead of {len(session.members)}"
    if change.request is not None:
        for slot, amount in session.request.items():
            new = change.request[slot]
            if new != amount:
                yield (
                    f"with {describe_amount(slot, new)} {slot} instead of"
                    f" {describe_amount(slot, amount)}"
                )


def _tell_place(
    change: Change, session: PendingSession, names: Mapping[str, str]
) -> Iterator[str]:
    if change.anywhere:
        named = ", ".join(names.get(node, node) for node in session.nodes)
        many = "node" if len(session.nodes) == 1 else "nodes"
        yield f"if it did not insist on the {many} {named}"
    for label in change.without_labels:
        yield f"without the label {label}={session.labels[label]}"
    if change.group is not None:
        yield f"in the resource group {names.get(change.group, change.group)}"
