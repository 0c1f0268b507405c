"""Sessions end when they were unused for longer than their keypair policy allows."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

import aiohttp
import pytest
from sqlalchemy import text

from backendai_hub.api.agents import ContainerState as State
from backendai_hub.client.jupyterhub import JupyterHubClient
from backendai_hub.core.idleness import UNSEEN
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.db import containers
from backendai_hub.db.engine import Database
from backendai_hub.db.signals import Signals
from backendai_hub.operations import sessions as verbs
from backendai_hub.operations.idleness import end_idle
from backendai_hub.operations.nodes import judge_agents
from backendai_hub.operations.platform import Platform
from backendai_hub.reconcilers.attachments import AttachmentsReconciler
from backendai_hub.reconcilers.deadlines import DeadlinesReconciler
from tests.factories import (
    Clock,
    Node,
    add_node,
    make_platform,
    prepare,
    principal_of,
    schedule,
    seen,
    start,
)
from tests.harness import free_port, running_stack
from tests.integration.spawner_harness import Hub, configure, serving_gateway
from tests.tenants import Office, ask_with_key, breaches, read

HOUR = 3600
LATE = int(UNSEEN.total_seconds())
STEP = 50


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


async def pass_time(
    platform: Platform,
    clock: Clock,
    seconds: int,
    *,
    said: datetime | None = None,
    server: tuple[str, str] = ("alice", "one"),
) -> int:
    """Let JupyterHub say the same all the time; return how many sessions ended."""
    ended = 0
    platform.activity.note({server: said}, now=clock())
    for _ in range(0, seconds, STEP):
        clock.pass_(STEP)
        platform.activity.note({server: said}, now=clock())
        ended += await end_idle(platform)
    return ended


async def show(platform: Platform, session: Session, name: str = "alice") -> Session:
    """Show a session as its owner sees it."""
    principal = await principal_of(platform, name)
    return await verbs.get_session(platform, principal, session.id)


# --- the rule ----------------------------------------------------------------------


async def test_a_session_is_ended_when_it_was_unused_for_longer_than_its_policy_allows(
    platform: Platform,
    office: Office,
    node: Node,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
):
    await office.limit_user("alice", idle_timeout=HOUR)
    session = await run(platform, node)
    used = clock()
    assert await pass_time(platform, clock, HOUR + LATE - STEP, said=used) == 0
    with caplog.at_level(logging.WARNING):
        assert await pass_time(platform, clock, STEP, said=used) == 1
    assert f"session {session.id} of alice is ended: unused for 1 h" in caplog.text
    assert (await read(platform, session)).status is SessionStatus.TERMINATING

    container = await container_of(platform, session)
    await node.report([seen(container, State.EXITED, exit_code=0)])
    ended = await read(platform, session)
    assert (ended.status, ended.reason) == (
        SessionStatus.TERMINATED,
        "unused for 1 h (idle timeout of the keypair policy of-alice)",
    )
    told = await verbs.list_messages(
        platform,
        await principal_of(platform, "alice"),
        after=0,
        session_id=session.id,
    )
    assert any(event.text.startswith("unused for 1 h") for event in told)
    assert await breaches(platform) == []


async def test_a_session_that_is_used_goes_on_and_counts_anew_from_then(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", idle_timeout=HOUR)
    await run(platform, node)
    for _ in range(4):
        used = clock()
        assert await pass_time(platform, clock, HOUR, said=used) == 0
    assert await pass_time(platform, clock, LATE, said=used) == 1


async def test_before_the_first_report_the_time_since_it_runs_counts(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    """As for a session that a program has asked for and nobody ever opened."""
    await office.limit_user("alice", idle_timeout=HOUR)
    key = await office.default_key("alice")
    asked = (await ask_with_key(platform, "alice", key.id, slots={"cpu": 1})).session
    clock.pass_(2 * HOUR)  # in the queue
    assert await schedule(platform) == 1
    await node.report([seen(await container_of(platform, asked), State.RUNNING)])
    session = await read(platform, asked)
    assert session.attachment is not None
    server = ("alice", session.attachment.server)
    assert await pass_time(platform, clock, HOUR, server=server) == 0
    assert await pass_time(platform, clock, LATE, server=server) == 1


async def test_an_idle_timeout_of_0_is_never(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", idle_timeout=0)
    session = await run(platform, node)
    assert await pass_time(platform, clock, 2 * HOUR, said=clock()) == 0
    assert (await show(platform, session)).idle_expires_at is None


@pytest.mark.parametrize("kind", ["batch", "inference", "system"])
async def test_only_interactive_sessions_end_for_want_of_use(
    platform: Platform, office: Office, node: Node, clock: Clock, kind: str
):
    await office.limit_user("alice", idle_timeout=60)
    session = await run(platform, node)
    async with platform.database.transaction() as tx:
        change = text("UPDATE sessions SET type = :kind WHERE id = :id")
        await tx.execute(change.bindparams(kind=kind, id=session.id))
    assert await pass_time(platform, clock, HOUR, said=clock()) == 0
    assert (await show(platform, session)).idle_expires_at is None


async def test_a_change_of_the_policy_counts_at_once_for_what_runs(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", idle_timeout=0)
    session = await run(platform, node)
    used = clock()
    assert await pass_time(platform, clock, HOUR, said=used) == 0
    await office.change("keypair-policy", "of-alice", idle_timeout=2 * HOUR)
    assert await pass_time(platform, clock, STEP, said=used) == 0
    await office.change("keypair-policy", "of-alice", idle_timeout=60)
    assert await pass_time(platform, clock, STEP, said=used) == 1
    reason = (await read(platform, session)).reason
    assert reason.startswith("unused for 1 min (idle timeout")


async def test_the_policy_of_the_keypair_that_started_it_counts(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", idle_timeout=0)
    await office.make("keypair-policy", name="short", idle_timeout=60)
    key = await office.make("keypair", user="alice", resource_policy="short")
    asked = (await ask_with_key(platform, "alice", key.id, slots={"cpu": 1})).session
    assert await schedule(platform) == 1
    await node.report([seen(await container_of(platform, asked), State.RUNNING)])
    session = await read(platform, asked)
    assert session.attachment is not None
    server = ("alice", session.attachment.server)
    assert await pass_time(platform, clock, 60 + LATE, server=server) == 1
    assert "keypair policy short" in (await read(platform, session)).reason


# --- what the site says ------------------------------------------------------------


async def test_minus_1_is_never_unless_the_site_says_otherwise(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", idle_timeout=-1)
    session = await run(platform, node)
    assert await pass_time(platform, clock, 2 * HOUR, said=clock()) == 0
    assert (await show(platform, session)).idle_expires_at is None


async def test_minus_1_is_what_the_site_says(database: Database, clock: Clock):
    platform = make_platform(database, idle_timeout=600)
    await prepare(platform)
    node, office = await add_node(platform), Office(platform)
    await office.limit_user("alice", idle_timeout=-1)
    session = await run(platform, node)
    used = clock()
    assert await pass_time(platform, clock, 600, said=used) == 0
    assert await pass_time(platform, clock, LATE, said=used) == 1
    assert (await read(platform, session)).reason.startswith(
        "unused for 10 min (idle timeout of this site, to which the keypair policy"
        " of-alice leaves it)"
    )


# --- what is not known -------------------------------------------------------------


async def test_of_what_nothing_is_known_nothing_is_ended(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", idle_timeout=60)
    session = await run(platform, node)
    clock.pass_(22 * HOUR)
    assert await end_idle(platform) == 0, "JupyterHub has never answered"
    other = ("alice", "two")
    assert await pass_time(platform, clock, HOUR, server=other) == 0, "not named"
    platform.activity.note({("alice", "one"): None}, now=clock())
    assert await end_idle(platform) == 0, "only seen once"
    assert (await show(platform, session)).idle_expires_at is not None
    clock.pass_(HOUR)
    assert await end_idle(platform) == 0, "not looked at any more"
    assert (await show(platform, session)).idle_expires_at is None


async def test_a_hub_that_does_not_answer_ends_nothing_also_when_it_is_back(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", idle_timeout=HOUR)
    await run(platform, node)
    used = clock()
    assert await pass_time(platform, clock, HOUR, said=used) == 0
    silent = JupyterHubClient(f"http://127.0.0.1:{free_port(set())}/hub/api", "x")
    looking = AttachmentsReconciler(platform, Signals(), silent)
    ending = DeadlinesReconciler(platform, Signals())
    for _ in range(20):
        clock.pass_(STEP)
        await looking.reconcile()
        assert await ending.reconcile() == 0
    await looking.close()
    assert await pass_time(platform, clock, LATE - STEP, said=used) == 0
    assert await pass_time(platform, clock, STEP, said=used) == 1


async def test_a_session_that_ends_or_waits_is_left_alone(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", idle_timeout=60)
    session = await start(platform)
    assert await pass_time(platform, clock, HOUR, said=clock()) == 0
    await node.report([seen(await container_of(platform, session), State.RUNNING)])
    principal = await principal_of(platform, "alice")
    await verbs.terminate_session(platform, principal, session.id)
    assert await pass_time(platform, clock, HOUR, said=clock()) == 0
    assert "stopped by alice" in (await read(platform, session)).reason


# --- what people see ---------------------------------------------------------------


async def test_a_session_shows_when_it_ends_unless_it_is_used(
    platform: Platform, office: Office, node: Node, clock: Clock
):
    await office.limit_user("alice", idle_timeout=HOUR)
    session = await run(platform, node)
    assert (await show(platform, session)).idle_expires_at is None, "not known yet"
    await pass_time(platform, clock, 600, said=clock())
    before = await show(platform, session)
    assert before.idle_expires_at == "2026-01-01T01:02:30.000Z"
    await pass_time(platform, clock, STEP, said=clock())
    after = await show(platform, session)
    assert after.idle_expires_at == "2026-01-01T01:12:30.000Z"
    assert after.revision == session.revision, "being used is no change of it"


# --- with a real JupyterHub --------------------------------------------------------


@pytest.fixture
async def hub(hub_app, tmp_path, monkeypatch) -> AsyncIterator[Hub]:
    """A JupyterHub that spawns with us, where alice's server "one" runs."""
    monkeypatch.chdir(tmp_path)
    async with AsyncExitStack() as world:
        stack = await world.enter_async_context(running_stack(tmp_path / "data"))
        await world.enter_async_context(serving_gateway(stack.gateway_port))
        http = await world.enter_async_context(aiohttp.ClientSession())
        found = Hub(await hub_app(config=configure(stack)), stack, http)
        world.push_async_callback(found.forget)
        await found.start("alice", "one")
        await found.until_ready("alice", "one")
        yield found


async def report_use(hub: Hub, moment: datetime) -> None:
    """Tell JupyterHub of a use, as the session's server does with its own token."""
    token = hub.spawner("alice", "one").api_token
    said = moment.isoformat()
    async with hub.http.post(
        f"{hub.url}api/users/alice/activity",
        json={"servers": {"one": {"last_activity": said}}, "last_activity": said},
        headers={"Authorization": f"token {token}"},
    ) as response:
        assert response.status == 200, await response.text()


@dataclass
class Watched:
    """A running session, and everybody who keeps an eye on it."""

    platform: Platform
    clock: Clock
    node: Node
    session: Session
    looking: AttachmentsReconciler

    async def watch(self, seconds: int, *, silent: bool = False) -> int:
        """Let time pass, with a node that reports or is silent; count what ends."""
        began = self.clock()
        ending = DeadlinesReconciler(self.platform, Signals())
        container = await container_of(self.platform, self.session)
        ended = 0
        for _ in range(0, seconds, STEP):
            self.clock.pass_(STEP)
            if silent:
                await judge_agents(self.platform, began)
            else:
                await self.node.report([seen(container, State.RUNNING)])
            await self.looking.reconcile()
            ended += await ending.reconcile()
        return ended


@pytest.fixture
async def watched(
    platform: Platform, office: Office, node: Node, clock: Clock, hub: Hub
) -> AsyncIterator[Watched]:
    """Alice's session, which may be unused for five minutes, from now on."""
    clock.now = datetime.now(UTC)
    await office.limit_user("alice", idle_timeout=300)
    session = await run(platform, node)
    client = JupyterHubClient(f"{hub.url}api", hub.stack.token("service"))
    looking = AttachmentsReconciler(platform, Signals(), client)
    yield Watched(platform, clock, node, session, looking)
    await looking.close()


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_what_a_server_tells_jupyterhub_is_what_counts(
    watched: Watched, hub: Hub
):
    assert await watched.watch(300) == 0
    await report_use(hub, watched.clock())
    assert await watched.watch(300) == 0
    assert await watched.watch(LATE + STEP) == 1
    ended = await read(watched.platform, watched.session)
    assert ended.reason.startswith("unused for 5 min")


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_while_its_node_is_silent_nobody_knows_whether_a_session_is_used(
    watched: Watched,
):
    assert await watched.watch(STEP) == 0
    assert await watched.watch(500, silent=True) == 0
    assert await watched.watch(LATE) == 0, "its server may have much to tell"
    assert await watched.watch(STEP) == 1


async def test_a_server_is_told_to_report_its_use_every_minute(hub: Hub):
    environ = hub.spawner("alice", "one").get_env()
    assert environ["JUPYTERHUB_ACTIVITY_INTERVAL"] == "60"
