"""What is refused: clearly, completely, and with nothing half-done.

Every refusal names the field; all fields that are wrong are named at once; and the
rows of the database are the same before and after.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import func, select

from backendai_hub.db.tables import Base
from tests.admin import KeyAPI, Site, opened_database, standing_site

COUNTED_BESIDES = {"audit", "audit_log", "events", "signals"}
"""Tables that tell what was tried."""


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


async def read_rows(site: Site) -> dict[str, int]:
    counts = {}
    async with opened_database(site.stack) as database, database.read() as connection:
        for table in Base.metadata.sorted_tables:
            if not any(word in table.name for word in COUNTED_BESIDES):
                query = select(func.count()).select_from(table)
                counts[table.name] = int(await connection.scalar(query) or 0)
    return counts


@asynccontextmanager
async def unchanged(site: Site) -> AsyncIterator[None]:
    """See that no table has a row more or less afterwards."""
    before = await read_rows(site)
    yield
    assert await read_rows(site) == before


async def refused(
    api: KeyAPI, path: str, body: dict[str, Any], method: str = "POST"
) -> str:
    """Send what cannot be; return the sentence, which is a sentence for people."""
    status, problem = await api.send(method, f"api/{path}", json=body)
    assert status in {400, 422}, (path, body, status, problem)
    said = str(problem["detail"])
    assert len(said) < 4000
    assert "Traceback" not in said
    assert "sqlalchemy" not in said.lower()
    return said


# --- all at once --------------------------------------------------------------------


async def test_all_fields_that_are_wrong_are_named_at_once(site, root):
    async with unchanged(site):
        status, problem = await root.send(
            "POST",
            "api/domains",
            json={
                "name": "a b",
                "description": "x" * 513,
                "total_resource_slots": {"cpu": "lots"},
                "allowed_vfolder_hosts": {"local": ["moutn-in-session"]},
                "allowed_docker_registries": [""],
                "integration_id": "a\nb",
            },
        )
    assert status == 422
    named = [error["field"] for error in problem["fields"]["errors"]]
    assert named == [
        "name",
        "description",
        "total_resource_slots",
        "allowed_vfolder_hosts",
        "allowed_docker_registries",
        "integration_id",
    ]
    for error in problem["fields"]["errors"]:
        assert error["message"] in problem["detail"]


@pytest.mark.parametrize(
    ("place", "body", "words"),
    [
        ("domains", {}, ["name"]),
        ("domains", {"name": "x", "nmae": "y"}, ["nmae"]),
        ("domains", {"name": 5}, ["name"]),
        ("domains", {"name": None}, ["name"]),
        ("domains", {"name": ["x"]}, ["name"]),
        ("domains", {"name": "x", "is_active": "yes"}, ["is_active"]),
        ("domains", {"name": "x", "id": "x"}, ["id"]),
        ("domains", {"name": "x", "revision": 7}, ["revision"]),
        ("domains", {"name": "x", "created_at": "2026-01-01"}, ["created_at"]),
        ("keypairs", {"user": "amber-user", "secret": "x"}, ["secret"]),
        ("keypairs", {"user": "amber-user", "name": "AKIAX"}, ["name"]),
        ("users", {"name": "x", "groups_digest": "x"}, ["groups_digest"]),
    ],
)
async def test_a_body_holds_what_may_be_set_in_its_type(site, root, place, body, words):
    async with unchanged(site):
        said = await refused(root, place, body)
    assert all(word in said for word in words), said


# --- amounts ------------------------------------------------------------------------

AMOUNTS = [
    "-1",
    "NaN",
    "nan",
    "-inf",
    "1e400",
    "9223372036854775808",
    str(1 << 70),
    "1.00001",
    "1,5",
    "0x10",
    "1 2",
    "",
    "one",
    "１",
    "1k",
]


@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize(
    ("place", "more", "field"),
    [
        ("domains", {"name": "never"}, "total_resource_slots"),
        ("projects", {"name": "never", "domain": "amber"}, "total_resource_slots"),
        ("keypair-policies", {"name": "never"}, "total_resource_slots"),
        ("keypair-policies", {"name": "never"}, "max_pending_session_resource_slots"),
        ("presets", {"name": "never"}, "resource_slots"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
async def test_what_is_no_amount_of_a_slot_is_refused(
    site, root, place, more, field, amount
):
    said = await refused(root, place, {**more, field: {"cpu": amount}})
    assert said.startswith(f"{field}: cpu")
    found = await root.get(f"api/{place}?name=never")
    assert found["items"] == []


@pytest.mark.parametrize("raw", ["NaN", "Infinity", "-Infinity", "1e999", "-1", "1e-9"])
async def test_numbers_that_no_json_or_machine_has_are_refused(site, root, raw):
    data = f'{{"name": "never", "total_resource_slots": {{"cpu": {raw}}}}}'
    async with unchanged(site):
        status, problem = await root.send(
            "POST",
            "api/domains",
            data=data,
            headers={"Content-Type": "application/json"},
        )
    assert status in {400, 422}, problem


@pytest.mark.parametrize(
    ("amount", "kept"),
    [
        ("10g", "10g"),
        ("10G", "10g"),
        ("10gib", "10g"),
        ("10240m", "10g"),
        (10 << 30, "10g"),
        ("unlimited", "inf"),
        ("inf", "inf"),
        (None, "inf"),
        ("0", "0"),
    ],
)
async def test_the_same_amount_in_another_unit_is_the_same(root, amount, kept):
    made = await root.change("domains/amber", total_resource_slots={"mem": amount})
    assert made["total_resource_slots"] == {"mem": kept}
    await root.change("domains/amber", total_resource_slots={})


async def test_whole_devices_and_shares_are_not_asked_for_together(site, root):
    both = {"cpu": "1", "mem": "1g", "cuda.device": "1", "cuda.shares": "0.5"}
    async with unchanged(site):
        said = await refused(root, "presets", {"name": "never", "resource_slots": both})
        assert "cuda.device and cuda.shares" in said
        async with site.api("amber-user") as user:
            body = {"image": "jupyterlab", "slots": both}
            said = await refused(user, "sessions", body)
            assert "cuda.device and cuda.shares" in said


@pytest.mark.parametrize(
    ("slot", "hint"),
    [
        ("cuda.share", "did you mean 'cuda.shares'?"),
        ("cpus", "did you mean 'cpu'?"),
        ("memory", "there are cpu, mem"),
        ("rocm.device", "there are cpu, mem"),
        ("CPU", ""),
        ("", ""),
        ("a b", ""),
        ("x" * 300, ""),
    ],
)
async def test_an_unknown_slot_is_named_with_a_hint(site, root, slot, hint):
    async with unchanged(site):
        for place, field in (("domains", "total_resource_slots"),):
            said = await refused(root, place, {"name": "never", field: {slot: "1"}})
            assert said.startswith(f"{field}: ")
            assert hint in said


@pytest.mark.parametrize(
    ("place", "field", "value"),
    [
        ("keypair-policies", "max_concurrent_sessions", 1 << 31),
        ("keypair-policies", "max_concurrent_sessions", 1 << 63),
        ("keypair-policies", "max_concurrent_sessions", -(1 << 63)),
        ("keypair-policies", "max_concurrent_sessions", 1.5),
        ("keypair-policies", "max_concurrent_sessions", "5"),
        ("keypair-policies", "max_concurrent_sessions", True),
        ("keypair-policies", "max_priority", 101),
        ("user-policies", "max_vfolder_count", -1),
        ("user-policies", "max_quota_scope_size", "-2"),
        ("user-policies", "max_quota_scope_size", str(1 << 63)),
        ("project-policies", "max_network_count", 1 << 40),
        ("users", "container_uid", 0),
        ("users", "container_uid", 1 << 32),
        ("users", "container_gids", [1000, -1]),
        ("users", "allowed_client_ip", ["10.0.0.1/8"]),
        ("users", "allowed_client_ip", ["everywhere"]),
        ("users", "email", "nobody"),
        ("users", "email", "a@b@c"),
        ("users", "email", "x" * 65),
        ("users", "role", "root"),
        ("users", "status", "sleeping"),
        ("presets", "shared_memory", "2g"),
        ("registries", "url", "ftp://registry.example"),
        ("registries", "url", "https://user:secret@registry.example"),
        ("registries", "url", "registry.example"),
    ],
)
async def test_a_value_that_will_not_do_is_named_with_its_field(
    site, root, place, field, value
):
    more: dict[str, dict[str, Any]] = {
        "presets": {"resource_slots": {"cpu": "1", "mem": "1g"}},
        "registries": {"url": "https://registry.example"},
    }
    body = {"name": "never", **more.get(place, {}), field: value}
    async with unchanged(site):
        assert field in await refused(root, place, body)


# --- who belongs where --------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"domain": "amber", "project": "beryl:beryl-one"}, "project: "),
        ({"domain": "nowhere"}, "domain: there is no domain 'nowhere'"),
        ({"resource_policy": "nothing"}, "resource_policy: there is no user-policy"),
        ({"domain": "amber", "email": "amber-user@amber.example"}, "email: "),
        ({"domain": "amber", "email": "AMBER-USER@amber.example"}, "email: "),
    ],
)
async def test_a_user_belongs_to_what_is_there_and_goes_together(
    site, root, body, word
):
    async with unchanged(site):
        status, problem = await root.send(
            "POST", "api/users", json={"name": "never", **body}
        )
        assert status in {409, 422}
        assert word in problem["detail"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "x" * 256,
        "a\nb",
        "a\u202eb",
        "a\u200bb",
        "AMBER-USER",
        "ａmber-user",
        "01a1fcb9-1a7d-7000-8000-000000000000",
    ],
)
async def test_a_users_name_is_one_and_nobody_elses(site, root, name):
    async with unchanged(site):
        status, problem = await root.send("POST", "api/users", json={"name": name})
        assert status in {409, 422}, problem


async def test_a_user_is_refused_whole_when_their_account_cannot_be(site, root):
    async with unchanged(site):
        for body in (
            {"name": "never", "domain": "nowhere"},
            {"name": "never", "project": "beryl:beryl-one", "domain": "amber"},
            {"name": "amber-user"},
            {"name": "never", "role": "root"},
        ):
            status, problem = await root.send("POST", "api/accounts", json=body)
            assert status in {409, 422}, problem


async def test_a_change_that_is_refused_changes_nothing_of_it(site, root):
    before = await root.get("api/users/amber-user")
    async with unchanged(site):
        for body in (
            {"full_name": "New Name", "email": "nobody"},
            {"full_name": "New Name", "domain": "nowhere"},
            {"full_name": "New Name", "domain": "beryl", "project": "amber:amber-two"},
            {"full_name": "New Name", "project": "amber:amber-two"},
            {"full_name": "New Name", "name": "renamed"},
        ):
            status, problem = await root.send(
                "PATCH", "api/users/amber-user", json=body
            )
            assert status in {400, 422}, problem
    assert await root.get("api/users/amber-user") == before


async def test_opening_a_group_to_some_that_are_there_opens_it_to_none(site, root):
    path = "api/resource-groups/amber-nodes/access"
    before = await root.get(path)
    wanted = [
        {"kind": "domain", "name": "beryl"},
        {"kind": "project", "name": "amber:nothing"},
    ]
    async with unchanged(site):
        status, problem = await root.send("POST", path, json={"allow": wanted})
        assert (status, "'amber:nothing'" in problem["detail"]) == (422, True)
    assert await root.get(path) == before


# --- bodies that are none -------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"name": "a"} x',
        b"\xff\xfe",
        b'{"name": "\\ud800"}',
        b'{"name": "a\x00b"}',
        b'{"name": "a", "name": 1}',
        b"name=a",
    ],
)
async def test_what_is_no_body_is_refused_in_words(site, root, data):
    async with unchanged(site):
        status, problem = await root.send(
            "POST",
            "api/domains",
            data=data,
            headers={"Content-Type": "application/json"},
        )
    assert status in {400, 422}, problem
    assert problem["detail"]


async def test_a_body_says_what_it_is(site, root):
    body = json.dumps({"name": "never"})
    async with unchanged(site):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "text/json"):
            status, problem = await root.send(
                "POST", "api/domains", data=body, headers={"Content-Type": kind}
            )
            assert (status, "application/json" in problem["detail"]) == (400, True)


@pytest.mark.parametrize("field", ["description", "integration_id"])
async def test_nul_and_directions_of_text_are_no_part_of_a_line(site, root, field):
    for text in ("a\0b", "a\u202eb", "a\u2066b", "a\x1bb"):
        said = await refused(root, "domains", {"name": "never", field: text})
        assert said.startswith(f"{field}: holds the control character U+")


async def test_a_script_may_be_long_and_have_lines_but_no_nul(site, root):
    path = f"keypairs/{site.keys['amber-user'][0]}"
    for text in ("a\0b", "x" * ((64 << 10) + 1)):
        body = {"bootstrap_script": text}
        assert "bootstrap_script: " in await refused(root, path, body, "PATCH")
    made = await root.change(path, bootstrap_script="#!/bin/sh\necho é\n")
    assert made["bootstrap_script"] == "#!/bin/sh\necho é\n"
