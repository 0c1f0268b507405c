"""Policies of other packages are found by name; the documented ones are real."""

from __future__ import annotations

import asyncio
import gc
import re
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from itertools import chain, cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from backendai_hub.reconcilers.steps import Course
from backendai_hub.scheduling import apart, guards, plugins
from backendai_hub.scheduling.explain import Explainer
from backendai_hub.scheduling.guards import make_scorer
from backendai_hub.scheduling.placing import Placer
from backendai_hub.scheduling.plan import Pass, plan
from backendai_hub.scheduling.snapshot import GroupPolicy
from tests.unit.scheduling_snapshots import GIB, host, node, pending, shared, snapshot

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/source/how-to/choose-nodes-your-own-way.md"


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for what another thread is about to do."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package of the how-to page, laid out as an installer would."""
    (tmp_path / "our_policies.py").write_text("\n".join(blocks("python")), "utf-8")
    declared = tomllib.loads(blocks("toml")[0])["project"]["entry-points"]
    lines = []
    for group, entries in declared.items():
        lines += [
            f"[{group}]",
            *(f"{name} = {where}" for name, where in entries.items()),
        ]
    information = tmp_path / "our_policies-1.0.dist-info"
    information.mkdir()
    (information / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    (information / "METADATA").write_text("Name: our-policies\nVersion: 1.0\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)


def decide(nodes: Any, queue: Any, **policy: Any) -> Any:
    return plan(snapshot(nodes, queue, policy=GroupPolicy(**policy)))


def test_a_placement_of_another_package_chooses_the_node():
    nodes = [
        node("a", host(16)),
        node("b", host(4), labels={"disk": "nvme"}),
        node("c", host(8), labels={"disk": "nvme"}),
    ]
    decided = decide(nodes, [pending(cpu=1)], placement="nvme")
    assert [p.node for p in decided.placements] == ["c"]


def test_a_sequencer_of_another_package_orders_within_one_priority():
    queue = [
        pending("large", cpu=1, mem=2 * GIB),
        pending("small", cpu=1, mem=GIB),
        pending("first", cpu=1, mem=3 * GIB, priority=50),
    ]
    decided = decide([node("a", host(2))], queue, sequencer="smallest")
    assert [p.session for p in decided.placements] == ["first", "small"]


@pytest.mark.parametrize("kind", ["placement", "sequencer"])
def test_a_policy_that_is_not_installed_keeps_its_group_waiting_and_says_so(kind: str):
    decided = decide([node("a", host(2))], [pending(cpu=1)], **{kind: "astrology"})
    assert decided.placements == ()
    known = "concentrated" if kind == "placement" else "fair-share"
    assert f"no {kind} called 'astrology' is installed" in decided.waiting["s"]
    assert known in decided.waiting["s"]


def test_scores_that_are_no_numbers_neither_win_nor_take_nodes_away():
    class Broken:
        name = "broken"

        def scorer(self, cluster: Any, typical: Any) -> Any:
            return self

        def score(self, demand: Any, rows: Any) -> Any:
            return np.where(rows == 0, float("nan"), 1.0)

        def choose_device(self, demand: Any, row: int, fitting: Any) -> int:
            return int(fitting[0])

    policies = dict(plugins._PLACEMENTS)
    plugins._PLACEMENTS["broken"] = Broken()
    try:
        queue = [pending(f"s{i}", cpu=1) for i in range(5)]
        decided = decide(
            [node("a", host(2)), node("b", host(2))], queue, placement="broken"
        )
    finally:
        plugins._PLACEMENTS.clear()
        plugins._PLACEMENTS.update(policies)
    assert [p.node for p in decided.placements] == ["b", "b", "a", "a"]


def test_all_that_come_with_the_platform_are_declared():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups = declared["project"]["entry-points"]
    own = {name for name in plugins._PLACEMENTS if name != "legacy"}
    assert set(groups[plugins.PLACEMENTS_GROUP]) == own
    assert set(groups[plugins.SEQUENCERS_GROUP]) == set(plugins.SEQUENCERS)


def test_roundrobin_takes_turns_by_id_and_goes_on_where_it_was():
    nodes = [node(name, host(8)) for name in ("c", "a", "b")]
    queue = [pending(f"s{i}", cpu=1) for i in range(5)]
    decided = decide(nodes, queue, placement="roundrobin")
    assert [p.node for p in decided.placements] == ["a", "b", "c", "a", "b"]
    again = decide(nodes, queue[:2], placement="roundrobin", last_node="b")
    assert [p.node for p in again.placements] == ["c", "a"]


def test_concentrated_fills_the_fullest_and_dispersed_the_emptiest():
    nodes = [node("a", host(8, used=2)), node("b", host(8, used=5)), node("c", host(8))]
    full = replace(nodes[0], id="d", name="d", devices=(host(8, used=8, name="d"),))
    one = [pending(cpu=1)]
    for placement, chosen in (
        ("concentrated", "b"),
        ("dispersed", "c"),
        ("legacy", "c"),
    ):
        decided = decide([*nodes, full], one, placement=placement)
        assert [p.node for p in decided.placements] == [chosen]


# --- policies that fail ---------------------------------------------------------------


class Foul:
    """A placement and its scorer at once, which fails where it is told to."""

    name = "foul"

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def _answer(self, what: str, usual: Any) -> Any:
        given = self.answers.get(what, usual)
        if isinstance(given, Exception):
            raise given
        return given

    def scorer(self, cluster: Any, typical: Any) -> Any:
        return self._answer("scorer", self)

    def score(self, demand: Any, rows: Any) -> Any:
        return self._answer("score", np.zeros(len(rows)))

    def choose_device(self, demand: Any, row: int, fitting: Any) -> int:
        chosen: int = self._answer("device", fitting[0])
        return chosen

    def pick(self, scores: Any) -> int:
        picked: int = self._answer("pick", int(scores.argmin()))
        return picked


class Script:
    """A sequencer and its order at once, which says what it is told to."""

    name = "script"

    def __init__(self, *says: Any) -> None:
        self.says = says

    def order(self, queue: Any, shares: Any) -> Any:
        self.left = iter(self.says)
        return self

    def next(self) -> Any:
        said = next(self.left, None)
        if isinstance(said, Exception):
            raise said
        return said

    def placed(self, index: int) -> None:
        pass


def two_groups(monkeypatch: pytest.MonkeyPatch, policy: Any) -> Any:
    """Decide for a group that follows *policy* and for one that does not."""
    return plan(show_two_groups(monkeypatch, policy))


def show_two_groups(monkeypatch: pytest.MonkeyPatch, policy: Any) -> Any:
    table = "_PLACEMENTS" if isinstance(policy, Foul) else "SEQUENCERS"
    monkeypatch.setattr(
        plugins, table, {**getattr(plugins, table), policy.name: policy}
    )
    kind = "placement" if isinstance(policy, Foul) else "sequencer"
    there = [
        node("a", host(4), shared("g"), shared("h"), group="x"),
        node("b", host(4), group="y"),
    ]
    queue = [
        pending("s", cpu=1, shares=0.5, group="x"),
        pending("t", cpu=1, shares=0.5, group="x"),
        pending("other", cpu=1, group="y"),
    ]
    groups = {"x": GroupPolicy(**{kind: policy.name}), "y": GroupPolicy()}
    return replace(snapshot(there, queue), groups=groups)


@pytest.mark.parametrize(
    "answers",
    [
        {"scorer": ValueError("boom")},
        {"score": ZeroDivisionError("boom")},
        {"score": np.zeros(7)},
        {"score": "high"},
        {"device": KeyError("boom")},
        {"device": 9},
        {"pick": 5},
        {"pick": -1},
    ],
)
def test_a_placement_that_fails_keeps_its_own_group_waiting_and_says_so(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]
):
    decided = two_groups(monkeypatch, Foul(**answers))
    assert [p.session for p in decided.placements] == ["other"]
    for session in ("s", "t"):
        told = decided.waiting[session]
        assert "the placement 'foul' of its resource group failed (" in told
        assert "mended or replaced" in told
    assert list(decided.faults) == ["x"]


def test_what_a_failing_placement_was_about_to_take_is_free_again():
    there = [node("a", host(4), shared("g"), shared("h"))]
    queue = [pending("s", cpu=1, shares=0.5)]
    line = Pass(snapshot(there, queue, policy=GroupPolicy())).lines[0]
    fault = line.fault
    scorer = make_scorer(Foul(device=ValueError()), line.cluster, (), fault)
    line._nodes = line._nodes._replace(placer=Placer(line.cluster, scorer))
    before = line.cluster.free_of(0).copy()
    assert line.place(queue[0]) == fault.told != ""
    assert (line.cluster.free_of(0) == before).all()


@pytest.mark.parametrize("says", [[ValueError("boom")], [0, ValueError("boom")]])
def test_a_sequencer_that_raises_keeps_its_own_group_waiting_and_says_so(
    monkeypatch: pytest.MonkeyPatch, says: list[Any]
):
    decided = two_groups(monkeypatch, Script(*says))
    placed = [p.session for p in decided.placements]
    assert sorted(placed) == (["other"] if len(says) == 1 else ["other", "s"])
    assert "sequencer 'script' of its resource group failed" in decided.waiting["t"]
    assert "ValueError: boom" in decided.faults["x"]


@pytest.mark.parametrize(
    "says", [[], [1], [0, 0, 0, 0], [1, 1, 0], [7, -1, 0], [1.5], ["t"]]
)
def test_whatever_a_sequencer_says_everybody_gets_one_turn(
    monkeypatch: pytest.MonkeyPatch, says: list[Any]
):
    decided = two_groups(monkeypatch, Script(*says))
    heard = [p.session for p in decided.placements] + list(decided.waiting)
    assert sorted(heard) == ["other", "s", "t"]
    assert len(decided.faults) == 1


@pytest.mark.parametrize("pattern", [[0], [-1], [0, 0, 5]])
def test_a_sequencer_that_comes_to_no_end_is_asked_so_often_and_no_more(
    monkeypatch: pytest.MonkeyPatch, pattern: list[int]
):
    answers = chain([1], cycle(pattern))
    asked = []

    class Endless(Script):
        def next(self) -> Any:
            asked.append(1)
            return next(answers)

    decided = two_groups(monkeypatch, Endless())
    heard = [p.session for p in decided.placements] + list(decided.waiting)
    assert sorted(heard) == ["other", "s", "t"]
    assert decided.faults == {"x": "the sequencer 'script' comes to no end"}
    assert len(asked) < 110


def test_a_policy_that_cannot_be_loaded_keeps_its_group_waiting_and_says_so(
    tmp_path: Path,
):
    (tmp_path / "our_policies.py").write_text("import nothing_of_the_kind", "utf-8")
    plugins._load.cache_clear()
    sys.modules.pop("our_policies", None)
    for kind, name in (("placement", "nvme"), ("sequencer", "smallest")):
        decided = decide([node("a", host(2))], [pending(cpu=1)], **{kind: name})
        assert f"the {kind} {name!r} cannot be loaded" in decided.waiting["s"]
        assert "nothing_of_the_kind" in decided.waiting["s"]


ENDLESS = """
class Smallest:
    name = "smallest"
    asked = 0

    def order(self, queue, shares):
        return self

    def placed(self, index):
        pass

    def next(self):
        type(self).asked += 1
        if type(self).asked == 1:
            return 1
        while True:
            pass
"""


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package once more, with an order that names one and then never returns."""
    (tmp_path / "our_policies.py").write_text(ENDLESS, "utf-8")
    plugins._load.cache_clear()
    sys.modules.pop("our_policies", None)
    monkeypatch.setattr(guards, "_LEAST_SECONDS", 1.0)
    yield lambda: sys.modules["our_policies"].Smallest
    guards._given_up.clear()
    plugins._load.cache_clear()
    sys.modules.pop("our_policies", None)


def test_a_sequencer_that_never_returns_is_given_up_and_all_get_their_turn(
    endless: Any, monkeypatch: pytest.MonkeyPatch
):
    queue = [pending(name, cpu=1) for name in "abc"]
    there, policy = [node("n", host(2))], GroupPolicy(sequencer="smallest")
    before = threading.active_count()
    explainer = Explainer(snapshot(there, queue, policy=policy))
    decided = explainer.plan
    assert [p.session for p in decided.placements] == ["b", "a"]
    [fault] = decided.faults.values()
    assert fault.startswith("the sequencer 'smallest' took too long: first come, first")
    why = explainer.explain("c")
    assert why is not None
    assert why.reasons[-1] == fault
    until(lambda: threading.active_count() <= before, "its thread ends, too")

    asked = endless().asked
    again = plan(snapshot(there, queue, policy=policy))
    assert [p.session for p in again.placements] == ["a", "b"]
    assert list(again.faults.values()) == [fault]
    assert endless().asked == asked, "nothing is asked of it for a while"

    for _ in range(150):
        Explainer(snapshot(there, queue, policy=policy))
    later = replace(snapshot(there, queue, policy=policy), now=20)
    assert list(plan(later).faults.values()) == [fault]
    assert endless().asked == asked, "however often somebody asks why they wait"
    plan(replace(later, now=21))
    assert endless().asked == asked + 1, "twenty times as long as it took, and again"


def test_a_policy_that_is_slow_has_so_long_for_all_its_answers(
    monkeypatch: pytest.MonkeyPatch,
):
    asked = []

    class Slow(Script):
        def next(self) -> Any:
            asked.append(1)
            watch.now += 2.0
            return super().next()

    class Watch:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

    watch = Watch()
    monkeypatch.setattr(apart, "time", watch)
    monkeypatch.setattr(guards, "_given_up", {})
    monkeypatch.setattr(guards, "_SECONDS_EACH", 0.5)
    monkeypatch.setattr(
        plugins, "SEQUENCERS", {**plugins.SEQUENCERS, "script": Slow(*range(9, -1, -1))}
    )
    queue = [pending(f"s{i}", cpu=1) for i in range(10)]
    decided = decide([node("n", host(10))], queue, sequencer="script")
    placed = [p.session for p in decided.placements]
    assert placed[:4] == ["s9", "s8", "s7", "s6"]
    assert placed[4:] == [f"s{i}" for i in range(6)], "first come, first served"
    assert len(asked) == 4, "eight seconds are for ten who wait"
    assert "took too long" in next(iter(decided.faults.values()))


def test_what_cannot_be_ended_is_not_begun_without_end(monkeypatch: pytest.MonkeyPatch):
    may_end, asked = threading.Event(), []

    class Stubborn(Script):
        def order(self, queue: Any, shares: Any) -> Any:
            asked.append(1)
            while not may_end.is_set():
                try:
                    while not may_end.is_set():
                        pass
                except BaseException:  # noqa: BLE001 - as others may do
                    continue
            return self

    monkeypatch.setattr(guards, "_LEAST_SECONDS", 1.0)
    monkeypatch.setattr(guards, "_given_up", {})
    monkeypatch.setattr(
        plugins, "SEQUENCERS", {**plugins.SEQUENCERS, "script": Stubborn()}
    )
    queue = [pending("s", cpu=1)]
    policy = GroupPolicy(sequencer="script")
    there = snapshot([node("n", host(1))], queue, policy=policy)
    before = threading.active_count()
    try:
        told = [
            next(iter(plan(replace(there, now=moment)).faults.values()))
            for moment in range(0, 500, 100)
        ]
    finally:
        may_end.set()
    assert len(asked) == 3
    assert told[1].endswith("until it is tried again")
    assert told[2].endswith("until the service is restarted, for its calls do not end")
    assert told[2:] == [told[2]] * 3
    until(lambda: threading.active_count() <= before, "all have ended by now")


class Failing(Foul):
    """One that raises."""

    def score(self, demand: Any, rows: Any) -> Any:
        raise ValueError("boom")


@pytest.mark.parametrize("policy", [Foul(), Failing()])
def test_the_thread_of_a_placement_ends_without_a_search_for_garbage(
    monkeypatch: pytest.MonkeyPatch, policy: Foul
):
    before = threading.active_count()
    gc.disable()
    try:
        two_groups(monkeypatch, policy)
        until(lambda: threading.active_count() <= before, "nothing holds it")
    finally:
        gc.enable()


async def test_nobody_waits_for_a_policy_of_another_package_but_its_pass(
    monkeypatch: pytest.MonkeyPatch,
):
    gate = threading.Event()

    class Gated(Script):
        def order(self, queue: Any, shares: Any) -> Any:
            assert gate.wait(30)
            return super().order(queue, shares)

    monkeypatch.setattr(
        plugins, "SEQUENCERS", {**plugins.SEQUENCERS, "script": Gated(0)}
    )
    monkeypatch.setattr(guards, "_LEAST_SECONDS", 20.0)
    monkeypatch.setattr(guards, "_given_up", {})
    there = [node("n", host(1))]
    policy = GroupPolicy(sequencer="script")
    course = Course(snapshot(there, [pending("s", cpu=1)], policy=policy))
    asyncio.get_running_loop().call_soon(gate.set)
    decided = await course.step()
    assert decided.faults == {}
    assert [p.session for p in decided.placements] == ["s"]


def test_a_placement_that_never_returns_is_replaced_by_one_of_ours_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
):
    asked = []

    class Slow(Foul):
        def score(self, demand: Any, rows: Any) -> Any:
            asked.append(1)
            while True:
                pass

    monkeypatch.setattr(guards, "_LEAST_SECONDS", 1.0)
    monkeypatch.setattr(guards, "_given_up", {})
    for _ in range(2):
        decided = two_groups(monkeypatch, Slow())
        placed = sorted(p.session for p in decided.placements)
        assert placed == ["other", "s", "t"], "nobody waits for that"
        assert decided.faults == {
            "x": "the placement 'foul' took too long: nodes are chosen by 'dispersed'"
            " until it is tried again"
        }
    assert len(asked) == 1


async def test_others_wait_only_once_for_a_group_whose_policy_is_slow(
    monkeypatch: pytest.MonkeyPatch,
):
    asked, seconds = [], [1.0]

    class Watch:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

    class Slow(Script):
        def order(self, queue: Any, shares: Any) -> Any:
            asked.append(1)
            watch.now += seconds[0]
            return super().order(queue, shares)

    watch = Watch()
    monkeypatch.setattr(apart, "time", watch)
    monkeypatch.setattr(guards, "_took", {})
    there = show_two_groups(monkeypatch, Slow(0, 1))
    there = replace(there, queue=there.queue[::-1])

    async def place_in_steps() -> list[list[str]]:
        course, steps = Course(there), []
        while True:
            decided = await course.step()
            steps.append([p.session for p in decided.placements])
            if decided.complete:
                return steps
            assert len(asked) == 1, "what has been decided is done before it is asked"

    assert len(await place_in_steps()) == 1, "nobody knows yet"
    seconds[0] = 0.0
    assert await place_in_steps() == [["other"], ["t", "s"]]
    assert len(await place_in_steps()) == 1, "it has been quick the last time"
    assert not plan(there).waiting


def test_threads_of_orders_end_with_them():
    before = threading.active_count()
    for _ in range(3):
        decide([node("a", host(2))], [pending(cpu=1)], sequencer="smallest")
    until(lambda: threading.active_count() <= before, "none is left")
