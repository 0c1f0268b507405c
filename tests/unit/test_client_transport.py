"""The client against a peer that answers what each test says."""

import asyncio
import base64
import json
from contextlib import asynccontextmanager
from urllib.parse import quote

import msgspec
import pytest
from aiohttp import web

from backendai_hub.api.sessions import EventMessage, SessionPage, SessionRequest
from backendai_hub.client import Client, HubClient
from backendai_hub.client.backoff import Backoff
from backendai_hub.core.errors import (
    ForbiddenError,
    NotFoundError,
    TooManyRequestsError,
    UnauthenticatedError,
    UnavailableError,
)
from backendai_hub.core.sessions import Session, SessionStatus, SessionType
from backendai_hub.core.tenancy import Domain

AT_ONCE = Backoff(first=0.0, most=0.0, attempts=3)


def make_session(**changes):
    session = Session(
        id="0190a5b4-0000-7000-8000-000000000001",
        name="train-1",
        type=SessionType.INTERACTIVE,
        owner="alice",
        domain="default",
        project="default",
        image="python",
        slots={"cpu": "1"},
        shmem="64m",
        status=SessionStatus.PENDING,
        reason="waiting in the queue",
        created_at="2026-01-01T00:00:00Z",
    )
    return msgspec.structs.replace(session, **changes)


def as_json(document, status=200, **headers):
    return web.Response(
        body=msgspec.json.encode(document),
        status=status,
        content_type="application/json",
        headers=headers,
    )


class Peer:
    """Answers from a list, the last answer for ever; remembers every request."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []
        self.bodies = []

    async def answer(self, request):
        self.requests.append(request)
        self.bodies.append(await request.read())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request) if callable(answer) else answer()

    def header(self, name):
        return [request.headers.get(name) for request in self.requests]


def say(document, status=200, **headers):
    async def answer(_request):
        return as_json(document, status, **headers)

    return answer


@asynccontextmanager
async def serve(peer, *, socket=None):
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", peer.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    if socket is None:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        url = f"http://127.0.0.1:{port}/services/backendai/"
    else:
        await web.UnixSite(runner, socket).start()
        url = f"http+unix://{quote(socket, safe='')}/jupyter/services/backendai/api/"
    try:
        yield url
    finally:
        await runner.cleanup()


@asynccontextmanager
async def talk_to(peer, **options):
    options.setdefault("token", "secret")
    async with serve(peer) as url, HubClient(url, backoff=AT_ONCE, **options) as client:
        yield client


UNAVAILABLE = say({"code": "unavailable", "detail": "starting"}, 503)


async def test_a_write_is_repeated_with_the_same_key_until_it_is_answered():
    peer = Peer(UNAVAILABLE, UNAVAILABLE, say(make_session(), 201))

    async with talk_to(peer) as client:
        session = await client.sessions.create(SessionRequest(image="python"))

    assert session == make_session()
    keys = peer.header("Idempotency-Key")
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert keys[0]


async def test_the_callers_key_is_used():
    peer = Peer(say(make_session(), 201))

    async with talk_to(peer) as client:
        await client.sessions.create(SessionRequest(image="p"), idempotency_key="k1")

    assert peer.header("Idempotency-Key") == ["k1"]


async def test_an_outage_ends_in_one_kind_of_error():
    async with talk_to(Peer(UNAVAILABLE)) as client:
        with pytest.raises(UnavailableError, match="starting"):
            await client.me()

    async with HubClient("http://127.0.0.1:9/", backoff=AT_ONCE) as client:
        with pytest.raises(UnavailableError, match="does not answer"):
            await client.me()


async def test_a_refusal_is_not_repeated():
    peer = Peer(say({"code": "forbidden", "detail": "not you"}, 403))

    async with talk_to(peer) as client:
        with pytest.raises(ForbiddenError, match="not you"):
            await client.sessions.get("x")

    assert len(peer.requests) == 1


async def test_a_log_in_is_sent_only_once():
    peer = Peer(UNAVAILABLE)

    async with talk_to(peer) as client:
        with pytest.raises(UnavailableError):
            await client.accounts.verify("alice", "guess")

    assert len(peer.requests) == 1


async def test_slowing_down_for_a_moment_is_done_without_saying():
    busy = say({"code": "too-many-requests", "detail": "slow down"}, 429)
    peer = Peer(busy, say({"name": "alice"}))

    async with talk_to(peer) as client:
        assert (await client.me()).name == "alice"

    assert len(peer.requests) == 2


async def test_slowing_down_for_long_is_the_callers_to_decide():
    headers = {"Retry-After": "600"}
    peer = Peer(say({"code": "too-many-requests", "detail": "slow"}, 429, **headers))

    async with talk_to(peer) as client:
        with pytest.raises(TooManyRequestsError) as refused:
            await client.me()

    assert refused.value.fields == {"retry_after": 600}
    assert len(peer.requests) == 1


async def test_what_may_have_been_done_is_not_done_again():
    """A noun's making has no key that would make it harmless."""
    for ask in (
        lambda client: client.domains.create(name="research"),
        lambda client: client.domains.purge("research"),
        lambda client: client.domains.update("research", if_match=1, description="x"),
    ):
        peer = Peer(UNAVAILABLE)
        async with talk_to(peer) as client:
            with pytest.raises(UnavailableError):
                await ask(client)
        assert len(peer.requests) == 1


async def test_what_is_the_same_however_often_it_is_done_is_done_again():
    peer = Peer(UNAVAILABLE, say(Domain(id="d", name="research")))

    async with talk_to(peer) as client:
        await client.domains.update("research", description="x")

    assert [r.method for r in peer.requests] == ["PATCH", "PATCH"]
    assert peer.header("If-Match") == [None, None]


async def test_preconditions_and_references_are_sent_as_the_service_reads_them():
    peer = Peer(say(Domain(id="d", name="research")))

    async with talk_to(peer) as client:
        await client.projects.purge("research:a/b", if_match=7)

    assert peer.header("If-Match") == ['"7"']
    assert peer.requests[0].raw_path.endswith("/api/projects/research:a%2Fb")


@pytest.mark.parametrize("reference", ["", ".", ".."])
async def test_a_reference_never_leads_to_another_route(reference):
    peer = Peer(say({}))

    async with talk_to(peer) as client:
        with pytest.raises(NotFoundError):
            await client.domains.purge(reference)
        with pytest.raises(NotFoundError):
            await client.members.change(reference, add=["grace"])

    assert not peer.requests


async def test_a_keypair_is_shown_by_http_basic():
    peer = Peer(say({"name": "alice"}))

    async with talk_to(peer, token=None, access_key="AKIA", secret_key="hush:é") as it:
        await it.me()

    sent = peer.header("Authorization")[0].removeprefix("Basic ")
    assert base64.b64decode(sent).decode() == "AKIA:hush:é"


async def test_a_page_of_something_else_is_not_taken_for_an_answer():
    async def page(_request):
        return web.Response(text="<html>Sign in</html>", content_type="text/html")

    async with talk_to(Peer(page)) as client:
        with pytest.raises(UnavailableError):
            await client.me()


async def test_redirects_to_a_log_in_are_not_followed():
    async def redirect(_request):
        return web.Response(status=302, headers={"Location": "/hub/login"})

    peer = Peer(redirect)
    async with talk_to(peer) as client:
        with pytest.raises(Exception, match="302"):
            await client.me()

    assert len(peer.requests) == 1


async def test_a_renewed_token_file_is_read_when_the_old_token_is_refused(tmp_path):
    file = tmp_path / "token"
    file.write_text("old\n")

    async def check(request):
        if request.headers["Authorization"] != "token new":
            return as_json({"code": "unauthenticated"}, 401)
        return as_json({"name": "alice"})

    async with talk_to(Peer(check), token=None, token_file=file) as client:
        with pytest.raises(UnauthenticatedError):
            await client.me()
        file.write_text("new\n")
        assert (await client.me()).name == "alice"


async def test_a_missing_token_file_says_which(tmp_path):
    async with talk_to(
        Peer(say({})), token=None, token_file=tmp_path / "gone"
    ) as client:
        with pytest.raises(UnavailableError, match="gone"):
            await client.me()


async def test_a_trusted_service_names_the_user_it_acts_for():
    peer = Peer(say({"name": "x"}))

    async with talk_to(peer) as client:
        await client.acting_for("zoë@example.org").me()
        await client.me()

    sent = [dict(r.raw_headers).get(b"X-Backendai-Act-For") for r in peer.requests]
    assert sent == ["zoë@example.org".encode(), None]


async def test_lists_go_from_page_to_page():
    first = SessionPage(items=[make_session(name="a")], next="cursor+1")
    second = SessionPage(items=[make_session(name="b")])
    peer = Peer(say(first), say(second))

    async with talk_to(peer) as client:
        names = [s.name async for s in client.sessions.list(status="live")]

    assert names == ["a", "b"]
    assert [dict(r.query) for r in peer.requests] == [
        {"status": "live"},
        {"status": "live", "after": "cursor+1"},
    ]


async def test_what_is_not_spawned_is_none_and_not_an_error():
    async with talk_to(Peer(say({"code": "not-found"}, 404))) as client:
        assert await client.sessions.spawned("key") is None
        assert await client.sessions.attached("train-1") is None
        with pytest.raises(NotFoundError):
            await client.sessions.get("0190")


async def test_unix_sockets_carry_the_api(tmp_path):
    socket = str(tmp_path / "hub.sock")
    peer = Peer(say({"version": "1.2"}))

    async with serve(peer, socket=socket) as url, HubClient(url) as client:
        assert await client.version() == "1.2"

    assert peer.requests[0].path == "/jupyter/services/backendai/api/"


async def test_following_events_resumes_after_the_last_one():
    def event(seq):
        message = EventMessage(
            seq=seq, at="", kind="session.moved", session_id=None, text=str(seq)
        )
        data = msgspec.json.encode(message).decode()
        return f"id: {seq}\nevent: session\ndata: {data}\n\n".encode()

    def stream(*seqs):
        async def answer(request):
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            await response.write(b": from 0\n\n" + b"".join(map(event, seqs)))
            return response

        return answer

    peer = Peer(stream(1, 2), UNAVAILABLE, stream(3))
    async with talk_to(peer) as client:
        events = client.sessions.follow(after=0)
        seen = [(await anext(events)).seq for _ in range(3)]
        await events.aclose()

    assert seen == [1, 2, 3]
    assert [r.query["after"] for r in peer.requests] == ["0", "2", "2"]


async def test_who_watches_a_session_hears_of_it_and_its_log_and_of_no_other():
    def tell(name, document):
        return f"event: {name}\ndata: {json.dumps(document)}\n\n".encode()

    def fact(session_id):
        return tell(
            "session",
            {"seq": 1, "at": "", "kind": "x", "text": "", "session_id": session_id},
        )

    async def stream(request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for logs in ([], ["another"], ["mine", "another"]):
            told = {"kinds": ["queue"], **({"logs": logs} if logs else {})}
            await response.write(tell("changed", told))
        await response.write(fact("another") + fact("mine"))
        return response

    peer = Peer(stream)
    async with talk_to(peer) as client, client.sessions.watch("mine") as noticed:
        assert len([each async for each in noticed]) == 2

    assert peer.requests[0].query["changes"] == "1"


async def test_scripts_use_it_without_await():
    page = SessionPage(items=[make_session(name="a")])

    def script(url):
        with Client(url, token="secret") as client:
            return [s.name for s in client.sessions.list(status="live")]

    async with serve(Peer(say(page))) as url:
        assert await asyncio.to_thread(script, url) == ["a"]


async def test_waiting_returns_when_the_session_runs():
    running = make_session(status=SessionStatus.RUNNING)
    moved = EventMessage(seq=4, at="", kind="x", session_id=running.id, text="")
    peer = Peer(say(make_session()), say([moved]), say(running))

    def script(url):
        with Client(url, token="secret") as client:
            return client.sessions.wait(running.id)

    async with serve(peer) as url:
        ended = await asyncio.to_thread(script, url)
    assert (ended.id, ended.status) == (running.id, SessionStatus.RUNNING)


def test_outside_a_session_it_says_what_is_missing():
    with pytest.raises(LookupError, match="BACKENDAI_API_URL"):
        Client(environ={})


def test_addresses_that_are_none_are_refused():
    with pytest.raises(ValueError, match="ftp"):
        HubClient("ftp://example.org/")
