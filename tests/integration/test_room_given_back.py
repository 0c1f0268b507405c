"""Room that was made for a session that may not start then is given back at once."""

from __future__ import annotations

import pytest

from backendai_hub.core.preemptions import Ending
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.preemption import give_back
from tests.factories import Node, add_node, make_device, make_gpu
from tests.jobs import ask, stop
from tests.preemptions import GPU, look, occupy, opt_in, plans, vanish
from tests.tenants import Office, breaches, read

S = SessionStatus


@pytest.fixture
async def node(platform: Platform) -> Node:
    return await add_node(platform, devices=[make_device(), make_gpu("gpu-0")])


async def displace(platform: Platform, node: Node) -> tuple[Session, Session, Session]:
    """Have Alice leave for Bob, and use up Bob's own limit meanwhile.

    Returns who leaves, for whom, and who uses the limit.
    """
    await opt_in(platform)
    fields = {"max_job_priority": None, "max_concurrent_sessions": 1}
    await Office(platform).limit_user("bob", **fields)
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    assert (await read(platform, urgent)).status is S.RESERVED
    quick = await ask(platform, "bob", slots={"cpu": "1"}, priority=50)
    assert await look(platform) == 1
    return victim, urgent, quick


async def test_who_may_not_start_when_all_have_left_gives_the_room_back_and_says_why(
    platform: Platform, node: Node
):
    victim, urgent, quick = await displace(platform, node)
    # What Alice leaves might have been what it waits for: nothing is given up before.
    assert (await read(platform, urgent)).status is S.RESERVED

    await vanish(platform, node, victim)
    other = await ask(platform, "carol", slots=GPU)
    await look(platform)
    back = await read(platform, urgent)
    assert back.status is S.PENDING
    assert back.reason.startswith("user bob: sessions 1 of 1 in use, asks 1")
    assert back.reason.endswith("; the room that was kept for it is given back")
    assert (await plans(platform))[0].ending is Ending.WITHDRAWN

    assert (await read(platform, other)).status is S.SCHEDULED
    await stop(platform, quick, force=True)
    await look(platform)  # it may start now, and somebody leaves for it again
    assert (await read(platform, urgent)).status is S.RESERVED
    assert await breaches(platform) == []


async def test_nothing_is_given_back_while_somebody_still_leaves(
    platform: Platform, node: Node
):
    victim, urgent, _ = await displace(platform, node)
    assert await give_back(platform, {urgent.id: "an old look says so"}) == 0
    assert (await read(platform, urgent)).status is S.RESERVED
    await vanish(platform, node, victim)
    assert await give_back(platform, {urgent.id: "so it is", victim.id: "gone"}) == 1
    assert await give_back(platform, {urgent.id: "said twice"}) == 0
    assert (await read(platform, urgent)).reason.startswith("so it is; ")
