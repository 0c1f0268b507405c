"""How many browsers somebody may be logged in with, on JupyterHub's own pages."""

from __future__ import annotations

from backendai_hub.client.hub import HubClient
from backendai_spawner.authenticator import BackendAIAuthenticator
from tests.admin import make_administrator
from tests.integration import test_authenticator_login as login
from tests.integration.spawner_harness import browser
from tests.integration.test_authenticator_login import (
    SECOND,
    change_password,
    is_inside,
)

hub = login.hub
PAGE = "login?next=/hub/token"


async def allow(hub, most):
    """Let everybody be logged in *most* times; also ends what the setup opened."""
    key = await make_administrator(hub.stack)
    async with HubClient(
        hub.stack.url, access_key=key.name, secret_key=key.secret
    ) as client:
        await client.user_policies.update("default", max_concurrent_logins=most)
        await client.accounts.end_logins("root")


async def enter(tab, **more):
    return await tab.send(PAGE, username="root", password=SECOND, **more)


async def is_in(tab):
    return is_inside(*await tab.get("token"))


async def test_one_browser_too_many_is_refused_until_another_logs_out(hub):
    await change_password(hub)
    await allow(hub, 1)
    async with browser(hub) as one, browser(hub) as two:
        assert is_inside(*await enter(one))
        status, page = await enter(two)
        assert status == 403
        assert "1 of 1 logins that your user policy allows" in page
        assert 'name="end_others"' in page
        assert not await is_in(two)
        assert await is_in(one)

        await one.get("logout")
        assert not await is_in(one)
        assert is_inside(*await enter(two))


async def test_who_ends_the_others_is_the_only_one_logged_in(hub):
    await change_password(hub)
    await allow(hub, 1)
    async with browser(hub) as one, browser(hub) as two:
        assert is_inside(*await enter(one))
        assert is_inside(*await enter(two, end_others="yes"))
        assert not await is_in(one)
        assert await is_in(two)


async def test_a_login_that_was_ended_while_jupyterhub_was_down_is_over(hub):
    await change_password(hub)
    await allow(hub, 2)
    async with browser(hub) as one, browser(hub) as two:
        assert is_inside(*await enter(one))
        await allow(hub, 2)
        # What a new process of JupyterHub begins with: nothing but its database.
        authenticator = BackendAIAuthenticator(parent=hub.app)
        authenticator.auth_refresh_age = 1
        hub.app.tornado_application.settings["authenticator"] = authenticator
        hub.user("root")._auth_refreshed = 0
        assert not await is_in(one)
        assert is_inside(*await enter(two))
        assert await is_in(two)


async def test_who_comes_in_for_the_first_time_stays_in(hub):
    await login.log_in(hub, "root", login.FIRST)
    hub.app.authenticator.auth_refresh_age = 1
    async with browser(hub) as tab:
        more = {"new_password": SECOND, "new_password_again": SECOND}
        entered = await tab.send(PAGE, username="root", password=login.FIRST, **more)
        assert is_inside(*entered)
        hub.user("root")._auth_refreshed = 0
        assert await is_in(tab)


async def test_the_page_that_asks_again_lets_in_whoever_answers_it(hub):
    hub.app.authenticator.auth_refresh_age = 1
    async with browser(hub) as tab:
        _, page = await tab.send(PAGE, username="root", password="mistyped")
        assert "Invalid username or password" in page
        asked = {"username": "root", "password": login.FIRST}
        _, page = await tab.answer(page, PAGE, **asked)
        assert "Choose a new password" in page
        unlike = {"new_password": SECOND, "new_password_again": "another 1"}
        _, page = await tab.answer(page, PAGE, **asked, **unlike)
        assert "The two new passwords are not the same" in page
        new = {"new_password": SECOND, "new_password_again": SECOND}
        assert is_inside(*await tab.answer(page, PAGE, **asked, **new))
        for _ in range(3):
            hub.user("root")._auth_refreshed = 0  # as if the last look were long ago
            assert await is_in(tab)


async def test_two_browsers_of_one_person_stay_in_side_by_side(hub):
    await change_password(hub)
    hub.app.authenticator.auth_refresh_age = 1
    async with browser(hub) as one, browser(hub) as two:
        for tab in (one, two):
            assert is_inside(*await enter(tab))
        for tab in (one, two, one, two):
            hub.user("root")._auth_refreshed = 0  # as if the last look were long ago
            assert await is_in(tab)


async def test_the_place_of_a_browser_that_was_asked_again_is_freed(hub):
    await change_password(hub)
    await allow(hub, 1)
    async with browser(hub) as one, browser(hub) as two:
        _, page = await one.send(PAGE, username="root", password="mistyped")
        right = {"username": "root", "password": SECOND}
        assert is_inside(*await one.answer(page, PAGE, **right))
        status, page = await enter(two)
        assert status == 403
        await one.get("logout")
        assert is_inside(*await two.answer(page, PAGE, **right))


async def test_who_asks_for_a_token_with_a_password_takes_no_place(hub):
    await change_password(hub)
    await allow(hub, 1)
    asked = {"auth": {"username": "root", "password": SECOND}}
    for _ in range(2):
        async with hub.http.post(
            f"{hub.url}api/users/root/tokens", json=asked
        ) as answer:
            assert answer.status == 201, await answer.text()
    async with browser(hub) as tab:
        assert is_inside(*await enter(tab))


async def test_a_login_that_was_ended_elsewhere_is_over(hub):
    await change_password(hub)
    await allow(hub, 2)
    async with browser(hub) as one, browser(hub) as two:
        for tab in (one, two):
            assert is_inside(*await enter(tab))
        await allow(hub, 2)
        hub.app.authenticator.auth_refresh_age = 1
        hub.user("root")._auth_refreshed = 0  # as if the last look were long ago
        assert not await is_in(one)
        assert not await is_in(two)
