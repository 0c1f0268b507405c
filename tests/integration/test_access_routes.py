"""Every route, asked with every credential, for one's own things and for others'.

What is expected is the committed table (``role-matrix.md``); here each of its cells is
asked of a running service, with the tokens of a real JupyterHub, of a real session in
it, and with the certificate of a real node.
"""

from __future__ import annotations

import dataclasses
import re
import ssl
import typing
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from jupyterhub import orm
from sqlalchemy import insert

from backendai_hub.core.access import (
    ADMIN_SCOPE,
    ADMIN_SCOPES,
    SESSION_SCOPES,
    USER_SCOPE,
    Resource,
    admin_scope,
    user_scope,
)
from backendai_hub.core.names import fold
from backendai_hub.core.tenancy import Role
from backendai_hub.db.tables import ImageRow
from backendai_hub.handlers import matrix
from backendai_hub.handlers.base import ACT_FOR, Operation
from backendai_hub.handlers.console import ConsoleHandler
from backendai_hub.handlers.matrix import COLUMNS, Relation
from backendai_hub.handlers.routes import AGENTS, API
from backendai_hub.handlers.spec import list_operations
from backendai_hub.operations.platform import new_id
from tests.admin import (
    KeyAPI,
    admin_api,
    make_domain,
    make_person,
    opened_database,
)
from tests.harness import Stack, until
from tests.integration.spawner_harness import Hub, configure, serving_gateway

ROOT = Path(__file__).resolve().parents[2]
TABLE = matrix.read_table((ROOT / matrix.TARGET).read_text("utf-8"))
OPERATIONS = {
    f"{described.method.upper()} {path}": (path, described)
    for path, described in list_operations((*API, *AGENTS))
}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
HUB_NAME = "hub.backendai.internal"
UPLOAD = {
    "Tus-Resumable": "1.0.0",
    "Upload-Length": "1",
    "Upload-Metadata": "filename eQ==,conflict cmVuYW1l",
}
STALE = {"If-Match": '"987654321"'}
"""Lets a change through every check but the last one, so that nothing is changed."""


@dataclasses.dataclass
class World:
    """A site with two domains: who asks, and what there is to ask for."""

    hub: Hub
    stack: Stack
    admin: KeyAPI
    things: dict[str, dict[Relation, str]]
    tokens: dict[str, str]
    """JupyterHub tokens by column of the table."""

    def headers(self, column: str) -> dict[str, str]:
        if column == "anonymous":
            return {}
        if column == "router":
            return {"Authorization": f"token {self.stack.token('router')}"}
        if column.startswith("spawner"):
            spawner = f"token {self.stack.token('spawner')}"
            return {"Authorization": spawner, ACT_FOR: "alice"}
        return {"Authorization": f"token {self.tokens[column]}"}


@pytest.fixture
async def hub(hub_app, tmp_path, monkeypatch) -> AsyncIterator[Hub]:
    """A real JupyterHub with a service that asks it who a token belongs to."""
    monkeypatch.chdir(tmp_path)
    async with AsyncExitStack() as world:
        stack = Stack(tmp_path / "data")
        world.callback(stack.stop)
        config = configure(stack)
        # People here have tokens, not passwords, to be looked at now and then.
        config.Authenticator.auth_refresh_age = 0
        await stack.start_service(
            f"--HubService.hub_api_url=http://127.0.0.1:{config.JupyterHub.hub_port}"
            "/hub/api",
            "--HubService.auth_cache_seconds=1",
            f"--HubService.local_folders={tmp_path / 'folders'}",
        )
        await stack.start_agent()
        await world.enter_async_context(serving_gateway(stack.gateway_port))
        http = await world.enter_async_context(aiohttp.ClientSession())
        app = await hub_app(config=config)
        started = Hub(app, stack, http)
        world.push_async_callback(started.forget)
        yield started


@pytest.fixture
async def world(hub: Hub) -> AsyncIterator[World]:
    async with admin_api(hub.stack) as admin:
        things = await make_things(hub.stack, admin)
        yield World(hub, hub.stack, admin, things, await make_tokens(hub))


async def make_things(stack: Stack, admin: KeyAPI) -> dict[str, dict[Relation, str]]:
    """Make one of everything that is alice's, her colleague's, and another domain's."""
    own, mate, foreign = Relation
    amber = await make_domain(admin, "amber", "one", "two")
    beryl = await make_domain(admin, "beryl", "three")
    for domain in ("amber", "beryl"):
        permitted = {"local": ["*"]}
        await admin.change(f"domains/{domain}", allowed_vfolder_hosts=permitted)
    things = {"domains": {own: amber["id"], mate: amber["id"], foreign: beryl["id"]}}
    owners = {own: ("alice", "amber:one"), mate: ("mia", "amber:two")}
    owners[foreign] = ("bob", "beryl:three")
    await make_person(stack, admin, "mona", role=Role.MONITOR)
    await make_person(stack, admin, "ada", role=Role.DOMAIN_ADMIN, domain="amber")
    for relation, (user, project) in owners.items():
        for place, made in (
            await make_tenant(stack, admin, relation, user, project)
        ).items():
            things.setdefault(place, {})[relation] = made
    for place, name in (("slot-types", "cpu"), ("agents", None)):
        status, body = await admin.send("GET", f"api/{place}")
        assert status == 200, body
        first = next(i for i in body["items"] if name in {None, i["name"]})
        things[place] = dict.fromkeys(Relation, first["id"])
    made = await admin.make(
        "reservations",
        name="maintenance",
        kind="maintenance",
        resource_group="default",
        begins_at="2040-01-01T00:00:00Z",
        ends_at="2040-01-02T00:00:00Z",
        amounts={"cpu": "0.001"},
    )
    things["reservations"] = dict.fromkeys(Relation, made["id"])
    return things


async def make_tenant(
    stack: Stack, admin: KeyAPI, relation: Relation, user: str, project: str
) -> dict[str, str]:
    """Make a user in a project, and what is that user's only."""
    word = relation.name.lower()
    domain = project.partition(":")[0]
    made = {"accounts": user}
    policy = await admin.make("keypair-policies", name=f"keys-{word}")
    made["keypair-policies"] = policy["id"]
    made["user-policies"] = (await admin.make("user-policies", name=f"user-{word}"))[
        "id"
    ]
    made["project-policies"] = (
        await admin.make("project-policies", name=f"project-{word}")
    )["id"]
    read = await admin.change(f"projects/{project}", resource_policy=f"project-{word}")
    made["projects"] = read["id"]
    status, body = await admin.send(
        "POST",
        "api/accounts",
        json={"name": user, "domain": domain, "project": project},
    )
    assert status == 201, body
    read = await admin.change(f"users/{user}", resource_policy=f"user-{word}")
    made["users"] = read["id"]
    [usual] = (await admin.get(f"api/keypairs?user={user}"))["items"]
    await admin.change(f"keypairs/{usual['id']}", resource_policy=f"keys-{word}")
    key = await admin.make("keypairs", user=user)
    made["keypairs"] = key["id"]
    async with KeyAPI(stack.url, key["name"], key["secret"]) as person:
        folder = await person.make("folders", name=f"folder-{word}", cloneable=True)
        made["folders"] = folder["id"]
        text = f"api/folders/{folder['id']}/text?path=x"
        status, body = await person.send("PUT", text, json={"text": "."})
        assert status in {200, 201}, body
    made |= await make_resources(stack, admin, word, made, domain)
    async with stack.client(user) as spawner:
        status, body = await spawner.create(name=f"work-{word}")
    assert status == 201, body
    return {**made, "sessions": body["id"]}


async def make_resources(
    stack: Stack, admin: KeyAPI, word: str, made: Mapping[str, str], domain: str
) -> dict[str, str]:
    """Make a resource group, a preset in it, a registry, and an image."""
    group = await admin.make("resource-groups", name=f"group-{word}")
    who = {"kind": "keypair", "name": made["keypairs"]}
    if word != "mate":
        who = {"kind": "domain", "name": domain}
    status, body = await admin.send(
        "POST", f"api/resource-groups/{group['id']}/access", json={"allow": [who]}
    )
    assert status == 200, body
    preset = await admin.make(
        "presets",
        name=f"preset-{word}",
        resource_group=group["id"],
        resource_slots={"cpu": "1", "mem": "1g"},
    )
    registry = await admin.make(
        "registries", name=f"registry-{word}", url="http://127.0.0.1:9"
    )
    domains = (await admin.get(f"api/domains/{domain}"))["allowed_docker_registries"]
    await admin.change(
        f"domains/{domain}",
        allowed_docker_registries=[*domains, f"registry-{word}"],
    )
    image = new_id()
    async with opened_database(stack) as database, database.transaction() as tx:
        name = f"registry-{word}/image:{word}"
        await tx.execute(
            insert(ImageRow).values(
                id=image,
                registry_id=registry["id"],
                name=name,
                name_key=fold(name),
                project="",
                tag=word,
                architecture="x86_64",
                owner_id=made["users"],
                created_at=tx.now,
                modified_at=tx.now,
            )
        )
    return {
        "resource-groups": group["id"],
        "presets": preset["id"],
        "registries": registry["id"],
        "images": image,
    }


async def make_tokens(hub: Hub) -> dict[str, str]:
    """Make a token of JupyterHub for each column of people."""
    tokens = {
        "expired token": make_expired(hub, "alice"),
        "session token: own": await start_server(hub, "alice"),
        "superadmin's session token: other's": await start_server(hub, "root"),
    }
    tokens["session token: other's"] = tokens["session token: own"]
    people = {"user": "alice", "domain admin": "ada"}
    people |= {"superadmin": "root", "monitor": "mona"}
    made = {name: hub.token(name) for name in people.values()}
    for column in COLUMNS:
        name = people.get(column.title.partition(":")[0])
        if name is not None:
            tokens[column.title] = made[name]
    return tokens


async def start_server(hub: Hub, user: str) -> str:
    """Start a user's server, and return the token that is in its environment."""
    await hub.start(user, "note")
    spawner = await hub.until_ready(user, "note")
    async with hub.stack.client(user) as asking:
        spawned = await asking.get("api/spawned?server=note")
    assert spawned["token"] == spawner.api_token
    return str(spawned["token"])


def make_expired(hub: Hub, user: str) -> str:
    """Make a token whose time is over."""
    token = hub.user(user).new_api_token(expires_in=3600)
    stored = orm.APIToken.find(hub.app.db, token)
    stored.expires_at = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=60)
    hub.app.db.commit()
    return str(token)


def least_value(hint: Any) -> Any:
    """Return the least that a body's field takes."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return least_value(typing.get_args(hint)[0])
    if origin is typing.Literal:
        return typing.get_args(hint)[0]
    known = {str: "x", int: 1, bool: False, float: 1.0}
    if hint in known:
        return known[hint]
    if origin in {list, tuple, set, frozenset}:
        return []
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return least_body(hint)
    return {} if origin is dict or hint is dict else None


def least_body(kind: Any) -> dict[str, Any]:
    """Return the smallest body that can be read as *kind*."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        f.name: least_value(hints[f.name])
        for f in msgspec.structs.fields(kind)
        if f.default is msgspec.NODEFAULT and f.default_factory is msgspec.NODEFAULT
    }


def make_request(
    world: World, path: str, described: Operation, relation: Relation
) -> tuple[str, dict[str, Any]]:
    """Write a request that the route has to decide about, and changes little."""
    place, _ = matrix.address(path)
    known = world.things.get(path.split("/")[1], {}).get(relation, str(uuid.uuid4()))
    url = re.sub(r"\{[a-z_]+\}", lambda _: known if place else str(uuid.uuid4()), path)
    if path.startswith("api/agents/{"):
        url = path.replace("{reference}", known)
    options: dict[str, Any] = {"headers": dict(STALE)}
    if path.endswith("/uploads"):
        options["headers"] |= UPLOAD
    if described.body is not None:
        # Where nobody's thing is named the access check is all, and a body that cannot
        # be read shows that it was passed.
        options["json"] = least_body(described.body) if place else []
    if matrix.is_list(path, described):
        options["params"] = {"limit": "200"}
        if path == "api/sessions":
            options["params"] |= {"owner": "*", "status": "all"}
    return url, options


async def ask_cell(
    world: World, http: aiohttp.ClientSession, route: str, column: matrix.Column
) -> str:
    """Ask, and tell the answer in the words of the table."""
    path, described = OPERATIONS[route]
    url, options = make_request(world, path, described, column.relation)
    options["headers"] |= (
        world.headers(column.title) if column.caller != "agent" else {}
    )
    base = world.stack.url
    if path.startswith("agent/") or column.caller == "agent":
        base, trust = nodes_listener(world.stack, certified=column.caller == "agent")
        options |= trust
        if not path.startswith("agent/"):
            base += world.stack.prefix[1:]
    async with http.request(described.method, f"{base}{url}", **options) as response:
        status = response.status
        text = "" if path == "api/events" else await response.text(errors="replace")
    assert status not in {405, 500, 503}, (route, column.title, status, text)
    if status in {401, 403}:
        return str(status)
    if matrix.is_list(path, described) and status == 200:
        wanted = world.things[path.removeprefix("api/")][column.relation]
        shown = {item["id"] for item in msgspec.json.decode(text)["items"]}
        return "shown" if wanted in shown else "hidden"
    named = bool(matrix.address(path)[0])
    lacks_file = "there is no such file or folder" in text
    if status == 404 and (named or column.caller == "agent") and not lacks_file:
        return "404"
    return "yes"


def nodes_listener(stack: Stack, *, certified: bool) -> tuple[str, dict[str, Any]]:
    context = ssl.create_default_context(cafile=str(stack.folder.key("ca.crt")))
    if certified:
        node = stack.folder.root / "agent"
        context.load_cert_chain(str(node / "agent.crt"), str(node / "agent.key"))
    trust = {"ssl": context, "server_hostname": HUB_NAME}
    return f"https://127.0.0.1:{stack.agents_port}/", trust


def test_every_route_is_in_the_committed_table(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert matrix.main(["--check"]) == 0, capsys.readouterr().err
    assert set(TABLE) == set(OPERATIONS)


def test_a_route_that_is_not_in_the_table_is_noticed(tmp_path, monkeypatch, capsys):
    lines = (ROOT / matrix.TARGET).read_text("utf-8").splitlines(keepends=True)
    short = tmp_path / "short.md"
    short.write_text("".join(line for line in lines if "api/me`" not in line))
    monkeypatch.setattr(matrix, "TARGET", short)
    assert matrix.main(["--check"]) == 1
    assert "+ | `GET api/me` | 401 |" in capsys.readouterr().err


async def test_every_route_answers_every_credential_as_the_table_says(world: World):
    wrong = []
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        for route, cells in TABLE.items():
            for column in COLUMNS:
                expected = cells[column.title]
                if expected == "–":
                    continue
                said = await ask_cell(world, http, route, column)
                if said != expected:
                    wrong.append(f"{route}, {column.title}: {said}, not {expected}")
    assert wrong == []


async def test_tokens_carry_what_their_scopes_say_and_not_more(world: World):
    """Subsets of the scopes, a revoked token, and one without any scope of ours."""
    hub, url = world.hub, world.stack.url

    async def ask(token: str, path: str) -> int:
        headers = {"Authorization": f"token {token}"}
        async with hub.http.get(f"{url}{path}", headers=headers) as response:
            return response.status

    def token(name: str, *scopes: str) -> str:
        return str(hub.user(name).new_api_token(scopes=list(scopes)))

    sessions = token("root", user_scope(Resource.SESSIONS))
    assert await ask(sessions, "api/sessions") == 200
    assert await ask(sessions, "api/keypairs") == 403
    assert await ask(sessions, "api/agents") == 403
    audit = token("root", admin_scope(Resource.AUDIT))
    assert await ask(audit, "api/me") == 403, "no right of one's own at all"
    assert await ask(audit, "api/agents") == 403
    nodes = token("root", user_scope(Resource.SESSIONS), admin_scope(Resource.NODES))
    assert await ask(nodes, "api/agents") == 200
    assert await ask(nodes, "api/users") == 403
    theirs = world.things["sessions"][Relation.FOREIGN]
    assert await ask(nodes, f"api/sessions/{theirs}") == 404, "a user's rights on these"
    every = token("root", USER_SCOPE, ADMIN_SCOPE)
    assert await ask(every, f"api/sessions/{theirs}") == 200
    none = token("root", "self")
    assert await ask(none, "api/me") == 403
    plain = token("alice", USER_SCOPE, ADMIN_SCOPE)
    assert await ask(plain, "api/agents") == 403, (
        "a scope makes nobody an administrator"
    )

    async with hub.http.get(
        f"{url}api/me", headers={"Authorization": f"token {plain}"}
    ) as response:
        assert (await response.json())["roles"] == ["user"]

    stored = orm.APIToken.find(hub.app.db, plain)
    hub.app.db.delete(stored)
    hub.app.db.commit()

    async def refused() -> bool:
        return await ask(plain, "api/me") == 401

    await until(refused, "a revoked token is refused")


async def test_the_token_in_a_session_is_for_sessions_and_data_only(world: World):
    """Whatever its user may do elsewhere: what runs in a notebook may not."""
    for column in ("session token: own", "superadmin's session token: other's"):
        stored = orm.APIToken.find(world.hub.app.db, world.tokens[column])
        held = {s for s in stored.scopes if s.startswith("custom:backendai")}
        assert {s.partition("!")[0] for s in held} <= SESSION_SCOPES | {USER_SCOPE}
        assert not held & ADMIN_SCOPES
    headers = world.headers("superadmin's session token: other's")
    attempts = [
        ("POST", "api/keypairs", {"user": "root", "is_admin": True}),
        ("PATCH", "api/users/root", {"email": "x@example.org"}),
        ("POST", "api/users", {"name": "mallory", "role": "superadmin"}),
        ("POST", "api/accounts/password", {}),
        ("GET", "api/users", None),
        ("GET", "api/domains", None),
    ]
    for method, path, body in attempts:
        options = {} if body is None else {"json": body}
        async with world.hub.http.request(
            method, f"{world.stack.url}{path}", headers=headers, **options
        ) as response:
            assert response.status == 403, (method, path, await response.text())
    async with world.hub.http.get(
        f"{world.stack.url}api/me", headers={**headers, ACT_FOR: "alice"}
    ) as response:
        assert response.status == 403, "nor does it act for others"


def credentials(stack: Stack) -> dict[str, dict[str, str]]:
    """Return what is nobody's, and what is no person's."""
    spawner = {"Authorization": f"token {stack.token('spawner')}"}
    return {
        "nobody": {},
        "a foreign token": {"Authorization": f"token {'x' * 43}"},
        "an empty token": {"Authorization": "token "},
        "a token of another kind": {
            "Authorization": f"Basic {stack.token('spawner')}",
        },
        "a name without a token": {ACT_FOR: "alice"},
        "the spawner for a user": {**spawner, ACT_FOR: f"user-{uuid.uuid4()}"},
        "the spawner for nobody": spawner,
        "the router": {
            "Authorization": f"Bearer {stack.token('router')}",
            ACT_FOR: "alice",
        },
    }


NOBODIES = {
    "nobody",
    "a foreign token",
    "an empty token",
    "a token of another kind",
    "a name without a token",
}


@pytest.fixture
async def browser():
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        yield session


async def test_what_is_no_credential_is_nobodys_on_every_route(
    shared_service: Stack, browser: aiohttp.ClientSession
):
    for who in NOBODIES:
        headers = credentials(shared_service)[who]
        for route, (path, described) in OPERATIONS.items():
            if path.startswith("agent/") or TABLE[route]["anonymous"] == "yes":
                continue
            url = shared_service.url + re.sub(r"\{[a-z_]+\}", "x", path)
            async with browser.request(
                described.method, url, headers=headers
            ) as response:
                assert response.status == 401, (who, route)
                if described.method == "head":
                    continue
                problem = await response.json()
            assert set(problem) >= {"title", "detail"}


async def test_methods_a_route_does_not_have_are_refused_alike_to_all(
    shared_service: Stack, browser: aiohttp.ClientSession
):
    have: dict[str, set[str]] = {}
    for path, described in list_operations(API):
        have.setdefault(path, set()).add(described.method.upper())
    for headers in credentials(shared_service).values():
        for path, methods in have.items():
            url = shared_service.url + re.sub(r"\{[a-z_]+\}", "x", path)
            for method in sorted(set(METHODS) - methods):
                async with browser.request(method, url, headers=headers) as response:
                    assert response.status == 405, (method, path)


async def test_the_console_is_for_people(
    shared_service: Stack, browser: aiohttp.ClientSession
):
    """Nobody is sent to log in (or told that there is no JupyterHub to do so)."""
    assert ConsoleHandler not in API
    for who, headers in credentials(shared_service).items():
        for page in ("", "sessions", "sessions/x"):
            async with browser.get(
                f"{shared_service.url}{page}", headers=headers
            ) as response:
                expected = 404 if who in NOBODIES else 403
                assert response.status == expected, who


async def test_unknown_routes_do_not_say_who_asks(
    shared_service: Stack, browser: aiohttp.ClientSession
):
    paths = ("api/nothing", "api/sessions/a/b/c", "api/agents/", "agent/v1/x")
    for headers in credentials(shared_service).values():
        for path in paths:
            url = f"{shared_service.url}{path}"
            async with browser.get(url, headers=headers) as response:
                assert response.status == 404, path


async def test_the_nodes_listener_knows_callers_by_their_certificate_only(
    shared_service: Stack, browser: aiohttp.ClientSession
):
    """The router's certificate is no node's; tokens of the other listener are void."""
    stack = shared_service
    base, trust = nodes_listener(stack, certified=False)
    router = trust["ssl"]
    router.load_cert_chain(
        str(stack.folder.key("router.crt")), str(stack.folder.key("router.key"))
    )
    headers = {"Authorization": f"token {stack.token('spawner')}", ACT_FOR: "alice"}
    for path, described in list_operations(AGENTS):
        async with browser.request(
            described.method, f"{base}{path}", headers=headers, **trust
        ) as response:
            enrolls = path == "agent/v1/enroll"
            assert response.status == (400 if enrolls else 401), path


async def test_the_nodes_routes_are_not_on_the_listener_of_people(
    shared_service: Stack, browser: aiohttp.ClientSession
):
    bare = shared_service.url.replace(shared_service.prefix, "/")
    for handler in AGENTS:
        for base in (shared_service.url, bare):
            for method in ("GET", "POST", "PUT"):
                async with browser.request(method, f"{base}{handler.path}") as response:
                    assert response.status == 404
