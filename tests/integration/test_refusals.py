"""Bad input gets a sentence that names what, how much and what to do."""

from __future__ import annotations

import asyncio
import io
import uuid
from typing import Any

import pytest

from tests.harness import API, Stack

BAD_REQUESTS: list[tuple[str, dict[str, Any], int, list[str]]] = [
    ("an unknown image", {"image": "nope"}, 422, ["nope", "jupyterlab"]),
    ("no image", {"image": None}, 400, ["image"]),
    ("too little cpu", {"slots": {"cpu": "0.05"}}, 422, ["cpu", "at least 0.1"]),
    ("negative cpu", {"slots": {"cpu": -1}}, 422, ["cpu", "-1", "not negative"]),
    ("negative memory", {"slots": {"mem": "-1g"}}, 422, ["mem", "-1g"]),
    ("an amount that is not a number", {"slots": {"cpu": "NaN"}}, 422, ["cpu", "nan"]),
    ("an endless amount", {"slots": {"cpu": "inf"}}, 422, ["cpu", "inf"]),
    ("1e309 cores", {"slots": {"cpu": "1e309"}}, 422, ["cpu", "1e309"]),
    ("a list for an amount", {"slots": {"cpu": [1]}}, 422, ["cpu", "list"]),
    ("true for an amount", {"slots": {"cpu": True}}, 422, ["cpu", "bool"]),
    ("a finer amount than there is", {"slots": {"cpu": "0.0001"}}, 422, ["cpu"]),
    ("absurdly much", {"slots": {"mem": "9999999p"}}, 422, ["mem", "more than"]),
    ("more than any node", {"slots": {"cpu": 5000}}, 422, ["cpu", "largest node has"]),
    ("a slot no node has", {"slots": {"tpu.device": 1}}, 422, ["tpu.device"]),
    ("a slot that cannot be", {"slots": {"CPU!": 1}}, 422, ["CPU!", "slot name"]),
    ("half a device", {"slots": {"cuda.device": "0.5"}}, 422, ["whole"]),
    ("too little memory", {"slots": {"mem": "1m"}}, 422, ["mem", "320m"]),
    (
        "all memory shared",
        {"shmem": "1g", "slots": {"mem": "1g"}},
        422,
        ["mem", "shared memory", "1280m"],
    ),
    ("shmem as a slot", {"slots": {"shmem": "1g"}}, 422, ["field 'shmem'"]),
    ("an empty name", {"name": ""}, 422, ["name", "letters"]),
    ("a name with a path", {"name": "../../etc"}, 422, ["name"]),
    ("a name with a newline", {"name": "a\nb"}, 422, ["name"]),
    ("a long name", {"name": "x" * 65}, 422, ["name", "64"]),
    ("an unknown field", {"gpus": 1}, 400, ["gpus"]),
    ("another's project", {"project": "vision"}, 422, ["vision", "default"]),
    ("an unknown type", {"type": "daemon"}, 400, ["daemon"]),
    ("a batch session", {"type": "batch"}, 422, ["batch session", "JupyterHub"]),
    ("a variable that is none", {"environ": {"A=B": "1"}}, 422, ["A=B"]),
    ("megabytes of variables", {"environ": {"A": "x" * 600_000}}, 422, ["512 KiB"]),
]


@pytest.fixture
async def alice(shared_service: Stack):
    async with shared_service.client(f"alice-{uuid.uuid4()}") as client:
        yield client


async def test_every_bad_request_is_refused_in_words_and_stores_nothing(alice: API):
    wrong = []
    for what, request, expected, words in BAD_REQUESTS:
        status, body = await alice.create(**request)
        if status != expected or any(w not in body["detail"] for w in words):
            wrong.append((what, status, body))
    assert wrong == []
    assert (await alice.get("api/sessions?status=all"))["items"] == []


async def test_bodies_that_cannot_be_read_are_refused(alice: API):
    headers = {"Content-Type": "application/json"}
    for text in ("", "{", "[]", "null", '{"image": "a"', "\xff", "[" * 100_000):
        data = text.encode("latin-1")
        status, body = await alice.send(
            "POST", "api/sessions", data=data, headers=headers
        )
        assert (status, body["code"]) == (400, "malformed-request"), text[:20]
    status, body = await alice.send("POST", "api/sessions", data=b"image=a")
    assert status == 400
    assert "application/json" in body["detail"]


async def test_a_body_of_megabytes_is_refused(alice: API):
    status, body = await alice.send(
        "POST",
        "api/sessions",
        data=io.BytesIO(bytes(2 << 20)),
        headers={"Content-Type": "application/json"},
    )
    assert (status, body["code"]) == (413, "too-large")


async def test_unknown_parameters_and_cursors_are_refused(alice: API):
    for path, word in (
        ("api/sessions?limit=0", "limit"),
        ("api/sessions?limit=100000", "limit"),
        ("api/sessions?limit=x", "limit"),
        ("api/sessions?status=dead", "dead"),
        ("api/sessions?order=colour", "colour"),
        ("api/sessions?after=!!!", "cursor"),
        ("api/sessions?after=MjAyNi0wMS0wMXx4", "cursor"),
        ("api/sessions?colour=red", "colour"),
        ("api/events?after=-1", "after"),
    ):
        status, body = await alice.send("GET", path)
        assert status in {400, 422}, path
        assert word in body["detail"], path


async def test_nobody_and_strangers_get_nowhere(shared_service: Stack, alice: API):
    session = await alice.launch("one")
    path = f"api/sessions/{session['id']}"
    async with API(shared_service.url, None) as nobody:
        for method, route in (
            ("GET", "api/me"),
            ("GET", path),
            ("POST", "api/sessions"),
            ("GET", "api/events"),
            ("GET", "api/agents"),
            ("GET", "api/routes"),
        ):
            status, body = await nobody.send(method, route)
            assert status == 401, route
            assert "token" in body["detail"]
    async with API(shared_service.url, "x" * 40) as stranger:
        assert (await stranger.send("GET", "api/me"))[0] == 401
    async with shared_service.client("mallory") as mallory:
        status, others = await mallory.send("GET", path)
        absent, missing = await mallory.send("GET", path[:-4] + "0000")
        assert status == absent == 404
        assert set(others) == set(missing)
        status, _ = await mallory.send("POST", f"{path}/terminate", json={})
        assert status == 404
        assert (await mallory.get("api/sessions"))["items"] == []
        # The spawner's token is for spawning, not for looking at nodes or routes.
        assert (await mallory.send("GET", "api/agents"))[0] == 403
        assert (await mallory.send("GET", "api/routes"))[0] == 403


async def test_a_router_may_read_routes_and_nothing_else(shared_service: Stack):
    async with API(shared_service.url, shared_service.token("router")) as router:
        assert "version" in await router.get("api/routes")
        for route in ("api/me", "api/sessions", "api/agents", "api/events"):
            assert (await router.send("GET", route))[0] == 403


async def test_what_only_the_spawner_may_say_is_refused_from_people(alice: API):
    # Without the spawner's own fields a session is stored and waits to be attached.
    status, body = await alice.create()
    assert status == 201
    assert body["status"] == "PENDING"
    assert "JupyterHub" in body["reason"]


async def test_the_same_key_makes_one_session_and_another_request_conflicts(
    alice: API,
):
    first = await alice.create(key="k1", name="a")
    again = await alice.create(key="k1", name="a")
    other = await alice.create(key="k1", name="b")
    assert (first[0], again[0], other[0]) == (201, 200, 409)
    assert first[1]["id"] == again[1]["id"]
    assert "new key" in other[1]["detail"]


async def test_many_at_once_with_one_key_make_one_session(alice: API):
    made = await asyncio.gather(*(alice.create(key="k", name="n") for _ in range(20)))
    assert len({body["id"] for _, body in made}) == 1
    assert sorted(status for status, _ in made) == [200] * 19 + [201]


async def test_a_name_is_taken_only_while_its_session_lives(alice: API):
    session = await alice.launch("one", name="mine")
    status, body = await alice.create(name="mine")
    assert (status, "mine" in body["detail"]) == (409, True)
    await alice.send("POST", f"api/sessions/{session['id']}/terminate", json={})
    await alice.reach(session["id"], "TERMINATED", "CANCELLED")
    assert (await alice.create(name="mine"))[0] == 201


async def test_pages_follow_each_other_without_gaps_or_doubles(alice: API):
    made = [(await alice.create(name=f"n{i}"))[1]["id"] for i in range(7)]
    found, after = [], ""
    while True:
        page = await alice.get(f"api/sessions?limit=3{after}")
        found += [s["id"] for s in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert found == made[::-1]


async def test_unknown_routes_and_methods_answer_as_problems(alice: API):
    for method, path, expected in (
        ("GET", "api/nothing", 404),
        ("DELETE", "api/sessions", 405),
        ("PUT", "api/me", 405),
    ):
        status, body = await alice.send(method, path)
        assert status == expected
        assert body["status"] == expected
