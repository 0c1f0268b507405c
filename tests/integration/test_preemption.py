"""Making room for others: who leaves, for whom room is kept, and how both end."""

from __future__ import annotations

from typing import Any

import pytest

from backendai_hub.core.access import Caller
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.preemptions import Ending, Fate
from backendai_hub.core.sessions import SessionResult, SessionStatus
from backendai_hub.db.engine import Database
from backendai_hub.operations.attachments import list_attached
from backendai_hub.operations.deadlines import end_overdue
from backendai_hub.operations.nodes import (
    judge_agents,
    load_assignments,
    load_routes,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.preemption import carry_out
from backendai_hub.operations.queue_verbs import HoldRequest, hold_session
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.operations.sessions import HistoryQuery, list_history
from backendai_hub.operations.stops import DrainRequest, drain_agent
from backendai_hub.scheduling.plan import plan
from tests.factories import (
    START,
    Clock,
    Node,
    add_node,
    make_device,
    make_gpu,
    principal_of,
    schedule,
    seen,
    submit,
)
from tests.jobs import State, ask, containers_of, end, stop, tell
from tests.preemptions import GPU, look, occupy, opt_in, plans, report, vanish
from tests.tenants import (
    ROOT,
    Office,
    ask_with_key,
    breaches,
    make_system,
    read,
)

S = SessionStatus


@pytest.fixture
async def node(platform: Platform) -> Node:
    return await add_node(platform, devices=[make_device(), make_gpu("gpu-0")])


@pytest.fixture
def clock(database: Database) -> Clock:
    assert isinstance(database.clock, Clock)
    return database.clock


async def status_of(platform: Platform, session: Any) -> SessionStatus:
    return (await read(platform, session)).status


# --- how it goes ---------------------------------------------------------------------


async def test_who_leaves_has_a_moment_and_then_room_is_there_for_exactly_one(
    platform: Platform, node: Node
):
    await opt_in(platform, grace_seconds=45)
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)

    leaving, waiting = await read(platform, victim), await read(platform, urgent)
    assert (leaving.status, waiting.status) == (S.PREEMPTED, S.RESERVED)
    assert leaving.reason == (
        "preempted to make room for another session, which has a higher job priority;"
        " it has 45 s to save, then it ends"
    )
    assert waiting.reason == "room is kept for it on node-1 until 1 session has left"
    assert leaving.devices == ["gpu-0"]  # held until the node has confirmed the end
    (spec,) = (await load_assignments(platform, node.id)).containers
    assert (spec.desired, spec.grace_seconds) == ("absent", 45)
    assert len((await load_routes(platform)).routes) == 0  # a job has none
    assert await breaches(platform) == []

    await vanish(platform, node, victim)
    left = await read(platform, victim)
    assert (left.status, left.result) == (S.TERMINATED, SessionResult.FAILURE)
    assert left.reason.startswith("preempted to make room")
    # Nobody else takes the room, whoever stands first in the queue.
    eager = await ask(platform, "carol", slots=GPU, priority=100)
    await look(platform)
    assert await status_of(platform, urgent) is S.SCHEDULED
    assert await status_of(platform, eager) is S.PENDING
    assert await breaches(platform) == []
    (shown,) = await plans(platform)
    assert (shown.ending, shown.kind, shown.nodes) == (
        Ending.STARTED,
        "priority",
        ["node-1"],
    )
    assert [v.fate for v in shown.victims] == [Fate.TERMINATED]


async def test_the_room_is_kept_while_only_some_have_left(platform: Platform):
    node = await add_node(
        platform, devices=[make_device(), make_gpu("gpu-0"), make_gpu("gpu-1")]
    )
    await opt_in(platform)
    first, second = [await occupy(platform, node) for _ in range(2)]
    wide = await ask(platform, "bob", slots={"cuda.device": "2"}, job_priority=1)
    await look(platform)
    assert await status_of(platform, wide) is S.RESERVED

    await vanish(platform, node, first)
    narrow = await ask(platform, "carol", slots=GPU, priority=100, job_priority=9)
    assert await look(platform) == 0
    assert await status_of(platform, narrow) is S.PENDING
    await vanish(platform, node, second)
    assert await look(platform) == 1
    assert await status_of(platform, wide) is S.SCHEDULED
    assert await breaches(platform) == []


async def test_rescheduled_sessions_come_back_as_themselves(
    platform: Platform, node: Node, clock: Clock
):
    await opt_in(platform, mode="reschedule")
    victim = await occupy(platform, node, name="long-job", priority=7)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    # That its command has ended is not enough: its node may look at it again.
    await end(platform, node, victim, 143)
    assert await status_of(platform, victim) is S.PREEMPTED

    await vanish(platform, node, victim)
    back = await read(platform, victim)
    assert (back.id, back.name, back.priority) == (victim.id, "long-job", 7)
    assert (back.status, back.result) == (S.PENDING, SessionResult.UNDEFINED)
    assert (back.preemptions, back.attempts, back.max_attempts) == (1, 0, 1)
    assert back.reason.endswith("waiting in the queue again")
    await look(platform)
    await tell(platform, node, urgent, State.RUNNING)
    await end(platform, node, urgent)
    clock.pass_(60)
    assert await look(platform) == 1
    again = await read(platform, victim)
    assert (again.status, again.attempts) == (S.SCHEDULED, 1)
    await tell(platform, node, victim, State.RUNNING)
    await end(platform, node, victim)
    assert (await read(platform, victim)).result is SessionResult.SUCCESS
    assert await breaches(platform) == []


async def test_who_is_displaced_often_has_failed_never(platform: Platform, node: Node):
    """To make room uses up no attempt, however often."""
    await opt_in(platform, mode="reschedule")
    victim = await occupy(platform, node)
    for number in range(1, 4):
        urgent = await ask(platform, "bob", slots=GPU, job_priority=number)
        await look(platform)
        await vanish(platform, node, victim)
        await look(platform)
        await tell(platform, node, urgent, State.RUNNING)
        await end(platform, node, urgent)
        assert await look(platform) == 1
        await tell(platform, node, victim, State.RUNNING)
        assert (await read(platform, victim)).preemptions == number
    assert await breaches(platform) == []


async def test_what_ended_before_its_node_was_told_is_done(
    platform: Platform, node: Node
):
    await opt_in(platform, mode="reschedule")
    victim = await occupy(platform, node)
    await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)

    container = (await plans(platform))[0].victims[0]
    await report(platform, node, {container.id: State.EXITED})  # no exit code: not it
    assert await status_of(platform, victim) is S.PREEMPTED
    (mine,) = await containers_of(platform, victim)
    await node.report([seen(mine, State.EXITED, exit_code=0)], generation=1)
    done = await read(platform, victim)
    assert (done.status, done.result) == (S.TERMINATED, SessionResult.SUCCESS)
    assert [v.fate for v in (await plans(platform))[0].victims] == [Fate.TERMINATED]


async def test_people_reach_their_session_until_it_is_gone(
    platform: Platform, node: Node
):
    await opt_in(platform)
    started = await submit(platform, "alice", slots=GPU)
    await look(platform)
    await tell(platform, node, started.session, State.RUNNING)
    assert len((await load_routes(platform)).routes) == 1
    await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)

    assert await status_of(platform, started.session) is S.PREEMPTED
    assert len((await load_routes(platform)).routes) == 1
    assert await list_attached(platform) == []  # no server is started for it now
    await vanish(platform, node, started.session)
    assert (await load_routes(platform)).routes == []
    assert (await read(platform, started.session)).result is SessionResult.UNDEFINED


# --- who has to, and who has not -----------------------------------------------------


async def test_nobody_leaves_where_nobody_has_said_so(platform: Platform, node: Node):
    await opt_in(platform, enabled=False)
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=9)
    await look(platform)

    assert await status_of(platform, victim) is S.RUNNING
    assert await status_of(platform, urgent) is S.PENDING
    assert await plans(platform) == []


@pytest.mark.parametrize(
    ("rules", "victim", "urgent"),
    [
        ({}, {"job_priority": 1}, {}),
        ({}, {"is_preemptible": False}, {}),
        ({"victim_scope": "user"}, {}, {}),
        ({"min_runtime": 10}, {}, {}),
        ({}, {}, {"job_priority": 0}),
    ],
    ids=["equal", "not-preemptible", "another-user", "too-young", "no-priority"],
)
async def test_who_need_not_leave_stays(
    platform: Platform,
    node: Node,
    rules: dict[str, Any],
    victim: dict[str, Any],
    urgent: dict[str, Any],
):
    await opt_in(platform, **rules)
    staying = await occupy(platform, node, **victim)
    waiting = await ask(platform, "bob", slots=GPU, **{"job_priority": 1, **urgent})
    await look(platform)

    assert await status_of(platform, staying) is S.RUNNING
    assert await status_of(platform, waiting) is S.PENDING


async def test_one_s_own_may_leave_in_the_narrowest_scope_and_later_ones_when_old(
    platform: Platform, node: Node, clock: Clock
):
    await opt_in(platform, victim_scope="user", min_runtime=60)
    victim = await occupy(platform, node, "alice")
    urgent = await ask(platform, "alice", name="thesis", slots=GPU, job_priority=1)
    clock.pass_(59)
    await look(platform)
    assert await status_of(platform, victim) is S.RUNNING
    clock.pass_(1)
    await look(platform)

    assert await status_of(platform, urgent) is S.RESERVED
    assert "your session thesis" in (await read(platform, victim)).reason


async def test_the_platform_s_own_sessions_stay(platform: Platform, node: Node):
    await opt_in(platform)
    session = await ask(platform, slots=GPU)
    await make_system(platform, session.id)
    await look(platform)
    await tell(platform, node, session, State.RUNNING)
    await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)

    assert await status_of(platform, session) is S.RUNNING


async def test_nobody_raises_their_own_job_priority_unless_a_policy_lets_them(
    platform: Platform, node: Node
):
    await opt_in(platform)
    office = Office(platform)
    await office.change("keypair-policy", "default", max_job_priority=0)
    with pytest.raises(InvalidRequestError, match=r"job_priority: 1 is above 0"):
        await ask(platform, "mallory", slots=GPU, job_priority=1)
    await ask(platform, "mallory", slots=GPU, job_priority=-1)  # lower is everybody's
    await office.change("keypair-policy", "default", max_job_priority=5)
    await ask(platform, "alice", slots=GPU, job_priority=5)
    with pytest.raises(InvalidRequestError, match=r"job_priority: 6 is above 5"):
        await ask(platform, "mallory", slots=GPU, job_priority=6)


async def test_a_policy_may_allow_no_sessions_that_are_never_displaced(
    platform: Platform, node: Node
):
    await opt_in(platform)
    office = Office(platform)
    kept = await ask(platform, "alice", is_preemptible=False)
    await office.change("keypair-policy", "default", allows_not_preemptible=False)
    told = (
        "is_preemptible: the keypair policy default allows no sessions that are never"
    )
    with pytest.raises(InvalidRequestError, match=told):
        await ask(platform, "alice", slots=GPU, is_preemptible=False)
    assert not (await read(platform, kept)).is_preemptible  # it was asked for before
    # Another keypair of somebody who may bounds what is asked for with it.
    await office.change("keypair-policy", "default", allows_not_preemptible=True)
    await office.make("keypair-policy", name="strict", allows_not_preemptible=False)
    key = await office.make("keypair", user="alice", resource_policy="strict")
    with pytest.raises(
        InvalidRequestError, match="the keypair policy strict allows no"
    ):
        await ask_with_key(platform, "alice", key.id, is_preemptible=False)
    await ask_with_key(platform, "alice", key.id)


async def test_two_plans_never_share_a_victim(platform: Platform, node: Node):
    await opt_in(platform)
    await occupy(platform, node)
    first = await ask(platform, "bob", slots=GPU, job_priority=1)
    second = await ask(platform, "carol", slots=GPU, job_priority=2)
    snapshot = await load_snapshot(platform)
    (proposal,) = plan(snapshot).preemptions

    assert await carry_out(platform, [proposal]) == 1
    assert await carry_out(platform, [proposal]) == 0
    await look(platform)
    waiting = [await status_of(platform, s) for s in (first, second)]
    assert sorted(waiting) == [S.PENDING, S.RESERVED]
    assert len(await plans(platform)) == 1


@pytest.mark.parametrize(
    "change", ["ended", "cancelled", "opted-out", "drained", "held", "younger", "taken"]
)
async def test_a_proposal_that_does_not_hold_any_more_changes_nothing(
    platform: Platform, node: Node, change: str
):
    office = Office(platform)
    await opt_in(platform)
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    (proposal,) = plan(await load_snapshot(platform)).preemptions
    match change:
        case "ended":
            await stop(platform, victim)
        case "cancelled":
            await stop(platform, urgent)
        case "opted-out":
            await opt_in(platform, enabled=False)
        case "drained":
            await drain_agent(platform, ROOT, "node-1", DrainRequest(reason="fan"))
        case "held":
            await hold_session(platform, ROOT, urgent.id, HoldRequest(reason="later"))
        case "younger":
            await opt_in(platform, min_runtime=1)
        case "taken":
            await office.make("resource-group", name="other")
            await office.move_node("node-1", "other", force=True)
    before = await status_of(platform, victim)

    assert await carry_out(platform, [proposal]) == 0
    assert await status_of(platform, victim) is before
    assert await plans(platform) == []
    assert await breaches(platform) == []


async def test_room_that_somebody_has_taken_meanwhile_is_not_counted_on(
    platform: Platform,
):
    node = await add_node(
        platform, devices=[make_device(), make_gpu("gpu-0"), make_gpu("gpu-1")]
    )
    await opt_in(platform)
    victim = await occupy(platform, node)
    wide = await ask(platform, "bob", slots={"cuda.device": "2"}, job_priority=1)
    (proposal,) = plan(await load_snapshot(platform)).preemptions
    assert [v.session for v in proposal.victims] == [victim.id]
    quick = await ask(platform, "carol", slots=GPU, priority=100, job_priority=1)
    assert await schedule(platform) == 1

    assert await carry_out(platform, [proposal]) == 0
    assert await status_of(platform, victim) is S.RUNNING
    assert await status_of(platform, wide) is S.PENDING
    assert await status_of(platform, quick) is S.SCHEDULED


# --- how it goes otherwise -----------------------------------------------------------


async def test_a_service_that_starts_anew_goes_on_where_the_last_one_was(
    platform: Platform, node: Node
):
    """Everything is in the database: each look is by a scheduler that knows nothing."""
    await opt_in(platform, mode="reschedule")
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    (kept,) = (await load_snapshot(platform)).reserved
    assert (kept.session, kept.victims) == (urgent.id, (victim.id,))
    assert plan(await load_snapshot(platform)).preemptions == ()

    await vanish(platform, node, victim)
    eager = await ask(platform, "carol", slots=GPU, priority=100, job_priority=5)
    assert await look(platform) == 1
    assert await status_of(platform, urgent) is S.SCHEDULED
    assert await status_of(platform, eager) is S.PENDING


async def test_room_is_not_kept_for_ever(platform: Platform, node: Node, clock: Clock):
    await opt_in(platform, grace_seconds=30)
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    shown = await read(platform, urgent)
    assert shown.deadline_at == "2026-01-01T00:05:30.000Z"
    # The node is silent: what runs there cannot be known.
    clock.pass_(331)
    await judge_agents(platform, START)
    await end_overdue(platform)

    back = await read(platform, urgent)
    assert back.status is S.PENDING
    assert back.reason == (
        "waiting in the queue again: the room that was kept for it has not become free"
        " in time"
    )
    assert await status_of(platform, victim) is S.PREEMPTED
    (shown_plan,) = await plans(platform)
    assert (shown_plan.ending, shown_plan.victims[0].fate) == (Ending.EXPIRED, None)
    assert (await load_snapshot(platform)).reserved == ()
    await look(platform)
    assert len(await plans(platform)) == 1


async def test_who_will_not_go_is_ended(platform: Platform, node: Node, clock: Clock):
    await opt_in(platform, grace_seconds=30)
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    clock.pass_(121)
    await end_overdue(platform)
    assert await status_of(platform, victim) is S.ERROR
    await look(platform)

    assert await status_of(platform, urgent) is S.SCHEDULED
    assert (await plans(platform))[0].victims[0].fate is Fate.FAILED
    assert await breaches(platform) == []


async def test_a_cancelled_session_keeps_no_room_and_who_was_told_goes_on(
    platform: Platform, node: Node
):
    await opt_in(platform)
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    await stop(platform, urgent)

    assert await status_of(platform, urgent) is S.CANCELLED
    assert (await plans(platform))[0].ending is Ending.CANCELLED
    assert await status_of(platform, victim) is S.PREEMPTED
    await vanish(platform, node, victim)
    other = await ask(platform, "carol", slots=GPU)
    await look(platform)
    assert await status_of(platform, other) is S.SCHEDULED
    assert await breaches(platform) == []


async def test_a_held_session_keeps_no_room(platform: Platform, node: Node):
    await opt_in(platform)
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    await hold_session(platform, ROOT, urgent.id, HoldRequest(reason="later"))

    shown = await read(platform, urgent)
    assert (shown.status, shown.deadline_at) == (S.PENDING, None)
    assert (await plans(platform))[0].ending is Ending.WITHDRAWN
    await vanish(platform, node, victim)
    other = await ask(platform, "carol", slots=GPU)
    await look(platform)
    assert await status_of(platform, other) is S.SCHEDULED


@pytest.mark.parametrize("force", [True, False], ids=["by-force", "gracefully"])
async def test_who_is_stopped_while_it_leaves_does_not_come_back(
    platform: Platform, node: Node, force: bool
):
    await opt_in(platform, mode="reschedule")
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    await stop(platform, victim, force=force)
    if not force:
        assert await status_of(platform, victim) is S.TERMINATING
        await vanish(platform, node, victim)

    assert await status_of(platform, victim) is S.TERMINATED
    assert (await plans(platform))[0].victims[0].fate is Fate.TERMINATED
    await look(platform)
    assert await status_of(platform, urgent) is S.SCHEDULED
    assert await breaches(platform) == []


async def test_who_finds_room_elsewhere_starts_there(platform: Platform, node: Node):
    await opt_in(platform)
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    await add_node(platform, "node-2", [make_device(), make_gpu("gpu-9")])
    await look(platform)

    shown = await read(platform, urgent)
    assert (shown.status, shown.agent) == (S.SCHEDULED, "node-2")
    assert await status_of(platform, victim) is S.PREEMPTED
    await vanish(platform, node, victim)
    other = await ask(platform, "carol", slots=GPU)
    await look(platform)
    assert await status_of(platform, other) is S.SCHEDULED


async def test_a_victim_that_has_not_begun_leaves_as_well(
    platform: Platform, node: Node
):
    await opt_in(platform, mode="reschedule")
    victim = await ask(platform, slots=GPU)
    assert await look(platform) == 1
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    assert await status_of(platform, victim) is S.PREEMPTED
    await node.report()  # it knows of the assignment and sees no such container

    assert await status_of(platform, victim) is S.PENDING
    await look(platform)
    assert await status_of(platform, urgent) is S.SCHEDULED
    assert await breaches(platform) == []


# --- what is told --------------------------------------------------------------------


async def test_both_sides_find_it_in_their_history(platform: Platform, node: Node):
    await opt_in(platform)
    victim = await occupy(platform, node)
    urgent = await ask(platform, "bob", slots=GPU, job_priority=1)
    await look(platform)
    alice = await principal_of(platform, "alice", Caller.USER)
    bob = await principal_of(platform, "bob", Caller.USER)

    hers = (await list_history(platform, alice, victim.id, HistoryQuery())).items
    his = (await list_history(platform, bob, urgent.id, HistoryQuery())).items
    assert [(a.phase, a.result) for a in hers][-1] == ("preemption", "preempted")
    assert [(a.phase, a.result) for a in his][-1] == ("preemption", "reserved")


async def test_nobody_learns_of_others_sessions_by_it(platform: Platform, node: Node):
    await opt_in(platform)
    victim = await occupy(platform, node, "alice", name="alices-secret")
    urgent = await ask(platform, "bob", name="bobs-secret", slots=GPU, job_priority=1)
    await look(platform)

    (hers,) = await plans(platform, "alice")
    assert (hers.session, hers.name, hers.owner) == (None, None, None)
    assert [v.name for v in hers.victims] == ["alices-secret"]
    (his,) = await plans(platform, "bob")
    assert (his.name, his.victims, his.others) == ("bobs-secret", [], 1)
    assert await plans(platform, "alice", session=urgent.id) == []
    assert len(await plans(platform, "alice", session=victim.id)) == 1
    assert await plans(platform, "carol") == []
    assert await plans(platform, "carol", session=victim.id) == []
    told = " ".join(
        [(await read(platform, victim)).reason, *(v.reason for v in hers.victims)]
    )
    for secret in ("bob", urgent.id):
        assert secret not in told
    waits = (await read(platform, urgent)).reason
    assert "alice" not in waits
    assert victim.id not in waits


async def test_plans_are_listed_a_page_at_a_time_and_by_what_they_are(
    platform: Platform, node: Node
):
    await opt_in(platform, mode="reschedule")
    victim = await occupy(platform, node)
    made = []
    for number in (1, 2):
        urgent = await ask(platform, "bob", slots=GPU, job_priority=number)
        made.append(urgent.id)
        await look(platform)
        await vanish(platform, node, victim)
        await look(platform)
        await tell(platform, node, urgent, State.RUNNING)
        victim = await read(platform, urgent)

    found = await plans(platform)
    assert [p.session for p in found] == [made[1], made[0]]
    (newest,) = await plans(platform, limit=1)
    assert newest.id == found[0].id
    assert [p.id for p in await plans(platform, after=newest.id)] == [found[1].id]
    assert await plans(platform, open=True) == []
    assert await plans(platform, kind="reclaim") == []
    assert len(await plans(platform, resource_group="default")) == 2
    assert [p.session for p in await plans(platform, session=made[0])] == [
        made[1],
        made[0],
    ]
