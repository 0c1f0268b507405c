"""Quotas that are in nobody's way cost little and change nothing."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.quota_tree import QuotaTree
from backendai_hub.scheduling.snapshot import GroupPolicy, PendingSession, ScopeQuota
from tests.unit.scheduling_snapshots import gpu, host, node, pending, snapshot

GPU = "cuda.device"
OWNER, OTHER = ("a", "x", "1"), ("b", "y", "2")


def wants(name: str, user: str, gpus: int) -> PendingSession:
    scopes = (
        (ScopeKind.DOMAIN, "a"),
        (ScopeKind.PROJECT, "x"),
        (ScopeKind.USER, user),
    )
    return pending(name, user=user, gpus=gpus, scopes=scopes)


def test_quotas_that_nobody_reaches_change_neither_the_plan_nor_its_words():
    nodes = [node("n", host(8), *(gpu(f"g{i}") for i in range(4)))]
    # Who has room between two who ask for the same leaves less to both.
    queue = [
        wants("first", "alice", 2),
        wants("second", "alice", 3),
        wants("third", "bob", 1),
        wants("fourth", "bob", 3),
    ]
    vast = ScopeQuota(maximum={GPU: 100 * MILLI})
    quotas = {("a",): vast, ("a", "x"): vast}

    plain = plan(snapshot(nodes, queue, policy=GroupPolicy()))
    with_quotas = plan(snapshot(nodes, queue, policy=GroupPolicy(quotas=quotas)))

    assert [p.session for p in plain.placements] == ["first", "third"]
    assert with_quotas == plain


def test_users_without_quotas_of_their_own_are_reckoned_with_as_their_project():
    some = ScopeQuota(guaranteed={GPU: 1})
    tree = QuotaTree({("a", "x"): some})
    assert tree.chain(("a", "x", "1")) is tree.chain(("a", "x", "2"))
    assert tree.chain(("a", "x", "1")) is not tree.chain(("a", "y", "3"))

    tree = QuotaTree({("a", "x"): some, ("a", "x", "1"): some})
    assert tree.chain(("a", "x", "1")) is not tree.chain(("a", "x", "2"))


def test_what_others_are_due_is_less_soon_after_they_have_got_it():
    tree = QuotaTree({("a",): ScopeQuota(guaranteed={GPU: 100})})
    for number in range(100):
        tree.claim(str(number), OWNER, {GPU: 1})
    mine, others = tree.chain(OWNER), tree.chain(OTHER)
    assert not tree.is_clear(others, {GPU: 1}, {GPU: 50})
    for number in range(64):
        tree.count(mine, {GPU: 1}, str(number))
    # Nobody has asked what anybody is due, but this many are not left for later.
    assert tree.is_clear(others, {GPU: 1}, {GPU: 37})
    assert not tree.is_clear(others, {GPU: 1}, {GPU: 36})


def test_who_has_been_counted_claims_nothing_any_more():
    tree = QuotaTree({("a",): ScopeQuota(guaranteed={GPU: 3})})
    tree.claim("first", OWNER, {GPU: 1})
    tree.claim("second", OWNER, {GPU: 1})
    tree.count(tree.chain(OWNER), {GPU: 1}, "first")
    assert tree.kept_from(OTHER, ()) == {GPU: 1}


class Counting(RuleBasedStateMachine):
    """Who is counted at once is the same as taken one by one."""

    @initialize(data=st.data())
    def begin(self, data):
        amounts = st.fixed_dictionaries({GPU: st.integers(1, 5), "cpu": st.just(2)})
        paths = [("a",), ("b",), ("a", "x"), ("a", "x", "1")]
        quotas = {
            path: ScopeQuota(guaranteed=data.draw(amounts), maximum=data.draw(amounts))
            for path in data.draw(st.sets(st.sampled_from(paths), min_size=1))
        }
        self.quick, self.slow = QuotaTree(quotas), QuotaTree(quotas)
        self.number = 0

    owners = st.sampled_from([OWNER, OTHER, ("a", "x", "3"), ("a", "y", "4")])
    asked = st.fixed_dictionaries({GPU: st.integers(0, 2), "cpu": st.integers(0, 1)})

    @rule(owner=owners, asked=asked)
    def claim(self, owner, asked):
        self.number += 1
        self.quick.claim(str(self.number), owner, asked)
        self.slow.claim(str(self.number), owner, asked)

    @rule(owner=owners, asked=asked, claims=st.booleans())
    def take(self, owner, asked, claims):
        if claims:
            self.claim(owner, asked)
        name = str(self.number) if claims else ""
        self.quick.count(self.quick.chain(owner), asked, name)
        self.slow.take(owner, asked, name)

    @rule(owner=owners, asked=asked, most=st.integers(0, 6), stays=st.booleans())
    def ask(self, owner, asked, most, stays):
        free = {GPU: most, "cpu": most}
        chain = self.quick.chain(owner)
        is_clear = self.quick.is_clear(chain, asked, free, stays=stays)
        verdict = self.slow.judge(owner, asked, free, stays=stays)
        assert verdict.may_start or not is_clear
        assert self.quick.judge(owner, asked, free, stays=stays) == verdict
        kept = self.slow.kept_from(owner, (), stays=stays)
        assert self.quick.kept_from(owner, (), stays=stays) == kept


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=60, stateful_step_count=20)
