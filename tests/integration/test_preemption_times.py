"""Who makes room, and what groups and silent nodes say about time."""

from __future__ import annotations

import msgspec
import pytest

from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db.engine import Database
from backendai_hub.operations.batch import requeue_stranded
from backendai_hub.operations.deadlines import end_expired, end_overdue
from backendai_hub.operations.nodes import judge_agents
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_verbs import (
    HoldRequest,
    hold_session,
    release_session,
)
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.scheduling.plan import plan
from tests.factories import START, Clock, Node, add_node, make_device, make_gpu
from tests.jobs import ask
from tests.preemptions import GPU, look, occupy, opt_in, vanish
from tests.tenants import ROOT, Office, breaches, read

S = SessionStatus
HOUR = 3600


@pytest.fixture
async def node(platform: Platform) -> Node:
    return await add_node(platform, devices=[make_device(), make_gpu("gpu-0")])


@pytest.fixture
def clock(database: Database) -> Clock:
    assert isinstance(database.clock, Clock)
    return database.clock


async def allow_to_wait(platform: Platform, seconds: int) -> None:
    office = Office(platform)
    found = await office.read("resource-group", "default")
    options = msgspec.to_builtins(found.scheduler_opts)
    options["pending_timeout"] = seconds
    await office.change("resource-group", "default", scheduler_opts=options)


async def test_who_made_room_may_wait_as_long_as_anybody_else_afterwards(
    platform: Platform, node: Node, clock: Clock
):
    await opt_in(platform, mode="reschedule")
    await allow_to_wait(platform, HOUR)
    victim = await occupy(platform, node)
    clock.pass_(2 * HOUR)
    await node.report([], generation=0)
    await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    await vanish(platform, node, victim)

    assert await end_expired(platform) == 0
    back = await read(platform, victim)
    assert (back.status, back.deadline_at) == (S.PENDING, "2026-01-01T03:00:00.000Z")
    clock.pass_(HOUR / 2)
    await hold_session(platform, ROOT, victim.id, HoldRequest(reason="wait"))
    clock.pass_(HOUR)
    assert await end_expired(platform) == 0
    await release_session(platform, ROOT, victim.id)
    clock.pass_(HOUR / 2)
    assert await end_expired(platform) == 1
    assert (await read(platform, victim)).status is S.CANCELLED
    assert await breaches(platform) == []


@pytest.mark.parametrize("how", ["made room", "lost its node"])
async def test_who_is_back_in_the_queue_has_waited_since_then_and_keeps_its_place(
    platform: Platform, node: Node, clock: Clock, how: str
):
    await opt_in(platform, mode="reschedule")
    back = await occupy(platform, node, max_attempts=2)
    clock.pass_(2 * HOUR)
    await node.report([], generation=0)
    if how == "made room":
        await ask(platform, "bob", slots=GPU, job_priority=1)
        await look(platform)
        await vanish(platform, node, back)
        assert await look(platform) == 1
    else:
        clock.pass_(600)
        await judge_agents(platform, START)
        assert await requeue_stranded(platform, START) == 1
        await node.report([])
        await occupy(platform, node, "bob", priority=20)
    later = await ask(platform, "carol", slots=GPU, job_priority=-1)

    # It was asked for hours ago, and has waited for no time at all.
    snapshot = await load_snapshot(platform)
    assert [one.id for one in snapshot.queue] == [back.id, later.id]
    assert plan(snapshot).reservations == ()
    clock.pass_(HOUR)
    await node.report([], generation=0)
    reserved = plan(await load_snapshot(platform)).reservations
    assert [one.session for one in reserved] == [back.id]


async def test_room_that_was_kept_in_vain_gives_nobody_more_time_to_wait(
    platform: Platform, node: Node, clock: Clock
):
    await opt_in(platform)
    await allow_to_wait(platform, 600)
    await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    clock.pass_(331)
    await judge_agents(platform, START)  # the node is silent
    await end_overdue(platform)

    await end_expired(platform)
    back = await read(platform, urgent)
    assert (back.status, back.deadline_at) == (S.PENDING, "2026-01-01T00:10:00.000Z")


async def test_why_it_made_room_is_told_although_its_node_was_silent(
    platform: Platform, node: Node, clock: Clock
):
    await opt_in(platform)
    victim = await occupy(platform, node)
    await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    clock.pass_(331)
    await judge_agents(platform, START)
    await end_overdue(platform)
    await end_overdue(platform)
    why = "preempted to make room for another session, which has a higher job priority"
    waiting = await read(platform, victim)
    assert waiting.reason == f"{why}; waiting for node-1, which does not answer"

    await vanish(platform, node, victim)
    left = await read(platform, victim)
    assert (left.status, left.reason) == (S.TERMINATED, why)
