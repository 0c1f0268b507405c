"""Logging in with the service's accounts, on JupyterHub's own pages."""

import json
import time
from contextlib import AsyncExitStack

import aiohttp
import pytest
from argon2 import PasswordHasher

from tests.harness import Stack
from tests.integration.spawner_harness import Hub, Line, browser, configure

FIRST = "first password"
SECOND = "a better password, 2nd"


@pytest.fixture
async def hub(hub_app, tmp_path, monkeypatch):
    """A JupyterHub whose service has one account, named root."""
    monkeypatch.chdir(tmp_path)
    stack = Stack(tmp_path / "data")
    admin = {"name": "root", "password_hash": PasswordHasher().hash(FIRST)}
    stack.folder.key("first-admin.json").write_text(json.dumps(admin))
    async with AsyncExitStack() as world:
        world.callback(stack.stop)
        await stack.start_service()
        line = await world.enter_async_context(Line(stack.port))
        http = await world.enter_async_context(aiohttp.ClientSession())
        app = await hub_app(config=configure(stack, service_port=line.port))
        hub = Hub(app, stack, http)
        hub.line = line
        world.push_async_callback(hub.forget)
        yield hub


async def log_in(hub, name, password, **more):
    async with browser(hub) as tab:
        return await tab.send(
            "login?next=/hub/token", username=name, password=password, **more
        )


def is_inside(status, page):
    return status == 200 and "Request new API token" in page


async def change_password(hub):
    answer = await log_in(
        hub, "root", FIRST, new_password=SECOND, new_password_again=SECOND
    )
    assert is_inside(*answer)


async def test_a_first_password_only_leads_to_a_new_one(hub):
    status, page = await log_in(hub, "root", FIRST)

    assert status == 403
    assert "Choose a new password" in page
    assert 'name="new_password"' in page
    assert 'name="new_password_again"' in page
    assert FIRST not in page

    await change_password(hub)
    assert is_inside(*await log_in(hub, "root", SECOND))
    status, page = await log_in(hub, "root", FIRST)
    assert status == 403
    assert "Invalid username or password" in page


async def test_the_console_is_one_click_away_from_every_page_of_the_hub(hub):
    await change_password(hub)
    _, page = await log_in(hub, "root", SECOND)
    assert '<a class="nav-link" href="/services/backendai/">Console</a>' in page
    assert "dropdown-item" not in page, "it is not named once more as a service"


async def test_a_new_password_that_will_not_do_is_asked_for_again(hub):
    for new, again, words in [
        (SECOND, "another", "not the same"),
        (FIRST, FIRST, "differ"),
        ("short", "short", "Use at least 8 characters"),
        ("x" * 1025, "x" * 1025, "longer than 1024"),
    ]:
        status, page = await log_in(
            hub, "root", FIRST, new_password=new, new_password_again=again
        )

        assert (status, words in page) == (422, True), words
        assert 'name="new_password_again"' in page


async def test_unknown_names_and_wrong_passwords_look_and_last_alike(hub):
    await change_password(hub)

    async def attempt(name):
        begin = time.perf_counter()
        status, page = await log_in(hub, name, "wrong")
        seconds = time.perf_counter() - begin
        return status, page.replace(name, "NAME").count("\n"), seconds

    # In turn, so that what else this machine does counts for both.
    known, unknown = [], []
    for _ in range(4):
        known.append(await attempt("root"))
        unknown.append(await attempt("nobody"))

    assert {answer[:2] for answer in known} == {answer[:2] for answer in unknown}
    assert known[0][0] == 403
    quickest = min(answer[2] for answer in unknown)
    assert quickest > 0.3 * min(answer[2] for answer in known)


async def test_spellings_of_a_name_are_one_person(hub):
    await change_password(hub)

    assert is_inside(*await log_in(hub, " ＲＯＯＴ ", SECOND))

    assert [u.name for u in hub.app.db.query(type(hub.user("root").orm_user))].count(
        "root"
    ) == 1


async def test_admins_are_named_by_the_site_alone(hub):
    await change_password(hub)
    hub.app.authenticator.admin_users = set()
    hub.user("root").admin = False

    model = await hub.app.authenticator.get_authenticated_user(
        None, {"username": "root", "password": SECOND}
    )
    assert not model["admin"]

    hub.app.authenticator.trust_service_admin = True
    model = await hub.app.authenticator.get_authenticated_user(
        None, {"username": "root", "password": SECOND}
    )
    assert model["admin"] is True


async def test_people_the_site_does_not_name_stay_out_if_it_names_any(hub):
    await change_password(hub)
    authenticator = hub.app.authenticator
    data = {"username": "root", "password": SECOND}
    assert authenticator.allow_all

    authenticator.allow_all = False
    authenticator.allowed_users = {"alice"}

    assert await authenticator.get_authenticated_user(None, data) is None


async def test_guessing_is_slowed_down_and_says_so(hub):
    for _ in range(10):
        status, _ = await log_in(hub, "root", "guess")
        assert status == 403

    status, page = await log_in(hub, "root", FIRST)

    assert status == 429
    assert "Too many attempts" in page


@pytest.mark.parametrize("state", ["cut", "503"])
async def test_an_outage_asks_to_try_again_and_shows_no_traceback(hub, state, caplog):
    hub.line.cut(state)

    status, page = await log_in(hub, "root", FIRST)

    assert status == 503
    assert "Try again in a little while" in page
    assert "Traceback" not in caplog.text
    assert FIRST not in caplog.text


async def test_absurd_input_is_simply_wrong_and_not_logged(hub, caplog):
    for name, password in [
        ("", "x"),
        ("root", ""),
        ("n" * 100_000, "x"),
        ("root", "p" * 100_000),
    ]:
        status, page = await log_in(hub, name, password)

        assert (status, "Invalid username or password" in page) == (403, True)
    assert "n" * 300 not in caplog.text
    assert "p" * 300 not in caplog.text
