"""How sessions move on what nodes report, on both databases."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from backendai_hub.api.agents import ContainerState as State
from backendai_hub.api.agents import EnrollRequest
from backendai_hub.core.access import Caller
from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    TooManyRequestsError,
)
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.db import agents as agent_rows
from backendai_hub.db import containers, session_lists, session_views
from backendai_hub.db import sessions as rows
from backendai_hub.db.engine import Database
from backendai_hub.db.invariants import find_breaches
from backendai_hub.db.ledger import set_quota
from backendai_hub.operations import sessions as verbs
from backendai_hub.operations.attachments import list_ended_servers
from backendai_hub.operations.deadlines import end_overdue
from backendai_hub.operations.nodes import (
    accept_token,
    enroll_agent,
    judge_agents,
    load_assignments,
    load_routes,
)
from backendai_hub.operations.platform import Platform
from tests.factories import (
    IMAGE,
    Clock,
    add_node,
    list_nodes,
    make_csr,
    make_device,
    make_gpu,
    make_platform,
    prepare,
    principal_of,
    schedule,
    seen,
    start,
    submit,
)


async def read(platform: Platform, session_id: str) -> Session:
    async with platform.database.read() as connection:
        return await session_views.get_session(connection, session_id)


async def container_of(platform: Platform, session: Session) -> str:
    async with platform.database.read() as connection:
        found = await containers.list_containers(connection, session_id=session.id)
    return found[0].id


async def free_cpu(platform: Platform) -> str:
    return (await list_nodes(platform))[0].used.get("cpu", "0")


async def breaches(platform: Platform) -> list[str]:
    async with platform.database.read() as connection:
        return await find_breaches(connection)


async def terminate(platform: Platform, session: Session, *, force: bool = False):
    principal = await principal_of(platform, session.owner, Caller.USER)
    await verbs.terminate_session(platform, principal, session.id, force=force)


async def test_without_a_node_a_session_waits_and_says_so(platform: Platform):
    session = (await submit(platform)).session
    assert await schedule(platform) == 0
    assert "no node has joined" in (await read(platform, session.id)).reason


async def test_what_does_not_fit_now_waits_with_the_shortfall(platform: Platform):
    await add_node(platform)
    await start(platform, server="a", slots={"cpu": 3})
    waiting = (await submit(platform, server="b", slots={"cpu": 2})).session
    await schedule(platform)
    shown = await read(platform, waiting.id)
    assert shown.status is SessionStatus.PENDING
    assert shown.reason == "cpu: asks 2, 1 free on node-1"


async def test_none_of_what_the_image_prefers_is_an_answer_too(platform: Platform):
    preferred = {"cpu": "2", "cuda.device": "1"}
    image = msgspec.structs.replace(IMAGE, name="torch", preferred=preferred)
    await prepare(platform, [image])

    usual = await submit(platform, image="torch")
    without = await submit(
        platform, server="two", image="torch", slots={"cuda.device": "0"}
    )

    assert usual.session.slots["cuda.device"] == "1"
    assert without.session.slots["cpu"] == usual.session.slots["cpu"] == "2"
    assert "cuda.device" not in without.session.slots


async def test_a_waiting_session_starts_when_another_ends(platform: Platform):
    node = await add_node(platform)
    first = await start(platform, server="a", slots={"cpu": 3})
    second = (await submit(platform, server="b", slots={"cpu": 2})).session
    assert await schedule(platform) == 0
    container = await container_of(platform, first)
    await node.report([seen(container, State.EXITED, exit_code=0)])
    assert await schedule(platform) == 1
    assert (await read(platform, second.id)).status is SessionStatus.SCHEDULED


async def test_a_big_request_does_not_block_a_small_one_behind_it(platform: Platform):
    await add_node(platform)
    await start(platform, server="a", slots={"cpu": 2})
    await submit(platform, server="big", slots={"cpu": 4})
    small = (await submit(platform, server="small", slots={"cpu": 1})).session
    assert await schedule(platform) == 1
    assert (await read(platform, small.id)).status is SessionStatus.SCHEDULED


async def test_a_quota_keeps_a_session_waiting_with_its_numbers(database: Database):
    platform = make_platform(database, quotas={"user": {"cpu": 3000}})
    await prepare(platform)
    await add_node(platform)
    await start(platform, server="a", slots={"cpu": 2})
    waiting = (await submit(platform, server="b", slots={"cpu": 2})).session
    await schedule(platform)
    reason = (await read(platform, waiting.id)).reason
    assert reason == "user alice: cpu 2 of 3 in use, asks 2"


async def test_reports_move_a_session_to_running_and_its_route_appears(
    platform: Platform,
):
    node = await add_node(platform)
    session = await start(platform)
    container = await container_of(platform, session)
    before = await load_routes(platform)
    for state, status in (
        (State.PREPARING, SessionStatus.PREPARING),
        (State.PULLING, SessionStatus.PULLING),
        (State.CREATING, SessionStatus.CREATING),
        (State.RUNNING, SessionStatus.RUNNING),
    ):
        await node.report([seen(container, state)])
        shown = await read(platform, session.id)
        assert shown.status is status
        assert bool(shown.reason) is (status is not SessionStatus.RUNNING)
    after = await load_routes(platform)
    assert before.routes == []
    assert after.version > before.version
    assert [(r.prefix, r.container) for r in after.routes] == [
        ("/user/alice/one/", container)
    ]


@pytest.mark.parametrize("repeat", [1, 3])
@pytest.mark.parametrize(
    ("state", "code", "words", "status"),
    [
        (State.EXITED, 137, "out of memory", SessionStatus.ERROR),
        (State.EXITED, 0, "", SessionStatus.TERMINATED),
        (State.EXITED, 3, "", SessionStatus.ERROR),
        (State.GONE, None, "", SessionStatus.TERMINATED),
    ],
)
async def test_a_running_session_ends_with_the_reason_the_node_gives(
    platform: Platform,
    state: State,
    code: int | None,
    words: str,
    status: SessionStatus,
    repeat: int,
):
    node = await add_node(platform)
    session = await start(platform)
    container = await container_of(platform, session)
    await node.report([seen(container, State.RUNNING)])
    for _ in range(repeat):
        await node.report([seen(container, state, exit_code=code, reason=words)])
    shown = await read(platform, session.id)
    assert shown.status is status
    assert shown.exit_code == code
    assert shown.reason
    assert words in shown.reason
    assert await free_cpu(platform) == "0"
    assert await breaches(platform) == []
    assert (await load_routes(platform)).routes == []


async def test_a_start_that_fails_is_an_error_with_its_reason(platform: Platform):
    node = await add_node(platform)
    session = await start(platform)
    container = await container_of(platform, session)
    reason = "could not start: there is no image lab:9"
    await node.report([seen(container, State.EXITED, reason=reason)])
    shown = await read(platform, session.id)
    assert (shown.status, shown.reason) == (SessionStatus.ERROR, reason)
    assert await free_cpu(platform) == "0"


async def test_a_late_report_does_not_wake_the_dead(platform: Platform):
    node = await add_node(platform)
    session = await start(platform)
    container = await container_of(platform, session)
    await node.report([seen(container, State.EXITED, exit_code=1)])
    for state in State:
        await node.report([seen(container, state)])
        assert (await read(platform, session.id)).status is SessionStatus.ERROR
    assert await breaches(platform) == []


async def test_a_running_container_that_is_not_reported_any_more_is_gone(
    platform: Platform,
):
    node = await add_node(platform)
    session = await start(platform)
    container = await container_of(platform, session)
    await node.report([seen(container, State.RUNNING)])
    await node.report([], sequence=1)  # an old report says nothing about now
    await node.report([], generation=0)  # nor one from before it was assigned
    assert (await read(platform, session.id)).status is SessionStatus.RUNNING
    await node.report([])
    shown = await read(platform, session.id)
    assert shown.status is SessionStatus.TERMINATED
    assert "disappeared" in shown.reason


async def test_stopping_frees_the_slots_only_when_the_node_has_stopped_it(
    platform: Platform,
):
    node = await add_node(platform)
    session = await start(platform, slots={"cpu": 2})
    container = await container_of(platform, session)
    await node.report([seen(container, State.RUNNING)])
    await terminate(platform, session)
    assert (await read(platform, session.id)).status is SessionStatus.TERMINATING
    assert await free_cpu(platform) == "2"
    spec = (await load_assignments(platform, node.id)).containers[0]
    assert (spec.id, spec.desired, spec.environ) == (container, "absent", {})
    await node.report([])
    assert (await read(platform, session.id)).status is SessionStatus.TERMINATED
    assert await free_cpu(platform) == "0"
    assert (await load_assignments(platform, node.id)).containers == []


async def test_force_ends_at_once_and_the_node_still_has_to_clean_up(
    platform: Platform,
):
    node = await add_node(platform)
    session = await start(platform)
    container = await container_of(platform, session)
    await node.report([seen(container, State.RUNNING)])
    await terminate(platform, session, force=True)
    assert (await read(platform, session.id)).status is SessionStatus.TERMINATED
    assert await free_cpu(platform) == "0"
    wanted = (await load_assignments(platform, node.id)).containers
    assert [(c.id, c.desired) for c in wanted] == [(container, "absent")]
    await node.report(
        [seen(container, State.RUNNING)]
    )  # still there: still wanted gone
    assert len((await load_assignments(platform, node.id)).containers) == 1
    await node.report([])
    assert (await load_assignments(platform, node.id)).containers == []


async def test_a_leftover_of_an_ended_session_that_turns_up_is_removed(
    platform: Platform,
):
    node = await add_node(platform)
    session = await start(platform)
    container = await container_of(platform, session)
    await node.report([seen(container, State.GONE)])
    assert (await load_assignments(platform, node.id)).containers == []
    await node.report([], unknown=[container, "a-stranger"])
    wanted = (await load_assignments(platform, node.id)).containers
    assert [(c.id, c.desired) for c in wanted] == [(container, "absent")]


async def test_unknown_containers_are_shown_and_never_wanted_gone(platform: Platform):
    node = await add_node(platform)
    await node.report([], unknown=["stranger"])
    assert (await list_nodes(platform))[0].unknown_containers == ["stranger"]
    assert (await load_assignments(platform, node.id)).containers == []


async def test_a_cancelled_session_never_starts(platform: Platform):
    await add_node(platform)
    session = (await submit(platform)).session
    await terminate(platform, session)
    assert await schedule(platform) == 0
    shown = await read(platform, session.id)
    assert shown.status is SessionStatus.CANCELLED
    assert "alice" in shown.reason


async def test_a_state_that_lasts_too_long_ends_with_a_reason(
    database: Database, platform: Platform
):
    clock = database.clock
    assert isinstance(clock, Clock)
    node = await add_node(platform)
    session = await start(platform)
    clock.pass_(61)
    await node.report([])
    assert await end_overdue(platform) == 1
    shown = await read(platform, session.id)
    assert shown.status is SessionStatus.ERROR
    assert "node-1 did not get past this in time" in shown.reason
    assert await free_cpu(platform) == "0"


async def test_a_silent_node_keeps_its_sessions_and_their_slots(
    database: Database, platform: Platform
):
    clock = database.clock
    assert isinstance(clock, Clock)
    began = clock()
    node = await add_node(platform)
    session = await start(platform)
    container = await container_of(platform, session)
    await node.report([seen(container, State.RUNNING)])
    seen_status = []
    for seconds in (14, 2, 25):
        clock.pass_(seconds)
        await judge_agents(platform, began)
        seen_status.append((await list_nodes(platform))[0].status)
    assert seen_status == [AgentStatus.ALIVE, AgentStatus.SUSPECT, AgentStatus.LOST]
    clock.pass_(1000)
    assert await end_overdue(platform) == 0
    assert (await read(platform, session.id)).status is SessionStatus.RUNNING
    assert await free_cpu(platform) != "0"
    waiting = (await submit(platform, server="two")).session
    await schedule(platform)
    assert "does not answer" in (await read(platform, waiting.id)).reason
    await node.report([seen(container, State.RUNNING)])
    assert (await list_nodes(platform))[0].status is AgentStatus.ALIVE
    assert await schedule(platform) == 1


async def test_our_own_stall_is_not_the_nodes_silence(
    database: Database, platform: Platform
):
    clock = database.clock
    assert isinstance(clock, Clock)
    await add_node(platform)
    clock.pass_(600)
    assert await judge_agents(platform, grace_from=clock()) == 0


async def test_devices_are_known_by_their_id_and_never_given_twice(platform: Platform):
    node = await add_node(
        platform, devices=[make_device(), make_gpu("a"), make_gpu("b")]
    )
    first = await start(platform, server="1", slots={"cuda.device": 1})
    node.devices = [make_gpu("b"), make_device(), make_gpu("a")]  # another order
    await node.report([seen(await container_of(platform, first), State.RUNNING)])
    second = await start(platform, server="2", slots={"cuda.device": 1})
    spec = (await load_assignments(platform, node.id)).containers
    given = [s.device for c in spec for s in c.shares if s.slot == "cuda.device"]
    assert sorted(given) == ["a", "b"]
    third = (await submit(platform, server="3", slots={"cuda.device": 1})).session
    assert await schedule(platform) == 0
    assert "cuda.device: asks 1, 0 free" in (await read(platform, third.id)).reason
    assert second.id != first.id


async def test_a_node_that_comes_back_with_fewer_devices_offers_fewer(
    platform: Platform,
):
    node = await add_node(
        platform, devices=[make_device(), make_gpu("a"), make_gpu("b")]
    )
    session = await start(platform, slots={"cuda.device": 2})
    container = await container_of(platform, session)
    node.devices = [make_device(), make_gpu("a")]
    await node.report([seen(container, State.RUNNING)])
    assert await breaches(platform) == []
    await node.report([seen(container, State.EXITED, exit_code=0)])
    agent = (await list_nodes(platform))[0]
    assert agent.capacity["cuda.device"] == "1"
    assert agent.used.get("cuda.device", "0") == "0"


async def test_lowering_a_limit_stops_nothing_and_never_goes_negative(
    platform: Platform,
):
    node = await add_node(platform)
    session = await start(platform, slots={"cpu": 3})
    user = await principal_of(platform, "alice")
    async with platform.database.transaction() as tx:
        await set_quota(tx, ScopeKind.USER, user.id, "cpu", 1000)
    assert await breaches(platform) == []
    container = await container_of(platform, session)
    await node.report([seen(container, State.EXITED, exit_code=0)])
    assert await breaches(platform) == []
    async with platform.database.read() as connection:
        balances = await agent_rows.list_balances(connection, [ScopeKind.USER])
    assert balances[ScopeKind.USER, user.id]["cpu"] == agent_rows.Balance(0, 1000)


async def test_under_many_enqueues_at_once_exactly_the_limit_is_admitted(
    database: Database,
):
    platform = make_platform(
        database, quotas={"user": {"cpu": 17_000}}, max_live_sessions=1000
    )
    await prepare(platform)
    devices = [make_device(slots={"cpu": 50_000, "mem": 1 << 40})]
    await add_node(platform, "n1", devices)
    await add_node(platform, "n2", devices)
    await asyncio.gather(
        *(submit(platform, server=f"s{i}", slots={"cpu": 1}) for i in range(100)),
        *(schedule(platform) for _ in range(5)),
    )
    await asyncio.gather(*(schedule(platform) for _ in range(5)))
    async with database.read() as connection:
        placed = await session_lists.list_records(connection, [SessionStatus.SCHEDULED])
        waiting = await session_lists.list_records(connection, [SessionStatus.PENDING])
    assert (len(placed), len(waiting)) == (17, 83)
    assert await breaches(platform) == []


async def test_a_token_enrols_one_node_and_a_lost_answer_may_be_asked_for_again(
    platform: Platform,
):
    await accept_token(platform, "secret")
    request = EnrollRequest(token="secret", name="n", csr=make_csr(), machine_id="m1")
    first = await enroll_agent(platform, request)
    again = await enroll_agent(platform, request)
    assert first.agent_id == again.agent_id
    other = EnrollRequest(token="secret", name="n", csr=make_csr(), machine_id="m2")
    with pytest.raises(ForbiddenError, match="was used"):
        await enroll_agent(platform, other)


async def test_a_copied_identity_on_a_second_machine_is_refused(platform: Platform):
    node = await add_node(platform)
    report = node.make_report([])
    node.name = "another-machine"
    with pytest.raises(ConflictError, match="its identity was copied"):
        await node.report([])
    assert report.machine_id == "node-1"


async def test_secrets_are_encrypted_and_forgotten_at_the_end(platform: Platform):
    node = await add_node(platform)
    session = await start(platform)
    async with platform.database.read() as connection:
        stored = await rows.get_secrets(connection, [session.id])
    assert b"born-one" not in stored[session.id]
    container = await container_of(platform, session)
    await node.report([seen(container, State.EXITED, exit_code=0)])
    async with platform.database.read() as connection:
        assert await rows.get_secrets(connection, [session.id]) == {}


async def test_many_requests_at_once_are_counted_one_after_the_other(
    database: Database,
):
    platform = make_platform(database, max_live_sessions=3)
    await prepare(platform)
    done = await asyncio.gather(
        *(submit(platform, server=f"s{i}") for i in range(12)), return_exceptions=True
    )
    refused = [d for d in done if isinstance(d, TooManyRequestsError)]
    assert len(done) - len(refused) == 3


async def test_only_our_own_servers_are_taken_away_from_jupyterhub(
    platform: Platform, database: Database
):
    clock = database.clock
    assert isinstance(clock, Clock)
    node = await add_node(platform)
    session = await start(platform)
    container = await container_of(platform, session)
    began = clock()
    clock.pass_(10)
    await node.report([seen(container, State.EXITED, exit_code=0)])
    clock.pass_(10)
    pair = ("alice", "one")
    assert await list_ended_servers(platform, {pair: began}) == [pair]
    assert await list_ended_servers(platform, {pair: clock()}) == []
    assert await list_ended_servers(platform, {("alice", "other"): began}) == []
    await submit(platform)
    assert await list_ended_servers(platform, {pair: began}) == []


async def test_a_node_that_has_not_told_its_devices_yet_refuses_nobody(
    platform: Platform,
):
    """It is taken for alive before its devices are written down."""
    await add_node(platform, devices=[])
    waiting = (await submit(platform, "ada", slots={"cpu": "1"})).session
    assert waiting.status is SessionStatus.PENDING
