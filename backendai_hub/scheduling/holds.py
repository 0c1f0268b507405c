"""Devices that are kept for somebody: for a window, or for who has waited too long.

What is held is taken out of the cluster, so that others do not see it. Whoever ends
before it is needed, or is meant by it, may use it all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.snapshot import (
    PendingSession,
    ReservedWindow,
    ScopeKey,
    Share,
)


class Hold:
    """The part of one node's devices that is kept, as long as it is free."""

    def __init__(
        self,
        row: int,
        shares: Sequence[Share],
        *,
        why: str,
        needed: int | None = None,
        session: str = "",
    ) -> None:
        self.row = row
        self.shares = tuple(shares)
        self.why = why
        self.needed = needed
        """When it must be free again; None is now, for who is not meant by it."""
        self.session = session
        self.open_to: frozenset[ScopeKey] = frozenset()
        self.borrows = False
        """Whether it is for who borrows, so that others come before it."""
        self.until: int | None = None
        """When a window's is over."""
        self.patient = 0
        """From when on sessions of unknown length are kept off too."""

    def lets(self, session: PendingSession, *, now: int, ends: int | None) -> bool:
        """Tell whether *session*, which would end at *ends*, may use it."""
        if self.is_meant_for(session):
            return True
        if self.needed is None:
            return False
        return now < self.patient if ends is None else ends <= self.needed

    def is_meant_for(self, session: PendingSession) -> bool:
        """Tell whether *session* may have it for as long as it likes."""
        own = session.id == self.session
        return own or not self.open_to.isdisjoint(session.scopes)

    def put_aside(self, cluster: Cluster) -> None:
        """Take it out of the cluster."""
        cluster.take(self.row, self.shares)

    def put_back(self, cluster: Cluster) -> None:
        """Let it be seen again."""
        cluster.give(self.row, self.shares)

    def use(self, taken: Sequence[Share]) -> list[Share]:
        """Note what somebody has taken of it, who will give it back in time.

        Returns what has been taken beyond it.
        """
        held = {(s.device, s.slot): s for s in self.shares}
        by_place = {(s.device, s.slot): s for s in taken}
        parts = (_minus(s, by_place.get(key)) for key, s in held.items())
        self.shares = tuple(part for part in parts if part is not None)
        beyond = (_minus(s, held.get(key)) for key, s in by_place.items())
        return [part for part in beyond if part is not None]


def _minus(held: Share, taken: Share | None) -> Share | None:
    if taken is None:
        return held
    if held.slices:
        slices = held.slices & ~taken.slices
        return Share(held.device, held.slot, held.amount, slices) if slices else None
    amount = held.amount - taken.amount
    return Share(held.device, held.slot, amount) if amount > 0 else None


def free_part(shares: Sequence[Share], returning: Sequence[Share]) -> tuple[Share, ...]:
    """Return what of *shares* is free now, if *returning* comes back until then."""
    back: dict[tuple[str, str], int] = {}
    slices: dict[str, int] = {}
    for share in returning:
        key = (share.device, share.slot)
        back[key] = back.get(key, 0) + share.amount
        slices[share.device] = slices.get(share.device, 0) | share.slices
    parts = (
        _minus(
            share,
            Share(
                share.device,
                share.slot,
                back.get((share.device, share.slot), 0),
                slices.get(share.device, 0),
            ),
        )
        for share in shares
    )
    return tuple(part for part in parts if part is not None)


def merge(shares: Sequence[Share]) -> tuple[Share, ...]:
    """Add up what several containers have of the same device."""
    sums: dict[tuple[str, str], Share] = {}
    for share in shares:
        key = (share.device, share.slot)
        other = sums.get(key)
        sums[key] = share if other is None else _plus(other, share)
    return tuple(sums.values())


def _plus(one: Share, other: Share) -> Share:
    slices = one.slices | other.slices
    amount = one.amount if slices else one.amount + other.amount
    return Share(one.device, one.slot, amount, slices)


def tell_window(window: ReservedWindow) -> str:
    """Say from when until when it is, to everybody; its name is not for all."""
    begins, ends = (
        f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M}"
        for moment in (window.starts, window.ends)
    )
    return f"a reservation from {begins} until {ends} UTC"


def hold_window(cluster: Cluster, window: ReservedWindow, now: int) -> list[Hold]:
    """Return what a window keeps now."""
    if window.ends <= now:
        return []
    holds = []
    for node in window.nodes:
        row = cluster.row.get(node)
        if row is None:
            continue
        hold = Hold(
            row,
            cluster.left_on(row, window.devices),
            why=f"kept for {tell_window(window)}",
            needed=window.starts if now < window.starts else None,
        )
        hold.open_to = frozenset(window.open_to)
        hold.patient = window.starts - window.notice
        hold.until = window.ends
        holds.append(hold)
    return holds
