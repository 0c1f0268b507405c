"""What nodes measure is kept for some minutes, and shown to who may see the session."""

from __future__ import annotations

import msgspec
import pytest

from backendai_hub.api.agents import ContainerState as State
from backendai_hub.core.access import USER_SCOPES, Caller, Principal
from backendai_hub.core.errors import (
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
)
from backendai_hub.core.live_usage import FRESH_SECONDS, SessionUsage, UsageTotals
from backendai_hub.core.measures import DeviceSample, Measures, Sample
from backendai_hub.core.sessions import Session
from backendai_hub.core.tenancy import Role
from backendai_hub.core.usage_keeper import KEPT_SECONDS, SAMPLES, UsageKeeper
from backendai_hub.db import containers
from backendai_hub.db.container_usage import load_totals
from backendai_hub.db.purges import purge_sessions
from backendai_hub.db.tables import SessionRow
from backendai_hub.operations.live_usage import (
    MOST_NAMED,
    LiveUsageQuery,
    SessionUsageQuery,
    accept_measures,
    read_live,
    read_usage,
    write_down,
)
from backendai_hub.operations.platform import Platform
from tests.crews import Crew
from tests.factories import (
    GIB,
    Clock,
    Node,
    add_node,
    list_nodes,
    make_device,
    make_gpu,
    principal_of,
    schedule,
    seen,
    start,
    submit,
)
from tests.tenants import Office

EVERYBODYS = LiveUsageQuery(owner="*")
MINE = LiveUsageQuery()


@pytest.fixture
async def node(platform: Platform) -> Node:
    return await add_node(platform, devices=[make_device(), make_gpu("GPU-1")])


@pytest.fixture
def clock(platform: Platform) -> Clock:
    clock = platform.database.clock
    assert isinstance(clock, Clock)
    return clock


async def run(platform: Platform, node: Node, name: str, **changes: object) -> Session:
    session = await start(platform, name, **changes)
    async with platform.database.read() as connection:
        all_of_them = await containers.list_containers(connection, agent_id=node.id)
    await node.report([seen(c.id, State.RUNNING) for c in all_of_them])
    return session


async def main_of(platform: Platform, session: Session) -> str:
    async with platform.database.read() as connection:
        members = await containers.list_members(connection, session.id)
    return members[0].id


async def tell(platform: Platform, node: Node, *samples: Sample) -> None:
    measures = Measures(containers=list(samples))
    await accept_measures(platform, node.id, measures)


async def read(
    platform: Platform, session: Session, since: float = 0.0
) -> SessionUsage:
    alice = await principal_of(platform, session.owner, Caller.USER)
    query = SessionUsageQuery(since=since)
    return await read_usage(platform, alice, session.id, query)


async def test_what_a_node_measures_of_a_session_is_shown_with_its_limits(
    platform: Platform, node: Node, clock: Clock
):
    session = await run(platform, node, "alice", slots={"cpu": 2, "mem": "1g"})
    main = await main_of(platform, session)

    for second in range(3):
        await tell(
            platform,
            node,
            Sample(id=main, cpu=0.5 * second, memory=100 * second, cpu_seconds=second),
        )
        clock.pass_(5)

    shown = await read(platform, session)
    assert shown.now is not None
    assert (shown.now.cpu, shown.now.cpu_limit) == (1.0, 2.0)
    assert (shown.now.memory, shown.now.memory_limit) == (200, GIB)
    assert shown.series.cpu == [0.0, 0.5, 1.0]
    assert shown.series.memory == [0.0, 100.0, 200.0]
    assert shown.totals is not None
    assert (shown.totals.cpu_seconds, shown.totals.memory_peak) == (2, 200)
    later = await read(platform, session, since=shown.series.time[0])
    assert later.series.cpu == [0.5, 1.0]


async def test_what_was_not_measured_is_missing_and_never_nothing(
    platform: Platform, node: Node
):
    session = await run(platform, node, "alice")
    main = await main_of(platform, session)

    await tell(platform, node, Sample(id=main, cpu=0.0))
    await tell(platform, node, Sample(id=main))

    shown = await read(platform, session)
    assert shown.series.cpu == [0.0, None]
    assert shown.series.memory == [], "nothing of the kind was measured"
    assert shown.now is not None
    assert shown.now.cpu is None
    assert (shown.now.utilization, shown.now.device_memory) == (None, None)


async def test_what_was_measured_long_ago_says_nothing_of_now(
    platform: Platform, node: Node, clock: Clock
):
    session = await run(platform, node, "alice")
    await tell(platform, node, Sample(id=await main_of(platform, session), cpu=1.0))

    clock.pass_(FRESH_SECONDS + 1)

    shown = await read(platform, session)
    assert shown.now is None
    assert shown.series.cpu == [1.0]
    alice = await principal_of(platform, "alice", Caller.USER)
    assert read_live(platform, alice, MINE).items == []


async def test_a_node_is_not_believed_of_containers_of_other_nodes(
    platform: Platform, node: Node
):
    session = await run(platform, node, "alice")
    main = await main_of(platform, session)
    liar = await add_node(platform, "liar")

    await tell(platform, liar, Sample(id=main, cpu=99.0))
    assert (await read(platform, session)).series.cpu == []
    await tell(platform, node, Sample(id=main, cpu=1.0))
    await tell(platform, liar, Sample(id=main, cpu=99.0))

    assert (await read(platform, session)).series.cpu == [1.0]


async def test_a_device_counts_for_who_holds_it_alone(platform: Platform, node: Node):
    slots = {"cpu": 1, "cuda.device": 1}
    session = await run(platform, node, "alice", slots=slots)
    other = await run(platform, node, "bob", server="two")
    busy = DeviceSample(device="GPU-1", utilization=0.5, memory=7, memory_limit=10)

    for each in (session, other):
        main = await main_of(platform, each)
        await tell(platform, node, Sample(id=main, cpu=1.0, devices=[busy]))

    shown, others = await read(platform, session), await read(platform, other)
    assert shown.now is not None
    assert others.now is not None
    assert [d.name for d in shown.now.devices] == ["GPU-1"]
    assert (shown.now.utilization, shown.now.device_memory) == (0.5, 7)
    assert [d.utilization for d in shown.devices] == [[0.5]]
    assert (others.now.devices, others.now.utilization) == ([], None)


async def test_devices_count_the_seconds_they_were_busy(
    platform: Platform, node: Node, clock: Clock
):
    slots = {"cpu": 1, "cuda.device": 1}
    session = await run(platform, node, "alice", slots=slots)
    main = await main_of(platform, session)
    half = DeviceSample(device="GPU-1", utilization=0.5)

    for pause in (0, 4, 4, 60):
        clock.pass_(pause)
        await tell(platform, node, Sample(id=main, devices=[half]))

    totals = (await read(platform, session)).totals
    assert totals is not None
    assert totals.device_seconds == 4.0, "half of twice four; of a minute nobody knows"


async def test_sums_go_on_when_an_agent_begins_to_count_anew(
    platform: Platform, node: Node
):
    session = await run(platform, node, "alice")
    main = await main_of(platform, session)

    for told in (100, 150, 20, 30):
        await tell(platform, node, Sample(id=main, read_bytes=told))

    shown = await read(platform, session)
    assert shown.totals is not None
    assert shown.totals.read_bytes == 160
    assert shown.now is not None
    assert shown.now.read_bytes == 160


async def test_a_session_of_several_containers_is_told_as_a_whole_and_one_by_one(
    platform: Platform, node: Node
):
    await Office(platform).limit_user("alice", max_containers_per_session=0)
    slots = {"cpu": 1, "mem": "1g"}
    session = (await submit(platform, cluster_size=2, slots=slots)).session
    assert await schedule(platform) == 1
    crew = Crew(platform, [node], session)
    await crew.all_are(State.RUNNING)
    members = await crew.members()

    await tell(
        platform,
        node,
        Sample(id=members["main1"].id, cpu=0.5, memory=100),
        Sample(id=members["sub1"].id, cpu=0.25, memory=50),
    )

    shown = await read(platform, session)
    assert shown.now is not None
    assert (shown.now.cpu, shown.now.cpu_limit, shown.now.memory) == (0.75, 2.0, 150)
    assert shown.series.cpu == [0.75]
    assert [(c.host, c.node) for c in shown.containers] == [
        ("main1", "node-1"),
        ("sub1", "node-1"),
    ]
    assert [c.series.cpu for c in shown.containers] == [[0.5], [0.25]]


async def test_who_may_not_see_a_session_does_not_see_what_it_uses(
    platform: Platform, node: Node
):
    hers = await run(platform, node, "alice")
    his = await run(platform, node, "bob", server="two")
    for session in (hers, his):
        main = await main_of(platform, session)
        await tell(platform, node, Sample(id=main, cpu=1.0))
    bob = await principal_of(platform, "bob", Caller.USER)
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    named = LiveUsageQuery(sessions=f"{hers.id},{his.id},nonsense")

    def see(principal: Principal, query: LiveUsageQuery) -> set[str]:
        return {item.session_id for item in read_live(platform, principal, query).items}

    with pytest.raises(NotFoundError):
        await read_usage(platform, bob, hers.id, SessionUsageQuery())
    assert see(bob, MINE) == see(bob, EVERYBODYS) == see(bob, named) == {his.id}
    assert see(root, EVERYBODYS) == see(root, named) == {hers.id, his.id}
    assert see(root, MINE) == set()
    many = ",".join(map(str, range(MOST_NAMED + 1)))
    with pytest.raises(MalformedRequestError, match="at most 200"):
        see(root, LiveUsageQuery(sessions=many))
    with pytest.raises(MalformedRequestError):
        see(root, LiveUsageQuery(owner="alice"))


async def test_an_administrator_of_a_domain_sees_that_domain(
    platform: Platform, node: Node
):
    hers = await run(platform, node, "alice")
    await tell(platform, node, Sample(id=await main_of(platform, hers), cpu=1.0))
    ada = await principal_of(platform, "ada", Caller.DOMAIN_ADMIN)
    elsewhere = msgspec.structs.replace(ada, domain_id="another", holds=frozenset())
    modest = msgspec.structs.replace(ada, scopes=USER_SCOPES, role=Role.DOMAIN_ADMIN)

    def see(principal: Principal) -> list[str]:
        found = read_live(platform, principal, EVERYBODYS).items
        return [item.session_id for item in found]

    assert see(ada) == [hers.id]
    assert see(elsewhere) == []
    assert see(modest) == []


async def test_nodes_are_shown_to_who_may_see_nodes(platform: Platform, node: Node):
    whole = Sample(cpu=3.5, cpu_limit=8.0, memory=5, memory_limit=10)
    await accept_measures(platform, node.id, Measures(node=whole))
    alice = await principal_of(platform, "alice", Caller.USER)
    root = await principal_of(platform, "root", Caller.SUPERADMIN)

    [agent] = await list_nodes(platform)
    assert agent.usage is not None
    assert (agent.usage.cpu, agent.usage.cpu_limit) == (3.5, 8.0)
    [shown] = read_live(platform, root, EVERYBODYS).nodes
    assert (shown.name, shown.memory, shown.memory_limit) == ("node-1", 5, 10)
    assert read_live(platform, root, MINE).nodes == []
    assert read_live(platform, alice, EVERYBODYS).nodes == []


async def test_who_follows_is_told_what_is_new_only(platform: Platform, node: Node):
    hers = await run(platform, node, "alice")
    his = await run(platform, node, "bob", server="two")
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    keeper = platform.usage.keeper
    await tell(platform, node, Sample(id=await main_of(platform, hers), cpu=1.0))
    known = keeper.number
    await tell(platform, node, Sample(id=await main_of(platform, his), cpu=2.0))

    news = read_live(platform, root, EVERYBODYS, after=known).items

    assert [item.session_id for item in news] == [his.id]
    assert read_live(platform, root, EVERYBODYS, after=keeper.number).items == []


async def test_only_so_much_is_kept(platform: Platform, node: Node, clock: Clock):
    session = await run(platform, node, "alice")
    main = await main_of(platform, session)

    for number in range(SAMPLES + 20):
        await tell(platform, node, Sample(id=main, cpu=float(number)))
        clock.pass_(1)

    shown = await read(platform, session)
    assert len(shown.series.time) == SAMPLES
    assert shown.series.cpu[-1] == SAMPLES + 19
    assert shown.series.time == sorted(shown.series.time)
    clock.pass_(KEPT_SECONDS)
    platform.usage.keeper.forget_old(clock().timestamp())
    assert (await read(platform, session)).series.cpu == []


async def test_sessions_not_heard_of_for_longest_make_room(
    platform: Platform, node: Node
):
    platform.usage.keeper = UsageKeeper(most=1)
    hers = await run(platform, node, "alice")
    his = await run(platform, node, "bob", server="two")

    for session in (hers, his):
        main = await main_of(platform, session)
        await tell(platform, node, Sample(id=main, cpu=1.0))

    assert (await read(platform, hers)).series.cpu == []
    assert (await read(platform, his)).series.cpu == [1.0]


@pytest.mark.parametrize(
    "sample",
    [
        Sample(cpu=-1.0),
        Sample(memory=1 << 61),
        Sample(id="x" * 129),
        Sample(cpu=float("inf")),
        Sample(devices=[DeviceSample(device="g", utilization=1.5)]),
        Sample(devices=[DeviceSample(device="x" * 129)]),
        Sample(devices=[DeviceSample(device=str(n)) for n in range(65)]),
    ],
)
async def test_what_nobody_can_have_measured_is_refused(
    platform: Platform, node: Node, sample: Sample
):
    with pytest.raises(InvalidRequestError):
        await tell(platform, node, sample)


async def test_containers_nobody_knows_are_looked_up_once_in_a_while(
    platform: Platform, node: Node, clock: Clock
):
    strange = Sample(id="0190a0e0-0000-7000-8000-00000000beef", cpu=1.0)
    await tell(platform, node, strange, Sample(id="no id at all", cpu=1.0))
    book, now = platform.usage, clock().timestamp()

    assert book.choose_unknown(node.id, [strange.id], now + 10) == []
    clock.pass_(31)
    assert book.choose_unknown(node.id, [strange.id], clock().timestamp())
    assert book.keeper.number == 0


async def test_what_a_session_has_used_stays_when_it_has_ended(
    platform: Platform, node: Node, clock: Clock
):
    session = await run(platform, node, "alice")
    main = await main_of(platform, session)
    for seconds, memory in ((1.0, 300), (7.5, 200)):
        sample = Sample(id=main, cpu_seconds=seconds, memory=memory, read_bytes=None)
        await tell(platform, node, sample)

    assert await write_down(platform) == 0, "it is measured still"
    clock.pass_(FRESH_SECONDS + 1)
    assert await write_down(platform) == 1
    assert await write_down(platform) == 0, "and nothing is written twice"
    clock.pass_(KEPT_SECONDS)
    await write_down(platform)

    shown = await read(platform, session)
    assert shown.series.time == []
    assert shown.totals == UsageTotals(cpu_seconds=7.5, memory_peak=300)


async def test_a_service_that_begins_anew_goes_on_with_the_sums(
    platform: Platform, node: Node
):
    session = await run(platform, node, "alice")
    main = await main_of(platform, session)
    await tell(platform, node, Sample(id=main, cpu_seconds=5.0, memory=300))
    assert await write_down(platform, also_running=True) == 1

    platform.usage.keeper = UsageKeeper()
    await tell(platform, node, Sample(id=main, cpu_seconds=6.0, memory=100))

    totals = (await read(platform, session)).totals
    assert totals is not None
    assert (totals.cpu_seconds, totals.memory_peak) == (6.0, 300)
    assert await write_down(platform, also_running=True) == 1


async def test_what_is_written_of_somebody_goes_with_them(
    platform: Platform, node: Node, clock: Clock
):
    session = await run(platform, node, "alice")
    main = await main_of(platform, session)
    await tell(platform, node, Sample(id=main, memory=3))
    await write_down(platform, also_running=True)
    await tell(platform, node, Sample(id=main, memory=4))
    async with platform.database.transaction() as tx:
        await purge_sessions(tx, SessionRow.id == session.id)

    await write_down(platform, also_running=True)

    async with platform.database.read() as connection:
        assert await load_totals(connection, session_id=session.id) == {}


async def test_no_sum_grows_beyond_what_a_database_takes(
    platform: Platform, node: Node, clock: Clock
):
    session = await run(platform, node, "alice")
    main = await main_of(platform, session)
    for _ in range(8):
        for told in (0, 1 << 60):
            await tell(platform, node, Sample(id=main, sent_bytes=told))
    clock.pass_(FRESH_SECONDS + 1)

    assert await write_down(platform) == 1
