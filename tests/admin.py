"""People of every role on a real service, each with an API of their own.

The first administrator is made on the service's database, as the first start of an
installation does; everybody else through the service itself, by that administrator.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from backendai_hub.core.access import ADMIN_SCOPES, USER_SCOPES
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
    database = Database(database_url(stack))
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
