"""People who may not come in any more, at a real JupyterHub; and what groups give."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.admin import KeyAPI, admin_api
from tests.harness import Stack, until
from tests.integration.spawner_harness import (
    Browser,
    Hub,
    Line,
    browser,
    configure,
    serving_gateway,
)

PASSWORD = "my 1st password"
OTHER = "my 2nd password"
SOON = 60.0
"""Much more than the second for which the Hub trusts what it has been told."""


class Site(Hub):
    """A JupyterHub that asks every second, and an administrator of the service."""

    line: Line
    admin: KeyAPI

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


@pytest.fixture
def service_flags() -> list[str]:
    return []


@pytest.fixture
async def site(
    hub_app: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    service_flags: list[str],
) -> AsyncIterator[Site]:
    monkeypatch.chdir(tmp_path)
    stack = Stack(tmp_path / "data")
    async with AsyncExitStack() as world:
        world.callback(stack.stop)
        await stack.start_service(*service_flags)
        await stack.start_agent()
        line = await world.enter_async_context(Line(stack.port))
        http = await world.enter_async_context(aiohttp.ClientSession())
        await world.enter_async_context(serving_gateway(stack.gateway_port))
        config = configure(stack, service_port=line.port, refresh_age=1)
        app = await hub_app(config=config)
        made = Site(app, stack, http)
        made.line = line
        made.admin = await world.enter_async_context(admin_api(stack, "keeper"))
        world.push_async_callback(made.forget)
        yield made


async def test_a_disabled_users_cookie_and_tokens_are_dead_soon(site: Site):
    await site.make("ada")
    async with browser(site) as tab:
        assert is_inside(*await log_in(tab, "ada", PASSWORD))
        status, _ = await site.api("GET", "user", user="ada")
        assert status == 200

        await site.admin.change("users/ada", status="inactive")

        await site.until_out(tab)
        status, _ = await site.api("GET", "user", user="ada")
        assert status == 403
        status, page = await log_in(tab, "ada", PASSWORD)
        assert status == 403
        assert "the user ada is inactive; ask an administrator" in page

        await site.admin.change("users/ada", status="active")
        assert is_inside(*await log_in(tab, "ada", PASSWORD))


async def test_so_are_those_of_everybody_in_a_disabled_domain(site: Site):
    await site.admin.make("domains", name="lab")
    await site.make("ada", domain="lab")
    await site.make("bob")
    async with browser(site) as ada, browser(site) as bob:
        assert is_inside(*await log_in(ada, "ada", PASSWORD))
        assert is_inside(*await log_in(bob, "bob", PASSWORD))

        await site.admin.change("domains/lab", is_active=False)

        await site.until_out(ada)
        assert await site.is_in(bob)


async def test_what_a_disabled_user_runs_goes_on_and_can_be_ended(site: Site):
    await site.make("ada")
    await site.make("root")
    status, _ = await site.start("ada", "work")
    assert status in {201, 202}
    spawner = await site.until_ready("ada", "work")

    await site.admin.change("users/ada", status="inactive")

    assert await spawner.poll() is None
    status, _ = await site.start("ada", "more")
    assert status == 403
    session = spawner.get_state()["session_id"]
    found = await site.admin.get(f"api/sessions/{session}")
    assert found["status"] == "RUNNING"
    status, _ = await site.api("DELETE", "users/ada/servers/work", user="root")
    assert status == 204
    await site.admin.reach(session, "TERMINATED")


async def test_a_new_password_ends_the_logins_of_before(site: Site):
    await site.make("ada")
    async with browser(site) as old, browser(site) as new:
        assert is_inside(*await log_in(old, "ada", PASSWORD))
        once = await site.admin.send("POST", "api/accounts/ada/reset")
        assert once[0] == 200

        await site.until_out(old)
        status, _ = await log_in(new, "ada", PASSWORD)
        assert status == 403
        assert is_inside(*await log_in(new, "ada", once[1]["password"], OTHER))

        await asyncio.gather(*[site.until_out(old) for _ in range(2)])
        assert await site.is_in(new)


async def test_who_changes_their_password_stays_in_only_where_they_did(site: Site):
    await site.make("ada")
    async with browser(site) as old, browser(site) as new:
        assert is_inside(*await log_in(old, "ada", PASSWORD))
        assert is_inside(*await log_in(new, "ada", PASSWORD, OTHER))

        await site.until_out(old)
        assert await site.is_in(new)


async def test_who_has_to_choose_a_new_password_is_sent_to_do_so(site: Site):
    await site.make("ada")
    async with browser(site) as tab:
        assert is_inside(*await log_in(tab, "ada", PASSWORD))
        status, _ = await site.admin.send("POST", "api/accounts/ada/require-change")
        assert status == 200

        await site.until_out(tab)
        status, page = await log_in(tab, "ada", PASSWORD)
        assert (status, "Choose a new password" in page) == (403, True)
        assert is_inside(*await log_in(tab, "ada", PASSWORD, OTHER))


async def test_an_outage_of_the_service_logs_nobody_out(site: Site):
    await site.make("ada")
    async with browser(site) as tab:
        assert is_inside(*await log_in(tab, "ada", PASSWORD))
        site.line.cut()
        refused = site.line.refused

        async def has_asked() -> bool:
            assert await site.is_in(tab)
            return site.line.refused > refused

        await until(has_asked, "the Hub has asked in vain", SOON)
        assert await site.is_in(tab)


async def test_the_address_people_come_from_is_what_is_slowed_down(site: Site):
    await site.make("ada")
    async with browser(site) as tab:
        for _ in range(10):
            status, _ = await log_in(tab, "ada", "guess")
            assert status == 403
        status, page = await log_in(tab, "ada", PASSWORD)
        assert (status, "Too many attempts" in page) == (429, True)

    headers = {"X-Forwarded-For": "198.51.100.7"}
    async with browser(site) as tab:
        tab._http.headers.update(headers)
        assert is_inside(*await log_in(tab, "ada", PASSWORD))


# --- groups and administrators ---------------------------------------------------


def put_in_group(site: Site, user: str, group: str) -> None:
    from jupyterhub import orm  # noqa: PLC0415 - it is slow

    known = orm.Group.find(site.app.db, group)
    if known is None:
        known = orm.Group(name=group)
        site.app.db.add(known)
    known.users.append(site.user(user).orm_user)
    site.app.db.commit()


RULES = '[{"group": "team-(?P<team>.+)", "project": "{team}"}]'


@pytest.mark.parametrize("service_flags", [[f"--HubService.group_rules={RULES}"]])
async def test_the_projects_of_a_hub_group_are_there_when_a_server_is_started(
    site: Site,
):
    await site.admin.make("projects", name="vision", domain="default")
    await site.make("ada")
    put_in_group(site, "ada", "team-vision")

    async with browser(site) as tab:
        assert is_inside(*await log_in(tab, "ada", PASSWORD))
        status, page = await tab.get("spawn/ada/work")
        assert status == 200
        assert "vision" in page
    status, _ = await site.start("ada", "work", {"project": "vision"})
    assert status in {201, 202}
    await site.until_ready("ada", "work")


async def test_a_hub_admin_is_nobody_special_here(site: Site):
    await site.make("ada")
    site.user("ada").admin = True
    site.app.db.commit()

    await site.start("ada", "work")
    await site.until_ready("ada", "work")

    assert (await site.admin.get("api/users/ada"))["role"] == "user"


@pytest.mark.parametrize(
    "service_flags", [["--HubService.hub_admins_are_superadmins=True"]]
)
async def test_unless_the_configuration_makes_them_superadmins(site: Site):
    await site.make("ada")
    site.user("ada").admin = True
    site.app.db.commit()
    async with browser(site) as tab:
        assert is_inside(*await log_in(tab, "ada", PASSWORD))

        async def role() -> str:
            await tab.get("home")
            return str((await site.admin.get("api/users/ada"))["role"])

        async def is_superadmin() -> bool:
            return await role() == "superadmin"

        async def is_none() -> bool:
            return await role() == "user"

        await until(is_superadmin, "a hub admin is a superadmin", SOON)
        site.user("ada").admin = False
        site.app.db.commit()
        await until(is_none, "who is no hub admin any more is none", SOON)
