"""What policies and groups say about time: lifetimes, pending timeouts, used keys."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from backendai_hub.api.agents import ContainerState as State
from backendai_hub.core.access import Caller
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.db import containers
from backendai_hub.db.engine import Database
from backendai_hub.db.signals import Signals
from backendai_hub.db.tables import KeypairRow
from backendai_hub.operations.deadlines import end_expired, end_overdue
from backendai_hub.operations.keypairs import find_login
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_verbs import (
    HoldRequest,
    hold_session,
    release_session,
)
from backendai_hub.reconcilers.deadlines import DeadlinesReconciler
from backendai_hub.reconcilers.keys import KeysReconciler
from tests.admin import admin_api, opened_database
from tests.factories import (
    Clock,
    Node,
    add_node,
    principal_of,
    schedule,
    seen,
    start,
    submit,
)
from tests.harness import Stack
from tests.tenants import Office, ask_with_key, breaches, read

HOUR = 3600


@pytest.fixture
async def office(platform: Platform) -> Office:
    return Office(platform)


@pytest.fixture
async def node(platform: Platform) -> Node:
    return await add_node(platform)


@pytest.fixture
def clock(database: Database) -> Clock:
    assert isinstance(database.clock, Clock)
    return database.clock


async def container_of(platform: Platform, session: Session) -> str:
    async with platform.database.read() as connection:
        found = await containers.list_containers(connection, session_id=session.id)
    return found[0].id


async def run(platform: Platform, node: Node, name: str = "alice", **request: object):
    """Have a session running."""
    session = await start(platform, name, **request)
    await node.report([seen(await container_of(platform, session), State.RUNNING)])
    return await read(platform, session)


# --- lifetime ----------------------------------------------------------------------


async def test_a_session_is_ended_when_it_has_run_as_long_as_its_policy_allows(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", max_session_lifetime=HOUR)
    session = await run(platform, node)
    clock.pass_(HOUR - 1)
    assert await end_expired(platform) == 0
    clock.pass_(1)
    assert await end_expired(platform) == 1
    ending = await read(platform, session)
    assert ending.status is SessionStatus.TERMINATING

    container = await container_of(platform, session)
    await node.report([seen(container, State.EXITED, exit_code=0)])
    ended = await read(platform, session)
    assert (ended.status, ended.reason) == (
        SessionStatus.TERMINATED,
        "reached the longest lifetime of 1 h that the keypair policy of-alice allows",
    )
    assert await breaches(platform) == []


async def test_a_running_session_shows_when_it_will_be_ended(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user("alice", max_session_lifetime=HOUR)
    session = await run(platform, node)
    await end_expired(platform)
    shown = await read(platform, session)
    assert shown.started_at == "2026-01-01T00:00:00.000Z"
    assert shown.deadline_at == "2026-01-01T01:00:00.000Z"
    await end_expired(platform)
    assert (await read(platform, session)).revision == shown.revision, "told once"


async def test_a_lifetime_of_0_is_no_end(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", max_session_lifetime=0)
    session = await run(platform, node)
    clock.pass_(1000 * 24 * HOUR)
    assert await end_expired(platform) == 0
    assert (await read(platform, session)).deadline_at is None


async def test_time_in_the_queue_is_not_lifetime(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", max_session_lifetime=HOUR)
    await submit(platform, slots={"cpu": 1})
    clock.pass_(2 * HOUR)
    assert await end_expired(platform) == 0
    assert await schedule(platform) == 1


async def test_a_change_of_the_policy_counts_at_once_for_what_runs(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", max_session_lifetime=HOUR)
    session = await run(platform, node)
    await end_expired(platform)
    await office.change("keypair-policy", "of-alice", max_session_lifetime=3 * HOUR)
    clock.pass_(2 * HOUR)
    assert await end_expired(platform) == 0
    assert (await read(platform, session)).deadline_at == "2026-01-01T03:00:00.000Z"

    await office.change("keypair-policy", "of-alice", max_session_lifetime=0)
    assert await end_expired(platform) == 0
    assert (await read(platform, session)).deadline_at is None

    await office.change("keypair-policy", "of-alice", max_session_lifetime=60)
    assert await end_expired(platform) == 1


async def test_the_policy_of_the_keypair_that_started_it_counts(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", max_session_lifetime=0)
    await office.make("keypair-policy", name="short", max_session_lifetime=60)
    key = await office.make("keypair", user="alice", resource_policy="short")
    session = (await ask_with_key(platform, "alice", key.id, slots={"cpu": 1})).session
    own = (await submit(platform, slots={"cpu": 1})).session
    assert await schedule(platform) == 2
    await node.report(
        [seen(await container_of(platform, s), State.RUNNING) for s in (session, own)]
    )
    clock.pass_(60)
    assert await end_expired(platform) == 1
    reason = (await read(platform, session)).reason
    assert "lifetime of 1 min that the keypair policy short allows" in reason


async def test_when_that_keypair_is_gone_its_owners_default_one_counts(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", max_session_lifetime=HOUR)
    await office.make("keypair-policy", name="short", max_session_lifetime=60)
    key = await office.make("keypair", user="alice", resource_policy="short")
    session = (await ask_with_key(platform, "alice", key.id, slots={"cpu": 1})).session
    assert await schedule(platform) == 1
    await node.report([seen(await container_of(platform, session), State.RUNNING)])
    await office.purge("keypair", key.name)
    clock.pass_(61)
    assert await end_expired(platform) == 0
    clock.pass_(HOUR)
    assert await end_expired(platform) == 1
    assert "keypair policy of-alice" in (await read(platform, session)).reason


async def test_a_running_sessions_deadline_is_not_an_error_of_its_node(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", max_session_lifetime=HOUR)
    session = await run(platform, node)
    await end_expired(platform)
    clock.pass_(2 * HOUR)
    assert await end_overdue(platform) == 0
    assert (await read(platform, session)).status is SessionStatus.RUNNING


# --- pending timeout ---------------------------------------------------------------


async def test_what_waits_longer_than_its_groups_timeout_is_cancelled(
    platform: Platform, office: Office, clock: Clock
):
    await office.change(
        "resource-group", "default", scheduler_opts={"pending_timeout": 90}
    )
    session = (await submit(platform)).session
    await end_expired(platform)
    assert (await read(platform, session)).deadline_at == "2026-01-01T00:01:30.000Z"
    clock.pass_(89)
    assert await end_expired(platform) == 0
    clock.pass_(1)
    assert await end_expired(platform) == 1
    cancelled = await read(platform, session)
    assert (cancelled.status, cancelled.reason) == (
        SessionStatus.CANCELLED,
        "waited longer than 1 min 30 s, the pending timeout of the resource group"
        " default",
    )


async def test_the_time_it_is_held_is_no_waiting(
    platform: Platform, office: Office, clock: Clock
):
    await office.change(
        "resource-group", "default", scheduler_opts={"pending_timeout": 90}
    )
    session = (await submit(platform)).session
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    clock.pass_(30)
    await hold_session(platform, root, session.id, HoldRequest(reason="later"))
    clock.pass_(10)
    await hold_session(platform, root, session.id, HoldRequest(reason="much later"))
    clock.pass_(HOUR)
    assert await end_expired(platform) == 0
    assert (await read(platform, session)).deadline_at is None
    await release_session(platform, root, session.id)
    clock.pass_(59)
    assert await end_expired(platform) == 0
    assert (await read(platform, session)).deadline_at == "2026-01-01T01:01:40.000Z"
    clock.pass_(1)
    assert await end_expired(platform) == 1


async def test_without_a_pending_timeout_a_queue_may_be_as_long_as_it_takes(
    platform: Platform, office: Office, clock: Clock
):
    session = (await submit(platform)).session
    clock.pass_(1000 * 24 * HOUR)
    assert await end_expired(platform) == 0
    assert (await read(platform, session)).deadline_at is None


async def test_what_has_started_is_not_cancelled_and_shows_no_such_deadline(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.change(
        "resource-group", "default", scheduler_opts={"pending_timeout": 60}
    )
    waiting = (await submit(platform)).session
    await end_expired(platform)
    assert await schedule(platform) == 1
    await node.report([seen(await container_of(platform, waiting), State.RUNNING)])
    clock.pass_(HOUR)
    assert await end_expired(platform) == 0
    assert (await read(platform, waiting)).deadline_at is None


async def test_a_timeout_taken_back_lets_the_queue_wait_again(
    platform: Platform, office: Office, clock: Clock
):
    await office.change(
        "resource-group", "default", scheduler_opts={"pending_timeout": 60}
    )
    session = (await submit(platform)).session
    await end_expired(platform)
    await office.change("resource-group", "default", scheduler_opts={})
    clock.pass_(HOUR)
    assert await end_expired(platform) == 0
    shown = await read(platform, session)
    assert (shown.status, shown.deadline_at) == (SessionStatus.PENDING, None)


async def test_both_kinds_of_deadlines_are_kept_by_one_reconciler(
    platform: Platform, office: Office, clock: Clock
):
    await office.change(
        "resource-group", "default", scheduler_opts={"pending_timeout": 60}
    )
    await submit(platform)
    late = (await submit(platform, "bob")).session
    await add_node(platform)
    assert await schedule(platform) == 2
    await submit(platform, "carol")
    clock.pass_(61)
    assert await DeadlinesReconciler(platform, Signals()).reconcile() == 3
    assert (await read(platform, late)).status is SessionStatus.ERROR
    assert await breaches(platform) == []


# --- uses of keypairs --------------------------------------------------------------


async def test_uses_of_keypairs_are_written_down_in_one_go(
    platform: Platform, office: Office, clock: Clock
):
    await office.limit_user("alice")
    first = await office.make("keypair", user="alice")
    second = await office.make("keypair", user="alice")
    for _ in range(3):
        platform.key_uses.note(first.id, clock())
    clock.pass_(5)
    platform.key_uses.note(first.id, clock())
    platform.key_uses.note(second.id, clock())
    reconciler = KeysReconciler(platform, Signals())
    assert await reconciler.reconcile() == 2
    assert await reconciler.reconcile() == 0
    shown = await office.read("keypair", first.name)
    assert (shown.num_queries, shown.last_used_at) == (4, "2026-01-01T00:00:05.000Z")
    assert shown.revision == first.revision, "being used is no change of it"
    assert (await office.read("keypair", second.name)).num_queries == 1


async def test_what_came_in_last_is_written_when_the_service_stops(
    platform: Platform, office: Office, clock: Clock
):
    await office.limit_user("alice")
    key = await office.make("keypair", user="alice")
    platform.key_uses.note(key.id, clock())
    await KeysReconciler(platform, Signals()).close()
    assert (await office.read("keypair", key.name)).num_queries == 1


async def test_uses_of_a_keypair_that_is_gone_hurt_nobody(
    platform: Platform, office: Office, clock: Clock
):
    await office.limit_user("alice")
    key = await office.make("keypair", user="alice")
    platform.key_uses.note(key.id, clock())
    await office.purge("keypair", key.name)
    assert await KeysReconciler(platform, Signals()).reconcile() == 1
    assert await find_login(platform, key.name, key.secret) is None


async def test_what_cannot_be_written_now_is_kept_for_later(
    platform: Platform, office: Office, clock: Clock
):
    await office.limit_user("alice")
    key = await office.make("keypair", user="alice")
    platform.key_uses.note(key.id, clock())
    uses = platform.key_uses.take()
    platform.key_uses.note(key.id, clock())
    platform.key_uses.put_back(uses)
    await KeysReconciler(platform, Signals()).reconcile()
    assert (await office.read("keypair", key.name)).num_queries == 2


async def test_a_service_counts_what_its_keys_are_used_for(hub_service: Stack):
    async with admin_api(hub_service) as admin:
        for _ in range(7):
            await admin.get("api/me")
        hub_service.stop()
        used = select(KeypairRow.num_queries, KeypairRow.last_used_at).where(
            KeypairRow.name == admin.access_key
        )
        async with (
            opened_database(hub_service) as database,
            database.read() as connection,
        ):
            count, last = (await connection.execute(used)).one()
    assert count == 7
    assert abs((datetime.now(UTC) - last).total_seconds()) < 600
