"""What scopes are guaranteed, what they may borrow, and who has to give back.

Domains, projects and users form a tree. A scope may be *guaranteed* amounts of a
group, and may have a *maximum*. What is guaranteed but idle may be borrowed by others,
until the scope it is guaranteed to asks for it: then borrowers have to go, and nobody
but borrowers.

The rules, in full:

* A request is *entitled* in a scope if the scope stays within its guarantee with it,
  in every slot that the scope is guaranteed and the request asks for, and there is at
  least one such slot. What a scope is not guaranteed, it is not entitled to.
* Scopes contend with their siblings: domains with domains, the projects of a domain
  with each other, the users of a project with each other. A request that is entitled
  in one of its scopes comes before what that scope's siblings borrow.
* What waits and is entitled has a *claim* on free room. Who is not entitled, and so
  borrows, may use all free room but that which siblings have a claim on.
* Who may not be displaced could not give back what it borrows. So it uses no room that
  its siblings are guaranteed, whether they wait for it or not.
* Of the sessions in a scope the oldest are within its guarantee; those that do not fit
  into it any more *borrow*. So who lets in a session does not thereby endanger an
  older one, and what has been reclaimed cannot be reclaimed back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from backendai_hub.scheduling.quota_accounts import Account, Chain, Scope, Sum, link
from backendai_hub.scheduling.shares import Amounts, Path
from backendai_hub.scheduling.snapshot import ScopeQuota

__all__ = ["Holding", "Overrun", "QuotaTree", "ScopeQuota", "Verdict", "contenders"]


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """A running session: whose it is, what it holds, and since when."""

    id: str
    path: Path
    held: Mapping[str, int]
    started: int


class Overrun(msgspec.Struct, frozen=True):
    """A maximum that a request would break."""

    path: Path
    slot: str
    maximum: int
    used: int
    asked: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a request may start now, as far as the tree is concerned.

    ``entitled`` are its scopes in which it is within the guarantee; with none, it
    borrows all it asks for. ``kept`` is the free room that is not for it: others have
    a claim on it, and it needs some of it.
    """

    entitled: tuple[Path, ...]
    overruns: tuple[Overrun, ...]
    kept: Mapping[str, int]

    @property
    def may_start(self) -> bool:
        """Whether neither a maximum nor a claim of others is in its way."""
        return not self.overruns and not self.kept


Claim = tuple[tuple[Account, int], ...]
"""What has been claimed of each slot of each scope."""

_MOST_COUNTED = 64
"""So many are counted at once: enough to have much in common, and soon done."""


class QuotaTree:
    """The scopes of one group while a pass decides; amounts are in smallest units."""

    def __init__(
        self,
        quotas: Mapping[Path, ScopeQuota],
        live: Mapping[Path, Amounts] | None = None,
    ) -> None:
        self._quotas = quotas
        self._everybody: dict[str, Sum] = {}
        """Of all scopes, whomever they contend with: nothing kept is more."""
        self._around = {path[:-1] for path in quotas}
        self._scopes: dict[Path, Scope] = {(): Scope((), ScopeQuota(), {}, {})}
        self._chains: dict[Path, Chain] = {}
        self._linked: dict[tuple[Scope, ...], Chain] = {}
        self._claims: dict[str, Claim] = {}
        self._known: dict[Claim, Claim] = {}
        self._taken: list[tuple[str, Chain]] = []
        """Who has been counted, but for what others are due the less for it."""
        for path in quotas:
            self.chain(path)
        for path, held in (live or {}).items():
            self.take(path, held)

    def chain(self, path: Path) -> Chain:
        """Return the scopes of a user's path that have a quota, or a sibling has."""
        chain = self._chains.get(path)
        if chain is None:
            scopes = tuple(
                self._scope(scope)
                for scope in _scopes(path)
                if scope in self._quotas or scope[:-1] in self._around
            )
            # Users without quotas of their own share that of their project.
            known = self._linked.setdefault(scopes, link(*scopes))
            chain = self._chains[path] = known
        return chain

    def _scope(self, path: Path) -> Scope:
        scope = self._scopes.get(path)
        if scope is None:
            quota = self._quotas.get(path, ScopeQuota())
            siblings = self._scope(path[:-1]).inside
            scope = self._scopes[path] = Scope(path, quota, siblings, self._everybody)
        return scope

    # --- what is held and what waits -------------------------------------------------

    def used(self, path: Path, slot: str) -> int:
        """Tell how much a scope holds of what it is guaranteed or limited in."""
        scope = self._scopes.get(path)
        account = None if scope is None else scope.accounts.get(slot)
        return 0 if account is None else account.used

    def guaranteed(self, path: Path, slot: str) -> int:
        """Tell how much a scope is guaranteed."""
        quota = self._quotas.get(path)
        return 0 if quota is None else quota.guaranteed.get(slot, 0)

    def take(self, path: Path, amounts: Amounts, claim: str = "") -> None:
        """Note that a user has got these amounts, and so what they *claim*."""
        self._settle()
        fulfilled = self._claims.pop(claim, ())
        for account, amount in fulfilled:
            account.claimed -= amount
        for slot, account in self.chain(path).accounts:
            amount = amounts.get(slot, 0)
            if amount or fulfilled:
                account.change(amount)

    def count(self, chain: Chain, amounts: Amounts, claim: str) -> None:
        """Take these amounts, which :meth:`is_clear` has allowed.

        What is due to everybody else is reckoned with once it matters: until then there
        seems to be more of it than there is.
        """
        for slot, account in chain.accounts:
            amount = amounts.get(slot)
            if amount:
                account.used += amount
        self._taken.append((claim, chain))
        if len(self._taken) == _MOST_COUNTED:
            self._settle()

    def _settle(self) -> None:
        """Reckon with who has been counted."""
        if not self._taken:
            return
        chains: dict[int, Chain] = {}
        for claim, chain in self._taken:
            for account, amount in self._claims.pop(claim, ()):
                account.claimed -= amount
            chains[id(chain)] = chain
        self._taken.clear()
        for chain in chains.values():
            for _, account in chain.accounts:
                account.change()

    def give(self, path: Path, amounts: Amounts) -> None:
        """Note that a user has given these amounts back."""
        self.take(path, {slot: -amount for slot, amount in amounts.items()})

    def claim(self, name: str, path: Path, asked: Amounts) -> None:
        """Let what waits, and could start if there was room, claim what it is due.

        In each scope that stays within its guarantee with it and with what has claimed
        before. What waits for something else than room claims nothing.
        """
        self._settle()
        self.withdraw(name)
        found = tuple(
            (account, amount)
            for scope in self.chain(path).scopes
            if scope.is_entitled(asked, claims=True)
            for slot, account in scope.accounts.items()
            if account.guaranteed and (amount := asked.get(slot, 0))
        )
        for account, amount in found:
            account.change(claimed=amount)
        if found:
            # Many who wait claim the same.
            self._claims[name] = self._known.setdefault(found, found)

    def withdraw(self, name: str) -> None:
        """Forget a claim, if there is one."""
        self._settle()
        for account, amount in self._claims.pop(name, ()):
            account.change(claimed=-amount)

    # --- whether something may start -------------------------------------------------

    def is_within(self, path: Path, asked: Amounts) -> bool:
        """Tell whether no maximum is in the way of a request."""
        for slot, maximum, account in self.chain(path).limited:
            amount = asked.get(slot, 0)
            if amount and account.used + amount > maximum:
                return False
        return True

    def is_clear(
        self, chain: Chain, asked: Amounts, free: Amounts, *, stays: bool = False
    ) -> bool:
        """Tell quickly whether nobody could have anything against a request.

        If so, it may start; if not, it may all the same: :meth:`judge` knows.
        """
        for slot, maximum, account in chain.limited:
            if account.used + asked.get(slot, 0) > maximum:
                return False
        for slot, everybody in self._everybody.items():
            kept = everybody.idle if stays else everybody.due
            if (
                kept
                and (amount := asked.get(slot))
                and amount + kept > free.get(slot, 0)
            ):
                return False
        return True

    def judge(
        self, path: Path, asked: Amounts, free: Amounts, *, stays: bool = False
    ) -> Verdict:
        """Say whether a request may start in the *free* room of its group.

        One that *stays* could not be displaced again.
        """
        overruns = tuple(self._overruns(path, asked))
        entitled = self.entitled(path, asked)
        kept = self.kept_from(path, entitled, stays=stays)
        in_the_way = {
            slot: kept[slot]
            for slot, amount in asked.items()
            if amount and kept.get(slot, 0) and amount > free.get(slot, 0) - kept[slot]
        }
        return Verdict(entitled=entitled, overruns=overruns, kept=in_the_way)

    def _overruns(self, path: Path, asked: Amounts) -> Iterator[Overrun]:
        for scope in self.chain(path).scopes:
            for slot, account in scope.accounts.items():
                amount, used = asked.get(slot, 0), account.used
                maximum = account.maximum
                if amount and maximum is not None and used + amount > maximum:
                    yield Overrun(scope.path, slot, maximum, used, amount)

    def entitled(self, path: Path, asked: Amounts) -> tuple[Path, ...]:
        """Return the scopes that stay within their guarantees with a request."""
        return tuple(s.path for s in self.chain(path).scopes if s.is_entitled(asked))

    def kept_from(
        self, path: Path, entitled: Sequence[Path], *, stays: bool = False
    ) -> dict[str, int]:
        """Return the claims that come first: those of its siblings where it borrows.

        For who *stays*, all that its siblings are guaranteed and do not use.
        """
        kept: dict[str, int] = {}
        self._settle()
        if not (stays or self._claims):
            return kept
        for scope in self.chain(path).scopes:
            if scope.path in entitled:
                continue
            for slot, inside in scope.siblings.items():
                others = inside.idle if stays else inside.due
                own = scope.accounts.get(slot)
                if own is not None:
                    others -= own.idle if stays else own.due
                if others > 0:
                    kept[slot] = kept.get(slot, 0) + others
        return kept

    # --- who has to give back --------------------------------------------------------

    def borrowers(self, running: Iterable[Holding]) -> dict[str, dict[Path, set[str]]]:
        """Say of each session that borrows, in which of its scopes and which slots."""
        kept: dict[tuple[Path, str], int] = {}
        found: dict[str, dict[Path, set[str]]] = {}
        for holding in sorted(running, key=lambda h: (h.started, h.id)):
            for scope in _scopes(holding.path):
                for slot, amount in holding.held.items():
                    within = kept.get((scope, slot), 0) + amount
                    if amount and within > self.guaranteed(scope, slot):
                        borrowed = found.setdefault(holding.id, {})
                        borrowed.setdefault(scope, set()).add(slot)
                    else:
                        kept[scope, slot] = within
        return found

    def find_reclaimable(
        self,
        path: Path,
        asked: Amounts,
        running: Sequence[Holding],
        borrowers: Mapping[str, Mapping[Path, set[str]]] | None = None,
    ) -> list[tuple[Holding, set[str]]]:
        """List who would have to go for a request, and what of theirs it is due.

        The newest come first. Sessions of the same user are never among them. Who
        borrows is found out anew unless it is given.
        """
        entitled = self.entitled(path, asked)
        if not entitled:
            return []
        if borrowers is None:
            borrowers = self.borrowers(running)
        found = []
        for holding in sorted(running, key=lambda h: (-h.started, h.id)):
            ours, theirs = contenders(path, holding.path)
            if ours not in entitled:
                continue
            borrowed = borrowers.get(holding.id, {}).get(theirs, set())
            due = {s for s in borrowed if self.guaranteed(ours, s) and asked.get(s, 0)}
            if due:
                found.append((holding, due))
        return found

    def reclaim(
        self, path: Path, asked: Amounts, free: Amounts, running: Sequence[Holding]
    ) -> tuple[Holding, ...] | None:
        """Choose who goes so that a request within its guarantee can start.

        None if it is not entitled to what it lacks, or if a maximum is in the way;
        nobody goes then. An empty answer: there is room already. *free* is what the
        group has free in sum; whether one node has it together is for others to say.
        """
        verdict = self.judge(path, asked, free)
        if verdict.overruns:
            return None
        kept = self.kept_from(path, verdict.entitled)
        lacking = {
            slot: lack
            for slot, amount in asked.items()
            if amount and (lack := amount + kept.get(slot, 0) - free.get(slot, 0)) > 0
        }
        victims: list[Holding] = []
        missing = dict(lacking)
        for holding, due in self.find_reclaimable(path, asked, running):
            if not any(missing.get(slot, 0) > 0 for slot in due):
                continue
            victims.append(holding)
            for slot, amount in holding.held.items():
                missing[slot] = missing.get(slot, 0) - amount
        if any(missing[slot] > 0 for slot in lacking):
            return None
        return tuple(_needed(victims, lacking))


@lru_cache(maxsize=4096)
def _scopes(path: Path) -> tuple[Path, ...]:
    """Return the scopes that a user's path goes through, the widest first."""
    return tuple(path[:depth] for depth in range(1, len(path) + 1))


def contenders(ours: Path, theirs: Path) -> tuple[Path, Path]:
    """Return the siblings in which two paths part; the root if they do not."""
    for depth in range(1, min(len(ours), len(theirs)) + 1):
        if ours[:depth] != theirs[:depth]:
            return ours[:depth], theirs[:depth]
    return (), ()


def _needed(victims: Sequence[Holding], lacking: Amounts) -> Iterator[Holding]:
    """Spare those whom the others make unnecessary, the oldest first."""
    spare = {
        slot: sum(v.held.get(slot, 0) for v in victims) - lack
        for slot, lack in lacking.items()
    }
    for victim in reversed(victims):
        if all(victim.held.get(slot, 0) <= extra for slot, extra in spare.items()):
            for slot in spare:
                spare[slot] -= victim.held.get(slot, 0)
        else:
            yield victim
