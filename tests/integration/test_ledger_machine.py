"""Whatever happens in whatever order, the ledger equals what is really held."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import create_engine, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import aliased

from backendai_agent.accelerators.fake import FakeAccelerator
from backendai_hub.api.agents import ContainerState
from backendai_hub.core.access import Caller
from backendai_hub.core.clusters import ClusterMode
from backendai_hub.core.errors import HubError
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import OCCUPYING, SessionStatus
from backendai_hub.db import containers, ledger, purges, session_lists, snapshots
from backendai_hub.db import sessions as rows
from backendai_hub.db.containers import list_containers
from backendai_hub.db.engine import Database
from backendai_hub.db.invariants import find_breaches
from backendai_hub.db.limits import load_scopes
from backendai_hub.db.migrate import sync_url
from backendai_hub.db.tables import (
    AgentRow,
    AllocationRow,
    Base,
    ContainerRow,
    DependencyRow,
    LedgerRow,
    SessionRow,
)
from backendai_hub.operations import batch as batch_operations
from backendai_hub.operations import node_room, placement, queue_view
from backendai_hub.operations import sessions as verbs
from backendai_hub.operations.batch import (
    cancel_dependents,
    end_timed_out,
    requeue_stranded,
)
from backendai_hub.operations.deadlines import end_expired, end_overdue
from backendai_hub.operations.nodes import judge_agents
from backendai_hub.operations.preemption import carry_out
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.operations.reports import accept_report
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.plan import plan
from tests import jobs
from tests.factories import (
    AUDIT_KEY,
    START,
    Clock,
    add_node,
    make_device,
    make_gpu,
    make_platform,
    prepare,
    principal_of,
    seen,
    submit,
)
from tests.preemptions import opt_in
from tests.tenants import Office, ask_with_key, make_system

SMALL, LARGE = "cuda.device:1g.5gb-mig", "cuda.device:3g.20gb-mig"
CUT = FakeAccelerator(
    count=1, cut_like="a100-40", node="n2", instances=["3g.20gb", "1g.5gb", "1g.5gb"]
)
STATES = list(ContainerState)
LEASE_AND_MARGIN = 300
USERS = ["alice", "bob"]


class LedgerMachine(RuleBasedStateMachine):
    """Small numbers, so that every edge is hit: 4 cores, 2 GPUs, two nodes.

    The second node has another GPU, which is cut into three instances.

    Two people in two domains with three projects; limits, keys and tenants change
    while their sessions come and go.
    """

    url: str = ""

    def __init__(self) -> None:
        super().__init__()
        empty(self.url)
        self.runner = asyncio.Runner()
        self.clock = Clock()
        self.count = 0
        self.run(self.begin())

    def run(self, coroutine: Any) -> Any:
        return self.runner.run(coroutine)

    async def begin(self) -> None:
        self.database = Database(
            self.url, clock=self.clock, pool_size=1, audit_key=AUDIT_KEY
        )
        self.platform = make_platform(
            self.database, quotas={"user": {"cpu": 3000}, "project": {"cpu": 4000}}
        )
        await prepare(self.platform)
        self.office = Office(self.platform)
        self.keys: list[tuple[str, str]] = []
        self.jobs: list[tuple[str, str]] = []
        self.left_behind: set[str] = set()
        await self.make_tenants()
        await opt_in(self.platform)
        cpu = {"cpu": 2000, "mem": 100}
        self.nodes = [
            await add_node(
                self.platform,
                "n1",
                [make_device(slots=cpu), make_gpu("g1"), make_gpu("g2")],
            ),
            await add_node(
                self.platform, "n2", [make_device(slots=cpu), *CUT.discover()]
            ),
        ]

    async def make_tenants(self) -> None:
        """Two domains with three projects, and somebody in each of the domains."""
        await self.office.make_domain("other", total_resource_slots={"cpu": "3"})
        for project in ("red", "blue"):
            await self.office.make("project", name=project, domain="other")
        several = {"max_containers_per_session": 0}
        await self.office.make("keypair-policy", name="second", **several)
        await self.office.change("keypair-policy", "default", **several)
        for name in USERS:
            await self.office.make("user", name=name)
        await self.office.change("user", "bob", domain="other", project="other:red")

    def teardown(self) -> None:
        self.run(self.database.close())
        self.runner.close()

    sessions = Bundle("sessions")
    containers = Bundle("containers")

    @rule(
        target=sessions,
        user=st.sampled_from(USERS),
        cpu=st.integers(1, 3),
        gpus=st.integers(0, 2),
        key=st.integers(0, 3),
        system=st.sampled_from([False, False, True]),
        at_once=st.booleans(),
    )
    def enqueue(
        self, user: str, cpu: int, gpus: int, key: int, system: bool, at_once: bool
    ) -> Any:
        self.count += 1
        slots = {"cpu": cpu, "mem": "10", "cuda.device": gpus}
        own = [found for owner, found in self.keys if owner == user]

        async def ask() -> Any:
            if own and key:
                return await ask_with_key(
                    self.platform, user, own[key % len(own)], slots=slots
                )
            server = f"s{self.count}"
            return await submit(self.platform, user, server=server, slots=slots)

        try:
            done = self.run(ask())
        except HubError:
            return multiple()  # more than any node or limit could give, or not active
        if system:
            self.run(make_system(self.platform, done.session.id))
        if at_once:
            self.run(self.place(honest=False))
        return done.session.id, user

    @rule(
        target=sessions,
        user=st.sampled_from(USERS),
        cpu=st.integers(1, 2),
        attempts=st.integers(1, 3),
        timeout=st.sampled_from([None, 60]),
        first=st.integers(-1, 3),
        at_once=st.booleans(),
        urgent=st.integers(-1, 1),
    )
    def enqueue_job(
        self,
        user: str,
        *,
        cpu: int,
        attempts: int,
        timeout: int | None,
        first: int,
        at_once: bool,
        urgent: int = 0,
    ) -> Any:
        """A batch session, which may wait for one of those before it."""
        mine = [job for job, owner in self.jobs if owner == user]
        after = [mine[first % len(mine)]] if mine and first >= 0 else []
        try:
            made = self.run(
                jobs.ask(
                    self.platform,
                    user,
                    slots={"cpu": cpu, "mem": "10"},
                    max_attempts=attempts,
                    batch_timeout=timeout,
                    dependencies=after,
                    job_priority=urgent,
                )
            )
        except HubError:
            return multiple()
        self.jobs.append((made.id, user))
        if at_once:
            self.run(self.place(honest=False))
        return made.id, user

    @rule(
        target=sessions,
        user=st.sampled_from(USERS),
        cpu=st.integers(1, 2),
        size=st.integers(2, 3),
        mode=st.sampled_from(list(ClusterMode)),
        attempts=st.integers(1, 2),
        at_once=st.booleans(),
    )
    def enqueue_cluster(
        self,
        user: str,
        *,
        cpu: int,
        size: int,
        mode: ClusterMode,
        attempts: int,
        at_once: bool,
    ) -> Any:
        """A batch session of several containers, on one node or on several."""
        asked = jobs.ask(
            self.platform,
            user,
            slots={"cpu": cpu, "mem": "10"},
            cluster_size=size,
            cluster_mode=mode,
            max_attempts=attempts,
        )
        return self.note_asked(self.attempt(asked), user, at_once)

    @rule(
        target=sessions,
        user=st.sampled_from(USERS),
        slot=st.sampled_from([SMALL, LARGE]),
        count=st.integers(1, 2),
        at_once=st.booleans(),
    )
    def enqueue_instance(self, user: str, slot: str, count: int, at_once: bool) -> Any:
        """A batch session with instances of the GPU that is cut."""
        slots = {"cpu": 1, "mem": "10", slot: count}
        asked = self.attempt(jobs.ask(self.platform, user, slots=slots))
        return self.note_asked(asked, user, at_once)

    def note_asked(self, made: Any, user: str, at_once: bool) -> Any:
        if made is None:
            return multiple()
        if at_once:
            self.run(self.place(honest=False))
        return made.id, user

    @rule(target=containers, honest=st.booleans())
    def plan(self, honest: bool) -> Any:
        """Place what is waiting; also by a plan that knows no limits at all."""

        self.run(self.place(honest=honest))
        return multiple(*self.run(self.live_containers()))

    @rule(mode=st.sampled_from(["terminate", "reschedule"]), at_once=st.booleans())
    def make_room(self, mode: str, at_once: bool) -> None:
        """Some leave for others; also twice for the same proposal."""
        self.run(opt_in(self.platform, mode=mode))
        proposed = plan(self.run(load_snapshot(self.platform))).preemptions
        for _ in range(2):
            self.run(carry_out(self.platform, proposed))
        if at_once:
            self.say_that_nothing_is_there(0)
            self.say_that_nothing_is_there(1)

    async def count_displaced(self) -> int:
        """Count how often anybody was displaced and put back."""
        async with self.database.read() as connection:
            found = await session_lists.list_records(connection, list(SessionStatus))
        return sum(record.preemptions for record in found)

    async def place(self, *, honest: bool) -> None:
        before = await self.load_use()
        snapshot = await load_snapshot(self.platform)
        if not honest:
            snapshot = msgspec.structs.replace(snapshot, scopes={})
        await placement.apply_plan(self.platform, plan(snapshot))
        await self.check_admission(before)

    async def load_use(self) -> dict[tuple[str, str, str], int]:
        async with self.database.read() as connection:
            found = await connection.execute(
                select(
                    LedgerRow.kind, LedgerRow.owner_id, LedgerRow.slot, LedgerRow.used
                ).where(LedgerRow.kind != str(ScopeKind.DEVICE))
            )
            return {(kind, owner, slot): used for kind, owner, slot, used in found}

    async def check_admission(self, before: dict[tuple[str, str, str], int]) -> None:
        """See that whatever has grown has stayed within what is allowed now."""
        async with self.database.read() as connection:
            placed = await session_lists.list_records(connection, sorted(OCCUPYING))
            scopes = await load_scopes(connection, placed)
        for (kind, owner, slot), used in (await self.load_use()).items():
            scope = scopes.get((ScopeKind(kind), owner))
            limit = None if scope is None else scope.limit_of(slot)
            grown = used > before.get((kind, owner, slot), 0)
            assert not grown or limit is None or used <= limit, (
                f"V04 {kind} {owner}: {used} of {limit} {slot} admitted"
            )

    async def live_containers(self) -> list[tuple[str, int]]:
        async with self.database.read() as connection:
            found = await list_containers(connection)
        index = {n.id: i for i, n in enumerate(self.nodes)}
        return [(c.id, index[c.agent_id]) for c in found]

    @rule(
        container=containers,
        state=st.sampled_from(STATES),
        code=st.sampled_from([None, 0, 1]),
        times=st.integers(1, 2),
    )
    def report(
        self, container: tuple[str, int], state: Any, code: int | None, times: int
    ) -> None:
        """A report, once or twice; for a container that may have ended long ago."""
        node = self.nodes[container[1]]
        for _ in range(times):
            self.run(node.report([seen(container[0], state, exit_code=code)]))

    @rule(container=containers, state=st.sampled_from(STATES))
    def late_report(self, container: tuple[str, int], state: Any) -> None:
        """A report that was sent before the last one and comes after it."""
        node = self.nodes[container[1]]
        late = node.make_report([seen(container[0], state)], sequence=0)
        self.run(accept_report(self.platform, node.id, late))

    @rule(session=sessions, force=st.booleans())
    def terminate(self, session: tuple[str, str], force: bool) -> None:
        async def end() -> None:
            principal = await principal_of(self.platform, session[1], Caller.USER)
            await verbs.terminate_session(
                self.platform, principal, session[0], force=force
            )

        self.attempt(end())  # it may have been purged with its project

    @rule(session=consumes(sessions))
    def terminate_for_the_last_time(self, session: tuple[str, str]) -> None:
        self.terminate(session, force=True)

    @rule(index=st.integers(0, 1))
    def say_that_nothing_is_there(self, index: int) -> None:
        self.run(self.nodes[index].report([]))

    @precondition(lambda self: self.nodes[0].devices)
    @rule(gpus=st.integers(0, 2))
    def lose_or_gain_devices(self, gpus: int) -> None:
        host = self.nodes[0].devices[0]
        self.nodes[0].devices = [host, *(make_gpu(f"g{i + 1}") for i in range(gpus))]
        self.run(self.nodes[0].report([], generation=0))

    # --- tenants and their limits ---

    def attempt(self, verb: Any) -> Any:
        """Do what may be refused in words."""
        try:
            return self.run(verb)
        except HubError:
            return None

    @rule(
        noun=st.sampled_from(
            [
                ("domain", "default"),
                ("domain", "other"),
                ("project", "default:default"),
                ("project", "other:red"),
                ("keypair-policy", "default"),
                ("keypair-policy", "second"),
            ]
        ),
        cpu=st.sampled_from([None, "0", "1", "2", "4", "inf"]),
        gpus=st.sampled_from([None, "0", "1"]),
    )
    def change_slots(
        self, noun: tuple[str, str], cpu: str | None, gpus: str | None
    ) -> None:
        given = {"cpu": cpu, "cuda.device": gpus}
        limits = {slot: amount for slot, amount in given.items() if amount is not None}
        self.attempt(self.office.change(*noun, total_resource_slots=limits))

    @rule(
        policy=st.sampled_from(["default", "second"]),
        most=st.integers(0, 2),
        system=st.integers(0, 2),
        unspecified=st.sampled_from(["LIMITED", "UNLIMITED"]),
        lifetime=st.sampled_from([0, 100]),
    )
    def change_policy(
        self, policy: str, most: int, system: int, unspecified: str, lifetime: int
    ) -> None:
        self.attempt(
            self.office.change(
                "keypair-policy",
                policy,
                max_concurrent_sessions=most,
                max_concurrent_sftp_sessions=system,
                default_for_unspecified=unspecified,
                max_session_lifetime=lifetime,
            )
        )

    @rule(
        user=st.sampled_from(USERS),
        place=st.sampled_from(["default:default", "other:red", "other:blue"]),
    )
    def move_user(self, user: str, place: str) -> None:
        domain, _, _ = place.partition(":")
        now = self.run(self.office.read("user", user))
        if now.domain == domain:
            self.attempt(self.office.join(place, user))
        else:
            self.attempt(self.office.change("user", user, domain=domain, project=place))

    @rule(
        user=st.sampled_from(USERS),
        policy=st.sampled_from(["default", "second"]),
        default=st.booleans(),
    )
    def add_key(self, user: str, policy: str, default: bool) -> None:
        made = self.attempt(
            self.office.make(
                "keypair", user=user, resource_policy=policy, is_default=default
            )
        )
        if made is not None:
            self.keys.append((user, made.id))

    @precondition(lambda self: self.keys)
    @rule(index=st.integers(0, 5), purge=st.booleans())
    def end_or_prefer_key(self, index: int, purge: bool) -> None:
        user, key = self.keys[index % len(self.keys)]
        if not purge:
            self.attempt(self.office.change("keypair", key, is_default=True))
            return
        try:
            self.run(self.office.purge("keypair", key))
        except HubError:
            return  # it is the default one
        self.keys.remove((user, key))

    @rule(
        noun=st.sampled_from(
            [("domain", "other"), ("project", "other:red"), ("user", "alice")]
        ),
        active=st.booleans(),
    )
    def deactivate(self, noun: tuple[str, str], active: bool) -> None:
        if noun[0] == "user":
            change: dict[str, Any] = {"status": "active" if active else "inactive"}
        else:
            change = {"is_active": active}
        self.attempt(self.office.change(*noun, **change))

    @rule(noun=st.sampled_from([("project", "other:blue"), ("project", "other:red")]))
    def purge_project(self, noun: tuple[str, str]) -> None:
        """Gone with its history, if nothing of it lives; and there again, empty."""
        self.attempt(self.office.change(*noun, is_active=False))
        self.attempt(self.office.purge(*noun))
        name = noun[1].partition(":")[2]
        self.attempt(self.office.make("project", name=name, domain="other"))

    @rule(seconds=st.sampled_from([1, 70, 200, 301]))
    def time_passes(self, seconds: int) -> None:
        self.clock.pass_(seconds)
        self.run(end_overdue(self.platform))
        self.run(end_expired(self.platform))
        self.run(self.look_after_jobs())

    @rule(index=st.integers(0, 1))
    def come_back(self, index: int) -> None:
        """A node is heard of again, and has taken up nothing new."""
        self.run(self.nodes[index].report([], generation=0))

    async def look_after_jobs(self) -> None:
        await judge_agents(self.platform, START)
        await end_timed_out(self.platform)
        await requeue_stranded(self.platform, START)
        await cancel_dependents(self.platform)

    @invariant()
    def attempts_never_overlap(self) -> None:
        """V31: what is in the queue again has left nothing behind that may run."""
        self.run(self.check_attempts())

    async def check_attempts(self) -> None:
        patience = timedelta(seconds=LEASE_AND_MARGIN)
        async with self.database.read() as connection:
            found = await connection.execute(
                select(
                    SessionRow.id,
                    SessionRow.requeues,
                    SessionRow.max_attempts,
                    SessionRow.status,
                    SessionRow.cluster_size,
                    ContainerRow.id,
                    ContainerRow.former,
                    ContainerRow.gone_at,
                    AgentRow.last_seen_at,
                )
                .join(ContainerRow, ContainerRow.session_id == SessionRow.id)
                .join(AgentRow, AgentRow.id == ContainerRow.agent_id)
            )
        current: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for row in found.all():
            session, requeues, most, status, size, container, former, gone, seen_at = (
                row
            )
            sizes[session] = size
            assert requeues < most, f"V30 {session}: attempt {requeues + 1} of {most}"
            if not former:
                current[session] = current.get(session, 0) + 1
                assert status != SessionStatus.PENDING, f"V31 {session} waits and runs"
            elif gone is None and container not in self.left_behind:
                silent = self.clock.now - seen_at
                assert silent >= patience, f"V31 {session}: {container} may still run"
            if former:
                self.left_behind.add(container)
        for session, count in current.items():
            assert count == sizes[session], (
                f"V31 {session}: {count} of {sizes[session]} containers at once"
            )

    @invariant()
    def nobody_starts_before_what_they_wait_for(self) -> None:
        """V33: whatever has been placed has only waited for what has succeeded."""

        async def check() -> list[Any]:
            first = aliased(SessionRow)
            async with self.database.read() as connection:
                found = await connection.execute(
                    select(SessionRow.id, first.status, first.result)
                    .join(DependencyRow, DependencyRow.session_id == SessionRow.id)
                    .join(first, first.id == DependencyRow.depends_on)
                    .where(
                        SessionRow.status.in_([str(s) for s in OCCUPYING]),
                        first.result != "success",
                    )
                )
                return list(found)

        assert self.run(check()) == [], "V33"

    @invariant()
    def every_promise_is_kept(self) -> None:
        async def check() -> list[str]:
            async with self.database.read() as connection:
                return await find_breaches(connection)

        assert self.run(check()) == []


def empty(url: str) -> None:
    """Delete every row: cheaper than a new database for each of many runs.

    But of the audit, which nobody may; its chain goes on.
    """
    audit = {"audit", "audit_head"}
    tables = [t for t in Base.metadata.sorted_tables if t.name not in audit]
    engine = create_engine(sync_url(url))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            names = ", ".join(t.name for t in tables)
            connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
        else:
            for table in reversed(tables):
                connection.execute(table.delete())
    engine.dispose()


SETTINGS = settings(
    max_examples=int(os.environ.get("BACKENDAI_TEST_EXAMPLES", "12")),
    stateful_step_count=25,
    suppress_health_check=list(HealthCheck),
)


def test_the_ledger_equals_the_live_allocations_whatever_happens(migrated_url: str):
    machine = type("Machine", (LedgerMachine,), {"url": migrated_url})
    run_state_machine_as_test(machine, settings=SETTINGS)


# Bugs planted on purpose: invariants that do not notice them prove nothing.


def plant_double_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freed again on every move to an end: the guard on ``freed_at`` is gone."""

    async def free(tx: Any, session_id: str, scopes: Any, *, system: bool) -> int:
        found = await tx.execute(
            select(
                AllocationRow.device_id, AllocationRow.slot, AllocationRow.amount
            ).where(AllocationRow.session_id == session_id)
        )
        shares = found.all()
        await original(tx, session_id, scopes, system=system)
        entries = [
            ledger.Entry(ScopeKind.DEVICE, r.device_id, r.slot, r.amount)
            for r in shares
        ]
        await ledger.give_back(tx, entries)
        return len(shares)

    original = ledger.free_allocations
    monkeypatch.setattr(ledger, "free_allocations", free)


def plant_missing_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every device always looks free to the plan, and the ledger takes all."""

    async def take(tx: Any, sums: Any, limits: Any) -> None:
        return None

    monkeypatch.setattr(placement.Room, "has", lambda self, key, amount: True)
    monkeypatch.setattr(ledger, "take_all", take)
    monkeypatch.setattr(Cluster, "take", lambda self, row, shares: None)


def plant_leak_on_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forced end forgets to free."""

    original = verbs.move

    async def move(tx: Any, record: Any, status: Any, reason: str, **more: Any) -> Any:
        if status is SessionStatus.TERMINATED and "by force" in reason:
            return await rows.move_session(tx, record, status, reason=reason)
        return await original(tx, record, status, reason, **more)

    monkeypatch.setattr(verbs, "move", move)


def plant_no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger asks devices only, and leaves tenants' limits to the plan."""

    original = placement.Room.limit_of

    def limit_of(self: Any, key: Any, row: Any) -> int | None:
        return original(self, key, row) if key[0] is ScopeKind.DEVICE else None

    monkeypatch.setattr(placement.Room, "limit_of", limit_of)


def plant_system_freed_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system session gives back what it has never taken."""

    original = ledger.free_allocations

    async def free(tx: Any, session_id: str, scopes: Any, *, system: bool) -> int:
        del system
        return await original(tx, session_id, scopes, system=False)

    monkeypatch.setattr(ledger, "free_allocations", free)


def plant_sessions_of_purged_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A purged keypair leaves its use behind in the ledger."""

    async def purge(tx: Any, kind: Any, scope_id: str) -> None:
        return None

    monkeypatch.setattr(purges, "purge_scope", purge)


def plant_use_of_where_they_are_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody gives back is taken from the project they are in by now."""

    original = ledger.free_allocations

    async def free(tx: Any, session_id: str, scopes: Any, *, system: bool) -> int:
        found = await tx.execute(
            text(
                "SELECT u.project_id FROM users u JOIN sessions s ON s.owner_id = u.id"
                " WHERE s.id = :id AND u.project_id IS NOT NULL"
            ).bindparams(id=session_id)
        )
        project = found.scalar()
        moved = [
            (kind, project if kind is ScopeKind.PROJECT and project else owner)
            for kind, owner in scopes
        ]
        return await original(tx, session_id, moved, system=system)

    monkeypatch.setattr(ledger, "free_allocations", free)


# By chance each is found only after long, or not at all: its story is told instead.


def begin_and_end(machine: LedgerMachine, *, system: bool = False) -> None:
    session = machine.enqueue(
        "alice", cpu=1, gpus=0, key=0, system=system, at_once=True
    )
    machine.every_promise_is_kept()
    machine.terminate(session, force=True)


def begin_and_end_a_system_session(machine: LedgerMachine) -> None:
    begin_and_end(machine, system=True)


def ask_for_more_than_there_is(machine: LedgerMachine) -> None:
    """Two cards are there, and three are asked for."""
    for user, gpus in (("alice", 2), ("bob", 1)):
        machine.enqueue(user, cpu=1, gpus=gpus, key=0, system=False, at_once=True)
        machine.every_promise_is_kept()


def ask_for_more_than_is_allowed(machine: LedgerMachine) -> None:
    """Nobody may have more than three cores; four are there."""
    for _ in range(2):
        machine.enqueue("alice", cpu=2, gpus=0, key=0, system=False, at_once=True)


def purge_a_used_key(machine: LedgerMachine) -> None:
    machine.add_key("alice", "default", default=False)
    machine.enqueue("alice", cpu=1, gpus=0, key=1, system=False, at_once=True)
    machine.end_or_prefer_key(0, purge=True)


def end_after_a_move(machine: LedgerMachine) -> None:
    session = machine.enqueue("alice", cpu=1, gpus=0, key=0, system=False, at_once=True)
    machine.move_user("alice", "other:red")
    machine.terminate(session, force=True)


def plant_no_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt counts as stopped as soon as it is given up."""
    original = batch_operations.give_up

    async def give_up(tx: Any, record: Any, reason: str, **more: Any) -> Any:
        return await original(tx, record, reason, **{**more, "has_stopped": True})

    monkeypatch.setattr(batch_operations, "give_up", give_up)


def plant_no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for anybody."""

    async def load_unmet(*_: Any) -> dict[str, Any]:
        return {}

    monkeypatch.setattr(queue_view, "load_unmet", load_unmet)


def lose_an_attempt(machine: LedgerMachine) -> None:
    machine.enqueue_job(
        "alice", cpu=1, attempts=2, timeout=None, first=-1, at_once=True
    )
    (container,) = machine.run(machine.live_containers())
    machine.report(container, ContainerState.EXITED, None, 1)
    machine.attempts_never_overlap()
    machine.report(container, ContainerState.GONE, None, 1)
    machine.attempts_never_overlap()


def wait_for_another(machine: LedgerMachine) -> None:
    for first in (-1, 0):
        machine.enqueue_job(
            "alice", cpu=1, attempts=1, timeout=None, first=first, at_once=True
        )
    machine.nobody_starts_before_what_they_wait_for()


def plant_half_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever there is room for is placed, and the rest is forgotten."""
    original = placement._pieces
    monkeypatch.setattr(placement, "_pieces", lambda found: original(found)[:1])
    monkeypatch.setattr(placement, "_is_whole", lambda *_: True)


def plant_slices_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks which slices are in use, neither before nor afterwards."""

    async def load_sliced(*_: Any) -> dict[str, int]:
        return {}

    monkeypatch.setattr(snapshots, "load_sliced", load_sliced)
    monkeypatch.setattr(node_room.NodeRoom, "take", lambda *_: True)


def begin_a_cluster(machine: LedgerMachine) -> None:
    machine.enqueue_cluster(
        "alice",
        cpu=1,
        size=2,
        mode=ClusterMode.MULTI_NODE,
        attempts=1,
        at_once=True,
    )
    found = machine.run(machine.live_containers())
    assert found
    machine.attempts_never_overlap()


def share_a_device(machine: LedgerMachine) -> None:
    """Two of the same kind, and both are there."""
    for user in USERS:
        machine.enqueue_instance(user, SMALL, 1, at_once=True)
    assert len(machine.run(machine.live_containers())) == 2


def plant_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who makes room counts as gone whatever is still there of it."""

    async def list_members(*_: Any) -> list[Any]:
        return []

    monkeypatch.setattr(containers, "list_members", list_members)


def make_room_for_another(machine: LedgerMachine) -> None:
    """Four cores are in use, and who asks for one has more job priority."""
    for user, cpu, urgent in (("alice", 2, -1), ("bob", 2, -1), ("alice", 1, 1)):
        machine.enqueue_job(
            user,
            cpu=cpu,
            attempts=1,
            timeout=None,
            first=-1,
            at_once=True,
            urgent=urgent,
        )
    machine.make_room("reschedule", at_once=False)
    for container in machine.run(machine.live_containers()):
        machine.report(container, ContainerState.EXITED, None, 1)
    machine.attempts_never_overlap()
    for container in machine.run(machine.live_containers()):
        machine.report(container, ContainerState.GONE, None, 1)
    assert machine.run(machine.count_displaced()) == 1
    machine.attempts_never_overlap()


PLANTED = {
    "attempts that overlap": (plant_no_fence, lose_an_attempt),
    "dependencies nobody heeds": (plant_no_waiting, wait_for_another),
    "displaced without proof": (plant_no_proof, make_room_for_another),
    "double free": (plant_double_free, begin_and_end),
    "half a cluster": (plant_half_a_cluster, begin_a_cluster),
    "slices given twice": (plant_slices_of_nobody, share_a_device),
    "freed where the owner is now": (plant_use_of_where_they_are_now, end_after_a_move),
    "leak on force": (plant_leak_on_force, begin_and_end),
    "missing capacity guard": (plant_missing_guard, ask_for_more_than_there_is),
    "no limits in the ledger": (plant_no_limits, ask_for_more_than_is_allowed),
    "system sessions freed as others": (
        plant_system_freed_as_others,
        begin_and_end_a_system_session,
    ),
    "use of purged keys": (plant_sessions_of_purged_keys, purge_a_used_key),
}


@pytest.mark.parametrize("planted", [False, True], ids=["as it is", "planted"])
@pytest.mark.parametrize(("plant", "story"), PLANTED.values(), ids=PLANTED)
def test_a_short_story_finds_a_planted_bug(
    plant: Any,
    story: Any,
    planted: bool,
    monkeypatch: pytest.MonkeyPatch,
    migrated_url: str,
):
    machine: LedgerMachine = type("Machine", (LedgerMachine,), {"url": migrated_url})()
    if planted:
        plant(monkeypatch)

    def tell() -> None:
        story(machine)
        machine.every_promise_is_kept()

    try:
        if planted:
            with pytest.raises(
                (AssertionError, IntegrityError), match=r"(?i)V\d\d|check"
            ):
                tell()
        else:
            tell()
    finally:
        machine.teardown()
