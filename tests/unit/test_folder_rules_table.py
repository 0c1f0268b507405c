"""The table of the rules of folders names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs/source/contributing/folders.md"
NAMED = sorted(set(re.findall(r"`((?:unit/)?test_\w+)`", TABLE.read_text())))


@pytest.mark.parametrize("name", NAMED)
def test_what_shows_a_rule_is_there(name: str):
    folder = "unit" if name.startswith("unit/") else "integration"
    assert (ROOT / "tests" / folder / f"{name.removeprefix('unit/')}.py").is_file()


def test_every_numbered_rule_is_in_the_table():
    text = TABLE.read_text()
    for number in range(1, 13):
        assert re.search(rf"\bV{number}\b", text), number
    assert "M1 to M12" in text
