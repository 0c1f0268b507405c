"""When a node that is taken for alive has really come back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from backendai_hub.core.agents import Agent, AgentStatus, Isolation
from backendai_hub.launcher.platform_api import Reports

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def seen(seconds: float | None) -> Agent:
    """Return a node that was last heard of so many seconds after the start."""
    at = None if seconds is None else STARTED + timedelta(seconds=seconds)
    return Agent(
        id="a",
        name="vm",
        status=AgentStatus.ALIVE,
        schedulable=True,
        architecture="x86_64",
        version="1",
        capacity={},
        used={},
        isolation=Isolation(
            runtime="fake", tier="none", limits="none", network="none", multi_user=True
        ),
        last_seen_at=None if at is None else at.isoformat(),
    )


def test_what_a_node_said_before_it_was_started_again_does_not_count():
    reports = Reports(STARTED)
    assert not reports.are_new(seen(-3))
    assert not reports.are_new(seen(-3))
    assert reports.are_new(seen(2))


def test_a_node_whose_database_is_behind_has_come_back_when_its_time_moves_on():
    reports = Reports(STARTED)
    assert not reports.are_new(seen(-60))
    assert reports.are_new(seen(-55))


def test_a_node_that_was_not_started_again_need_not_speak_again():
    reports = Reports(None)
    assert not reports.are_new(seen(None))
    assert reports.are_new(seen(-3))
