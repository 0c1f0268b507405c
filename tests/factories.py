"""Small real things for tests; every part can be changed by name."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from cryptography import x509
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from backendai_hub.api.agents import (
    PROTOCOL_VERSION,
    AgentReport,
    ContainerReport,
    ContainerState,
    EnrollRequest,
)
from backendai_hub.api.nodes import AgentQuery
from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.access import ADMIN_SCOPES, USER_SCOPES, Caller, Principal
from backendai_hub.core.agents import Agent, Device, Isolation
from backendai_hub.core.ids import make_id
from backendai_hub.core.images import Image
from backendai_hub.core.sessions import Attachment, Session
from backendai_hub.db.engine import Database
from backendai_hub.operations.authority import Authority
from backendai_hub.operations.bootstrap import offer_images
from backendai_hub.operations.node_lists import MOST_PER_PAGE, list_agents
from backendai_hub.operations.nodes import accept_token, enroll_agent
from backendai_hub.operations.placement import apply_plan
from backendai_hub.operations.platform import Platform, Settings, Vault
from backendai_hub.operations.queue_view import load_snapshot
from backendai_hub.operations.reports import accept_report
from backendai_hub.operations.submit import Submission, submit_session
from backendai_hub.operations.users import ensure_user, make_principal
from backendai_hub.scheduling.plan import plan

GIB = 1 << 30
START = datetime(2026, 1, 1, tzinfo=UTC)
AUDIT_KEY = b"k" * 32
"""Of the chain in databases of tests; a real service derives its own."""
IMAGE = Image(
    name="lab",
    references={"fake": "fake"},
    minimum={"cpu": "0.001", "mem": "1"},
    shmem="0",
)


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def make_authority() -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(START)
        .not_valid_after(START + timedelta(days=3650))
        .sign(key, hashes.SHA256())
    )
    return Authority(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        certificate.public_bytes(serialization.Encoding.PEM),
    )


def make_csr() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    csr = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([]))
        .sign(key, hashes.SHA256())
    )
    return csr.public_bytes(serialization.Encoding.PEM).decode()


_AUTHORITY = make_authority()
_CSR = make_csr()


def make_platform(database: Database, **settings: Any) -> Platform:
    counter = itertools.count(1)
    return Platform(
        database=database,
        vault=Vault(Fernet.generate_key()),
        authority=_AUTHORITY,
        settings=Settings(**{"default_memory": 1, "default_cpu": 1, **settings}),
        new_id=lambda: make_id(next(counter), os.urandom(10)),
    )


def make_device(name: str = "host", **changes: Any) -> Device:
    return Device(**{"id": name, "slots": {"cpu": 4000, "mem": 4 * GIB}, **changes})


def make_gpu(name: str) -> Device:
    return Device(id=name, slots={"cuda.device": 1000}, kind="cuda", whole=True)


ISOLATION = Isolation(
    runtime="fake", tier="none", limits="none", network="none", multi_user=True
)


class Node:
    """What a node says of itself, kept by hand."""

    def __init__(self, platform: Platform, agent_id: str, name: str) -> None:
        self.platform = platform
        self.id = agent_id
        self.name = name
        self.url = f"https://{name}:1"
        self.devices: Sequence[Device] = [make_device()]
        self.sequence = 0
        self.isolation = ISOLATION

    def make_report(
        self,
        containers: Sequence[ContainerReport] = (),
        *,
        generation: int = 1 << 40,
        unknown: Sequence[str] = (),
        sequence: int | None = None,
    ) -> AgentReport:
        if sequence is None:
            self.sequence += 1
            sequence = self.sequence
        return AgentReport(
            protocol=PROTOCOL_VERSION,
            version="0",
            epoch=1,
            sequence=sequence,
            machine_id=self.name,
            url=self.url,
            architecture="x86_64",
            generation=generation,
            devices=list(self.devices),
            containers=list(containers),
            unknown=list(unknown),
            isolation=self.isolation,
            images=["fake"],
        )

    async def report(
        self, containers: Sequence[ContainerReport] = (), **changes: Any
    ) -> None:
        await accept_report(
            self.platform, self.id, self.make_report(containers, **changes)
        )


def seen(container_id: str, state: ContainerState, **changes: Any) -> ContainerReport:
    return ContainerReport(id=container_id, session_id="", state=state, **changes)


async def add_node(
    platform: Platform,
    name: str = "node-1",
    devices: Sequence[Device] | None = None,
) -> Node:
    token = f"token-{name}"
    await accept_token(platform, token)
    answer = await enroll_agent(
        platform, EnrollRequest(token=token, name=name, csr=_CSR, machine_id=name)
    )
    node = Node(platform, answer.agent_id, name)
    if devices is not None:
        node.devices = devices
    await node.report()
    return node


async def list_nodes(platform: Platform) -> list[Agent]:
    """Return all nodes as administrators see them, by name."""
    page = await list_agents(platform, AgentQuery(limit=MOST_PER_PAGE))
    assert page.next is None
    return page.items


async def prepare(platform: Platform, images: Sequence[Image] = (IMAGE,)) -> None:
    await offer_images(platform, images)


async def principal_of(
    platform: Platform, name: str, caller: Caller = Caller.SPAWNER
) -> Principal:
    user = await ensure_user(platform, name)
    made = make_principal(user, scopes=USER_SCOPES | ADMIN_SCOPES, credential="spawner")
    return msgspec.structs.replace(made, caller=caller)


async def submit(
    platform: Platform,
    name: str = "alice",
    *,
    server: str = "one",
    key: str | None = None,
    **changes: Any,
) -> Submission:
    user = await ensure_user(platform, name)
    request = {
        "image": "lab",
        "attachment": Attachment(name, server, f"/user/{name}/{server}/"),
        "environ": {"JUPYTERHUB_API_TOKEN": f"born-{server}"},
        **changes,
    }
    return await submit_session(
        platform,
        await principal_of(platform, name),
        user,
        SessionRequest(**request),
        key,
    )


async def schedule(platform: Platform) -> int:
    return await apply_plan(platform, plan(await load_snapshot(platform)))


async def start(platform: Platform, name: str = "alice", **changes: Any) -> Session:
    """Submit a session and have it placed."""
    submission = await submit(platform, name, **changes)
    assert await schedule(platform) == 1
    return submission.session
