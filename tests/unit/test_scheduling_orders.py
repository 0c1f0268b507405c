"""Whose turn it is, told as queues and who is served in which order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.scheduling.ordering import SEQUENCERS, Bands, ShareState
from backendai_hub.scheduling.snapshot import PendingSession

CAPACITY = {"cpu": 12_000, "cuda.device": 12_000}
ROOM = ShareState(capacity=CAPACITY)


def ask(owner: str, count: int = 1, **changes: object) -> list[PendingSession]:
    """Ask for sessions of ``user``, ``project/user`` or ``domain/project/user``."""
    named = owner.split("/")
    domain, project, user = [*("d", "p")[: 3 - len(named)], *named]
    slots = {"cuda.device": 1000, "cpu": 1000}
    given = {"request": ResourceSlots(slots), **changes}
    return [
        PendingSession(
            id=owner,
            owner_id=user,
            references={},
            architecture="x86_64",
            scopes=(
                (ScopeKind.DOMAIN, domain),
                (ScopeKind.PROJECT, project),
                (ScopeKind.USER, user),
            ),
            **given,  # type: ignore[arg-type]
        )
        for _ in range(count)
    ]


def asks(*owners: str, **changes: object) -> list[PendingSession]:
    return [session for owner in owners for session in ask(owner, **changes)]


def serve(
    name: str,
    queue: list[PendingSession],
    shares: ShareState = ROOM,
    *,
    failing: Collection[int] = (),
) -> list[int]:
    """Work a queue off; all get room but those whose index is *failing*."""
    order = Bands(queue, SEQUENCERS[name], shares)
    found = []
    while (index := order.next()) is not None:
        found.append(index)
        if index not in failing:
            order.placed(index)
    return found


def owners(queue: list[PendingSession], indexes: Iterable[int]) -> list[str]:
    return [queue[i].id for i in indexes]


def holding(amount: int, slot: str = "cuda.device") -> dict[str, int]:
    return {slot: amount * 1000}


# --- bands, fifo, lifo ---------------------------------------------------------------


def test_fifo_serves_who_came_first():
    assert serve("fifo", asks("a", "b", "c")) == [0, 1, 2]


def test_lifo_serves_who_came_last():
    assert serve("lifo", asks("a", "b", "c")) == [2, 1, 0]


@pytest.mark.parametrize("name", SEQUENCERS)
def test_a_higher_priority_goes_first_whatever_the_order(name):
    queue = [*ask("low", priority=0), *ask("high", priority=100), *ask("mid")]

    assert owners(queue, serve(name, queue)) == ["high", "mid", "low"]


@pytest.mark.parametrize("name", SEQUENCERS)
def test_everybody_comes_exactly_once(name):
    queue = [*asks("a", "b", "a"), *asks("b", "a", priority=20), *ask("c", priority=0)]

    assert sorted(serve(name, queue)) == [0, 1, 2, 3, 4, 5]
    assert sorted(serve(name, queue, failing=range(6))) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", SEQUENCERS)
def test_an_empty_queue_is_over_at_once(name):
    order = Bands([], SEQUENCERS[name], ROOM)

    assert order.next() is None
    assert order.next() is None


def test_what_a_high_band_got_counts_in_the_low_one():
    queue = [*ask("rich", priority=20), *ask("rich"), *ask("poor")]

    assert owners(queue, serve("fair-share", queue)) == ["rich", "poor", "rich"]
    assert serve("fair-share", queue, failing=[0]) == [0, 1, 2]


@pytest.mark.parametrize("name", SEQUENCERS)
def test_room_is_only_reported_for_the_candidate_given_last(name):
    order = Bands(asks("a", "b"), SEQUENCERS[name], ROOM)
    with pytest.raises(ValueError, match="not the candidate"):
        order.placed(0)
    first = order.next()
    assert first is not None
    with pytest.raises(ValueError, match="not the candidate"):
        order.placed(1 - first)


# --- shares that move with every placement -------------------------------------------


@pytest.mark.parametrize("name", ["drf", "fair-share"])
def test_two_users_take_turns_however_much_one_has_submitted(name):
    queue = [*ask("greedy", 5), *ask("modest", 2)]

    served = owners(queue, serve(name, queue))

    assert served == [*["greedy", "modest"] * 2, *["greedy"] * 3]


def test_domains_then_projects_then_users_take_turns():
    queue = asks("a/x/1", "a/x/1", "a/x/2", "a/y/3", "b/z/4", "b/z/4", "b/z/4")

    assert owners(queue, serve("fair-share", queue)) == [
        "a/x/1",
        "b/z/4",
        "a/y/3",
        "b/z/4",
        "a/x/2",
        "b/z/4",
        "a/x/1",
    ]


def test_drf_looks_at_people_whatever_their_projects():
    queue = asks("x/ann", "y/ann", "x/bob")

    assert owners(queue, serve("drf", queue)) == ["x/ann", "x/bob", "y/ann"]


def test_the_dominant_share_is_the_largest_of_any_slot():
    live = {("d", "p", "a"): holding(5, "cpu"), ("d", "p", "b"): holding(4)}
    state = ShareState(capacity={"cpu": 10_000, "cuda.device": 10_000}, live=live)
    queue = asks("a", "b")

    assert owners(queue, serve("drf", queue, state)) == ["b", "a"]


def test_drf_of_the_well_known_example():
    # 9 processors and 18 of memory; A asks 1 and 4, B asks 3 and 1: A gets 3, B 2.
    small = ResourceSlots({"cpu": 1000, "mem": 4})
    large = ResourceSlots({"cpu": 3000, "mem": 1})
    queue = [*ask("A", 9, request=small), *ask("B", 9, request=large)]
    order = Bands(
        queue, SEQUENCERS["drf"], ShareState(capacity={"cpu": 9000, "mem": 18})
    )
    left = Counter({"cpu": 9000, "mem": 18})
    got: Counter[str] = Counter()
    while (index := order.next()) is not None:
        wanted = queue[index].request
        if all(left[slot] >= amount for slot, amount in wanted.items()):
            left.subtract(dict(wanted))
            order.placed(index)
            got[queue[index].id] += 1

    assert got == {"A": 3, "B": 2}


def test_use_from_before_the_pass_counts():
    state = ShareState(capacity=CAPACITY, live={("d", "p", "a"): holding(2)})
    queue = [*ask("a", 3), *ask("b", 3)]

    served = owners(queue, serve("fair-share", queue, state))

    assert served == ["b", "b", "a", "b", "a", "a"]


def test_use_of_who_does_not_wait_counts_for_the_project_they_are_in():
    state = ShareState(capacity=CAPACITY, live={("d", "x", "away"): holding(2)})
    queue = asks("x/here", "y/other")

    assert owners(queue, serve("fair-share", queue, state)) == ["y/other", "x/here"]


def test_what_is_charged_counts_if_it_is_not_what_is_asked():
    system = ask("a", 2, charge=ResourceSlots({"sftp-sessions": 1000}))
    queue = [*system, *ask("b")]

    assert owners(queue, serve("fair-share", queue)) == ["a", "a", "b"]


# --- history -------------------------------------------------------------------------


def test_a_newcomer_is_first_and_not_last():
    state = ShareState(
        capacity=CAPACITY, history={("d", "p", "old"): 0.2, ("d", "p", "older"): 0.1}
    )
    queue = asks("old", "older", "new")

    served = owners(queue, serve("fair-share", queue, state))

    assert served == ["new", "older", "old"]


def test_the_larger_of_history_and_live_use_counts():
    state = ShareState(
        capacity=CAPACITY,
        live={("d", "p", "now"): holding(3)},
        history={("d", "p", "now"): 0.01, ("d", "p", "then"): 0.2},
    )
    queue = asks("now", "then")

    assert owners(queue, serve("fair-share", queue, state)) == ["then", "now"]


def test_who_has_a_history_takes_turns_once_the_others_have_caught_up():
    state = ShareState(capacity=CAPACITY, history={("d", "p", "old"): 1.5 / 12})
    queue = [*ask("old", 3), *ask("new", 3)]

    served = owners(queue, serve("fair-share", queue, state))

    # What "old" gets first is within what history says already; then both have 2.
    assert served == ["new", "new", "old", "old", "old", "new"]


def test_drf_knows_no_history_and_no_weights():
    state = ShareState(
        capacity=CAPACITY,
        history={("d", "p", "a"): 0.9},
        weights={("d", "p", "b"): 9.0},
        ignored=frozenset(CAPACITY),
    )

    assert serve("drf", [*ask("a", 2), *ask("b", 2)], state) == [0, 2, 1, 3]


# --- weights -------------------------------------------------------------------------


def test_who_weighs_twice_as_much_gets_twice_as_much():
    state = ShareState(capacity=CAPACITY, weights={("d", "p", "b"): 2.0})
    queue = [*ask("a", 9), *ask("b", 9)]

    served = owners(queue, serve("fair-share", queue, state)[:9])

    assert Counter(served) == {"a": 3, "b": 6}


def test_weights_count_at_every_level():
    state = ShareState(capacity=CAPACITY, weights={("a",): 3.0, ("b", "y"): 2.0})
    queue = [*ask("a/p/1", 12), *ask("b/x/2", 12), *ask("b/y/3", 12)]

    served = owners(queue, serve("fair-share", queue, state)[:12])

    assert Counter(served) == {"a/p/1": 9, "b/x/2": 1, "b/y/3": 2}


def test_whose_weight_nobody_has_set_has_the_default():
    state = ShareState(
        capacity=CAPACITY, default_weight=4.0, weights={("d", "p", "a"): 1.0}
    )
    queue = [*ask("a", 10), *ask("b", 10)]

    served = owners(queue, serve("fair-share", queue, state)[:10])

    assert Counter(served) == {"a": 2, "b": 8}


@pytest.mark.parametrize("odd", [math.nan, 0.0, -1.0, math.inf, -math.inf, 1e308])
def test_odd_weights_and_histories_keep_nobody_from_their_turn(odd):
    state = ShareState(
        capacity=CAPACITY,
        default_weight=odd,
        weights={("d",): odd, ("d", "p", "a"): odd},
        history={("d", "p", "b"): odd},
    )

    assert sorted(serve("fair-share", asks("a", "b", "c"), state)) == [0, 1, 2]


def test_a_slot_that_is_ignored_costs_nobody_their_turn():
    state = ShareState(
        capacity=CAPACITY,
        live={("d", "p", "a"): holding(9, "cpu"), ("d", "p", "b"): holding(1)},
        ignored=frozenset({"cpu"}),
    )
    queue = asks("b", "a")

    assert owners(queue, serve("fair-share", queue, state)) == ["a", "b"]


def test_without_any_capacity_the_first_come_first():
    empty = ShareState(capacity={"cpu": 0})

    assert serve("fair-share", [*ask("a", 2), *ask("b", 2)], empty) == [0, 1, 2, 3]


# --- ties and waiting ----------------------------------------------------------------


def test_equals_are_served_in_the_order_of_submission():
    queue = asks("c", "a", "b", "a", "c")

    assert serve("fair-share", queue) == [0, 1, 2, 3, 4]


def test_who_gets_no_room_keeps_their_turn():
    queue = [*ask("a", 3), *ask("b", 2)]
    live = {("d", "p", "b"): holding(1)}
    state = ShareState(capacity=CAPACITY, live=live)

    # Nothing is taken off a for the two that found no room: the third is still first.
    assert serve("fair-share", queue, state, failing=[0, 1]) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", SEQUENCERS)
def test_waiting_changes_nobodys_place(name):
    free = [*ask("a", 2), *ask("b", 2), *ask("a")]
    held = [
        *ask("a", 2, hold="waits for training-1"),
        *ask("b", 2, hold="not before 18:00"),
        *ask("a"),
    ]

    assert serve(name, held, failing=range(4)) == serve(name, free, failing=range(4))


# --- any history ---------------------------------------------------------------------

_OWNERS = st.sampled_from(["a/x/1", "a/x/2", "a/y/1", "b/z/4", "b/z/5", "c/w/6"])
_PATHS = st.sampled_from([("a",), ("a", "x"), ("a", "x", "1"), ("b",), ("b", "z", "4")])
_SESSIONS = st.lists(
    st.tuples(_OWNERS, st.integers(0, 3), st.integers(0, 2)), max_size=14
)
_STATES = st.builds(
    ShareState,
    capacity=st.just({"cpu": 5000, "cuda.device": 3000}),
    live=st.dictionaries(
        _OWNERS.map(lambda owner: tuple(owner.split("/"))),
        st.dictionaries(
            st.sampled_from(["cpu", "cuda.device"]),
            st.integers(0, 3).map(lambda n: n * 1000),
        ),
    ),
    weights=st.dictionaries(_PATHS, st.sampled_from([0.5, 1.0, 2.0])),
    history=st.dictionaries(_PATHS, st.sampled_from([0.0, 0.1, 0.5])),
)


def recompute(
    queue: list[PendingSession], state: ShareState, failing: Collection[int]
) -> list[int]:
    """The same order by definition: every share anew for every candidate."""
    left = list(range(len(queue)))
    live = {path: Counter(held) for path, held in state.live.items()}
    found = []

    def key(path: tuple[str, ...]) -> float:
        held: Counter[str] = Counter()
        for user, amounts in live.items():
            if user[: len(path)] == path:
                held.update(amounts)
        share = max(
            [state.history.get(path, 0.0)]
            + [held[slot] / total for slot, total in state.capacity.items()]
        )
        return share / state.weights.get(path, state.default_weight)

    while left:
        candidates = left
        for depth in (1, 2, 3):
            by_path: dict[tuple[str, ...], list[int]] = {}
            for i in candidates:
                by_path.setdefault(tuple(queue[i].id.split("/"))[:depth], []).append(i)
            # Of equals, whose session would start that was submitted first.
            lowest = min(key(path) for path in by_path)
            equal = [path for path in by_path if key(path) == lowest]
            candidates = by_path[
                min(equal, key=lambda path: offered(by_path[path], depth, key, queue))
            ]
        index = candidates[0]
        left.remove(index)
        found.append(index)
        if index not in failing:
            path = tuple(queue[index].id.split("/"))
            live.setdefault(path, Counter()).update(dict(queue[index].request))
    return found


def offered(candidates, depth, key, queue) -> int:
    """Return the session that these would start next."""
    for deeper in range(depth + 1, 4):
        by_path: dict[tuple[str, ...], list[int]] = {}
        for i in candidates:
            by_path.setdefault(tuple(queue[i].id.split("/"))[:deeper], []).append(i)
        lowest = min(key(path) for path in by_path)
        equal = [path for path in by_path if key(path) == lowest]
        candidates = by_path[
            min(equal, key=lambda p: offered(by_path[p], deeper, key, queue))
        ]
    return candidates[0]


@settings(max_examples=300)
@given(_SESSIONS, _STATES, st.sets(st.integers(0, 13)))
def test_the_order_is_the_one_that_recomputing_every_share_gives(
    sessions, state, failing
):
    queue = [
        session
        for owner, gpus, cpus in sessions
        for session in ask(
            owner,
            request=ResourceSlots({"cuda.device": gpus * 1000, "cpu": cpus * 1000}),
        )
    ]

    assert serve("fair-share", queue, state, failing=failing) == recompute(
        queue, state, failing
    )


@given(_SESSIONS, _STATES)
def test_no_owner_starves(sessions, state):
    """Whoever waits is served after finitely many others, all below them by then."""
    queue = [s for owner, _, _ in sessions for s in ask(owner)]
    plenty = [*queue, *ask("b/z/5", 200), *ask("new/q/9")]

    served = owners(plenty, serve("fair-share", plenty, state))

    # A newcomer's domain has no share at all: only equals are before it.
    nothing = {owner.split("/")[0] for owner in ("a/x/1", "b/z/5", "c/w/6")}
    assert served.index("new/q/9") <= len(nothing)


def test_a_pass_changes_nothing_of_what_it_is_given():
    state = ShareState(capacity=CAPACITY, live={("d", "p", "a"): holding(1)})
    queue = [*ask("a", 2), *ask("b", 2, priority=3)]

    first = serve("fair-share", queue, state)

    assert serve("fair-share", queue, state) == first
    assert state == ShareState(capacity=CAPACITY, live={("d", "p", "a"): holding(1)})
