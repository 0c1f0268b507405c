"""What would have to be different for a session to start now.

What it is, what a snapshot would be with it, and how it is told; :mod:`.searching`
looks for changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec
from msgspec.structs import replace

from backendai_hub.core.quotas import SESSIONS
from backendai_hub.core.slots import (
    MILLI,
    ResourceSlots,
    describe_amount,
)
from backendai_hub.scheduling.shares import Path
from backendai_hub.scheduling.snapshot import PendingSession, ScopeKey, Snapshot


class Less(msgspec.Struct, frozen=True, kw_only=True):
    """How much less a scope would have to use of a slot that it has a limit for."""

    scope: ScopeKey
    name: str
    slot: str
    amount: int


class LessHere(msgspec.Struct, frozen=True, kw_only=True):
    """How much less a scope would have to use of what a group gives it at most."""

    group: str
    path: Path
    name: str
    slot: str
    amount: int


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What would be different; whatever is not said stays as it is."""

    request: ResourceSlots | None = None
    """It asks for this instead."""
    containers: int | None = None
    """It has only so many containers, the first ones."""
    each: ResourceSlots | None = None
    """Each of its containers asks for this instead."""
    layout: Literal["one-node", "spread", "pack"] | None = None
    """Its containers lie otherwise."""
    lifetime: int | None = None
    """It runs for so many seconds at most."""
    released: bool = False
    """Nothing holds it up, such as another session, a time or an operator."""
    anywhere: bool = False
    """It runs on other nodes than those it names, too."""
    without_labels: tuple[str, ...] = ()
    group: str | None = None
    """It waits in another resource group."""
    less: tuple[Less, ...] = ()
    """Others use less."""
    less_here: tuple[LessHere, ...] = ()
    """Others use less of a resource group."""

    @property
    def is_own(self) -> bool:
        """Tell whether who has asked for the session can bring it about alone.

        In another resource group, whatever holds up the one it is in is left behind.
        """
        stays_held = self.released and self.group is None
        return not (self.less or self.less_here or stays_held)

    @property
    def is_place(self) -> bool:
        """Tell whether it asks for as much as before, and nobody else for less."""
        smaller = (self.request, self.containers, self.each, self.lifetime)
        return all(one is None for one in smaller)

    def of(self, session: PendingSession) -> PendingSession:
        """Return *session* as it would be."""
        changes = self._amounts(session)
        request = changes.get("request")
        if isinstance(request, ResourceSlots) and session.charge is not None:
            changes["charge"] = _recharge(session, request)
        if self.anywhere:
            changes["only_nodes"] = False
        if self.without_labels:
            left = session.labels.items()
            changes["labels"] = {k: v for k, v in left if k not in self.without_labels}
        kept = {
            "group": self.group,
            "layout": self.layout,
            "lifetime": self.lifetime,
            "hold": "" if self.released else None,
        }
        changes.update((k, v) for k, v in kept.items() if v is not None)
        return replace(session, **changes) if changes else session

    def _amounts(self, session: PendingSession) -> dict[str, object]:
        """Return what it would ask for, and with how many containers."""
        if self.containers is None and self.each is None:
            return {} if self.request is None else {"request": self.request}
        members = session.members[: self.containers]
        if self.each is not None:
            members = tuple(replace(m, request=self.each) for m in members)
        together = sum((m.request for m in members), ResourceSlots())
        return {"members": members, "request": together}

    def apply(self, snapshot: Snapshot, session_id: str) -> Snapshot:
        """Return *snapshot* as it would be."""
        scopes = dict(snapshot.scopes)
        for less in self.less:
            scope = scopes[less.scope]
            used = {**scope.used, less.slot: scope.used.get(less.slot, 0) - less.amount}
            scopes[less.scope] = replace(scope, used=used)
        queue = tuple(self.of(s) if s.id == session_id else s for s in snapshot.queue)
        groups = dict(snapshot.groups)
        for here in self.less_here:
            # To use less of what may be used is to have that much more left.
            policy = groups[here.group]
            quota = policy.quotas[here.path]
            most = {**quota.maximum, here.slot: quota.maximum[here.slot] + here.amount}
            quotas = {**policy.quotas, here.path: replace(quota, maximum=most)}
            groups[here.group] = replace(policy, quotas=quotas)
        return replace(snapshot, queue=queue, scopes=scopes, groups=groups)


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
    if change.released and change.group is None:
        yield "if nothing held it up"
    for here in change.less_here:
        amount = describe_amount(here.slot, here.amount)
        kind = ("domain", "project", "user")[len(here.path) - 1]
        yield f"if {kind} {here.name} used {amount} {here.slot} less in this group"
    for less in change.less:
        kind, _ = less.scope
        if less.slot == SESSIONS:
            count = less.amount // MILLI
            yield (
                f"if {kind} {less.name} had {count}"
                f" {'session' if count == 1 else 'sessions'} less running"
            )
        else:
            amount = describe_amount(less.slot, less.amount)
            yield f"if {kind} {less.name} used {amount} {less.slot} less"


def _tell_request(change: Change, session: PendingSession) -> Iterator[str]:
    if change.containers is not None:
        count = change.containers
        yield (
            f"with {'1 container' if count == 1 else f'{count} containers'} instead of"
            f" {len(session.members)}"
        )
    request, before, suffix = change.request, session.request, ""
    if change.each is not None:
        request, before = change.each, session.members[0].request
        suffix = " for each container"
    if request is not None:
        for slot, amount in before.items():
            new = request[slot]
            if new != amount:
                yield (
                    f"with {describe_amount(slot, new)} {slot} instead of"
                    f" {describe_amount(slot, amount)}{suffix}"
                )
    if change.lifetime is not None:
        yield f"with a time limit of {_tell_time(change.lifetime)}"


def _tell_time(seconds: int) -> str:
    """Write whole minutes as they are given: 20m, 3h, 1h30m."""
    hours, minutes = divmod(seconds // 60, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes else "")


def _tell_place(
    change: Change, session: PendingSession, names: Mapping[str, str]
) -> Iterator[str]:
    if change.anywhere:
        named = ", ".join(names.get(node, node) for node in session.nodes)
        yield (
            "if it did not insist on the"
            f" {'node' if len(session.nodes) == 1 else 'nodes'} {named}"
        )
    for label in change.without_labels:
        yield f"without the label {label}={session.labels[label]}"
    if change.layout is not None:
        yield "with its containers on several nodes"
    if change.group is not None:
        yield f"in the resource group {names.get(change.group, change.group)}"
