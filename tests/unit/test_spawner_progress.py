"""What the tabs that watch a pending server are told."""

import itertools

import msgspec
import pytest

from backendai_hub.api.explanations import PossibleChange, Why
from backendai_hub.core.sessions import (
    WAITING_WORDS,
    Session,
    SessionStatus,
    SessionType,
)
from backendai_spawner.progress import SpawnProgress, estimate

WAY = [
    SessionStatus.PENDING,
    SessionStatus.RESERVED,
    SessionStatus.SCHEDULED,
    SessionStatus.PREPARING,
    SessionStatus.PULLING,
    SessionStatus.CREATING,
    SessionStatus.RUNNING,
]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def make_session(**changes):
    session = Session(
        id="0190a5b4-0000-7000-8000-000000000001",
        name="train-1",
        type=SessionType.INTERACTIVE,
        owner="alice",
        domain="default",
        project="default",
        image="python",
        slots={},
        shmem="64m",
        status=SessionStatus.PENDING,
        reason="",
        created_at="2026-01-01T00:00:00Z",
    )
    return msgspec.structs.replace(session, **changes)


async def read(story):
    return [step async for step in story.steps()]


def test_the_bar_never_goes_back_and_never_fills():
    bars = [estimate(s, t) for s in [None, *WAY] for t in (0, 1, 60, 3600, 1e9)]

    assert bars == sorted(bars)
    assert max(bars) < 100


@pytest.mark.parametrize("status", SessionStatus)
def test_every_state_has_a_place_on_the_bar(status):
    assert 0 <= estimate(status, 10) < 100


async def test_every_tab_hears_the_whole_story():
    story = SpawnProgress(Clock())
    for status in WAY:
        story.show(make_session(status=status))

    one, other = await read(story), await read(story)

    assert one == other
    assert [step["phase"] for step in one] == [str(s) for s in WAY]


async def test_why_it_waits_is_told_and_told_anew_when_it_changes():
    story = SpawnProgress(Clock())
    for reason in ("no node has 4 GPUs free", "no node has 4 GPUs free", "limit"):
        story.show(make_session(reason=reason))
    story.finish()

    steps = await read(story)

    assert [step["reason"] for step in steps] == ["no node has 4 GPUs free", "limit"]
    assert steps[0]["message"] == "Waiting in the queue: no node has 4 GPUs free"


@pytest.mark.parametrize("status", WAITING_WORDS)
@pytest.mark.parametrize("write", [str, str.capitalize, str.upper, "{} ".format])
async def test_a_reason_that_says_only_the_state_is_not_said_twice(status, write):
    words = WAITING_WORDS[status]
    story = SpawnProgress(Clock())
    story.show(make_session(status=status, reason=write(words)))
    story.finish()

    (step,) = await read(story)

    assert step["message"].lower() == words.lower()
    assert step["headline"].lower() == words.lower()
    assert step["reason"] == ""


async def test_a_reason_that_begins_with_the_state_adds_only_the_rest():
    story = SpawnProgress(Clock())
    story.show(make_session(reason="waiting in the queue; no node has 4 GPUs"))
    story.finish()

    (step,) = await read(story)

    assert step["message"] == "Waiting in the queue; no node has 4 GPUs"
    assert step["headline"] == "Waiting in the queue"
    assert step["reason"] == "no node has 4 GPUs"


async def test_a_tab_is_told_as_it_happens_and_sees_the_bar_move():
    clock = Clock()
    story = SpawnProgress(clock)
    story.show(make_session())
    steps = story.steps(tick=0.001)
    first = await anext(steps)

    clock.now = 600.0
    moved = await anext(steps)
    story.tell("Cancelled")
    story.finish()
    rest = [step["message"] async for step in steps if "message" in step]

    assert moved["progress"] > first["progress"]
    assert "message" not in moved
    assert rest == ["Cancelled"]


async def test_a_wait_of_months_is_not_remembered_line_by_line():
    story = SpawnProgress(Clock())
    for number in itertools.islice(itertools.count(), 5000):
        story.tell(f"reason {number}")
    story.finish()

    steps = await read(story)

    assert len(steps) == 100
    assert steps[-1]["message"] == "reason 4999"


async def test_a_failure_tells_why():
    story = SpawnProgress(Clock())
    story.show(make_session(status=SessionStatus.ERROR, reason="image not found"))

    assert "image not found" in (await read(story))[-1]["message"]


async def test_its_place_in_the_queue_is_told_anew_although_the_reason_stays():
    story = SpawnProgress(Clock())
    waits = make_session(reason="cpu: asks 2, 1 free on node-1")
    why = Why(
        session=waits.id,
        status=waits.status,
        position=2,
        waiting=3,
        reasons=[waits.reason],
        changes=[PossibleChange(text="with 1 cpu instead of 2", yours=True)],
        hangs_on="when a session on node-1 ends",
        starts_at="2026-01-01T01:00:00Z",
    )
    story.show(waits, why)
    story.show(waits, why)
    story.show(waits, msgspec.structs.replace(why, position=1))
    story.finish()

    first, second = await read(story)
    assert (first["why"]["position"], second["why"]["position"]) == (2, 1)
    assert first["why"]["change"] == "with 1 cpu instead of 2"
    assert first["why"]["starts"] == "2026-01-01T01:00:00Z"
