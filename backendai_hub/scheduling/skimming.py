"""Setting aside those of a long queue who cannot start, before a pass looks at nodes.

What holds a session up stays as it is during a pass, and a pass only takes away what
limits allow. So whoever a limit keeps from starting at the beginning of a pass waits
until its end, wherever they stand and whatever becomes of others. Many of them ask for
the same in the same scopes: that is found out once.

Our own orders give the others of a group their turns as if nobody had been set aside.
Groups take turns with each other, though, and those set aside take none: where two
share a limit, either may get the rest of it. What other packages' orders do with whom
they are given nobody knows, so they are given everybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from backendai_hub.scheduling.ordering import SEQUENCERS
from backendai_hub.scheduling.snapshot import PendingSession, Snapshot
from backendai_hub.scheduling.usual import LOOKED_AT

Refuse = Callable[[PendingSession], str]
"""Says which limits are in the way of a session; nothing if none is."""


class Skimmed(NamedTuple):
    """A snapshot with those who may start, and why the others wait."""

    snapshot: Snapshot
    aside: dict[str, str]


def skim(snapshot: Snapshot, refuse: Refuse) -> Skimmed:
    """Set aside those who cannot start; they still show what is asked for."""
    own = {
        group
        for group, policy in snapshot.groups.items()
        if group and policy.sequencer in SEQUENCERS
    }
    kept_for = {reservation.session for reservation in snapshot.reserved}
    refusals: dict[tuple[object, ...], str] = {}
    first: dict[str, list[PendingSession]] = {group: [] for group in own}
    aside: dict[str, str] = {}
    left: list[PendingSession] = []
    for session in snapshot.queue:
        group = session.group
        if not group:
            return Skimmed(snapshot, {})  # one line for all nodes, by another policy
        if group not in own:
            left.append(session)
            continue
        shown = first[group]
        if len(shown) < LOOKED_AT:
            shown.append(session)
        # The snapshot keeps these objects, so their identities stay their own.
        asked = session.request if session.charge is None else session.charge
        key = (id(asked), session.scopes)
        refusal = refusals.get(key)
        if refusal is None:
            refusal = refusals[key] = refuse(session)
        if session.id in kept_for or not (refusal or session.hold):
            left.append(session)
        else:
            told = (session.hold, refusal)
            aside[session.id] = "; ".join(filter(None, told))
    if not aside:
        return Skimmed(snapshot, {})
    shown_by = {g: tuple(s) for g, s in first.items() if s and g not in snapshot.shown}
    changed = replace(snapshot, queue=tuple(left), shown={**snapshot.shown, **shown_by})
    return Skimmed(changed, aside)
