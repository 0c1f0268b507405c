"""Registries that lie, wander off, never end, or ask for what is not theirs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
import traceback
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from backendai_hub.core.errors import (
    HubError,
    InvalidRequestError,
    RegistryError,
    RegistryLacksError,
    RegistryRefusedError,
    RegistryUnlistedError,
    RegistryUnsupportedError,
)
from backendai_hub.registries.client import RegistryClient

CONFIG = json.dumps({"architecture": "amd64", "os": "linux"}).encode()
SECRET = {"username": "robot", "password": "sesame-open"}
OCI = "application/vnd.oci.image"

Answers = Callable[[web.Request], Awaitable[web.StreamResponse]]


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


MANIFEST = json.dumps(
    {
        "schemaVersion": 2,
        "config": {
            "mediaType": f"{OCI}.config.v1+json",
            "digest": digest_of(CONFIG),
            "size": len(CONFIG),
        },
        "layers": [],
    }
).encode()


class Peer:
    """Answers as a test says, and remembers what it was asked."""

    def __init__(self, answer: Answers, url: str) -> None:
        self.url = url
        self.answer = answer
        self.requests: list[web.Request] = []

    @property
    def paths(self) -> list[str]:
        return [request.path_qs for request in self.requests]

    @property
    def secrets(self) -> list[str | None]:
        return [request.headers.get("Authorization") for request in self.requests]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        return await self.answer(request)


@pytest.fixture
async def listen():
    async with AsyncExitStack() as stack:

        async def start(answer, *, host="127.0.0.1", tls=None):
            return await stack.enter_async_context(listening(answer, host, tls))

        yield start


@asynccontextmanager
async def listening(answer, host, tls):
    peer = Peer(answer, "")
    runner = web.ServerRunner(web.Server(peer.handle), shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        peer.url = f"{'https' if tls else 'http'}://{host}:{port}"
        yield peer
    finally:
        await runner.cleanup()


def always(body=b"", status=200, **headers):
    async def answer(request):
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return web.Response(body=body, status=status, headers=named)

    return answer


def by_path(**bodies):
    """Answer with a body for each part of a path that is named."""

    async def answer(request):
        for part, body in bodies.items():
            if f"/{part}/" in request.path:
                return web.Response(body=body)
        return web.Response(status=404)

    return answer


async def everything(names):
    return [name async for name in names]


async def test_an_honest_peer_is_understood(listen):
    peer = await listen(by_path(manifests=MANIFEST, blobs=CONFIG))

    async with RegistryClient(peer.url) as client:
        [image] = await client.resolve("lab", "1")

    assert image.digest == digest_of(MANIFEST)
    assert image.size_bytes == len(CONFIG)


async def test_the_password_is_not_sent_elsewhere_over_plain_http(listen):
    thief = await listen(always(b'{"token": "x"}'), host="localhost")
    challenge = f'Bearer realm="{thief.url}/token",service="s"'
    peer = await listen(always(status=401, WWW_Authenticate=challenge))

    async with RegistryClient(peer.url, **SECRET) as client:
        with pytest.raises(RegistryRefusedError, match="no password was sent there"):
            await client.ping()

    assert thief.requests == []
    assert peer.secrets == [None]


async def test_manifests_tags_and_tokens_are_not_looked_for_elsewhere(listen):
    other = await listen(by_path(manifests=MANIFEST, blobs=CONFIG), host="localhost")
    peer = await listen(always(status=307, Location=f"{other.url}/v2/lab/manifests/1"))

    async with RegistryClient(peer.url, **SECRET) as client:
        for attempt in (
            client.ping(),
            client.resolve("lab", "1"),
            client.digest("lab", "1"),
            client.untag("lab", "1"),
            everything(client.tags("lab")),
            everything(client.repositories()),
        ):
            with pytest.raises(RegistryError, match=f"a redirect to {other.url}; if"):
                await attempt

    assert other.requests == []


async def test_a_token_server_s_redirect_is_not_followed(listen):
    other = await listen(always(b'{"token": "x"}'), host="localhost")

    async def answer(request):
        if request.path == "/token":
            raise web.HTTPTemporaryRedirect(other.url)
        challenge = f'Bearer realm="{peer.url}/token"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    peer = await listen(answer)
    async with RegistryClient(peer.url, **SECRET) as client:
        with pytest.raises(RegistryError, match="token server that answered 307"):
            await client.ping()

    assert other.requests == []


async def test_a_blob_may_be_elsewhere_but_the_password_does_not_go_along(listen):
    store = await listen(always(CONFIG), host="localhost")

    async def answer(request):
        if "Authorization" not in request.headers:
            challenge = {"WWW-Authenticate": "Basic realm=x"}
            return web.Response(status=401, headers=challenge)
        if request.path.startswith("/moved/"):
            raise web.HTTPTemporaryRedirect(f"{store.url}/signed?by=us")
        if "/blobs/" in request.path:
            raise web.HTTPTemporaryRedirect(f"/moved{request.path}")
        return web.Response(body=MANIFEST)

    peer = await listen(answer)
    async with RegistryClient(peer.url, **SECRET) as client:
        assert len(await client.resolve("lab", "1")) == 1

    assert peer.secrets[0] is None
    assert all(peer.secrets[1:])
    assert peer.paths[-1].startswith("/moved/")
    assert store.paths == ["/signed?by=us"]
    assert store.secrets == [None]


async def test_who_keeps_the_blobs_has_no_business_with_the_password(listen):
    store = await listen(
        always(status=401, WWW_Authenticate="Basic realm=x"), host="localhost"
    )

    async def answer(request):
        if "/blobs/" in request.path:
            raise web.HTTPTemporaryRedirect(store.url)
        return web.Response(body=MANIFEST)

    peer = await listen(answer)
    async with RegistryClient(peer.url, **SECRET) as client:
        with pytest.raises(RegistryRefusedError):
            await client.resolve("lab", "1")

    assert store.secrets == peer.secrets[:1] == [None]


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("file:///etc/passwd", "not http or https"),
        ("http://me@localhost/", "not http or https"),
        ("/v2/lab/blobs/again", "from one address to the next"),
        ("", "from one address to the next"),
    ],
)
async def test_a_blob_s_redirects_end(listen, location, told):
    async def answer(request):
        if "/blobs/" in request.path:
            return web.Response(status=302, headers={"Location": location})
        return web.Response(body=MANIFEST)

    peer = await listen(answer)
    async with RegistryClient(peer.url) as client:
        with pytest.raises(RegistryError, match=told):
            await client.resolve("lab", "1")


async def test_a_blob_does_not_come_in_the_clear_where_the_rest_does_not(
    listen, tmp_path
):
    store = await listen(always(CONFIG))

    async def answer(request):
        if "/blobs/" in request.path:
            raise web.HTTPTemporaryRedirect(store.url)
        return web.Response(body=MANIFEST)

    peer = await listen(answer, tls=make_tls(tmp_path))
    async with RegistryClient(peer.url, verify_tls=False) as client:
        with pytest.raises(RegistryError, match="where anybody may listen"):
            await client.resolve("lab", "1")

    assert store.requests == []


async def test_a_password_that_was_refused_is_not_tried_again(listen):
    peer = await listen(always(status=401, WWW_Authenticate="Basic realm=x"))

    async with RegistryClient(peer.url, **SECRET) as client:
        for _ in range(2):
            with pytest.raises(RegistryRefusedError):
                await client.ping()

    assert [secret is not None for secret in peer.secrets] == [False, True, True]


async def test_charts_and_signatures_are_kept_there_too(listen):
    chart = MANIFEST.replace(
        b"application/vnd.oci.image.config", b"application/vnd.cncf.helm.config"
    )
    peer = await listen(by_path(manifests=chart, blobs=CONFIG))

    async with RegistryClient(peer.url) as client:
        assert await client.resolve("chart", "1") == []


async def test_answers_that_never_end_are_not_read_to_their_end(listen):
    sent = 0

    async def answer(request):
        nonlocal sent
        if "/blobs/" not in request.path and request.path.endswith("/small"):
            return web.Response(body=MANIFEST)
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b" " * (1 << 16))
                sent += 1 << 16
        except ConnectionError:
            return response

    peer = await listen(answer)
    async with RegistryClient(peer.url) as client:
        for attempt, largest in (
            (client.resolve("lab", "1"), "4096 KiB"),
            (client.resolve("lab", "small"), "1024 KiB"),
            (everything(client.tags("lab")), "4096 KiB"),
            (everything(client.repositories()), "4096 KiB"),
        ):
            with pytest.raises(RegistryError, match=f"more than the {largest}"):
                await attempt

    assert sent < 64 << 20


async def test_a_manifest_is_what_its_digest_names_or_nothing(listen):
    peer = await listen(by_path(manifests=MANIFEST, blobs=CONFIG))
    other = digest_of(b"other")

    async with RegistryClient(peer.url) as client:
        with pytest.raises(RegistryError, match="who altered it"):
            await client.resolve("lab", other)
        peer.answer = always(MANIFEST, Docker_Content_Digest=other)
        with pytest.raises(RegistryError, match=f"as lab:1 than its digest {other}"):
            await client.resolve("lab", "1")


async def test_a_configuration_is_what_its_digest_names_or_nothing(listen):
    peer = await listen(by_path(manifests=MANIFEST, blobs=CONFIG + b" "))

    async with RegistryClient(peer.url) as client:
        with pytest.raises(RegistryError, match="something else as the configuration"):
            await client.resolve("lab", "1")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"schemaVersion": "two"}',
        b'{"schemaVersion": 2, "manifests": [{"digest": "../x", "size": 1}]}',
        b'{"schemaVersion": 2, "layers": [{"digest": "sha256:0", "size": 1}]}',
        b"[" * 100_000,
    ],
)
async def test_a_manifest_in_no_known_shape_is_refused(listen, body):
    peer = await listen(always(body))

    async with RegistryClient(peer.url) as client:
        with pytest.raises(RegistryError, match="in a shape that cannot be read"):
            await client.resolve("lab", "1")


async def test_pages_may_not_go_in_circles_nor_elsewhere(listen):
    async def answer(request):
        page = int(request.query.get("page", 0))
        link = f'<http://localhost:1/elsewhere?page={(page + 1) % 3}>; rel="next"'
        names = json.dumps({"repositories": [f"r{page}", "../up", "UP"]})
        return web.Response(text=names, headers={"Link": link})

    peer = await listen(answer)
    async with RegistryClient(peer.url) as client:
        names = client.repositories()
        assert [await anext(names) for _ in range(4)] == ["r0", "r1", "r2", "r0"]
        with pytest.raises(RegistryError, match="in circles"):
            await anext(names)

    assert {path.partition("?")[0] for path in peer.paths} == {"/v2/_catalog"}


async def test_pages_end_somewhere(listen):
    async def answer(request):
        page = int(request.query.get("page", 0))
        link = f'<?page={page + 1}>; rel="next"'
        return web.json_response({"tags": [f"t{page}"]}, headers={"Link": link})

    peer = await listen(answer)
    async with RegistryClient(peer.url) as client:
        with pytest.raises(RegistryError, match="did not end the tags of lab after"):
            await everything(client.tags("lab"))

    assert len(peer.requests) == 1000


# The second is cut in the middle of the password, were it still there.
@pytest.mark.parametrize("before", ["", "x" * 186])
async def test_a_registry_that_repeats_the_password_is_not_repeated(listen, before):
    async def answer(request):
        given = request.headers.get("Authorization")
        if given is None:
            challenge = {"WWW-Authenticate": "Basic realm=x"}
            return web.Response(status=401, headers=challenge)
        message = f"{before}{SECRET['password']}{given}\n\x1b[31m" + "x" * 999
        problem = {"errors": [{"code": "DENIED", "message": message}]}
        return web.json_response(problem, status=403)

    peer = await listen(answer)
    async with RegistryClient(peer.url, **SECRET) as client:
        with pytest.raises(RegistryRefusedError, match="DENIED") as refused:
            await client.ping()

    told = "".join(traceback.format_exception(refused.value))
    assert "sesame" not in told
    assert peer.secrets[-1].removeprefix("Basic ") not in told
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 500


async def test_what_is_not_even_http_shows_no_password_either():
    async def babble(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with RegistryClient(
            f"http://127.0.0.1:{port}", kind="harbor", project="team", **SECRET
        ) as client:
            with pytest.raises(RegistryError, match="does not answer") as failed:
                await everything(client.repositories())

    error = failed.value
    assert error.__cause__ is None
    assert error.__suppress_context__
    assert SECRET["password"] not in str(error)


async def test_a_silent_registry_is_waited_for_only_so_long(listen):
    forever = asyncio.Event()

    async def answer(request):
        await forever.wait()
        return web.Response()

    peer = await listen(answer)
    async with RegistryClient(peer.url, timeout=0.05) as client:
        with pytest.raises(RegistryError, match="it took too long"):
            await client.ping()
    forever.set()


async def test_a_page_for_people_is_no_registry(listen):
    peer = await listen(always(b"<html>Welcome", Content_Type="text/html"))

    async with RegistryClient(peer.url) as client:
        with pytest.raises(RegistryError, match="it is no registry"):
            await client.ping()


async def test_a_busy_registry_says_when_to_come_back(listen):
    peer = await listen(always(status=429, Retry_After="7"))

    async with RegistryClient(peer.url) as client:
        with pytest.raises(RegistryError, match="try again in 7 seconds"):
            await client.resolve("lab", "1")


async def test_few_requests_are_under_way_at_the_same_time(listen):
    under_way, most = 0, 0

    async def answer(request):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        under_way -= 1
        return await by_path(manifests=MANIFEST, blobs=CONFIG)(request)

    peer = await listen(answer)
    async with RegistryClient(peer.url) as client:
        await asyncio.gather(*(client.resolve("lab", f"t{n}") for n in range(40)))

    assert 1 < most <= 4


async def test_many_refused_requests_fetch_one_token(listen):
    async def answer(request):
        if request.path == "/token":
            return web.json_response({"token": "good"})
        if request.headers.get("Authorization") != "Bearer good":
            challenge = f'Bearer realm="{peer.url}/token",scope="repository:lab:pull"'
            return web.Response(status=401, headers={"WWW-Authenticate": challenge})
        return await by_path(manifests=MANIFEST, blobs=CONFIG)(request)

    peer = await listen(answer)
    async with RegistryClient(peer.url) as client:
        await asyncio.gather(*(client.resolve("lab", f"t{n}") for n in range(12)))

    tokens = [path for path in peer.paths if path.startswith("/token")]
    assert tokens == ["/token?scope=repository:lab:pull"]


async def test_a_token_that_does_not_help_is_not_fetched_for_ever(listen):
    async def answer(request):
        if request.path == "/token":
            return web.json_response({"token": f"t{len(peer.requests)}"})
        challenge = f'Bearer realm="{peer.url}/token"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    peer = await listen(answer)
    async with RegistryClient(peer.url) as client:
        with pytest.raises(RegistryRefusedError):
            await client.ping()

    assert peer.paths == ["/v2/", "/token", "/v2/"]


async def test_a_public_registry_without_a_catalog_says_what_to_do(listen):
    async def answer(request):
        return web.Response(status=200 if request.path == "/v2/" else 404)

    peer = await listen(answer)
    async with RegistryClient(peer.url) as client:
        with pytest.raises(RegistryUnlistedError, match=r"answered 404\); name the"):
            await everything(client.repositories())


async def test_tags_are_removed_alone_where_that_can_be(listen):
    peer = await listen(always(status=202))

    async with RegistryClient(peer.url) as client:
        await client.untag("team/lab", "1")

    assert [(r.method, r.path) for r in peer.requests] == [
        ("DELETE", "/v2/team/lab/manifests/1")
    ]


async def test_too_many_tags_are_not_compared_to_remove_one(listen):
    async def answer(request):
        if request.method == "DELETE":
            return web.Response(status=405)
        if request.path.endswith("/tags/list"):
            return web.json_response({"tags": [f"t{n}" for n in range(502)]})
        return web.Response(headers={"Docker-Content-Digest": digest_of(MANIFEST)})

    peer = await listen(answer)
    async with RegistryClient(peer.url) as client:
        with pytest.raises(RegistryUnsupportedError, match="too many tags"):
            await client.untag("lab", "t0")

    assert len(peer.requests) == 3


async def test_a_harbor_lists_a_project_page_by_page(listen):
    async def answer(request):
        if request.path != "/api/v2.0/projects/team/repositories":
            return web.Response(status=404)
        page = int(request.query["page"])
        names = {1: ["team/lab", "team/deep/lab"], 2: ["team/z", "other/lab"]}[page]
        links = '</api/v2.0/projects/team/repositories?page=1>; rel="prev"'
        if page == 1:
            links = (
                "</api/v2.0/projects/team/repositories?page=2&page_size=100>"
                '; rel="next"'
            )
        return web.json_response(
            [{"name": name, "artifact_count": 1} for name in names],
            headers={"Link": links},
        )

    peer = await listen(answer)
    async with RegistryClient(
        peer.url, kind="harbor2", project="team", **SECRET
    ) as client:
        names = await everything(client.repositories())

    assert names == ["team/lab", "team/deep/lab", "team/z"]
    assert [path.partition("?")[2] for path in peer.paths] == [
        "page=1&page_size=100",
        "page=2&page_size=100",
    ]
    assert all(secret.startswith("Basic ") for secret in peer.secrets)


async def test_a_harbor_s_project_must_be_named_and_be_there(listen):
    peer = await listen(always(status=404))

    async with RegistryClient(peer.url, kind="harbor") as client:
        with pytest.raises(InvalidRequestError, match="name the project"):
            client.repositories()
    async with RegistryClient(peer.url, kind="harbor", project="team") as client:
        with pytest.raises(RegistryLacksError, match="repositories of project team"):
            await everything(client.repositories())
        with pytest.raises(RegistryLacksError, match="removal of team/deep/lab:1"):
            await client.untag("team/deep/lab", "1")

    assert peer.requests[-1].raw_path == (
        "/api/v2.0/projects/team/repositories/deep%252Flab/artifacts/1/tags/1"
    )


@pytest.mark.parametrize("name", ["project", "repositories"])
def test_names_in_settings_are_checked_at_once(name):
    given = ["../x"] if name == "repositories" else "../x"
    with pytest.raises(HubError):
        RegistryClient("https://registry.example", **{name: given})


async def test_a_certificate_is_checked_unless_that_is_given_up(listen, tmp_path):
    peer = await listen(always(b"{}"), tls=make_tls(tmp_path))

    async with RegistryClient(peer.url) as client:
        with pytest.raises(RegistryError, match="certificate is not trusted"):
            await client.ping()
    async with RegistryClient(peer.url, verify_tls=False) as client:
        await client.ping()


async def test_a_token_server_s_certificate_is_checked_all_the_same(listen, tmp_path):
    tls = make_tls(tmp_path)
    tokens = await listen(always(b'{"token": "x"}'), tls=tls)
    challenge = f'Bearer realm="{tokens.url}/token"'
    peer = await listen(always(status=401, WWW_Authenticate=challenge), tls=tls)

    async with RegistryClient(peer.url, verify_tls=False, **SECRET) as client:
        with pytest.raises(RegistryError, match="certificate is not trusted"):
            await client.ping()

    assert tokens.requests == []


def make_tls(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]),
            critical=True,
        )
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
