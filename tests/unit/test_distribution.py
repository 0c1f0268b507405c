"""Tests of the whole machine never run beside each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.distribution import _LONG, MACHINE, begin_with, together_with

ROOT = Path(__file__).parents[2]
OF_MACHINE = re.compile(r"pytest\.mark\.(docker|bwrap|browser)\b")
FILES = [path.relative_to(ROOT) for path in ROOT.glob("tests/*/test_*.py")]


def test_what_uses_the_machine_runs_one_after_the_other():
    users = [path for path in FILES if OF_MACHINE.search((ROOT / path).read_text())]
    assert len(users) > 10
    apart = [path for path in users if together_with(f"{path}::test_it") != MACHINE]
    assert apart == []


def test_a_files_tests_stay_together():
    tests = ("tests/unit/test_a.py::test_b[c::d]", "tests/unit/test_a.py::test_e")
    assert {together_with(test) for test in tests} == {"tests/unit/test_a.py"}


def test_what_takes_longest_begins_first():
    files = {together_with(f"{path}::test_it") for path in FILES}
    first = begin_with(files)

    assert first[0] == MACHINE
    assert set(first[1:]) == {f for f in files if f.startswith(_LONG)}
    assert first[1].startswith(_LONG[0])


@pytest.mark.parametrize("beginning", _LONG)
def test_every_file_that_takes_long_is_there(beginning: str):
    assert any(str(path).startswith(beginning) for path in FILES)
