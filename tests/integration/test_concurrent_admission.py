"""However many ask at once, exactly what the limits allow is admitted."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import text

from backendai_hub.api.agents import ContainerState as State
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import HubError
from backendai_hub.core.sessions import OCCUPYING, SessionStatus
from backendai_hub.db import containers, session_lists, session_views
from backendai_hub.db import sessions as rows
from backendai_hub.db.engine import Database
from backendai_hub.db.invariants import find_breaches
from backendai_hub.operations import sessions as verbs
from backendai_hub.operations.deadlines import end_expired
from backendai_hub.operations.placement import apply_plan
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import Plan
from tests.admin import admin_api, opened_database
from tests.factories import (
    GIB,
    Node,
    add_node,
    make_device,
    make_gpu,
    principal_of,
    schedule,
    seen,
    submit,
)
from tests.harness import Stack, running_stack, until
from tests.tenants import Office, ask_with_key, breaches

MANY = 200
TINY = (
    '--HubService.images=[{"name": "tiny", "references": {"fake": "fake"},'
    ' "minimum": {"cpu": "0.001", "mem": "1m"}, "shmem": "0"}]'
)


@pytest.fixture
async def office(platform: Platform) -> Office:
    return Office(platform)


# --- over HTTP -----------------------------------------------------------------------


@pytest.fixture
async def queue_only(tmp_path: Path, db_url: str) -> AsyncIterator[Stack]:
    """A real service without any node, so that everything waits."""
    async with running_stack(tmp_path / "data", db_url, agent=False) as stack:
        yield stack


async def ask_often(stack: Stack, users: list[str], **request: Any) -> Counter[int]:
    """Ask for MANY sessions at once, in turns for these users; count the answers."""
    apis = [stack.client(user) for user in users]
    for api in apis:
        await api.__aenter__()
    try:
        answers = await asyncio.gather(
            *(apis[n % len(apis)].create(**request) for n in range(MANY))
        )
    finally:
        for api in apis:
            await api.__aexit__(None, None, None)
    for status, body in answers:
        assert status in {201, 429} or "limit" in body["detail"], (status, body)
    return Counter(status for status, _ in answers)


async def count(stack: Stack, condition: str) -> int:
    async with opened_database(stack) as database, database.read() as connection:
        query = text(f"SELECT COUNT(*) FROM sessions WHERE {condition}")
        return int((await connection.execute(query)).scalar_one())


async def stack_breaches(stack: Stack) -> list[str]:
    async with opened_database(stack) as database, database.read() as connection:
        return await find_breaches(connection)


async def test_of_many_requests_at_once_exactly_the_pending_cap_is_accepted(
    queue_only: Stack,
):
    async with admin_api(queue_only) as admin:
        await admin.change("keypair-policies/default", max_pending_session_count=30)
        counts = await ask_often(queue_only, ["alice", "bob"])
    assert counts[201] == 60
    assert sum(counts.values()) == MANY
    assert await count(queue_only, "status = 'PENDING'") == 60
    assert await stack_breaches(queue_only) == []


async def test_of_many_requests_at_once_as_much_may_wait_as_the_pending_slots_say(
    queue_only: Stack,
):
    async with admin_api(queue_only) as admin:
        await admin.change(
            "keypair-policies/default", max_pending_session_resource_slots={"cpu": "25"}
        )
        counts = await ask_often(queue_only, ["alice"], slots={"cpu": "1"})
    assert counts[201] == 25
    assert await count(queue_only, "status = 'PENDING'") == 25


async def test_of_many_requests_at_once_exactly_what_the_limits_allow_starts(
    tmp_path: Path, db_url: str
):
    """A whole service with a node: limits of domain, project and user together."""
    stack = Stack(tmp_path / "data", db_url)
    try:
        await stack.start_service(TINY)
        await stack.start_agent()
        async with admin_api(stack) as admin:
            await admin.change(
                "projects/default:default", total_resource_slots={"cpu": "0.03"}
            )
            await admin.change(
                "keypair-policies/default",
                total_resource_slots={"cpu": "0.012"},
                max_concurrent_sessions=10,
            )
            users = ["alice", "bob", "carol", "dave"]
            clients = [stack.client(user) for user in users]
            for client in clients:
                await client.__aenter__()
            try:
                await asyncio.gather(
                    *(
                        clients[n % 4].launch(
                            f"s{n}", image="tiny", slots={"cpu": "0.001", "mem": "1m"}
                        )
                        for n in range(MANY)
                    )
                )
            finally:
                for client in clients:
                    await client.__aexit__(None, None, None)

            async def settled() -> bool:
                return await count(stack, "status = 'RUNNING'") == 30

            await until(settled, "30 sessions run", 120)
        assert await count(stack, "status = 'PENDING'") == MANY - 30
        assert await stack_breaches(stack) == []
        assert "pass failed" not in stack.programs["service"].said()
        async with opened_database(stack) as database, database.read() as connection:
            most = await connection.execute(
                text(
                    "SELECT MAX(used) FROM ledger WHERE kind = 'user'"
                    " AND slot = 'sessions'"
                )
            )
            assert int(most.scalar_one()) <= 10_000
    finally:
        stack.stop()


# --- placing -------------------------------------------------------------------------


async def plan_without_limits(platform: Platform) -> Plan:
    """Make a plan that knows no limits: only the ledger stands in its way."""
    snapshot = await load_snapshot(platform)
    return plan(msgspec.structs.replace(snapshot, scopes={}))


async def holding(platform: Platform) -> Counter[str]:
    """Count placed sessions by domain, project and owner."""
    async with platform.database.read() as connection:
        records = await session_lists.list_records(connection, sorted(OCCUPYING))
        shown = await session_views.get_sessions(connection, [r.id for r in records])
    counts: Counter[str] = Counter()
    for session in shown:
        counts.update([session.domain, session.project, session.owner, "all"])
    return counts


async def test_many_placements_at_once_stop_exactly_at_the_limits_of_all_scopes(
    platform: Platform, office: Office
):
    await office.make_domain("a", total_resource_slots={"cpu": "70"})
    await office.make_domain("b")
    for domain, project, limits in (
        ("a", "a1", {"cpu": "40"}),
        ("a", "a2", {"cpu": "40"}),
        ("b", "b1", {"cpu": "30"}),
        ("b", "b2", {}),
    ):
        await office.make(
            "project", name=project, domain=domain, total_resource_slots=limits
        )
    await office.change("keypair-policy", "default", total_resource_slots={"cpu": "25"})
    host = make_device(slots={"cpu": 1000 * MANY, "mem": GIB})
    await add_node(platform, devices=[host])
    for project in ("a1", "a2", "b1", "b2"):
        for person in ("x", "y"):
            name = f"{project}{person}"
            await office.make("user", name=name, domain=project[0],
                              project=f"{project[0]}:{project}")  # fmt: skip
            for number in range(MANY // 8):
                await submit(platform, name, server=f"s{number}", slots={"cpu": 1})
    decided = await plan_without_limits(platform)
    assert len(decided.placements) == MANY
    chance = random.Random(1)
    orders = [
        Plan(placements=tuple(chance.sample(decided.placements, MANY)), waiting={})
        for _ in range(8)
    ]

    placed = await asyncio.gather(*(apply_plan(platform, order) for order in orders))

    counts = await holding(platform)
    assert sum(placed) == counts["all"] == 150
    assert {name: counts[name] for name in ("a", "b1", "b2")} == {
        "a": 70, "b1": 30, "b2": 50}  # fmt: skip
    assert max(counts["a1"], counts["a2"]) <= 40
    assert all(counts[f"{p}{u}"] <= 25 for p in ("a1", "a2", "b1", "b2") for u in "xy")
    assert await breaches(platform) == []


async def test_one_session_is_placed_once_by_however_many_plans(
    platform: Platform, office: Office
):
    await add_node(platform)
    await submit(platform)
    decided = await plan_without_limits(platform)
    placed = await asyncio.gather(*(apply_plan(platform, decided) for _ in range(20)))
    assert sum(placed) == 1
    assert await breaches(platform) == []


# --- everything at once ---------------------------------------------------------------


class Crowd:
    """Many who do what they may, at once, without looking at each other."""

    def __init__(self, platform: Platform, office: Office, node: Node) -> None:
        self.platform = platform
        self.office = office
        self.node = node
        self.chance = random.Random(7)
        self.refusals = 0
        self.servers = 0

    async def attempt(self, verb: Any) -> None:
        """Do something; a refusal in words is fine, any other failure is not."""
        try:
            await verb
        except HubError:
            self.refusals += 1

    async def ask(self) -> None:
        for _ in range(25):
            self.servers += 1
            user = self.chance.choice(["u0", "u1", "u2"])
            slots = {"cpu": 1, "cuda.device": self.chance.randint(1, 3)}
            await self.attempt(
                submit(self.platform, user, server=f"c{self.servers}", slots=slots)
            )

    async def ask_with_keys(self) -> None:
        for _ in range(8):
            key = await self.office.make("keypair", user="u0")
            await self.attempt(
                ask_with_key(self.platform, "u0", key.id, slots={"cpu": 1})
            )
            await self.attempt(ask_with_key(self.platform, "u0", key.id))
            await self.attempt(self.office.purge("keypair", key.name))

    async def place(self) -> None:
        for _ in range(12):
            await apply_plan(self.platform, await plan_without_limits(self.platform))
            await schedule(self.platform)

    async def end(self) -> None:
        for _ in range(30):
            async with self.platform.database.read() as connection:
                found = await session_lists.list_records(
                    connection, [*OCCUPYING, SessionStatus.PENDING]
                )
                names = await rows.get_records(connection, [r.id for r in found])
            if not found:
                await asyncio.sleep(0)
                continue
            record = self.chance.choice(found)
            person = await principal_of(self.platform, names[record.id][1], Caller.USER)
            await self.attempt(
                verbs.terminate_session(
                    self.platform, person, record.id, force=self.chance.random() < 0.8
                )
            )

    async def change_limits(self) -> None:
        for number in range(20):
            some = {"cpu": str(self.chance.randint(0, 9)), "cuda.device": "9"}
            await self.attempt(
                self.office.change("domain", "default", total_resource_slots=some)
            )
            await self.attempt(
                self.office.change(
                    "keypair-policy",
                    "default",
                    total_resource_slots=some,
                    max_concurrent_sessions=number % 4,
                    max_session_lifetime=number % 2 * 60,
                )
            )

    async def switch_default_keys(self) -> None:
        key = await self.office.make("keypair", user="u1")
        old = await self.office.default_key("u1")
        for number in range(12):
            chosen = (key, old)[number % 2]
            await self.attempt(
                self.office.change("keypair", chosen.name, is_default=True)
            )

    async def report(self) -> None:
        """The node gains and loses devices, in changing order, and sees containers."""
        for _ in range(12):
            # Some are gone, some are there and give nothing for now.
            gpus = [
                make_device(
                    f"g{n}",
                    kind="cuda",
                    whole=True,
                    slots={"cuda.device": self.chance.choice([0, 1000, 1000])},
                )
                for n in range(self.chance.randint(3, 6))
            ]
            cpu = 1000 * self.chance.randint(6, 12)
            devices = [make_device(slots={"cpu": cpu, "mem": GIB}), *gpus]
            self.chance.shuffle(devices)
            self.node.devices = devices
            async with self.platform.database.read() as connection:
                found = await containers.list_containers(connection)
            state = self.chance.choice([State.RUNNING, State.CREATING, State.EXITED])
            await self.attempt(
                self.node.report(
                    [seen(c.id, state, exit_code=0) for c in found], generation=0
                )
            )

    async def sweep(self) -> None:
        for _ in range(10):
            await end_expired(self.platform)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_whatever_is_done_at_once_nothing_locks_and_nothing_is_lost(
    platform: Platform, office: Office, seed: int
):
    """Every change of limits and keys beside placing, ending and reporting."""
    host = make_device(slots={"cpu": 12_000, "mem": GIB})
    node = await add_node(
        platform, devices=[host, *(make_gpu(f"g{n}") for n in range(6))]
    )
    for name in ("u0", "u1", "u2"):
        await office.make("user", name=name)
    crowd = Crowd(platform, office, node)
    crowd.chance.seed(seed)
    before = await count_deadlocks(platform.database)

    await asyncio.wait_for(
        asyncio.gather(
            crowd.ask(),
            crowd.ask(),
            crowd.ask_with_keys(),
            crowd.place(),
            crowd.place(),
            crowd.end(),
            crowd.change_limits(),
            crowd.switch_default_keys(),
            crowd.report(),
            crowd.sweep(),
        ),
        120,
    )

    assert crowd.refusals < 400
    assert await breaches(platform) == []
    assert await count_deadlocks(platform.database) == before


async def count_deadlocks(database: Database) -> int:
    """Ask PostgreSQL how often it had to end a transaction for others' sake."""
    if database.is_sqlite:
        return 0
    async with database.read() as connection:
        found = await connection.execute(
            text(
                "SELECT deadlocks FROM pg_stat_database"
                " WHERE datname = current_database()"
            )
        )
        return int(found.scalar_one())
