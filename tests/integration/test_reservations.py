"""Reservations: refused when they contradict themselves or others, heeded in time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from backendai_hub.core.access import Caller
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
)
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.operations import nouns
from backendai_hub.operations.explain import ExplanationDesk
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queue_view import QueueView, load_snapshot
from backendai_hub.operations.users import ensure_user
from tests.factories import (
    START,
    Clock,
    add_node,
    make_device,
    make_gpu,
    principal_of,
    schedule,
    start,
    submit,
)
from tests.tenants import Office, read, why

HOUR = 3600


@pytest.fixture
async def office(platform: Platform) -> Office:
    return Office(platform)


@pytest.fixture
def clock(platform: Platform) -> Clock:
    made = platform.database.clock
    assert isinstance(made, Clock)
    return made


def at(hours: float) -> str:
    return (START + timedelta(hours=hours)).isoformat()


async def reserve(office: Office, **changes: Any) -> Any:
    """Reserve n1 from hour 2 to hour 4 for maintenance, but for what is changed."""
    fields = {
        "name": "fans",
        "kind": "maintenance",
        "resource_group": "default",
        "begins_at": at(2),
        "ends_at": at(4),
        **({} if "amounts" in changes else {"nodes": ["n1"]}),
        **changes,
    }
    return await office.make("reservation", **fields)


async def limit_lifetime(office: Office, name: str, hours: float) -> None:
    """Say how long somebody's sessions run at most."""
    await office.limit_user(name, max_session_lifetime=int(hours * HOUR))


async def ask(platform: Platform, name: str, server: str = "one") -> Session:
    return (await submit(platform, name, server=server, slots={"cpu": 1})).session


async def status(platform: Platform, session: Session) -> SessionStatus:
    return (await read(platform, session)).status


# --- what is heeded -------------------------------------------------------------------


async def test_before_the_window_who_would_reach_into_it_waits_and_is_told_its_name(
    platform: Platform, office: Office
):
    await add_node(platform, "n1")
    await limit_lifetime(office, "alice", 3)
    await limit_lifetime(office, "bob", 1)
    await reserve(office)
    long, short = await ask(platform, "alice"), await ask(platform, "bob")

    assert "kept for a reservation from" in await why(platform, long)
    assert await status(platform, short) is SessionStatus.SCHEDULED


async def test_a_reservations_name_is_told_to_those_who_may_read_reservations(
    platform: Platform, office: Office
):
    await add_node(platform, "n1")
    await reserve(office)
    waits = await ask(platform, "alice")
    alice = await principal_of(platform, "alice", Caller.USER)
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    desk = ExplanationDesk()
    theirs = (await desk.explain(platform, alice, waits.id)).reasons
    assert "kept for a reservation from 2026-01-01 02:00" in theirs[0]
    assert "fans" not in "".join(theirs)
    more = (await desk.explain(platform, root, waits.id)).reasons
    assert "kept for the reservation fans (a reservation from 2026-01-01" in more[0]


async def test_another_node_takes_who_would_reach_into_the_window(
    platform: Platform, office: Office
):
    for name in ("n1", "n2"):
        await add_node(platform, name)
    await limit_lifetime(office, "alice", 3)
    await reserve(office)
    session = await start(platform, slots={"cpu": 1})
    assert (await read(platform, session)).agent == "n2"


async def test_who_does_not_say_how_long_is_kept_off_from_a_day_before(
    platform: Platform, office: Office, clock: Clock
):
    await add_node(platform, "n1")
    await reserve(office, begins_at=at(48), ends_at=at(49))
    early = await ask(platform, "alice")
    assert await schedule(platform) == 1
    clock.pass_(24 * HOUR)
    late = await ask(platform, "bob")
    assert await status(platform, early) is SessionStatus.SCHEDULED
    assert "kept for a reservation from" in await why(platform, late)


async def test_in_a_class_only_those_it_names_start_and_after_it_everybody(
    platform: Platform, office: Office, clock: Clock
):
    await add_node(platform, "n1")
    for name in ("alice", "bob"):
        await ensure_user(platform, name)
    await reserve(office, name="physics-1", kind="class", users=["bob"])
    clock.pass_(2 * HOUR)
    other, pupil = await ask(platform, "alice"), await ask(platform, "bob")

    assert "kept for a reservation from" in await why(platform, other)
    assert await status(platform, pupil) is SessionStatus.SCHEDULED
    clock.pass_(2 * HOUR)
    assert await schedule(platform) == 1
    assert await status(platform, other) is SessionStatus.SCHEDULED


async def test_a_class_may_be_for_a_project_or_a_domain(
    platform: Platform, office: Office, clock: Clock
):
    await add_node(platform, "n1")
    await ensure_user(platform, "bob")
    await office.make("project", name="physics", domain="default")
    await office.join("default:physics", "bob")
    await reserve(office, kind="class", projects=["default:physics"])
    clock.pass_(2 * HOUR)
    outside = await ask(platform, "bob", "a")
    assert "kept for a reservation from" in await why(platform, outside)
    inside = await submit(
        platform, "bob", server="b", project="physics", slots={"cpu": 1}
    )
    assert await schedule(platform) == 1
    assert await status(platform, inside.session) is SessionStatus.SCHEDULED
    await office.purge("reservation", "fans")
    await reserve(office, name="everybody", kind="class", domains=["default"])
    assert await schedule(platform) == 1


async def test_during_maintenance_nobody_starts_and_what_runs_goes_on(
    platform: Platform, office: Office, clock: Clock
):
    await add_node(platform, "n1")
    running = await start(platform, slots={"cpu": 1})
    await reserve(office)
    clock.pass_(3 * HOUR)
    waiting = await ask(platform, "bob")
    assert "kept for a reservation from" in await why(platform, waiting)
    assert await status(platform, running) is SessionStatus.SCHEDULED


async def test_removing_a_reservation_lets_those_start_who_waited_for_it(
    platform: Platform, office: Office
):
    await add_node(platform, "n1")
    await reserve(office)
    session = await ask(platform, "alice")
    assert "kept for a reservation" in await why(platform, session)
    await office.purge("reservation", "fans")
    assert await schedule(platform) == 1


async def test_what_is_kept_in_memory_sees_reservations_come_change_and_go(
    platform: Platform, office: Office
):
    await add_node(platform, "n1")
    await ask(platform, "alice")
    view = QueueView(platform)
    await view.refresh()
    for change in (
        lambda: reserve(office),
        lambda: office.change("reservation", "fans", ends_at=at(6)),
        lambda: office.purge("reservation", "fans"),
    ):
        await change()
        assert await view.refresh()
        assert view.snapshot() == await load_snapshot(platform)


async def test_amounts_come_to_devices_that_nobody_has_reserved_at_that_time(
    platform: Platform, office: Office, clock: Clock
):
    gpus = [make_gpu(f"g{number}") for number in range(3)]
    await add_node(platform, "n1", [make_device(), *gpus])
    await reserve(office, amounts={"cuda.device": "2"})
    with pytest.raises(ConflictError, match="leave at that time: fans"):
        await reserve(office, name="b", amounts={"cuda.device": "2"})
    await reserve(office, name="c", begins_at=at(4), ends_at=at(5), nodes=["n1"])
    clock.pass_(2 * HOUR)
    asked = {"slots": {"cpu": 0.5, "cuda.device": 1}}
    one = (await submit(platform, "alice", server="a", **asked)).session
    two = (await submit(platform, "alice", server="b", **asked)).session
    assert await schedule(platform) == 0  # they do not say how long, and c begins soon
    await office.purge("reservation", "c")
    assert await schedule(platform) == 1
    assert await status(platform, one) is SessionStatus.SCHEDULED
    assert "kept for a reservation from" in await why(platform, two)


# --- what is refused ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"ends_at": at(2)},
            "2026-01-01 02:00 UTC is not after the beginning",
        ),
        ({"ends_at": at(1)}, "is not after the beginning"),
        ({"begins_at": at(-4), "ends_at": at(-1)}, "has gone by"),
        ({"begins_at": "2026-01-01T02:00:00"}, "is no time with its zone"),
        ({"begins_at": "9999-12-31T23:59:59-12:00"}, "is no time with its zone"),
        ({"begins_at": "soon"}, "is no time with its zone"),
        ({"nodes": ["n7"]}, "nodes: there is no node 'n7' in this resource group"),
        ({"nodes": ["far"]}, "nodes: there is no node 'far' in this resource group"),
        ({"nodes": []}, "nodes: say what is reserved: nodes, or amounts"),
        ({"amounts": {"cpu": "1"}, "nodes": ["n1"]}, "either nodes or amounts"),
        ({"amounts": {"cpu": "5"}}, "amounts: cpu 5 is more than the 4 that the"),
        ({"amounts": {"rocm.device": "1"}}, "there is no resource 'rocm.device'"),
        ({"users": ["alice"]}, "kind: maintenance is for nobody"),
        ({"kind": "class"}, "kind: a class is for somebody"),
        ({"kind": "class", "users": ["zoe"]}, "users: there is no user 'zoe'"),
        ({"kind": "class", "projects": ["x:y"]}, "there is no project 'x:y'"),
        ({"kind": "feast"}, "kind: 'feast' will not do"),
        ({"resource_group": "nowhere"}, "there is no resource-group 'nowhere'"),
    ],
)
async def test_what_contradicts_itself_or_is_not_there_is_refused(
    platform: Platform, office: Office, changes: dict[str, Any], words: str
):
    await add_node(platform, "n1")
    await add_node(platform, "far")
    await office.make("resource-group", name="other")
    await office.move_node("far", "other")
    await ensure_user(platform, "alice")
    with pytest.raises(InvalidRequestError) as refused:
        await reserve(office, **changes)
    assert words in refused.value.message
    assert await office.list("reservation") == []


async def test_nodes_are_reserved_once_for_the_same_time(
    platform: Platform, office: Office
):
    for name in ("n1", "n2"):
        await add_node(platform, name)
    await reserve(office)
    with pytest.raises(ConflictError, match="the reservation fans has some of this"):
        await reserve(office, name="b", begins_at=at(3), ends_at=at(5))
    await reserve(office, name="c", begins_at=at(4), ends_at=at(5))
    await reserve(office, name="d", nodes=["n2"])


async def test_it_is_not_made_longer_into_anothers_time(
    platform: Platform, office: Office, clock: Clock
):
    await add_node(platform, "n1")
    await reserve(office)
    await reserve(office, name="next", begins_at=at(5), ends_at=at(6))
    assert (await office.change("reservation", "fans", ends_at=at(5))).ends_at == (
        "2026-01-01T05:00:00.000Z"
    )
    with pytest.raises(ConflictError, match="the reservation next has some of this"):
        await office.change("reservation", "fans", ends_at=at(5.5))
    with pytest.raises(InvalidRequestError, match="is not after the beginning"):
        await office.change("reservation", "fans", ends_at=at(1))
    clock.pass_(3 * HOUR)
    with pytest.raises(InvalidRequestError, match="has gone by"):
        await office.change("reservation", "fans", ends_at=at(2.5))


async def test_nodes_are_shown_by_name_whichever_way_they_were_given(
    platform: Platform, office: Office
):
    node = await add_node(platform, "n1")
    shown = await reserve(office, nodes=[node.id])
    assert shown.nodes == ["n1"]
    assert shown.begins_at == "2026-01-01T02:00:00.000Z"


async def test_only_superadmins_reserve_and_people_are_told_of_nothing_but_the_reason(
    platform: Platform, office: Office
):
    await add_node(platform, "n1")
    await reserve(office)
    noun = noun_of("reservation")
    for caller in (Caller.USER, Caller.DOMAIN_ADMIN):
        who = await principal_of(platform, "alice", caller)
        with pytest.raises(NotFoundError):
            await nouns.read_noun(platform, who, noun, "fans")
        body = noun.create_type(
            name="mine",
            kind="maintenance",
            resource_group="default",
            begins_at=at(8),
            ends_at=at(9),
            nodes=["n1"],
        )
        with pytest.raises(ForbiddenError):
            await nouns.create_noun(platform, who, noun, body)


async def test_a_reservation_leaves_a_row(platform: Platform, office: Office):
    await add_node(platform, "n1")
    await reserve(office)
    await office.change("reservation", "fans", ends_at=at(5))
    await office.purge("reservation", "fans")
    async with platform.database.read() as connection:
        rows = await connection.execute(
            text(
                "SELECT action FROM audit"
                " WHERE object_kind = 'reservation' ORDER BY seq"
            )
        )
        assert [action for (action,) in rows] == [
            "reservation:create",
            "reservation:update",
            "reservation:purge",
        ]
