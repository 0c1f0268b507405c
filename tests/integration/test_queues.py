"""The queue of a resource group, as each may see it."""

from __future__ import annotations

import msgspec
import pytest

from backendai_hub.core.access import (
    ADMIN_SCOPES,
    SESSION_SCOPES,
    USER_SCOPES,
    Caller,
    Principal,
)
from backendai_hub.core.errors import InvalidRequestError, NotFoundError
from backendai_hub.core.sessions import Session
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_verbs import (
    HoldRequest,
    hold_session,
    set_priority,
)
from backendai_hub.operations.queues import QueueQuery, read_queue
from backendai_hub.operations.stops import FreezeRequest, freeze_group
from backendai_hub.operations.users import ensure_user, make_principal
from tests.factories import Clock, add_node, schedule, submit
from tests.tenants import ROOT, Office, make_ready


@pytest.fixture
def clock(platform: Platform) -> Clock:
    made = platform.database.clock
    assert isinstance(made, Clock)
    return made


async def person(platform: Platform, name: str, caller: Caller) -> Principal:
    actor = await ensure_user(platform, name)
    made = make_principal(actor, scopes=USER_SCOPES | ADMIN_SCOPES, credential="test")
    return msgspec.structs.replace(made, caller=caller)


async def ask(platform: Platform, name: str, server: str = "one") -> Session:
    made = (await submit(platform, name, server=server, slots={"cpu": 4})).session
    await make_ready(platform, made.id)
    return made


async def seen(
    platform: Platform, who: Principal, **query: int
) -> list[tuple[int, str]]:
    page = await read_queue(platform, who, "default", QueueQuery(**query))
    return [(entry.position, entry.owner) for entry in page.items]


async def test_the_queue_is_in_the_order_in_which_sessions_start(
    platform: Platform, clock: Clock
):
    sessions = {}
    for name in ("ann", "bob", "cy"):
        sessions[name] = await ask(platform, name)
        clock.pass_(10)
    await set_priority(platform, ROOT, sessions["cy"].id, 20)
    page = await read_queue(platform, ROOT, "default", QueueQuery())
    assert [entry.owner for entry in page.items] == ["cy", "ann", "bob"]
    assert [entry.position for entry in page.items] == [1, 2, 3]
    assert [entry.waited for entry in page.items] == [10, 30, 20]
    assert [entry.priority for entry in page.items] == [20, 10, 10]
    assert page.length == 3
    await add_node(platform)
    assert await schedule(platform) == 1
    assert await seen(platform, ROOT) == [(1, "ann"), (2, "bob")]


async def test_who_is_held_keeps_their_position_and_is_shown_why(
    platform: Platform, clock: Clock
):
    first = await ask(platform, "ann")
    clock.pass_(1)
    await ask(platform, "bob")
    await hold_session(platform, ROOT, first.id, HoldRequest(reason="audit"))
    page = await read_queue(platform, ROOT, "default", QueueQuery())
    assert page.items[0].reason.endswith(
        "held by admin since 2026-01-01 00:00 UTC: audit"
    )
    assert page.items[0].owner == "ann"


async def test_a_user_sees_their_own_position_and_nobody_elses_anything(
    platform: Platform, clock: Clock
):
    for name in ("ann", "bob", "ann"):
        await ask(platform, name, f"s{clock.now.second}")
        clock.pass_(1)
    ann = await person(platform, "ann", Caller.USER)
    page = await read_queue(platform, ann, "default", QueueQuery())
    assert [(e.position, e.owner) for e in page.items] == [(1, "ann"), (3, "ann")]
    assert page.length is None
    assert "bob" not in msgspec.json.encode(page).decode()


async def test_a_domain_admin_sees_their_domain_and_superadmins_and_monitors_all(
    platform: Platform, clock: Clock
):
    office = Office(platform)
    await office.make_domain("amber")
    await office.make("project", name="stone", domain="amber")
    await office.make("user", name="zoe", domain="amber")
    await office.join("amber:stone", "zoe")
    for name in ("ann", "zoe", "bob"):
        await ask(platform, name)
        clock.pass_(1)
    dora = await person(platform, "dora", Caller.DOMAIN_ADMIN)
    monitor = msgspec.structs.replace(ROOT, caller=Caller.MONITOR)
    assert await seen(platform, dora) == [(1, "ann"), (3, "bob")]
    for who in (ROOT, monitor):
        assert await seen(platform, who) == [(1, "ann"), (2, "zoe"), (3, "bob")]


async def test_a_notebook_sees_its_users_position(platform: Platform):
    await ask(platform, "bob")
    await ask(platform, "ann")
    ann = await person(platform, "ann", Caller.USER)
    inside = msgspec.structs.replace(ann, scopes=SESSION_SCOPES)
    assert await seen(platform, inside) == [(2, "ann")]


async def test_it_goes_over_pages(platform: Platform, clock: Clock):
    for number in range(5):
        await ask(platform, "ann" if number % 2 else "bob", f"s{number}")
        clock.pass_(1)
    ann = await person(platform, "ann", Caller.USER)
    page = await read_queue(platform, ann, "default", QueueQuery(limit=1))
    assert ([e.position for e in page.items], page.next) == ([2], 2)
    page = await read_queue(platform, ann, "default", QueueQuery(limit=1, after=2))
    assert ([e.position for e in page.items], page.next) == ([4], None)
    for query in (QueueQuery(limit=0), QueueQuery(limit=201), QueueQuery(after=-1)):
        with pytest.raises(InvalidRequestError):
            await read_queue(platform, ann, "default", query)


async def test_another_groups_queue_is_not_found_and_a_frozen_one_says_so(
    platform: Platform,
):
    office = Office(platform)
    await office.make("resource-group", name="secret")
    ann = await person(platform, "ann", Caller.USER)
    with pytest.raises(NotFoundError):
        await read_queue(platform, ann, "secret", QueueQuery())
    await freeze_group(platform, ROOT, "default", FreezeRequest(reason="power"))
    page = await read_queue(platform, ann, "default", QueueQuery())
    assert page.freeze is not None
    assert page.freeze.reason == "power"
    assert page.items == []
