"""What is promised of batch sessions: results, time, dependencies, attempts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from backendai_hub.api.agents import DesiredState
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import ConflictError, ForbiddenError, InvalidRequestError
from backendai_hub.core.sessions import (
    Session,
    SessionResult,
    SessionStatus,
    SessionType,
)
from backendai_hub.db.engine import Database
from backendai_hub.db.signals import Signals
from backendai_hub.operations.attachments import list_attached
from backendai_hub.operations.batch import (
    cancel_dependents,
    end_timed_out,
    requeue_stranded,
)
from backendai_hub.operations.deadlines import end_overdue
from backendai_hub.operations.nodes import judge_agents, load_assignments, load_routes
from backendai_hub.operations.platform import Platform
from backendai_hub.reconcilers.batch import BatchReconciler
from tests.factories import (
    START,
    Clock,
    Node,
    add_node,
    schedule,
    seen,
    start,
    submit,
)
from tests.jobs import State, ask, begin, containers_of, end, stop, tell
from tests.tenants import breaches, read, why

LEASE, MARGIN = 240, 60


@pytest.fixture
async def node(platform: Platform) -> Node:
    return await add_node(platform)


@pytest.fixture
def clock(database: Database) -> Clock:
    assert isinstance(database.clock, Clock)
    return database.clock


async def spec_of(platform: Platform, node: Node, session: Session) -> Any:
    wanted = await load_assignments(platform, node.id)
    (spec,) = [c for c in wanted.containers if c.session_id == session.id]
    return spec


async def lose(platform: Platform, clock: Clock, seconds: float) -> int:
    """Let nodes be silent for some time, and draw the consequences."""
    clock.pass_(seconds)
    await judge_agents(platform, START)
    return await requeue_stranded(platform, START)


# --- what it runs, and what becomes of it ----------------------------------------


async def test_a_batch_session_has_a_command_and_no_jupyterhub_server(
    platform: Platform, node: Node
):
    session = await begin(platform, startup_command="echo hi", environ={"A": "b"})

    assert (session.attachment, session.url, session.attempts) == (None, None, 0)
    assert (await read(platform, session)).attempts == 1
    spec = await spec_of(platform, node, session)
    assert (spec.command, spec.environ) == ("echo hi", {"A": "b"})
    assert (spec.timeout_seconds, spec.lease_seconds) == (0, 0)
    await tell(platform, node, session, State.RUNNING)
    assert (await read(platform, session)).url is None
    assert await list_attached(platform) == []
    assert (await load_routes(platform)).routes == []


@pytest.mark.parametrize(
    ("code", "result", "reason"),
    [
        (0, SessionResult.SUCCESS, "its command has succeeded"),
        (3, SessionResult.FAILURE, "its command ended with code 3"),
    ],
)
async def test_its_exit_code_says_what_became_of_it(
    platform: Platform, node: Node, code: int, result: SessionResult, reason: str
):
    session = await begin(platform)
    await tell(platform, node, session, State.RUNNING)
    await end(platform, node, session, code)

    shown = await read(platform, session)
    assert (shown.status, shown.result) == (SessionStatus.TERMINATED, result)
    assert (shown.exit_code, shown.reason) == (code, reason)
    assert await breaches(platform) == []


async def test_a_command_may_end_before_anybody_has_seen_it_run(
    platform: Platform, node: Node
):
    session = await begin(platform)
    await end(platform, node, session)

    shown = await read(platform, session)
    assert (shown.status, shown.result) == (
        SessionStatus.TERMINATED,
        SessionResult.SUCCESS,
    )
    assert shown.started_at is not None


async def test_what_somebody_stops_has_no_result_whether_it_has_begun_or_not(
    platform: Platform, node: Node
):
    session = await begin(platform)
    await tell(platform, node, session, State.RUNNING)
    await stop(platform, session)
    await end(platform, node, session, 0)
    cancelled = await ask(platform)
    await stop(platform, cancelled)
    forced = await begin(platform)
    await stop(platform, forced, force=True)

    shown = await read(platform, session)
    assert (shown.status, shown.result) == (
        SessionStatus.TERMINATED,
        SessionResult.UNDEFINED,
    )
    assert (await read(platform, cancelled)).result is SessionResult.UNDEFINED
    assert (await read(platform, forced)).result is SessionResult.UNDEFINED


async def test_an_interactive_session_has_no_result(platform: Platform, node: Node):
    session = await start(platform)
    await tell(platform, node, session, State.RUNNING)
    await end(platform, node, session, 0)

    assert (await read(platform, session)).result is SessionResult.UNDEFINED


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"startup_command": None}, "startup_command"),
        ({"startup_command": " \n"}, "startup_command"),
        ({"startup_command": "a\0b"}, "NUL"),
        ({"startup_command": "x" * 70_000}, "64 KiB"),
        ({"batch_timeout": 0}, "batch_timeout"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": 101}, "max_attempts"),
        ({"starts_at": datetime(2026, 1, 1)}, "time zone"),  # noqa: DTZ001 - the point
        ({"tag": ""}, "tag"),
        ({"tag": "x" * 65}, "tag"),
        ({"tag": "a\nb"}, "tag"),
        ({"job_priority": 1 << 31}, "job_priority"),
        ({"environ": {"JUPYTERHUB_API_TOKEN": "x"}}, "JUPYTERHUB_API_TOKEN"),
        (
            {"type": SessionType.INTERACTIVE, "startup_command": "true"},
            "startup_command",
        ),
        (
            {
                "type": SessionType.INTERACTIVE,
                "startup_command": None,
                "max_attempts": 2,
            },
            "max_attempts",
        ),
        ({"dependencies": ["nobody"]}, "nobody"),
        ({"name": "me", "dependencies": ["me"]}, "itself"),
    ],
)
async def test_what_makes_no_sense_is_refused_in_words(
    platform: Platform, request_: dict[str, Any], words: str
):
    with pytest.raises(InvalidRequestError, match=words):
        await ask(platform, **request_)


async def test_the_spawner_cannot_ask_for_one(platform: Platform):
    with pytest.raises(InvalidRequestError, match="JupyterHub server"):
        await ask(platform, caller=Caller.SPAWNER)


async def test_only_administrators_choose_nodes(platform: Platform, node: Node):
    with pytest.raises(ForbiddenError, match="agents"):
        await ask(platform, agents=["node-1"])
    with pytest.raises(InvalidRequestError, match="no node 'node-9'"):
        await ask(platform, caller=Caller.SUPERADMIN, agents=["node-9"])
    await ask(platform, caller=Caller.SUPERADMIN, preferred_agents=["Node-1", node.id])


async def test_the_same_key_is_the_same_job_but_not_with_another_command(
    platform: Platform,
):
    first = await ask(platform, key="k", environ={"A": "1"})
    assert (await ask(platform, key="k", environ={"A": "1"})).id == first.id
    for change in ({"startup_command": "false"}, {"environ": {"A": "2"}}):
        with pytest.raises(ConflictError):
            await ask(platform, key="k", **{"environ": {"A": "1"}, **change})


# --- time ------------------------------------------------------------------------


async def test_it_does_not_start_before_its_time(
    platform: Platform, node: Node, clock: Clock
):
    session = await ask(platform, starts_at=clock.now + timedelta(hours=1))

    assert "2026-01-01 01:00 UTC at the earliest" in await why(platform, session)
    clock.pass_(3599)
    assert await schedule(platform) == 0
    clock.pass_(1)
    assert await schedule(platform) == 1


async def test_a_job_that_takes_too_long_has_failed_with_that_reason(
    platform: Platform, node: Node, clock: Clock
):
    session = await begin(platform, batch_timeout=90)
    assert (await spec_of(platform, node, session)).timeout_seconds == 90
    await tell(platform, node, session, State.RUNNING)
    clock.pass_(99)
    assert await end_timed_out(platform) == 0
    clock.pass_(1)
    assert await end_timed_out(platform) == 1
    assert (await read(platform, session)).status is SessionStatus.TERMINATING
    await end(platform, node, session, 143)

    shown = await read(platform, session)
    assert shown.reason == "timed out after 1 min 30 s"
    assert (shown.status, shown.result) == (
        SessionStatus.TERMINATED,
        SessionResult.FAILURE,
    )
    assert shown.exit_code == 124, "as where the node ends it"


async def test_the_node_says_itself_that_the_time_was_over(
    platform: Platform, node: Node
):
    session = await begin(platform, batch_timeout=90)
    await tell(platform, node, session, State.RUNNING)
    words = "timed out after 1 min 30 s"
    await tell(platform, node, session, State.EXITED, exit_code=124, reason=words)

    shown = await read(platform, session)
    assert (shown.reason, shown.exit_code) == (words, 124)


# --- dependencies ----------------------------------------------------------------


async def test_it_starts_only_after_all_it_depends_on_have_succeeded(
    platform: Platform, node: Node
):
    first = await begin(platform, name="first")
    second = await begin(platform, name="second")
    last = await ask(platform, dependencies=["first", second.id, "second"])

    assert last.dependencies == sorted([first.id, second.id])
    assert await why(platform, last) == (
        "waits for first (SCHEDULED), second (SCHEDULED) to succeed"
    )
    await end(platform, node, first)
    assert await why(platform, last) == "waits for second (SCHEDULED) to succeed"
    await end(platform, node, second)
    assert await schedule(platform) == 1


@pytest.mark.parametrize("how", ["failed", "stopped", "cancelled", "lost"])
async def test_what_waits_for_a_failure_is_cancelled_with_all_that_waits_for_it(
    platform: Platform, node: Node, how: str
):
    first = await ask(platform, name="first")
    if how != "cancelled":
        assert await schedule(platform) == 1
    middle = await ask(platform, name="middle", dependencies=["first"])
    last = await ask(platform, dependencies=["middle"])
    other = await ask(platform, name="other", starts_at=START + timedelta(days=1))
    if how in {"failed", "lost"}:
        await end(platform, node, first, 1 if how == "failed" else None)
    else:
        await stop(platform, first, force=True)

    assert await cancel_dependents(platform) == 2
    shown = await read(platform, middle)
    assert shown.status is SessionStatus.CANCELLED
    assert shown.reason.startswith("cannot start: first (")
    assert shown.result is SessionResult.UNDEFINED
    shown = await read(platform, last)
    assert shown.reason == "cannot start: middle (CANCELLED) has not succeeded"
    assert (await read(platform, other)).status is SessionStatus.PENDING
    assert await cancel_dependents(platform) == 0


async def test_nobody_waits_for_what_others_have_or_what_has_failed(
    platform: Platform, node: Node
):
    foreign = await ask(platform, "bob", name="theirs")
    lab = (await submit(platform)).session
    for reference in ("theirs", foreign.id, lab.id):
        with pytest.raises(InvalidRequestError, match="no batch session"):
            await ask(platform, dependencies=[reference])
    failed = await ask(platform, name="failed")
    await stop(platform, failed)
    with pytest.raises(InvalidRequestError, match="has not succeeded"):
        await ask(platform, dependencies=["failed"])


async def test_two_sessions_cannot_wait_for_each_other(platform: Platform):
    """What one waits for is there before it is asked for, and stays the same."""
    with pytest.raises(InvalidRequestError, match="no batch session 'second'"):
        await ask(platform, name="first", dependencies=["second"])

    first = await ask(platform, name="first", key="k")
    second = await ask(platform, name="second", dependencies=["first"])
    with pytest.raises(ConflictError):
        await ask(platform, name="first", key="k", dependencies=["second"])
    assert (await read(platform, first)).dependencies == []
    assert (await read(platform, second)).dependencies == [first.id]


async def test_a_name_means_the_live_session_or_else_the_latest(
    platform: Platform, node: Node, clock: Clock
):
    old = await begin(platform, name="same")
    await end(platform, node, old)
    clock.pass_(1)
    new = await begin(platform, name="same")
    assert (await ask(platform, dependencies=["same"])).dependencies == [new.id]
    await end(platform, node, new)
    waiting = await ask(platform, dependencies=["same"])
    assert waiting.dependencies == [new.id]
    assert await schedule(platform) == 2


# --- attempts --------------------------------------------------------------------


async def test_it_is_never_started_twice_unless_that_was_asked_for(
    platform: Platform, node: Node, clock: Clock
):
    session = await begin(platform)
    await tell(platform, node, session, State.RUNNING)
    assert await lose(platform, clock, 10 * (LEASE + MARGIN)) == 0
    assert (await read(platform, session)).status is SessionStatus.RUNNING
    await node.report([])

    shown = await read(platform, session)
    assert (shown.status, shown.attempts) == (SessionStatus.ERROR, 1)
    assert shown.result is SessionResult.FAILURE
    assert await schedule(platform) == 0


async def test_a_failed_start_is_tried_again_when_its_container_is_gone(
    platform: Platform, node: Node
):
    session = await begin(platform, max_attempts=2)
    words = "could not start: no such image"
    await tell(platform, node, session, State.EXITED, reason=words)

    shown = await read(platform, session)
    assert shown.status is SessionStatus.RESCHEDULING
    assert words in shown.reason
    (container,) = await containers_of(platform, session)
    assert (await spec_of(platform, node, session)).desired is DesiredState.ABSENT
    assert await schedule(platform) == 0, "the node has not confirmed anything yet"
    await node.report([seen(container, State.EXITED)])
    assert await schedule(platform) == 0
    await node.report([seen(container, State.GONE)])
    shown = await read(platform, session)
    assert shown.status is SessionStatus.PENDING
    assert shown.reason == f"attempt 1 of 2 was lost ({words})"
    assert await breaches(platform) == []
    assert await schedule(platform) == 1
    assert (await read(platform, session)).attempts == 2
    await tell(platform, node, session, State.EXITED, reason=words)
    assert (await read(platform, session)).status is SessionStatus.ERROR


async def test_absence_from_a_report_confirms_that_it_has_stopped(
    platform: Platform, node: Node
):
    session = await begin(platform, max_attempts=2)
    await tell(platform, node, session, State.RUNNING)
    await node.report([])

    assert (await read(platform, session)).status is SessionStatus.PENDING
    assert await breaches(platform) == []


async def test_a_failing_command_is_no_lost_attempt(platform: Platform, node: Node):
    session = await begin(platform, max_attempts=3)
    await end(platform, node, session, 1)

    shown = await read(platform, session)
    assert (shown.status, shown.attempts) == (SessionStatus.TERMINATED, 1)


async def test_a_lost_node_is_left_only_after_its_lease_and_a_margin(
    platform: Platform, node: Node, clock: Clock
):
    session = await begin(platform, max_attempts=2)
    assert (await spec_of(platform, node, session)).lease_seconds == LEASE
    await tell(platform, node, session, State.RUNNING)
    assert await lose(platform, clock, LEASE + MARGIN - 1) == 0
    assert (await read(platform, session)).status is SessionStatus.RUNNING
    assert await lose(platform, clock, 1) == 1

    shown = await read(platform, session)
    assert shown.status is SessionStatus.PENDING
    assert "has not answered for longer than its lease" in shown.reason
    assert await breaches(platform) == []
    assert await requeue_stranded(platform, START) == 0


async def test_what_is_heard_of_a_former_attempt_changes_nothing(
    platform: Platform, node: Node, clock: Clock
):
    session = await begin(platform, max_attempts=2)
    await tell(platform, node, session, State.RUNNING)
    (old,) = await containers_of(platform, session)
    await lose(platform, clock, LEASE + MARGIN)
    other = await add_node(platform, "node-2")
    assert await schedule(platform) == 1
    (_, new) = await containers_of(platform, session)
    await other.report([seen(new, State.RUNNING)])

    await node.report([seen(old, State.RUNNING)])
    await node.report([seen(old, State.EXITED, exit_code=0)])
    assert (await read(platform, session)).status is SessionStatus.RUNNING
    await stop(platform, session)
    await node.report([seen(old, State.GONE)])
    assert (await read(platform, session)).status is SessionStatus.TERMINATING
    assert await containers_of(platform, session) == [new]
    await other.report([seen(new, State.EXITED, exit_code=143)])
    assert (await read(platform, session)).exit_code == 143
    assert await breaches(platform) == []


async def test_a_former_container_that_turns_up_again_is_removed(
    platform: Platform, node: Node
):
    session = await begin(platform, max_attempts=2)
    (old,) = await containers_of(platform, session)
    await tell(platform, node, session, State.RUNNING)
    await node.report([])
    assert await schedule(platform) == 1
    (new,) = await containers_of(platform, session)

    await node.report([seen(new, State.RUNNING)], unknown=[old])
    wanted = await load_assignments(platform, node.id)
    desired = {c.id: c.desired for c in wanted.containers}
    assert desired == {old: DesiredState.ABSENT, new: DesiredState.RUNNING}


async def test_after_its_last_attempt_on_a_lost_node_it_has_failed(
    platform: Platform, node: Node, clock: Clock
):
    session = await begin(platform, max_attempts=2)
    await tell(platform, node, session, State.RUNNING)
    await node.report([])
    assert await schedule(platform) == 1
    await tell(platform, node, session, State.RUNNING)
    assert await lose(platform, clock, LEASE + MARGIN) == 1

    shown = await read(platform, session)
    assert (shown.status, shown.result) == (SessionStatus.ERROR, SessionResult.FAILURE)
    assert await breaches(platform) == []


async def test_who_waits_for_a_job_waits_through_all_of_its_attempts(
    platform: Platform, node: Node
):
    first = await begin(platform, max_attempts=2, name="first")
    last = await ask(platform, dependencies=["first"])
    await tell(platform, node, first, State.RUNNING)
    await node.report([])
    assert await cancel_dependents(platform) == 0
    assert await schedule(platform) == 1
    await end(platform, node, first)
    assert await schedule(platform) == 1
    assert (await read(platform, last)).status is SessionStatus.SCHEDULED


async def test_what_is_stopped_between_attempts_does_not_start_again(
    platform: Platform, node: Node
):
    session = await begin(platform, max_attempts=5)
    (container,) = await containers_of(platform, session)
    await tell(platform, node, session, State.EXITED, reason="no")
    await stop(platform, session)
    assert (await read(platform, session)).status is SessionStatus.TERMINATING
    await node.report([seen(container, State.GONE)])

    shown = await read(platform, session)
    assert (shown.status, shown.result) == (
        SessionStatus.TERMINATED,
        SessionResult.UNDEFINED,
    )


async def test_a_node_that_never_confirms_holds_the_next_attempt_back(
    platform: Platform, node: Node, clock: Clock
):
    session = await begin(platform, max_attempts=2)
    (container,) = await containers_of(platform, session)
    await tell(platform, node, session, State.EXITED, reason="no")
    clock.pass_(91)
    await node.report([seen(container, State.EXITED, reason="no")])
    assert await end_overdue(platform) == 1

    assert (await read(platform, session)).status is SessionStatus.ERROR


async def test_a_start_that_takes_too_long_is_a_lost_attempt(
    platform: Platform, node: Node, clock: Clock
):
    session = await begin(platform, max_attempts=2)
    clock.pass_(61)
    (container,) = await containers_of(platform, session)
    await node.report([seen(container, State.PREPARING)])
    await tell(platform, node, session, State.PREPARING)
    clock.pass_(121)
    await node.report([seen(container, State.PREPARING)])
    assert await end_overdue(platform) == 1

    assert (await read(platform, session)).status is SessionStatus.RESCHEDULING


async def test_a_jump_of_the_clock_shortens_nobodys_lease(
    platform: Platform, node: Node, clock: Clock
):
    session = await begin(platform, max_attempts=2)
    await tell(platform, node, session, State.RUNNING)
    reconciler = BatchReconciler(platform, Signals())
    await reconciler.reconcile()
    clock.pass_(LEASE + MARGIN + 100)
    await judge_agents(platform, START)
    await reconciler.reconcile()

    assert (await read(platform, session)).status is SessionStatus.RUNNING
    for _ in range(100):
        clock.pass_(3.1)
        await reconciler.reconcile()
    assert (await read(platform, session)).status is SessionStatus.PENDING
