"""A real image registry on loopback, and images to put into it.

Debian's ``docker-registry`` serves; images are made and pushed here over HTTP, so no
container engine is needed. Every registry has a folder and a port of its own.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from tornado import web
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

USERNAME = "robot"
PASSWORD = "kept-to-ourselves"
# What htpasswd -B makes of the password; nothing secret, it is written above.
HASHED = "$2b$04$EsXmdI/ONsijTamBFej6mOSpCyYLoK8mygheIxB.RqpBWN5.3aKL6"
WAIT_SECONDS = 60.0

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass(frozen=True)
class Pushed:
    """What was put into a registry."""

    digest: str
    config_digest: str = ""
    size_bytes: int = 0
    media_type: str = MANIFEST
    length: int = 0


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def make_layer(text: str) -> bytes:
    """Make a compressed layer with one small file."""
    content, made = text.encode(), io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        entry = tarfile.TarInfo("greeting")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(made.getvalue(), mtime=0)


@dataclass
class Registry:
    """A running registry."""

    url: str
    storage: Path
    headers: dict[str, str] = field(default_factory=dict)
    session: requests.Session = field(default_factory=requests.Session)

    @property
    def host(self) -> str:
        return self.url.partition("://")[2]

    def push_image(
        self,
        repository: str,
        tag: str,
        *,
        architecture: str = "amd64",
        labels: Mapping[str, str] | None = None,
        **config: Any,
    ) -> Pushed:
        """Make an image of one layer and push it; *config* changes its description.

        Without a *tag* it is found by its digest alone.
        """
        layer = make_layer(f"{repository}:{tag} {architecture}")
        described = json.dumps(
            {
                "architecture": architecture,
                "os": "linux",
                "created": "2026-01-02T03:04:05.678901234Z",
                "config": {"Labels": dict(labels) if labels else None},
                "rootfs": {
                    "type": "layers",
                    "diff_ids": [digest_of(gzip.decompress(layer))],
                },
                **config,
            }
        ).encode()
        for blob in (layer, described):
            self.push_blob(repository, blob)
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": describe(CONFIG, described),
            "layers": [describe(LAYER, layer)],
        }
        digest, length = self.push_manifest(repository, tag, manifest)
        return Pushed(
            digest,
            config_digest=digest_of(described),
            size_bytes=len(layer) + len(described),
            length=length,
        )

    def push_index(
        self,
        repository: str,
        tag: str,
        *architectures: str,
        labels: Mapping[str, str] | None = None,
    ) -> dict[str, Pushed]:
        """Push an image for each architecture, an attestation, and their index."""
        images = {
            name: self.push_image(repository, "", architecture=name, labels=labels)
            for name in architectures
        }
        attestation = self.push_image(
            repository, "", architecture="unknown", os="unknown"
        )
        platforms = {name: (name, "linux", pushed) for name, pushed in images.items()}
        platforms["unknown"] = ("unknown", "unknown", attestation)
        index = {
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": [
                {
                    "mediaType": pushed.media_type,
                    "digest": pushed.digest,
                    "size": pushed.length,
                    "platform": {"architecture": architecture, "os": system},
                }
                for architecture, system, pushed in platforms.values()
            ],
        }
        digest, length = self.push_manifest(repository, tag, index)
        return {**images, "index": Pushed(digest, media_type=INDEX, length=length)}

    def push_blob(self, repository: str, content: bytes) -> None:
        begun = self.send("POST", f"/v2/{repository}/blobs/uploads/")
        where = begun.headers["Location"]
        mark = "&" if "?" in where else "?"
        self.send("PUT", f"{where}{mark}digest={digest_of(content)}", data=content)

    def push_manifest(
        self, repository: str, tag: str, document: Mapping[str, Any]
    ) -> tuple[str, int]:
        body = json.dumps(document).encode()
        self.send(
            "PUT",
            f"/v2/{repository}/manifests/{tag or digest_of(body)}",
            data=body,
            headers={"Content-Type": document["mediaType"]},
        )
        return digest_of(body), len(body)

    def tag_again(self, repository: str, digest: str, tag: str) -> None:
        """Give what is there already one more tag."""
        path = f"/v2/{repository}/manifests/{digest}"
        found = self.send("GET", path, headers={"Accept": f"{MANIFEST}, {INDEX}"})
        self.send(
            "PUT",
            f"/v2/{repository}/manifests/{tag}",
            data=found.content,
            headers={"Content-Type": found.headers["Content-Type"]},
        )

    def create_repository(self, repository: str) -> None:
        """Make an empty repository in a moment, for tests that need many."""
        folder = self.storage / "docker/registry/v2/repositories" / repository
        (folder / "_layers").mkdir(parents=True)

    def send(
        self,
        method: str,
        path: str,
        *,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> requests.Response:
        url = path if "://" in path else f"{self.url}{path}"
        answer = self.session.request(
            method, url, data=data, headers={**self.headers, **(headers or {})}
        )
        assert answer.ok, (method, path, answer.status_code, answer.text)
        return answer


def describe(media_type: str, content: bytes) -> dict[str, Any]:
    return {
        "mediaType": media_type,
        "digest": digest_of(content),
        "size": len(content),
    }


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def basic(username: str = USERNAME, password: str = PASSWORD) -> str:
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"


@contextmanager
def running_registry(
    folder: Path,
    *,
    password: bool = False,
    tokens: TokenServer | None = None,
    can_delete: bool = True,
) -> Iterator[Registry]:
    """Run a registry in *folder*: open, with a password, or with a token server."""
    program = shutil.which("docker-registry")
    assert program is not None, "docker-registry is not installed"
    port = free_port()
    settings: dict[str, Any] = {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": str(folder / "storage")},
            "delete": {"enabled": can_delete},
        },
        "http": {"addr": f"127.0.0.1:{port}", "secret": "of no importance"},
    }
    registry = Registry(f"http://127.0.0.1:{port}", folder / "storage")
    if password:
        users = folder / "htpasswd"
        users.write_text(f"{USERNAME}:{HASHED}\n", "ascii")
        settings["auth"] = {"htpasswd": {"realm": "tests", "path": str(users)}}
        registry.headers["Authorization"] = basic()
    if tokens is not None:
        settings["auth"] = {"token": tokens.describe(folder)}
        registry.headers["Authorization"] = f"Bearer {tokens.issue_for_pushing()}"
    # JSON is YAML, too.
    config = folder / "config.yml"
    config.write_text(json.dumps(settings), "utf-8")
    environ = {k: v for k, v in os.environ.items() if not k.startswith("REGISTRY_")}
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "serve", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environ,
            start_new_session=True,
        )
    try:
        _wait(process, port, folder / "registry.log")
        yield registry
    finally:
        registry.session.close()
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError(f"the registry did not start:\n{log.read_text()}")


class TokenServer:
    """Gives out the tokens that a registry with ``auth: token`` trusts.

    Whoever knows the password may do everything to the repositories of ``team/``;
    everybody may pull those of ``public/``. It remembers what it was asked.
    """

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.asked: list[dict[str, Any]] = []
        self.life = 300
        [self._socket] = bind_sockets(0, "127.0.0.1")
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/token"
        self._server = HTTPServer(
            web.Application([("/token", _TokenHandler, {"tokens": self})])
        )

    def start(self) -> None:
        """Answer from now on, in the running event loop."""
        self._server.add_sockets([self._socket])

    async def stop(self) -> None:
        self._server.stop()
        await self._server.close_all_connections()

    def describe(self, folder: Path) -> dict[str, str]:
        """Return the settings of a registry that trusts this server."""
        name = x509.Name([])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self.key.public_key())
            .serial_number(1)
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .sign(self.key, hashes.SHA256())
        )
        path = folder / "tokens.crt"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return {
            "realm": self.url,
            "service": "tests",
            "issuer": "tests",
            "rootcertbundle": str(path),
        }

    def issue_for_pushing(self) -> str:
        """Issue a token for those who fill the registry before a test."""
        names = ("team/lab", "team/other", "public/lab")
        actions = ["push", "pull"]
        return self.issue(
            [{"type": "repository", "name": n, "actions": actions} for n in names]
        )

    def issue(self, access: list[dict[str, Any]]) -> str:
        now = int(time.time())
        header = {"typ": "JWT", "alg": "ES256", "kid": self._key_id()}
        claims = {
            "iss": "tests",
            "sub": USERNAME,
            "aud": "tests",
            "exp": now + 300,
            "nbf": now - 60,
            "iat": now,
            "jti": os.urandom(8).hex(),
            "access": access,
        }
        signed = f"{_base64(header)}.{_base64(claims)}"
        r, s = decode_dss_signature(
            self.key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        )
        return f"{signed}.{_base64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def _key_id(self) -> str:
        public = self.key.public_key().public_bytes(
            serialization.Encoding.DER,
            serialization.PublicFormat.SubjectPublicKeyInfo,
        )
        text = base64.b32encode(hashlib.sha256(public).digest()[:30]).decode()
        return ":".join(text[i : i + 4] for i in range(0, len(text), 4))


def _base64(given: Any) -> str:
    content = given if isinstance(given, bytes) else json.dumps(given).encode()
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


class _TokenHandler(web.RequestHandler):
    def initialize(self, tokens: TokenServer) -> None:
        self.tokens = tokens

    def get(self) -> None:
        given = self.request.headers.get("Authorization")
        scopes = self.get_arguments("scope")
        self.tokens.asked.append({"scopes": scopes, "authorization": given})
        if given is not None and given != basic():
            self.set_status(401)
            return
        access = [
            granted
            for scope in scopes
            if (granted := self._grant(scope, is_known=given is not None))
        ]
        self.write({"token": self.tokens.issue(access), "expires_in": self.tokens.life})

    def _grant(self, scope: str, *, is_known: bool) -> dict[str, Any] | None:
        kind, name, actions = scope.split(":")
        wanted = actions.split(",")
        if kind == "repository" and name.startswith("public/") and not is_known:
            wanted = [action for action in wanted if action == "pull"]
        elif kind != "repository" or not is_known:
            return None
        return {"type": kind, "name": name, "actions": wanted}
