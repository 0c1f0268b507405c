"""What a group's options make of its queue: where things start, who is kept room."""

from __future__ import annotations

from typing import Any

import pytest

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.operations import placement
from backendai_hub.operations.agent_changes import AgentChange, change_agent
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import QueueView
from backendai_hub.operations.sessions import get_session, terminate_session
from backendai_hub.scheduling.plan import plan
from tests.factories import (
    add_node,
    make_device,
    make_gpu,
    principal_of,
    start,
    submit,
)
from tests.tenants import ROOT, Office

HOUR = 3600


@pytest.fixture
async def office(platform: Platform) -> Office:
    return Office(platform)


class Scheduler:
    """The scheduler's passes, one at a time."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.view = QueueView(platform)

    async def look(self) -> None:
        """Make one pass and learn from it."""
        await self.view.refresh()
        snapshot = self.view.snapshot()
        decided = plan(snapshot)
        await placement.apply_plan(self.platform, decided)
        self.view.note(snapshot.queue, decided)

    async def is_placed(self, session: Session) -> bool:
        """Tell whether *session* has a node."""
        owner = await principal_of(self.platform, "alice")
        now = await get_session(self.platform, owner, session.id)
        return now.status is SessionStatus.SCHEDULED


async def ask(platform: Platform, server: str, cpu: int) -> Session:
    submitted = await submit(platform, server=server, slots={"cpu": cpu, "mem": "1g"})
    return submitted.session


async def fill(platform: Platform, *cpus: int) -> list[Session]:
    """Have a node of eight cores, with sessions on it."""
    await add_node(
        platform, devices=[make_device(slots={"cpu": 8000, "mem": 64 << 30})]
    )
    return [
        await start(platform, server=f"r{n}", slots={"cpu": cpu, "mem": "1g"})
        for n, cpu in enumerate(cpus)
    ]


async def end(platform: Platform, session: Session) -> None:
    """End a session that no node has taken up yet, which frees its room at once."""
    owner = await principal_of(platform, "alice")
    await terminate_session(platform, owner, session.id, force=True)


@pytest.mark.parametrize(("waited", "kept"), [(HOUR - 1, False), (HOUR, True)])
async def test_who_has_waited_an_hour_is_kept_the_room_that_becomes_free(
    platform: Platform, waited: int, kept: bool
):
    first, _ = await fill(platform, 4, 4)
    scheduler = Scheduler(platform)
    wide = await ask(platform, "wide", 8)
    await scheduler.look()
    platform.database.clock.pass_(waited)  # type: ignore[attr-defined]
    await scheduler.look()
    narrow = await ask(platform, "narrow", 4)
    await end(platform, first)
    await scheduler.look()

    assert await scheduler.is_placed(narrow) is not kept
    assert not await scheduler.is_placed(wide)


async def test_who_is_kept_room_starts_when_all_of_it_is_free(platform: Platform):
    first, second = await fill(platform, 4, 4)
    scheduler = Scheduler(platform)
    wide = await ask(platform, "wide", 8)
    platform.database.clock.pass_(HOUR)  # type: ignore[attr-defined]
    narrow = await ask(platform, "narrow", 4)
    for session in (first, second):
        await end(platform, session)
        await scheduler.look()

    assert await scheduler.is_placed(wide)
    assert not await scheduler.is_placed(narrow)


@pytest.mark.parametrize("after", [None, 2 * HOUR])
async def test_the_group_says_after_how_long_room_is_kept(
    platform: Platform, office: Office, after: int | None
):
    first, _ = await fill(platform, 4, 4)
    options: dict[str, Any] = {"reserve_after": after}
    await office.change("resource-group", "default", scheduler_opts=options)
    scheduler = Scheduler(platform)
    await ask(platform, "wide", 8)
    platform.database.clock.pass_(HOUR)  # type: ignore[attr-defined]
    await scheduler.look()
    narrow = await ask(platform, "narrow", 4)
    await end(platform, first)
    await scheduler.look()

    assert await scheduler.is_placed(narrow)


@pytest.mark.parametrize(("after", "kept"), [(0, True), (60, False), (None, False)])
async def test_the_group_says_after_how_long_room_is_kept_for_wide_requests(
    platform: Platform, office: Office, after: int | None, *, kept: bool
):
    await add_node(platform, devices=[make_device(), *map(make_gpu, "abcd")])
    some = {"cpu": 1, "mem": "1g", "cuda.device": "3"}
    await start(platform, server="first", slots=some)
    options: dict[str, Any] = {"reserve_wide_after": after}
    await office.change("resource-group", "default", scheduler_opts=options)
    scheduler = Scheduler(platform)
    await submit(platform, server="wide", slots={**some, "cuda.device": "4"})
    await scheduler.look()
    asked = await submit(
        platform, server="narrow", slots={**some, "mem": "1g", "cuda.device": "1"}
    )
    await scheduler.look()

    assert await scheduler.is_placed(asked.session) is not kept


@pytest.mark.parametrize(
    ("strategy", "nodes"), [("concentrated", 1), ("dispersed", 2), ("roundrobin", 2)]
)
async def test_the_group_says_how_its_nodes_are_chosen(
    platform: Platform, office: Office, strategy: str, nodes: int
):
    for name in ("one", "two"):
        await add_node(
            platform, name, devices=[make_device(slots={"cpu": 8000, "mem": 64 << 30})]
        )
    options = {"agent_selection_strategy": strategy}
    await office.change("resource-group", "default", scheduler_opts=options)
    scheduler = Scheduler(platform)
    found = set()
    for server in "ab":
        session = await ask(platform, server, 1)
        await scheduler.look()
        owner = await principal_of(platform, "alice")
        found.add((await get_session(platform, owner, session.id)).agent)

    assert len(found) == nodes


async def test_a_policy_that_is_not_installed_is_refused_with_those_that_are(
    office: Office,
):
    with pytest.raises(InvalidRequestError, match=r"called 'tetris'.*concentrated"):
        await office.change(
            "resource-group",
            "default",
            scheduler_opts={"agent_selection_strategy": "tetris"},
        )
    with pytest.raises(InvalidRequestError, match=r"called 'tetris'.*fair-share"):
        await office.change("resource-group", "default", scheduler="tetris")


async def test_what_has_been_placed_is_what_people_usually_ask_for(
    platform: Platform,
):
    """With the labels they insist on."""
    await add_node(
        platform,
        devices=[make_device(slots={"cpu": 8000, "mem": 64 << 30})],
    )
    await change_agent(platform, ROOT, "node-1", AgentChange(labels={"disk": "fast"}))
    scheduler = Scheduler(platform)
    for number, labels in enumerate(({}, {"disk": "fast"}, {"disk": "fast"})):
        slots = {"cpu": 1, "mem": "1g"}
        await submit(platform, server=f"s{number}", slots=slots, labels=labels)
        await scheduler.look()
    (policy,) = scheduler.view.snapshot().groups.values()
    often = {ask.labels: weight for ask, weight in policy.typical}
    assert often == {
        (): pytest.approx(1.0, rel=0.01),
        (("disk", "fast"),): pytest.approx(2.0, rel=0.01),
    }
