"""A start time and a window are noticed when they come, not some seconds later."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.db.signals import Signals
from backendai_hub.operations.platform import Platform
from backendai_hub.reconcilers.scheduler import SchedulerReconciler
from tests.factories import START, Clock, add_node, make_device, submit
from tests.harness import until
from tests.jobs import ask
from tests.tenants import Office, read


@pytest.fixture
def clock(platform: Platform) -> Clock:
    made = platform.database.clock
    assert isinstance(made, Clock)
    return made


async def test_a_job_starts_at_its_time_although_nothing_else_happens(
    platform: Platform, clock: Clock
):
    await add_node(platform)
    job = await ask(platform, starts_at=START + timedelta(seconds=4))
    scheduler = SchedulerReconciler(platform, Signals())
    assert await scheduler.reconcile() == 0
    assert 0 < scheduler.patience() <= 4
    clock.pass_(4)
    assert await scheduler.reconcile() == 1
    assert (await read(platform, job)).status is SessionStatus.SCHEDULED
    assert scheduler.patience() == scheduler.resync_seconds


async def test_the_begin_and_the_end_of_a_window_are_each_a_pass(
    platform: Platform, clock: Clock
):
    await add_node(platform, "n1", devices=[make_device(slots={"cpu": 1000, "mem": 9})])
    await Office(platform).make(
        "reservation",
        name="fans",
        kind="maintenance",
        resource_group="default",
        begins_at=(START + timedelta(seconds=3)).isoformat(),
        ends_at=(START + timedelta(seconds=6)).isoformat(),
        nodes=["n1"],
    )
    waits = (await submit(platform, slots={"cpu": 1, "mem": "1"})).session
    scheduler = SchedulerReconciler(platform, Signals())
    assert await scheduler.reconcile() == 0
    reason = (await read(platform, waits)).reason
    assert "kept for a reservation from" in reason
    assert 0 < scheduler.patience() <= 3
    clock.pass_(3)
    await scheduler.reconcile()
    assert 0 < scheduler.patience() <= 3
    clock.pass_(3)
    assert await scheduler.reconcile() == 1


class Patient(SchedulerReconciler):
    """One that would look again only tomorrow."""

    resync_seconds = 86_400.0


async def test_the_loop_looks_again_by_itself_when_the_moment_comes(
    platform: Platform, clock: Clock
):
    await add_node(platform)
    job = await ask(platform, starts_at=START + timedelta(milliseconds=1))
    running = asyncio.create_task(Patient(platform, Signals()).run())
    try:
        await until(lambda: has_reason(platform, job), "it has been looked at")
        clock.pass_(1)
        await until(lambda: is_placed(platform, job), "it is placed")
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def has_reason(platform: Platform, job: Session) -> bool:
    return "is to start at" in (await read(platform, job)).reason


async def is_placed(platform: Platform, job: Session) -> bool:
    return (await read(platform, job)).status is SessionStatus.SCHEDULED
