"""When a session's kernels and terminals worked last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from backendai_lab.activity import find_activity

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def terminal(minutes):
    return SimpleNamespace(last_activity=NOW - timedelta(minutes=minutes))


def kernel(state):
    return {"id": "1", "execution_state": state}


def test_a_busy_kernel_works_now_whatever_the_others_do():
    kernels = [kernel("idle"), kernel("busy")]
    assert find_activity(kernels, [terminal(5)], now=NOW) == NOW


@pytest.mark.parametrize("state", ["idle", "starting", "dead", None])
def test_a_kernel_that_is_not_busy_does_not_work(state):
    assert find_activity([kernel(state)], [], now=NOW) is None


def test_the_terminal_that_printed_last_counts():
    found = find_activity([kernel("idle")], [terminal(9), terminal(5)], now=NOW)
    assert found == NOW - timedelta(minutes=5)


def test_a_terminal_of_which_nothing_is_known_does_not_count():
    assert find_activity([], [SimpleNamespace()], now=NOW) is None
