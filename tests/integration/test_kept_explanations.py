"""Why a session waits comes with its news, and is there without asking again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import func, select, update

from backendai_hub.api.explanations import Why
from backendai_hub.api.sessions import EventMessage
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import NotFoundError, TooManyRequestsError
from backendai_hub.core.events import EventKind
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db.purges import purge_sessions
from backendai_hub.db.sessions import get_record
from backendai_hub.db.signals import Signals
from backendai_hub.db.tables import ExplanationRow, SessionRow
from backendai_hub.operations import explain
from backendai_hub.operations.explain import ExplanationDesk
from backendai_hub.operations.kept_explanations import differs, keep_explanations
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.operations.sessions import (
    get_session,
    list_messages,
    terminate_session,
)
from backendai_hub.reconcilers.explanations import ExplanationsReconciler, Turns
from tests.factories import (
    add_node,
    make_device,
    prepare,
    principal_of,
    schedule,
    start,
    submit,
)

ASKED = {"cpu": "3", "mem": "1"}


def make_reconciler(platform: Platform) -> ExplanationsReconciler:
    return ExplanationsReconciler(platform, Signals(), make_desk())


def make_desk() -> ExplanationDesk:
    """Return a desk to which everything seems to take no time."""
    return ExplanationDesk(clock=lambda: 0.0)


async def listen(platform: Platform, name: str, session: str) -> list[EventMessage]:
    """Return what somebody hears of a session that waits."""
    principal = await principal_of(platform, name, Caller.USER)
    found = await list_messages(platform, principal, after=0, session_id=session)
    return [m for m in found if m.kind == EventKind.SESSION_WAITING]


async def declare_end(platform: Platform, session: str, seconds: int) -> None:
    ends = platform.database.clock() + timedelta(seconds=seconds)
    async with platform.database.transaction() as tx:
        await tx.execute(
            update(SessionRow)
            .where(SessionRow.id == session)
            .values(status="RUNNING", deadline_at=ends)
        )


async def test_who_listens_hears_why_and_who_looks_sees_it(platform: Platform):
    await prepare(platform)
    await add_node(platform, devices=[make_device(slots={"cpu": 4000, "mem": 9})])
    running = await start(platform, "alice", slots=ASKED)
    await declare_end(platform, running.id, 3600)
    waiting = (await submit(platform, "bob", slots=ASKED)).session
    await schedule(platform)
    assert await make_reconciler(platform).reconcile() == 1

    bob = await principal_of(platform, "bob", Caller.USER)
    asked = await ExplanationDesk().explain(platform, bob, waiting.id)
    first, last = await listen(platform, "bob", waiting.id)
    assert (first.text, first.why) == ("cpu: asks 3, 1 free on node-1", None)
    assert last.text.startswith(f"{first.text}; place 1 of 1 in the queue, starts at")
    assert last.why is not None
    assert last.why.at is not None
    assert replace(last.why, at=None) == asked
    assert asked.changes
    assert asked.starts_at is not None
    assert (await get_session(platform, bob, waiting.id)).why == last.why
    assert (await get_session(platform, bob, waiting.id)).id == waiting.id


async def test_what_is_kept_is_what_its_owner_may_know_whoever_asks(
    platform: Platform,
):
    await prepare(platform)
    await add_node(platform, devices=[make_device(slots={"cpu": 4000, "mem": 9})])
    running = await start(platform, "alice", server="secret", slots=ASKED)
    await declare_end(platform, running.id, 3600)
    both = {"cpu": "2", "mem": "1"}
    others = (await submit(platform, "bob", slots=both)).session
    own = (await submit(platform, "alice", server="two", slots=both)).session
    desk = make_desk()
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    told = await desk.explain(platform, root, others.id)
    assert f"session {running.name}" in told.hangs_on, "whoever may know is told"

    await ExplanationsReconciler(platform, Signals(), desk).reconcile()
    for principal in (root, await principal_of(platform, "bob", Caller.USER)):
        kept = (await get_session(platform, principal, others.id)).why
        assert kept is not None
        assert kept.hangs_on.startswith("when a session on node-1 ends")
    alice = await principal_of(platform, "alice", Caller.USER)
    kept = (await get_session(platform, alice, own.id)).why
    assert kept is not None
    assert kept.hangs_on.startswith(f"when session {running.name} on node-1 ends")
    with pytest.raises(NotFoundError):
        await get_session(platform, alice, others.id)
    with pytest.raises(NotFoundError):
        await listen(platform, "alice", others.id)


async def test_what_has_not_changed_is_neither_written_nor_told_again(
    platform: Platform,
):
    await prepare(platform)
    node = await add_node(
        platform, devices=[make_device(slots={"cpu": 4000, "mem": 9})]
    )
    await start(platform, "alice", slots=ASKED)
    waiting = (await submit(platform, "bob", slots=ASKED)).session
    reconciler = make_reconciler(platform)
    assert await reconciler.reconcile() == 1
    assert await make_reconciler(platform).reconcile() == 0, "another one knows it"
    assert len(await listen(platform, "bob", waiting.id)) == 1

    node.devices = [make_device(slots={"cpu": 5000, "mem": 9})]
    await node.report()
    assert await make_reconciler(platform).reconcile() == 1
    first, last = await listen(platform, "bob", waiting.id)
    assert first.why is None, "it holds no more"
    assert last.why is not None
    assert last.why.reasons == ["cpu: asks 3, 2 free on node-1"]
    async with platform.database.read() as connection:
        rows = await connection.scalar(select(func.count()).select_from(ExplanationRow))
    assert rows == 1, "in place of what was told before"


async def test_nothing_is_told_of_who_waits_no_more(platform: Platform):
    await prepare(platform)
    await add_node(platform, devices=[make_device(slots={"cpu": 4000, "mem": 9})])
    await start(platform, "alice", slots=ASKED)
    waiting = (await submit(platform, "bob", slots=ASKED)).session
    desk = make_desk()
    told = await desk.tell_owners(platform, lambda lines: [waiting.id])
    bob = await principal_of(platform, "bob", Caller.USER)
    await terminate_session(platform, bob, waiting.id)
    assert await keep_explanations(platform, told) == 0
    assert (await get_session(platform, bob, waiting.id)).why is None


async def test_what_was_told_goes_with_the_session(platform: Platform):
    await prepare(platform)
    await add_node(platform, devices=[make_device(slots={"cpu": 4000, "mem": 9})])
    await start(platform, "alice", slots=ASKED)
    waiting = (await submit(platform, "bob", slots=ASKED)).session
    assert await make_reconciler(platform).reconcile() == 1
    bob = await principal_of(platform, "bob", Caller.USER)
    await terminate_session(platform, bob, waiting.id)
    async with platform.database.transaction() as tx:
        await purge_sessions(tx, SessionRow.id == waiting.id)
    async with platform.database.read() as connection:
        assert (await connection.execute(select(ExplanationRow.__table__))).all() == []


async def test_one_pass_explains_a_few_and_the_next_ones_everybody(
    platform: Platform,
):
    await prepare(platform)
    await add_node(platform, devices=[make_device(slots={"cpu": 4000, "mem": 9})])
    await start(platform, "alice", slots=ASKED)
    for number in range(25):
        await submit(platform, "bob", server=f"s{number}", slots=ASKED)
    reconciler = make_reconciler(platform)
    assert await reconciler.reconcile() == 20
    for _ in range(5):
        await reconciler.reconcile()
    async with platform.database.read() as connection:
        rows = await connection.scalar(select(func.count()).select_from(ExplanationRow))
    assert rows == 25


async def test_a_long_queue_is_not_looked_at_anew_for_everybody_who_asks(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    await prepare(platform)
    await add_node(platform, devices=[make_device(slots={"cpu": 4000, "mem": 9})])
    await start(platform, "alice", slots=ASKED)
    monkeypatch.setattr(explain, "_SMALL", 0)
    now = 0.0

    def clock() -> float:
        return now

    desk = ExplanationDesk(clock=clock)
    look = desk._keep

    def take_long(*given: Any) -> None:
        nonlocal now
        now += 2
        look(*given)

    monkeypatch.setattr(desk, "_keep", take_long)
    bob = await principal_of(platform, "bob", Caller.USER)
    first = (await submit(platform, "bob", server="a", slots=ASKED)).session
    assert (await desk.explain(platform, bob, first.id)).position == 1
    second = (await submit(platform, "bob", server="b", slots=ASKED)).session
    told = await desk.explain(platform, bob, second.id)
    assert told.hangs_on.endswith("ask again in 20 seconds")
    assert now == 2

    record, asked = await describe(platform, second.id)
    with pytest.raises(TooManyRequestsError, match="ask again in 20 seconds"):
        await desk.consider(platform, bob, record, asked)
    now = 22
    assert (await desk.consider(platform, bob, record, asked)).why is not None
    assert now == 24
    assert (await desk.consider(platform, bob, record, asked)).why is not None
    assert now == 24, "one who is known is answered at once"


async def describe(platform: Platform, session: str) -> tuple[Any, Any]:
    """Return a session of the queue as somebody could think of it."""
    async with platform.database.read() as connection:
        record = await get_record(connection, session)
    queue = (await load_snapshot(platform)).queue
    asked = next(one for one in queue if one.id == session)
    return replace(record, id="guest"), replace(asked, id="guest")


# --- whose turn it is, and what is news ---------------------------------------------


def test_heads_and_newcomers_come_first_and_nobody_waits_for_ever():
    turns = Turns()
    line = [f"s{number:03}" for number in range(200)]
    seen: set[str] = set()
    for _ in range(40):
        chosen = turns.choose([line])
        assert len(chosen) == 20
        assert set(line[:3]) <= set(chosen)
        for session in chosen:
            turns.note(session)
        seen |= set(chosen)
    assert seen == set(line)
    assert "new" in turns.choose([[*line, "new"]])
    assert turns._had.keys() == set(line)
    assert turns.choose([["new"]]) == ["new"]
    assert not turns._had, "who has gone is forgotten"


def test_nobody_waits_for_ever_although_one_at_a_time_is_explained():
    turns = Turns()
    line = [f"s{number}" for number in range(30)]
    seen = set()
    for _ in range(120):
        first = turns.choose([line])[0]
        turns.note(first)
        seen.add(first)
    assert seen == set(line)


def told(**changes: Any) -> Why:
    return replace(
        Why(
            session="s",
            status=SessionStatus.PENDING,
            reasons=["cpu: asks 3, 1 free on a"],
            position=3,
            waiting=50,
            starts_at="2026-05-01T12:00:00.000Z",
            hangs_on="when a session on a ends, with 2 before it in the queue",
            at="2026-05-01T10:00:00.000Z",
        ),
        **changes,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"reasons": ["cpu: asks 3, 2 free on a"]},
        {"position": 2},
        {"starts_at": None},
        {"starts_at": "2026-05-01T12:14:00.000Z"},
        {"at_the_earliest": True},
        {"hangs_on": "nobody knows"},
    ],
)
def test_something_else_is_news(changes: dict[str, Any]):
    assert differs(told(), told(**changes))
    assert differs(told(**changes), told())


@pytest.mark.parametrize(
    "changes",
    [
        {"at": "2026-05-01T10:01:00.000Z"},
        {"waiting": 51},
        {"starts_at": "2026-05-01T12:11:00.000Z"},
        {"hangs_on": "when a session on a ends, with 1 before it in the queue"},
    ],
)
def test_a_little_later_or_more_is_none(changes: dict[str, Any]):
    assert not differs(told(), told(**changes))


def test_far_behind_a_place_is_none_and_a_tenth_of_the_way_is():
    far = told(position=100)
    assert not differs(far, told(position=95))
    assert differs(far, told(position=89))
