"""The worked examples of "How scheduling works" come out as the page says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from backendai_hub.scheduling.ordering import SEQUENCERS
from backendai_hub.scheduling.scenario import from_trace
from backendai_hub.scheduling.simulate import simulate
from backendai_hub.scheduling.trace import read_trace

PAGE = Path(__file__).parents[2] / "docs/source/explanation/scheduling.md"
_EXAMPLE = re.compile(r"```json\n(.*?)```\n\n(\|.*?)\n\n", re.DOTALL)
_PLACEMENTS = {"concentrated", "dispersed", "roundrobin", "fragmentation"}
_RESERVES = {"reserved at once": 0, "never reserved": None}


class Example(NamedTuple):
    """A trace, a policy, and when each request starts under it."""

    trace: str
    policy: str
    starts: dict[str, int]


def read_page() -> Iterator[Example]:
    for trace, table in _EXAMPLE.findall(PAGE.read_text()):
        head, _, *rows = (
            [cell.strip(" `") for cell in line.strip("|").split("|")]
            for line in table.splitlines()
        )
        for column, policy in enumerate(head[1:], start=1):
            yield Example(trace, policy, {row[0]: int(row[column]) for row in rows})


def group_of(policy: str) -> str:
    record: dict[str, object] = {"kind": "group", "name": ""}
    if policy in SEQUENCERS:
        record["sequencer"] = policy
    elif policy in _PLACEMENTS:
        record["placement"] = policy
    else:
        record["reserve_after"] = _RESERVES[policy]
    return json.dumps(record) + "\n"


@pytest.mark.parametrize("example", list(read_page()), ids=lambda e: e.policy)
def test_an_example_comes_out_as_the_page_says(example: Example):
    outcome = simulate(from_trace(read_trace(group_of(example.policy) + example.trace)))
    found = {w.session: w.since + (w.seconds or 0) for w in outcome.waits}
    assert {name: found[name] for name in example.starts} == example.starts


def test_every_policy_has_an_example():
    shown = {example.policy for example in read_page()}
    assert shown == {*SEQUENCERS, *_PLACEMENTS, *_RESERVES}
