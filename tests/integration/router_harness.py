"""Real servers around a real router: what is behind it, beside it and in it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import hashlib
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from aiohttp import WSMsgType, web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from backendai_hub.api.agents import Route, RouteTable
from backendai_hub.router.app import Router
from backendai_hub.router.server import RouterServer

TOKEN = "route-api-token"
AUTHORIZED = {"Authorization": f"token {TOKEN}"}
SERVICE_TOKEN = "router-service-token"


_given_out: set[int] = set()


def free_port() -> int:
    """Return a port that nobody listens on.

    It lies below those that the system gives to outgoing connections, or one of them
    might get it before we listen.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in _given_out:
                _given_out.add(port)
                return port


class Notebook:
    """A server such as runs in a session. Asked through an agent, it plays that too."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.containers: list[str] = []
        self.uploaded = asyncio.Queue[bytes]()
        self.gone = asyncio.Event()
        self.go_on = asyncio.Event()
        self.hits = 0
        self.written = 0

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.hits += 1
        path = request.raw_path
        if path.startswith("/containers/"):
            _, _, container, _, _, rest = path.split("/", 5)
            self.containers.append(container)
            path = f"/{rest}"
        self.paths.append(path)
        name = path.partition("?")[0].rpartition("/")[2]
        action = getattr(self, f"do_{name}", self.do_echo)
        return await action(request)

    async def do_echo(self, request):
        return web.json_response(
            {
                "method": request.method,
                "path": self.paths[-1],
                "headers": list(request.headers.items()),
                "body": (await request.read()).decode("latin-1"),
            }
        )

    async def do_cookies(self, request):
        response = web.Response(text="ok")
        response.headers.add("Set-Cookie", "one=1; Path=/; HttpOnly")
        response.headers.add("Set-Cookie", "two=2; Path=/hub/")
        response.headers.add("X-Repeated", "a")
        response.headers.add("X-Repeated", "b")
        response.headers["Connection"] = "X-Private"
        response.headers["X-Private"] = "for this hop"
        return response

    async def do_stream(self, request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: first\n\n")
        await asyncio.wait_for(self.go_on.wait(), 200)
        await response.write(b"data: second\n\n")
        return response

    async def do_quiet(self, request):
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.wait_for(self.go_on.wait(), 200)
        return response

    async def do_forever(self, request):
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65536)
                self.written += 65536
                await asyncio.sleep(0)
        finally:
            self.gone.set()

    async def do_slow(self, request):
        try:
            await asyncio.wait_for(self.go_on.wait(), 200)
        finally:
            self.gone.set()
        return web.Response(text="done")

    async def do_upload(self, request):
        digest = hashlib.sha256()
        size = 0
        async for chunk in request.content.iter_any():
            self.uploaded.put_nowait(chunk)
            digest.update(chunk)
            size += len(chunk)
        return web.json_response({"size": size, "sha256": digest.hexdigest()})

    async def do_early(self, request):
        return web.Response(status=409, text="no need for the rest")

    async def do_download(self, request):
        return web.Response(body=b"d" * 3_000_000)

    async def do_broken(self, request):
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        request.transport.close()
        return response

    async def do_empty(self, request):
        return web.Response(status=204)

    async def do_unchanged(self, request):
        return web.Response(status=304, headers={"ETag": '"x"'})

    async def do_redirect(self, request):
        host = request.headers.get("X-Target", "elsewhere.example")
        return web.Response(status=302, headers={"Location": f"http://{host}/there"})

    async def do_channels(self, request):
        socket_ = web.WebSocketResponse(
            protocols=("v1.kernel.websocket.jupyter.org",), max_msg_size=0
        )
        if not socket_.can_prepare(request).ok:
            return web.Response(status=400, text="not a WebSocket")
        await socket_.prepare(request)
        async for message in socket_:
            if message.type is WSMsgType.TEXT and message.data == "close":
                await socket_.close(code=4321, message=b"enough")
            elif message.type is WSMsgType.TEXT:
                await socket_.send_str(message.data)
            else:
                await socket_.send_bytes(message.data)
        self.gone.set()
        return socket_


@contextlib.asynccontextmanager
async def serving(
    handler, *, tls: ssl.SSLContext | None = None, path: str = "", port: int = 0
) -> AsyncIterator[int]:
    """Serve *handler* on loopback (or a Unix socket) and yield the port."""
    server = web.Server(
        handler,
        handler_cancellation=True,
        access_log=None,
        auto_decompress=False,
        max_field_size=2**17,
    )
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    try:
        if path:
            site: web.BaseSite = web.UnixSite(runner, path)
        else:
            port = port or free_port()
            site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
        await site.start()
        yield port
    finally:
        await runner.cleanup()


class RoutesService:
    """The hub service as far as a router sees it: a long-poll of the route table."""

    def __init__(self, *routes: Route, version: int = 1) -> None:
        self.table = RouteTable(version=version, routes=list(routes))
        self.asked: list[dict[str, str]] = []
        self._changed = asyncio.Event()

    def publish(self, *routes: Route) -> None:
        self.table = RouteTable(version=self.table.version + 1, routes=list(routes))
        self._changed.set()
        self._changed = asyncio.Event()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"token {SERVICE_TOKEN}":
            return web.Response(status=403)
        self.asked.append(dict(request.query))
        wait = float(request.query["wait"])
        if wait and int(request.query["newer_than"]) >= self.table.version:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), wait)
        return web.Response(
            body=msgspec.json.encode(self.table), content_type="application/json"
        )


@dataclass
class Authority:
    """A certificate authority in a folder."""

    folder: Path
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test ca")])
        certificate = (
            self._builder(self.name, self.key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self.key, hashes.SHA256())
        )
        self.file = self.folder / "ca.crt"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, identity: str) -> tuple[Path, Path]:
        """Return certificate and key files for *identity*."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, identity[:60])])
        certificate = (
            self._builder(name, key)
            .add_extension(
                x509.SubjectAlternativeName([x509.DNSName(identity)]), critical=False
            )
            .sign(self.key, hashes.SHA256())
        )
        certificate_file = self.folder / f"{identity}.crt"
        key_file = self.folder / f"{identity}.key"
        certificate_file.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
        )
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate_file, key_file

    def server_context(self, identity: str) -> ssl.SSLContext:
        """Return the context of a server that is *identity* and knows its clients."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*self.issue(identity))
        context.load_verify_locations(self.file)
        context.verify_mode = ssl.CERT_REQUIRED
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context

    def _builder(self, name, key):
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=1))
        )


@dataclass
class Ports:
    """Where a router listens."""

    public: int = field(default_factory=free_port)
    api: int = field(default_factory=free_port)
    gateway: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.public}"

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.api}/api/routes"

    @property
    def gateway_url(self) -> str:
        return f"http://127.0.0.1:{self.gateway}"

    def arguments(self) -> list[str]:
        return [
            *("--ip", "127.0.0.1", "--port", str(self.public)),
            *("--api-ip", "127.0.0.1", "--api-port", str(self.api)),
        ]


@contextlib.asynccontextmanager
async def routing(*arguments: str, ports: Ports | None = None) -> AsyncIterator[Ports]:
    """Run a router in this event loop, started by its command line."""
    ports = ports or Ports()
    app = Router()
    app.initialize([*ports.arguments(), "--log-level", "warn", *arguments])
    stopped = asyncio.Event()
    server = RouterServer(app, token=TOKEN, log=app.log)
    task = asyncio.create_task(server.serve(stopped))
    try:
        await until_open(*_listening(arguments, ports), task=task)
        yield ports
    finally:
        stopped.set()
        await task


def _listening(arguments, ports: Ports) -> list[int]:
    if "--no-public" in arguments:
        return [ports.gateway]
    return [ports.public, ports.api]


async def until_open(*ports: int, task: asyncio.Task | None = None) -> None:
    """Return once something accepts connections on each of *ports*."""
    async with asyncio.timeout(60):
        for port in ports:
            while True:
                if task is not None and task.done():
                    task.result()
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.02)
                    continue
                writer.close()
                await writer.wait_closed()
                break


@contextlib.asynccontextmanager
async def router_process(
    *arguments: str, environ: dict[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a router as the process it usually is."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "backendai_hub.router", *arguments),
        env={**environment(), "CONFIGPROXY_AUTH_TOKEN": TOKEN, **(environ or {})},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def environment() -> dict[str, str]:
    """Return an environment in which the project can be imported."""
    root = Path(__file__).parents[2]
    paths = [str(root), str(root / "agent"), str(root / "labextension")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


async def raw_exchange(port: int, request: bytes, *, read: int = 65536) -> bytes:
    """Send bytes as they are and return the first that come back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        await writer.drain()
        return await asyncio.wait_for(reader.read(read), 60)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


CHP_VERSION = "5.3.0"


def find_npm_proxy() -> str:
    """Return npm's proxy; install it into a cache of the tests' if it is missing."""
    found = shutil.which("configurable-http-proxy")
    if found:
        return found
    folder = Path.home() / ".cache" / "backendai-tests" / "chp"
    command = folder / "node_modules" / ".bin" / "configurable-http-proxy"
    if not command.exists():
        folder.mkdir(parents=True, exist_ok=True)
        package = f"configurable-http-proxy@{CHP_VERSION}"
        made = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, package],
            check=False,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert made.returncode == 0, f"npm could not install {package}: {made.stderr}"
    return str(command)
