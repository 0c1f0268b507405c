"""What a hostile user, or a hostile administrator of a domain, could try.

Each test is an attempt to get more rights than one has, or to see what is another's;
all of them fail, and leave everything as it was.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import io
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import pytest
from sqlalchemy import event, func, select
from yarl import URL

from backendai_hub.core.access import ADMIN_SCOPES, USER_SCOPES, Principal
from backendai_hub.core.errors import ForbiddenError, HubError, NotFoundError
from backendai_hub.core.nouns import NOUNS, noun_of
from backendai_hub.core.tenancy import Role
from backendai_hub.db import tenancy
from backendai_hub.db.engine import Database
from backendai_hub.db.tables import DomainRow, KeypairRow, UserRow
from backendai_hub.handlers.identify import ACT_FOR, _actor
from backendai_hub.operations import dotfiles
from backendai_hub.operations.account_changes import reset_password
from backendai_hub.operations.nouns import (
    change_noun,
    create_noun,
    purge_noun,
    read_noun,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.secrets import issue_keypair_secret
from backendai_hub.operations.users import ensure_user, make_principal
from tests.admin import (
    KeyAPI,
    Site,
    make_key,
    make_person,
    opened_database,
    standing_site,
)
from tests.factories import make_platform, prepare


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with standing_site(request.param) as standing:
        yield standing


@pytest.fixture
async def opened() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def root(site: Site, opened: AsyncExitStack) -> KeyAPI:
    return await opened.enter_async_context(site.api("root"))


@pytest.fixture
async def boss(site: Site, opened: AsyncExitStack) -> KeyAPI:
    """The administrator of the domain amber."""
    return await opened.enter_async_context(site.api("amber-admin"))


@pytest.fixture
async def user(site: Site, opened: AsyncExitStack) -> KeyAPI:
    return await opened.enter_async_context(site.api("amber-user"))


async def try_all(
    api: KeyAPI, attempts: list[tuple[str, str, Any]], *statuses: int
) -> list[str]:
    """Try everything; each has to be refused with one of these statuses."""
    said = []
    for method, path, body in attempts:
        options = {} if body is None else {"json": body}
        status, sentence = await api.refused(method, f"api/{path}", **options)
        assert status in statuses, (method, path, body, status, sentence)
        said.append(sentence)
    return said


# --- raising oneself -------------------------------------------------------------


@pytest.mark.parametrize("who", ["amber-user", "amber-admin"])
async def test_nobody_raises_themselves(site, opened, who):
    api = await opened.enter_async_context(site.api(who))
    for body in (
        {"role": "superadmin"},
        {"role": "monitor"},
        {"domain": "default"},
        {"domain": None},
        {"status": "deleted"},
        {"allowed_client_ip": ["10.0.0.0/8"]},
        {"sudo_session_enabled": True},
        {"container_uid": 1234},
        {"container_gids": [1000]},
        {"email": "new@amber.example", "role": "superadmin"},
    ):
        before = await api.get(f"api/users/{who}")
        status, _ = await api.refused("PATCH", f"api/users/{who}", json=body)
        assert status in {403, 422}, body
        assert await api.get(f"api/users/{who}") == before, "nothing half-done"


async def test_a_plain_user_is_not_made_an_administrator_of_their_domain(user):
    await try_all(user, [("PATCH", "users/amber-user", {"role": "domain-admin"})], 403)


async def test_no_key_carries_more_than_its_user_has(site, root, user, boss):
    """Neither its rights, nor its policy, nor its rate."""
    await root.make("keypair-policies", name=f"vast-{uuid.uuid4().hex[:8]}")
    policies = (await root.get("api/keypair-policies?search=vast"))["items"]
    vast = policies[0]["name"]
    for api, name in ((user, "amber-user"), (boss, "amber-admin")):
        key = f"keypairs/{api.access_key}"
        await try_all(
            api,
            [
                ("POST", "keypairs", {"user": name, "resource_policy": vast}),
                ("POST", "keypairs", {"user": name, "rate_limit": 50_000}),
                ("PATCH", key, {"resource_policy": vast}),
                ("PATCH", key, {"rate_limit": 20_000}),
            ],
            403,
            422,
        )
    await try_all(
        user,
        [
            ("POST", "keypairs", {"user": "amber-user", "is_admin": True}),
            ("PATCH", f"keypairs/{user.access_key}", {"is_admin": True}),
            ("POST", "keypairs", {"user": "amber-mate"}),
            ("POST", "keypairs", {"user": "root", "is_admin": True}),
        ],
        403,
        422,
    )


async def test_a_key_made_by_its_user_is_as_slow_as_the_usual_one(
    site, root, opened, user
):
    """Whose rate is lowered may still make keys, which are no faster."""
    [usual] = (await root.get("api/keypairs?user=amber-user&is_default=true"))["items"]
    await root.change(f"keypairs/{usual['id']}", rate_limit=500)
    made = await user.make("keypairs", user="amber-user")
    assert made["rate_limit"] == 500
    assert made["is_admin"] is False
    await root.change(f"keypairs/{usual['id']}", rate_limit=10_000)


async def test_the_default_key_is_not_switched_to_one_with_another_policy(root, user):
    policy = await root.make("keypair-policies", name=f"wide-{uuid.uuid4().hex[:8]}")
    extra = await root.make(
        "keypairs", user="amber-user", resource_policy=policy["name"]
    )
    status, said = await user.refused(
        "PATCH", f"api/keypairs/{extra['id']}", json={"is_default": True}
    )
    assert (status, said.partition(":")[0]) == (403, "is_default")
    same = await user.make("keypairs", user="amber-user")
    await user.change(f"keypairs/{same['id']}", is_default=True)
    found = (await user.get("api/keypairs?is_default=true"))["items"]
    assert [k["id"] for k in found] == [same["id"]], "exactly one is the default"


# --- touching those who stand higher ----------------------------------------------


async def test_a_domain_admin_touches_no_superadmin_who_is_in_their_domain(
    site, root, boss, opened
):
    """Their keys, passwords, and what runs with their keys would be theirs then."""
    chief = await opened.enter_async_context(
        await make_person(
            site.stack, root, "amber-chief", role=Role.SUPERADMIN, domain="amber"
        )
    )
    extra = await opened.enter_async_context(
        await make_key(site.stack, root, "amber-chief", is_admin=True)
    )
    key = f"keypairs/{extra.access_key}"
    evil = {"path": ".bashrc", "content": "evil", "permission": "644"}
    await try_all(
        boss,
        [
            ("PATCH", "users/amber-chief", {"status": "inactive"}),
            ("PATCH", "users/amber-chief", {"role": "user"}),
            ("PATCH", "users/amber-chief", {"email": "boss@amber.example"}),
            ("POST", "keypairs", {"user": "amber-chief", "is_admin": True}),
            ("POST", "keypairs", {"user": "amber-chief"}),
            ("PATCH", key, {"is_active": False}),
            ("PATCH", key, {"bootstrap_script": "#!/bin/sh\nevil"}),
            ("POST", f"{key}/secret", None),
            ("PUT", f"{key}/dotfiles", {"files": [evil]}),
            ("DELETE", key, None),
            ("POST", "accounts/amber-chief/reset", None),
            ("DELETE", "users/amber-chief", None),
        ],
        403,
    )
    assert await chief.get("api/agents")
    assert await extra.get("api/agents"), "the secret is still the old one"


@pytest.fixture
async def configured(database: Database) -> tuple[Platform, Principal]:
    """A site whose configuration names superadmins, and a domain admin beside them."""
    platform = make_platform(database)
    await prepare(platform)
    for name in ("boss", "chief"):
        actor = await ensure_user(platform, name)
        async with database.transaction() as tx:
            role = Role.DOMAIN_ADMIN if name == "boss" else Role.USER
            await tenancy.change_user(tx, actor.id, role=str(role))
    # The configuration is changed when everybody is known already.
    settings = dataclasses.replace(
        platform.settings, superadmins=frozenset({"chief", "absent"})
    )
    platform = dataclasses.replace(platform, settings=settings)
    made = make_principal(
        await ensure_user(platform, "boss"),
        scopes=USER_SCOPES | ADMIN_SCOPES,
        credential="keypair",
    )
    assert made.role is Role.DOMAIN_ADMIN
    return platform, made


async def test_whom_the_configuration_makes_a_superadmin_is_one_for_domain_admins(
    configured,
):
    """Whatever the database says of them, or whether it knows them at all."""
    platform, boss = configured
    key = noun_of("keypair")
    async with platform.database.read() as connection:
        chief = await tenancy.find_actor(connection, name="chief")
    assert chief is not None
    body = dotfiles.DotfilesRequest(files=[])
    for attempt in (
        create_noun(platform, boss, key, key.create_type(user="chief", is_admin=True)),
        change_noun(
            platform, boss, key, chief.keypair_id, key.change_type(is_admin=True)
        ),
        purge_noun(platform, boss, key, chief.keypair_id),
        issue_keypair_secret(platform, boss, chief.keypair_id),
        dotfiles.write_dotfiles(platform, boss, "keypair", chief.keypair_id, body),
        reset_password(platform, boss, "chief"),
    ):
        with pytest.raises(ForbiddenError):
            await attempt
    user = noun_of("user")
    for name in ("absent", "Absent", "ABSENT"):
        with pytest.raises(HubError):
            await create_noun(platform, boss, user, user.create_type(name=name))
    change = user.change_type(status="inactive")
    with pytest.raises(ForbiddenError):
        await change_noun(platform, boss, user, "chief", change)


# --- acting for others -----------------------------------------------------------


async def test_only_superadmins_act_for_others(site, opened, user, boss):
    mona = await opened.enter_async_context(site.api("mona"))
    for api in (user, boss, mona):
        for name in ("root", "amber-mate", "beryl-user", "nobody", ""):
            headers = {ACT_FOR: name}
            status, said = await api.refused("GET", "api/me", headers=headers)
            assert (status, said) == (403, "only a superadmin acts for others")


async def test_who_acts_for_another_has_that_ones_rights_and_not_more(
    site, root, opened
):
    acting = await opened.enter_async_context(root.acting_for("amber-user"))
    me = await acting.get("api/me")
    assert (me["name"], me["roles"], me["domain"]) == ("amber-user", ["user"], "amber")
    await try_all(
        acting,
        [
            ("GET", "agents", None),
            ("POST", "domains", {"name": "mine"}),
            ("POST", "keypairs", {"user": "amber-user", "is_admin": True}),
            ("PATCH", "users/amber-user", {"role": "superadmin"}),
        ],
        403,
    )
    for_root = await opened.enter_async_context(root.acting_for("root"))
    await try_all(
        for_root,
        [
            ("GET", "agents", None),
            ("POST", "keypairs", {"user": "root", "is_admin": True}),
        ],
        403,
    )


async def test_nobody_acts_for_who_may_not_come_in_or_is_not_there(root, opened, site):
    await root.make("users", name="amber-away", domain="amber", status="inactive")
    for name, status in (("amber-away", 403), ("amber-ghost", 404), ("", 404)):
        headers = {ACT_FOR: name}
        assert (await root.refused("GET", "api/me", headers=headers))[0] == status
    plain = await opened.enter_async_context(await make_key(site.stack, root, "root"))
    status, _ = await plain.refused("GET", "api/me", headers={ACT_FOR: "amber-user"})
    assert status == 403, "a key without administrator's rights"


# --- locking oneself, or everybody, out -------------------------------------------


async def test_the_last_superadmin_stays(site, root):
    """Nobody takes their own rights, and so one always remains."""
    await try_all(
        root,
        [
            ("PATCH", "users/root", {"role": "user"}),
            ("PATCH", "users/root", {"status": "inactive"}),
            ("PATCH", "users/root", {"domain": "amber"}),
            ("DELETE", "users/root", None),
            ("PATCH", "domains/default", {"is_active": False}),
            ("PATCH", "domains/default", {"is_default": False}),
            ("DELETE", "domains/default", None),
        ],
        403,
        409,
        422,
    )
    assert (await root.get("api/me"))["roles"] == ["user", "superadmin"]


# --- what is not there, what is another's ------------------------------------------


@contextmanager
def counted(database: Database) -> Iterator[list[str]]:
    """Collect the statements that a database is asked."""
    asked: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        asked.append(statement)

    engines = {
        value.sync_engine
        for value in vars(database).values()
        if hasattr(value, "sync_engine")
    }
    assert engines
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)


async def test_what_is_anothers_takes_as_long_to_refuse_as_what_is_not_there(site):
    """The database is asked the same, and the sentence differs in the name only."""
    async with opened_database(site.stack) as database:
        platform = make_platform(database)
        asking = make_principal(
            await ensure_user(platform, "amber-admin"),
            scopes=USER_SCOPES | ADMIN_SCOPES,
            credential="keypair",
        )
        for place in ("domains", "projects", "users", "keypairs", "presets"):
            noun = next(n for n in NOUNS if n.plural == place)
            theirs = site.things["beryl"][place]
            for foreign, missing in (
                (theirs["id"], str(uuid.uuid4())),
                (theirs["name"], "x" * len(theirs["name"])),
            ):
                told = []
                for reference in (foreign, missing):
                    with counted(database) as asked, pytest.raises(NotFoundError) as no:
                        await read_noun(platform, asking, noun, reference)
                    told.append((asked, no.value.message.replace(reference, "…")))
                assert told[0] == told[1], place


@pytest.mark.parametrize(
    "reference",
    [
        "0",
        "1",
        "-1",
        "00000000-0000-0000-0000-000000000000",
        "%00",
        "amber%00",
        "%2e%2e",
        "..%2fusers",
        "%25",
        "_",
        "' OR 1=1 --",
        "beryl%20",
        "BERYL",
        "ＢＥＲＹＬ",
        "x" * 200,
        "\u202e",
    ],
)
async def test_a_guessed_reference_finds_nothing(user, reference):
    for noun in NOUNS:
        path = f"{user._url}api/{noun.plural}/{reference}"
        assert user._session is not None

        encoded = "%" in reference
        async with user._session.get(URL(path, encoded=encoded)) as response:
            assert response.status in {400, 403, 404}, (noun.name, response.status)
            said = (await response.text()).casefold()
            assert said.count("beryl") <= 1, "what was asked for, and no more"


# --- lists ------------------------------------------------------------------------


def forge(*parts: Any) -> str:
    raw = json.dumps(parts).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@pytest.mark.parametrize("noun", NOUNS, ids=lambda n: n.name)
async def test_a_forged_cursor_shows_nothing_else_and_breaks_nothing(root, user, noun):
    """Not even on a database that is strict about types."""
    values = [0, -1, 1 << 70, 1.5, None, True, "", "\0", "a", "~", [], {}, "9" * 5000]
    values += ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
    values += ["2026-01-01T00:00:00", "2026-01-01T00:00:00+00:00"]
    mine = {i["id"] for i in (await root.get(f"api/{noun.plural}?limit=200"))["items"]}
    for order in noun.sorts:
        forged = [forge(order, value, "x") for value in values]
        forged += [forge(order, "a", "\0"), forge("id", "a", "x"), forge(), forge(1)]
        forged += ["", "!", "é", "=" * 8, "A" * 4000, forge(order, "a")]
        for direction in ("", "-"):
            for cursor in forged:
                query = {"after": cursor, "order": f"{direction}{order}"}
                path = f"api/{noun.plural}"
                status, body = await root.send("GET", path, params=query)
                assert status in {200, 400, 422}, (query, body)
                if status == 200:
                    assert {item["id"] for item in body["items"]} <= mine
    for direction in ("", "-"):
        cursor = forge("name", "" if not direction else "\U0010ffff", "")
        query = {"after": cursor, "order": f"{direction}name"}
        status, body = await user.send("GET", f"api/{noun.plural}", params=query)
        assert status in {200, 400, 403, 422}
        assert "beryl" not in json.dumps(body)


async def test_patterns_of_the_database_are_plain_characters_in_a_search(root, boss):
    await root.make("projects", name="under_score", domain="amber")
    for text in ("%", "%%", "a%r", "\\", "\\%", "*", ".*", "a_ber-one", "[a-z]"):
        found = await boss.get("api/projects", params={"search": text})
        assert found["items"] == [], text
    found = await boss.get("api/projects", params={"search": "R_S"})
    assert [p["name"] for p in found["items"]] == ["under_score"]


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "201"},
        {"limit": "-1"},
        {"limit": "²"},
        {"limit": "1e1"},
        {"limit": "1" * 5000},
        {"limit": ""},
        {"order": "password"},
        {"order": "name;drop table users"},
        {"order": "--name"},
        {"secret_hash": "x"},
        {"name.secret": "x"},
        {"is_active": "maybe"},
        {"name": ",".join(["a"] * 101)},
        {"name": ",".join(["a"] * 20_000)},
    ],
    ids=lambda q: f"{next(iter(q))}={next(iter(q.values()))[:16]}",
)
async def test_a_list_is_asked_only_what_it_answers(user, query):
    status, said = await user.refused("GET", "api/projects", params=query)
    assert status in {400, 422}
    assert len(said) < 1000


# --- too much ----------------------------------------------------------------------


async def test_too_much_at_once_is_refused_before_anything_is_done(site, boss):
    async def rows() -> int:
        async with opened_database(site.stack) as database, database.read() as tx:
            return sum(
                [
                    int(await tx.scalar(select(func.count()).select_from(row)) or 0)
                    for row in (UserRow, KeypairRow, DomainRow)
                ]
            )

    before = await rows()
    many = [{"name": f"amber-{n}"} for n in range(1001)]
    status, said = await boss.refused("POST", "api/users/bulk", json={"create": many})
    assert (status, "at most 1000 at once" in said) == (422, True)
    for size, expected in ((1 << 20) + 1, 413), ((2 << 20), 413):
        status, _ = await boss.refused(
            "POST",
            "api/users",
            data=io.BytesIO(b'{"name":"' + b"x" * size + b'"}'),
            headers={"Content-Type": "application/json"},
        )
        assert status == expected
    deep = b'{"name":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    status, _ = await boss.refused(
        "POST", "api/users", data=deep, headers={"Content-Type": "application/json"}
    )
    assert status == 400
    assert await rows() == before


# --- what is remembered -----------------------------------------------------------


async def test_what_was_read_before_a_change_is_not_remembered_after_it(
    platform: Platform,
):
    """A change that comes while somebody is being looked up is not overlooked."""
    await ensure_user(platform, "alice")
    looking = asyncio.create_task(_actor(platform, "alice"))
    await asyncio.sleep(0)
    platform.actors.clear()
    assert (await looking).name == "alice"
    assert "alice" not in platform.actors
    await _actor(platform, "alice")
    assert "alice" in platform.actors
