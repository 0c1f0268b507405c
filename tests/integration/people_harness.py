"""A JupyterHub that lets people in, and whoever administers them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.admin import KeyAPI, admin_api
from tests.harness import until
from tests.integration.spawner_harness import (
    Browser,
    Hub,
    browser,
    end_sessions,
    standing_hub,
)

PASSWORD = "my 1st password"
SOON = 60.0
"""Much more than the second for which the Hub trusts what it has been told."""
KEEPER = "keeper"


@dataclass
class Site(Hub):
    """A JupyterHub that asks every second, and an administrator of the service."""

    admin: KeyAPI = field(kw_only=True)

    async def clear(self) -> None:
        """Let nobody have been here, nor have an account."""
        await super().clear()
        people = (await self.admin.get("api/users", params={"limit": "200"}))["items"]
        for name in {user["name"] for user in people} - {KEEPER}:
            await self.admin.change(f"users/{name}", status="inactive")
            status, body = await self.admin.send("DELETE", f"api/users/{name}")
            assert status == 204, body

    async def _end_sessions(self, names: Iterable[str]) -> None:
        del names  # they may not be let in any more
        await end_sessions(self.admin, owner="*")

    async def make(self, name: str, **fields: Any) -> None:
        """Make somebody who has chosen a password."""
        made = await self.admin.make("accounts", name=name, **fields)
        async with browser(self) as tab:
            status, page = await log_in(tab, name, made["password"], PASSWORD)
        assert is_inside(status, page), page

    async def is_in(self, tab: Browser) -> bool:
        return is_inside(*await tab.get("token"))

    async def until_out(self, tab: Browser) -> None:
        async def is_out() -> bool:
            return not await self.is_in(tab)

        await until(is_out, "the login is over", SOON)


async def log_in(
    tab: Browser, name: str, password: str, new: str | None = None
) -> tuple[int, str]:
    more = {} if new is None else {"new_password": new, "new_password_again": new}
    path = "login?next=/hub/token"
    return await tab.send(path, username=name, password=password, **more)


def is_inside(status: int, page: str) -> bool:
    return status == 200 and "Request new API token" in page


@asynccontextmanager
async def running_site(*flags: str) -> AsyncIterator[Site]:
    """Run one; *flags* are the service's."""
    async with (
        standing_hub(*flags, refresh_age=1) as hub,
        admin_api(hub.stack, KEEPER) as admin,
    ):
        yield Site(hub.app, hub.stack, hub.http, hub.line, admin=admin)
