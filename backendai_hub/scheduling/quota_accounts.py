"""What scopes are guaranteed, use and claim, slot by slot, added up where it is asked.

A decision looks at a handful of numbers here, however many scopes there are.
"""

from __future__ import annotations

from typing import NamedTuple

from backendai_hub.scheduling.shares import Amounts, Path
from backendai_hub.scheduling.snapshot import ScopeQuota


class Sum:
    """What several scopes are guaranteed of a slot and do not use (``idle``).

    ``due`` is what of that somebody claims.
    """

    __slots__ = ("due", "idle")

    def __init__(self) -> None:
        self.idle = self.due = 0


class Account(Sum):
    """One slot of one scope; what changes is passed on to those that add it up."""

    __slots__ = ("claimed", "everybody", "guaranteed", "maximum", "siblings", "used")

    def __init__(
        self, guaranteed: int, maximum: int | None, siblings: Sum, everybody: Sum
    ) -> None:
        super().__init__()
        self.guaranteed, self.maximum = guaranteed, maximum
        self.siblings, self.everybody = siblings, everybody
        self.used = self.claimed = 0
        self.change()

    def change(self, used: int = 0, claimed: int = 0) -> None:
        """Reckon with so much more being used and claimed."""
        self.used += used
        self.claimed = due = self.claimed + claimed
        # What a scope holds beyond its guarantee uses its claims up.
        idle = self.guaranteed - self.used
        if idle < 0:  # noqa: PLR1730 - max() is a call, too
            idle = 0
        if due > idle:  # noqa: PLR1730 - so is min()
            due = idle
        if idle != self.idle:
            more = idle - self.idle
            self.idle = idle
            self.siblings.idle += more
            self.everybody.idle += more
        if due != self.due:
            more = due - self.due
            self.due = due
            self.siblings.due += more
            self.everybody.due += more


class Scope:
    """One scope while a pass decides; slots without a quota are not counted."""

    __slots__ = ("accounts", "inside", "path", "siblings")

    def __init__(
        self,
        path: Path,
        quota: ScopeQuota,
        siblings: dict[str, Sum],
        everybody: dict[str, Sum],
    ) -> None:
        self.path, self.siblings = path, siblings
        self.inside: dict[str, Sum] = {}
        """What the scopes in it add up to."""
        self.accounts = {
            slot: Account(
                quota.guaranteed.get(slot, 0),
                quota.maximum.get(slot),
                siblings.setdefault(slot, Sum()),
                everybody.setdefault(slot, Sum()),
            )
            for slot in {**quota.guaranteed, **quota.maximum}
        }

    def is_entitled(self, asked: Amounts, *, claims: bool = False) -> bool:
        """Tell whether it stays within its guarantee with what is *asked*.

        With *claims*, beside what others claim of it.
        """
        any_listed = False
        for slot, account in self.accounts.items():
            amount = asked.get(slot, 0)
            if not (amount and account.guaranteed):
                continue
            any_listed = True
            beside = account.claimed if claims else 0
            if account.used + beside + amount > account.guaranteed:
                return False
        return any_listed


class Chain(NamedTuple):
    """The scopes of one user that matter, the widest first."""

    scopes: tuple[Scope, ...]
    accounts: tuple[tuple[str, Account], ...]
    """All of their slots."""
    limited: tuple[tuple[str, int, Account], ...]
    """Those with a maximum, and which."""


def link(*scopes: Scope) -> Chain:
    """Put the scopes of one user together."""
    accounts = tuple(pair for scope in scopes for pair in scope.accounts.items())
    limited = tuple((s, a.maximum, a) for s, a in accounts if a.maximum is not None)
    return Chain(scopes, accounts, limited)
