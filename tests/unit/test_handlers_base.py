"""How requests come in and refusals go out, whatever the route does."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from sqlalchemy.exc import OperationalError
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application

from backendai_hub.core.access import Action
from backendai_hub.core.errors import ConflictError, TooManyRequestsError
from backendai_hub.db.engine import Database
from backendai_hub.db.signals import Signals
from backendai_hub.handlers.base import (
    ACT_FOR,
    APIHandler,
    Credentials,
    Service,
    operation,
)
from backendai_hub.handlers.routes import patterns
from tests.factories import AUDIT_KEY, Clock, make_platform, prepare
from tests.harness import migrated


class Wish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: int


class Query(msgspec.Struct, frozen=True, kw_only=True):
    limit: int = 20
    open: bool = False


class WishesHandler(APIHandler):
    path = "wishes"
    most_body = 100

    @operation(Action.READ_VERSION, query=Query)
    async def get(self) -> Query:
        return self.decode_query(Query)

    @operation(Action.READ_VERSION, status=201)
    async def post(self, body: Wish) -> Wish:
        return body


class WhoHandler(APIHandler):
    path = "who/{name}"

    @operation(Action.READ_SELF)
    async def get(self, name: str) -> list[str]:
        return [name, self.principal.name, self.require_user().name]


FAILURES: dict[str, Exception] = {
    "conflict": ConflictError("it is taken; choose another", name="lab"),
    "later": TooManyRequestsError("wait a little", retry_after=7),
    "database": OperationalError("SELECT secret", {}, Exception("gone")),
    "bug": KeyError("a secret"),
}


class FailHandler(APIHandler):
    """Fails as it is told to."""

    path = "fail/{how}"

    @operation(Action.READ_VERSION)
    async def get(self, how: str) -> None:
        raise FAILURES[how]


class Client:
    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.session = session

    async def ask(self, method: str, path: str, **options: Any) -> tuple[int, Any, Any]:
        async with self.session.request(method, self.url + path, **options) as answer:
            return answer.status, answer.headers, await answer.json(content_type=None)


@pytest.fixture
async def client(memory_dir: Path) -> AsyncIterator[Client]:
    path = memory_dir / "handlers.sqlite"
    path.write_bytes(migrated())
    url = f"sqlite+aiosqlite:///{path}"
    database = Database(url, clock=Clock(), audit_key=AUDIT_KEY)
    platform = make_platform(database)
    await prepare(platform)
    service = Service(
        platform=platform,
        signals=Signals(),
        credentials=Credentials(spawner="spawners", router="routers"),
        prefix="/x/",
    )
    routes = patterns((WishesHandler, WhoHandler, FailHandler), "/x/")
    server = HTTPServer(
        Application(routes, service=service, log_function=lambda handler: None)
    )
    socket, port = bind_unused_port()
    server.add_socket(socket)
    async with aiohttp.ClientSession() as session:
        yield Client(f"http://127.0.0.1:{port}/x/", session)
    server.stop()
    await server.close_all_connections()
    await database.close()


async def test_a_body_is_read_and_answered_with_the_routes_status(client: Client):
    status, _, body = await client.ask("POST", "wishes", json={"count": 1})
    assert (status, body) == (201, {"count": 1})


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"[]", "Expected `object`"),
        (b'{"count": "1"}', "Expected `int`"),
        (b'{"count": 1.5}', "Expected `int`"),
        (b'{"count": true}', "Expected `int`"),
        (b'{"count": 1e400}', "count"),
        (b'{"count": 1, "colour": 2}', "colour"),
        (b'{"count": NaN}', "malformed"),
        (b"\xff", "malformed"),
        (b"[" * 100, "Expected `object`"),
    ],
)
async def test_a_body_that_is_not_what_the_route_reads_is_refused(
    client: Client, data: bytes, word: str
):
    headers = {"Content-Type": "application/json; charset=utf-8"}
    status, _, body = await client.ask("POST", "wishes", data=data, headers=headers)
    assert (status, body["code"]) == (400, "malformed-request")
    assert word in body["detail"]


async def test_a_body_has_to_say_that_it_is_json(client: Client):
    """So that no form of a foreign page can send one."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "", "x/json"):
        status, _, body = await client.ask(
            "POST", "wishes", data=b'{"count": 1}', headers={"Content-Type": kind}
        )
        assert status == 400, kind
        assert "application/json" in body["detail"]


async def test_a_body_over_the_routes_limit_is_refused_with_its_numbers(
    client: Client,
):
    headers = {"Content-Type": "application/json"}
    full = b'{"count": 1}'.ljust(100)
    assert (await client.ask("POST", "wishes", data=full, headers=headers))[0] == 201
    status, _, body = await client.ask(
        "POST", "wishes", data=full + b" ", headers=headers
    )
    assert (status, body["code"]) == (413, "too-large")
    assert "101 bytes; the most is 100" in body["detail"]


async def test_parameters_are_read_by_type_and_unknown_ones_refused(client: Client):
    _, _, body = await client.ask("GET", "wishes?limit=5&open=true")
    assert body == {"limit": 5, "open": True}
    for query, word in (("limit=x", "int"), ("limits=5", "limit, open"), ("=1", "''")):
        status, _, body = await client.ask("GET", f"wishes?{query}")
        assert status == 400
        assert word in body["detail"]


async def test_the_spawner_names_its_user_in_utf_8(client: Client):
    name = "jürgen"
    headers = {"Authorization": "token spawners", ACT_FOR: name}
    status, _, body = await client.ask("GET", "who/a%20b", headers=headers)
    assert (status, body) == (200, ["a b", name, name])
    del headers[ACT_FOR]
    status, _, body = await client.ask("GET", "who/a", headers=headers)
    assert status == 400
    assert ACT_FOR in body["detail"]


@pytest.mark.parametrize("sent", ["token", "token ", "Token x", "spawners", "token é"])
async def test_what_is_no_token_of_ours_is_nobody(client: Client, sent: str):
    headers = {"Authorization": sent, ACT_FOR: "alice"}
    status, got, body = await client.ask("GET", "who/a", headers=headers)
    assert (status, body["code"]) == (401, "unauthenticated")
    assert got["WWW-Authenticate"].startswith("token")


async def test_a_refusal_is_a_problem_document_with_its_fields(client: Client):
    status, headers, body = await client.ask("GET", "fail/conflict")
    assert headers["Content-Type"] == "application/problem+json"
    assert body == {
        "type": "about:blank#conflict",
        "title": "The present state does not allow this",
        "status": status,
        "detail": "it is taken; choose another",
        "code": "conflict",
        "request_id": headers["X-Request-Id"],
        "fields": {"name": "lab"},
    }


async def test_a_refusal_that_passes_says_when_to_come_back(client: Client):
    status, headers, _ = await client.ask("GET", "fail/later")
    assert (status, headers["Retry-After"]) == (429, "7")


@pytest.mark.parametrize(("how", "expected"), [("database", 503), ("bug", 500)])
async def test_what_is_unexpected_is_logged_with_an_id_and_told_without_details(
    client: Client, how: str, expected: int, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.ERROR, "backendai_hub.handlers"):
        status, headers, body = await client.ask("GET", f"fail/{how}")
    assert status == expected
    assert "secret" not in str(body)
    assert body["request_id"] == headers["X-Request-Id"]
    [logged] = [r for r in caplog.records if body["request_id"] in r.getMessage()]
    assert logged.exc_info is not None
    assert logged.exc_info[1] is FAILURES[how]


async def test_every_answer_forbids_guessing_keeping_and_framing(client: Client):
    for path in ("wishes", "fail/bug"):
        _, headers, _ = await client.ask("GET", path)
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "Server" not in headers
