"""Who sees and does what between users, projects and domains: rules T1 to T7.

On both databases, over HTTP with keypairs of people of every role.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from sqlalchemy import func, select

from backendai_hub.core.tenancy import Role
from backendai_hub.db.tables import (
    DomainRow,
    KeypairRow,
    MembershipRow,
    ProjectRow,
    SessionRow,
    UserRow,
)
from backendai_hub.handlers.identify import ACT_FOR
from tests.admin import (
    KeyAPI,
    Site,
    make_key,
    make_person,
    opened_database,
    standing_site,
)

TENANTS = (DomainRow, ProjectRow, UserRow, KeypairRow, MembershipRow, SessionRow)


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with standing_site(request.param) as standing:
        yield standing


class People:
    """Everybody's API, entered."""

    def __init__(self, site: Site, opened: AsyncExitStack) -> None:
        self.site = site
        self._opened = opened

    async def __call__(self, name: str) -> KeyAPI:
        return await self._opened.enter_async_context(self.site.api(name))

    async def enter(self, api: KeyAPI) -> KeyAPI:
        return await self._opened.enter_async_context(api)


@pytest.fixture
async def people(site: Site) -> AsyncIterator[People]:
    async with AsyncExitStack() as opened:
        yield People(site, opened)


async def count_rows(site: Site) -> dict[str, int]:
    async with opened_database(site.stack) as database, database.read() as connection:
        return {
            row.__tablename__: int(
                await connection.scalar(select(func.count()).select_from(row)) or 0
            )
            for row in TENANTS
        }


async def names(api: KeyAPI, place: str, **query: str) -> set[str]:
    found = await api.get(f"api/{place}", params={"limit": "200", **query})
    return {item["name"] for item in found["items"]}


async def newcomer(
    people: People, name: str, role: Role = Role.USER, **fields: Any
) -> KeyAPI:
    root = await people("root")
    fields = {"domain": "amber", **fields}
    return await people.enter(
        await make_person(people.site.stack, root, name, role=role, **fields)
    )


# --- T1: users -------------------------------------------------------------------


async def test_a_user_sees_and_ends_only_their_own_sessions(site, people):
    """Also of somebody in the same domain, and whose session is on the same node."""
    user = await people("amber-user")
    own = site.things["amber"]["sessions/user"]["id"]
    others = [
        site.things["amber"]["sessions/mate"]["id"],
        site.things["beryl"]["sessions/user"]["id"],
    ]

    assert await names(user, "sessions", status="all") == {"amber-work-user"}
    for owner in ("*", "amber-mate", "beryl-user"):
        shown = await names(user, "sessions", owner=owner, status="all")
        assert shown <= {"amber-work-user"}
    assert (await user.get(f"api/sessions/{own}"))["owner"] == "amber-user"
    for session_id in others:
        for method, path in (
            ("GET", f"api/sessions/{session_id}"),
            ("GET", f"api/sessions/{session_id}/events"),
            ("POST", f"api/sessions/{session_id}/terminate"),
        ):
            body = {"json": {}} if method == "POST" else {}
            assert (await user.refused(method, path, **body))[0] == 404


async def test_a_user_sees_only_themselves_and_the_projects_they_are_in(people):
    user = await people("amber-user")
    assert await names(user, "users") == {"amber-user"}
    assert await names(user, "projects") == {"amber-one"}
    assert await names(user, "domains") == {"amber"}
    assert await names(user, "resource-groups") == {"amber-nodes", "default"}
    assert {k["user"] for k in (await user.get("api/keypairs"))["items"]} == {
        "amber-user"
    }
    for path in ("projects/amber-two", "users/amber-mate", "domains/beryl"):
        assert (await user.refused("GET", f"api/{path}"))[0] == 404


async def test_a_user_changes_nothing_of_their_tenants(people):
    user = await people("amber-user")
    attempts = [
        ("PATCH", "api/domains/amber", {"description": "mine"}),
        ("PATCH", "api/projects/amber-one", {"total_resource_slots": {}}),
        ("POST", "api/projects", {"name": "mine", "domain": "amber"}),
        ("POST", "api/projects/amber-one/members", {"add": ["amber-mate"]}),
        ("PUT", "api/projects/amber-one/dotfiles", {"files": []}),
        ("PUT", "api/domains/amber/dotfiles", {"files": []}),
        ("POST", "api/users", {"name": "mallory"}),
        ("DELETE", "api/users/amber-mate", None),
    ]
    for method, path, body in attempts:
        options = {} if body is None else {"json": body}
        assert (await user.refused(method, path, **options))[0] == 403, path


# --- T2: domain administrators ---------------------------------------------------


async def test_a_domain_admin_administers_their_domain(site, people):
    admin = await people("amber-admin")
    assert await names(admin, "users") >= {"amber-admin", "amber-user", "amber-mate"}
    assert await names(admin, "projects") >= {"amber-one", "amber-two"}
    assert await names(admin, "sessions", owner="*", status="all") >= {
        "amber-work-user",
        "amber-work-mate",
    }
    made = await admin.make(
        "projects", name="amber-new", domain="amber", total_resource_slots={"cpu": "2"}
    )
    assert made["domain"] == "amber"
    await admin.change("projects/amber-new", total_resource_slots={"cpu": "3"})
    person = await admin.make("users", name="amber-hired")
    assert person["domain"] == "amber"
    status, body = await admin.send(
        "POST", "api/projects/amber-new/members", json={"add": ["amber-hired"]}
    )
    assert (status, body[0]["added"]) == (200, True)
    await admin.change("domains/amber", description="ours")
    mate = site.things["amber"]["sessions/mate"]["id"]
    assert (await admin.get(f"api/sessions/{mate}"))["owner"] == "amber-mate"


async def test_a_domain_admin_makes_nobody_higher_than_themselves(site, people):
    admin = await people("amber-admin")
    before = await count_rows(site)
    for role in ("superadmin", "monitor", "SuperAdmin"):
        for method, path, body in (
            ("POST", "api/users", {"name": f"new-{role}", "role": role}),
            ("PATCH", "api/users/amber-user", {"role": role}),
            ("PATCH", "api/users/amber-admin", {"role": role}),
        ):
            status, said = await admin.refused(method, path, json=body)
            assert status == 403, (path, said)
    assert await count_rows(site) == before
    assert (await admin.get("api/users/amber-user"))["role"] == "user"


async def test_a_domain_admin_touches_no_policy_group_registry_or_node(people):
    admin = await people("amber-admin")
    slots = {"resource_slots": {"cpu": "1"}}
    attempts = [
        ("POST", "api/keypair-policies", {"name": "mine"}),
        ("PATCH", "api/keypair-policies/default", {"max_concurrent_sessions": 99}),
        ("PATCH", "api/user-policies/default", {"max_vfolder_count": 99}),
        ("PATCH", "api/project-policies/default", {"max_network_count": 99}),
        ("DELETE", "api/keypair-policies/default", None),
        ("POST", "api/resource-groups", {"name": "mine"}),
        ("PATCH", "api/resource-groups/amber-nodes", {"is_public": False}),
        ("POST", "api/resource-groups/amber-nodes/access", {"allow": []}),
        ("GET", "api/resource-groups/amber-nodes/access", None),
        ("POST", "api/presets", {"name": "mine", **slots}),
        ("PATCH", "api/presets/amber-preset", slots),
        ("POST", "api/registries", {"name": "mine", "url": "https://x.example"}),
        ("GET", "api/registries", None),
        ("GET", "api/agents", None),
        ("POST", "api/domains", {"name": "mine"}),
        ("DELETE", "api/domains/amber", None),
        ("GET", "api/usage/verify", None),
    ]
    for method, path, body in attempts:
        options = {} if body is None else {"json": body}
        assert (await admin.refused(method, path, **options))[0] == 403, path


@pytest.mark.parametrize(
    "field",
    [
        {"total_resource_slots": {"cpu": "100"}},
        {"allowed_vfolder_hosts": {"local": ["*"]}},
        {"allowed_docker_registries": ["local", "beryl-registry"]},
        {"is_active": False},
        {"name": "renamed"},
    ],
    ids=lambda f: next(iter(f)),
)
async def test_a_domain_admin_does_not_set_their_own_domains_limits(people, field):
    admin = await people("amber-admin")
    status, said = await admin.refused("PATCH", "api/domains/amber", json=field)
    assert (status, said.partition(":")[0]) == (403, next(iter(field)))
    assert "superadmin" in said


async def test_a_domain_admin_reaches_nothing_of_another_domain(site, people):
    admin = await people("amber-admin")
    theirs = site.things["beryl"]
    before = await count_rows(site)
    for place in ("domains", "projects", "users", "keypairs", "resource-groups"):
        for reference in (theirs[place]["id"], theirs[place]["name"]):
            path = f"api/{place}/{reference}"
            assert (await admin.refused("GET", path))[0] == 404
            status, _ = await admin.refused("PATCH", path, json={"description": "x"})
            assert status in {403, 404}
            assert (await admin.refused("DELETE", path))[0] in {403, 404}
    attempts = [
        ("projects", {"name": "x", "domain": "beryl"}),
        ("projects", {"name": "x", "domain": theirs["domains"]["id"]}),
        ("users", {"name": "x", "domain": "beryl"}),
        ("users", {"name": "x", "project": "beryl:beryl-one"}),
        ("users", {"name": "x", "project": theirs["projects"]["id"]}),
        ("keypairs", {"user": "beryl-user"}),
    ]
    for place, body in attempts:
        status, said = await admin.refused("POST", f"api/{place}", json=body)
        assert status == 422, said
        assert "there is no" in said
    assert await count_rows(site) == before


async def test_nobody_is_a_member_across_domains(site, people):
    """Not even by a superadmin, who sees both sides."""
    before = await count_rows(site)
    admin, root = await people("amber-admin"), await people("root")
    path = "api/projects/{}/members"
    status, [told] = await admin.send(
        "POST", path.format("amber-one"), json={"add": ["beryl-user"]}
    )
    assert (status, told["error"]) == (200, "there is no user 'beryl-user'")
    status, [told] = await root.send(
        "POST", path.format("amber:amber-one"), json={"add": ["beryl-user"]}
    )
    assert status == 200
    assert "people are in projects of their own domain only" in told["error"]
    status, said = await root.refused(
        "PATCH", "api/users/beryl-user", json={"project": "amber:amber-one"}
    )
    assert (status, "another domain" in said) == (422, True)
    assert await count_rows(site) == before


# --- T3, T4: superadmins and monitors --------------------------------------------


async def test_a_superadmin_reaches_every_domain(people):
    root = await people("root")
    assert await names(root, "domains") >= {"amber", "beryl", "default"}
    assert await names(root, "users", domain="beryl") >= {"beryl-user", "beryl-admin"}
    assert await names(root, "sessions", owner="*", status="all") >= {
        "amber-work-user",
        "beryl-work-user",
    }
    for domain in ("amber", "beryl"):
        await root.change(f"domains/{domain}", total_resource_slots={"cpu": "64"})
        await root.change(f"projects/{domain}:{domain}-one", description="by root")


async def test_a_superadmins_key_without_the_flag_is_a_users_key(site, people):
    root = await people("root")
    plain = await people.enter(await make_key(site.stack, root, "root"))
    assert (await plain.get("api/me"))["roles"] == ["user"]
    assert await names(plain, "domains") == {"default"}
    for method, path in (("GET", "api/agents"), ("GET", "api/domains/amber")):
        assert (await plain.refused(method, path))[0] in {403, 404}
    status, said = await plain.refused(
        "POST", "api/keypairs", json={"user": "root", "is_admin": True}
    )
    assert (status, said.partition(":")[0]) == (403, "is_admin")


async def test_a_monitor_reads_all_of_the_site(people):
    mona = await people("mona")
    assert await names(mona, "domains") >= {"amber", "beryl"}
    assert await names(mona, "users") >= {"amber-user", "beryl-user"}
    assert await names(mona, "registries") >= {"amber-registry", "local"}
    assert await names(mona, "sessions", owner="*", status="all") >= {
        "amber-work-user",
        "beryl-work-user",
    }
    assert await mona.get("api/agents")


async def test_a_monitor_changes_nothing(site, people):
    mona = await people("mona")
    before = await count_rows(site)
    session = site.things["amber"]["sessions"]["id"]
    attempts = [
        ("POST", "api/domains", {"name": "mine"}),
        ("POST", "api/users", {"name": "mine"}),
        ("POST", "api/sessions", {"image": "jupyterlab"}),
        ("POST", f"api/sessions/{session}/terminate", {}),
        ("PATCH", "api/users/mona", {"email": "m@example.org"}),
        ("PATCH", "api/users/mona", {"role": "superadmin"}),
        ("POST", "api/keypairs", {"user": "mona"}),
        ("PATCH", f"api/keypairs/{mona.access_key}", {"rate_limit": 50_000}),
        ("POST", f"api/keypairs/{mona.access_key}/secret", None),
        ("DELETE", f"api/keypairs/{mona.access_key}", None),
        ("PUT", f"api/keypairs/{mona.access_key}/dotfiles", {"files": []}),
        ("POST", "api/projects/amber:amber-one/members", {"add": ["mona"]}),
    ]
    for method, path, body in attempts:
        options = {} if body is None else {"json": body}
        assert (await mona.refused(method, path, **options))[0] == 403, path
    status, body = await mona.send(
        "POST",
        "api/users/bulk",
        json={
            "create": [{"name": "mine"}],
            "update": [{"reference": "amber-user", "fields": {"full_name": "x"}}],
            "purge": ["amber-user"],
        },
    )
    assert (status, body["succeeded"], body["failed"]) == (200, 0, 3)
    assert {result["code"] for result in body["results"]} == {"forbidden"}
    assert await count_rows(site) == before


# --- T5: projects one is not in --------------------------------------------------


@pytest.mark.parametrize("caller", ["amber-user", "amber-admin", "root"])
async def test_a_session_in_a_project_one_is_not_in_is_not_enqueued(
    site, people, caller
):
    """Nobody's role makes them a member, and nothing is said of the other's."""
    asking = await people(caller)
    before = await count_rows(site)
    theirs = site.things["beryl"]["projects"]
    for project in (theirs["name"], theirs["id"], "beryl:beryl-one", "nowhere"):
        status, said = await asking.refused(
            "POST", "api/sessions", json={"image": "jupyterlab", "project": project}
        )
        assert status == 422
        assert f"you are not a member of {project!r}" in said
    assert await count_rows(site) == before


# --- T6: moving to another domain ------------------------------------------------


async def test_who_moves_to_another_domain_leaves_the_projects_of_the_old_one(people):
    mover = await newcomer(people, "mover", project="amber:amber-one")
    root, admin = await people("root"), await people("amber-admin")
    assert (await mover.get("api/me"))["projects"] == ["amber-one"]
    status, session = await mover.create(name="before-the-move")
    assert status == 201, session

    moved = await root.change("users/mover", domain="beryl", project="beryl:beryl-two")

    assert (moved["domain"], moved["project"]) == ("beryl", "beryl-two")
    me = await mover.get("api/me")
    assert (me["domain"], me["projects"]) == ("beryl", ["beryl-two"])
    assert await names(mover, "projects") == {"beryl-two"}
    assert (await mover.refused("GET", "api/domains/amber"))[0] == 404
    assert (await admin.refused("GET", "api/users/mover"))[0] == 404
    members = await admin.get("api/projects/amber-one/members")
    assert "mover" not in {member["user"] for member in members}
    status, _ = await mover.refused(
        "POST", "api/sessions", json={"image": "jupyterlab", "project": "amber-one"}
    )
    assert status == 422


async def test_what_has_happened_in_a_domain_stays_there_when_somebody_moves(
    site, people
):
    """The new domain's administrator does not learn of the old one's."""
    mover = await newcomer(people, "walker", project="amber:amber-one")
    status, session = await mover.create(name="amber-secret-work")
    assert status == 201, session
    root = await people("root")
    await root.change("users/walker", domain="beryl")

    old, new = await people("amber-admin"), await people("beryl-admin")
    shown = await names(new, "sessions", owner="*", status="all")
    assert "amber-secret-work" not in shown
    path = f"api/sessions/{session['id']}"
    assert (await new.refused("GET", path))[0] == 404
    assert (await old.get(path))["name"] == "amber-secret-work"
    assert (await mover.get(path))["name"] == "amber-secret-work"
    assert await names(mover, "sessions", status="all") == {"amber-secret-work"}
    assert "amber" not in await read_stream(new, "api/events?after=0")
    assert "amber-secret-work" in await read_stream(old, "api/events?after=0")


async def read_stream(api: KeyAPI, path: str) -> str:
    """Return what a stream sends at once: everything that has happened already."""
    assert api._session is not None
    async with api._session.get(f"{api._url}{path}") as response:
        assert response.status == 200
        said = b""
        async for chunk in response.content.iter_any():
            said += chunk
            if b"event: session" in said:
                break
        return said.decode()


# --- T7, V54: what is inactive ---------------------------------------------------


async def test_an_inactive_user_is_refused_at_once_and_their_sessions_go_on(people):
    leaver = await newcomer(people, "leaver", project="amber:amber-one")
    admin = await people("amber-admin")
    status, session = await leaver.create(name="goes-on")
    assert status == 201, session

    await admin.change("users/leaver", status="inactive")

    status, said = await leaver.refused("GET", "api/me")
    assert status == 403
    assert "the user leaver is inactive" in said
    status, _ = await leaver.refused(
        "POST", "api/sessions", json={"image": "jupyterlab"}
    )
    assert status == 403
    kept = await admin.get(f"api/sessions/{session['id']}")
    assert kept["status"] in {"PENDING", "SCHEDULED", "PREPARING", "RUNNING"}
    await admin.change("users/leaver", status="active")
    assert (await leaver.get("api/me"))["name"] == "leaver"


async def test_an_inactive_keypair_is_refused_at_once(people):
    holder = await newcomer(people, "holder")
    admin = await people("amber-admin")
    await admin.change(f"keypairs/{holder.access_key}", is_active=False)
    status, said = await holder.refused("GET", "api/me")
    assert (status, said) == (401, "wrong access key or secret, or not active")
    await admin.change(f"keypairs/{holder.access_key}", is_active=True)
    assert (await holder.get("api/me"))["name"] == "holder"


async def test_everybody_of_an_inactive_domain_is_refused_at_once(people):
    root = await people("root")
    await root.make("domains", name="dusk", allowed_docker_registries=["local"])
    inside = await newcomer(people, "dusk-user", domain="dusk")
    boss = await newcomer(people, "dusk-boss", Role.DOMAIN_ADMIN, domain="dusk")
    await root.change("domains/dusk", is_active=False)
    for person in (inside, boss):
        status, said = await person.refused("GET", "api/me")
        assert status == 403
        assert "the domain dusk is not active" in said
    await root.change("domains/dusk", is_active=True)
    assert (await inside.get("api/me"))["domain"] == "dusk"


async def test_nothing_starts_in_an_inactive_project(site, people):
    root = await people("root")
    await root.make("projects", name="amber-old", domain="amber")
    worker = await newcomer(people, "worker", project="amber:amber-old")
    admin = await people("amber-admin")
    status, session = await worker.create(name="still-here")
    assert status == 201, session
    await admin.change("projects/amber-old", is_active=False)
    before = await count_rows(site)
    for project in (None, "amber-old"):
        status, said = await worker.refused(
            "POST", "api/sessions", json={"image": "jupyterlab", "project": project}
        )
        assert status == 422, said
    assert await count_rows(site) == before
    assert (await worker.get(f"api/sessions/{session['id']}"))["name"] == "still-here"


async def test_a_keypair_dies_with_its_user_and_with_itself(people):
    root = await people("root")
    gone = await newcomer(people, "gone")
    spare = await people.enter(await make_key(people.site.stack, root, "gone"))
    await root.send("DELETE", f"api/keypairs/{spare.access_key}")
    assert (await spare.refused("GET", "api/me"))[0] == 401
    await root.change("users/gone", status="deleted")
    status, _ = await root.send("DELETE", "api/users/gone")
    assert status == 204
    assert (await gone.refused("GET", "api/me"))[0] == 401


async def test_a_role_that_is_taken_away_is_gone_with_the_next_request(people):
    """What the service remembers of people does not outlive what changes them."""
    boss = await newcomer(people, "boss", Role.SUPERADMIN)
    root = await people("root")
    assert await boss.get("api/agents")
    await root.change("users/boss", role="user")
    assert (await boss.refused("GET", "api/agents"))[0] == 403
    assert (await boss.get("api/me"))["roles"] == ["user"]
    assert await names(boss, "domains") == {"amber"}
    status, _ = await boss.refused("GET", "api/me", headers={ACT_FOR: "amber-user"})
    assert status == 403


async def test_a_membership_that_is_taken_away_is_gone_with_the_next_request(people):
    member = await newcomer(people, "member", project="amber:amber-two")
    admin = await people("amber-admin")
    assert (await member.get("api/me"))["projects"] == ["amber-two"]
    status, [told] = await admin.send(
        "POST", "api/projects/amber-two/members", json={"remove": ["member"]}
    )
    assert (status, told["removed"]) == (200, True)
    assert (await member.get("api/me"))["projects"] == []
    assert (await member.refused("GET", "api/projects/amber-two"))[0] == 404
