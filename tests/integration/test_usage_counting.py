"""What is used is counted by day, each second of each allocation exactly once."""

from __future__ import annotations

import asyncio
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, text

from backendai_hub.core.fair_share import DAY
from backendai_hub.core.groups import FairShare
from backendai_hub.db.engine import Database
from backendai_hub.db.shares import find_histories
from backendai_hub.db.tables import AllocationRow, ContainerRow, UsageBucketRow
from backendai_hub.db.usage import PERIOD, count_usage, load_history, load_live
from backendai_hub.operations import counting
from backendai_hub.operations.counting import count_all, forget_old
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.sessions import terminate_session
from backendai_hub.reconcilers.usage import UsageReconciler
from tests.factories import (
    START,
    Clock,
    Node,
    add_node,
    make_device,
    principal_of,
    start,
)
from tests.tenants import Office, make_system

TODAY = START.date()
CPU = {"slots": {"cpu": "1"}}


@pytest.fixture
def clock(platform: Platform) -> Clock:
    found = platform.database.clock
    assert isinstance(found, Clock)
    return found


@pytest.fixture
async def node(platform: Platform) -> Node:
    return await add_node(
        platform, devices=[make_device(slots={"cpu": 8000, "mem": 1 << 40})]
    )


async def buckets(platform: Platform, slot: str = "cpu") -> dict[date, float]:
    """Return seconds of whole processors, by day."""
    async with platform.database.read() as connection:
        rows = await connection.execute(
            select(UsageBucketRow.day, UsageBucketRow.seconds).where(
                UsageBucketRow.slot == slot
            )
        )
        found: dict[date, float] = {}
        for day, seconds in rows:
            found[day] = found.get(day, 0) + seconds / 1000
        return found


async def end(platform: Platform, node: Node, session: Any) -> None:
    """End a session and have its node say that it is gone."""
    owner = await principal_of(platform, session.owner)
    await terminate_session(platform, owner, session.id)
    await node.report([])


async def in_fact(platform: Platform) -> float:
    """Sum what the allocations say themselves: processor-seconds until now."""
    async with platform.database.read() as connection:
        rows = await connection.execute(
            select(
                AllocationRow.amount, ContainerRow.created_at, AllocationRow.freed_at
            )
            .join(ContainerRow, ContainerRow.id == AllocationRow.container_id)
            .where(AllocationRow.slot == "cpu")
        )
        now = platform.database.clock()
        return sum(
            amount / 1000 * ((freed or now) - begun).total_seconds()
            for amount, begun, freed in rows
        )


async def test_what_runs_is_counted_from_its_placement(
    platform: Platform, clock: Clock, node: Node
):
    await start(platform, **CPU)
    clock.pass_(90)

    await count_all(platform)

    assert await buckets(platform) == {TODAY: 90}


async def test_counting_again_at_once_counts_nothing(
    platform: Platform, clock: Clock, node: Node
):
    await start(platform, **CPU)
    clock.pass_(90)
    await count_all(platform)

    assert await count_all(platform) == 0
    assert await buckets(platform) == {TODAY: 90}


async def test_what_runs_is_counted_every_few_minutes_only(
    platform: Platform, clock: Clock, node: Node
):
    await start(platform, **CPU)
    clock.pass_(1)
    await count_all(platform)
    clock.pass_(PERIOD.total_seconds() - 1)
    assert await count_all(platform) == 0
    clock.pass_(1)

    assert await count_all(platform) == 2  # a processor and its memory
    assert await buckets(platform) == {TODAY: 1 + PERIOD.total_seconds()}


async def test_what_has_ended_is_counted_to_its_end_and_no_further(
    platform: Platform, clock: Clock, node: Node
):
    session = await start(platform, **CPU)
    clock.pass_(30)
    await count_all(platform)
    clock.pass_(12)
    await end(platform, node, session)
    clock.pass_(1000)

    await count_all(platform)

    assert await buckets(platform) == {TODAY: 42}
    assert await count_all(platform) == 0


async def test_a_night_is_in_two_days(platform: Platform, clock: Clock, node: Node):
    clock.pass_(DAY - 60)
    await start(platform, **CPU)
    clock.pass_(60 + DAY + 30)

    await count_all(platform)

    assert await buckets(platform) == {
        TODAY: 60,
        TODAY + timedelta(days=1): DAY,
        TODAY + timedelta(days=2): 30,
    }


async def test_use_is_kept_by_group_domain_project_user_and_slot(
    platform: Platform, clock: Clock, node: Node
):
    await start(platform, "alice", **CPU)
    await start(platform, "bob", slots={"cpu": "2", "mem": "1g"})
    clock.pass_(10)
    await count_all(platform)

    async with platform.database.read() as connection:
        rows = (await connection.execute(select(UsageBucketRow.__table__))).all()

    of_bob = {r.slot: r.seconds for r in rows if r.seconds > 10_000}
    assert of_bob == {"cpu": 20_000, "mem": 10 * (1 << 30)}
    assert len({r.group_id for r in rows}) == 1
    assert len({r.user_id for r in rows}) == 2


async def test_system_sessions_count_for_nobodys_turn(
    platform: Platform, clock: Clock, node: Node
):
    session = await start(platform, **CPU)
    await make_system(platform, session.id)
    clock.pass_(60)

    assert await count_all(platform) == 2
    assert await buckets(platform) == {}


async def test_what_is_held_counts_for_ones_turn_until_it_has_ended(
    platform: Platform, node: Node
):
    group = (await Office(platform).read("resource-group", "default")).id

    async def held() -> list[int]:
        async with platform.database.read() as connection:
            people = (await load_live(connection, [group])).get(group, {})
        return sorted(slots["cpu"] for slots in people.values())

    first = await start(platform, "alice", **CPU)
    second = await start(platform, "bob", server="two", **CPU)
    assert await held() == [1000, 1000]
    await make_system(platform, second.id)
    assert await held() == [1000], "the platform's own are nobody's"
    await end(platform, node, first)
    assert await held() == []


async def test_what_was_used_of_one_group_counts_in_that_group_only(
    platform: Platform, clock: Clock, node: Node
):
    office = Office(platform)
    await office.make("resource-group", name="other")
    await start(platform, **CPU)
    clock.pass_(60)
    await count_all(platform)
    found = {}
    for name in ("default", "other"):
        group = (await office.read("resource-group", name)).id
        async with platform.database.read() as connection:
            today = platform.database.clock().date()
            history = await load_history(connection, group, today, FairShare())
        found[name] = [slots["cpu"] for slots in history.values()]
    assert found == {"default": [60_000.0], "other": []}


async def test_a_pass_that_dies_has_counted_nothing(
    platform: Platform, clock: Clock, node: Node
):
    await start(platform, **CPU)
    clock.pass_(60)

    async def die() -> None:
        async with platform.database.transaction() as tx:
            assert await count_usage(tx)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await die()
    assert await buckets(platform) == {}

    await count_all(platform)

    assert await buckets(platform) == {TODAY: 60}


async def test_two_who_count_at_once_count_it_once(
    platform: Platform, clock: Clock, node: Node, db_url: str
):
    for server in ("one", "two", "three", "four"):
        await start(platform, server=server, **CPU)
    clock.pass_(60)
    other = Database(db_url, clock=clock)
    rival = Platform(other, platform.vault, platform.authority)

    await asyncio.gather(*(count_all(p) for p in (platform, rival) * 4))

    await other.close()
    assert await buckets(platform) == {TODAY: 240}


async def test_more_than_one_batch_is_counted_in_one_pass(
    platform: Platform, clock: Clock, node: Node, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("backendai_hub.db.usage.AT_ONCE", 2)
    monkeypatch.setattr(counting, "AT_ONCE", 2)
    for server in ("one", "two", "three"):
        await start(platform, server=server, **CPU)
    clock.pass_(10)

    assert await count_all(platform) == 6
    assert await buckets(platform) == {TODAY: 30}


async def test_a_clock_that_ran_ahead_is_put_right(
    platform: Platform, clock: Clock, node: Node
):
    session = await start(platform, **CPU)
    clock.pass_(2 * DAY)
    await count_all(platform)
    clock.pass_(60 - 2 * DAY)

    await count_all(platform)

    assert {d: s for d, s in (await buckets(platform)).items() if s} == {TODAY: 60}
    await end(platform, node, session)
    await count_all(platform)
    assert (await buckets(platform))[TODAY] == 60


async def test_a_clock_that_jumps_by_centuries_makes_no_endless_work(
    platform: Platform, clock: Clock, node: Node
):
    await start(platform, **CPU)
    clock.now = datetime(2400, 1, 1, tzinfo=START.tzinfo)
    await count_all(platform)
    assert len(await buckets(platform)) == 400

    clock.now = START + timedelta(seconds=5)
    await count_all(platform)

    assert not any((await buckets(platform)).values())


async def test_a_session_that_ended_before_it_began_counts_nothing(
    platform: Platform, clock: Clock, node: Node
):
    session = await start(platform, **CPU)
    clock.pass_(-20)
    await end(platform, node, session)

    assert await count_all(platform) == 2
    assert not any((await buckets(platform)).values())
    assert await count_all(platform) == 0


async def test_whatever_happens_in_between_every_second_is_counted_once(
    platform: Platform, clock: Clock, node: Node
):
    running: list[Any] = []
    for step in range(24):
        clock.pass_(7 + 613 * (step % 5))
        if step % 3 == 0:
            running.append(await start(platform, server=f"s{step}", **CPU))
        elif step % 4 == 1 and running:
            await end(platform, node, running.pop(0))
        if step % 2:
            await count_all(platform)
    clock.pass_(PERIOD.total_seconds())
    await count_all(platform)

    assert sum((await buckets(platform)).values()) == await in_fact(platform)


async def test_what_a_purged_user_has_used_still_counts_for_their_project(
    platform: Platform, clock: Clock, node: Node
):
    session = await start(platform, "gone", **CPU)
    clock.pass_(60)
    await end(platform, node, session)
    office = Office(platform)
    await office.change("user", "gone", status="deleted")

    await office.purge("user", "gone")

    assert await buckets(platform) == {TODAY: 60}


async def test_days_that_count_for_nobody_are_forgotten(
    platform: Platform, clock: Clock, node: Node
):
    session = await start(platform, **CPU)
    clock.pass_(60)
    await end(platform, node, session)
    reconciler = UsageReconciler(platform, None)  # type: ignore[arg-type]
    await reconciler.reconcile()
    clock.pass_(400 * DAY)
    await reconciler.reconcile()
    assert TODAY in await buckets(platform)
    clock.pass_(DAY)

    await reconciler.reconcile()

    assert TODAY not in await buckets(platform)


async def test_a_group_that_looks_back_further_keeps_them(
    platform: Platform, clock: Clock, node: Node
):
    await Office(platform).change(
        "resource-group", "default", fair_share_spec={"lookback_days": 500}
    )
    await start(platform, **CPU)
    clock.pass_(60)
    await count_all(platform)
    clock.pass_(450 * DAY)

    await forget_old(platform)

    assert TODAY in await buckets(platform)


async def test_the_database_adds_up_what_the_formula_says(
    platform: Platform, clock: Clock, node: Node
):
    """Seven days of half the group: by hand, and by the database."""
    rules = FairShare(half_life_days=2, lookback_days=5)
    await start(platform, slots={"cpu": "4"})
    clock.pass_(7 * DAY)
    await count_all(platform)
    today = clock().date()

    async with platform.database.read() as connection:
        group = await connection.scalar(text("SELECT id FROM resource_groups"))
        used = await load_history(connection, group, today, rules)

    ((user, slots),) = used.items()
    # Today has just begun; of the days before, four are within the lookback.
    days = sum(2 ** (-age / 2) for age in (1, 2, 3, 4))
    assert slots["cpu"] == pytest.approx(4000 * DAY * days)
    histories = find_histories(used, {"cpu": 8000}, rules)
    assert histories == {
        user[:depth]: pytest.approx(0.5 * days / 5) for depth in (1, 2, 3)
    }


async def test_nodes_that_answer_late_lose_no_use(
    platform: Platform, clock: Clock, node: Node
):
    """An ended session holds its share until its node says that it is gone."""
    session = await start(platform, **CPU)
    clock.pass_(10)
    owner = await principal_of(platform, session.owner)
    await terminate_session(platform, owner, session.id)
    clock.pass_(50)
    await node.report([])

    await count_all(platform)

    assert await buckets(platform) == {TODAY: 60}
