"""What is promised over time is kept, whatever people ask for and however it ends.

A small world goes on pass by pass: sessions come, run for less than they have declared
or exactly as long, and go. Devices are counted here by themselves, not by the plan.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.plan import Pass, plan
from backendai_hub.scheduling.scoring import Demand, FloatVector, IntVector
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    PendingSession,
    Placement,
    RunningSession,
    Snapshot,
)
from backendai_hub.scheduling.strategies import RankedScorer
from tests.unit.scheduling_snapshots import (
    PLACEMENTS,
    SEQUENCERS,
    ask,
    cluster_of,
    gpu,
    host,
    node,
    pending,
    shared,
    snapshot,
)


class World:
    """Nodes, who runs on them, and who waits."""

    def __init__(self, nodes: list[Any], policy: GroupPolicy) -> None:
        self.nodes, self.policy = nodes, policy
        self.now = 0
        self.queue: list[PendingSession] = []
        self.running: dict[str, tuple[RunningSession, int]] = {}
        self.promised: dict[str, int] = {}
        self.reserved: tuple[Any, ...] = ()
        self.lasts: dict[str, int] = {}

    def snapshot(self) -> Snapshot:
        used: dict[tuple[str, str], int] = {}
        for session, _ in self.running.values():
            for _, shares in session.holdings:
                for share in shares:
                    key = (share.device, share.slot)
                    used[key] = used.get(key, 0) + share.amount
        nodes = []
        for place in self.nodes:
            devices = []
            for device in place.devices:
                free = {
                    s: n - used.get((device.id, s), 0) for s, n in device.total.items()
                }
                assert all(n >= 0 for n in free.values()), "overbooked"
                devices.append(replace(device, free=free))
            nodes.append(replace(place, devices=tuple(devices)))
        return snapshot(
            nodes,
            self.queue,
            policy=self.policy,
            now=self.now,
            running=tuple(s for s, _ in self.running.values()),
            reserved=self.reserved,
        )

    def step(self) -> None:
        """Let end who ends now, and decide."""
        gone = [n for n, (_, ends) in self.running.items() if ends <= self.now]
        for name in gone:
            del self.running[name]
        given_ = self.snapshot()
        decided = plan(given_)
        assert plan(given_) == decided
        waiting = {s.id: s for s in self.queue}
        for placement in decided.placements:
            self._start(waiting.pop(placement.session), placement)
        self.queue = [s for s in self.queue if s.id in waiting]
        for name, starts in self.promised.items():
            assert name not in waiting or self.now < starts, "a promise is broken"
        for one in decided.reservations:
            if one.starts is not None:
                before = self.promised.get(one.session, one.starts)
                assert one.starts <= before, "a promise is put off"
                self.promised[one.session] = one.starts
        self.reserved = decided.reservations

    def _start(self, session: PendingSession, placement: Placement) -> None:
        parts = placement.members or (placement,)
        running = RunningSession(
            id=session.id,
            owner_id=session.owner_id,
            scopes=session.scopes,
            holdings=tuple((p.node, p.shares) for p in parts),
            started=self.now,
            ends=None if session.lifetime is None else self.now + session.lifetime,
        )
        self.running[session.id] = running, self.now + self.lasts[session.id]


@st.composite
def jobs(draw: Any) -> tuple[PendingSession, int, int]:
    """A session, when it comes, and how long it runs really."""
    lifetime = draw(st.integers(1, 4))
    name = f"s{draw(st.uuids())}"
    gpus = draw(st.integers(1, 3))
    comes = draw(st.integers(0, 6))
    if draw(st.integers(0, 4)) == 0:
        layout = draw(st.sampled_from(["one-node", "spread", "pack"]))
        session = cluster_of(name, ask(gpus=gpus), ask(gpus=1), layout=layout)
    else:
        session = pending(name, gpus=gpus, cpu=draw(st.integers(0, 2)))
    session = replace(session, lifetime=lifetime, since=comes)
    return session, comes, draw(st.integers(1, lifetime))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(jobs(), min_size=2, max_size=9, unique_by=lambda j: j[0].id),
    st.lists(st.integers(1, 3), min_size=1, max_size=2),
    st.sampled_from(PLACEMENTS),
    st.sampled_from(SEQUENCERS),
    st.integers(0, 2),
)
def test_a_promised_start_is_kept_and_never_put_off(
    coming: Any, sizes: list[int], placement: str, sequencer: str, after: int
):
    nodes = [
        node(f"n{i}", host(3), *(gpu(f"n{i}/{j}") for j in range(size)))
        for i, size in enumerate(sizes)
    ]
    policy = GroupPolicy(placement=placement, sequencer=sequencer, reserve_after=after)
    world = World(nodes, policy)
    for world.now in range(24):
        for session, comes, lasts in coming:
            if comes == world.now:
                world.queue.append(session)
                world.lasts[session.id] = lasts
        world.step()
    # Everybody has been served but those who never could be.
    for session in world.queue:
        alone = plan(snapshot(nodes, [session], policy=policy))
        assert not alone.placements


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from([0.25, 0.5, 1, 2]), st.integers(0, 100)
        ),
        max_size=12,
    ),
    st.sampled_from(PLACEMENTS),
    st.sampled_from(SEQUENCERS),
    st.integers(1, 4),
)
def test_a_pass_in_pieces_decides_what_a_whole_one_does(
    asked: Any, placement: str, sequencer: str, piece: int
):
    nodes = [node(f"n{i}", host(4), shared(f"{i}/0"), shared(f"{i}/1")) for i in "ab"]
    queue = [
        pending(f"s{i}", user=f"u{i % 3}", cpu=cpu, shares=part, priority=priority)
        for i, (cpu, part, priority) in enumerate(asked)
    ]
    policy = GroupPolicy(placement=placement, sequencer=sequencer)
    given_ = snapshot(nodes, queue, policy=policy)
    whole = plan(given_)
    pieces, one = Pass(given_), None
    placements: list[Any] = []
    waiting: dict[str, str] = {}
    while one is None or not one.complete:
        one = pieces.run(piece)
        assert one.decided <= piece
        placements += one.placements
        waiting |= one.waiting
    assert (tuple(placements), waiting) == (whole.placements, whole.waiting)
    # Nobody got ahead of a higher priority that the same room would have served.
    for shares in (s for p in placements for s in p.shares):
        assert shares.amount <= MILLI or shares.slot == "cpu"


def test_a_limit_may_be_a_number_or_a_question():
    nodes = [node("a", host(64))]
    queue = [pending(f"s{i}", cpu=1) for i in range(10)]
    assert len(plan(snapshot(nodes, queue), limit=3).placements) == 3
    asked: list[int] = []

    def enough(decided: int) -> bool:
        asked.append(decided)
        return decided == 4

    decided = plan(snapshot(nodes, queue), limit=enough)
    assert (decided.decided, decided.complete, asked) == (4, False, [0, 1, 2, 3, 4])
    assert not decided.waiting


def test_nodes_with_nothing_at_all_are_no_trouble():
    bare = node("a")
    decided = plan(snapshot([bare, node("b", host(0, mem=0))], [pending(cpu=1)]))
    assert decided.placements == ()
    assert "cpu: asks 1, 0 free" in decided.waiting["s"]


def test_who_asks_for_nothing_starts_anywhere():
    assert len(plan(snapshot([node("a")], [pending()])).placements) == 1


def count_scored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many nodes are scored each time that some are."""
    scored: list[int] = []
    score = RankedScorer.score

    def note(scorer: RankedScorer, demand: Demand, rows: IntVector) -> FloatVector:
        scored.append(len(rows))
        return score(scorer, demand, rows)

    monkeypatch.setattr(RankedScorer, "score", note)
    return scored


def test_a_hundred_thousand_waiting_are_one_bounded_pass(
    monkeypatch: pytest.MonkeyPatch,
):
    scored = count_scored(monkeypatch)
    nodes = [node(f"n{i}", host(4), gpu(f"n{i}/0")) for i in range(20)]
    requests = [ask(gpus=1 + i % 3, cpu=i % 5) for i in range(15)]
    queue = [
        pending(f"s{i}", user=f"u{i % 500}", request=requests[i % 15])
        for i in range(100_000)
    ]
    policy = GroupPolicy(sequencer="fair-share", reserve_after=0)
    decided = plan(snapshot(nodes, queue, policy=policy, now=10))
    assert len(decided.placements) == 20
    assert len(decided.waiting) == 99_980
    # One for each request, and another where devices have been kept meanwhile.
    reasons = {id(reason) for reason in decided.waiting.values()}
    assert len(reasons) <= 2 * len(requests)
    looks = len(decided.placements) + 2 * len(requests)
    assert sum(scored) <= len(nodes) * looks, "not for everybody who waits"
