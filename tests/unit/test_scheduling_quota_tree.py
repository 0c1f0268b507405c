"""Guarantees, borrowing and giving back, told as small groups with few GPUs."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from backendai_hub.scheduling.quota_tree import Holding, Overrun, QuotaTree, ScopeQuota

A, B, C = ("a", "p", "1"), ("b", "q", "2"), ("c", "r", "3")
GPU = "cuda.device"


def gpus(count: int) -> dict[str, int]:
    return {GPU: count}


def guarantee(*paths: tuple[str, ...], **slots: int) -> dict[Any, ScopeQuota]:
    return {path: ScopeQuota(guaranteed=slots or gpus(2)) for path in paths}


def run(path: tuple[str, ...], count: int, started: int = 0, **more: int) -> Holding:
    return Holding(
        id=f"{''.join(path)}{started}",
        path=path,
        held={**gpus(count), **more},
        started=started,
    )


def tree_of(quotas: Any, *running: Holding) -> QuotaTree:
    tree = QuotaTree(quotas)
    for holding in running:
        tree.take(holding.path, holding.held)
    return tree


def ids(holdings: Any) -> list[str] | None:
    return None if holdings is None else [h.id for h in holdings]


# --- whether something may start -----------------------------------------------------


def test_without_any_guarantee_everybody_borrows_what_is_free():
    verdict = QuotaTree({}).judge(A, gpus(9), gpus(9))

    assert verdict.may_start
    assert verdict.entitled == ()


def test_what_is_within_a_guarantee_is_entitled():
    tree = tree_of(guarantee(("a",)), run(A, 1))

    assert tree.judge(A, gpus(1), gpus(9)).entitled == (("a",),)
    assert tree.judge(A, gpus(2), gpus(9)).entitled == ()


def test_a_scope_is_not_entitled_to_what_it_is_not_guaranteed():
    tree = QuotaTree(guarantee(("a",)))

    assert tree.judge(A, {"cpu": 1}, {"cpu": 9}).entitled == ()
    assert tree.judge(A, {"cpu": 99, **gpus(1)}, {"cpu": 9}).entitled == (("a",),)


def test_a_guarantee_of_a_project_or_user_counts_for_itself():
    tree = QuotaTree(guarantee(("a", "p"), A))

    assert tree.judge(A, gpus(2), gpus(9)).entitled == (("a", "p"), A)


def test_idle_guarantees_may_be_borrowed():
    tree = QuotaTree(guarantee(("a",), ("b",)))

    assert tree.judge(C, gpus(4), gpus(4)).may_start


def test_nobody_borrows_what_waits_for_its_guarantee():
    tree = QuotaTree(guarantee(("a",), ("b",)))
    tree.claim("first", A, gpus(2))

    refused = tree.judge(C, gpus(3), gpus(4))
    assert not refused.may_start
    assert refused.kept == gpus(2)
    assert tree.judge(C, gpus(2), gpus(4)).may_start
    assert tree.judge(B, gpus(2), gpus(2)).may_start, "its own guarantee"
    assert tree.judge(A, gpus(2), gpus(2)).may_start, "the claim is its own domain's"


def test_a_claim_keeps_only_what_it_is_made_of():
    tree = QuotaTree(guarantee(("a",)))
    tree.claim("first", A, {**gpus(2), "cpu": 5})

    assert tree.judge(C, {"cpu": 9}, {"cpu": 9}).may_start
    assert not tree.judge(C, {"cpu": 9, **gpus(1)}, {"cpu": 9, **gpus(2)}).may_start


def test_what_does_not_fit_into_a_guarantee_claims_nothing():
    tree = QuotaTree(guarantee(("a",)))
    tree.claim("too much", A, gpus(3))

    assert tree.judge(C, gpus(4), gpus(4)).may_start


def test_claims_of_a_scope_go_no_further_than_its_guarantee():
    tree = QuotaTree(guarantee(("a",)))
    for name in ("one", "two", "three"):
        tree.claim(name, A, gpus(1))

    assert tree.judge(C, gpus(2), gpus(4)).may_start
    assert not tree.judge(C, gpus(3), gpus(4)).may_start


def test_a_claim_ends_when_it_is_fulfilled_or_withdrawn():
    tree = QuotaTree(guarantee(("a",), ("b",)))
    tree.claim("first", A, gpus(2))
    tree.claim("second", B, gpus(2))

    tree.take(A, gpus(2), "first")
    tree.withdraw("second")

    assert tree.judge(C, gpus(2), gpus(2)).may_start
    assert tree.used(("a",), GPU) == 2


def test_what_has_started_claims_nothing_beside_what_it_holds():
    tree = QuotaTree({("a",): ScopeQuota(guaranteed=gpus(4))})
    tree.claim("first", A, gpus(2))
    tree.take(A, gpus(2), "first")

    assert tree.judge(C, gpus(2), gpus(2)).may_start


def test_what_does_not_fit_beside_other_claims_claims_nothing():
    tree = QuotaTree({("a",): ScopeQuota(guaranteed={**gpus(2), "cpu": 5})})
    tree.claim("first", A, gpus(2))
    tree.claim("second", A, {**gpus(1), "cpu": 5})

    assert tree.judge(C, {"cpu": 5}, {"cpu": 5}).may_start


def test_a_claim_is_worth_no_more_than_what_is_left_of_the_guarantee():
    tree = QuotaTree(guarantee(("a",)))
    tree.claim("first", A, gpus(2))
    tree.take(("a", "p", "other"), gpus(1))

    assert tree.judge(C, gpus(3), gpus(4)).may_start
    assert not tree.judge(C, gpus(4), gpus(4)).may_start


def test_claiming_twice_is_claiming_once():
    tree = QuotaTree(guarantee(("a",)))
    tree.claim("first", A, gpus(1))
    tree.claim("first", A, gpus(1))

    assert tree.judge(C, gpus(3), gpus(4)).may_start


def test_siblings_contend_and_cousins_do_not():
    tree = QuotaTree(guarantee(("a",), ("a", "p")))
    tree.claim("first", A, gpus(1))

    # Another project of the domain leaves room for it; another domain does, too.
    assert not tree.judge(("a", "x", "9"), gpus(4), gpus(4)).may_start
    assert not tree.judge(C, gpus(4), gpus(4)).may_start
    # Within the project nobody is guaranteed more than others.
    assert tree.judge(("a", "p", "9"), gpus(2), gpus(2)).may_start


def test_whose_turn_it_is_within_a_scope_is_not_a_matter_of_claims():
    tree = QuotaTree(guarantee(("a",)))
    tree.claim("first", A, gpus(2))

    assert tree.judge(("a", "p", "9"), gpus(3), gpus(3)).may_start


def test_no_maximum_is_passed_at_any_level():
    quotas = {
        ("a",): ScopeQuota(maximum=gpus(3)),
        A: ScopeQuota(maximum=gpus(1), guaranteed=gpus(2)),
    }
    tree = tree_of(quotas, run(("a", "x", "9"), 2))

    assert tree.judge(A, gpus(1), gpus(9)).may_start
    assert tree.judge(A, gpus(2), gpus(9)).overruns == (
        Overrun(("a",), GPU, 3, 2, 2),
        Overrun(A, GPU, 1, 0, 2),
    )
    assert tree.judge(A, {"cpu": 9}, {"cpu": 9}).may_start, "no maximum for it"


# --- who borrows ---------------------------------------------------------------------


def test_the_oldest_are_within_the_guarantee_and_the_rest_borrow():
    tree = QuotaTree(guarantee(("a",)))
    running = [run(A, 1, 3), run(A, 1, 1), run(A, 1, 2)]

    borrowers = tree.borrowers(running)

    assert ("a",) in borrowers["ap13"]
    assert ("a",) not in borrowers["ap11"]
    assert ("a",) not in borrowers["ap12"]


def test_a_session_that_is_larger_than_the_guarantee_borrows_all_of_it():
    tree = QuotaTree(guarantee(("a",)))

    borrowers = tree.borrowers([run(A, 3, 1), run(A, 2, 2)])

    assert borrowers["ap11"][("a",)] == {GPU}
    assert ("a",) not in borrowers["ap12"]


def test_who_is_guaranteed_nothing_borrows_everything():
    borrowers = QuotaTree({}).borrowers([run(A, 1, 1, cpu=2)])

    assert borrowers["ap11"][("a",)] == {GPU, "cpu"}


# --- who has to give back ------------------------------------------------------------


def test_the_newest_borrower_goes_first():
    old, new = run(C, 1, 1), run(C, 1, 2)
    tree = tree_of(guarantee(("a",)), old, new)

    assert ids(tree.reclaim(A, gpus(1), gpus(0), [old, new])) == ["cr32"]
    assert ids(tree.reclaim(A, gpus(2), gpus(0), [old, new])) == ["cr31", "cr32"]


def test_nobody_goes_while_there_is_room():
    borrower = run(C, 2)
    tree = tree_of(guarantee(("a",)), borrower)

    assert tree.reclaim(A, gpus(2), gpus(2), [borrower]) == ()


def test_who_is_within_their_guarantee_never_goes():
    within = run(B, 2)
    tree = tree_of(guarantee(("a",), ("b",)), within)

    assert tree.reclaim(A, gpus(2), gpus(0), [within]) is None


def test_who_is_not_entitled_reclaims_nothing():
    borrower = run(C, 4)
    tree = tree_of(guarantee(("a",)), borrower)

    assert tree.reclaim(A, gpus(3), gpus(0), [borrower]) is None
    assert tree.reclaim(B, gpus(1), gpus(0), [borrower]) is None


def test_what_is_not_guaranteed_is_not_reclaimed():
    borrower = run(C, 1, cpu=9)
    tree = tree_of(guarantee(("a",)), borrower)
    asked = {**gpus(1), "cpu": 4}

    assert tree.reclaim(A, asked, {"cpu": 0, **gpus(1)}, [borrower]) is None
    assert ids(tree.reclaim(A, asked, {"cpu": 4, GPU: 0}, [borrower])) == ["cr30"]


def test_one_who_has_enough_goes_alone():
    small, large = run(C, 1, 2), run(C, 3, 1)
    tree = tree_of(guarantee(("a",)), small, large)

    assert ids(tree.reclaim(A, gpus(2), gpus(0), [small, large])) == ["cr31"]


def test_a_project_reclaims_within_its_domain_only():
    sister, stranger = run(("a", "x", "9"), 2, 1), run(C, 2, 2)
    tree = tree_of(guarantee(("a", "p")), sister, stranger)

    # The domain is guaranteed nothing, so other domains owe it nothing.
    assert ids(tree.reclaim(A, gpus(2), gpus(0), [sister, stranger])) == ["ax91"]


def test_who_is_entitled_as_a_project_only_takes_nothing_from_other_domains():
    quotas = guarantee(("a", "p")) | {("a",): ScopeQuota(guaranteed=gpus(1))}
    sister, stranger = run(("a", "x", "9"), 2, 1), run(C, 2, 2)
    tree = tree_of(quotas, sister, stranger)

    assert ids(tree.reclaim(A, gpus(2), gpus(0), [sister, stranger])) == ["ax91"]
    assert tree.reclaim(A, gpus(2), gpus(0), [stranger]) is None


def test_what_is_reclaimed_has_to_do_beside_the_claims_of_others():
    # The domain holds more than it is guaranteed, so it leaves b what b waits for.
    sister = [run(("a", "x", "9"), 2, 1), run(("a", "x", "9"), 2, 2)]
    tree = tree_of(guarantee(("a", "p"), ("b",)), *sister)
    tree.claim("waits", B, gpus(2))

    assert ids(tree.reclaim(A, gpus(2), gpus(2), sister)) == ["ax92"]


def test_nobody_reclaims_from_themselves():
    own = run(A, 2, 1)
    tree = QuotaTree(guarantee(("a",)), {})

    assert tree.reclaim(A, gpus(2), gpus(0), [own]) is None


def test_a_maximum_is_no_reason_to_reclaim():
    quotas = {("a",): ScopeQuota(guaranteed=gpus(2), maximum=gpus(1))}
    borrower = run(C, 2)
    tree = tree_of(quotas, borrower)

    assert tree.reclaim(A, gpus(2), gpus(0), [borrower]) is None


# --- what is added up ----------------------------------------------------------------


class Sums(RuleBasedStateMachine):
    """What is kept for others is what all siblings are due, whatever has happened."""

    @initialize(data=st.data())
    def begin(self, data):
        amounts = st.dictionaries(st.sampled_from([GPU, "cpu"]), st.integers(0, 3))
        paths = [("a",), ("b",), ("a", "x"), ("a", "y"), ("a", "x", "1")]
        self.quotas = {
            path: ScopeQuota(guaranteed=data.draw(amounts), maximum=data.draw(amounts))
            for path in data.draw(st.sets(st.sampled_from(paths)))
        }
        self.tree = QuotaTree(self.quotas)
        self.used: dict[tuple[Any, str], int] = {}
        self.taken: list[tuple[Any, dict[str, int]]] = []
        self.claims: dict[str, tuple[list[Any], dict[str, int]]] = {}

    owners = st.sampled_from(["a/x/1", "a/x/2", "a/y/3", "b/z/4"])
    asked = st.dictionaries(st.sampled_from([GPU, "cpu", "mem"]), st.integers(0, 2))

    @rule(owner=owners, asked=asked)
    def take(self, owner, asked):
        path = tuple(owner.split("/"))
        self.tree.take(path, asked)
        self.count(path, asked, 1)
        self.taken.append((path, asked))

    @precondition(lambda self: self.taken)
    @rule()
    def give(self):
        path, held = self.taken.pop()
        self.tree.give(path, held)
        self.count(path, held, -1)

    def count(self, path, held, sign):
        for slot, amount in held.items():
            for depth in (1, 2, 3):
                key = path[:depth], slot
                self.used[key] = self.used.get(key, 0) + sign * amount

    @rule(
        owner=owners,
        asked=asked,
        name=st.sampled_from(["1", "2"]),
        fulfil=st.booleans(),
    )
    def claim(self, owner, asked, name, fulfil):
        path = tuple(owner.split("/"))
        self.claims.pop(name, None)
        self.tree.withdraw(name)
        scopes = [
            path[:depth]
            for depth in (1, 2, 3)
            if self.is_entitled(path[:depth], asked, claims=True)
        ]
        self.tree.claim(name, path, asked)
        if scopes:
            self.claims[name] = scopes, asked
        if fulfil:
            self.claims.pop(name, None)
            self.tree.take(path, asked, name)
            self.tree.give(path, asked)

    def due(self, path, slot):
        return self.quotas.get(path, ScopeQuota()).guaranteed.get(slot, 0)

    def claimed(self, path, slot):
        return sum(a.get(slot, 0) for s, a in self.claims.values() if path in s)

    def is_entitled(self, path, asked, *, claims=False):
        listed = [s for s, n in asked.items() if n and self.due(path, s)]
        beside = {s: self.claimed(path, s) if claims else 0 for s in listed}
        return bool(listed) and all(
            self.used.get((path, s), 0) + beside[s] + asked[s] <= self.due(path, s)
            for s in listed
        )

    def kept(self, path, *, stays):
        found: dict[str, int] = {}
        for depth in (1, 2, 3):
            for other in self.quotas:
                if other[:-1] != path[: depth - 1] or other == path[:depth]:
                    continue
                for slot in (GPU, "cpu"):
                    idle = self.due(other, slot) - self.used.get((other, slot), 0)
                    claimed = self.claimed(other, slot)
                    due = max(0, idle if stays else min(idle, claimed))
                    found[slot] = found.get(slot, 0) + due
        return {slot: amount for slot, amount in found.items() if amount}

    @rule(owner=owners, asked=asked, free=st.integers(0, 8), stays=st.booleans())
    def ask(self, owner, asked, free, stays):
        path, room = tuple(owner.split("/")), {GPU: free, "cpu": free, "mem": free}
        assert self.tree.kept_from(path, (), stays=stays) == self.kept(
            path, stays=stays
        )
        entitled = [
            path[:depth] for depth in (1, 2, 3) if self.is_entitled(path[:depth], asked)
        ]
        verdict = self.tree.judge(path, asked, room, stays=stays)
        assert list(verdict.entitled) == entitled
        if self.tree.is_clear(self.tree.chain(path), asked, room, stays=stays):
            assert verdict.may_start
        assert self.tree.is_within(path, asked) == (not verdict.overruns)


TestSums = Sums.TestCase
TestSums.settings = settings(max_examples=60, stateful_step_count=20)


# --- any history ---------------------------------------------------------------------

_USERS = ("a/x/1", "a/x/2", "a/y/3", "b/z/4", "c/w/5")
_TOTAL = 6
_SHARES = st.fixed_dictionaries(
    {
        ("a",): st.integers(0, 3),
        ("b",): st.integers(0, 3),
        ("a", "x"): st.integers(0, 2),
        ("a", "y"): st.integers(0, 1),
    }
)


class Group(RuleBasedStateMachine):
    """Sessions are submitted, started, displaced and ended in any order."""

    @initialize(shares=_SHARES, most=st.integers(2, 6))
    def begin(self, shares, most):
        self.quotas = {
            p: ScopeQuota(guaranteed=gpus(n)) for p, n in shares.items() if n
        }
        self.quotas[("c",)] = ScopeQuota(maximum=gpus(most))
        self.waiting: list[tuple[str, tuple[str, ...], int]] = []
        self.running: list[Holding] = []
        self.clock = 0
        self.settled = False

    def free(self) -> dict[str, int]:
        return gpus(_TOTAL - sum(h.held[GPU] for h in self.running))

    def tree(self) -> QuotaTree:
        tree = tree_of(self.quotas, *self.running)
        for name, path, count in self.waiting:
            tree.claim(name, path, gpus(count))
        return tree

    @precondition(lambda self: len(self.waiting) < 6)
    @rule(owner=st.sampled_from(_USERS), count=st.sampled_from([1, 1, 2, 3]))
    def submit(self, owner, count):
        self.clock += 1
        self.waiting.append((f"s{self.clock}", tuple(owner.split("/")), count))
        self.settled = False

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data):
        self.running.remove(data.draw(st.sampled_from(self.running)))
        self.settled = False

    @rule()
    def work_off(self):
        """Pass after pass until nothing moves; who is displaced waits again."""
        for _ in range(60):
            if not self.one_pass():
                self.settled = True
                return
        raise AssertionError("sessions displace each other for ever")

    def one_pass(self) -> bool:
        moved = False
        tree = self.tree()
        for entry in list(self.waiting):
            name, path, count = entry
            verdict = tree.judge(path, gpus(count), self.free())
            if not (verdict.may_start and self.free()[GPU] >= count):
                gone = self.displace(tree, path, count)
                if gone is None:
                    continue
                self.waiting += gone
            tree.take(path, gpus(count), name)
            self.waiting.remove(entry)
            self.clock += 1
            self.running.append(
                Holding(id=name, path=path, held=gpus(count), started=self.clock)
            )
            moved = True
        return moved

    def displace(self, tree, path, count):
        victims = tree.reclaim(path, gpus(count), self.free(), self.running)
        if not victims:
            return None
        within = self.within()
        gone = []
        for victim in victims:
            # Where their paths part, the victim was beyond the guarantee.
            depth = next(i for i in (1, 2, 3) if path[:i] != victim.path[:i])
            assert victim.id not in within.get(victim.path[:depth], set())
            assert victim.path != path
            self.running.remove(victim)
            tree.give(victim.path, victim.held)
            gone.append((victim.id, victim.path, victim.held[GPU]))
        assert self.free()[GPU] >= count
        return gone

    def within(self) -> dict[tuple[str, ...], set[str]]:
        """By definition: the oldest sessions that fit into each guarantee."""
        found: dict[tuple[str, ...], set[str]] = {}
        for scope, quota in self.quotas.items():
            left = quota.guaranteed.get(GPU, 0)
            for holding in sorted(self.running, key=lambda h: h.started):
                if holding.path[: len(scope)] == scope and holding.held[GPU] <= left:
                    left -= holding.held[GPU]
                    found.setdefault(scope, set()).add(holding.id)
        return found

    def held(self, scope: tuple[str, ...]) -> int:
        return sum(h.held[GPU] for h in self.running if h.path[: len(scope)] == scope)

    @invariant()
    def no_more_runs_than_there_is(self):
        assert not hasattr(self, "running") or self.free()[GPU] >= 0

    @invariant()
    def no_maximum_is_passed(self):
        for scope, quota in getattr(self, "quotas", {}).items():
            if GPU in quota.maximum:
                assert self.held(scope) <= quota.maximum[GPU]

    @invariant()
    def nobody_waits_for_what_they_are_guaranteed(self):
        """A domain that waits for something within its guarantee has got it already."""
        if not getattr(self, "settled", False):
            return
        for _, path, count in self.waiting:
            domain = path[:1]
            due = self.quotas.get(domain, ScopeQuota()).guaranteed.get(GPU, 0)
            assert self.held(domain) + count > due

    @invariant()
    def nothing_is_idle_that_somebody_could_use(self):
        if not getattr(self, "settled", False):
            return
        for _, path, count in self.waiting:
            most = self.quotas.get(path[:1], ScopeQuota()).maximum.get(GPU, _TOTAL)
            fits = self.free()[GPU] >= count and self.held(path[:1]) + count <= most
            assert not fits


TestGroup = Group.TestCase
TestGroup.settings = settings(max_examples=150, stateful_step_count=25)
