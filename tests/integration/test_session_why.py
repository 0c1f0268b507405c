"""People are told why their session waits, what would start it, and when it starts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from backendai_hub.api.explanations import Why
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import NotFoundError
from backendai_hub.db.tables import SessionRow
from backendai_hub.operations.explain import ExplanationDesk
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_verbs import HoldRequest, hold_session
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.operations.stops import FreezeRequest, freeze_group
from backendai_hub.scheduling.plan import plan
from tests.factories import (
    add_node,
    make_device,
    prepare,
    principal_of,
    schedule,
    start,
    submit,
)
from tests.jobs import ask
from tests.tenants import ROOT, Office

GIB = 1 << 30


async def why(platform: Platform, name: str, session: str, **more: Any) -> Why:
    principal = await principal_of(platform, name, more.get("caller", Caller.USER))
    return await ExplanationDesk().explain(platform, principal, session)


async def declare_end(platform: Platform, session: str, seconds: int) -> str:
    """Let a session run that ends in so many seconds at the latest."""
    ends = platform.database.clock() + timedelta(seconds=seconds)
    async with platform.database.transaction() as tx:
        await tx.execute(
            update(SessionRow)
            .where(SessionRow.id == session)
            .values(status="RUNNING", deadline_at=ends)
        )
    return f"{ends:%Y-%m-%dT%H:%M:%S}"


async def test_less_would_start_now_and_somebodys_end_makes_room(platform: Platform):
    await prepare(platform)
    await add_node(platform, devices=[make_device(slots={"cpu": 4000, "mem": 4 * GIB})])
    running = await start(platform, "alice", slots={"cpu": 3, "mem": "1g"})
    ends = await declare_end(platform, running.id, 3600)
    waiting = (
        await submit(platform, "bob", server="two", slots={"cpu": 2, "mem": "1g"})
    ).session

    told = await why(platform, "bob", waiting.id)

    assert (told.position, told.waiting) == (1, 1)
    assert told.reasons == ["cpu: asks 2, 1 free on node-1"]
    assert [change.text for change in told.changes] == ["with 1 cpu instead of 2"]
    assert told.changes[0].slots == {"cpu": "1", "mem": "1g"}
    assert told.changes[0].yours
    assert told.starts_at is not None
    assert told.starts_at.startswith(ends)
    # Whose it is that ends is told to those who may see it, and to nobody else.
    assert told.hangs_on == "when a session on node-1 ends"
    told = await why(platform, "bob", waiting.id, caller=Caller.SUPERADMIN)
    assert told.hangs_on == f"when session {running.name} on node-1 ends"

    again = await submit(platform, "bob", server="three", slots=told.changes[0].slots)
    decided = plan(await load_snapshot(platform))
    assert [p.session for p in decided.placements] == [again.session.id]


async def test_others_sessions_are_not_found(platform: Platform):
    await prepare(platform)
    await add_node(platform)
    session = (await submit(platform, "alice")).session
    with pytest.raises(NotFoundError):
        await why(platform, "bob", session.id)
    with pytest.raises(NotFoundError):
        await why(platform, "alice", "nothing of the kind")


async def test_who_does_not_wait_is_told_so(platform: Platform):
    await prepare(platform)
    await add_node(platform)
    session = await start(platform, "alice")
    told = await why(platform, "alice", session.id)
    assert (told.position, told.changes) == (None, [])
    assert told.hangs_on == "it does not wait in the queue"


async def test_who_starts_with_the_next_pass_is_told_so(platform: Platform):
    await prepare(platform)
    await add_node(platform)
    session = (await submit(platform, "alice")).session
    told = await why(platform, "alice", session.id)
    assert told.hangs_on == "it starts with the scheduler's next pass"


async def test_a_desk_that_has_answered_knows_who_has_come_since(platform: Platform):
    await prepare(platform)
    await add_node(platform)
    desk = ExplanationDesk()
    alice = await principal_of(platform, "alice", Caller.USER)
    await start(platform, "alice", server="a", slots={"cpu": 4})
    for number, server in enumerate("bc", start=1):
        session = (await submit(platform, "alice", server=server)).session
        told = await desk.explain(platform, alice, session.id)
        assert (told.position, told.waiting) == (number, number)


async def test_who_waits_for_one_that_waits_is_told_when_all_of_them_are_over(
    platform: Platform,
):
    await add_node(platform, "n1")
    first = await ask(platform, name="first")
    assert await schedule(platform) == 1
    await declare_end(platform, first.id, 3600)
    before = "first"
    for name in ("second", "third", "fourth"):
        await ask(platform, name=name, dependencies=[before], batch_timeout=600)
        before = name
    last = await ask(platform, name="last", dependencies=["fourth"])

    told = await why(platform, "alice", last.id)
    begins = platform.database.clock() + timedelta(seconds=3600 + 3 * 600)
    assert told.starts_at is not None
    assert told.starts_at.startswith(f"{begins:%Y-%m-%dT%H:%M:%S}")
    assert told.at_the_earliest
    assert told.hangs_on == (
        "when session fourth ends, which waits for third, which waits for second,"
        " which waits for first"
    )
    # What holds one of them up besides is nobody's to foretell.
    await hold_session(platform, ROOT, last.id, HoldRequest(reason="later"))
    assert (await why(platform, "alice", last.id)).starts_at is None
    more = await ask(platform, name="more", dependencies=["last"])
    told = await why(platform, "alice", more.id)
    assert told.starts_at is None
    assert "1 of those it waits for do not say when they end" in told.hangs_on


async def test_who_waits_for_another_is_told_when_that_one_is_over(platform: Platform):
    await add_node(platform, "n1")
    first = await ask(platform, name="first")
    assert await schedule(platform) == 1
    ends = await declare_end(platform, first.id, 3600)
    later = platform.database.clock() + timedelta(hours=2)
    second = await ask(platform, name="second", dependencies=["first"])
    third = await ask(platform, name="third", dependencies=["first"], starts_at=later)

    told = await why(platform, "alice", second.id)
    assert told.starts_at is not None
    assert told.starts_at.startswith(ends)
    assert told.at_the_earliest
    assert told.hangs_on == "when session first ends"
    told = await why(platform, "alice", third.id)
    assert told.starts_at is not None
    assert told.starts_at.startswith(f"{later:%Y-%m-%dT%H:%M:%S}")


async def test_who_waits_in_a_frozen_group_is_told_of_an_open_one(platform: Platform):
    await prepare(platform)
    office = Office(platform)
    await add_node(platform, devices=[make_device(slots={"cpu": 1000, "mem": 4 * GIB})])
    for name in ("other", "closed"):
        await office.make("resource-group", name=name)
        await office.open_group(name, "domain", "default")
        await add_node(platform, f"node-{name}")
        await office.move_node(f"node-{name}", name)
    waiting = await ask(platform, slots={"cpu": 1, "mem": "1g"})
    for name in ("default", "closed"):
        await freeze_group(platform, ROOT, name, FreezeRequest(reason="moving"))
    told = await why(platform, "alice", waiting.id)
    assert "frozen" in told.reasons[0]
    assert [(c.text, c.yours, c.resource_group) for c in told.changes] == [
        ("in the resource group other", True, "other"),
        ("if nothing held it up", False, None),
    ]
    await hold_session(platform, ROOT, waiting.id, HoldRequest(reason="to look at"))
    told = await why(platform, "alice", waiting.id)
    assert [c.text for c in told.changes] == ["if nothing held it up"]
