"""A site that has been used goes up to the present schema, and down again."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import Connection, MetaData, create_engine, pool, select, text

from backendai_hub.api.agents import ContainerState as State
from backendai_hub.core.errors import InvalidRequestError, NeverFitsError
from backendai_hub.core.ids import make_id
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db import sessions as rows
from backendai_hub.db.engine import Database
from backendai_hub.db.limits import load_scopes
from backendai_hub.db.migrate import downgrade, sync_url, upgrade
from backendai_hub.operations.nodes import load_assignments
from backendai_hub.operations.platform import Platform, Vault
from backendai_hub.operations.users import ensure_user
from tests.factories import (
    AUDIT_KEY,
    GIB,
    START,
    Clock,
    Node,
    make_platform,
    prepare,
    schedule,
    seen,
    submit,
)
from tests.tenants import Office, ask_with_key, breaches, read, why

VAULT = Vault(Fernet.generate_key())
PEOPLE = ("alice", "bob", "Carla", "Straße", "carla")
CPU_OF = {"alice": 3000, "bob": 3000, "Carla": 5000}


def key(name: str) -> str:
    """Make the same id for the same name, always."""
    return make_id(1, hashlib.sha256(name.encode()).digest())


def session(name: str, owner: str, status: str, **more: Any) -> dict[str, Any]:
    return {
        "id": key(name),
        "name": name,
        "type": "interactive",
        "owner_id": key(owner),
        "domain_id": key("domain"),
        "project_id": key("project"),
        "image": "lab",
        "slots": {"cpu": 1000, "mem": 100},
        "shmem": 0,
        "status": status,
        "reason": "",
        "agent_id": None,
        "server": name,
        "prefix": f"/user/{owner}/{name}/",
        "ready": True,
        "exit_code": None,
        "idempotency_key": name,
        "request_hash": "-",
        "revision": 3,
        "created_at": START,
        "scheduled_at": None,
        "started_at": None,
        "ended_at": None,
        "deadline_at": None,
        **more,
    }


def container(of: str) -> dict[str, Any]:
    return {
        "id": key(f"c-{of}"),
        "session_id": key(of),
        "agent_id": key("node"),
        "desired": "running",
        "image": "fake",
        "generation": 1,
        "created_at": START,
        "gone_at": None,
    }


def allocation(of: str, slot: str, amount: int, **more: Any) -> dict[str, Any]:
    return {
        "id": key(f"{slot}-{of}"),
        "session_id": key(of),
        "container_id": key(f"c-{of}"),
        "device_id": key("host"),
        "slot": slot,
        "amount": amount,
        "freed_at": None,
        **more,
    }


def balance(kind: str, owner: str, slot: str, used: int, quota: int | None) -> Any:
    cap = None if quota is None else max(used, quota)
    return {
        "kind": kind, "owner_id": key(owner), "slot": slot, "used": used,
        "quota": quota, "cap": cap,
    }  # fmt: skip


LIVE = {"scheduled_at": START, "started_at": START, "agent_id": key("node")}
TABLES: dict[str, list[dict[str, Any]]] = {
    "domains": [{"id": key("domain"), "name": "default", "created_at": START}],
    "projects": [
        {
            "id": key("project"),
            "name": "default",
            "domain_id": key("domain"),
            "created_at": START,
        }
    ],
    "users": [
        {
            "id": key(name),
            "name": name,
            "domain_id": key("domain"),
            "project_id": key("project"),
            "created_at": START.replace(minute=number),
        }
        for number, name in enumerate(PEOPLE)
    ],
    "images": [{"name": "lab", "definition": {"name": "lab"}, "position": 0}],
    "agents": [
        {
            "id": key("node"),
            "name": "node",
            "machine_id": "node",
            "status": "ALIVE",
            "schedulable": True,
            "epoch": 1,
            "sequence": 1,
            "generation": 1,
            "url": "https://node:1",
            "architecture": "x86_64",
            "version": "0",
            "isolation": {
                "runtime": "fake",
                "tier": "none",
                "limits": "none",
                "network": "none",
                "multi_user": True,
            },
            "images": ["fake"],
            "unknown": [],
            "enrolled_at": START,
            "first_seen_at": START,
            "last_seen_at": START,
        }
    ],
    "devices": [
        {
            "id": key("host"),
            "agent_id": key("node"),
            "name": "host",
            "kind": "host",
            "model": "",
            "numa": None,
            "whole": False,
            "present": True,
        }
    ],
    "sessions": [
        session("running", "alice", "RUNNING", **LIVE),
        session("ending", "bob", "TERMINATING", **LIVE),
        session("ended", "bob", "TERMINATED", **LIVE, ended_at=START),
        session("queued", "Carla", "PENDING"),
        session("lost", "Carla", "PENDING", image="forgotten"),
    ],
    "containers": [container(name) for name in ("running", "ending", "ended")],
    "allocations": [
        allocation(name, slot, amount, **more)
        for slot, amount in (("cpu", 1000), ("mem", 100))
        for name, more in (
            ("running", {}),
            ("ending", {}),
            ("ended", {"freed_at": START}),
        )
    ],
    "ledger": [
        balance("device", "host", "cpu", 2000, 8000),
        balance("device", "host", "mem", 200, 4 * GIB),
        balance("domain", "domain", "cpu", 2000, None),
        balance("domain", "domain", "mem", 200, GIB),
        balance("project", "project", "cpu", 2000, 4000),
        balance("project", "project", "mem", 200, None),
        # Lowered below what is in use.
        balance("user", "alice", "cuda.device", 0, 0),
        *(
            balance("user", name, "cpu", 1000 if name != "Carla" else 0, quota)
            for name, quota in CPU_OF.items()
        ),
        balance("user", "alice", "mem", 100, 50),
        balance("user", "bob", "mem", 100, None),
    ],
    "session_secrets": [
        {
            "session_id": key(name),
            "ciphertext": VAULT.seal(
                {"environ": {"JUPYTERHUB_API_TOKEN": f"born-{name}"}, "argv": []}
            ),
        }
        for name in ("running", "ending", "queued", "lost")
    ],
    "events": [
        {
            "at": START,
            "kind": "session.started",
            "text": "",
            "actor": "x",
            "session_id": key("running"),
            "owner_id": key("alice"),
            "agent_id": key("node"),
            "status": "RUNNING",
        }
    ],
    "accounts": [
        {
            "name": "alice",
            "password_hash": "-",
            "must_change": False,
            "failures": 0,
            "locked_until": None,
            "changed_at": START,
        }
    ],
}
"""A site of the first schema: nodes, people with limits, sessions of every kind."""


@pytest.fixture
def connection(db_url: str) -> Iterator[Connection]:
    engine = create_engine(sync_url(db_url), poolclass=pool.NullPool)
    with engine.connect() as opened:
        yield opened
    engine.dispose()


@pytest.fixture
def used(db_url: str, connection: Connection) -> str:
    """A database of the first schema with rows in every table."""
    upgrade(db_url, "0001")
    schema = MetaData()
    schema.reflect(connection)
    for table in schema.sorted_tables:
        if TABLES.get(table.name):
            connection.execute(table.insert(), TABLES[table.name])
    connection.commit()
    empty = {
        table.name
        for table in schema.sorted_tables
        if connection.execute(select(table)).first() is None
    }
    connection.rollback()
    assert empty == {"enroll_tokens", "versions"}, "no other table is left out"
    return db_url


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Platform]:
    """Start the platform on a database, as a service does."""
    database = Database(url, clock=Clock(), audit_key=AUDIT_KEY)
    try:
        platform = dataclasses.replace(make_platform(database), vault=VAULT)
        await prepare(platform)
        yield platform
    finally:
        await database.close()


@pytest.fixture
async def platform(used: str) -> AsyncIterator[Platform]:
    """The platform on a site that has just been brought up."""
    await asyncio.to_thread(upgrade, used)
    async with opened(used) as platform:
        yield platform


@pytest.fixture
async def office(platform: Platform) -> Office:
    return Office(platform)


def node_of(platform: Platform) -> Node:
    found = Node(platform, key("node"), "node")
    found.sequence = 1
    return found


# --- up ------------------------------------------------------------------------------


async def test_the_ledger_keeps_its_promises_after_the_upgrade(platform: Platform):
    assert await breaches(platform) == []


async def test_everybody_has_the_limits_they_had(platform: Platform):
    async with platform.database.read() as connection:
        records = [
            await rows.get_record(connection, key(n)) for n in ("running", "ending")
        ]
        scopes = await load_scopes(connection, records)
    assert scopes[ScopeKind.DOMAIN, key("domain")].limits == {"mem": GIB}
    assert scopes[ScopeKind.PROJECT, key("project")].limits == {"cpu": 4000}
    alice = scopes[ScopeKind.USER, key("alice")]
    assert {
        s: alice.limit_of(s) for s in ("cpu", "mem", "cuda.device", "sessions")
    } == {
        "cpu": 3000,
        "mem": 50,
        "cuda.device": 0,
        "sessions": None,
    }
    bob = scopes[ScopeKind.USER, key("bob")]
    assert {s: bob.limit_of(s) for s in ("cpu", "mem")} == {"cpu": 3000, "mem": None}
    assert bob.used == {"cpu": 1000, "mem": 100, "sessions": 1000}


async def test_limits_bind_as_before(platform: Platform, office: Office):
    over = (await submit(platform, "bob", slots={"cpu": 3, "mem": "10"})).session
    assert await why(platform, over) == (
        # What waited before has been placed first.
        "project default: cpu 3 of 4 in use, asks 3;"
        " user bob: cpu 1 of 3 in use, asks 3"
    )


async def test_everybody_has_one_default_keypair_and_is_in_their_project(
    platform: Platform, office: Office
):
    policies = set()
    for name in ("alice", "bob", "Carla", "Straße"):
        actor = await ensure_user(platform, name)
        assert (actor.id, actor.name) == (key(name), name), "the same person as before"
        assert list(actor.projects.values()) == ["default"]
        default = await office.default_key(name)
        assert not default.has_secret
        policies.add((name, default.resource_policy))
    of = dict(policies)
    assert of["alice"] != of["bob"] != of["Carla"], "each has their own limits"
    assert len(await office.list("keypair")) == len(PEOPLE)


async def test_of_two_spellings_of_one_name_the_first_that_came_logs_in(
    platform: Platform,
):
    first = await ensure_user(platform, "Carla")
    assert first.id == key("Carla")
    with pytest.raises(InvalidRequestError, match="another spelling"):
        await ensure_user(platform, "carla")


async def test_what_ran_goes_on_and_gives_back_what_it_held(
    platform: Platform, office: Office
):
    node = node_of(platform)
    assignments = await load_assignments(platform, key("node"))
    assert {a.session_id for a in assignments.containers} >= {key("running")}
    await node.report([seen(key("c-running"), State.RUNNING)])
    assert (await read(platform, key("running"))).status is SessionStatus.RUNNING
    assert (await read(platform, key("ending"))).status is SessionStatus.TERMINATED
    assert await breaches(platform) == []
    await node.report([seen(key("c-running"), State.EXITED, exit_code=0)])
    assert (await read(platform, key("running"))).status is SessionStatus.TERMINATED
    assert await breaches(platform) == []
    async with platform.database.read() as connection:
        left = await connection.execute(text("SELECT SUM(used) FROM ledger"))
        assert left.scalar() == 0


async def test_what_waited_starts_and_what_lost_its_environment_says_so(
    platform: Platform,
):
    assert await schedule(platform) == 1
    started = await read(platform, key("queued"))
    assert (started.status, started.agent) == (SessionStatus.SCHEDULED, "node")
    lost = await read(platform, key("lost"))
    assert (lost.status, lost.reason) == (
        SessionStatus.PENDING,
        "the environment forgotten is not there any more; ask for another",
    )
    assert await breaches(platform) == []


async def test_new_people_come_in_with_the_usual_limits(
    platform: Platform, office: Office
):
    await ensure_user(platform, "newcomer")
    usual = await office.default_key("newcomer")
    policy = await office.read("keypair-policy", usual.resource_policy)
    assert policy.is_default
    await submit(platform, "newcomer", slots={"cpu": 1, "mem": "10"})
    assert await schedule(platform) == 2
    assert await breaches(platform) == []


async def test_a_site_where_nobody_was_yet_takes_its_limits_from_the_configuration(
    db_url: str, connection: Connection
):
    upgrade(db_url, "0001")
    schema = MetaData()
    schema.reflect(connection)
    for name in ("domains", "projects"):
        connection.execute(schema.tables[name].insert(), TABLES[name])
    connection.commit()
    upgrade(db_url)
    database = Database(db_url, clock=Clock(), audit_key=AUDIT_KEY)
    try:
        platform = make_platform(database, quotas={"user": {"cpu": 2000}})
        await prepare(platform)
        with pytest.raises(NeverFitsError, match="user alice: cpu 0 of 2 in use"):
            await submit(platform, slots={"cpu": 3})
    finally:
        await database.close()


# --- and down again ----------------------------------------------------------------


def stored(connection: Connection, table: str) -> set[tuple[Any, ...]]:
    wanted = {
        "ledger": "kind, owner_id, slot, used, quota, cap",
        "users": "id, name, domain_id, project_id",
        "sessions": "id, owner_id, status, image, revision",
        "allocations": "id, session_id, amount, freed_at IS NULL",
        "domains": "id, name",
        "projects": "id, domain_id, name",
    }[table]
    found = connection.execute(text(f"SELECT {wanted} FROM {table}")).all()
    connection.rollback()
    return {tuple(row) for row in found}


def test_going_down_brings_back_what_was_there_before(
    used: str, connection: Connection
):
    names = ("users", "sessions", "allocations", "domains", "projects")
    before = {name: stored(connection, name) for name in names}
    limits = stored(connection, "ledger")
    upgrade(used)
    downgrade(used, "0001")
    assert {name: stored(connection, name) for name in names} == before
    # Everybody now has the quotas of their policy, also where none is used of it.
    after = stored(connection, "ledger")
    assert after == limits


async def test_a_site_in_use_goes_down_and_up_again(used: str, connection: Connection):
    """With what only the newer schema knows: other keys, sessions of them, groups."""
    await asyncio.to_thread(upgrade, used)
    async with opened(used) as platform:
        office = Office(platform)
        await office.make_domain("research", total_resource_slots={"cpu": "1"})
        await office.make("project", name="vision", domain="research")
        await office.make(
            "user", name="vera", domain="research", project="research:vision"
        )
        await office.make("user", name="nobody", domain="research")
        bob = await office.make("keypair", user="bob")
        await ask_with_key(platform, "bob", bob.id, slots={"cpu": 1, "mem": "10"})
        await submit(platform, "vera", slots={"cpu": 1, "mem": "10"})
        assert await schedule(platform) == 3
        assert await breaches(platform) == []
    await asyncio.to_thread(downgrade, used, "0001")
    kinds = {row[0] for row in stored(connection, "ledger")}
    assert kinds == {"device", "domain", "project", "user"}
    assert not {row[2] for row in stored(connection, "ledger")} & {
        "sessions",
        "sftp-sessions",
    }

    await asyncio.to_thread(upgrade, used)
    async with opened(used) as platform:
        assert await breaches(platform) == []
        vera = await ensure_user(platform, "vera")
        assert (vera.domain, list(vera.projects.values())) == ("research", ["vision"])
        over = await submit(
            platform, "vera", server="more", slots={"cpu": 1, "mem": "10"}
        )
        assert await why(platform, over.session) == (
            "domain research: cpu 1 of 1 in use, asks 1"
        )
