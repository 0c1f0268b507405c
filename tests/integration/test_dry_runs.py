"""People are told what would become of a session before they ask for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import func, select

from backendai_hub.api.explanations import DryRun
from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.access import Caller
from backendai_hub.core.sessions import SessionType
from backendai_hub.core.times import format_time
from backendai_hub.db.tables import EventRow, SessionRow
from backendai_hub.operations.dry_runs import try_out
from backendai_hub.operations.explain import ExplanationDesk
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import ensure_user
from tests import jobs
from tests.factories import (
    IMAGE,
    add_node,
    make_device,
    make_platform,
    prepare,
    principal_of,
    schedule,
    start,
    submit,
)
from tests.tenants import Office

GIB = 1 << 30


async def ask(
    platform: Platform,
    who: str = "alice",
    caller: Caller = Caller.USER,
    desk: ExplanationDesk | None = None,
    **request: Any,
) -> DryRun:
    principal = await principal_of(platform, who, caller)
    user = await ensure_user(platform, who)
    asked = SessionRequest(**{"image": IMAGE.name, **request})
    return await try_out(platform, principal, user, asked, desk or ExplanationDesk())


async def count(platform: Platform, table: Any) -> int:
    async with platform.database.read() as connection:
        query = select(func.count()).select_from(table)
        return int((await connection.execute(query)).scalar_one())


async def test_what_has_room_would_start_now_and_nothing_is_stored(platform: Platform):
    await prepare(platform)
    await add_node(platform)
    await ensure_user(platform, "alice")
    events = await count(platform, EventRow)

    told = await ask(platform, slots={"cpu": 1, "mem": "1g"})

    assert told.starts_now
    assert told.refused == []
    assert told.why is None
    assert told.slots == {"cpu": "1", "mem": "1g"}
    assert told.nodes == []  # alice may not see nodes
    told = await ask(platform, caller=Caller.SUPERADMIN, slots={"cpu": 1})
    assert told.nodes == ["node-1"]
    assert await count(platform, SessionRow) == 0
    assert await count(platform, EventRow) == events


async def test_what_lacks_room_would_wait_and_the_smallest_change_is_true(
    platform: Platform,
):
    await prepare(platform)
    await add_node(platform, devices=[make_device(slots={"cpu": 4000, "mem": 4 * GIB})])
    await start(platform, "alice", slots={"cpu": 3, "mem": "1g"})

    told = await ask(platform, "bob", slots={"cpu": 2, "mem": "1g"})

    assert not told.starts_now
    assert told.why is not None
    assert (told.why.session, told.why.position, told.why.waiting) == ("", 1, 1)
    assert told.why.reasons == ["cpu: asks 2, 1 free on node-1"]
    assert [change.text for change in told.why.changes] == ["with 1 cpu instead of 2"]
    smaller = told.why.changes[0].slots or {}
    assert (await ask(platform, "bob", slots=smaller)).starts_now
    await submit(platform, "bob", server="two", slots=smaller)
    assert await schedule(platform) == 1


async def test_a_newcomer_stands_behind_those_who_wait(platform: Platform):
    await prepare(platform)
    await add_node(platform, devices=[make_device(slots={"cpu": 4000, "mem": 4 * GIB})])
    await start(platform, "alice", slots={"cpu": 3, "mem": "1g"})
    await submit(platform, "alice", server="two", slots={"cpu": 3, "mem": "1g"})
    desk = ExplanationDesk()

    told = await ask(platform, "bob", desk=desk, slots={"cpu": 2, "mem": "1g"})

    assert told.why is not None
    assert (told.why.position, told.why.waiting) == (2, 2)
    # What those before it cannot use, it may.
    assert (await ask(platform, "bob", desk=desk, slots={"cpu": 1})).starts_now


async def test_everything_it_would_be_refused_for_is_told_at_once(platform: Platform):
    await prepare(platform)
    await add_node(platform)
    await jobs.ask(platform, "alice", name="mine")

    told = await ask(
        platform,
        name="mine",
        priority=101,
        argv=["--debug"],
        slots={"cpu": 1, "mem": "1g", "tpu.device": 1},
        tag="no\nline",
    )

    texts = [objection.text.partition(":")[0] for objection in told.refused]
    assert not told.starts_now
    assert "argv" in told.refused[0].text
    assert {"tag", "tpu.device"} <= set(texts)
    assert any("priority" in text for text in texts)


async def test_a_project_and_an_environment_that_there_are_not_are_both_told(
    platform: Platform,
):
    await prepare(platform)
    told = await ask(platform, image="nothing", project="nowhere")
    assert [o.text.partition(":")[0] for o in told.refused] == ["project", "image"]


async def test_a_name_that_is_taken_and_a_full_house_are_told(platform: Platform):
    small = make_platform(platform.database, max_live_sessions=1)
    await prepare(small)
    await jobs.ask(small, "alice", name="mine")
    told = await ask(small, name="mine")
    assert [o.code for o in told.refused] == ["too-many-requests", "conflict"]


async def test_a_job_with_a_time_starts_then_if_there_is_room(platform: Platform):
    await prepare(platform)
    await add_node(platform)
    later = platform.database.clock() + timedelta(hours=1)
    told = await ask(
        platform, type=SessionType.BATCH, startup_command="true", starts_at=later
    )
    assert told.why is not None
    assert told.why.starts_at == format_time(later)
    assert told.why.at_the_earliest
    assert told.why.hangs_on == "if there is room for it then"


async def test_a_limit_that_runs_out_is_told_with_when_it_leaves_room(
    platform: Platform,
):
    await prepare(platform)
    await add_node(platform)
    await Office(platform).limit_user("alice", max_concurrent_sessions=1)
    job = await jobs.begin(platform, batch_timeout=600)
    told = await ask(platform)
    assert told.why is not None
    assert "asks 1" in told.why.reasons[0]
    assert "session" in told.why.changes[0].text
    assert told.why.hangs_on in {
        f"when session {job.name} on node-1 ends",
        "it hangs on a limit, and on who leaves room in it",
    }


async def test_a_job_that_waits_for_another_is_told_so(platform: Platform):
    await prepare(platform)
    await add_node(platform)
    first = await jobs.ask(platform, "alice")
    told = await ask(
        platform,
        type=SessionType.BATCH,
        startup_command="true",
        dependencies=[first.id],
    )
    assert told.why is not None
    assert told.why.reasons == [f"waits for {first.name} (PENDING) to succeed"]
