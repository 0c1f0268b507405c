"""The page of worked examples comes out as it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from backendai_hub.scheduling.scenario import from_trace
from backendai_hub.scheduling.simulate import simulate
from backendai_hub.scheduling.trace import read_trace

PAGE = Path(__file__).parents[2] / "docs/source/explanation/worked-examples.md"
_EXAMPLE = re.compile(r"```json\n(.*?)```\n\n(\|.*?)\n\n", re.DOTALL)
_CLASS = {
    "kind": "window",
    "name": "class",
    "starts": 100,
    "ends": 200,
    "nodes": ["a"],
    "open_to": ["project:speech"],
}


class Example(NamedTuple):
    """A trace, one choice, and what comes of it by row of the table."""

    records: list[dict[str, Any]]
    rule: str
    choice: str
    told: dict[str, str]


def read_page() -> Iterator[Example]:
    for trace, table in _EXAMPLE.findall(PAGE.read_text("utf-8")):
        head, _, *rows = (
            [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
            for line in table.splitlines()
        )
        records = [json.loads(line) for line in trace.splitlines()]
        for column, choice in enumerate(head[1:], start=1):
            told = {row[0]: row[column] for row in rows}
            yield Example(records, head[0], choice, told)


def choose(example: Example) -> list[dict[str, Any]]:
    """Return the trace with what the column is about."""
    records, choice = example.records, example.choice
    group: dict[str, Any] = {"kind": "group", "name": ""}
    if example.rule == "layout":
        group["placement"] = "concentrated"
        records = [{**r, "layout": choice} if r.get("members") else r for r in records]
    elif example.rule == "window":
        records = records + ([_CLASS] if choice == _CLASS["name"] else [])
    else:
        group["preemption"] = {"enabled": True, example.rule: choice}
    return [group, *records]


@pytest.mark.parametrize("example", list(read_page()), ids=lambda e: e.choice)
def test_an_example_comes_out_as_the_page_says(example: Example):
    lines = [json.dumps(record) + "\n" for record in choose(example)]
    outcome = simulate(from_trace(read_trace("".join(lines))))
    found = {
        f"{w.session} starts at": str(w.since + (w.seconds or 0)) for w in outcome.waits
    }
    found["leaves"] = ", ".join(d.session for d in outcome.displaced)
    assert {row: found[row] for row in example.told} == example.told


def test_every_choice_is_on_the_page():
    shown: dict[str, set[str]] = {}
    for example in read_page():
        shown.setdefault(example.rule, set()).add(example.choice)
    assert shown == {
        "order": {"oldest", "newest", "fewest-sessions", "smallest-resources"},
        "mode": {"terminate", "reschedule"},
        "victim_scope": {"user", "project", "resource-group"},
        "window": {"none", "class"},
        "layout": {"one-node", "pack", "spread"},
    }
