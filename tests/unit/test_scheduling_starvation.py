"""Whoever waits has a turn in the end, though narrow requests never stop coming.

The stream is one that keeps a device busy at every moment, and is less than what the
nodes can do: everybody could be served. Without reservations the wide ones never are.
"""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from backendai_hub.scheduling.snapshot import GroupPolicy, PendingSession
from tests.unit.scheduling_snapshots import ask, cluster_of, gpu, host, node, pending
from tests.unit.test_scheduling_promises import PLACEMENTS, SEQUENCERS, World

RUNS, EVERY = 3, 2
"""How long one of the stream runs, and how often one comes: 1.5 devices are busy."""
PASSES = 64
WIDE = ("alone", "spread", "pack", "one-node")


class Stream(World):
    """A node of two devices, and an endless stream of requests for one."""

    def __init__(self, policy: GroupPolicy, *, declared: bool, owners: int) -> None:
        super().__init__([node("n", host(64), gpu("n/0"), gpu("n/1"))], policy)
        self.lifetime = RUNS if declared else None
        self.owners = owners
        self.came: dict[str, int] = {}
        self.waited: dict[str, int] = {}

    def ask(self, session: PendingSession, lasts: int) -> None:
        """Have *session* wait from now on."""
        self.queue.append(replace(session, since=self.now))
        self.lasts[session.id] = lasts
        self.came[session.id] = self.now

    def go_on(self, wide: dict[int, PendingSession]) -> None:
        """Go on for many passes; some wide ones come at their times."""
        for self.now in range(PASSES):
            if self.now % EVERY == 0:
                owner = f"u{self.now // EVERY % self.owners}"
                narrow = pending(f"n{self.now}", gpus=1, user=owner)
                self.ask(replace(narrow, lifetime=self.lifetime), RUNS)
            if self.now in wide:
                self.ask(wide[self.now], 2)
            self.step()
            for name in self.running.keys() - self.waited.keys():
                self.waited[name] = self.now - self.came[name]


def wide_one(name: str, kind: str, owner: str) -> PendingSession:
    """A request for both devices."""
    if kind == "alone":
        return pending(name, gpus=2, user=owner, lifetime=2)
    asks = [ask(gpus=1), ask(gpus=1)]
    return cluster_of(name, *asks, layout=kind, user=owner, lifetime=2)


def policy_of(sequencer: str, placement: str, after: int | None) -> GroupPolicy:
    return GroupPolicy(
        sequencer=sequencer,
        placement=placement,
        reserve_after=after,
        reserve_wide_after=None,
    )


@settings(max_examples=30, deadline=None)
@given(
    sequencer=st.sampled_from(SEQUENCERS),
    placement=st.sampled_from(PLACEMENTS),
    after=st.integers(0, 8),
    declared=st.booleans(),
    owners=st.integers(1, 3),
    wide=st.lists(
        st.tuples(
            st.integers(4, 20), st.sampled_from(WIDE), st.sampled_from(["zed", "u0"])
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda one: one[0],
    ),
)
def test_everybody_starts_although_narrow_requests_never_stop_coming(
    *,
    sequencer: str,
    placement: str,
    after: int,
    declared: bool,
    owners: int,
    wide: list[tuple[int, str, str]],
):
    stream = Stream(
        policy_of(sequencer, placement, after), declared=declared, owners=owners
    )
    stream.go_on({at: wide_one(f"w{at}", kind, who) for at, kind, who in wide})
    # One has its devices kept at a time: after those before it have been served, it
    # waits until the last of the stream has ended.
    most = after + len(wide) * 2 * (RUNS + 2) + 2
    late = {
        name: (stream.waited.get(name), came)
        for name, came in stream.came.items()
        if came + most < PASSES and not 0 <= stream.waited.get(name, -1) <= most
    }
    assert not late


@pytest.mark.parametrize("sequencer", SEQUENCERS)
@pytest.mark.parametrize("kind", WIDE)
def test_the_stream_lets_no_wide_request_start_for_which_nothing_is_kept(
    sequencer: str, kind: str
):
    """Else the test above would hold whatever the scheduler did."""
    stream = Stream(
        policy_of(sequencer, "fragmentation", None), declared=True, owners=2
    )
    stream.go_on({5: wide_one("wide", kind, "zed")})
    assert "wide" not in stream.waited
    assert len(stream.waited) > PASSES // EVERY - 2
