"""People who may not come in any more, at a real JupyterHub."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.harness import until
from tests.integration.people_harness import (
    PASSWORD,
    SOON,
    Site,
    is_inside,
    log_in,
    running_site,
)
from tests.integration.spawner_harness import browser

OTHER = "my 2nd password"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def standing() -> AsyncIterator[Site]:
    async with running_site() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def site(standing: Site) -> Site:
    await standing.clear()
    return standing


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
        tab._http.headers["X-Forwarded-For"] = "198.51.100.7"
        for _ in range(10):
            status, _ = await log_in(tab, "ada", "guess")
            assert status == 403
        status, page = await log_in(tab, "ada", PASSWORD)
        assert (status, "Too many attempts" in page) == (429, True)

    async with browser(site) as tab:
        assert is_inside(*await log_in(tab, "ada", PASSWORD))
