"""What a decision costs does not grow with what has not changed."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping

import hypothesis.strategies as st
import pytest
from hypothesis import given
from msgspec.structs import replace

from backendai_hub.scheduling.ahead import Waiting
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.explain import Explainer
from backendai_hub.scheduling.fragmentation import Fragmentation, FragmentationScorer
from backendai_hub.scheduling.garbage import uncollected
from backendai_hub.scheduling.obstacles import Obstacles
from backendai_hub.scheduling.placing import Placer
from backendai_hub.scheduling.plan import Pass
from backendai_hub.scheduling.scoring import Demand, FloatVector, IntVector
from backendai_hub.scheduling.shapes import Shape, Shapes
from backendai_hub.scheduling.snapshot import (
    NodeState,
    PendingSession,
    RunningSession,
    Share,
)
from tests.unit.scheduling_snapshots import GIB, host, node, pending, shared, snapshot

FEW = 100


class Counted:
    """The default policy's scorer; says how many nodes it has been asked about."""

    def __init__(self, scorer: FragmentationScorer) -> None:
        self._scorer = scorer
        self.choose_device = scorer.choose_device
        self.asked = 0

    def score(self, demand: Demand, rows: IntVector) -> FloatVector:
        self.asked += len(rows)
        return self._scorer.score(demand, rows)


class Site:
    """A hundred nodes of four devices and who asks for a place there."""

    def __init__(self) -> None:
        self.cluster = Cluster(
            [
                node(f"n{i:03}", host(32), *(shared(f"{i}/{j}") for j in range(4)))
                for i in range(FEW)
            ]
        )
        self.scorer = Counted(Fragmentation().scorer(self.cluster, ()))
        self.placer = Placer(self.cluster, self.scorer)
        self.shapes = Shapes(self.cluster)

    def shape(self, **asked: float) -> Shape:
        return self.shapes.of(pending(mem=GIB, **asked))

    def place(self, shape: Shape) -> tuple[int, int]:
        """Return the node, and how many were scored to find it."""
        before = self.scorer.asked
        row = self.placer.find(shape, "alice")
        assert self.placer.take(shape, row) is not None
        return row, self.scorer.asked - before


# --- only what has changed is scored again ----------------------------------------


def test_a_shape_is_scored_on_all_nodes_once_and_then_where_somebody_was_placed():
    site = Site()
    half = site.shape(cpu=1, shares=0.5)
    assert site.place(half)[1] == FEW
    assert [site.place(half)[1] for _ in range(5)] == [1] * 5


def test_nodes_that_others_have_changed_are_scored_once_each():
    site = Site()
    half, whole = site.shape(cpu=1, shares=0.5), site.shape(cpu=1, shares=1)
    row, _ = site.place(half)
    for elsewhere in (row + 1, row + 2):
        assert site.placer.take(whole, elsewhere) is not None
    assert site.place(half)[1] == 3


def test_a_release_is_scored_again_on_its_node_alone():
    site = Site()
    half = site.shape(cpu=1, shares=0.5)
    row = site.placer.find(half, "alice")
    shares = site.placer.take(half, row)
    assert shares is not None
    site.place(half)
    site.cluster.give(row, shares)
    assert site.place(half)[1] == 1


def test_a_node_without_room_is_not_scored():
    site = Site()
    quarter, all_of_it = site.shape(cpu=1, shares=0.25), site.shape(cpu=32, shares=4)
    for _ in range(10):
        site.place(all_of_it)
    assert site.place(quarter)[1] == FEW - 10


# --- what nodes are is compared for all of them at once -----------------------------

WORDS = ("a", "b")
LABELS = st.dictionaries(st.sampled_from(("zone", "disk")), st.sampled_from(WORDS))


@st.composite
def some_node(draw: st.DrawFn) -> NodeState:
    return node(
        "",
        host(1),
        group=draw(st.sampled_from(("", *WORDS))),
        runtime=draw(st.sampled_from(("docker", "process"))),
        architecture=draw(st.sampled_from(("x86_64", "aarch64"))),
        protocol=draw(st.integers(1, 3)),
        labels=draw(LABELS),
    )


@st.composite
def somebody(draw: st.DrawFn) -> PendingSession:
    runtimes = draw(st.sets(st.sampled_from(("docker", "process")), min_size=1))
    return pending(
        group=draw(st.sampled_from(("", *WORDS))),
        references=dict.fromkeys(runtimes, "lab"),
        architecture=draw(st.sampled_from(("x86_64", "aarch64", "riscv64"))),
        protocol=draw(st.integers(1, 3)),
        labels=draw(LABELS),
        nodes=tuple(draw(st.sets(st.sampled_from(("0", "1", "gone"))))),
        only_nodes=draw(st.booleans()),
    )


def name_obstacle(one: NodeState, session: PendingSession) -> str:
    """Say what the rules say of one node, in their order."""
    rules: Mapping[str, bool] = {
        "is in another resource group": session.group not in {"", one.group},
        "cannot run this image": one.runtime not in session.references,
        f"is {one.architecture}, not {session.architecture}": (
            one.architecture != session.architecture
        ),
        "is not one of the nodes it names": bool(session.nodes)
        and session.only_nodes
        and one.id not in session.nodes,
        "runs an agent that is too old for this; upgrade it": (
            one.protocol < session.protocol
        ),
        **{
            f"is not labelled {label}={value}": one.labels.get(label) != value
            for label, value in session.labels.items()
        },
    }
    return next((word for word, applies in rules.items() if applies), "")


@given(nodes=st.lists(some_node(), max_size=4), session=somebody())
def test_each_node_is_told_the_first_rule_that_it_breaks(
    nodes: list[NodeState], session: PendingSession
):
    nodes = [node(str(i), *n.devices, **_all_of(n)) for i, n in enumerate(nodes)]
    row = {n.id: i for i, n in enumerate(nodes)}
    numbers, words = Obstacles(nodes, row).find(session)
    found = [words[int(number)] for number in numbers]
    assert found == [name_obstacle(one, session) for one in nodes]


def _all_of(one: NodeState) -> dict[str, object]:
    names = ("group", "runtime", "architecture", "protocol", "labels")
    return {name: getattr(one, name) for name in names}


# --- what is free in all is kept up, node by node -----------------------------------


@given(data=st.data())
def test_what_is_free_in_all_is_what_open_nodes_have(data: st.DataObject):
    closed = data.draw(st.lists(st.booleans(), min_size=1, max_size=4))
    cluster = Cluster(
        [
            node(f"n{i}", host(4), closed="drained" if is_closed else "")
            for i, is_closed in enumerate(closed)
        ]
    )
    free = cluster.sum_up()
    taken: list[tuple[int, list[Share]]] = []
    for _ in range(data.draw(st.integers(0, 8))):
        row = data.draw(st.integers(0, len(closed) - 1))
        if taken and data.draw(st.booleans()):
            cluster.give(*taken.pop())
        elif shares := cluster.choose_devices(row, "cpu", 1000):
            cluster.take(row, shares)
            taken.append((row, shares))
        if data.draw(st.booleans()):
            there = cluster.free_of(cluster.column["cpu"])
            assert free.get("cpu") == there[cluster.open].sum()
    assert "nothing" not in free


# --- no search for garbage holds up decisions ---------------------------------------


@pytest.fixture
def searches() -> Iterator[list[int]]:
    """Search for garbage all the time; tell of every search."""
    found: list[int] = []

    def note(phase: str, info: Mapping[str, int]) -> None:
        if phase == "start":
            found.append(info["generation"])

    before = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(5, 2, 2)
    try:
        yield found
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(note)


def test_a_pass_is_not_interrupted_by_a_search_for_garbage(searches: list[int]):
    nodes = [node(f"n{i}", host(8)) for i in range(20)]
    queue = [pending(f"s{i}", cpu=1) for i in range(50)]
    begun = Pass(snapshot(nodes, queue))
    during: list[int] = []

    def note(_: int) -> bool:
        during.append(len(searches))
        return False

    assert len(begun.run(note).placements) == 50
    assert len(set(during)) == 1
    assert gc.isenabled()


def test_the_search_goes_on_when_the_last_of_several_is_done(searches: list[int]):
    with uncollected():
        with uncollected():
            pass
        assert not gc.isenabled()
        before = len(searches)
        kept = [[] for _ in range(100)]
        assert len(searches) == before
    assert gc.isenabled()
    kept += [[] for _ in range(100)]
    assert len(searches) > before


def test_who_fails_lets_the_search_go_on_too():
    with pytest.raises(RuntimeError), uncollected():
        raise RuntimeError("it did not work out")
    assert gc.isenabled()


def test_a_search_that_was_off_stays_off():
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


# --- who waits before somebody is looked at kind by kind ----------------------------


@given(
    kinds=st.lists(st.sampled_from("abc"), max_size=12),
    tries=st.lists(st.lists(st.sampled_from("abc")), max_size=4),
    place=st.integers(1, 13),
)
def test_kinds_are_looked_through_as_the_queue_itself_would_be(
    kinds: list[str], tries: list[list[str]], place: int
):
    queue = [pending(f"{kind}{i}") for i, kind in enumerate(kinds)]
    ahead = Waiting((s.id[0], i, s) for i, s in enumerate(queue, 1)).before(place)
    assert bool(ahead) == bool(queue[: place - 1])
    left = [s.id for s in queue[: place - 1]]
    for room in tries:
        rooms = list(room)
        started = []
        for candidate in ahead.look_through():
            kind = candidate.session.id[0]
            if kind in rooms:
                rooms.remove(kind)
                candidate.has_started = True
                started.append(candidate.session.id)
        assert started == start_in_turn(left, list(room))


def start_in_turn(left: list[str], rooms: list[str]) -> list[str]:
    """Look at everybody in order, one after the other."""
    started = []
    for one in list(left):
        if one[0] in rooms:
            rooms.remove(one[0])
            left.remove(one)
            started.append(one)
    return started


def test_a_forecast_tries_one_of_each_kind_however_many_wait():
    nodes = [node(f"n{i}", host(4, used=4)) for i in range(3)]
    held = [
        RunningSession(
            id=f"r{i}",
            owner_id="bob",
            scopes=(),
            holdings=((f"n{i}", (Share(f"n{i}/host", "cpu", 1000),)),),
            ends=100 + i,
        )
        for i in range(3)
    ]
    queue = [pending(f"wide{i}", cpu=4) for i in range(300)] + [pending("s", cpu=1)]
    explainer = Explainer(replace(snapshot(nodes, queue), running=tuple(held)))
    found = explainer.explain("s")
    assert found is not None
    # Three hundred before it would be more than a forecast tries, one by one.
    assert (found.starts, found.at_the_earliest) == (100, False)
