"""How many places somebody may be logged in from at once."""

from __future__ import annotations

import asyncio
import re

import pytest
from argon2 import PasswordHasher

from backendai_hub.core.access import Caller
from backendai_hub.core.audit import Entry
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    UnauthenticatedError,
)
from backendai_hub.core.tenancy import Role
from backendai_hub.db import chain, history
from backendai_hub.db import logins as rows
from backendai_hub.operations import account_changes, accounts, logins, passwords
from backendai_hub.operations.account_changes import AccountRequest
from backendai_hub.operations.accounts import (
    CheckRequest,
    VerifiedAccount,
    VerifyRequest,
)
from backendai_hub.operations.logins import LoginDesk, confirm_login
from backendai_hub.operations.open_logins import (
    LogoutRequest,
    close_login,
    end_logins_of,
    end_own_logins,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import find_user
from tests.factories import Clock, principal_of
from tests.tenants import ROOT, Office

PASSWORD = "my 2nd password"


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash as cheaply as argon2 can; what is hashed is the same."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "_hasher", cheap)
    monkeypatch.setattr(passwords, "_once_hasher", cheap)


@pytest.fixture
async def office(platform: Platform) -> Office:
    office = Office(platform)
    made = await account_changes.create_account(
        platform, ROOT, AccountRequest(name="ann")
    )
    await office.make("user-policy", name="two", max_concurrent_logins=2)
    await office.change("user", "ann", resource_policy="two")
    await log_in(platform, "", password=made.password, new_password=PASSWORD)
    return office


@pytest.fixture
def clock(platform: Platform) -> Clock:
    found = platform.database.clock
    assert isinstance(found, Clock)
    return found


async def log_in(
    platform: Platform, browser: str, **changes: object
) -> VerifiedAccount:
    request = {
        "name": "ann",
        "password": PASSWORD,
        "address": "192.0.2.7",
        "session": browser,
        **changes,
    }
    return await accounts.verify_account(platform, VerifyRequest(**request))


async def log_in_by_command_line(platform: Platform, machine: str = "laptop") -> str:
    desk = LoginDesk()
    device, code = desk.open(machine, agent="", address="192.0.2.8")
    ann = await principal_of(platform, "ann", Caller.USER)
    await confirm_login(platform, ann, desk, code, is_admin=False)
    return str(desk.collect(device).access_key)


async def count(platform: Platform) -> int:
    actor = await find_user(platform, "ann")
    async with platform.database.read() as connection:
        now = platform.database.clock()
        return len(await rows.list_logins(connection, actor.id, now))


async def read_acts(platform: Platform) -> list[Entry]:
    async with platform.database.read() as connection:
        return [entry for entry, _ in await chain.read_rows(connection, 0, 1000)]


async def test_one_login_more_than_the_policy_allows_is_refused_in_words(
    platform: Platform, office: Office, clock: Clock
):
    await log_in(platform, "a")
    since = f"{clock():%Y-%m-%d %H:%M} UTC"
    clock.pass_(600)
    await log_in_by_command_line(platform)
    with pytest.raises(ForbiddenError) as refused:
        await log_in(platform, "c")
    said = refused.value.message
    assert "2 of 2 logins that your user policy allows at once are open" in said
    assert f"browser at 192.0.2.7 since {since}; command line at laptop" in said
    for way in ("Log out in one of them", "logout --all", "account end-logins"):
        assert way in said
    assert refused.value.fields["reason"] == "too-many-logins"
    with pytest.raises(ForbiddenError, match="2 of 2 logins"):
        await log_in_by_command_line(platform, "desktop")
    assert await count(platform) == 2
    assert len(await office.list("keypair", user="ann")) == 2


async def test_without_a_number_there_is_no_limit(platform: Platform, office: Office):
    await office.change("user-policy", "two", max_concurrent_logins=None)
    for browser in "abcde":
        await log_in(platform, browser)
    assert await count(platform) == 5
    await office.change("user-policy", "two", max_concurrent_logins=2)
    with pytest.raises(ForbiddenError, match="5 of 2 logins"):
        await log_in(platform, "f")


async def test_a_browser_that_logs_in_again_takes_its_own_place(
    platform: Platform, office: Office
):
    for browser in "abab":
        await log_in(platform, browser)
    assert await count(platform) == 2


async def test_who_logs_out_frees_a_place(platform: Platform, office: Office):
    await log_in(platform, "a")
    await log_in(platform, "b")
    await close_login(platform, LogoutRequest(name="ann", session="x"))
    with pytest.raises(ForbiddenError):
        await log_in(platform, "c")
    await close_login(platform, LogoutRequest(name="ann", session="a"))
    await log_in(platform, "c")
    await close_login(platform, LogoutRequest(name="nobody", session="a"))


async def test_a_login_whose_cookie_is_too_old_frees_its_place(
    platform: Platform, office: Office, clock: Clock
):
    await log_in(platform, "a", days=2.0)
    await log_in(platform, "b", days=1.0)
    clock.pass_(86_400)
    await log_in(platform, "c", days=1.0)
    with pytest.raises(ForbiddenError, match="2 of 2"):
        await log_in(platform, "d")
    clock.pass_(86_400)
    assert await count(platform) == 0
    await log_in(platform, "d")


async def test_a_command_line_is_logged_in_for_as_long_as_its_key_is_good(
    platform: Platform, office: Office, clock: Clock
):
    keys = [await log_in_by_command_line(platform, name) for name in ("one", "two")]
    clock.pass_(86_400 * 400)
    with pytest.raises(ForbiddenError, match="2 of 2"):
        await log_in(platform, "a")
    await office.purge("keypair", keys[0])
    await log_in(platform, "a")
    await office.change("keypair", keys[1], is_active=False)
    await log_in(platform, "b")


async def test_who_shows_the_password_may_end_the_others(
    platform: Platform, office: Office, clock: Clock
):
    first = await log_in(platform, "a")
    key = await log_in_by_command_line(platform)
    clock.pass_(60)
    with pytest.raises(UnauthenticatedError):
        await log_in(platform, "c", password="wrong", end_others=True)
    assert await count(platform) == 2
    last = await log_in(platform, "c", end_others=True)
    assert await count(platform) == 1
    assert last.changed_at > first.changed_at, "browsers would stay logged in"
    assert key not in [k.name for k in await office.list("keypair", user="ann")]
    found = await accounts.check_account(platform, CheckRequest(name="ann"))
    assert found.changed_at == last.changed_at


async def test_one_may_end_all_of_ones_own_logins(
    platform: Platform, office: Office, clock: Clock
):
    before = await log_in(platform, "a")
    await log_in(platform, "b")
    clock.pass_(60)
    ann = await principal_of(platform, "ann", Caller.USER)
    assert (await end_own_logins(platform, ann)).ended == 2
    found = await accounts.check_account(platform, CheckRequest(name="ann"))
    assert found.changed_at > before.changed_at
    await log_in(platform, "c")


async def test_an_administrator_ends_somebodys_logins(
    platform: Platform, office: Office
):
    await log_in(platform, "a")
    await log_in_by_command_line(platform)
    assert (await end_logins_of(platform, ROOT, "ann")).ended == 2
    assert await count(platform) == 0
    ann = await principal_of(platform, "ann", Caller.USER)
    with pytest.raises(ForbiddenError):
        await end_logins_of(platform, ann, "ann")
    dean = await office_of_a_dean(office)
    await office.change("user", "ann", role=Role.SUPERADMIN)
    with pytest.raises(ForbiddenError, match="only a superadmin"):
        await end_logins_of(platform, dean, "ann")


@pytest.mark.parametrize("role", [Role.SUPERADMIN, Role.MONITOR])
async def test_who_stands_higher_is_logged_out_by_superadmins_only(
    platform: Platform, office: Office, role: Role
):
    dean = await office_of_a_dean(office)
    await office.change("user", "ann", role=role)
    key = await log_in_by_command_line(platform)
    with pytest.raises(ForbiddenError, match=f"of a {role}"):
        await end_logins_of(platform, dean, "ann")
    assert key in [k.name for k in await office.list("keypair", user="ann")]
    assert (await end_logins_of(platform, ROOT, "ann")).ended == 1


async def test_a_command_lines_key_that_became_the_default_only_loses_its_secret(
    platform: Platform, office: Office
):
    """Without a default keypair nobody would be anybody: they could never come back."""
    key = await log_in_by_command_line(platform)
    await office.change("keypair", key, is_default=True)
    assert (await end_logins_of(platform, ROOT, "ann")).ended == 1
    (kept,) = [k for k in await office.list("keypair", user="ann") if k.is_default]
    assert (kept.name, kept.has_secret) == (key, False)
    await log_in(platform, "a")
    assert await count(platform) == 1


async def test_a_new_password_frees_the_places_of_browsers(
    platform: Platform, office: Office
):
    for browser in "ab":
        await log_in(platform, browser)
    ann = await principal_of(platform, "ann", Caller.USER)
    newer = "my 3rd password"
    await accounts.change_password(
        platform,
        ann,
        accounts.PasswordRequest(old_password=PASSWORD, new_password=newer),
        address="192.0.2.7",
    )
    assert await count(platform) == 0
    await log_in(platform, "c", password=newer)
    given = await account_changes.reset_password(platform, ROOT, "ann")
    assert await count(platform) == 0
    last = await log_in(
        platform, "d", password=given.password, new_password="my 4th password"
    )
    assert not last.must_change
    assert await count(platform) == 1


async def test_a_password_that_is_reset_while_somebody_comes_in_lets_nobody_in(
    platform: Platform, office: Office
):
    async with platform.database.read() as connection:
        found = await history.get_account(connection, "ann")
    await account_changes.reset_password(platform, ROOT, "ann")
    ann = await find_user(platform, "ann")
    request = VerifyRequest(name="ann", password=PASSWORD, session="a")
    with pytest.raises(UnauthenticatedError):
        await accounts._come_in(platform, found, ann, request)
    assert await count(platform) == 0


async def test_who_is_refused_for_want_of_a_place_keeps_the_password(
    platform: Platform, office: Office
):
    for machine in ("one", "two"):
        await log_in_by_command_line(platform, machine)
    with pytest.raises(ForbiddenError, match="2 of 2 logins"):
        await log_in(platform, "a", new_password="my 3rd password")
    await log_in(platform, "a", end_others=True)


async def test_a_command_line_that_was_ended_while_it_was_confirmed_gets_no_key(
    platform: Platform, office: Office, monkeypatch: pytest.MonkeyPatch
):
    make = logins.create_noun

    async def make_later(*arguments, **options):
        await end_logins_of(platform, ROOT, "ann")
        return await make(*arguments, **options)

    monkeypatch.setattr(logins, "create_noun", make_later)
    with pytest.raises(ConflictError, match="just been ended"):
        await log_in_by_command_line(platform)
    assert await count(platform) == 0
    assert len(await office.list("keypair", user="ann")) == 1


async def test_a_crash_while_a_command_line_is_confirmed_leaves_no_key(
    platform: Platform, office: Office, monkeypatch: pytest.MonkeyPatch, clock: Clock
):
    async def crash(*arguments, **values):
        raise SystemExit

    monkeypatch.setattr(rows, "change_login", crash)
    monkeypatch.setattr(rows, "delete_login", crash)
    with pytest.raises(SystemExit):
        await log_in_by_command_line(platform)
    assert len(await office.list("keypair", user="ann")) == 1
    clock.pass_(601)
    assert await count(platform) == 0


async def test_ends_of_logins_are_in_the_audit(platform: Platform, office: Office):
    async def told() -> list[tuple[str, str, str, object]]:
        found = await read_acts(platform)
        return [
            (a.action, a.actor, a.address, a.before)
            for a in found
            if a.action in {"logout", "login:end"}
        ]

    await log_in(platform, "a")
    await close_login(
        platform, LogoutRequest(name="ann", session="a", address="192.0.2.9")
    )
    await close_login(platform, LogoutRequest(name="ann", session="a"))
    assert await told() == [("logout", "ann", "192.0.2.9", None)]
    await log_in(platform, "a")
    await log_in(platform, "b", end_others=True)
    assert (await told())[1:] == [("login:end", "ann", "192.0.2.7", {"logins": 1})]
    await end_logins_of(platform, ROOT, "ann")
    assert [act[0] for act in await told()] == ["logout", "login:end", "login:end"]


async def office_of_a_dean(office: Office):
    await office.make("user", name="dean", domain="default", role="domain-admin")
    return await principal_of(office.platform, "dean", Caller.DOMAIN_ADMIN)


async def test_a_one_time_password_takes_no_place(platform: Platform, office: Office):
    made = await account_changes.create_account(
        platform, ROOT, AccountRequest(name="bob")
    )
    answer = await log_in(platform, "a", name="bob", password=made.password)
    assert answer.must_change
    bob = await find_user(platform, "bob")
    async with platform.database.read() as connection:
        found = await rows.list_logins(connection, bob.id, platform.database.clock())
    assert found == []


async def test_of_many_at_once_only_as_many_come_in_as_may(
    platform: Platform, office: Office
):
    answers = await asyncio.gather(
        *(log_in(platform, str(n)) for n in range(6)), return_exceptions=True
    )
    let_in = [a for a in answers if isinstance(a, VerifiedAccount)]
    refused = [a for a in answers if isinstance(a, ForbiddenError)]
    assert (len(let_in), len(refused)) == (2, 4), answers
    assert await count(platform) == 2


async def test_what_is_kept_of_a_browser_does_not_let_anybody_in(
    platform: Platform, office: Office
):
    await log_in(platform, "the-cookie-itself")
    actor = await find_user(platform, "ann")
    async with platform.database.read() as connection:
        (kept,) = await rows.list_logins(
            connection, actor.id, platform.database.clock()
        )
    assert re.fullmatch("[0-9a-f]{64}", kept.session_hash)


async def test_who_is_purged_is_logged_in_nowhere(platform: Platform, office: Office):
    await log_in(platform, "a")
    await log_in_by_command_line(platform)
    await office.change("user", "ann", status="deleted")
    await office.purge("user", "ann")
    assert await find_user(platform, "ann") is None
