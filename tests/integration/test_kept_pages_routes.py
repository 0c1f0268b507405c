"""Pages of sessions that are kept: always what reading them anew would give."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from backendai_hub.core.access import ADMIN_SCOPES, USER_SCOPES, Caller
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.core.tenancy import Role
from backendai_hub.db import tenancy
from backendai_hub.db.signals import Signals
from backendai_hub.handlers.base import Credentials, Service
from backendai_hub.handlers.fast_lane import FastLane
from backendai_hub.handlers.routes import patterns
from backendai_hub.handlers.sessions import MeHandler, SessionsHandler
from backendai_hub.operations.nouns import change_noun, create_noun, find_visible
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.sessions import (
    ListQuery,
    list_sessions,
    terminate_session,
)
from backendai_hub.operations.users import ensure_user, make_principal
from tests.admin import basic
from tests.factories import add_node, principal_of, schedule, submit

PATH = "api/sessions?limit=5"
QUERIES: dict[str, ListQuery] = {
    "": ListQuery(),
    "limit=2": ListQuery(limit=2),
    "status=live": ListQuery(status="live"),
    "owner=%2A&order=created_at": ListQuery(owner="*", order="created_at"),
    "search=s&type=interactive&order=name": ListQuery(
        search="s", type="interactive", order="name"
    ),
}
TOLD_ANEW = {"X-Request-Id", "Date", "X-RateLimit-Remaining"}


class Site:
    """A real server; the application behind the lane tells what has come so far."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.usual: list[str] = []
        self.keys: dict[str, str] = {}
        self.service = Service(
            platform=platform,
            signals=Signals(),
            credentials=Credentials(spawner="spawners", router="routers"),
            prefix="/x/",
        )
        self._session: aiohttp.ClientSession | None = None
        self._url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Site]:
        def note(handler: RequestHandler) -> None:
            self.usual.append(handler.request.uri or "")

        application = Application(
            patterns((SessionsHandler, MeHandler), "/x/"),
            service=self.service,
            log_function=note,
        )
        server = HTTPServer(FastLane(application, self.service), xheaders=True)
        socket, port = bind_unused_port()
        server.add_socket(socket)
        self._url = f"http://127.0.0.1:{port}/x/"
        async with aiohttp.ClientSession() as self._session:
            yield self
        server.stop()
        await server.close_all_connections()

    async def join(
        self, name: str, role: Role = Role.USER, rate_limit: int = 30_000
    ) -> None:
        """Let somebody come, with a keypair of their own."""
        actor = await ensure_user(self.platform, name)
        async with self.platform.database.transaction() as tx:
            await tenancy.change_user(tx, actor.id, role=str(role))
        actor = await ensure_user(self.platform, name)
        principal = make_principal(
            actor, scopes=USER_SCOPES | ADMIN_SCOPES, credential="first"
        )
        noun = noun_of("keypair")
        is_admin = role is not Role.USER
        body = noun.create_type(user=name, is_admin=is_admin)
        made: Any = await create_noun(self.platform, principal, noun, body)
        root = msgspec.structs.replace(
            principal, caller=Caller.SUPERADMIN, role=Role.SUPERADMIN
        )
        async with self.platform.database.read() as connection:
            item = await find_visible(connection, root, noun, made.name)
        await change_noun(
            self.platform,
            root,
            noun,
            item["id"],
            noun.change_type(rate_limit=rate_limit),
        )
        self.keys[name] = basic(made.name, made.secret)

    async def get(
        self, name: str, path: str = PATH, **headers: str
    ) -> tuple[int, Mapping[str, str], bytes]:
        assert self._session is not None
        given = {"Authorization": self.keys[name], **headers}
        async with self._session.get(f"{self._url}{path}", headers=given) as answer:
            return answer.status, answer.headers, await answer.read()

    async def fresh(self, name: str, query: ListQuery) -> bytes:
        """Read a page from the database, past everything that is kept."""
        role = {"root": Caller.SUPERADMIN}.get(name, Caller.USER)
        principal = await principal_of(self.platform, name, role)
        page = await list_sessions(self.platform, principal, query)
        return msgspec.json.encode(page)


@pytest.fixture
async def site(platform: Platform) -> AsyncIterator[Site]:
    async with Site(platform).serving() as serving:
        await serving.join("alice")
        await serving.join("bob")
        await serving.join("root", Role.SUPERADMIN)
        yield serving


async def test_both_ways_answer_the_same(site: Site):
    await submit(site.platform)

    usual = await site.get("alice")
    fast = await site.get("alice")

    assert len(site.usual) == 1
    assert usual[0] == fast[0] == 200
    assert usual[2] == fast[2]
    assert usual[1].keys() == fast[1].keys()
    for name in usual[1].keys() - TOLD_ANEW:
        assert usual[1][name] == fast[1][name], name
    assert usual[1]["X-Request-Id"] != fast[1]["X-Request-Id"]


async def test_requests_are_counted_on_both_ways(site: Site):
    left = [
        int((await site.get("alice"))[1]["X-RateLimit-Remaining"]) for _ in range(3)
    ]

    assert len(site.usual) == 1
    assert left == [left[0], left[0] - 1, left[0] - 2]
    assert [count for count, _ in site.platform.key_uses.take().values()] == [3]


async def test_who_asks_too_often_is_refused_the_usual_way(site: Site):
    await site.join("hasty", rate_limit=3)

    found = [await site.get("hasty") for _ in range(5)]

    assert [status for status, _, _ in found] == [200, 200, 200, 429, 429]
    assert len(site.usual) == 3  # the first, and those that were refused
    for status, headers, body in found[3:]:
        assert msgspec.json.decode(body)["status"] == status
        assert headers["X-RateLimit-Remaining"] == "0"
        assert "Retry-After" in headers


async def test_what_is_not_just_that_goes_the_usual_way(site: Site):
    await site.get("alice")
    for path, headers in (
        ("api/sessions?limit=6", {}),
        ("api/sessions/?limit=5", {}),
        ("api/me", {}),
        (PATH, {"X-Backendai-Act-For": "bob"}),
        (PATH, {"X-Real-Ip": "192.0.2.7"}),
        (PATH, {"Authorization": "Basic wrong"}),
        (f"{PATH}&token=other", {}),
    ):
        before = len(site.usual)
        await site.get("alice", path, **headers)
        assert len(site.usual) == before + 1, (path, headers)


@pytest.mark.parametrize("warm", [1, 2])
async def test_who_is_made_inactive_is_out_with_the_next_request(site: Site, warm: int):
    for _ in range(warm):
        assert (await site.get("alice"))[0] == 200
    noun = noun_of("user")
    root = await principal_of(site.platform, "root", Caller.SUPERADMIN)

    async with site.platform.database.read() as connection:
        alice = await find_visible(connection, root, noun, "alice")
    await change_noun(
        site.platform, root, noun, alice["id"], noun.change_type(status="inactive")
    )

    assert (await site.get("alice"))[0] == 403
    assert (await site.get("bob"))[0] == 200


async def test_an_address_that_may_not_be_used_is_not_let_in_by_another(site: Site):
    assert (await site.get("alice"))[0] == 200
    noun = noun_of("user")
    root = await principal_of(site.platform, "root", Caller.SUPERADMIN)
    async with site.platform.database.read() as connection:
        alice = await find_visible(connection, root, noun, "alice")
    change = noun.change_type(allowed_client_ip=["127.0.0.0/8"])
    await change_noun(site.platform, root, noun, alice["id"], change)

    for _ in range(2):
        assert (await site.get("alice"))[0] == 200
        assert (await site.get("alice", **{"X-Real-Ip": "192.0.2.7"}))[0] == 403


async def _write(site: Site, chance: random.Random, number: int) -> None:
    """Change something that lists of sessions show."""
    platform = site.platform
    name = chance.choice(["alice", "bob"])
    what = chance.choice(["submit", "submit", "end", "end", "force", "place"])
    if what == "submit":
        await submit(platform, name, server=f"s{number}")
    elif what == "place":
        await schedule(platform)
    else:
        principal = await principal_of(platform, name)
        page = await list_sessions(platform, principal, ListQuery(status="live"))
        if page.items:
            chosen = chance.choice(page.items).id
            force = what == "force"
            await terminate_session(platform, principal, chosen, force=force)


@pytest.mark.parametrize("seed", [1, 2])
async def test_whatever_happens_a_page_is_what_reading_it_anew_would_give(
    site: Site, seed: int
):
    chance = random.Random(seed)
    await add_node(site.platform)
    asked = 0
    for number in range(40):
        if chance.random() < 0.3:
            await _write(site, chance, number)
        for _ in range(4):
            name = chance.choice(["alice", "bob", "root"])
            query = chance.choice(list(QUERIES))
            status, _, body = await site.get(name, f"api/sessions?{query}")
            assert status == 200
            assert body == await site.fresh(name, QUERIES[query]), (number, name, query)
            asked += 1
    assert len(site.usual) < asked  # some of them had been kept


async def test_everybody_reads_their_own_writes_while_others_write_and_read(site: Site):
    async def live(name: str) -> set[str]:
        _, _, body = await site.get(name, "api/sessions?status=live&limit=200")
        return {item["id"] for item in msgspec.json.decode(body)["items"]}

    async def work(name: str) -> None:
        for number in range(8):
            made = (await submit(site.platform, name, server=f"s{number}")).session
            assert made.id in await live(name)
            principal = await principal_of(site.platform, name)
            ended = await terminate_session(site.platform, principal, made.id)
            assert ended.status is SessionStatus.CANCELLED
            assert made.id not in await live(name)

    async def look(name: str) -> None:
        while not done.is_set():
            await live(name)

    done = asyncio.Event()
    lookers = [asyncio.create_task(look(n)) for n in ("alice", "alice", "bob", "root")]
    await asyncio.gather(work("alice"), work("bob"))
    done.set()
    await asyncio.gather(*lookers)
