"""However many wait, and however often somebody calls, each gets a reason."""

from __future__ import annotations

from typing import Any

import pytest

from backendai_hub.core.access import Caller
from backendai_hub.db.session_lists import list_waiting
from backendai_hub.db.signals import Signals
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import QueueView
from backendai_hub.operations.queues import QueueQuery, read_queue
from backendai_hub.operations.sessions import terminate_session
from backendai_hub.reconcilers import scheduler, telling
from backendai_hub.reconcilers.scheduler import SchedulerReconciler
from backendai_hub.reconcilers.steps import Course
from backendai_hub.scheduling import plugins
from backendai_hub.scheduling.snapshot import Plan
from tests.factories import add_node, make_device, principal_of, start, submit
from tests.tenants import ROOT, Office

ASKED = {"cpu": "3", "mem": "1"}


async def read_reasons(platform: Platform) -> dict[str, str]:
    async with platform.database.read() as connection:
        return {r.id: r.reason for r in await list_waiting(connection)}


async def test_who_came_last_gets_a_reason_although_others_have_news_all_the_time(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    node = await add_node(
        platform, devices=[make_device(slots={"cpu": 4000, "mem": 9})]
    )
    await start(platform, "zoe", slots=ASKED)
    signals = Signals()
    reconciler = SchedulerReconciler(platform, signals)
    explain = telling.explain

    async def explain_and_be_called(*given: Any) -> int:
        signals.wake("scheduler")
        return await explain(*given)

    # One reason at a time, and somebody calls whenever one is stored.
    monkeypatch.setattr(telling, "explain", explain_and_be_called)
    monkeypatch.setattr(telling, "_MOST_TOLD", 1)

    async def look(free: int) -> dict[str, str]:
        """Let one pass find other numbers than the last, for everybody."""
        node.devices = [make_device(slots={"cpu": 4000 + free, "mem": 9})]
        await node.report()
        await reconciler.reconcile()
        return await read_reasons(platform)

    a = (await submit(platform, "alice", slots=ASKED)).session.id
    b = (await submit(platform, "bob", slots=ASKED)).session.id
    await look(1)
    told = await look(2)
    assert "1.001 free" in told[a]
    assert "1.002 free" in told[b], "not alice again"

    c = (await submit(platform, "carol", slots=ASKED)).session.id
    assert "1.003 free" in (await look(3))[c], "who has just come goes first"
    for free in (4, 5, 6):
        told = await look(free)
    assert all(session in told for session in (a, b, c))
    assert sorted(reason.split(", ")[1] for reason in told.values()) == [
        f"1.00{free} free on node-1" for free in (4, 5, 6)
    ], "then each in turn"


async def test_a_pass_that_fails_is_made_again_and_not_only_some_seconds_later(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    await add_node(platform)
    reconciler = SchedulerReconciler(platform, Signals())
    asked = (await submit(platform, slots=ASKED)).session

    async def fail(*_: Any) -> int:
        raise OSError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(scheduler, "place", fail)
        with pytest.raises(OSError, match="away"):
            await reconciler.reconcile()
    assert await reconciler.reconcile() == 1
    assert asked.id not in await read_reasons(platform)


class Watch:
    """A clock that runs only while it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_reading_everything_anew_takes_a_two_hundredth_of_the_time_at_most(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    watch, anew = Watch(), []
    reconciler = SchedulerReconciler(platform, Signals(), clock=watch)
    forget, refresh = QueueView.forget, QueueView.refresh

    def note(view: QueueView) -> None:
        anew.append(watch.now)
        forget(view)

    async def take_ten_seconds(view: QueueView) -> bool:
        watch.now += 10
        return await refresh(view)

    monkeypatch.setattr(QueueView, "forget", note)
    await reconciler.reconcile()
    watch.now = 59
    await reconciler.reconcile()
    assert anew == [0]
    with monkeypatch.context() as patch:
        patch.setattr(QueueView, "refresh", take_ten_seconds)
        watch.now = 60
        await reconciler.reconcile()
    assert anew == [0, 60]
    for moment in (130, 2069, 2070, 2129, 2130):
        watch.now = moment
        await reconciler.reconcile()
    assert anew == [0, 60, 2070, 2130], "2,000 seconds after it had ended, then 60"


async def test_who_has_gone_is_forgotten_also_while_there_is_news_all_the_time(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(telling, "_LEAST_TRIED", 2)
    # It is always the turn of others to be told.
    monkeypatch.setattr(telling, "in_batches", lambda *_: [])
    await add_node(platform, devices=[make_device(slots={"cpu": 4000, "mem": 9})])
    await start(platform, "zoe", slots=ASKED)
    reconciler = SchedulerReconciler(platform, Signals())
    zoe = await principal_of(platform, "zoe", Caller.USER)
    for number in range(9):
        guest = (
            await submit(platform, "zoe", server=f"s{number}", slots=ASKED)
        ).session
        await reconciler.reconcile()
        await terminate_session(platform, zoe, guest.id)
    assert len(reconciler._teller._tried) <= 2 + 2


async def test_a_policy_that_fails_is_logged_once_and_told_to_who_waits(
    platform: Platform,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    class Broken:
        name = "fifo"

        def order(self, *_: Any) -> Any:
            raise ZeroDivisionError("boom")

    monkeypatch.setattr(plugins, "SEQUENCERS", {"fifo": Broken()})
    await add_node(platform)
    session = (await submit(platform, "alice")).session.id
    reconciler = SchedulerReconciler(platform, Signals())
    for _ in range(2):
        reconciler._planned_at = float("-inf")
        assert await reconciler.reconcile() == 0
    told = (await read_reasons(platform))[session]
    assert "the sequencer 'fifo' of its resource group failed" in told
    [line] = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
    assert line.startswith("resource group ")
    assert "ZeroDivisionError: boom" in line


async def test_what_is_wrong_with_a_policy_is_told_with_the_queue_until_it_is_mended(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    class Broken:
        name = "lifo"
        fails = True

        def order(self, *given: Any) -> Any:
            if self.fails:
                raise ZeroDivisionError("boom")
            return own["fifo"].order(*given)

    async def read_fault() -> str:
        return (await read_queue(platform, ROOT, "default", QueueQuery())).fault

    async def plan_anew() -> str:
        reconciler._planned_at = float("-inf")
        await reconciler.reconcile()
        return await read_fault()

    own = plugins.SEQUENCERS
    broken = Broken()
    monkeypatch.setattr(plugins, "SEQUENCERS", {**own, "lifo": broken})
    await add_node(platform)
    office = Office(platform)
    await office.change("resource-group", "default", scheduler="lifo")
    reconciler = SchedulerReconciler(platform, Signals())
    assert await plan_anew() == "", "nobody has asked it yet"
    waiting = (await submit(platform, "alice")).session
    assert "'lifo' of its resource group failed" in await plan_anew()

    await office.change("resource-group", "default", scheduler="fifo")
    assert await read_fault() == "", "it is not followed any more"
    await office.change("resource-group", "default", scheduler="lifo")
    assert "ZeroDivisionError: boom" in await read_fault()

    broken.fails = False
    assert await plan_anew() == ""
    assert waiting.id not in await read_reasons(platform)


async def test_all_are_looked_at_again_twenty_times_as_long_as_that_took_after_it(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    watch, looks = Watch(), []
    reconciler = SchedulerReconciler(platform, Signals(), clock=watch)
    step = Course.step

    async def take_a_second(course: Course) -> Plan:
        looks.append(watch.now)
        watch.now += 1
        return await step(course)

    monkeypatch.setattr(Course, "step", take_a_second)
    for moment in (10, 29, 30, 49, 50):
        watch.now = moment
        await reconciler.reconcile()
    assert looks == [10, 30, 50]
