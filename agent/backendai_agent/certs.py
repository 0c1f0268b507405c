"""The node's identity: a key of its own, and a certificate from the hub service.

A new node shows a single-use token over TLS to a hub it recognises by the given
authority, and gets a certificate for its key. The key is made and stored first and
never leaves the node; it also stays the same over renewals, so that there is never
a moment in which key and certificate on disk do not belong together.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import ssl
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import aiohttp
import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from backendai_agent.folders import write_durably
from backendai_hub.api.agents import EnrollAnswer, EnrollRequest

HUB_NAME: Final = "hub.backendai.internal"
ROUTER_NAME: Final = "router.backendai.internal"
AGENT_SUFFIX: Final = ".agent.backendai.internal"
CALL_SECONDS: Final = 15.0


class EnrollmentRefusedError(Exception):
    """The hub service does not take this node; asking again will not help."""


class Identity:
    """The node's key and certificate, as files under the agent's folder."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self.key_file = data_dir / "agent.key"
        self.certificate_file = data_dir / "agent.crt"
        self.authority_file = data_dir / "ca.crt"
        self._id_file = data_dir / "agent.id"

    @property
    def agent_id(self) -> str:
        """The id the hub service gave this node."""
        return self._id_file.read_text("ascii").strip()

    def is_known(self) -> bool:
        """Tell whether this node was ever given an id."""
        return self._id_file.exists()

    def is_enrolled(self, now: datetime) -> bool:
        """Tell whether there is a certificate that still holds."""
        certificate = self._certificate()
        return certificate is not None and certificate.not_valid_after_utc > now

    def renew_at(self) -> datetime:
        """Return when less than a third of the certificate's life is left."""
        certificate = self._certificate()
        if certificate is None:
            raise FileNotFoundError(f"{self.certificate_file} is not there")
        begin = certificate.not_valid_before_utc
        life: timedelta = certificate.not_valid_after_utc - begin
        return begin + life * 2 / 3

    def _certificate(self) -> x509.Certificate | None:
        try:
            return x509.load_pem_x509_certificate(self.certificate_file.read_bytes())
        except FileNotFoundError:
            return None

    def make_request(self) -> str:
        """Make a certificate request for the node's key, making the key if new."""
        key = self._load_key() or self._make_key()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "backendai-agent")])
        request = x509.CertificateSigningRequestBuilder().subject_name(name)
        signed = request.sign(key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM).decode("ascii")

    def _load_key(self) -> ec.EllipticCurvePrivateKey | None:
        try:
            content = self.key_file.read_bytes()
        except FileNotFoundError:
            return None
        key = serialization.load_pem_private_key(content, password=None)
        return key if isinstance(key, ec.EllipticCurvePrivateKey) else None

    def _make_key(self) -> ec.EllipticCurvePrivateKey:
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        write_durably(self.key_file, pem)
        return key

    def store(self, answer: EnrollAnswer) -> None:
        """Keep what the hub service gave us; the certificate comes last."""
        certificate = x509.load_pem_x509_certificate(answer.certificate.encode())
        key = self._load_key()
        if key is None or certificate.public_key() != key.public_key():
            raise EnrollmentRefusedError("the certificate given is for another key")
        write_durably(self.authority_file, answer.authority.encode())
        write_durably(self._id_file, f"{answer.agent_id}\n".encode())
        write_durably(self.certificate_file, answer.certificate.encode())

    def client_context(self) -> ssl.SSLContext:
        """Make the context with which this node speaks to the hub service."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return self._fill(context)

    def server_context(self) -> ssl.SSLContext:
        """Make the context in which this node serves the router and the hub."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        return self._fill(context)

    def _fill(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_verify_locations(self.authority_file)
        self.reload(context)
        return context

    def reload(self, context: ssl.SSLContext) -> None:
        """Let *context* use the certificate on disk for new connections."""
        context.load_cert_chain(self.certificate_file, self.key_file)


def read_machine_id(data_dir: Path, *, source: Path = Path("/etc/machine-id")) -> str:
    """Return what tells this machine from others, hashed: the original is private.

    Where the system has none, one is made and kept in the agent's folder.
    """
    own = data_dir / "machine-id"
    for path in (own, source):
        try:
            text = path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text:
            return hashlib.sha256(f"backendai-agent:{text}".encode()).hexdigest()[:32]
    write_durably(own, f"{secrets.token_hex(16)}\n".encode())
    return read_machine_id(data_dir, source=source)


def trusting(authority_file: Path) -> ssl.SSLContext:
    """Make a context that believes only what *authority_file* vouches for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(authority_file)
    return context


async def enroll(
    identity: Identity,
    request: EnrollRequest,
    *,
    hub_url: str,
    context: ssl.SSLContext,
    route: str = "enroll",
) -> None:
    """Ask the hub service for a certificate and store it.

    Raises :class:`EnrollmentRefusedError` if it says no, and the client's own
    errors if it does not answer; then asking again with the same key is safe.
    """
    timeout = aiohttp.ClientTimeout(total=CALL_SECONDS)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.post(
            f"{hub_url.rstrip('/')}/agent/v1/{route}",
            data=msgspec.json.encode(request),
            headers={"Content-Type": "application/json"},
            ssl=context,
            server_hostname=HUB_NAME,
        ) as answer,
    ):
        body = await answer.read()
        if 400 <= answer.status < 500 and answer.status not in {408, 429}:
            raise EnrollmentRefusedError(
                f"the hub service refused this node ({answer.status}):"
                f" {_detail(body)}; make a new enrolment token and give it to the"
                " agent as token_file"
            )
        answer.raise_for_status()
    decoded = msgspec.json.decode(body, type=EnrollAnswer)
    await asyncio.to_thread(identity.store, decoded)


def _detail(body: bytes) -> str:
    try:
        problem = msgspec.json.decode(body, type=dict[str, object])
    except msgspec.MsgspecError:
        return "no reason given"
    return str(problem.get("detail") or problem.get("title") or "no reason given")[:300]
