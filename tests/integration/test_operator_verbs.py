"""What operators and owners do to what waits, to nodes and to resource groups."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from sqlalchemy import text

from backendai_hub.core.access import ADMIN_SCOPES, USER_SCOPES, Caller, Principal
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
)
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.operations.agent_changes import AgentChange, change_agent
from backendai_hub.operations.node_lists import read_agent
from backendai_hub.operations.placement import apply_plan
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_verbs import (
    HoldRequest,
    hold_session,
    release_session,
    set_priority,
)
from backendai_hub.operations.queue_view import QueueView, load_snapshot
from backendai_hub.operations.sessions import terminate_session
from backendai_hub.operations.stops import (
    DrainRequest,
    FreezeRequest,
    drain_agent,
    freeze_group,
    undrain_agent,
    unfreeze_group,
)
from backendai_hub.operations.users import ensure_user, make_principal
from backendai_hub.scheduling.plan import plan
from tests.factories import (
    START,
    Clock,
    add_node,
    principal_of,
    schedule,
    start,
    submit,
)
from tests.jobs import State, ask, tell
from tests.tenants import ROOT, Office, read, why

SINCE = "2026-01-01 00:00 UTC"


@pytest.fixture
async def office(platform: Platform) -> Office:
    return Office(platform)


@pytest.fixture
def clock(platform: Platform) -> Clock:
    made = platform.database.clock
    assert isinstance(made, Clock)
    return made


async def user(platform: Platform, name: str = "alice") -> Principal:
    return await principal_of(platform, name, Caller.USER)


async def admin_of_domain(platform: Platform, name: str = "dora") -> Principal:
    actor = await ensure_user(platform, name)
    made = make_principal(actor, scopes=USER_SCOPES | ADMIN_SCOPES, credential="test")
    return msgspec.structs.replace(made, caller=Caller.DOMAIN_ADMIN)


async def queued(platform: Platform, server: str, **more: object) -> Session:
    """Ask for a whole node, so that one runs and the others wait."""
    asked = {"slots": {"cpu": 4}, **more}
    return (await submit(platform, server=server, **asked)).session


async def status(platform: Platform, session: Session) -> SessionStatus:
    return (await read(platform, session)).status


async def acts(platform: Platform, session: Session | None = None) -> list[str]:
    """Which acts of operators have left a row, oldest first."""
    verbs = "('session:prioritize', 'session:hold', 'session:release', 'agent:drain',"
    verbs += " 'agent:undrain', 'resource-group:freeze', 'resource-group:unfreeze')"
    about = "" if session is None else f" AND object_id = '{session.id}'"
    async with platform.database.read() as connection:
        rows = await connection.execute(
            text(
                f"SELECT action FROM audit WHERE action IN {verbs}{about} ORDER BY seq"
            )
        )
        return [action for (action,) in rows]


async def events(platform: Platform, kind: str) -> list[str]:
    async with platform.database.read() as connection:
        rows = await connection.execute(
            text("SELECT text FROM events WHERE kind = :kind ORDER BY seq").bindparams(
                kind=kind
            )
        )
        return [told for (told,) in rows]


# --- priority -------------------------------------------------------------------------


async def test_who_gets_a_higher_priority_goes_first(platform: Platform):
    first, second = await queued(platform, "a"), await queued(platform, "b")
    await set_priority(platform, ROOT, second.id, 50)
    await add_node(platform)

    assert await schedule(platform) == 1
    assert await status(platform, second) is SessionStatus.SCHEDULED
    assert await status(platform, first) is SessionStatus.PENDING


async def test_a_new_priority_leaves_a_row_and_tells_the_news_once(platform: Platform):
    session = await queued(platform, "a")
    shown = await set_priority(platform, ROOT, session.id, 50)
    await set_priority(platform, ROOT, session.id, 50)

    assert shown.priority == 50
    assert await acts(platform, session) == ["session:prioritize"]
    assert await events(platform, "session.priority") == ["priority 50 instead of 10"]


async def test_an_owner_stays_within_the_cap_of_their_policy_and_admins_need_not(
    platform: Platform, office: Office
):
    await office.limit_user("alice", max_priority=20)
    session = await queued(platform, "a")
    alice = await user(platform)

    assert (await set_priority(platform, alice, session.id, 20)).priority == 20
    with pytest.raises(InvalidRequestError) as refused:
        await set_priority(platform, alice, session.id, 21)
    assert refused.value.message == (
        "priority: 21 is above 20, the most that the keypair policy of-alice allows"
    )
    dora = await admin_of_domain(platform)
    assert (await set_priority(platform, dora, session.id, 100)).priority == 100


async def test_neither_the_key_that_asks_nor_the_key_it_was_asked_with_is_got_round(
    platform: Platform, office: Office
):
    session = await queued(platform, "a")
    policy = await office.make("keypair-policy", name="low", max_priority=5)
    key = await office.make("keypair", user="alice", resource_policy=policy.name)
    alice = msgspec.structs.replace(await user(platform), keypair_id=key.id)

    with pytest.raises(InvalidRequestError, match="above 5, the most that the keypair"):
        await set_priority(platform, alice, session.id, 6)


@pytest.mark.parametrize("priority", [-1, 101, 1 << 40])
async def test_what_is_no_priority_is_refused_to_everybody(
    platform: Platform, priority: int
):
    session = await queued(platform, "a")
    for who in (ROOT, await user(platform)):
        with pytest.raises(InvalidRequestError, match="is not between 0 and 100"):
            await set_priority(platform, who, session.id, priority)


async def test_only_what_waits_has_a_priority_or_can_be_held(platform: Platform):
    await add_node(platform)
    session = await start(platform)
    with pytest.raises(ConflictError, match="is SCHEDULED; only what waits"):
        await set_priority(platform, ROOT, session.id, 50)
    with pytest.raises(ConflictError, match="is SCHEDULED; only what waits"):
        await hold_session(platform, ROOT, session.id, HoldRequest(reason="why"))


async def test_others_sessions_are_not_found_and_a_monitor_changes_nothing(
    platform: Platform,
):
    session = await queued(platform, "a")
    bob = await user(platform, "bob")
    for verb in (
        set_priority(platform, bob, session.id, 1),
        hold_session(platform, bob, session.id, HoldRequest(reason="why")),
        release_session(platform, bob, session.id),
    ):
        with pytest.raises(NotFoundError):
            await verb
    monitor = msgspec.structs.replace(ROOT, caller=Caller.MONITOR)
    with pytest.raises(ForbiddenError):
        await set_priority(platform, monitor, session.id, 1)


# --- hold and release -----------------------------------------------------------------


async def test_a_held_session_waits_with_that_reason_and_blocks_nobody(
    platform: Platform,
):
    first, second = await queued(platform, "a"), await queued(platform, "b")
    shown = await hold_session(platform, ROOT, first.id, HoldRequest(reason="ask me"))
    assert shown.reason == f"held by admin since {SINCE}: ask me"
    await add_node(platform)

    assert await schedule(platform) == 1
    assert await status(platform, second) is SessionStatus.SCHEDULED
    assert (await read(platform, first)).reason == shown.reason


async def test_a_released_session_has_kept_its_place(platform: Platform, clock: Clock):
    first = await queued(platform, "a")
    clock.pass_(5)
    second = await queued(platform, "b")
    alice = await user(platform)
    held = await hold_session(platform, alice, first.id, HoldRequest(reason="later"))
    assert held.reason == "held by its owner since 2026-01-01 00:00 UTC: later"
    clock.pass_(60)
    shown = await release_session(platform, alice, first.id)
    assert shown.reason == "waiting in the queue"
    assert shown.created_at == first.created_at
    await add_node(platform)

    assert await schedule(platform) == 1
    assert await status(platform, first) is SessionStatus.SCHEDULED
    assert await status(platform, second) is SessionStatus.PENDING
    assert await acts(platform, first) == ["session:hold", "session:release"]


async def test_what_an_admin_holds_its_owner_cannot_release_or_take_over(
    platform: Platform,
):
    session = await queued(platform, "a")
    alice, dora = await user(platform), await admin_of_domain(platform)
    await hold_session(platform, dora, session.id, HoldRequest(reason="audit"))

    for verb in (
        release_session(platform, alice, session.id),
        hold_session(platform, alice, session.id, HoldRequest(reason="mine")),
    ):
        with pytest.raises(ForbiddenError) as refused:
            await verb
        assert refused.value.message == (
            f"this session is held by admin since {SINCE}: audit; only an administrator"
            " can release it"
        )
    assert (await release_session(platform, ROOT, session.id)).reason == (
        "waiting in the queue"
    )


async def test_an_admin_can_make_an_owners_hold_their_own(platform: Platform):
    session = await queued(platform, "a")
    alice = await user(platform)
    await hold_session(platform, alice, session.id, HoldRequest(reason="later"))
    await hold_session(platform, ROOT, session.id, HoldRequest(reason="never"))
    with pytest.raises(ForbiddenError, match="held by admin"):
        await release_session(platform, alice, session.id)


async def test_a_domain_admins_own_session_held_by_another_stays_held(
    platform: Platform,
):
    session = (await submit(platform, "dora", server="a")).session
    dora = await admin_of_domain(platform)
    await hold_session(platform, ROOT, session.id, HoldRequest(reason="no"))
    with pytest.raises(ForbiddenError):
        await release_session(platform, dora, session.id)


async def test_a_hold_needs_a_reason_and_releasing_twice_is_no_error(
    platform: Platform,
):
    session = await queued(platform, "a")
    with pytest.raises(InvalidRequestError, match="reason: say why"):
        await hold_session(platform, ROOT, session.id, HoldRequest(reason="  "))
    await hold_session(platform, ROOT, session.id, HoldRequest(reason="x"))
    await release_session(platform, ROOT, session.id)
    await release_session(platform, ROOT, session.id)
    assert await acts(platform, session) == ["session:hold", "session:release"]


async def test_a_session_that_is_held_between_decision_and_start_does_not_start(
    platform: Platform,
):
    await add_node(platform)
    session = await queued(platform, "a")
    decided = plan(await load_snapshot(platform))
    await hold_session(platform, ROOT, session.id, HoldRequest(reason="stop"))
    assert await apply_plan(platform, decided) == 0
    assert await status(platform, session) is SessionStatus.PENDING


async def test_what_is_kept_in_memory_sees_holds_drains_and_freezes(
    platform: Platform,
):
    await add_node(platform, "n1")
    session = await queued(platform, "a")
    view = QueueView(platform)
    await view.refresh()
    stop = FreezeRequest(reason="x")
    for change in (
        lambda: hold_session(platform, ROOT, session.id, HoldRequest(reason="x")),
        lambda: release_session(platform, ROOT, session.id),
        lambda: set_priority(platform, ROOT, session.id, 90),
        lambda: drain_agent(platform, ROOT, "n1", DrainRequest(reason="x")),
        lambda: drain_agent(platform, ROOT, "n1", DrainRequest(reason="y")),
        lambda: undrain_agent(platform, ROOT, "n1"),
        lambda: freeze_group(platform, ROOT, "default", stop),
        lambda: unfreeze_group(platform, ROOT, "default"),
    ):
        await change()
        await view.refresh()
        assert view.snapshot() == await load_snapshot(platform)


# --- drain ----------------------------------------------------------------------------


async def test_a_drained_node_takes_nothing_new_and_what_runs_goes_on(
    platform: Platform,
):
    await add_node(platform, "n1")
    running = await start(platform, slots={"cpu": 1})
    shown = await drain_agent(platform, ROOT, "n1", DrainRequest(reason="new fans"))
    waiting = (await submit(platform, server="b", slots={"cpu": 1})).session

    assert await why(platform, waiting) == (
        f"1 of 1 node: drained since {SINCE}: new fans"
    )
    assert await status(platform, running) is SessionStatus.SCHEDULED
    assert not shown.schedulable
    assert shown.drain is not None
    assert (shown.drain.sessions, shown.drain.endless) == (1, 1)

    assert (await undrain_agent(platform, ROOT, "n1")).drain is None
    assert await schedule(platform) == 1
    assert await acts(platform) == ["agent:drain", "agent:undrain"]
    assert await events(platform, "agent.drained") == [
        f"node n1: drained since {SINCE}: new fans"
    ]


async def test_a_drained_node_is_empty_when_nothing_is_left(platform: Platform):
    node = await add_node(platform, "n1")
    session = await start(platform)
    await drain_agent(platform, ROOT, "n1", DrainRequest(reason="x"))
    await terminate_session(platform, ROOT, session.id, force=True)
    await node.report()
    shown = await read_agent(platform, "n1")
    assert shown.drain is not None
    assert shown.drain.sessions == 0


async def test_a_time_by_which_a_node_is_empty_lies_ahead_and_is_shown(
    platform: Platform,
):
    await add_node(platform, "n1")
    await start(platform)
    for by in ("2025-12-31T00:00:00Z", "tomorrow", "2026-01-02T00:00:00"):
        with pytest.raises(InvalidRequestError, match="by: "):
            await drain_agent(platform, ROOT, "n1", DrainRequest(reason="x", by=by))
    body = DrainRequest(reason="x", by="2026-01-02T01:00:00+01:00")
    shown = await drain_agent(platform, ROOT, "n1", body)
    assert shown.drain is not None
    assert shown.drain.due == "2026-01-02T00:00:00.000Z"
    assert shown.drain.late  # nobody knows when that session ends


@pytest.mark.parametrize(
    ("minutes", "late"), [(30, True), (59, True), (60, False), (90, False)]
)
async def test_a_node_is_late_if_what_is_left_may_run_beyond_its_time(
    platform: Platform, minutes: int, late: bool
):
    node = await add_node(platform, "n1")
    job = await ask(platform, batch_timeout=3600)
    assert await schedule(platform) == 1
    due = START + timedelta(minutes=minutes)
    body = DrainRequest(reason="x", by=due.isoformat())
    shown = await drain_agent(platform, ROOT, "n1", body)
    assert shown.drain is not None
    assert (shown.drain.endless, shown.drain.late) == (1, True), "it only starts yet"

    await tell(platform, node, job, State.RUNNING)
    after = await read_agent(platform, "n1")
    assert after.drain is not None
    assert after.drain.last_end == "2026-01-01T01:00:00.000Z"
    assert (after.drain.endless, after.drain.late) == (0, late)
    # Another time and reason, and it is drained since when it was.
    platform.database.clock.pass_(600)  # type: ignore[attr-defined]
    again = DrainRequest(reason="y", by="2026-01-01T03:00:00Z")
    shown = await drain_agent(platform, ROOT, "n1", again)
    assert shown.drain is not None
    assert (shown.drain.reason, shown.drain.late) == ("y", False)
    assert shown.drain.since == "2026-01-01T00:00:00.000Z"


async def test_schedulable_and_drained_are_one_thing(platform: Platform):
    await add_node(platform, "n1")
    await drain_agent(platform, ROOT, "n1", DrainRequest(reason="x"))
    shown = await change_agent(platform, ROOT, "n1", AgentChange(schedulable=True))
    assert shown.drain is None
    await change_agent(platform, ROOT, "n1", AgentChange(schedulable=False))
    assert (await undrain_agent(platform, ROOT, "n1")).schedulable


# --- freeze ---------------------------------------------------------------------------


async def test_in_a_frozen_group_nothing_starts_and_the_reason_is_told(
    platform: Platform, office: Office
):
    await add_node(platform, "n1")
    running = await start(platform, slots={"cpu": 1})
    await freeze_group(platform, ROOT, "default", FreezeRequest(reason="power cut"))
    waiting = (await submit(platform, server="b", slots={"cpu": 1})).session

    assert await why(platform, waiting) == (
        f"resource group default is frozen since {SINCE}: power cut"
    )
    assert await status(platform, running) is SessionStatus.SCHEDULED
    await unfreeze_group(platform, ROOT, "default")
    await unfreeze_group(platform, ROOT, "default")
    assert await schedule(platform) == 1
    assert await acts(platform) == ["resource-group:freeze", "resource-group:unfreeze"]


async def test_only_superadmins_drain_and_freeze(platform: Platform):
    await add_node(platform, "n1")
    dora = await admin_of_domain(platform)
    with pytest.raises((ForbiddenError, NotFoundError)):
        await freeze_group(platform, dora, "default", FreezeRequest(reason="x"))


async def test_a_frozen_group_can_be_removed(platform: Platform, office: Office):
    await office.make("resource-group", name="old")
    await freeze_group(platform, ROOT, "old", FreezeRequest(reason="x"))
    await office.purge("resource-group", "old")
