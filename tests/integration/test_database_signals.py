"""Wake-ups: with a ticket taken first, none is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine

import pytest

from backendai_hub.db.signals import Signals
from backendai_hub.operations.platform import Platform
from backendai_hub.reconcilers import base
from backendai_hub.reconcilers.base import Reconciler

LONG, NO_TIME = 30.0, 0.0


async def waiting(signals: Signals, name: str = "news") -> asyncio.Task[bool]:
    """Begin to wait with a ticket taken now."""
    task = asyncio.create_task(signals.wait(name, signals.ticket(name), LONG))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_who_waits_is_woken():
    signals = Signals()
    tasks = [await waiting(signals) for _ in range(3)]
    signals.wake("news")
    assert await asyncio.gather(*tasks) == [True, True, True]


async def test_a_wake_up_between_ticket_and_wait_is_not_lost():
    signals = Signals()
    ticket = signals.ticket("news")
    signals.wake("news")
    assert await signals.wait("news", ticket, NO_TIME)


async def test_a_wake_up_before_the_ticket_is_old_news():
    signals = Signals()
    signals.wake("news")
    assert not await signals.wait("news", signals.ticket("news"), NO_TIME)


async def test_others_names_wake_nobody():
    signals = Signals()
    task = await waiting(signals)
    signals.wake("other")
    await asyncio.sleep(0)
    assert not task.done()
    signals.wake("news")
    assert await task


async def test_time_that_is_up_and_waiters_that_leave_are_forgotten():
    signals = Signals()
    assert not await signals.wait("news", signals.ticket("news"), NO_TIME)
    gone, stays = await waiting(signals), await waiting(signals)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert [len(w) for w in signals._waiters.values()] == [1]
    signals.wake("news")
    assert await stays
    assert not signals._waiters


async def test_who_is_woken_and_waits_again_at_once_waits_for_the_next():
    signals = Signals()
    rounds = 0

    async def follow() -> None:
        nonlocal rounds
        while rounds < 3:
            ticket = signals.ticket("news")
            assert await signals.wait("news", ticket, LONG)
            rounds += 1

    task = asyncio.create_task(follow())
    for expected in range(3):
        for _ in range(3):
            await asyncio.sleep(0)
        assert rounds == expected
        signals.wake("news")
    await task


@pytest.mark.parametrize("seed", range(5))
async def test_a_follower_with_tickets_sees_every_last_value(seed: int):
    """However looking, waiting and changing interleave, nobody sleeps on news."""
    signals, chance, value = Signals(), random.Random(seed), 0

    async def follow() -> None:
        while True:
            ticket = signals.ticket("news")
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            if value == 200:
                return
            assert await signals.wait("news", ticket, LONG)

    async with asyncio.timeout(LONG), asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(follow())
        while value < 200:
            value += 1
            signals.wake("news")
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)


async def begin(wait: Coroutine[None, None, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(wait)
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def test_who_can_wait_goes_on_once_nobody_is_in_a_hurry_any_more():
    signals = Signals()
    with signals.hurrying():
        with signals.hurrying():
            task = await begin(signals.calm(LONG))
        await asyncio.sleep(0)
        assert not task.done()
    await asyncio.wait_for(task, LONG)


async def test_who_can_wait_does_not_wait_for_ever():
    signals = Signals()
    with signals.hurrying():
        await signals.calm(NO_TIME)


async def test_where_nobody_hurries_nobody_waits():
    signals = Signals()
    with pytest.raises(RuntimeError), signals.hurrying():
        raise RuntimeError
    task = await begin(signals.calm(LONG))
    assert task.done()


class Looking(Reconciler):
    """One that counts its passes, and can be held up in one."""

    name = "looking"

    def __init__(self, platform: Platform, signals: Signals) -> None:
        super().__init__(platform, signals)
        self.passes, self.let = 0, asyncio.Event()

    async def reconcile(self) -> int:
        await self.let.wait()
        self.passes += 1
        return 0


class Urgent(Looking):
    name = "urgent"
    hurries = True


async def test_a_pass_that_somebody_waits_for_is_not_disturbed_by_others(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(base, "LONGEST_WAY", LONG)
    signals = Signals()
    urgent, looking = Urgent(platform, signals), Looking(platform, signals)
    looking.let.set()
    tasks = [await begin(urgent.run()), await begin(looking.run())]
    assert looking.passes == 0
    urgent.let.set()
    for _ in range(9):
        await asyncio.sleep(0)
    assert (urgent.passes, looking.passes) == (1, 1)
    for task in tasks:
        task.cancel()
