"""A hub service as its agents see it, small enough to do exactly what a test says.

It speaks the real protocol over real mutual TLS; only the decisions behind it are
the test's own.
"""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import Callable
from pathlib import Path

import msgspec
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from backendai_hub.api.agents import (
    AgentReport,
    AssignmentSet,
    ContainerReport,
    ContainerSpec,
    DesiredState,
    EnrollAnswer,
    EnrollRequest,
    ImageProgress,
    ImageWanted,
    LogParcel,
    ReportAnswer,
)

AGENT_ID = "0190a0e0-0000-7000-8000-00000000a9e1"
HUB = "hub.backendai.internal"
ROUTER = "router.backendai.internal"
PATIENCE = 60.0


class Authority:
    """A certificate authority, with its files in *folder*."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.certificate = (
            self._builder(name, self.key.public_key(), days=30)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_signing_only(), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )
        self.file = folder / "ca.crt"
        self.file.write_bytes(_pem(self.certificate))

    def _builder(self, subject, public_key, *, days=30.0, life=None):
        now = datetime.datetime.now(datetime.UTC)
        life = life or datetime.timedelta(days=days)
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=1))
            .not_valid_after(now + life)
        )

    def sign(self, public_key, san: str, *, life=None) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, san[:64])])
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(
            self.key.public_key()
        )
        return (
            self._builder(subject, public_key, life=life)
            .add_extension(
                x509.SubjectAlternativeName([x509.DNSName(san)]), critical=False
            )
            .add_extension(authority, critical=False)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )

    def issue(self, san: str, stem: str) -> tuple[Path, Path]:
        """Make a key and a certificate for *san*; returns their files."""
        key = ec.generate_private_key(ec.SECP256R1())
        crt_file, key_file = self.folder / f"{stem}.crt", self.folder / f"{stem}.key"
        crt_file.write_bytes(_pem(self.sign(key.public_key(), san)))
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return crt_file, key_file

    def client_context(self, san: str, stem: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.file)
        context.load_cert_chain(*self.issue(san, stem))
        return context

    def server_context(self, san: str, stem: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_verify_locations(self.file)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_cert_chain(*self.issue(san, stem))
        return context


def _signing_only() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


class AgentHub:
    """The agents' side of a hub service; tests say what it wants."""

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self.token = "enrol-me"
        self.life: datetime.timedelta | None = None
        self.epoch = 1
        self.generation = 0
        self.heartbeat = 1.0
        self.wanted: dict[str, ContainerSpec] = {}
        self.images: list[ImageWanted] = []
        self.enrolled: list[EnrollRequest] = []
        self.renewed = 0
        self.reports: list[AgentReport] = []
        self.history: dict[str, list[ContainerReport]] = {}
        self.changed = asyncio.Condition()
        self.port = 0
        self.logs: dict[str, bytes] = {}
        """What containers were last said to have printed."""
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def open(self) -> None:
        app = web.Application()
        app.router.add_post("/agent/v1/enroll", self._enroll)
        app.router.add_post("/agent/v1/renew", self._renew)
        app.router.add_get("/agent/v1/assignments", self._assignments)
        app.router.add_put("/agent/v1/log", self._log)
        app.router.add_put("/agent/v1/report", self._report)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()
        context = self.authority.server_context(HUB, "hub")
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=context)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # -- what tests want and see ---------------------------------------------------

    async def want(self, *specs: ContainerSpec) -> None:
        """Add or replace what is wanted of these containers."""
        async with self.changed:
            self.wanted |= {spec.id: spec for spec in specs}
            self.generation += 1
            self.changed.notify_all()

    async def want_absent(self, container_id: str) -> None:
        spec = self.wanted[container_id]
        await self.want(msgspec.structs.replace(spec, desired=DesiredState.ABSENT))

    async def forget(self, container_id: str) -> None:
        async with self.changed:
            del self.wanted[container_id]
            self.generation += 1
            self.changed.notify_all()

    async def want_images(self, *images: ImageWanted) -> None:
        """Say which images are wanted from now on, and which are not to be there."""
        async with self.changed:
            self.images = list(images)
            self.generation += 1
            self.changed.notify_all()

    async def until_image(self, reference: str, state: str) -> ImageProgress:
        """Wait until the image is reported in *state*."""

        def find(report: AgentReport) -> ImageProgress | None:
            for told in report.image_progress:
                if told.reference == reference and told.state == state:
                    return told
            return None

        found = find(await self.until(lambda r: find(r) is not None))
        assert found is not None
        return found

    async def until(self, told: Callable[[AgentReport], bool]) -> AgentReport:
        """Return the first report from now on (or the last) for which *told*."""
        async with asyncio.timeout(PATIENCE), self.changed:
            while not (self.reports and told(self.reports[-1])):
                await self.changed.wait()
            return self.reports[-1]

    async def until_state(self, container_id: str, state: str) -> ContainerReport:
        """Wait until the container is reported in *state*."""
        report = await self.until(
            lambda r: any(
                c.id == container_id and c.state == state for c in r.containers
            )
        )
        return next(c for c in report.containers if c.id == container_id)

    async def after_reports(self, number: int) -> None:
        """Wait for *number* reports more."""
        goal = len(self.reports) + number
        await self.until(lambda _: len(self.reports) >= goal)

    def states(self, container_id: str) -> list[str]:
        """List the states the container went through, as they were reported."""
        states: list[str] = []
        for seen in self.history.get(container_id, []):
            if not states or states[-1] != seen.state:
                states.append(str(seen.state))
        return states

    # -- the protocol --------------------------------------------------------------

    async def _enroll(self, request: web.Request) -> web.Response:
        asked = msgspec.json.decode(await request.read(), type=EnrollRequest)
        if asked.token != self.token:
            return web.json_response({"detail": "the token is spent"}, status=401)
        self.enrolled.append(asked)
        return self._certify(asked.csr, status=201)

    async def _renew(self, request: web.Request) -> web.Response:
        self._identify(request)
        csr = msgspec.json.decode(await request.read())["csr"]
        self.renewed += 1
        self.life = None
        async with self.changed:
            self.changed.notify_all()
        return self._certify(csr, status=200)

    def _certify(self, csr: str, *, status: int) -> web.Response:
        request = x509.load_pem_x509_csr(csr.encode())
        assert request.is_signature_valid
        san = f"{AGENT_ID}.agent.backendai.internal"
        crt = self.authority.sign(request.public_key(), san, life=self.life)
        answer = EnrollAnswer(
            agent_id=AGENT_ID,
            certificate=_pem(crt).decode(),
            authority=self.authority.file.read_text(),
        )
        return web.Response(
            status=status,
            body=msgspec.json.encode(answer),
            content_type="application/json",
        )

    def _identify(self, request: web.Request) -> None:
        peer = request.transport.get_extra_info("peercert") if request.transport else {}
        names = [name for _, name in (peer or {}).get("subjectAltName", ())]
        if names != [f"{AGENT_ID}.agent.backendai.internal"]:
            raise web.HTTPForbidden

    async def _assignments(self, request: web.Request) -> web.Response:
        self._identify(request)
        newer_than = int(request.query["newer_than"])
        try:
            async with asyncio.timeout(float(request.query["wait"])), self.changed:
                while self.generation == newer_than:
                    await self.changed.wait()
        except TimeoutError:
            pass
        return self._say(
            AssignmentSet(
                agent_id=AGENT_ID,
                generation=self.generation,
                epoch=self.epoch,
                containers=list(self.wanted.values()),
                images=self.images,
                heartbeat_seconds=self.heartbeat,
            )
        )

    async def _log(self, request: web.Request) -> web.Response:
        parcel = msgspec.json.decode(await request.read(), type=LogParcel)
        self.logs[parcel.container] = parcel.content
        return web.json_response({})

    async def _report(self, request: web.Request) -> web.Response:
        self._identify(request)
        report = msgspec.json.decode(await request.read(), type=AgentReport)
        async with self.changed:
            self.reports.append(report)
            for container in report.containers:
                self.history.setdefault(container.id, []).append(container)
            self.changed.notify_all()
        return self._say(ReportAnswer(generation=self.generation, epoch=self.epoch))

    @staticmethod
    def _say(answer: msgspec.Struct) -> web.Response:
        return web.Response(
            body=msgspec.json.encode(answer), content_type="application/json"
        )
