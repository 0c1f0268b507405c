"""Policies of other packages are found by name; the documented ones are real."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from backendai_hub.scheduling import plugins
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import GroupPolicy
from tests.unit.scheduling_snapshots import GIB, host, node, pending, snapshot

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/source/how-to/choose-nodes-your-own-way.md"


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
