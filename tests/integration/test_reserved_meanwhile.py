"""What is reserved after a plan was made is not given away by that plan."""

from __future__ import annotations

from datetime import timedelta

from backendai_hub.core.sessions import SessionStatus
from backendai_hub.operations.placement import apply_plan
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.preemption import carry_out
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.scheduling.plan import plan
from tests.factories import START, add_node, make_device, make_gpu, submit
from tests.jobs import ask
from tests.preemptions import GPU, look, occupy, opt_in, plans
from tests.tenants import Office, read

HOUR = 3600


async def reserve(platform: Platform, node: str) -> None:
    """Reserve a node for maintenance from the second hour to the fourth."""
    await Office(platform).make(
        "reservation",
        name="fans",
        kind="maintenance",
        resource_group="default",
        nodes=[node],
        begins_at=(START + timedelta(hours=2)).isoformat(),
        ends_at=(START + timedelta(hours=4)).isoformat(),
    )


async def test_what_was_decided_before_a_reservation_is_decided_again(
    platform: Platform,
):
    for name in ("n1", "n2"):
        await add_node(platform, name)
    wide = {"cpu": "3"}
    sessions = [(await submit(platform, u, slots=wide)).session for u in ("al", "bo")]
    decided = plan(await load_snapshot(platform))
    assert len({p.node for p in decided.placements}) == 2

    await reserve(platform, "n1")
    # Neither says when it ends, so neither may be on the node that is kept.
    assert await apply_plan(platform, decided) == 1
    assert await apply_plan(platform, plan(await load_snapshot(platform))) == 0
    assert {(await read(platform, one)).agent for one in sessions} == {"n2", None}


async def test_a_reservation_that_ends_later_than_it_did_is_thought_of_anew(
    platform: Platform,
):
    await add_node(platform, "n1")
    await reserve(platform, "n1")
    await ask(platform, batch_timeout=HOUR)
    decided = plan(await load_snapshot(platform))
    assert len(decided.placements) == 1
    until = (START + timedelta(hours=9)).isoformat()
    await Office(platform).change("reservation", "fans", ends_at=until)
    assert await apply_plan(platform, decided) == 0
    assert await apply_plan(platform, plan(await load_snapshot(platform))) == 1


async def test_reservations_that_were_known_do_not_hinder_who_ends_before_them(
    platform: Platform,
):
    await add_node(platform, "n1")
    await reserve(platform, "n1")
    job = await ask(platform, batch_timeout=HOUR)
    assert await look(platform) == 1
    assert (await read(platform, job)).status is SessionStatus.SCHEDULED


async def test_nobody_is_displaced_for_room_that_was_reserved_meanwhile(
    platform: Platform,
):
    node = await add_node(platform, "n1", [make_device(), make_gpu("gpu-0")])
    await opt_in(platform)
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1, batch_timeout=HOUR)
    decided = plan(await load_snapshot(platform))
    assert len(decided.preemptions) == 1

    await reserve(platform, "n1")
    assert await carry_out(platform, decided.preemptions, decided.windows) == 0
    assert await plans(platform) == []
    assert (await read(platform, victim)).status is SessionStatus.RUNNING
    # A look that knows of it decides anew, by how long the other one is to run.
    await look(platform)
    assert (await read(platform, urgent)).status is SessionStatus.RESERVED
