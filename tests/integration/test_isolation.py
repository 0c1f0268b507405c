"""Nothing of a domain is ever told to the people of another.

Two domains hold twins of everything. People of ``amber`` ask every route in every way
for what is ``beryl``'s; every answer, refusals and events with it, is searched for
anything of ``beryl`` that the question itself did not hold.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
import typing
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from backendai_hub.core.access import is_for_anybody
from backendai_hub.core.fields import Reference, fields_of
from backendai_hub.core.nouns import NOUNS, Noun
from backendai_hub.handlers.base import Operation
from backendai_hub.handlers.routes import API
from backendai_hub.handlers.spec import list_operations
from tests.admin import KeyAPI, Site, standing_site
from tests.harness import until

ASKING = ["amber-user", "amber-mate", "amber-admin"]
OPERATIONS = list_operations(API)


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with standing_site(request.param) as standing:
        yield standing


def canaries(site: Site) -> set[str]:
    """Everything of beryl that could be recognised: names, addresses, ids."""
    found = {"beryl"}
    for made in site.things["beryl"].values():
        found.add(made["id"])
        found.add(made["name"].casefold())
    return found


class Listener:
    """Asks in somebody's name, and keeps what must not have been answered."""

    def __init__(self, site: Site, api: KeyAPI) -> None:
        self.api = api
        self.site = site
        self.leaks: list[str] = []
        self.statuses: list[int] = []
        self.heard = ""
        self._canaries = canaries(site)

    async def ask(self, method: str, path: str, **options: Any) -> tuple[int, str]:
        status, text, headers = await self.api.ask(method, path, **options)
        told = f"{text} {dict(headers)}"
        question = f"{path} {options}"
        self.listen(f"{method} {question}", question, told)
        self.statuses.append(status)
        assert status < 500, (method, path, options, text)
        return status, text

    def listen(self, label: str, question: str, told: str) -> None:
        """Search an answer for what the question did not hold."""
        question = question.casefold()
        for asked in sorted(self._canaries, key=len, reverse=True):
            if asked in question:
                # What was typed may be repeated, and only that.
                told = re.sub(re.escape(asked), "", told, flags=re.IGNORECASE)
        rest = told.casefold()
        self.leaks += [
            f"{label}: {canary} in {told[max(0, rest.index(canary) - 400) :][:500]}"
            for canary in self._canaries
            if canary in rest
        ]


@pytest.fixture(params=ASKING)
async def listener(
    site: Site, request: pytest.FixtureRequest
) -> AsyncIterator[Listener]:
    async with site.api(request.param) as api:
        yield Listener(site, api)


def theirs(site: Site, place: str) -> list[str]:
    """Return what may stand for something of beryl's in a request."""
    made = site.things["beryl"].get(place)
    if made is None:
        return [str(uuid.uuid4())]
    names = [made["id"], made["name"]]
    if place == "projects":
        names.append(f"beryl:{made['name']}")
    return [*names, made["name"].upper()]


async def test_what_is_read_without_a_name_tells_nothing(listener: Listener):
    """Each such route, as it is and with each of its parameters; acts, too.

    The first test here, because acts tell what amber's own people have typed.
    """
    async with listener.site.api("root") as root:
        # Acts that are about both domains.
        name = f"amber-mover-{uuid.uuid4().hex[:6]}"
        await root.make("users", name=name, domain="amber")
        await root.change(f"users/{name}", domain="beryl")
        access = "resource-groups/amber-nodes/access"
        for change in ("allow", "deny"):
            body = {change: [{"kind": "domain", "name": "beryl"}]}
            status, _ = await root.send("POST", f"api/{access}", json=body)
            assert status == 200
    words = ["beryl", "beryl-user", listener.site.things["beryl"]["users"]["id"]]
    asked = 0
    for path, described in OPERATIONS:
        if described.method != "get" or "{" in path or path == "api/events":
            continue
        await listener.ask("GET", path)
        fields = () if described.query is None else described.query.__struct_fields__
        if path == "api/audit/export":
            fields = ()  # what an export was asked for is an act itself
        for field in fields:
            for word in words:
                await listener.ask("GET", path, params={field: word})
        asked += 1
    assert asked > 15
    assert listener.leaks == []


async def test_no_list_tells_of_another_domain(listener: Listener):
    """Whatever it is narrowed to, searched for, or ordered by."""
    site = listener.site
    wanted = ["beryl", "BERYL", "ryl", "beryl.example", "r", "user of beryl"]
    wanted += [made["id"] for made in site.things["beryl"].values()]
    for noun in NOUNS:
        place = f"api/{noun.plural}"
        for text in wanted:
            await listener.ask("GET", place, params={"search": text, "limit": "200"})
        for name in noun.filters:
            for value in [*theirs(site, f"{name}s"), "beryl", "beryl,amber"]:
                query = {name: value, "limit": "200"}
                await listener.ask("GET", place, params=query)
        for order in noun.sorts:
            for direction in ("", "-"):
                await walk_pages(listener, noun, f"{direction}{order}")
    assert listener.leaks == []
    assert 200 in listener.statuses


async def walk_pages(listener: Listener, noun: Noun, order: str) -> None:
    """Read a list one by one, then from where beryl's own thing would be."""
    after: str | None = None
    for _ in range(30):
        query = {"limit": "1", "order": order}
        if after is not None:
            query["after"] = after
        status, text = await listener.ask("GET", f"api/{noun.plural}", params=query)
        if status != 200:
            return
        after = json.loads(text)["next"]
        if after is None:
            break
    field = order.removeprefix("-")
    made = listener.site.things["beryl"].get(noun.plural)
    if made is not None and field in made:
        raw = json.dumps([field, str(made[field]).casefold(), made["id"]])
        cursor = base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")
        query = {"limit": "200", "order": order, "after": cursor}
        await listener.ask("GET", f"api/{noun.plural}", params=query)


async def test_filters_in_any_combination_tell_nothing(listener: Listener):
    """Many at once, drawn by lot (the same lot every time)."""
    draw = random.Random(7)
    values = ["beryl", "beryl-user", "beryl-one", "true", "false", "user", "active"]
    values += [made["id"] for made in listener.site.things["beryl"].values()]
    for _ in range(150):
        noun = draw.choice(NOUNS)
        names = draw.sample(noun.filters, k=draw.randint(1, len(noun.filters)))
        query = {name: draw.choice(values) for name in names}
        query |= {"order": draw.choice(noun.sorts), "search": draw.choice(["", "e"])}
        await listener.ask("GET", f"api/{noun.plural}", params=query)
    assert listener.leaks == []


def least(hint: Any, word: str) -> Any:
    """Return a body's value in which *word* stands wherever a text may."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return least(typing.get_args(hint)[0], word)
    if origin is typing.Literal:
        return typing.get_args(hint)[0]
    if origin is list:
        return [least(typing.get_args(hint)[0], word)]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        kinds = typing.get_type_hints(hint, include_extras=True)
        return {name: least(kind, word) for name, kind in kinds.items()}
    if origin is not None and origin is not dict:
        options = [a for a in typing.get_args(hint) if a is not msgspec.UnsetType]
        return least(options[0], word) if options else None
    return {str: word, int: 1, bool: False, float: 1.0}.get(hint)


def bodies(described: Operation, word: str) -> list[Any]:
    """Return bodies of a route: the whole of it, and each of its fields alone."""
    if described.body is None:
        return [None]
    whole = {k: v for k, v in least(described.body, word).items() if v is not None}
    required = {
        f.name
        for f in msgspec.structs.fields(described.body)
        if f.default is msgspec.NODEFAULT and f.default_factory is msgspec.NODEFAULT
    }
    base = {name: value for name, value in whole.items() if name in required}
    return [base, *({**base, name: whole[name]} for name in whole)]


async def test_no_route_tells_of_anothers_thing_by_its_name_or_id(listener: Listener):
    """Each route, each method, asked for beryl's things: as if they were not there."""
    site, differ = listener.site, []
    for path, described in OPERATIONS:
        if "{" not in path or "events" in path:
            continue
        for reference in theirs(site, path.split("/")[1]):
            missing = re.sub(r"[a-z0-9]", "x", reference.casefold())
            told = []
            for name in (reference, missing):
                url = re.sub(r"\{[a-z_]+\}", lambda _, n=name: quote(n, safe=""), path)
                body = bodies(described, "amber-none")[0]
                options = {} if body is None else {"json": body}
                options["headers"] = {"If-Match": '"987654321"'}
                status, text = await listener.ask(
                    described.method.upper(), url, **options
                )
                # What anybody is told whatever they name tells of nothing.
                tells = status < 400 and not is_for_anybody(described.action)
                assert not tells or name == missing, (path, reference, text)
                problem = {} if not text else json.loads(text)
                problem.pop("request_id", None)
                told.append((status, json.dumps(problem).replace(name, "…")))
            if told[0] != told[1]:
                differ.append((path, described.method, told))
    assert differ == []
    assert listener.leaks == []


COMMON = {
    path
    for noun in NOUNS
    for path in (
        f"api/{noun.plural}",
        f"api/{noun.plural}/{{reference}}",
        f"api/{noun.plural}/bulk",
    )
}
OWN_WORDS = {"api/sessions/{session_id}"}
"""Where what one says oneself is kept: the name of one's session."""
QUIET = ("api/logins", "api/accounts")
"""Where nobody asks for others' things: codes of a login, one's own password."""


async def test_no_body_finds_out_about_another_domain(listener: Listener):
    """References, lists of people: unknown is all that is answered.

    The common verbs of nouns have tests of their own.
    """
    site = listener.site
    words = [
        "beryl-user",
        "beryl:beryl-one",
        "beryl",
        site.things["beryl"]["users"]["id"],
    ]
    asked = set()
    for path, described in OPERATIONS:
        # What would be stored, or end what other tests look at, is left out.
        ends = path.rpartition("/")[2] in {"terminate", "secret", "dotfiles", "hold"}
        if path in COMMON | OWN_WORDS or path.startswith(QUIET) or ends:
            continue
        if not described.body:
            continue
        own = site.things["amber"].get(path.split("/")[1], {"id": "x"})["id"]
        url = re.sub(r"\{[a-z_]+\}", own, path)
        for word in words:
            for body in bodies(described, word):
                await listener.ask(described.method.upper(), url, json=body)
        asked.add(path)
    assert "api/projects/{reference}/members" in asked
    assert listener.leaks == []


async def test_references_to_anothers_things_are_unknown_in_each_field(
    listener: Listener,
):
    site = listener.site
    for noun in NOUNS:
        for name, declared in fields_of(noun.shown).items():
            if not isinstance(declared.kind, Reference):
                continue
            plural = next(n.plural for n in NOUNS if n.name == declared.kind.noun)
            if plural not in site.things["beryl"]:
                continue
            for reference in theirs(site, plural):
                required = bodies_of(noun, name, reference)
                status, text = await listener.ask(
                    "POST", f"api/{noun.plural}", json=required
                )
                assert status in {403, 422}, (noun.name, name, text)
                own = site.things["amber"].get(noun.plural)
                if own is not None and not declared.once:
                    status, text = await listener.ask(
                        "PATCH",
                        f"api/{noun.plural}/{own['id']}",
                        json={name: reference},
                    )
                    assert status in {403, 404, 422}, (noun.name, name, text)
    assert listener.leaks == []


def bodies_of(noun: Noun, name: str, reference: str) -> dict[str, Any]:
    """Return the least body of a new noun in which a field refers to *reference*."""
    body: Mapping[str, Any] = {"name": "amber-try", "domain": "amber"}
    hints = typing.get_type_hints(noun.create_type)
    wanted = {k: v for k, v in body.items() if k in hints}
    if noun.name == "keypair":
        wanted["user"] = "amber-user"
    if noun.name == "preset":
        wanted["resource_slots"] = {"cpu": "1"}
    if noun.name == "reservation":
        wanted |= {"begins_at": "2040-01-01T00:00Z", "ends_at": "2040-01-02T00:00Z"}
    return {**wanted, name: reference}


async def test_bulk_tells_of_anothers_things_as_of_none(listener: Listener):
    for noun in NOUNS:
        references = theirs(listener.site, noun.plural)
        missing = [re.sub(r"[a-z0-9]", "x", r.casefold()) for r in references]
        for verb in ("update", "purge"):
            for group in (references, missing):
                entries: list[Any] = list(group)
                if verb == "update":
                    entries = [{"reference": r, "fields": {}} for r in group]
                await listener.ask(
                    "POST", f"api/{noun.plural}/bulk", json={verb: entries}
                )
    assert listener.leaks == []


async def test_sessions_are_asked_for_in_vain(listener: Listener):
    site = listener.site
    ids = [made["id"] for p, made in site.things["beryl"].items() if "sessions" in p]
    for owner in ("*", "beryl-user", "beryl-mate", "BERYL-USER"):
        for status in ("all", "live", "ended"):
            query = {"owner": owner, "status": status, "limit": "200"}
            await listener.ask("GET", "api/sessions", params=query)
    for session_id in ids:
        for path in ("", "/events", "/events?after=0"):
            status, _ = await listener.ask("GET", f"api/sessions/{session_id}{path}")
            assert status == 404
    fields: list[dict[str, Any]] = [
        {"project": "beryl-one"},
        {"project": site.things["beryl"]["projects"]["id"]},
        {"resource_group": "beryl-nodes"},
        {"resource_group": site.things["beryl"]["resource-groups"]["id"]},
        {"image": "beryl.example/image"},
        {"image": "beryl-registry/image:1"},
        {"name": "beryl-work-user", "image": "none"},
    ]
    for more in fields:
        body = {"image": "jupyterlab", **more}
        status, _ = await listener.ask("POST", "api/sessions", json=body)
        assert status in {403, 422}, more
    for path in ("api/resources", "api/presets/check", "api/me", "api/images"):
        await listener.ask("GET", path)
    for query in ("project=beryl-one", "resource_group=beryl-nodes"):
        await listener.ask("GET", f"api/presets/check?{query}")
    assert listener.leaks == []


async def test_no_stream_tells_what_happens_in_another_domain(
    listener: Listener, site: Site
):
    """Everything that has happened, and what happens while it is read."""

    async def read() -> None:
        assert listener.api._session is not None
        url = f"{listener.api._url}api/events?after=0&usage=all&changes=1"
        async with listener.api._session.get(url) as response:
            async for chunk in response.content.iter_any():
                listener.heard += chunk.decode()

    reading = asyncio.create_task(read())
    name = f"beryl-loud-{uuid.uuid4().hex[:6]}"
    mark = f"amber-mark-{uuid.uuid4().hex[:6]}"
    async with AsyncExitStack() as opened:
        beryl = await opened.enter_async_context(site.api("beryl-user"))
        own = await opened.enter_async_context(site.api(ASKING[0]))
        asking = own if listener.api.access_key == own.access_key else listener.api
        await until(lambda: listener.heard, "the stream is open")
        for api, session in ((beryl, name), (asking, mark)):
            status, body = await api.create(name=session)
            assert status == 201, body
            status, body = await api.send(
                "POST", f"api/sessions/{body['id']}/terminate", json={"force": True}
            )
            assert status == 202, body
        await until(lambda: mark in listener.heard, "what is one's own is told")
    reading.cancel()
    with suppress(asyncio.CancelledError):
        await reading
    listener.listen("stream", "", listener.heard)
    assert listener.leaks == []


async def test_conflicts_and_stale_changes_name_nobody_elsewhere(
    site: Site, listener: Listener
):
    """The same name in another domain is no conflict where names are the domain's."""
    async with AsyncExitStack() as opened:
        root = await opened.enter_async_context(site.api("root"))
        project = f"twin-{uuid.uuid4().hex[:8]}"
        await root.make("projects", name=project, domain="beryl")
        if listener.api.access_key == site.keys["amber-admin"][0]:
            status, _ = await listener.ask(
                "POST", "api/projects", json={"name": project, "domain": "amber"}
            )
            assert status == 201, "not even that there is one is told"
        await root.change("projects/amber:amber-one", description=str(uuid.uuid4()))
        for path in ("projects/amber-one", "domains/amber"):
            await listener.ask(
                "PATCH",
                f"api/{path}",
                json={"description": "x"},
                headers={"If-Match": '"1"'},
            )
            await listener.ask("DELETE", f"api/{path}")
    assert listener.leaks == []


async def test_the_search_for_leaks_finds_one(site: Site):
    """What a superadmin is answered is full of them."""
    async with site.api("root") as root:
        hearing = Listener(site, root)
        await hearing.ask("GET", "api/domains", params={"limit": "200"})
        await hearing.ask("GET", "api/users/beryl-user")
    assert any("api/domains" in leak for leak in hearing.leaks)
    assert any("api/users" in leak for leak in hearing.leaks), "its id, though named"
