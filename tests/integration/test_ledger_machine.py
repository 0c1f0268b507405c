"""Whatever happens in whatever order, the ledger equals what is really held."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
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

from backendai_hub.api.agents import ContainerState
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import HubError
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.db import ledger
from backendai_hub.db import sessions as rows
from backendai_hub.db.engine import Database
from backendai_hub.db.invariants import find_breaches
from backendai_hub.db.migrate import sync_url, upgrade
from backendai_hub.db.tables import AllocationRow, Base
from backendai_hub.operations import placement
from backendai_hub.operations import sessions as verbs
from backendai_hub.operations.deadlines import end_overdue
from backendai_hub.operations.reports import accept_report
from backendai_hub.scheduling.cluster import Cluster
from tests.factories import (
    Clock,
    add_node,
    make_device,
    make_gpu,
    make_platform,
    prepare,
    principal_of,
    schedule,
    seen,
    submit,
)

STATES = list(ContainerState)


class LedgerMachine(RuleBasedStateMachine):
    """Small numbers, so that every edge is hit: 3 cores, 2 GPUs, two nodes."""

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
        self.database = Database(self.url, clock=self.clock, pool_size=1)
        self.platform = make_platform(
            self.database, quotas={"user": {"cpu": 3000}, "project": {"cpu": 4000}}
        )
        await prepare(self.platform)
        cpu = {"cpu": 2000, "mem": 100}
        self.nodes = [
            await add_node(
                self.platform,
                "n1",
                [make_device(slots=cpu), make_gpu("g1"), make_gpu("g2")],
            ),
            await add_node(self.platform, "n2", [make_device(slots=cpu)]),
        ]

    def teardown(self) -> None:
        self.run(self.database.close())
        self.runner.close()

    sessions = Bundle("sessions")
    containers = Bundle("containers")

    @rule(
        target=sessions,
        user=st.sampled_from(["alice", "bob"]),
        cpu=st.integers(1, 3),
        gpus=st.integers(0, 2),
    )
    def enqueue(self, user: str, cpu: int, gpus: int) -> Any:
        self.count += 1
        slots = {"cpu": cpu, "mem": "10", "cuda.device": gpus}
        try:
            done = self.run(
                submit(self.platform, user, server=f"s{self.count}", slots=slots)
            )
        except HubError:
            return multiple()  # more than any node could give
        return done.session.id, user

    @rule(target=containers)
    def plan(self) -> Any:
        self.run(schedule(self.platform))
        return multiple(*self.run(self.live_containers()))

    async def live_containers(self) -> list[tuple[str, int]]:
        async with self.database.read() as connection:
            found = await rows.list_containers(connection)
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

        self.run(end())

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

    @rule(seconds=st.sampled_from([1, 70, 200]))
    def time_passes(self, seconds: int) -> None:
        self.clock.pass_(seconds)
        self.run(end_overdue(self.platform))

    @invariant()
    def every_promise_is_kept(self) -> None:
        async def check() -> list[str]:
            async with self.database.read() as connection:
                return await find_breaches(connection)

        assert self.run(check()) == []


def empty(url: str) -> None:
    """Delete every row: cheaper than a new database for each of many runs."""
    engine = create_engine(sync_url(url))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            names = ", ".join(t.name for t in Base.metadata.sorted_tables)
            connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
        else:
            for table in reversed(Base.metadata.sorted_tables):
                connection.execute(table.delete())
    engine.dispose()


EXAMPLES = int(os.environ.get("BACKENDAI_TEST_EXAMPLES", "40"))
SETTINGS = settings(
    max_examples=EXAMPLES,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    print_blob=True,
)


def run_machine(url: str, **changes: Any) -> None:
    upgrade(url)
    machine = type("Machine", (LedgerMachine,), {"url": url})
    run_state_machine_as_test(machine, settings=settings(SETTINGS, **changes))


def test_the_ledger_equals_the_live_allocations_whatever_happens(db_url: str):
    run_machine(db_url)


# Three bugs planted on purpose: a machine that does not find them proves nothing.


def plant_double_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freed again on every move to an end: the guard on ``freed_at`` is gone."""

    async def free(tx: Any, session_id: str, scopes: Any) -> int:
        found = await tx.execute(
            select(
                AllocationRow.device_id, AllocationRow.slot, AllocationRow.amount
            ).where(AllocationRow.session_id == session_id)
        )
        shares = found.all()
        await original(tx, session_id, scopes)
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

    async def take(tx: Any, entries: Any) -> None:
        return None

    monkeypatch.setattr(placement, "take", take)
    monkeypatch.setattr(Cluster, "take", lambda self, row, shares: None)


def plant_leak_on_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forced end forgets to free."""

    original = verbs.move

    async def move(tx: Any, record: Any, status: Any, reason: str, **more: Any) -> Any:
        if status is SessionStatus.TERMINATED and "by force" in reason:
            return await rows.move_session(tx, record, status, reason=reason)
        return await original(tx, record, status, reason, **more)

    monkeypatch.setattr(verbs, "move", move)


@pytest.mark.parametrize(
    "plant",
    [plant_double_free, plant_missing_guard, plant_leak_on_force],
    ids=["double free", "missing capacity guard", "leak on force"],
)
def test_the_machine_finds_a_planted_bug(
    plant: Any, monkeypatch: pytest.MonkeyPatch, db_url: str
):
    plant(monkeypatch)
    # Either an invariant notices, or the database's own CHECK behind it.
    with pytest.raises((AssertionError, IntegrityError), match=r"(?i)V0\d|check"):
        run_machine(db_url, max_examples=300, phases=(Phase.generate,))
