"""Devices that are cut into instances, from a node's report to who has which slices."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import text

from backendai_agent.accelerators.fake import FakeAccelerator
from backendai_hub.api.agents import DeviceShare
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import InvalidRequestError, NeverFitsError
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.db.running import load_running
from backendai_hub.operations.nodes import load_assignments
from backendai_hub.operations.placement import apply_plan
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import QueueView, load_snapshot
from backendai_hub.operations.sessions import get_session, terminate_session
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import Placement, Plan, Share
from tests.factories import (
    Node,
    add_node,
    list_nodes,
    make_device,
    principal_of,
    schedule,
    start,
    submit,
)
from tests.tenants import ROOT, Office, breaches, read, why

SMALL = "cuda.device:1g.5gb-mig"
MIDDLE = "cuda.device:2g.10gb-mig"
LARGE = "cuda.device:3g.20gb-mig"


async def add_cut_node(platform: Platform, count: int = 1, **traits: object) -> Node:
    """Add a node whose devices can be cut."""
    accelerator = FakeAccelerator(
        **{"count": count, "cut_like": "a100-40", "node": "node-1", **traits}
    )
    return await add_node(platform, devices=[make_device(), *accelerator.discover()])


async def shares_of(platform: Platform, node: Node) -> dict[str, list[DeviceShare]]:
    """Return what the node is told to give each session of its accelerators."""
    document = await load_assignments(platform, node.id)
    return {
        c.session_id: [s for s in c.shares if s.device != "host"]
        for c in document.containers
    }


async def end(platform: Platform, session: Session) -> None:
    await terminate_session(platform, ROOT, session.id, force=True)


def ask(slot: str, count: int = 1) -> dict[str, str]:
    return {"cpu": "0.1", "mem": "1", slot: str(count)}


async def test_sessions_share_a_device_and_no_slice_of_it(platform: Platform):
    node = await add_cut_node(platform)
    one = await start(platform, slots=ask(SMALL), server="1")
    two = await start(platform, "bob", slots=ask(LARGE), server="2")
    told = await shares_of(platform, node)
    [[first], [second]] = told[one.id], told[two.id]
    assert first.device == second.device
    assert first.slices
    assert second.slices
    assert not first.slices & second.slices
    assert not await breaches(platform)


async def test_people_are_shown_which_slices_they_have(platform: Platform):
    node = await add_cut_node(platform)
    session = await start(platform, slots=ask(LARGE))
    [given] = (await shares_of(platform, node))[session.id]

    principal = await principal_of(platform, "alice", Caller.USER)
    [container] = (await get_session(platform, principal, session.id)).containers

    [held] = container.devices
    assert (held.slot, held.amount) == (LARGE, "1")
    assert sum(1 << n for n in held.slices) == given.slices
    await end(platform, session)
    [container] = (await get_session(platform, principal, session.id)).containers
    assert container.devices == []


async def test_what_runs_is_known_with_its_slices(platform: Platform):
    await add_cut_node(platform)
    await start(platform, slots=ask(LARGE))
    async with platform.database.read() as connection:
        [running] = await load_running(connection)
    [(_, shares)] = running.holdings
    assert [s.slices.bit_count() for s in shares if s.slot == LARGE] == [4]


async def test_a_device_in_slices_is_given_whole_only_afterwards(platform: Platform):
    await add_cut_node(platform)
    small = await start(platform, slots=ask(SMALL), server="1")
    whole = (await submit(platform, "bob", slots=ask("cuda.device"))).session
    assert "cuda.device" in await why(platform, whole)
    await end(platform, small)
    assert await schedule(platform) == 1
    other = (await submit(platform, slots=ask(SMALL), server="2")).session
    assert SMALL in await why(platform, other)
    assert not await breaches(platform)


async def test_one_container_may_have_several_instances_of_a_device(
    platform: Platform,
):
    node = await add_cut_node(platform)
    session = await start(platform, slots=ask(SMALL, 3))
    shares = (await shares_of(platform, node))[session.id]
    assert len({s.slices for s in shares}) == len(shares) == 3
    assert len((await read(platform, session)).devices) == 1


async def test_instances_an_administrator_has_made_are_all_there_is(
    platform: Platform,
):
    node = await add_cut_node(platform, instances=["3g.20gb", "1g.5gb"])
    [shown] = await list_nodes(platform)
    assert (shown.capacity[SMALL], shown.capacity[LARGE]) == ("1", "1")
    assert "cuda.device" not in shown.capacity
    await start(platform, slots=ask(SMALL), server="1")
    waiting = (await submit(platform, "bob", slots=ask(SMALL))).session
    assert SMALL in await why(platform, waiting)
    with pytest.raises(InvalidRequestError, match="there is no such resource"):
        await submit(platform, slots=ask(MIDDLE), server="3")
    with pytest.raises(NeverFitsError, match="1"):
        await submit(platform, slots=ask(SMALL, 2), server="3")
    # They are made anew: what runs goes on, and its slices are not given again.
    node.devices = [
        node.devices[0],
        *FakeAccelerator(
            count=1, cut_like="a100-40", node="node-1", instances=["1g.5gb", "1g.5gb"]
        ).discover(),
    ]
    await node.report()
    assert await schedule(platform) == 1
    assert not await breaches(platform)


async def test_who_waits_for_slices_is_looked_at_when_they_are_free(
    platform: Platform,
):
    """Also when their own kind of instance is not offered any more."""
    node = await add_cut_node(platform, instances=["3g.20gb"])
    old = await start(platform, slots=ask(LARGE), server="1")
    again = FakeAccelerator(
        count=1, cut_like="a100-40", node="node-1", instances=["1g.5gb"]
    )
    node.devices = [node.devices[0], *again.discover()]
    await node.report()
    new = (await submit(platform, "bob", slots=ask(SMALL))).session
    view = QueueView(platform)
    await view.refresh()
    assert SMALL in await why(platform, new)
    assert not await view.refresh()
    await end(platform, old)
    assert await view.refresh()
    assert await schedule(platform) == 1


@pytest.mark.parametrize("traits", [{"instances": ["1g.5gb"]}, {"node": "other"}])
async def test_room_is_kept_though_what_runs_holds_what_is_not_offered_any_more(
    platform: Platform, traits: dict[str, object]
):
    """Its device is cut anew, or has left the node and another one has come."""
    node = await add_cut_node(platform, instances=["3g.20gb"])
    old = await start(platform, slots=ask(LARGE), server="1")
    blocking = await start(platform, "carol", slots={"cpu": "3.9", "mem": "1"})
    made = {"count": 1, "cut_like": "a100-40", "node": "node-1", **traits}
    node.devices = [node.devices[0], *FakeAccelerator(**made).discover()]
    await node.report()
    new = (await submit(platform, "bob", slots=ask(SMALL))).session
    platform.database.clock.pass_(2 * 3600)  # so long that something is kept for it
    assert await why(platform, new)
    await end(platform, old)
    await end(platform, blocking)
    assert await schedule(platform) == 1


async def test_instances_are_limited_by_their_own_names(platform: Platform):
    await add_cut_node(platform)
    office = Office(platform)
    await office.limit_user("alice", total_resource_slots={SMALL: "1", "cpu": "8"})
    await start(platform, slots=ask(SMALL), server="1")
    more = (await submit(platform, slots=ask(SMALL), server="2")).session
    assert SMALL in await why(platform, more)
    await start(platform, slots=ask(LARGE), server="3")


@pytest.mark.parametrize(
    ("slots", "words"),
    [
        ({SMALL: "0.5"}, "given whole"),
        ({SMALL: "1", "cuda.device": "1"}, "not for both"),
    ],
)
async def test_what_cannot_be_had_of_instances_is_refused(
    platform: Platform, slots: dict[str, str], words: str
):
    await add_cut_node(platform)
    with pytest.raises(InvalidRequestError, match=words):
        await submit(platform, slots=slots)


# --- two plans at once ---------------------------------------------------------------


async def placing(
    platform: Platform, session: Session, node: Node, slot: str, slices: int
) -> Plan:
    """Make a plan that gives a session these slices, whatever there is."""
    [state] = (await load_snapshot(platform)).nodes
    host = next(d for d in state.devices if d.name == "host")
    device = next(d for d in state.devices if d.name != "host")
    shares = (
        Share(host.id, "cpu", 100),
        Share(host.id, "mem", 1),
        Share(device.id, slot, 1000, slices),
    )
    placed = Placement(session=session.id, node=node.id, image="fake", shares=shares)
    return Plan(placements=(placed,), waiting={})


@pytest.mark.parametrize(
    ("slot", "slices"),
    [(SMALL, 0b1), (MIDDLE, 0b11), (LARGE, 0b1111), ("cuda.device", 0), (SMALL, 0b11)],
)
async def test_a_plan_that_overlaps_with_what_is_there_by_now_does_nothing(
    platform: Platform, slot: str, slices: int
):
    node = await add_cut_node(platform)
    one = (await submit(platform, slots=ask(SMALL), server="1")).session
    two = (await submit(platform, "bob", slots=ask(slot), server="2")).session
    first = await placing(platform, one, node, SMALL, 0b1)
    second = await placing(platform, two, node, slot, slices)
    assert await apply_plan(platform, first) == 1
    assert await apply_plan(platform, second) == 0
    assert not await breaches(platform)


async def test_of_two_in_one_plan_that_overlap_one_is_placed(platform: Platform):
    node = await add_cut_node(platform)
    both = []
    for name, slot, slices in (("alice", MIDDLE, 0b11), ("bob", LARGE, 0b1111)):
        session = (await submit(platform, name, slots=ask(slot))).session
        both += (await placing(platform, session, node, slot, slices)).placements
    assert await apply_plan(platform, Plan(placements=tuple(both), waiting={})) == 1
    assert not await breaches(platform)


# --- the promise ---------------------------------------------------------------------


@pytest.mark.parametrize("slices", [0b1, 0b11, 0])
async def test_slices_that_are_given_twice_are_found(platform: Platform, slices: int):
    """Planted on purpose: a check that finds nothing proves nothing."""
    await add_cut_node(platform)
    await start(platform, slots=ask(SMALL), server="1")
    await start(platform, "bob", slots=ask(SMALL), server="2")
    assert not await breaches(platform)
    async with platform.database.transaction() as tx:
        await tx.execute(
            text(
                "UPDATE allocations SET slices = :slices WHERE slot = :slot"
                " AND session_id = (SELECT MIN(session_id) FROM allocations)"
            ).bindparams(slices=slices, slot=SMALL)
        )
        await tx.execute(
            text(
                "UPDATE allocations SET slices = 1 WHERE slot = :slot"
                " AND session_id = (SELECT MAX(session_id) FROM allocations)"
            ).bindparams(slot=SMALL)
        )
    assert any("slices" in breach for breach in await breaches(platform))


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_comes_and_goes_no_slice_is_given_twice(
    platform: Platform, seed: int
):
    dice = random.Random(seed)
    node = await add_cut_node(platform, 2)
    view = QueueView(platform)
    live: list[Session] = []
    for turn in range(14):
        slot = dice.choice([SMALL, MIDDLE, LARGE, "cuda.device"])
        owner = f"user-{turn % 3}"
        made = await submit(platform, owner, slots=ask(slot), server=f"s{turn}")
        live.append(made.session)
        if dice.random() < 0.5:
            await end(platform, live.pop(dice.randrange(len(live))))
        gained = await view.refresh()
        fresh = await load_snapshot(platform)
        assert view.snapshot() == fresh
        decided = plan(fresh)
        assert gained or not decided.placements
        await apply_plan(platform, decided)
        assert not await breaches(platform)
    shown = [await read(platform, session) for session in live]
    assert any(session.status is SessionStatus.SCHEDULED for session in shown)
    assert len(await shares_of(platform, node)) >= 1
