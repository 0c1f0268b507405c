"""People of every role on a real service, each with an API of their own.

The first administrator is made on the service's database, as the first start of an
installation does; everybody else through the service itself, by that administrator.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from backendai_hub.core.access import ADMIN_SCOPES, USER_SCOPES
from backendai_hub.core.audit import derive_audit_key
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Keypair, Role
from backendai_hub.db import tenancy
from backendai_hub.db.engine import Database
from backendai_hub.handlers.identify import ACT_FOR
from backendai_hub.operations.nouns import create_noun
from backendai_hub.operations.platform import new_id
from backendai_hub.operations.users import ensure_user, make_principal
from tests.factories import make_platform
from tests.harness import API, Stack


def basic(access_key: str, secret: str) -> str:
    """Write the header's value that a keypair logs in with."""
    pair = base64.b64encode(f"{access_key}:{secret}".encode()).decode()
    return f"Basic {pair}"


class KeyAPI(API):
    """Plain HTTP to the service with a keypair."""

    def __init__(
        self, url: str, access_key: str, secret: str, act_for: str | None = None
    ) -> None:
        super().__init__(url, None, act_for)
        self.access_key = access_key
        self.secret = secret
        self._headers["Authorization"] = basic(access_key, secret)

    async def __aenter__(self) -> KeyAPI:
        await super().__aenter__()
        return self

    @property
    def headers(self) -> Mapping[str, str]:
        """What every request of theirs carries."""
        return self._headers

    def acting_for(self, name: str) -> KeyAPI:
        """Ask with the same key in the name of somebody else."""
        assert ACT_FOR not in self._headers
        return KeyAPI(self._url, self.access_key, self.secret, name)

    async def ask(
        self, method: str, path: str, **options: Any
    ) -> tuple[int, str, Mapping[str, str]]:
        """Return status, text and headers, whatever they are."""
        assert self._session is not None
        url = f"{self._url}{path}"
        async with self._session.request(method, url, **options) as response:
            return response.status, await response.text(), response.headers

    async def make(self, noun: str, **fields: Any) -> dict[str, Any]:
        """Create something that has to go well."""
        status, body = await self.send("POST", f"api/{noun}", json=fields)
        assert status == 201, (noun, fields, status, body)
        return dict(body)

    async def change(self, path: str, **fields: Any) -> dict[str, Any]:
        """Change something that has to go well."""
        status, body = await self.send("PATCH", f"api/{path}", json=fields)
        assert status == 200, (path, fields, status, body)
        return dict(body)

    async def refused(self, method: str, path: str, **options: Any) -> tuple[int, str]:
        """Return status and sentence of a refusal; anything else is an error."""
        status, body = await self.send(method, path, **options)
        assert status >= 400, (method, path, status, body)
        return status, str(body["detail"])


def database_url(stack: Stack) -> str:
    """Return where *stack*'s service keeps everything."""
    if stack.db_url is not None:
        return stack.db_url
    return f"sqlite+aiosqlite:///{stack.folder.databases / 'backendai.sqlite'}"


@asynccontextmanager
async def opened_database(stack: Stack) -> AsyncIterator[Database]:
    """Open the database of *stack*'s service beside it."""
    key = stack.folder.key("database.key").read_bytes().strip()
    database = Database(database_url(stack), audit_key=derive_audit_key(key))
    try:
        yield database
    finally:
        await database.close()


async def make_administrator(
    stack: Stack, name: str = "root", role: Role = Role.SUPERADMIN
) -> Keypair:
    """Make the first administrator, with a keypair that carries their rights."""
    async with opened_database(stack) as database:
        platform = dataclasses.replace(make_platform(database), new_id=new_id)
        actor = await ensure_user(platform, name)
        async with database.transaction() as tx:
            await tenancy.change_user(tx, actor.id, role=str(role))
        actor = await ensure_user(platform, name)
        principal = make_principal(
            actor, scopes=USER_SCOPES | ADMIN_SCOPES, credential="first"
        )
        noun = noun_of("keypair")
        body = noun.create_type(user=name, is_admin=True)
        made: Keypair = await create_noun(platform, principal, noun, body)
        return made


@asynccontextmanager
async def admin_api(stack: Stack, name: str = "root") -> AsyncIterator[KeyAPI]:
    """Return the API of a superadmin of *stack*."""
    made = await make_administrator(stack, name)
    assert made.secret is not None
    async with KeyAPI(stack.url, made.name, made.secret) as api:
        yield api


async def make_key(stack: Stack, admin: KeyAPI, user: str, **fields: Any) -> KeyAPI:
    """Give somebody a keypair; the API still has to be entered."""
    made = await admin.make("keypairs", user=user, **fields)
    return KeyAPI(stack.url, made["name"], made["secret"])


async def make_person(
    stack: Stack,
    admin: KeyAPI,
    name: str,
    *,
    role: Role = Role.USER,
    **fields: Any,
) -> KeyAPI:
    """Make somebody with a keypair, which carries their role's rights if any."""
    await admin.make("users", name=name, role=str(role), **fields)
    return await make_key(stack, admin, name, is_admin=role is not Role.USER)


async def make_domain(admin: KeyAPI, name: str, *projects: str) -> dict[str, Any]:
    """Make a domain that may use the local images and the default nodes."""
    made = await admin.make(
        "domains", name=name, allowed_docker_registries=["local"], description=name
    )
    for project in projects:
        await admin.make("projects", name=project, domain=name)
    status, body = await admin.send(
        "POST",
        "api/resource-groups/default/access",
        json={"allow": [{"kind": "domain", "name": name}]},
    )
    assert status == 200, body
    return made


@dataclasses.dataclass(frozen=True)
class Site:
    """A service with two domains that hold twins of everything.

    Domain ``amber`` and domain ``beryl`` have the same kinds of things, whose names
    begin with the domain's; ``keys`` are the keypairs of their people, and of the
    site's own: ``root`` and ``mona``, the monitor.
    """

    stack: Stack
    keys: dict[str, tuple[str, str]]
    things: dict[str, dict[str, dict[str, Any]]]
    """What was made, by domain and by the plural of its noun."""

    def api(self, name: str) -> KeyAPI:
        """Return somebody's API, which still has to be entered."""
        return KeyAPI(self.stack.url, *self.keys[name])


DOMAINS = ("amber", "beryl")


@contextmanager
def standing_site(engine: str) -> Iterator[Site]:
    """Run a service with two domains; *engine* is ``sqlite`` or ``postgresql``."""
    with ExitStack() as opened:
        folder = opened.enter_context(
            tempfile.TemporaryDirectory(prefix="backendai-", dir=_fast_folder())
        )
        url = None
        if engine == "postgresql":
            url = opened.enter_context(postgres_database())
        stack = Stack(Path(folder) / "data", url)
        opened.callback(stack.stop)
        yield asyncio.run(_make_site(stack))


def _fast_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


@contextmanager
def postgres_database() -> Iterator[str]:
    """Make a database on the tests' PostgreSQL, and remove it at the end."""
    server = make_url(os.environ["BACKENDAI_TEST_POSTGRES_URL"])
    server = server.set(drivername="postgresql+psycopg")
    name = f"test_{uuid.uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(text(f'CREATE DATABASE "{name}"'))
        yield server.set(database=name).render_as_string(hide_password=False)
        with engine.connect() as connection:
            connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
    finally:
        engine.dispose()


async def _make_site(stack: Stack) -> Site:
    places = stack.folder.root / "folders"
    await stack.start_service(f"--HubService.local_folders={places}")
    await stack.start_agent()
    keys: dict[str, tuple[str, str]] = {}
    things: dict[str, dict[str, dict[str, Any]]] = {}
    async with admin_api(stack) as admin:
        keys["root"] = (admin.access_key, admin.secret)
        mona = await make_person(stack, admin, "mona", role=Role.MONITOR)
        keys["mona"] = (mona.access_key, mona.secret)
        for domain in DOMAINS:
            things[domain] = await _make_twin(stack, admin, domain, keys)
    return Site(stack, keys, things)


async def _make_twin(
    stack: Stack, admin: KeyAPI, domain: str, keys: dict[str, tuple[str, str]]
) -> dict[str, dict[str, Any]]:
    """Make a domain with two projects, three people, and what is theirs."""
    made = {"domains": await make_domain(admin, domain)}
    for word in ("one", "two"):
        made[f"projects/{word}"] = await admin.make(
            "projects",
            name=f"{domain}-{word}",
            domain=domain,
            description=f"{domain} research",
        )
    made["projects"] = made["projects/one"]
    people = (("admin", Role.DOMAIN_ADMIN, "two"), ("user", Role.USER, "one"))
    for word, role, project in (*people, ("mate", Role.USER, "two")):
        name = f"{domain}-{word}"
        person = await make_person(
            stack,
            admin,
            name,
            role=role,
            domain=domain,
            project=f"{domain}:{domain}-{project}",
            email=f"{name}@{domain}.example",
            full_name=f"{word} of {domain}",
        )
        keys[name] = (person.access_key, person.secret)
        made[f"users/{word}"] = await admin.get(f"api/users/{name}")
        made[f"keypairs/{word}"] = await admin.get(f"api/keypairs/{person.access_key}")
    made["users"], made["keypairs"] = made["users/user"], made["keypairs/user"]
    made |= await _make_resources(admin, domain)
    for word in ("user", "mate"):
        async with stack.client(f"{domain}-{word}") as spawner:
            status, body = await spawner.create(name=f"{domain}-work-{word}")
        assert status == 201, body
        made[f"sessions/{word}"] = body
    made["sessions"] = made["sessions/user"]
    return made


async def _make_resources(admin: KeyAPI, domain: str) -> dict[str, dict[str, Any]]:
    """Make a resource group of the domain's own, a preset in it, and a registry."""
    group = await admin.make("resource-groups", name=f"{domain}-nodes")
    status, body = await admin.send(
        "POST",
        f"api/resource-groups/{group['id']}/access",
        json={"allow": [{"kind": "domain", "name": domain}]},
    )
    assert status == 200, body
    preset = await admin.make(
        "presets",
        name=f"{domain}-preset",
        resource_group=group["id"],
        resource_slots={"cpu": "1", "mem": "1g"},
    )
    registry = await admin.make(
        "registries", name=f"{domain}-registry", url=f"https://{domain}.example"
    )
    await admin.change(
        f"domains/{domain}",
        allowed_docker_registries=["local", registry["name"]],
    )
    return {"resource-groups": group, "presets": preset, "registries": registry}
