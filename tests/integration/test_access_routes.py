"""Every route and method, asked with every credential, as the table says."""

from __future__ import annotations

import re
import ssl
import uuid

import aiohttp
import pytest

from backendai_hub.core.access import MATRIX, Action, Caller
from backendai_hub.handlers.base import ACT_FOR, APIHandler
from backendai_hub.handlers.console import ConsoleHandler
from backendai_hub.handlers.routes import AGENTS, API
from tests.harness import Stack

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
HUB_NAME = "hub.backendai.internal"


def credentials(stack: Stack) -> dict[str, tuple[Caller, dict[str, str]]]:
    """Return what is sent by whom; without a JupyterHub other tokens are nobody's."""
    spawner = {"Authorization": f"token {stack.token('spawner')}"}
    return {
        "nobody": (Caller.ANONYMOUS, {}),
        "a foreign token": (Caller.ANONYMOUS, {"Authorization": f"token {'x' * 43}"}),
        "an empty token": (Caller.ANONYMOUS, {"Authorization": "token "}),
        "a token of another kind": (
            Caller.ANONYMOUS,
            {"Authorization": f"Basic {stack.token('spawner')}"},
        ),
        "a name without a token": (Caller.ANONYMOUS, {ACT_FOR: "alice"}),
        "the spawner for a user": (
            Caller.SPAWNER,
            {**spawner, ACT_FOR: f"user-{uuid.uuid4()}"},
        ),
        "the spawner for nobody": (Caller.SPAWNER, spawner),
        "the router": (
            Caller.ROUTER,
            {"Authorization": f"Bearer {stack.token('router')}", ACT_FOR: "alice"},
        ),
    }


def expected(handler: type[APIHandler], method: str, caller: Caller) -> str:
    """Say what the table makes of it: a status, or that it is let in."""
    described = getattr(getattr(handler, method.lower()), "operation", None)
    if described is None:
        return "405"
    if caller in MATRIX[described.action]:
        return "let in"
    return "401" if caller is Caller.ANONYMOUS else "403"


def concrete(path: str) -> str:
    return re.sub(r"\{[a-z_]+\}", lambda _: str(uuid.uuid4()), path)


async def ask(
    session: aiohttp.ClientSession, method: str, url: str, **options
) -> tuple[str, int]:
    """Return the answer in the words of :func:`expected`; a body is not awaited."""
    if method not in {"GET", "HEAD", "OPTIONS"}:
        options["json"] = {}
    async with session.request(method, url, **options) as response:
        status = response.status
    assert status < 500, (method, url, status)
    return (str(status) if status in {401, 403, 405} else "let in"), status


@pytest.fixture
async def browser():
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        yield session


async def test_every_route_lets_in_whom_the_table_names_and_nobody_else(
    shared_service: Stack, browser: aiohttp.ClientSession
):
    wrong = []
    for who, (caller, headers) in credentials(shared_service).items():
        for handler in API:
            for method in METHODS:
                url = f"{shared_service.url}{concrete(handler.path)}"
                said, status = await ask(browser, method, url, headers=headers)
                wanted = expected(handler, method, caller)
                if said != wanted:
                    wrong.append((who, method, handler.path, wanted, status))
    assert wrong == []


async def test_the_console_is_for_people(
    shared_service: Stack, browser: aiohttp.ClientSession
):
    """Nobody is sent to log in (or told that there is no JupyterHub to do so)."""
    assert set(MATRIX[Action.OPEN_CONSOLE]) == {Caller.USER, Caller.SUPERADMIN}
    for who, (caller, headers) in credentials(shared_service).items():
        for page in ("", "sessions", "sessions/x"):
            _, status = await ask(
                browser, "GET", f"{shared_service.url}{page}", headers=headers
            )
            assert status == (404 if caller is Caller.ANONYMOUS else 403), who
    assert ConsoleHandler not in API


async def test_unknown_routes_do_not_say_who_asks(
    shared_service: Stack, browser: aiohttp.ClientSession
):
    for _, headers in credentials(shared_service).values():
        for path in ("api/nothing", "api/sessions/a/b/c", "api/agents/", "agent/v1/x"):
            url = f"{shared_service.url}{path}"
            _, status = await ask(browser, "GET", url, headers=headers)
            assert status == 404, path


def tls(stack: Stack, certificate: str | None, key: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(stack.folder.key("ca.crt")))
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context


async def test_the_nodes_listener_knows_callers_by_their_certificate_only(
    shared_service: Stack, browser: aiohttp.ClientSession
):
    stack = shared_service
    node = stack.folder.root / "agent"
    contexts = {
        "nobody": (Caller.ANONYMOUS, tls(stack, None, None)),
        "the router": (
            Caller.ANONYMOUS,
            tls(
                stack,
                str(stack.folder.key("router.crt")),
                str(stack.folder.key("router.key")),
            ),
        ),
        "a node": (
            Caller.AGENT,
            tls(stack, str(node / "agent.crt"), str(node / "agent.key")),
        ),
    }
    # Tokens of the other listener mean nothing here.
    headers = {"Authorization": f"token {stack.token('spawner')}", ACT_FOR: "alice"}
    base = f"https://127.0.0.1:{stack.agents_port}/"
    for who, (caller, context) in contexts.items():
        trust = {"ssl": context, "server_hostname": HUB_NAME, "headers": headers}
        for handler in AGENTS:
            for method in METHODS:
                said, status = await ask(
                    browser, method, f"{base}{handler.path}", **trust
                )
                wanted = expected(handler, method, caller)
                assert said == wanted, (who, method, handler.path, status)
        for handler in API:
            url = f"{base}{stack.prefix[1:]}{concrete(handler.path)}"
            assert (await ask(browser, "GET", url, **trust))[1] == 404


async def test_the_nodes_routes_are_not_on_the_listener_of_people(
    shared_service: Stack, browser: aiohttp.ClientSession
):
    for handler in AGENTS:
        for base in (
            shared_service.url,
            shared_service.url.replace(shared_service.prefix, "/"),
        ):
            for method in ("GET", "POST", "PUT"):
                said, status = await ask(browser, method, f"{base}{handler.path}")
                assert (said, status) == ("let in", 404)
