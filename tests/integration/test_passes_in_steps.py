"""However many wait, who comes does not wait for a pass over all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.db.signals import Signals
from backendai_hub.operations import queue_view
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_verbs import set_priority
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.operations.sessions import terminate_session
from backendai_hub.reconcilers import scheduler, steps
from backendai_hub.reconcilers.scheduler import SchedulerReconciler
from backendai_hub.reconcilers.steps import Course
from backendai_hub.scheduling.snapshot import Plan, Snapshot
from tests.factories import (
    add_node,
    make_device,
    make_gpu,
    principal_of,
    start,
    submit,
)
from tests.tenants import ROOT, Office, read

CROWD = ("ann", "ben", "cem", "dee", "eve", "fay")
Meanwhile = Callable[[], Awaitable[object]]


class Watch:
    """A clock that runs only while it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Story:
    """One scheduler whose steps are as short as can be, and what happens between."""

    def __init__(self, platform: Platform) -> None:
        self.platform, self.signals, self.watch = platform, Signals(), Watch()
        self.reconciler = SchedulerReconciler(platform, self.signals, clock=self.watch)
        self.passes: list[list[int]] = []
        """Of each pass, how many have been decided in each of its steps."""
        self.meanwhile: dict[tuple[int, int], Meanwhile] = {}
        """What happens after a step of a pass."""

    async def ask(self, name: str, *, priority: int = 10, cpu: int = 2) -> Session:
        asked = (
            await submit(self.platform, name, slots={"cpu": cpu, "mem": "1"})
        ).session
        if priority != asked.priority:
            await set_priority(self.platform, ROOT, asked.id, priority)
        return asked

    async def ask_and_call(
        self, name: str, *, priority: int = 10, cpu: int = 2
    ) -> Session:
        asked = await self.ask(name, priority=priority, cpu=cpu)
        self.signals.wake("scheduler")
        return asked

    async def is_placed(self, session: Session) -> bool:
        now = await read(self.platform, session)
        return now.status is SessionStatus.SCHEDULED


@pytest.fixture
def story(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> Story:
    made = Story(platform)

    class Observed(Course):
        def __init__(self, snapshot: Snapshot) -> None:
            super().__init__(snapshot)
            self.number = len(made.passes)
            made.passes.append([])

        async def step(self) -> Plan:
            decided = await super().step()
            made.passes[self.number].append(decided.decided)
            return decided

    original = SchedulerReconciler._carry_out

    async def carry_out(self: SchedulerReconciler, course: Course, plan: Plan) -> int:
        placed = await original(self, course, plan)
        assert isinstance(course, Observed)
        moment = (course.number, len(made.passes[course.number]))
        if moment in made.meanwhile:
            await made.meanwhile[moment]()
        return placed

    monkeypatch.setattr(scheduler, "Course", Observed)
    monkeypatch.setattr(SchedulerReconciler, "_carry_out", carry_out)
    monkeypatch.setattr(steps, "STEP_SECONDS", -1.0)
    return made


async def crowd(story: Story) -> tuple[Session, list[Session]]:
    """Let somebody have 3 of 4 cores, and several wait for 2."""
    await add_node(
        story.platform, devices=[make_device(slots={"cpu": 4000, "mem": 1 << 30})]
    )
    slots = {"cpu": 3, "mem": "1"}
    holder = await start(story.platform, "tim", slots=slots)
    return holder, [await story.ask(name) for name in CROWD]


async def leave(story: Story, session: Session) -> None:
    tim = await principal_of(story.platform, "tim")
    await terminate_session(story.platform, tim, session.id, force=True)


async def test_who_comes_is_placed_without_a_look_at_everybody_who_waits(
    story: Story, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(queue_view, "LOOKED_AT", 2)
    await crowd(story)
    assert await story.reconciler.reconcile() == 0
    newcomer = await story.ask("zoe", cpu=1)
    assert await story.reconciler.reconcile() == 1
    assert await story.is_placed(newcomer)
    everybody, few = story.passes
    assert sum(everybody) == len(CROWD)
    assert sum(few) == 1, "nobody else can have gained"

    view = story.reconciler._view
    await view.refresh()
    seen, fresh = view.snapshot(), await load_snapshot(story.platform)
    assert (seen.nodes, seen.queue) == (fresh.nodes, fresh.queue)


async def test_whoever_gains_by_something_else_is_looked_at_with_who_comes(
    story: Story, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(queue_view, "LOOKED_AT", 1)
    holder, waiting = await crowd(story)
    assert await story.reconciler.reconcile() == 0
    newcomer = await story.ask("zoe")
    await leave(story, holder)
    assert await story.reconciler.reconcile() == 2
    assert sum(story.passes[1]) == len(CROWD) + 1
    assert await story.is_placed(waiting[1])
    assert not await story.is_placed(newcomer), "it came last, and the node is full"


async def test_what_a_step_has_decided_is_done_before_the_next_one(story: Story):
    await add_node(story.platform)
    first = await story.ask("ann")
    second = await story.ask("ben", cpu=1)
    seen: list[bool] = []

    async def look() -> None:
        seen.extend([await story.is_placed(first), await story.is_placed(second)])

    story.meanwhile[0, 1] = look
    await story.reconciler.reconcile()
    assert story.passes == [[1, 1]]
    assert seen == [True, False]


async def test_a_pass_makes_way_for_who_comes_and_is_before_the_rest(story: Story):
    await add_node(
        story.platform, devices=[make_device(slots={"cpu": 4000, "mem": 1 << 30})]
    )
    waiting = [await story.ask(name) for name in CROWD]
    came: list[Session] = []

    async def come() -> None:
        came.append(await story.ask_and_call("zoe", priority=50))

    story.meanwhile[0, 1] = come
    assert await story.reconciler.reconcile() == 1
    assert story.passes == [[1]], "nobody else was decided"
    assert await story.reconciler.reconcile() == 1
    assert await story.is_placed(waiting[0])
    assert await story.is_placed(came[0])
    assert sum(story.passes[1]) == len(CROWD)


async def test_a_pass_makes_no_way_for_who_comes_and_is_behind_the_rest(story: Story):
    await add_node(
        story.platform, devices=[make_device(slots={"cpu": 4000, "mem": 1 << 30})]
    )
    waiting = [await story.ask(name) for name in CROWD]
    story.meanwhile[0, 1] = lambda: story.ask_and_call("zoe")
    assert await story.reconciler.reconcile() == 2
    assert sum(story.passes[0]) == len(CROWD)
    assert await story.is_placed(waiting[1])
    await story.reconciler.reconcile()
    assert sum(story.passes[1]) == len(CROWD) - 1, "whoever came meanwhile, too"


async def test_a_pass_goes_on_twice_as_long_as_the_one_that_made_way(story: Story):
    await crowd(story)

    def come_after(seconds: float, name: str) -> Meanwhile:
        async def come() -> None:
            story.watch.now += seconds
            await story.ask_and_call(name, priority=50)

        return come

    story.meanwhile = {
        (0, 2): come_after(3, "guest-1"),
        (1, 2): come_after(5, "guest-2"),
        (1, 4): come_after(1, "guest-3"),
        (2, 1): come_after(11, "guest-4"),
    }
    for _ in range(3):
        await story.reconciler.reconcile()
    assert [len(one) for one in story.passes] == [2, 4, len(CROWD) + 3]


async def test_who_comes_is_placed_while_a_pass_is_made_that_nobody_gains_by(
    story: Story, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(queue_view, "LOOKED_AT", 1)
    await crowd(story)
    await story.reconciler.reconcile()
    placed: list[bool] = []

    async def come() -> None:
        newcomer = await story.ask_and_call("zoe", cpu=1)

        async def look() -> None:
            placed.append(await story.is_placed(newcomer))

        story.meanwhile[1, 3] = look

    story.watch.now += story.reconciler.resync_seconds
    story.meanwhile[1, 2] = come
    assert await story.reconciler.reconcile() == 1
    assert placed == [True], "although others were still to be looked at"
    assert len(story.passes[1]) == len(CROWD), "who were, all the same"
    assert sum(story.passes[2]) == 1


async def test_what_did_not_hold_is_looked_at_again_and_nothing_else(story: Story):
    node = await add_node(
        story.platform, devices=[make_device(slots={"cpu": 2000, "mem": 1 << 30})]
    )
    first = await story.ask("ann")
    ann = await principal_of(story.platform, "ann")
    view = story.reconciler._view
    await view.refresh()
    decided = await Course(view.snapshot()).step()
    await terminate_session(story.platform, ann, first.id)
    await view.refresh()
    view.take_news()

    view.doubt(decided.placements)
    assert view._stale.nodes == {node.id}
    assert not view._stale.all_sessions
    await view.refresh()
    assert view.snapshot() == await load_snapshot(story.platform)


async def test_what_has_been_gained_is_not_forgotten_when_a_pass_fails(
    story: Story, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(queue_view, "LOOKED_AT", 1)
    cores = make_device(slots={"cpu": 4000, "mem": 1 << 30})
    await add_node(story.platform, devices=[cores])
    holder = await start(story.platform, "tim", slots={"cpu": 2, "mem": "1"})
    await start(story.platform, "tom", slots={"cpu": 1, "mem": "1"})
    await story.ask("all", cpu=4)
    waiting = [await story.ask(name, cpu=3) for name in CROWD]
    await story.reconciler.reconcile()

    async def fail() -> None:
        raise OSError("the database is away")

    story.meanwhile[1, 1] = fail
    await leave(story, holder)
    with pytest.raises(OSError, match="away"):
        await story.reconciler.reconcile()

    # Whoever comes between the steps of the next one has to wait for their turn.
    story.meanwhile[2, 1] = lambda: story.ask_and_call("zoe", cpu=3)
    await story.reconciler.reconcile()
    assert await story.is_placed(waiting[0])


async def test_who_has_come_is_still_before_later_ones_when_their_pass_fails(
    story: Story, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(queue_view, "LOOKED_AT", 1)
    await crowd(story)
    await story.reconciler.reconcile()
    first = await story.ask("yan", cpu=1)

    async def fail(*_: object) -> Plan:
        raise OSError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(Course, "step", fail)
        with pytest.raises(OSError, match="away"):
            await story.reconciler.reconcile()
    story.meanwhile[2, 1] = lambda: story.ask_and_call("zoe", cpu=1)
    await story.reconciler.reconcile()
    assert await story.is_placed(first)


@pytest.mark.parametrize(("seconds", "again"), [(59, False), (60, True)])
async def test_a_pass_over_everybody_is_made_in_a_minute_however_long_the_last_one_took(
    story: Story, monkeypatch: pytest.MonkeyPatch, seconds: int, again: bool
):
    await crowd(story)
    step = Course.step

    async def decide_slowly(course: Course) -> Plan:
        story.watch.now += 10
        return await step(course)

    monkeypatch.setattr(Course, "step", decide_slowly)
    await story.reconciler.reconcile()
    story.watch.now = seconds
    await story.reconciler.reconcile()
    assert (len(story.passes) == 2) is again


async def test_what_the_database_takes_does_not_put_off_the_next_pass(story: Story):
    await crowd(story)

    async def stall() -> None:
        story.watch.now += 5

    story.meanwhile[0, 1] = stall
    await story.reconciler.reconcile()
    story.watch.now = story.reconciler.resync_seconds
    await story.reconciler.reconcile()
    assert len(story.passes) == 2


async def test_room_is_kept_for_who_comes_and_is_wide_before_others_take_it(
    story: Story, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(queue_view, "LOOKED_AT", 1)
    cores = make_device(slots={"cpu": 16000, "mem": 1 << 30})
    await add_node(story.platform, devices=[cores, *map(make_gpu, "abcdefgh")])
    gpus = {"cpu": 1, "mem": "1", "cuda.device": "4"}
    await start(story.platform, "tim", slots=gpus)
    for name in CROWD:
        await story.ask(name, cpu=16)
    await story.reconciler.reconcile()

    asked = {**gpus, "cuda.device": "8"}
    wide = (await submit(story.platform, "wes", slots=asked)).session
    await story.reconciler.reconcile()
    assert [r.session for r in story.reconciler._view._reserved] == [wide.id]
    asked = {**gpus, "cuda.device": "1"}
    narrow = (await submit(story.platform, "zoe", slots=asked)).session
    await story.reconciler.reconcile()
    assert not await story.is_placed(narrow), "it would put the wide one off"
    assert sum(story.passes[-1]) < len(CROWD), "for who comes later few are looked at"


async def test_nothing_is_reserved_by_a_look_at_some_of_those_who_wait(story: Story):
    rules = {"preemption": {"enabled": True}}
    office = Office(story.platform)
    await office.change("resource-group", "default", scheduler_opts=rules)
    await crowd(story)
    view = story.reconciler._view
    newcomer = await story.ask("zoe")
    await view.refresh()
    assert view.snapshot({newcomer.id}).shown == {}, "they are decided about as well"
    assert not view.snapshot({newcomer.id}).whole
    assert view.snapshot().whole
