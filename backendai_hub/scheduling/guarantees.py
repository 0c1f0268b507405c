"""What the scopes of one group are guaranteed and may have at most, during a pass.

The rules are those of :mod:`.quota_tree`; here they meet the queue, the nodes and what
runs. A claim is on room anywhere in the group: who insists on certain nodes, or asks
for what no node that is open could ever give, claims none beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import ResourceSlots, describe_amount
from backendai_hub.scheduling.cluster import Cluster, Mask
from backendai_hub.scheduling.quota_accounts import Chain
from backendai_hub.scheduling.quota_tree import (
    Holding,
    Overrun,
    QuotaTree,
    contenders,
)
from backendai_hub.scheduling.shares import Amounts, Path, path_of
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    PendingSession,
    RunningSession,
    ScopeKey,
    ScopeQuota,
)

_KINDS = (ScopeKind.DOMAIN, ScopeKind.PROJECT, ScopeKind.USER)
_NO_LIMIT = 1 << 80
_MOST_KNOWN = 4096
"""Of so many requests it is kept what they count; a long queue may share none."""


class Guarantees:
    """The quota tree of one line's nodes, kept up while the pass decides."""

    def __init__(
        self,
        cluster: Cluster,
        policy: GroupPolicy,
        running: Iterable[RunningSession],
        names: Mapping[ScopeKey, str],
    ) -> None:
        self._cluster, self._policy, self._names = cluster, policy, names
        self._tree = QuotaTree(policy.quotas)
        self._free: Amounts = cluster.sum_up()
        self._running = {r.id: r for r in running if not r.system}
        self._holdings = [_holding(r) for r in self._running.values()]
        self._path = {holding.id: holding.path for holding in self._holdings}
        for holding in self._holdings:
            self._tree.take(holding.path, holding.held)
        self._borrowers = self._tree.borrowers(self._holdings)
        self._expected: dict[str, tuple[Path, Amounts]] = {}
        """Who is about to get room, and counts as if they had it."""
        self._ever: dict[tuple[object, ...], bool] = {}
        self._quick: dict[tuple[int, ...], bool] = {}
        self._owners: dict[int, tuple[str, Path, Chain, object]] = {}
        self._seen: PendingSession | None = None
        """Who has been looked up last."""
        self._last: tuple[Path, Amounts, Chain] = ((), {}, Chain((), (), ()))
        self._amounts: dict[int, tuple[Amounts, object]] = {}

    # --- who waits ---------------------------------------------------------------

    def claim(self, session: PendingSession) -> None:
        """Let *session*, which waits for room and nothing else, claim its due."""
        path, asked, _ = self._look_up(session)
        constrained = session.labels or (session.nodes and session.only_nodes)
        if constrained or not self._tree.entitled(path, asked):
            return
        if self._tree.is_within(path, asked) and self._could_ever(session):
            self._tree.claim(session.id, path, asked)

    def withdraw(self, session: PendingSession) -> None:
        """Forget what *session* claims: it waits for something else, or has room."""
        self._tree.withdraw(session.id)

    def expect(self, session: PendingSession) -> None:
        """Count *session* as if it had room: it is kept, or others leave for it."""
        if session.id not in self._expected:
            path, asked, _ = self._look_up(session)
            self._expected[session.id] = path, asked
            self._tree.take(path, asked, session.id)

    def take(self, session: PendingSession) -> None:
        """Count *session*, which has got room."""
        if self._expected and self._expected.pop(session.id, None) is not None:
            return
        _, asked, chain = self._look_up(session)
        self._tree.count(chain, asked, session.id)

    def _look_up(self, session: PendingSession) -> tuple[Path, Amounts, Chain]:
        """Name the user of a session, and return what counts of it, and where."""
        if self._seen is session:
            return self._last
        self._seen = session
        # This is what each decision costs, so it makes no calls for what is known.
        owner = self._owners.get(id(session.scopes))
        if owner is None or owner[0] != session.owner_id:
            owner = self._read_owner(session)
        _, path, chain, _ = owner
        amounts = session.request if session.charge is None else session.charge
        known = self._amounts.get(id(amounts)) or self._read_amounts(amounts)
        self._last = last = path, known[0], chain
        return last

    def _read_owner(self, session: PendingSession) -> tuple[str, Path, Chain, object]:
        """Name the user of a session, and return the scopes that they are in."""
        if len(self._owners) > _MOST_KNOWN:
            self._owners.clear()
        path, scopes = path_of(session), session.scopes
        # Kept beside them, so that nothing else gets their identity.
        owner = session.owner_id, path, self._tree.chain(path), scopes
        self._owners[id(scopes)] = owner
        return owner

    def _read_amounts(self, amounts: ResourceSlots) -> tuple[Amounts, object]:
        """Return what counts of a session, in what is quickest to look things up in."""
        if len(self._amounts) > _MOST_KNOWN:
            self._amounts.clear()
        # Kept beside it, so that nothing else gets its identity.
        known = self._amounts[id(amounts)] = dict(amounts.items()), amounts
        return known

    @contextmanager
    def _without(self, session: PendingSession) -> Iterator[None]:
        """Reckon as if *session* were not expected: it is about to take that itself."""
        expected = self._expected.get(session.id)
        if expected is None:
            yield
            return
        self._tree.give(*expected)
        yield
        self._tree.take(*expected)

    def _could_ever(self, session: PendingSession) -> bool:
        """Tell whether the nodes that are open could run it if they were empty."""
        # The snapshot keeps these objects, so their identities stay their own.
        quick = (
            id(session.request),
            id(session.references),
            id(session.architecture),
            id(session.group),
            id(session.members),
        )
        known = self._quick.get(quick)
        if known is None:
            if len(self._quick) > _MOST_KNOWN:
                self._quick.clear()
            known = self._quick[quick] = self._could(session)
        return known

    def _could(self, session: PendingSession) -> bool:
        cluster = self._cluster
        key = (
            session.request,
            frozenset(session.references),
            session.architecture,
            session.group,
            session.members,
        )
        known = self._ever.get(key)
        if known is None:
            asked = [m.request for m in session.members] or [session.request]
            able = cluster.able(session) & cluster.open
            known = self._ever[key] = all(self._fits_in(able, one) for one in asked)
        return known

    def _fits_in(self, able: Mask, request: ResourceSlots) -> bool:
        mask = able.copy()
        for slot, amount in request.items():
            mask &= self._cluster.fits(slot, amount, ever=True)
        return bool(mask.any())

    # --- who may start -------------------------------------------------------------

    def is_entitled(self, session: PendingSession) -> bool:
        """Tell whether some scope of *session* stays within its guarantee with it."""
        path, asked, _ = self._look_up(session)
        with self._without(session):
            return bool(self._tree.entitled(path, asked))

    def refuse(self, session: PendingSession) -> str:
        """Say why *session* may not start whatever room there is; empty if it may."""
        path, asked, chain = self._look_up(session)
        stays = not session.preemptible
        free = self._free
        if session.id not in self._expected:
            if self._tree.is_clear(chain, asked, free, stays=stays):
                return ""
            verdict = self._tree.judge(path, asked, free, stays=stays)
        else:
            with self._without(session):
                verdict = self._tree.judge(path, asked, free, stays=stays)
        if verdict.may_start:
            return ""
        parts = [self._tell_overrun(one) for one in verdict.overruns]
        parts += self._tell_kept(asked, verdict.kept, stays=stays)
        return "; ".join(parts)

    def left(self, session: PendingSession, slot: str) -> int:
        """Return how much of *slot* neither maxima nor claims keep from *session*."""
        path, _, _ = self._look_up(session)
        most = _NO_LIMIT
        due = 0
        for depth in range(1, len(path) + 1):
            scope = path[:depth]
            quota = self._policy.quotas.get(scope, ScopeQuota())
            used = self._tree.used(scope, slot)
            due = max(due, quota.guaranteed.get(slot, 0) - used)
            if slot in quota.maximum:
                most = min(most, quota.maximum[slot] - used)
        kept = self._tree.kept_from(path, (), stays=not session.preemptible)
        if slot not in kept:
            return most
        return min(most, max(due, self._free.get(slot, 0) - kept[slot]))

    def overruns(self, session: PendingSession) -> tuple[Overrun, ...]:
        """Return the maxima in the way of *session*, if nothing else of these is."""
        path, asked, _ = self._look_up(session)
        with self._without(session):
            verdict = self._tree.judge(
                path, asked, self._free, stays=not session.preemptible
            )
        return () if verdict.kept else verdict.overruns

    def name_of(self, path: Path) -> str:
        """Return what people call a scope."""
        return self._names.get((_KINDS[len(path) - 1], path[-1]), path[-1])

    def _tell_overrun(self, one: Overrun) -> str:
        kind = _KINDS[len(one.path) - 1]
        used, most, asked = (
            describe_amount(one.slot, n) for n in (one.used, one.maximum, one.asked)
        )
        return (
            f"{kind} {self.name_of(one.path)}: {one.slot} {used} of at most {most} in"
            f" use in this group, asks {asked}"
        )

    def _tell_kept(
        self, asked: Amounts, kept: Amounts, *, stays: bool
    ) -> Iterator[str]:
        for slot, amount in kept.items():
            free = describe_amount(slot, self._free.get(slot, 0))
            due = describe_amount(slot, amount)
            told = (
                f"{slot}: asks {describe_amount(slot, asked[slot])}; of {free} free,"
                f" {due} is guaranteed to others"
            )
            if stays:
                yield f"{told}, and who may not be displaced does not borrow it"
            else:
                yield f"{told} who wait for it"

    # --- who has to go -------------------------------------------------------------

    def find_reclaimable(
        self, session: PendingSession
    ) -> list[tuple[RunningSession, set[str]]]:
        """List who borrows what *session* is due, and which slots; the newest first."""
        path, asked, _ = self._look_up(session)
        found = self._tree.find_reclaimable(
            path, asked, self._holdings, self._borrowers
        )
        return [(self._running[holding.id], due) for holding, due in found]

    def protects(self, other: RunningSession, session: PendingSession) -> bool:
        """Tell whether *other* is within a guarantee that *session* has no part in.

        Then nobody's job priority displaces it.
        """
        path = self._path.get(other.id)
        if path is None:
            return True
        _, theirs = contenders(self._look_up(session)[0], path)
        quota = self._policy.quotas.get(theirs)
        if quota is None:
            return False
        borrowed = self._borrowers.get(other.id, {}).get(theirs, set())
        held = {share.slot for _, shares in other.holdings for share in shares}
        return any(n and s in held - borrowed for s, n in quota.guaranteed.items())


def _holding(running: RunningSession) -> Holding:
    scopes = dict(running.scopes)
    held: dict[str, int] = {}
    for _, shares in running.holdings:
        for share in shares:
            held[share.slot] = held.get(share.slot, 0) + share.amount
    return Holding(
        id=running.id,
        path=(
            scopes.get(ScopeKind.DOMAIN, ""),
            scopes.get(ScopeKind.PROJECT, ""),
            scopes.get(ScopeKind.USER, running.owner_id),
        ),
        held=held,
        started=running.started,
    )
