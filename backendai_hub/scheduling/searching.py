"""Looking for changes that would start a session now, and trying them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from backendai_hub.core.quotas import QuotaShortfall
from backendai_hub.core.slots import MILLI, ResourceSlots, SlotType, slot_type
from backendai_hub.scheduling.changes import Change, Less, LessHere, charge_of
from backendai_hub.scheduling.cluster import Cluster, Mask, Vector
from backendai_hub.scheduling.limits import Limits
from backendai_hub.scheduling.lines import Line
from backendai_hub.scheduling.snapshot import PendingSession, ScopeKey

_MEBIBYTE = 1 << 20
_MINUTE = 60
_MOST_TOGETHER = 6
"""So many pairs of changes are tried where none is enough by itself."""


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
    now: int = 0
    timed: bool = False
    """Whether who has asked for it says how long it runs."""

    def find(self) -> Iterator[Change]:
        """Yield changes, those that cost least first."""
        allowed = self._is_allowed(self.session)
        places = [*self._shorter(), *self._places()] if allowed else []
        smaller = self._less_of_it()
        found = [change for change in chain(places, smaller) if self._starts(change)]
        yield from found
        if not allowed:
            found = [*self._less_used([Change(), *self._places()])]
            found += self._less_here()
            yield from found
        if not found:
            yield from self._together(allowed=allowed)

    def _less_of_it(self) -> Iterator[Change]:
        if self.session.members:
            return self._fewer_containers()
        return self._smaller(self.session)

    def _starts(self, change: Change) -> bool:
        changed = change.of(self.session)
        return self._is_allowed(changed) and self.line.trial(changed).fits(changed)

    def _is_allowed(self, session: PendingSession) -> bool:
        charge = tuple(charge_of(session).items())
        allowed = self.limits.allow(self.limits.of(session.scopes), charge)
        return allowed and not self.line.refuse(session)

    # --- two at once ---------------------------------------------------------------

    def _together(self, *, allowed: bool) -> Iterator[Change]:
        """Yield the first pair that starts it: another place, or others less, and less.

        Containers all ask for less where not even one of them finds room.
        """
        if allowed:
            pairs = self._smaller_elsewhere()
        else:
            # As if no limit were in the way: what it would have to be is told as well.
            unlimited = self._replace(limits=Limits({}))
            pairs = self._less_used([*islice(unlimited.less(), _MOST_TOGETHER)])
        yield from islice(pairs, 1)

    def less(self) -> Iterator[Change]:
        """Yield what it could ask for less, whether or not that starts it."""
        yield from self._less_of_it()
        if self.session.members:
            yield from self._less_each()

    def _smaller_elsewhere(self) -> Iterator[Change]:
        for place in [*([Change()] if self.session.members else []), *self._places()]:
            moved = self._replace(session=place.of(self.session))
            for less in islice(moved.less(), _MOST_TOGETHER):
                both = replace(
                    place,
                    request=less.request,
                    containers=less.containers,
                    each=less.each,
                )
                if self._starts(both):
                    yield both

    def _less_each(self) -> Iterator[Change]:
        """Yield the most of one slot with which all containers find room."""
        requests = {member.request for member in self.session.members}
        if len(requests) > 1:
            return
        [request] = requests
        for slot, amount in request.items():
            step = MILLI if slot_type(slot) is SlotType.COUNT else _MEBIBYTE
            least = -(-max(1, min(amount, self.least.get(slot, 1))) // step)
            most = (amount - 1) // step
            if least > most or not self._starts(_each(request, slot, least * step)):
                continue
            while least < most:
                middle = (least + most + 1) // 2
                if self._starts(_each(request, slot, middle * step)):
                    least = middle
                else:
                    most = middle - 1
            yield _each(request, slot, least * step)

    # --- for less long ---------------------------------------------------------------

    def _shorter(self) -> Iterator[Change]:
        """Yield the longest time for which it may have what is kept for others."""
        if not self.timed:
            return
        ends = self.line.end_of(self.session)
        left = {moment - self.now for moment in self.line.needed()}
        for seconds in sorted(left, reverse=True):
            lifetime = seconds // _MINUTE * _MINUTE
            if lifetime <= 0 or (ends is not None and lifetime >= ends - self.now):
                continue
            change = Change(lifetime=lifetime)
            if self._starts(change):
                yield change
                return

    # --- elsewhere -------------------------------------------------------------------

    def _places(self) -> Iterator[Change]:
        session = self.session
        if session.nodes and session.only_nodes:
            yield Change(anywhere=True)
        if session.members and session.layout == "one-node":
            yield Change(layout="pack")
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
        for way in ways:
            changed = way.of(self.session)
            if not self.line.trial(changed).fits(changed):
                continue
            found = self.limits.shortfalls(
                changed.scopes, tuple(charge_of(changed).items())
            )
            if any(lacking.asked > lacking.limit for _, lacking in found):
                continue  # whatever others leave, it may never have as much
            rivals = {scope: self._rivals(scope) for scope, _ in found}
            less = tuple(_less(scope, one, rivals[scope]) for scope, one in found)
            change = replace(way, less=less)
            # Whoever is served before may take more than has been reckoned with.
            if not any(rivals.values()) or self.proves(change):
                yield change
                return

    def _less_here(self) -> Iterator[Change]:
        """Yield what others of its scopes would have to leave of a group's maximum."""
        guarantees = self.line.guarantees
        charge = tuple(charge_of(self.session).items())
        limits = self.limits
        if guarantees is None or not limits.allow(
            limits.of(self.session.scopes), charge
        ):
            return
        found = guarantees.overruns(self.session)
        if not found or any(one.asked > one.maximum for one in found):
            return
        less = tuple(
            LessHere(
                group=self.session.group,
                path=one.path,
                name=guarantees.name_of(one.path),
                slot=one.slot,
                amount=one.used + one.asked - one.maximum,
            )
            for one in found
        )
        change = Change(less_here=less)
        # Who is served before may take what is left: only a pass can tell.
        if self.line.trial(self.session).fits(self.session) and self.proves(change):
            yield change

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


def _each(request: ResourceSlots, slot: str, amount: int) -> Change:
    return Change(each=ResourceSlots({**dict(request.items()), slot: amount}))
