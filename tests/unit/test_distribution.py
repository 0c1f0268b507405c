"""Tests of the whole machine never run beside each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.distribution import _CHAINS, _LONG, begin_with, chain_of, together_with

ROOT = Path(__file__).parents[2]
OF_MACHINE = re.compile(r"pytest\.mark\.(docker|bwrap|browser)\b")
OF_SESSIONS = re.compile(r"pytest\.mark\.(docker|bwrap)\b")
FILES = [path.relative_to(ROOT) for path in ROOT.glob("tests/**/test_*.py")]


def find_files(pattern: re.Pattern[str]) -> list[str]:
    return [str(path) for path in FILES if pattern.search((ROOT / path).read_text())]


def test_what_uses_the_machine_runs_one_after_the_other():
    users = find_files(OF_MACHINE)
    assert len(users) > 30
    assert [path for path in users if chain_of(f"{path}::test_it") is None] == []


@pytest.mark.parametrize(
    ("folder", "chain"),
    [
        ("tests/integration/", "machine"),
        # Platforms look at nobody's sessions but their own.
        ("tests/e2e/test_", "sessions"),
        ("tests/e2e/ui/", "pages"),
    ],
)
def test_who_looks_at_the_machines_sessions_never_runs_beside_another(
    folder: str, chain: str
):
    users = [path for path in find_files(OF_SESSIONS) if path.startswith(folder)]
    assert users
    assert {together_with(f"{path}::test_it") for path in users} == {chain}


def test_a_files_tests_stay_together():
    tests = ("tests/unit/test_a.py::test_b[c::d]", "tests/unit/test_a.py::test_e")
    assert {together_with(test) for test in tests} == {"tests/unit/test_a.py"}


def test_what_takes_longest_begins_first():
    files = {together_with(f"{path}::test_it") for path in FILES}
    first = begin_with(files)

    chains = len(_CHAINS)
    assert first[:chains] == list(_CHAINS)
    assert set(first[chains:]) == {f for f in files if f.startswith(_LONG)}
    assert first[chains].startswith(_LONG[0])


@pytest.mark.parametrize("beginning", _LONG)
def test_every_file_that_takes_long_is_there(beginning: str):
    assert any(str(path).startswith(beginning) for path in FILES)
