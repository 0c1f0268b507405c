"""What requests leave in the audit of a real service, and who reads it."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from backendai_hub.core.tenancy import Keypair, Role
from tests.admin import (
    KeyAPI,
    basic,
    make_administrator,
    make_domain,
    make_key,
    make_person,
)
from tests.harness import API, Stack

Row = dict[str, Any]


@dataclass
class Site:
    """A service with two domains and people of every role, shared by these tests."""

    stack: Stack
    keypair: Keypair

    def root(self) -> KeyAPI:
        assert self.keypair.secret is not None
        return KeyAPI(self.stack.url, self.keypair.name, self.keypair.secret)


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="backendai-") as folder:
        if request.param == "sqlite":
            yield from serve(Path(folder), None)
            return
        server = make_url(os.environ["BACKENDAI_TEST_POSTGRES_URL"])
        server = server.set(drivername="postgresql+psycopg")
        name = f"test_{uuid.uuid4().hex}"
        engine = create_engine(server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f'CREATE DATABASE "{name}"'))
        url = server.set(database=name).render_as_string(hide_password=False)
        yield from serve(Path(folder), url)
        with engine.connect() as connection:
            connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
        engine.dispose()


def serve(folder: Path, db_url: str | None) -> Iterator[Site]:
    stack = Stack(folder, db_url)
    try:
        asyncio.run(stack.start_service())
        yield Site(stack, asyncio.run(make_administrator(stack)))
    finally:
        stack.stop()


@pytest.fixture
async def root(site: Site) -> AsyncIterator[KeyAPI]:
    async with site.root() as api:
        yield api


@pytest.fixture
async def exits() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


def fresh(word: str) -> str:
    return f"{word}-{uuid.uuid4().hex[:10]}"


async def rows(api: API, **filters: Any) -> list[Row]:
    """Read the audit, the newest first."""
    page = await api.get("api/audit", params={"limit": "200", **filters})
    return list(page["items"])


async def person(
    site: Site, root: KeyAPI, exits: AsyncExitStack, role: Role = Role.USER, **more: Any
) -> tuple[str, KeyAPI]:
    name = fresh("person")
    api = await make_person(site.stack, root, name, role=role, **more)
    return name, await exits.enter_async_context(api)


# --- every change leaves one row ---------------------------------------------------


async def test_a_change_leaves_one_row_that_says_everything(root: KeyAPI):
    name = fresh("domain")
    status, _, headers = await root.ask(
        "POST", "api/domains", json={"name": name, "description": "old"}
    )
    assert status == 201
    made = json.loads((await root.ask("GET", f"api/domains/{name}"))[1])
    await root.change(f"domains/{name}", description="new", is_active=False)
    assert (await root.send("DELETE", f"api/domains/{name}"))[0] == 204
    found = await rows(root, object=name)
    assert [r["action"] for r in found] == [
        "domain:purge",
        "domain:update",
        "domain:create",
    ]
    created, updated = found[2], found[1]
    assert created["request_id"] == headers["X-Request-Id"]
    assert (created["actor"], created["acted_as"]) == ("root", "")
    assert (created["credential"], created["address"]) == ("keypair", "127.0.0.1")
    assert (created["result"], created["code"], created["message"]) == (
        "success",
        "",
        "",
    )
    assert created["object_id"] == made["id"]
    assert created["after"]["description"] == "old"
    assert created["duration_ms"] > 0
    old = {"description": "old", "is_active": True, "revision": 1}
    assert updated["before"] == old
    new = {"description": "new", "is_active": False, "revision": 2}
    assert updated["after"] == new
    assert found[0]["after"] is None
    assert found[0]["before"]["description"] == "new"
    assert await rows(root, object=made["id"]) == found


async def test_a_session_leaves_a_row_when_it_is_asked_for_and_when_it_is_ended(
    site: Site, root: KeyAPI, exits: AsyncExitStack
):
    domain = fresh("domain")
    await make_domain(root, domain, "vision")
    who, api = await person(
        site, root, exits, domain=domain, project=f"{domain}:vision"
    )
    wish = {"image": "jupyterlab", "name": "mine", "slots": {"cpu": 1, "mem": "1g"}}
    status, _ = await api.send("POST", "api/sessions/dry-run", json=wish)
    assert status == 200
    assert await rows(api, object_kind="session") == []  # thinking is not doing
    status, made = await api.create(name="mine", slots={"cpu": 1, "mem": "1g"})
    assert status == 201, made
    await api.send("POST", f"api/sessions/{made['id']}/terminate", json={})
    await api.send("POST", f"api/sessions/{made['id']}/terminate", json={})
    found = await rows(api, object_kind="session")
    assert [r["action"] for r in found] == [
        "session:terminate",
        "session:terminate",
        "session:create",
    ]
    assert {r["object_id"] for r in found} == {made["id"]}
    assert {r["actor"] for r in found} == {who}
    assert found[2]["after"]["slots"]["cpu"] == "1"
    assert found[1]["before"] == {"status": "PENDING"}


async def test_a_repeat_that_changes_nothing_leaves_a_row_without_before_and_after(
    site: Site, root: KeyAPI, exits: AsyncExitStack
):
    domain = fresh("domain")
    await make_domain(root, domain, "vision")
    _, api = await person(site, root, exits, domain=domain, project=f"{domain}:vision")
    for expected in (201, 200):
        status, _ = await api.create(key="same", slots={"cpu": 1, "mem": "1g"})
        assert status == expected
    repeat, first = await rows(api, action="session:create")
    assert (first["code"], first["after"] is not None) == ("", True)
    assert (repeat["result"], repeat["code"]) == ("success", "unchanged")
    assert (repeat["before"], repeat["after"]) == (None, None)


async def test_looking_leaves_no_row(root: KeyAPI):
    newest = (await rows(root))[0]["seq"]
    for path in ("domains", "users", "audit", "sessions", "me", "projects/none"):
        await root.send("GET", f"api/{path}")
    assert (await rows(root))[0]["seq"] == newest


async def test_of_many_at_once_each_leaves_its_own_row(root: KeyAPI):
    one, other = fresh("domain"), fresh("domain")
    _, answer = await root.send(
        "POST",
        "api/domains/bulk",
        json={
            "create": [{"name": one}, {"name": one.upper()}, {"name": other}],
            "update": [{"reference": one, "fields": {"description": "d"}}],
            "purge": [fresh("nobody")],
        },
    )
    assert (answer["succeeded"], answer["failed"]) == (3, 2)
    found = (await rows(root, action="domain:*"))[:5]
    assert [(r["action"], r["result"]) for r in reversed(found)] == [
        ("domain:create", "success"),
        ("domain:create", "refused"),
        ("domain:create", "success"),
        ("domain:update", "success"),
        ("domain:purge", "refused"),
    ]
    assert len({r["request_id"] for r in found}) == 1
    assert (found[3]["code"], found[3]["object_name"]) == ("conflict", one.upper())


async def test_people_put_into_a_project_leave_a_row_each_also_who_is_refused(
    site: Site, root: KeyAPI, exits: AsyncExitStack
):
    domain = fresh("domain")
    await make_domain(root, domain, "vision")
    who, _ = await person(site, root, exits, domain=domain)
    await root.send(
        "POST",
        f"api/projects/{domain}:vision/members",
        json={"add": [who, "nobody-at-all"], "remove": []},
    )
    refused, added = (await rows(root, action="members:update"))[:2]
    assert (added["result"], added["after"]) == ("success", {"member": who})
    assert (refused["result"], refused["after"]) == (
        "refused",
        {"member": "nobody-at-all"},
    )


# --- refusals --------------------------------------------------------------------


async def test_every_kind_of_refusal_leaves_a_row_with_its_reason(
    site: Site, root: KeyAPI, exits: AsyncExitStack
):
    who, api = await person(site, root, exits)
    for method, path, options, status, code in (
        ("POST", "domains", {"json": {"name": "mine"}}, 403, "forbidden"),
        ("PATCH", "users/nobody-else", {"json": {}}, 404, "not-found"),
        ("PATCH", f"users/{who}", {"json": {"role": "superadmin"}}, 403, "forbidden"),
        (
            "PATCH",
            f"users/{who}",
            {"json": {"full_name": "x"}, "headers": {"If-Match": '"99"'}},
            412,
            "precondition-failed",
        ),
        ("POST", "sessions", {"json": {"image": "none"}}, 422, "invalid-request"),
        ("POST", "sessions", {"json": {"image": 1}}, 400, "malformed-request"),
        ("GET", "registries", {}, 403, "forbidden"),
        ("POST", "audit/verify", {}, 403, "forbidden"),
    ):
        answered, body, headers = await api.ask(method, f"api/{path}", **options)
        assert answered == status, (path, body)
        row = (await rows(root, actor=who))[0]
        assert row["request_id"] == headers["X-Request-Id"], path
        assert json.loads(body)["request_id"] == row["request_id"], path
        assert (row["result"], row["code"]) == ("refused", code), path
        assert json.loads(body)["detail"].startswith(row["message"][:60]), path
        assert row["message"]
    assert {r["result"] for r in await rows(api, result="refused")} == {"refused"}


async def test_a_conflict_says_of_what(root: KeyAPI):
    name = fresh("domain")
    await root.make("domains", name=name)
    await root.refused("POST", "api/domains", json={"name": name})
    row = (await rows(root, object=name))[0]
    assert (row["action"], row["object_kind"]) == ("domain:create", "domain")
    assert (row["result"], row["code"]) == ("refused", "conflict")


async def test_nobody_leaves_nothing_and_a_made_up_credential_a_row(
    site: Site, root: KeyAPI
):
    newest = (await rows(root))[0]["seq"]
    async with API(site.stack.url, None) as nobody:
        for method, path in (("POST", "domains"), ("GET", "me"), ("DELETE", "users/x")):
            assert (await nobody.send(method, f"api/{path}", json={}))[0] == 401
    assert (await rows(root))[0]["seq"] == newest
    made_up = "x" * 40
    async with API(site.stack.url, made_up) as stranger:
        assert (await stranger.send("GET", "api/me"))[0] == 401
    row = (await rows(root))[0]
    assert (row["actor"], row["credential"]) == ("", "token")
    assert (row["result"], row["code"]) == ("refused", "unauthenticated")
    assert made_up not in json.dumps(row)


async def test_a_wrong_secret_leaves_a_row_without_it(site: Site, root: KeyAPI):
    wrong = "wrong-5ecr3t-canary"
    claimed = {"access_key": site.keypair.name}
    for pair, after in (
        ((site.keypair.name, wrong), claimed),
        # Somebody has taken one for the other.
        ((wrong, site.keypair.name), None),
    ):
        async with (
            aiohttp.ClientSession(headers={"Authorization": basic(*pair)}) as session,
            session.get(f"{site.stack.url}api/me") as answer,
        ):
            assert answer.status == 401
        row = (await rows(root))[0]
        assert (row["actor"], row["credential"]) == ("", "keypair")
        assert (row["code"], row["after"]) == ("unauthenticated", after)
        assert wrong not in json.dumps(row)


async def test_guessing_in_a_loop_does_not_fill_the_database(site: Site, root: KeyAPI):
    before = (await rows(root))[0]["seq"]
    async with API(site.stack.url, "y" * 40) as stranger:
        for _ in range(75):
            assert (await stranger.send("GET", "api/me"))[0] == 401
    found = [r for r in await rows(root) if r["seq"] > before]
    assert len(found) <= 61
    assert found[0]["code"] == "and-more"
    assert "127.0.0.1" in found[0]["message"]


async def test_no_line_break_of_a_user_gets_into_a_row(root: KeyAPI):
    await root.send("PATCH", "api/users/a%0Ab%1B[31m%E2%80%A8", json={})
    row = (await rows(root))[0]
    assert row["object_name"] == "a\ufffdb\ufffd[31m\ufffd"
    assert not any(c < " " for c in row["message"])


# --- who acts for whom -------------------------------------------------------------


async def test_who_acts_for_somebody_is_named_and_so_is_for_whom(
    site: Site, root: KeyAPI, exits: AsyncExitStack
):
    who, api = await person(site, root, exits)
    async with root.acting_for(who) as acting:
        await acting.change(f"users/{who}", full_name="Grace")
        await acting.refused("POST", "api/domains", json={"name": "theirs"})
    refused, changed = (await rows(root, actor=who))[:2]
    for row in (refused, changed):
        assert (row["actor"], row["acted_as"]) == ("root", who)
    assert refused["result"] == "refused"
    # They see what was done in their name, but not from where.
    own = await rows(api, action="user:update")
    assert (own[0]["seq"], own[0]["address"]) == (changed["seq"], "")
    assert refused["seq"] in {r["seq"] for r in await rows(api, result="refused")}


async def test_who_may_not_act_for_others_is_named_for_trying(
    site: Site, root: KeyAPI, exits: AsyncExitStack
):
    who, api = await person(site, root, exits)
    async with api.acting_for("root") as acting:
        assert (await acting.send("GET", "api/me"))[0] == 403
    row = (await rows(root, actor=who))[0]
    assert (row["result"], row["acted_as"]) == ("refused", "")


async def test_the_spawner_acts_for_the_user(site: Site, root: KeyAPI):
    who = fresh("alice")
    async with site.stack.client(who) as spawner:
        await spawner.launch("one")
    row = (await rows(root, actor=who, action="session:create"))[0]
    assert (row["actor"], row["acted_as"]) == ("spawner", who)
    assert row["credential"] == "spawner"
    assert "born-one" not in json.dumps(await rows(root, search=who))


# --- logins ----------------------------------------------------------------------


async def test_a_keypair_logs_in_once_not_with_every_request(
    site: Site, root: KeyAPI, exits: AsyncExitStack
):
    who, api = await person(site, root, exits)
    for _ in range(3):
        await api.get("api/me")
    [row] = await rows(root, actor=who, action="login")
    assert (row["object_kind"], row["object_name"]) == ("keypair", api.access_key)
    assert (row["credential"], row["result"]) == ("keypair", "success")
    assert [r["seq"] for r in await rows(api, action="login")] == [row["seq"]]


async def test_a_password_that_is_right_or_wrong_leaves_a_row(site: Site, root: KeyAPI):
    who = fresh("ada")
    _, made = await root.send("POST", "api/accounts", json={"name": who})
    async with API(site.stack.url, site.stack.token("spawner")) as authenticator:
        for password, status in (("wrong-canary", 401), (made["password"], 200)):
            answered, body = await authenticator.send(
                "POST",
                "api/accounts/verify",
                json={"name": who, "password": password, "address": "203.0.113.9"},
            )
            assert answered == status, body
    good, bad = await rows(root, action="login", object=who)
    assert (good["actor"], good["result"]) == (who, "success")
    assert (bad["actor"], bad["result"]) == ("", "refused")
    assert {good["address"], bad["address"]} == {"203.0.113.9"}
    assert {good["credential"], bad["credential"]} == {"password"}
    everything = json.dumps(await rows(root, search=who))
    assert {r["action"] for r in await rows(root, search=who)} == {
        "account:create",
        "user:create",
        "login",
    }
    assert made["password"] not in everything
    assert "wrong-canary" not in everything


# --- who reads what ----------------------------------------------------------------


async def test_people_read_their_own_administrators_their_domains_superadmins_all(
    site: Site, root: KeyAPI, exits: AsyncExitStack
):
    here, there = fresh("here"), fresh("there")
    await make_domain(root, here)
    await make_domain(root, there)
    user, user_api = await person(site, root, exits, domain=here)
    peer, peer_api = await person(site, root, exits, domain=here)
    stranger, stranger_api = await person(site, root, exits, domain=there)
    _, chief_api = await person(site, root, exits, domain=here, role=Role.DOMAIN_ADMIN)
    _, monitor_api = await person(site, root, exits, role=Role.MONITOR)
    for name, api in ((user, user_api), (peer, peer_api), (stranger, stranger_api)):
        await api.change(f"users/{name}", full_name="x")
        await api.refused("POST", "api/domains", json={"name": "mine"})

    def people(found: list[Row]) -> set[str]:
        return {r["actor"] for r in found if r["actor"] in {user, peer, stranger}}

    assert people(await rows(user_api)) == {user}
    assert people(await rows(chief_api)) == {user, peer}
    assert people(await rows(root)) == people(await rows(monitor_api))
    assert people(await rows(root)) >= {user, peer, stranger}
    for filters in ({"actor": stranger}, {"object": stranger}, {"search": stranger}):
        assert await rows(chief_api, **filters) == []
        assert await rows(user_api, **filters) == []
    # What was done to them by others is theirs to see, too.
    assert "user:create" in {r["action"] for r in await rows(user_api)}
    everything = json.dumps(await rows(chief_api))
    assert there not in everything
    assert stranger not in everything
    exported = (await chief_api.ask("GET", "api/audit/export?format=jsonl"))[1]
    assert there not in exported
    assert user in exported


async def test_a_domains_administrator_learns_nothing_of_other_domains(
    site: Site, root: KeyAPI, exits: AsyncExitStack
):
    here, there = fresh("here"), fresh("there")
    await make_domain(root, here, "vision")
    await make_domain(root, there, "speech")
    user, user_api = await person(site, root, exits, domain=here)
    stranger, _ = await person(site, root, exits, domain=there)
    _, chief = await person(site, root, exits, domain=here, role=Role.DOMAIN_ADMIN)
    # A superadmin of their domain's things: refusals that name the other domain.
    await root.send(
        "POST", f"api/projects/{here}:vision/members", json={"add": [stranger]}
    )
    await root.send("PATCH", f"api/users/{user}", json={"project": f"{there}:speech"})
    await root.change(f"users/{user}", domain=there)
    seen = await rows(chief)
    assert there not in json.dumps(seen)
    assert stranger not in json.dumps(seen)
    moved = next(r for r in seen if r["object_name"] == user and r["after"])
    assert moved["after"]["domain"] == "(another domain)"
    # The person themselves knows where they went.
    assert there in json.dumps(await rows(user_api))


async def test_what_is_done_to_the_whole_site_belongs_to_no_domain(
    site: Site, root: KeyAPI, exits: AsyncExitStack
):
    """Superadmins are in some domain, too; its administrator sees no more for that."""
    there = fresh("there")
    _, chief = await person(site, root, exits, role=Role.DOMAIN_ADMIN)
    await make_domain(root, there)
    await root.refused("PATCH", f"api/domains/{there}", json={"name": "a b"})
    await root.refused("PATCH", f"api/projects/{there}:none", json={})
    assert there not in json.dumps(await rows(chief))


async def test_a_plain_key_of_an_administrator_sees_what_plain_people_see(
    site: Site, root: KeyAPI
):
    async with await make_key(site.stack, root, "root") as plain:
        found = await rows(plain)
        me = (await rows(root, actor="root"))[0]["actor_id"]
        assert found
        assert all(me in {r["actor_id"], r["owner_id"]} for r in found)
        assert (await plain.send("POST", "api/audit/verify"))[0] == 403


async def test_a_notebooks_rights_do_not_include_the_audit(site: Site):
    async with site.stack.client(fresh("alice")) as spawner:
        for path in ("api/audit", "api/audit/export"):
            assert (await spawner.send("GET", path))[0] == 403


# --- lists, filters, export --------------------------------------------------------


async def test_pages_follow_each_other_without_gaps_or_doubles(root: KeyAPI):
    word = fresh("domain")
    for number in range(7):
        await root.make("domains", name=f"{word}-{number}")
    found: list[Row] = []
    after: dict[str, str] = {}
    while True:
        page = await root.get(
            "api/audit", params={"search": word, "limit": "3", **after}
        )
        found += page["items"]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert [r["object_name"][-1] for r in found] == list("6543210")


async def test_filters_narrow_and_go_together(root: KeyAPI):
    name = fresh("domain")
    made = await root.make("domains", name=name)
    await root.change(f"domains/{name}", description="x")
    await root.refused("POST", "api/domains", json={"name": name})
    mark = (await rows(root, object=name))[1]["at"]
    for filters, count in (
        ({"object": name}, 3),
        ({"object": made["id"]}, 2),
        ({"object": name, "result": "refused"}, 1),
        ({"object": name, "result": "refused,success"}, 3),
        ({"object": name, "action": "domain:update"}, 1),
        ({"object": name, "action": "domain:*"}, 3),
        ({"object": name, "action": "user:*"}, 0),
        ({"object": name, "object_kind": "domain"}, 3),
        ({"object": name, "actor": "root"}, 3),
        ({"object": name, "actor": "ada"}, 0),
        ({"object": name, "since": mark}, 2),
        ({"object": name, "until": mark}, 1),
        ({"object": name, "since": "2020-01-01"}, 3),
        ({"object": name, "until": "2020-01-01T00:00:00+09:00"}, 0),
        ({"search": name.upper()}, 3),
        ({"search": "%"}, 0),
    ):
        assert len(await rows(root, **filters)) == count, filters


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=x",
        "after=x",
        "after=-1",
        "after=9999999999999999999",
        "result=maybe",
        "since=yesterday",
        "until=2026-13-01",
        "colour=red",
    ],
)
async def test_what_cannot_be_asked_is_refused(root: KeyAPI, query: str):
    for path in ("api/audit", "api/audit/export"):
        if query == "limit=201" and path.endswith("export"):
            continue
        status, _ = await root.send("GET", f"{path}?{query}")
        assert status in {400, 422}, path


async def test_an_export_holds_what_the_list_holds(root: KeyAPI):
    name = fresh("domain")
    await root.make("domains", name=name, description='=1+1,"x"')
    await root.change(f"domains/{name}", description="+2")
    listed = await rows(root, object=name)
    query = f"api/audit/export?object={name}"
    status, body, headers = await root.ask("GET", f"{query}&format=jsonl")
    assert (status, headers["Content-Type"].split(";")[0]) == (200, "application/jsonl")
    assert [json.loads(line) for line in body.splitlines()] == listed
    status, body, headers = await root.ask("GET", f"{query}&format=csv")
    assert (status, headers["Content-Type"].split(";")[0]) == (200, "text/csv")
    assert headers["Content-Disposition"] == 'attachment; filename="audit.csv"'
    table = list(csv.DictReader(io.StringIO(body)))
    assert [int(r["seq"]) for r in table] == [r["seq"] for r in listed]
    assert [r["hash"] for r in table] == [r["hash"] for r in listed]
    assert json.loads(table[-1]["after"])["description"] == '=1+1,"x"'
    taken = (await rows(root, action="audit:export"))[0]
    assert (taken["after"]["format"], taken["after"]["object"]) == ("csv", name)


async def test_an_export_of_more_than_is_read_at_once_goes_on(root: KeyAPI):
    _, answer = await root.send(
        "POST",
        "api/domains/bulk",
        json={"purge": [f"none-{n}" for n in range(500)]},
    )
    assert answer["failed"] == 500
    for limit, expected in ((5, 5), (600, 500)):
        status, body, _ = await root.ask(
            "GET",
            "api/audit/export?format=jsonl&action=domain:purge&result=refused"
            f"&search=none-&limit={limit}",
        )
        assert status == 200
        seqs = [json.loads(line)["seq"] for line in body.splitlines()]
        assert len(seqs) == expected
        assert seqs == sorted(set(seqs), reverse=True)


async def test_only_csv_and_lines_of_json_are_written(root: KeyAPI):
    status, detail = await root.refused("GET", "api/audit/export?format=xlsx")
    assert (status, "csv, jsonl" in detail) == (422, True)


# --- the check, and secrets ----------------------------------------------------------


async def test_a_service_that_did_all_this_has_an_unbroken_chain(
    site: Site, root: KeyAPI, exits: AsyncExitStack
):
    status, report = await root.send("POST", "api/audit/verify")
    assert (status, report["ok"], report["breaks"]) == (200, True, [])
    assert report["head"]["seq"] == report["rows"] > 0
    row = (await rows(root))[0]
    assert (row["action"], row["after"]["ok"]) == ("audit:verify", True)
    _, monitor = await person(site, root, exits, role=Role.MONITOR)
    assert (await monitor.send("POST", "api/audit/verify"))[0] == 200


async def test_no_secret_is_ever_in_it(site: Site, root: KeyAPI):
    canary = f"canary-{uuid.uuid4().hex}"
    registry = await root.make(
        "registries",
        name=fresh("registry"),
        url="https://registry.example",
        username="robot",
        password=f"{canary}-password",
    )
    await root.change(f"registries/{registry['name']}", password=f"{canary}-again")
    await root.make(
        "resource-groups", name=fresh("group"), wsproxy_api_token=f"{canary}-proxy"
    )
    pair = await root.make(
        "keypairs", user="root", bootstrap_script=f"#!/bin/sh\nKEY={canary}-script\n"
    )
    _, issued = await root.send("POST", f"api/keypairs/{pair['name']}/secret")
    await root.send(
        "PUT",
        f"api/keypairs/{pair['name']}/dotfiles",
        json={
            "files": [
                {"path": ".netrc", "permission": "600", "content": f"{canary}-file"}
            ]
        },
    )
    who = fresh("ada")
    _, account = await root.send("POST", "api/accounts", json={"name": who})
    async with site.stack.client(who) as spawner:
        await spawner.launch("one", bootstrap_script=f"echo {canary}-launch")
    async with API(site.stack.url, f"{canary}-token") as stranger:
        await stranger.send("POST", "api/domains", json={"name": "x"})
    secrets = [canary, pair["secret"], issued["secret"], account["password"]]
    secrets += [root.secret, site.stack.token("spawner"), "born-one"]
    exported = (await root.ask("GET", "api/audit/export?format=jsonl"))[1]
    assert pair["name"] in exported
    for secret in secrets:
        assert secret
        assert secret not in exported
