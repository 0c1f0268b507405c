"""The common verbs, held by every noun alike: list, read, create, change, purge.

Each noun is taken through its life over HTTP, on both databases.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backendai_hub.core.nouns import NOUNS, Noun, Verb, noun_of
from tests.admin import KeyAPI, Site, standing_site

_HOURS = itertools.count()
MADE = [noun for noun in NOUNS if {Verb.CREATE, Verb.PURGE} <= set(noun.verbs)]
"""Virtual folders have a life of their own, which ends in the trash."""
NAMED = [n for n in MADE if n.name not in {"keypair", "user", "slot-type"}]
"""Nouns whose names are slugs that people choose."""
MANY = 230
"""More than one page can hold."""


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with standing_site(request.param) as standing:
        yield standing


@pytest.fixture
async def root(site: Site) -> AsyncIterator[KeyAPI]:
    async with site.api("root") as api:
        yield api


def fresh(prefix: str = "t") -> str:
    return f"{prefix}{uuid.uuid4().hex[:10]}"


def new_span() -> dict[str, str]:
    """Return an hour that no other test reserves."""
    hour = datetime(2040, 1, 1, tzinfo=UTC) + timedelta(hours=next(_HOURS))
    ends = hour + timedelta(hours=1)
    return {"begins_at": hour.isoformat(), "ends_at": ends.isoformat()}


def new_body(noun: Noun, name: str) -> dict[str, Any]:
    """Return the body of something that can be made."""
    more: dict[str, dict[str, Any]] = {
        "project": {"domain": "amber"},
        "preset": {"resource_slots": {"cpu": "1", "mem": "1g"}},
        "registry": {"url": "https://registry.example"},
        "slot-type": {"slot_type": "count"},
        "reservation": {
            "kind": "maintenance",
            "resource_group": "default",
            "amounts": {"cpu": "0.001"},
            **new_span(),
        },
    }
    if noun.name == "keypair":
        return {"user": "amber-user"}
    return {"name": name, **more.get(noun.name, {})}


def text_field(noun: Noun) -> str:
    """Name a field that takes any line of text."""
    return "username" if noun.name == "registry" else "description"


def new_name(noun: Noun) -> str:
    return f"{fresh()}.device" if noun.name == "slot-type" else fresh()


async def deactivate(root: KeyAPI, noun: Noun, item_id: str) -> None:
    """Do what has to come before a purge."""
    if noun.name in {"domain", "project"}:
        await root.change(f"{noun.plural}/{item_id}", is_active=False)
    if noun.name == "user":
        await root.change(f"{noun.plural}/{item_id}", status="deleted")


@pytest.mark.parametrize("noun", MADE, ids=lambda n: n.name)
async def test_a_noun_is_made_read_changed_and_purged(root: KeyAPI, noun: Noun):
    body = new_body(noun, new_name(noun))
    status, text, headers = await root.ask("POST", f"api/{noun.plural}", json=body)
    assert status == 201, text
    made = json.loads(text)
    path = f"api/{noun.plural}/{made['id']}"
    assert headers["ETag"] == '"1"'
    assert headers["Location"].endswith(path)

    by_name = made["name"]
    if noun.name == "project":
        by_name = f"amber:{by_name}"
    for reference in (made["id"], by_name, by_name.upper()):
        status, text, headers = await root.ask("GET", f"api/{noun.plural}/{reference}")
        read = json.loads(text)
        assert (status, read["id"], headers["ETag"]) == (200, made["id"], '"1"')
        assert read.get("secret") is None, "shown once"

    change = {text_field(noun): "changed"}
    changed = await root.change(f"{noun.plural}/{made['id']}", **change)
    assert (changed[text_field(noun)], changed["revision"]) == ("changed", 2)
    same = await root.change(f"{noun.plural}/{made['id']}", **change)
    assert same["revision"] == 2, "what changes nothing is no change"

    await deactivate(root, noun, made["id"])
    status, _ = await root.send("DELETE", path)
    assert status == 204
    assert (await root.refused("GET", path))[0] == 404
    assert (await root.refused("DELETE", path))[0] == 404
    found = await root.get(f"api/{noun.plural}", params={"name": made["name"]})
    assert found["items"] == []


@pytest.mark.parametrize("noun", MADE, ids=lambda n: n.name)
async def test_a_stale_change_says_who_has_changed_what(
    site: Site, root: KeyAPI, noun: Noun
):
    made = await root.make(noun.plural, **new_body(noun, new_name(noun)))
    path = f"api/{noun.plural}/{made['id']}"
    stale, field = {"headers": {"If-Match": '"1"'}}, text_field(noun)
    status, _ = await root.send("PATCH", path, json={field: "one"}, **stale)
    assert status == 200
    for method in ("PATCH", "DELETE"):
        options = {"json": {field: "two"}} if method == "PATCH" else {}
        status, said = await root.refused(method, path, **options, **stale)
        assert status == 412
        assert f"it is at 2 now; root changed {field} at 20" in said
    assert (await root.get(path))[field] == "one"
    for header in ('W/"2"', '"2"', "*"):
        status, _ = await root.send(
            "PATCH", path, json={}, headers={"If-Match": header}
        )
        assert status == 200, header
    for header in ("two", '"-1"', '"²"', '"' + "9" * 40 + '"', '"1", "2"'):
        status, _ = await root.refused(
            "PATCH", path, json={}, headers={"If-Match": header}
        )
        assert status == 400, header


async def test_of_many_changes_at_once_each_is_seen_by_the_next(root: KeyAPI):
    """With the revision they have read, exactly one of them succeeds."""
    made = await root.make("domains", name=fresh())

    async def change(number: int) -> int:
        status, _ = await root.send(
            "PATCH",
            f"api/domains/{made['id']}",
            json={"description": str(number)},
            headers={"If-Match": '"1"'},
        )
        return status

    statuses = sorted(await asyncio.gather(*(change(n) for n in range(12))))
    assert statuses == [200] + [412] * 11
    assert (await root.get(f"api/domains/{made['id']}"))["revision"] == 2


async def test_without_a_revision_no_change_is_lost_silently(root: KeyAPI):
    """Changes of different fields at the same moment are all kept, or refused."""
    made = await root.make("domains", name=fresh())

    async def change(field: str) -> bool:
        status, _ = await root.send(
            "PATCH", f"api/domains/{made['id']}", json={field: "set"}
        )
        assert status in {200, 412}
        return status == 200

    fields = ["description", "integration_id"]
    kept = await asyncio.gather(*(change(f) for f in fields))
    now = await root.get(f"api/domains/{made['id']}")
    assert [now[f] == "set" for f in fields] == kept


@pytest.mark.parametrize("noun", NOUNS, ids=lambda n: n.name)
async def test_pages_hold_everything_once_in_every_order(root: KeyAPI, noun: Noun):
    for order in [f"{d}{s}" for s in noun.sorts for d in ("", "-")]:
        seen: list[str] = []
        keys: list[Any] = []
        query = {"limit": "3", "order": order}
        for _ in range(200):
            page = await root.get(f"api/{noun.plural}", params=query)
            seen += [item["id"] for item in page["items"]]
            keys += [item[order.removeprefix("-")] for item in page["items"]]
            if page["next"] is None:
                break
            assert len(page["items"]) == 3
            query["after"] = page["next"]
        assert len(seen) == len(set(seen))
        whole = await root.get(f"api/{noun.plural}", params={"limit": "200"})
        assert set(seen) >= {item["id"] for item in whole["items"]}
        if order.removeprefix("-") != "name":
            assert keys == sorted(keys, reverse=order.startswith("-"))


async def test_more_than_a_page_is_read_page_by_page(site: Site, root: KeyAPI):
    """While others add to the list, too: nobody is shown twice or left out."""
    tag = fresh("m")
    names = [f"{tag}-{n:03d}" for n in range(MANY)]
    bodies = [{"name": n, "domain": "beryl", "full_name": tag} for n in names]
    status, body = await root.send("POST", "api/users/bulk", json={"create": bodies})
    assert (status, body["succeeded"], body["failed"]) == (200, MANY, 0)

    for order in ("name", "-name", "created_at", "-created_at"):
        query = {"search": tag, "limit": "100", "order": order}
        seen: list[str] = []
        for number in range(10):
            page = await root.get("api/users", params=query)
            seen += [item["name"] for item in page["items"]]
            if page["next"] is None:
                break
            query["after"] = page["next"]
            # Before where the reader is, in each of these orders.
            await root.make(
                "users",
                name=f"{tag}-{'000' if order == 'name' else '9'}-{order}{number}",
            )
        assert len(seen) == len(set(seen))
        assert set(names) <= set(seen)
    status, body = await root.send("POST", "api/users/bulk", json={"purge": names})
    assert (body["succeeded"], body["failed"]) == (0, MANY), "they are active"


@pytest.mark.parametrize("noun", NOUNS, ids=lambda n: n.name)
async def test_filters_narrow_a_list_to_what_is_so(root: KeyAPI, noun: Noun):
    if noun.name == "folder":
        await root.make("folders", name=fresh(), usage_mode="data")
        await root.make("folders", name=fresh(), project="default", cloneable=True)
    items = (await root.get(f"api/{noun.plural}", params={"limit": "200"}))["items"]
    assert items
    for name in noun.filters:
        values = {json.dumps(item[name]) for item in items if item[name] is not None}
        for value in sorted(values)[:3]:
            plain = json.loads(value)
            text = str(plain).lower() if isinstance(plain, bool) else str(plain)
            query = {name: text, "limit": "200"}
            found = (await root.get(f"api/{noun.plural}", params=query))["items"]
            wanted = {i["id"] for i in items if json.dumps(i[name]) == value}
            assert {item["id"] for item in found} >= wanted, (name, text)
            assert {json.dumps(item[name]) for item in found} == {value}
    status, said = await root.refused("GET", f"api/{noun.plural}?nmae=x")
    assert status == 400
    assert "did you mean 'name'?" in said


async def test_several_values_of_a_filter_are_any_of_them(root: KeyAPI):
    for query in ("name=amber,beryl", "name=amber&name=BERYL"):
        found = (await root.get(f"api/domains?{query}"))["items"]
        assert [d["name"] for d in found] == ["amber", "beryl"]


@pytest.mark.parametrize("noun", NAMED, ids=lambda n: n.name)
async def test_spellings_that_look_alike_are_the_same_name(root: KeyAPI, noun: Noun):
    base = fresh("ab")
    made = await root.make(noun.plural, **new_body(noun, f"{base}é"))
    for twin in (f"{base}e\u0301", f"{base}É".upper(), f" {base}é ", f"ａ{base[1:]}é"):
        status, said = await root.refused(
            "POST", f"api/{noun.plural}", json=new_body(noun, twin)
        )
        assert status == 409
        assert "perhaps in another spelling" in said
    other = await root.make(noun.plural, **new_body(noun, fresh()))
    if "name" in noun.change_type.__struct_fields__:
        status, said = await root.refused(
            "PATCH", f"api/{noun.plural}/{other['id']}", json={"name": f"{base}É"}
        )
        assert (status, "another spelling" in said) == (409, True)
        renamed = await root.change(f"{noun.plural}/{made['id']}", name=f"{base}É")
        assert renamed["name"] == f"{base}É", "one's own other spelling is no twin"


@pytest.mark.parametrize("noun", NAMED, ids=lambda n: n.name)
@pytest.mark.parametrize(
    "name",
    ["", " ", "a b", "a/b", "-a", "me", "NEW", "bulk", "x" * 257, "раypal", "a\u202eb"],
)
async def test_a_bad_name_is_refused_by_every_noun(root: KeyAPI, noun: Noun, name: str):
    status, said = await root.refused(
        "POST", f"api/{noun.plural}", json=new_body(noun, name)
    )
    assert status == 422
    assert said.startswith("name: ")


async def test_a_project_is_named_with_its_domain_or_in_ones_own(
    site: Site, root: KeyAPI
):
    name = fresh()
    one = await root.make("projects", name=name, domain="amber")
    two = await root.make("projects", name=name, domain="beryl")
    assert (await root.get(f"api/projects/amber:{name}"))["id"] == one["id"]
    assert (await root.get(f"api/projects/BERYL:{name}"))["id"] == two["id"]
    assert (await root.refused("GET", f"api/projects/{name}"))[0] == 404, "default's"
    async with site.api("beryl-admin") as admin:
        assert (await admin.get(f"api/projects/{name}"))["id"] == two["id"]
        assert (await admin.refused("GET", f"api/projects/amber:{name}"))[0] == 404


async def test_there_is_always_exactly_one_default(root: KeyAPI):
    for plural in ("keypair-policies", "user-policies", "project-policies"):
        path = f"api/{plural}"
        made = await root.make(plural, name=fresh(), is_default=True)
        found = (await root.get(f"{path}?is_default=true"))["items"]
        assert [p["id"] for p in found] == [made["id"]]
        status, said = await root.refused(
            "PATCH", f"{path}/{made['id']}", json={"is_default": False}
        )
        assert (status, said.partition(":")[0]) == (422, "is_default")
        assert (await root.refused("DELETE", f"{path}/{made['id']}"))[0] == 409
        await root.change(f"{plural}/default", is_default=True)
        assert (await root.send("DELETE", f"{path}/{made['id']}"))[0] == 204


async def test_each_entry_of_a_bulk_request_ends_for_itself(root: KeyAPI):
    good, twin = fresh(), fresh()
    await root.make("domains", name=twin)
    status, body = await root.send(
        "POST",
        "api/domains/bulk",
        json={
            "create": [{"name": good}, {"name": twin.upper()}, {"name": "-"}],
            "update": [
                {"reference": good, "fields": {"is_active": False}},
                {"reference": "nowhere", "fields": {}},
                {
                    "reference": "amber",
                    "fields": {"total_resource_slots": {"cpu": "x"}},
                },
            ],
            "purge": [good, good, "amber"],
        },
    )
    assert (status, body["succeeded"], body["failed"]) == (200, 3, 6)
    told = [(r["verb"], r["index"], r["status"]) for r in body["results"]]
    assert told == [
        ("create", 0, 201),
        ("create", 1, 409),
        ("create", 2, 422),
        ("update", 0, 200),
        ("update", 1, 404),
        ("update", 2, 422),
        ("purge", 0, 204),
        ("purge", 1, 404),
        ("purge", 2, 409),
    ]
    for result in body["results"]:
        assert (result["error"] is None) == (result["status"] < 300)
        assert (result["code"] is None) == (result["status"] < 300)


async def test_bulk_keys_each_show_their_secret_once(root: KeyAPI):
    status, body = await root.send(
        "POST",
        "api/keypairs/bulk",
        json={"create": [{"user": "amber-user"}, {"user": "beryl-user"}]},
    )
    assert (status, body["succeeded"]) == (200, 2)
    assert len({result["secret"] for result in body["results"]}) == 2
    for result in body["results"]:
        shown = await root.get(f"api/keypairs/{result['name']}")
        assert (shown["secret"], shown["has_secret"]) == (None, True)


# --- what is in use ----------------------------------------------------------------


async def test_what_is_in_use_is_not_purged_and_it_is_told_by_what(
    site: Site, root: KeyAPI
):
    name = fresh()
    await root.make("domains", name=name)
    for plural in ("keypair-policies", "user-policies", "project-policies"):
        await root.make(plural, name=name)
    await root.make("projects", name=name, domain=name, resource_policy=name)
    people = [f"{name}-{n}" for n in range(7)]
    for person in people:
        await root.make("users", name=person, domain=name, resource_policy=name)
    await root.make("keypairs", user=people[0], resource_policy=name)
    group = await root.make("resource-groups", name=name)
    await root.make(
        "presets", name=name, resource_group=name, resource_slots={"cpu": "1"}
    )
    await root.change(f"domains/{name}", is_active=False)
    expected = {
        f"domains/{name}": [
            f"7 users ({', '.join(people[:5])} and 2 more)",
            f"1 projects ({name})",
        ],
        f"keypair-policies/{name}": ["1 keypairs"],
        f"user-policies/{name}": ["7 users"],
        f"project-policies/{name}": [f"1 projects ({name})"],
        f"resource-groups/{group['id']}": [f"1 presets ({name})"],
        "registries/local": ["cannot be removed"],
        "slot-types/cpu": ["devices have it"],
        "domains/default": ["make another one the default first"],
        f"users/{people[0]}": ["is active; make it inactive first"],
    }
    for path, words in expected.items():
        status, said = await root.refused("DELETE", f"api/{path}")
        assert status == 409, path
        for word in words:
            assert word in said, (path, said)


async def test_a_project_with_live_sessions_is_told_by_their_names(
    site: Site, root: KeyAPI
):
    name = fresh()
    await root.make("projects", name=name, domain="amber")
    async with site.api("amber-user") as user, site.api("amber-admin") as admin:
        status, _ = await admin.send(
            "POST", f"api/projects/{name}/members", json={"add": ["amber-user"]}
        )
        assert status == 200
        status, session = await user.create(name=f"work-{name}", project=name)
        assert status == 201, session
        await admin.change(f"projects/{name}", is_active=False)
        status, said = await admin.refused("DELETE", f"api/projects/{name}")
        assert (status, f"1 live sessions (work-{name})" in said) == (409, True)
        status, body = await user.send(
            "POST", f"api/sessions/{session['id']}/terminate", json={"force": True}
        )
        assert status == 202, body
        assert (await admin.send("DELETE", f"api/projects/{name}"))[0] == 204
        assert name not in (await user.get("api/me"))["projects"]


async def test_images_are_read_and_changed_but_made_by_registries_only(root: KeyAPI):
    assert {noun_of("image").verbs} == {(Verb.READ, Verb.UPDATE)}
    [image, *_] = (await root.get("api/images"))["items"]
    assert (await root.send("POST", "api/images", json={}))[0] == 405
    assert (await root.send("DELETE", f"api/images/{image['id']}"))[0] == 405
