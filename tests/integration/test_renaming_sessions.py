"""Sessions that are called something else, and where they stand in lists."""

from __future__ import annotations

import msgspec
import pytest
from sqlalchemy import text

from backendai_hub.api.explanations import Why
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
)
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.core.times import format_time
from backendai_hub.operations.kept_explanations import keep_explanations
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.session_names import rename_session
from backendai_hub.operations.sessions import (
    ListQuery,
    get_session,
    list_messages,
    list_sessions,
    terminate_session,
)
from tests.factories import add_node, principal_of
from tests.jobs import State, ask, begin, tell
from tests.tenants import ROOT, read


async def audited(platform: Platform) -> list[str]:
    async with platform.database.read() as connection:
        rows = await connection.execute(
            text(
                "SELECT object_name FROM audit"
                " WHERE action = 'session:rename' ORDER BY seq"
            )
        )
        return [name for (name,) in rows]


async def test_a_session_that_runs_gets_another_name_and_goes_on(platform: Platform):
    node = await add_node(platform)
    session = await begin(platform, name="first")
    await tell(platform, node, session, State.RUNNING)
    alice = await principal_of(platform, "alice", Caller.USER)
    before = await read(platform, session)

    renamed = await rename_session(platform, alice, session.id, "second")
    await rename_session(platform, alice, session.id, "second")

    assert renamed.name == "second"
    assert renamed.status is SessionStatus.RUNNING
    assert renamed.url == before.url
    assert await audited(platform) == ["first"]
    told = await list_messages(platform, alice, after=0, session_id=session.id)
    news = [one for one in told if one.kind == "session.renamed"]
    assert [one.text for one in news] == ["named second instead of first by alice"]
    assert news[0].session is not None
    assert news[0].session.name == "second"


async def test_names_of_what_has_not_ended_are_told_apart(platform: Platform):
    first, second = (
        await ask(platform, name="first"),
        await ask(platform, name="second"),
    )
    alice = await principal_of(platform, "alice", Caller.USER)

    with pytest.raises(ConflictError, match="another live session"):
        await rename_session(platform, alice, second.id, "first")
    with pytest.raises(InvalidRequestError, match="letters"):
        await rename_session(platform, alice, second.id, "a/b")
    await terminate_session(platform, alice, first.id)
    assert (await rename_session(platform, alice, second.id, "first")).name == "first"
    with pytest.raises(ConflictError, match="keeps its name"):
        await rename_session(platform, alice, first.id, "third")


async def test_strangers_do_not_find_it_and_who_runs_the_site_may_rename_it(
    platform: Platform,
):
    session = await ask(platform, name="first")
    mallory = await principal_of(platform, "mallory", Caller.USER)

    with pytest.raises(NotFoundError):
        await rename_session(platform, mallory, session.id, "stolen")
    assert (await rename_session(platform, ROOT, session.id, "tidy")).name == "tidy"
    assert await audited(platform) == ["first"]


async def test_a_page_says_where_those_on_it_stand_that_wait(platform: Platform):
    first, second = (
        await ask(platform, name="first"),
        await ask(platform, name="second"),
    )
    alice = await principal_of(platform, "alice", Caller.USER)
    told = Why(
        session=second.id,
        status=SessionStatus.PENDING,
        reasons=["no room"],
        position=2,
        waiting=2,
    )
    await keep_explanations(platform, [told])

    page = await list_sessions(platform, alice, ListQuery())

    place = page.places[second.id]
    assert (place.position, place.waiting) == (2, 2)
    shown = await get_session(platform, alice, second.id)
    assert shown.why is not None
    assert place.at == shown.why.at != format_time(None)
    assert first.id not in page.places
    await terminate_session(platform, alice, second.id)
    page = await list_sessions(platform, alice, ListQuery())
    assert page.places == {}
    assert "places" in msgspec.to_builtins(page)
