"""Password accounts: making them, logging in with them, and looking after them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from typing import Any

import msgspec
import pytest
from argon2 import PasswordHasher
from sqlalchemy import select

from backendai_hub.core.access import Caller, Principal
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    HubError,
    InvalidRequestError,
    NotFoundError,
    TooManyRequestsError,
    UnauthenticatedError,
)
from backendai_hub.core.tenancy import Role
from backendai_hub.db import history
from backendai_hub.db.tables import AuditRow
from backendai_hub.operations import account_changes as changes
from backendai_hub.operations import accounts, passwords
from backendai_hub.operations.account_changes import (
    AccountRequest,
    AccountResults,
    SeriesRequest,
    TableRequest,
    ensure_account,
)
from backendai_hub.operations.accounts import (
    CheckRequest,
    PasswordRequest,
    VerifiedAccount,
    VerifyRequest,
)
from backendai_hub.operations.guesses import MOST_FOR_NAME
from backendai_hub.operations.nouns import change_noun, list_nouns, read_noun
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import find_user
from tests.factories import Clock, principal_of
from tests.integration.test_joining import DOMAIN, USER, change_user, configured, make

ALL_ACTS = select(AuditRow.__table__).order_by(AuditRow.seq)
OWN = "my 1st password"
NEXT = "my 2nd password"


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash as cheaply as argon2 can; what is hashed is the same."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "_hasher", cheap)
    monkeypatch.setattr(passwords, "_once_hasher", cheap)


@pytest.fixture
async def site(platform: Platform) -> Platform:
    return configured(platform)


async def as_root(platform: Platform) -> Principal:
    return await principal_of(platform, "root", Caller.SUPERADMIN)


async def as_dean(platform: Platform, name: str = "dean") -> Principal:
    """A domain admin of the domain lab."""
    if await find_user(platform, name) is None:
        await make(platform, "domain", name="lab")
        await make(platform, "project", name="bench", domain="lab")
        await make(platform, "user", name=name, domain="lab", role="domain-admin")
    return await principal_of(platform, name, Caller.DOMAIN_ADMIN)


async def create(platform: Platform, name: str, **fields: str) -> str:
    request = AccountRequest(name=name, **fields)
    made = await changes.create_account(platform, await as_root(platform), request)
    return made.password


async def log_in(
    platform: Platform,
    name: str,
    password: str,
    new: str | None = None,
    address: str = "192.0.2.1",
) -> VerifiedAccount:
    return await accounts.verify_account(
        platform,
        VerifyRequest(name=name, password=password, new_password=new, address=address),
    )


async def settled(platform: Platform, name: str = "ada") -> None:
    """Make somebody who has chosen a password."""
    await log_in(platform, name, await create(platform, name), OWN)


async def refusal(doing: Awaitable[Any]) -> HubError:
    with pytest.raises(HubError) as refused:
        await doing
    return refused.value


# --- making ----------------------------------------------------------------------


async def test_a_new_account_is_a_user_like_any_other(site: Platform):
    await create(site, "Ada", email="ada@x.org", full_name="Ada L", role="monitor")

    user = await read_noun(site, await as_root(site), USER, "ada")
    assert (user.name, user.email, user.full_name) == ("ada", "ada@x.org", "Ada L")
    assert (user.role, user.domain) == ("monitor", "default")


async def test_a_one_time_password_leads_only_to_a_new_one(site: Platform):
    once = await create(site, "ada")
    assert re.fullmatch(r"([a-z2-9]{4}-){3}[a-z2-9]{4}", once)

    assert (await log_in(site, "ada", once)).must_change
    assert not (await log_in(site, "ada", once, OWN)).must_change
    assert not (await log_in(site, "ADA", OWN)).must_change
    assert (await refusal(log_in(site, "ada", once))).status == 401


async def test_a_weak_new_password_changes_nothing(site: Platform):
    once = await create(site, "ada")

    error = await refusal(log_in(site, "ada", once, "password"))

    assert "missing: a digit, a special character" in error.message
    assert (await log_in(site, "ada", once)).must_change


async def test_an_account_is_made_with_its_user_or_not_at_all(site: Platform):
    await ensure_account(site, "ada", "$argon2id$…")

    error = await refusal(create(site, "ada"))

    assert isinstance(error, ConflictError)
    assert await find_user(site, "ada") is None


async def test_there_is_one_account_for_all_spellings_of_a_name(site: Platform):
    await create(site, "ada")

    assert isinstance(await refusal(create(site, "ＡＤＡ")), ConflictError)
    assert isinstance(await refusal(create(site, "a d a")), InvalidRequestError)


async def test_domain_admins_make_people_of_their_own_domain_only(site: Platform):
    dean = await as_dean(site)

    async def by_dean(name: str, **fields: str) -> HubError | None:
        try:
            request = AccountRequest(name=name, **fields)
            await changes.create_account(site, dean, request)
        except HubError as error:
            return error
        return None

    assert await by_dean("one", project="bench") is None
    assert (await find_user(site, "one")).domain == "lab"
    assert isinstance(await by_dean("two", domain="default"), InvalidRequestError)
    assert isinstance(await by_dean("three", role="superadmin"), ForbiddenError)
    assert isinstance(await by_dean("four", role="monitor"), ForbiddenError)
    for name in ("two", "three", "four"):
        assert await find_user(site, name) is None


async def test_a_series_is_numbered_with_one_width(site: Platform):
    root = await as_root(site)

    made = await changes.create_series(
        site, root, SeriesRequest(prefix="student", count=10, suffix=".cs")
    )

    assert (made.succeeded, made.failed) == (10, 0)
    assert made.results[0].name == "student01.cs"
    assert made.results[9].name == "student10.cs"
    assert (await log_in(site, "student10.cs", str(made.results[9].password))).name
    people, _ = await list_nouns(site, root, USER, {"search": "student"})
    assert len(people) == 10


async def test_what_is_there_already_fails_alone(site: Platform):
    await create(site, "student2")

    made = await changes.create_series(
        site, await as_root(site), SeriesRequest(prefix="student", count=3)
    )

    assert [(r.index, r.status, r.code) for r in made.results] == [
        (0, 201, None),
        (1, 409, "conflict"),
        (2, 201, None),
    ]
    assert made.results[1].password is None
    assert "student2" in str(made.results[1].error)


async def test_each_row_of_a_table_ends_for_itself(site: Platform):
    await make(site, "domain", name="lab")
    await make(site, "project", name="bench", domain="lab")
    table = (
        "username,email,domain,project,role\n"
        "ada,ada@x.org,lab,lab:bench,user\n"
        "bob,not an address,,,\n"
        "eve,,nowhere,,\n"
        "dan,,,,king\n"
        ",x@x.org,,,\n"
        "joe,,,,\n"
        "joe,,,,\n"
        "ann,ADA@x.org,,,\n"
    )

    made = await table_of(site, table)

    assert [(r.line, r.name, r.status) for r in made.results] == [
        (2, "ada", 201),
        (3, "bob", 422),
        (4, "eve", 422),
        (5, "dan", 422),
        (6, None, 422),
        (7, "joe", 201),
        (8, "joe", 409),
        (9, "ann", 409),
    ]
    assert (made.succeeded, made.failed) == (2, 6)
    ada = await find_user(site, "ada")
    assert (ada.domain, ada.project) == ("lab", "bench")
    assert await find_user(site, "bob") is None


async def table_of(platform: Platform, text: str) -> AccountResults:
    root = await as_root(platform)
    return await changes.create_from_table(platform, root, TableRequest(csv=text))


# --- logging in ------------------------------------------------------------------


async def test_who_is_not_active_is_told_so_only_after_the_right_password(
    site: Platform,
):
    await settled(site)
    await change_user(site, "ada", status="inactive")

    wrong = await refusal(log_in(site, "ada", "guess"))
    right = await refusal(log_in(site, "ada", OWN))

    assert (wrong.status, wrong.message) == (401, "wrong user name or password")
    assert (right.status, right.fields["reason"]) == (403, "user-inactive")
    assert right.message == "the user ada is inactive; ask an administrator"


async def test_nobody_of_an_inactive_domain_logs_in(site: Platform):
    await make(site, "domain", name="lab")
    once = await create(site, "ada", domain="lab")
    await close_domain(site, "lab")

    error = await refusal(log_in(site, "ada", once, OWN))

    assert (error.status, error.fields["reason"]) == (403, "domain-inactive")
    assert (await refusal(log_in(site, "ada", OWN))).status == 401, "nothing changed"


async def close_domain(platform: Platform, name: str) -> None:
    body = DOMAIN.change_type(is_active=False)
    await change_noun(platform, await as_root(platform), DOMAIN, name, body)


async def test_guessing_from_one_place_locks_nobody_else_out(site: Platform):
    await settled(site)

    for _ in range(MOST_FOR_NAME):
        assert (await refusal(log_in(site, "ada", "guess"))).status == 401
    error = await refusal(log_in(site, "ada", OWN))

    assert isinstance(error, TooManyRequestsError)
    assert error.fields["retry_after"] > 800
    assert (await log_in(site, "ada", OWN, address="198.51.100.7")).name == "ada"


async def test_guesses_that_come_at_once_are_all_counted(site: Platform):
    await settled(site)

    tried = [refusal(log_in(site, "ada", "guess")) for _ in range(MOST_FOR_NAME + 5)]
    found = [error.status for error in await asyncio.gather(*tried)]

    assert found.count(429) == 5


async def test_guessing_from_everywhere_locks_the_account_for_a_while(
    site: Platform, monkeypatch: pytest.MonkeyPatch
):
    await settled(site)
    monkeypatch.setattr(accounts, "FAILURES_BEFORE_LOCK", 3)

    for number in range(3):
        await refusal(log_in(site, "ada", "guess", address=f"192.0.2.{number}"))
    locked = await refusal(log_in(site, "ada", OWN, address="198.51.100.7"))
    assert (locked.status, locked.fields["retry_after"]) == (429, 901)

    clock(site).pass_(901)
    assert (await log_in(site, "ada", OWN)).name == "ada"


def clock(platform: Platform) -> Clock:
    found = platform.database.clock
    assert isinstance(found, Clock)
    return found


async def test_a_right_password_ends_the_count(
    site: Platform, monkeypatch: pytest.MonkeyPatch
):
    await settled(site)
    monkeypatch.setattr(accounts, "FAILURES_BEFORE_LOCK", 3)

    for _ in range(3):
        await refusal(log_in(site, "ada", "guess"))
        await refusal(log_in(site, "ada", "guess", address="198.51.100.7"))
        assert (await log_in(site, "ada", OWN)).name == "ada"


async def test_an_unknown_name_is_refused_in_the_same_words(site: Platform):
    await settled(site)

    known = await refusal(log_in(site, "ada", "guess"))
    unknown = await refusal(log_in(site, "nobody", "guess"))

    assert (known.status, known.message, known.fields) == (
        unknown.status,
        unknown.message,
        unknown.fields,
    )
    assert isinstance(unknown, UnauthenticatedError)


async def test_passwords_get_old_where_the_configuration_says_so(platform: Platform):
    site = configured(platform, max_password_days=90)
    await settled(site)
    clock(site).pass_(89.9 * 86_400)
    assert not (await log_in(site, "ada", OWN)).must_change

    clock(site).pass_(0.1 * 86_400)
    assert (await log_in(site, "ada", OWN)).must_change
    assert not (await log_in(site, "ada", OWN, NEXT)).must_change
    assert not (await log_in(site, "ada", NEXT)).must_change


async def test_passwords_do_not_get_old_by_themselves(site: Platform):
    await settled(site)
    clock(site).pass_(10_000 * 86_400)

    assert not (await log_in(site, "ada", OWN)).must_change


async def test_only_hashes_are_stored(site: Platform):
    once = await create(site, "ada")
    async with site.database.read() as connection:
        stored = await history.get_account(connection, "ada")

    assert stored.password_hash.startswith("$argon2id$")
    assert PasswordHasher().verify(stored.password_hash, once)


# --- changing --------------------------------------------------------------------


async def test_people_change_their_own_password_with_the_present_one(site: Platform):
    await settled(site)
    ada = await principal_of(site, "ada", Caller.USER)

    async def change(old: str, new: str) -> None:
        await accounts.change_password(
            site,
            ada,
            PasswordRequest(old_password=old, new_password=new),
            address="192.0.2.1",
        )

    assert (await refusal(change("guess", NEXT))).status == 401
    assert (await refusal(change(OWN, OWN))).status == 422
    assert (await refusal(change(OWN, "weak"))).status == 422
    await change(OWN, NEXT)

    assert not (await log_in(site, "ada", NEXT)).must_change
    assert (await refusal(log_in(site, "ada", OWN))).status == 401


async def test_a_stolen_session_does_not_guess_the_password(site: Platform):
    await settled(site)
    ada = await principal_of(site, "ada", Caller.USER)
    request = PasswordRequest(old_password="guess", new_password=NEXT)

    for _ in range(MOST_FOR_NAME):
        await refusal(accounts.change_password(site, ada, request, address="::1"))
    error = await refusal(accounts.change_password(site, ada, request, address="::1"))

    assert error.status == 429


async def test_who_logs_in_elsewhere_has_no_password_here(site: Platform):
    ada = await principal_of(site, "ada", Caller.USER)
    request = PasswordRequest(old_password=OWN, new_password=NEXT)

    error = await refusal(accounts.change_password(site, ada, request, address=""))

    assert isinstance(error, NotFoundError)
    assert "elsewhere" in error.message


async def test_nobody_changes_a_password_by_acting_for_its_owner(site: Platform):
    await settled(site)
    ada = await principal_of(site, "ada", Caller.USER)
    acting = msgspec.structs.replace(ada, acted_as="ada")
    request = PasswordRequest(old_password=OWN, new_password=NEXT)

    error = await refusal(accounts.change_password(site, acting, request, address=""))

    assert isinstance(error, ForbiddenError)


async def test_an_administrator_resets_a_password_and_what_was_held_against_it(
    site: Platform,
):
    await settled(site)
    for _ in range(MOST_FOR_NAME):
        await refusal(log_in(site, "ada", "guess"))

    once = await changes.reset_password(site, await as_root(site), "ada")

    assert (await refusal(log_in(site, "ada", OWN))).status == 401
    assert (await log_in(site, "ada", once.password)).must_change


async def test_a_reset_gives_a_password_to_who_has_none(site: Platform):
    await make(site, "user", name="ada")
    await make(site, "user", name="Bob")
    root = await as_root(site)

    once = await changes.reset_password(site, root, "ada")
    error = await refusal(changes.reset_password(site, root, "Bob"))

    assert (await log_in(site, "ada", once.password, OWN)).name == "ada"
    assert "comes from another authenticator" in error.message


async def test_somebody_can_be_made_to_choose_a_new_password(site: Platform):
    await settled(site)

    state = await changes.require_change(site, await as_root(site), "ada")

    assert state.must_change
    assert (await log_in(site, "ada", OWN)).must_change
    assert not (await log_in(site, "ada", OWN, NEXT)).must_change


async def test_a_lock_can_be_taken_off(site: Platform, monkeypatch: pytest.MonkeyPatch):
    await settled(site)
    monkeypatch.setattr(accounts, "FAILURES_BEFORE_LOCK", 1)
    await refusal(log_in(site, "ada", "guess"))
    assert (await refusal(log_in(site, "ada", OWN))).status == 429

    state = await changes.unlock(site, await as_root(site), "ada")

    assert state.locked_until is None
    assert (await log_in(site, "ada", OWN)).name == "ada"


@pytest.mark.parametrize(
    "do", [changes.reset_password, changes.require_change, changes.unlock]
)
async def test_domain_admins_look_after_their_own_people_only(site: Platform, do: Any):
    dean = await as_dean(site)
    await settled(site, "ada")
    for name, role in (("own", "user"), ("boss", "superadmin"), ("eye", "monitor")):
        await create(site, name, domain="lab", role=role)

    assert (await do(site, dean, "own")).name == "own"
    assert (await refusal(do(site, dean, "ada"))).status == 404
    assert (await refusal(do(site, dean, "nobody"))).status == 404
    for above in ("boss", "eye"):
        assert (await refusal(do(site, dean, above))).status == 403
    myself = await refusal(do(site, dean, "dean"))
    assert "nobody resets their own" in myself.message
    assert not (await log_in(site, "ada", OWN)).must_change


async def test_what_has_no_account_is_said(site: Platform):
    await make(site, "user", name="ada")
    root = await as_root(site)

    for do in (changes.require_change, changes.unlock):
        error = await refusal(do(site, root, "ada"))
        assert (error.status, "has no password here" in error.message) == (404, True)


async def test_what_is_done_with_accounts_is_written_down_without_secrets(
    site: Platform,
):
    root = await as_root(site)
    once = await create(site, "ada")
    await refusal(log_in(site, "ada", "guess"))
    await log_in(site, "ada", once, OWN)
    reset = await changes.reset_password(site, root, "ada")
    await table_of(site, "name\nada\n")

    async with site.database.read() as connection:
        rows = [dict(row._mapping) for row in await connection.execute(ALL_ACTS)]
    joined = rows.pop(0)  # root's own coming, which is no account's affair
    assert (joined["action"], joined["object_name"]) == ("user:create", "root")
    told = [(row["action"], row["result"]) for row in rows]
    assert told == [
        ("user:create", "success"),
        ("account:create", "success"),
        ("login", "refused"),
        ("account:change", "success"),
        ("login", "success"),
        ("account:reset", "success"),
        ("account:create", "refused"),
    ]
    assert {row["object_name"] for row in rows} == {"ada"}
    written = repr(rows)
    for secret in (once, OWN, "guess", reset.password, "$argon2id$"):
        assert secret not in written


async def test_how_an_account_is_reads_its_owner_and_who_administers_them(
    site: Platform,
):
    root = await as_root(site)
    await create(site, "ada")
    await create(site, "bob")
    ada = await principal_of(site, "ada", Caller.USER)

    state = await changes.read_account(site, root, "ada")

    assert (state.must_change, state.locked_until) == (True, None)
    assert await changes.read_account(site, ada, "ada") == state
    with pytest.raises(NotFoundError):
        await changes.read_account(site, ada, "bob")
    with pytest.raises(NotFoundError, match="has no password here"):
        await changes.read_account(site, root, "root")


# --- still there? ----------------------------------------------------------------


async def test_who_may_come_in_is_told_as_things_are_now(site: Platform):
    await settled(site)

    async def check(**more: Any) -> accounts.CheckedAccount:
        request = CheckRequest(name="ada", needs_account=True, **more)
        return await accounts.check_account(site, request)

    found = await check()
    assert (found.may_enter, found.must_change) == (True, False)
    assert found.changed_at is not None

    await change_user(site, "ada", status="inactive")
    found = await check()
    assert (found.may_enter, found.reason) == (
        False,
        "the user ada is inactive; ask an administrator",
    )
    await change_user(site, "ada", status="active")
    assert (await check()).may_enter


async def test_without_an_account_nobody_comes_in_where_one_is_needed(site: Platform):
    needed = CheckRequest(name="ada", needs_account=True)
    other = CheckRequest(name="ada")

    refused = await accounts.check_account(site, needed)
    assert (refused.may_enter, refused.reason) == (False, "there is no such account")
    assert await find_user(site, "ada") is None, "asking makes nobody"
    assert (await accounts.check_account(site, other)).may_enter


async def test_the_check_follows_groups(platform: Platform):
    rules = [{"group": "ops", "role": "monitor"}]
    site = configured(platform, group_rules=rules)

    async def role_in(groups: list[str] | None) -> Role:
        request = CheckRequest(name="ada", groups=groups)
        await accounts.check_account(site, request)
        return (await find_user(site, "ada")).role

    assert await role_in(["ops"]) is Role.MONITOR
    assert await role_in(None) is Role.MONITOR, "who says no groups changes none"
    assert await role_in([]) is Role.USER


async def test_the_first_administrators_password_can_be_made_again(site: Platform):
    assert await ensure_account(site, "Root", PasswordHasher().hash("one"))
    assert not await ensure_account(site, "root", PasswordHasher().hash("two"))
    assert (await refusal(log_in(site, "root", "one"))).status == 401
    assert (await log_in(site, "root", "two", OWN)).admin

    assert not await ensure_account(site, "root", PasswordHasher().hash("three"))
    assert (await log_in(site, "root", OWN)).name == "root"
