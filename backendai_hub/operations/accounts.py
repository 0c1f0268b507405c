"""Logging in with a password account, and whether somebody may still come in."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from backendai_hub.core.access import Action, Principal
from backendai_hub.core.accounts import MOST_PASSWORD, check_password
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import (
    ForbiddenError,
    HubError,
    NotFoundError,
    TooManyRequestsError,
    UnauthenticatedError,
)
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.names import fold
from backendai_hub.core.tenancy import Actor, Role
from backendai_hub.core.times import format_time
from backendai_hub.db import history, logins
from backendai_hub.db.engine import Transaction
from backendai_hub.db.history import Account
from backendai_hub.operations.audit_notes import note_login
from backendai_hub.operations.directory import follow_groups
from backendai_hub.operations.open_logins import (
    BROWSER,
    NewLogin,
    end_other_logins,
    open_login,
)
from backendai_hub.operations.passwords import hash_password, matches
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import check_may_enter, ensure_user

FAILURES_BEFORE_LOCK: Final = 100
"""In a row, from wherever; from one address fewer are let through at all."""
LOCK_MINUTES: Final = 15

_WRONG: Final = "wrong user name or password"


class VerifyRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A log-in, with a new password if one is to be set.

    ``address`` is where it comes from: who guesses is slowed down by it.
    """

    name: str
    password: str
    new_password: str | None = None
    address: str = ""
    session: str = ""
    """What JupyterHub calls the browser; without it, no login is counted."""
    days: float = 14.0
    """How long the browser stays logged in."""
    end_others: bool = False
    """Whether all other logins end first."""


class VerifiedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Who has logged in; with ``must_change``, only to choose a new password."""

    name: str
    admin: bool
    must_change: bool
    changed_at: str | None = None
    """When the password was last set, or all logins ended: those before are over."""


class CheckRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Who is in JupyterHub, and as what.

    With ``groups``, what they give is brought up to date. With ``needs_account``,
    nobody comes in who has no password account.
    """

    name: str
    needs_account: bool = False
    groups: list[str] | None = None
    admin: bool = False


class CheckedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Whether somebody may come in; if not, ``reason`` says why."""

    name: str
    may_enter: bool
    reason: str | None = None
    must_change: bool = False
    changed_at: str | None = None


class PasswordRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One's own new password, and the present one."""

    old_password: str
    new_password: str


# --- logging in ------------------------------------------------------------------


async def verify_account(platform: Platform, request: VerifyRequest) -> VerifiedAccount:
    """Check a password, and replace it if a new one is given.

    Raises :class:`UnauthenticatedError` with one message for unknown name and wrong
    password, :class:`TooManyRequestsError` for too many of them, and, only after the
    right password, :class:`ForbiddenError` for people who may not come in.
    """
    name = fold(request.name)
    account = await _authenticate(platform, name, request.password, request.address)
    try:
        actor = await ensure_user(platform, name)
        check_may_enter(actor)
    except ForbiddenError as error:
        await record_login(platform, name, address=request.address, refusal=error)
        raise
    valid_from: datetime = account.valid_from
    must_change = request.new_password is None and _must_change(platform, account)
    if not must_change:
        try:
            valid_from = await _come_in(platform, account, actor, request)
        except (ForbiddenError, UnauthenticatedError) as error:
            await record_login(platform, name, address=request.address, refusal=error)
            raise
    await record_login(platform, name, address=request.address, actor=actor)
    return VerifiedAccount(
        name=name,
        admin=actor.role is Role.SUPERADMIN,
        must_change=must_change,
        changed_at=format_time(valid_from),
    )


async def _come_in(
    platform: Platform, account: Account, actor: Actor, request: VerifyRequest
) -> datetime:
    """Count a browser's login; return from when on logins count.

    Whoever has shown the password may end the others for it. A new password is taken
    only with the login: who is refused still has the present one.
    """
    hashed = None
    if request.new_password is not None:
        hashed = await _hash_new(request.password, request.new_password)
    async with platform.database.transaction() as tx:
        if request.end_others:
            await end_other_logins(tx, actor, request.address)
        present = await history.get_account(tx.connection, account.name, lock=True)
        if present is None or present.password_hash != account.password_hash:
            raise UnauthenticatedError(_WRONG)  # it has just been replaced
        if hashed is not None:
            await _replace(tx, account.name, hashed, actor)
        if request.session:
            new = NewLogin(
                kind=BROWSER,
                place=request.address,
                session=request.session,
                days=request.days,
            )
            await open_login(platform, tx, actor, new)
        now = await history.get_account(tx.connection, account.name)
    if request.end_others:
        platform.actors.clear()
    assert now is not None, account.name
    return now.valid_from


async def _authenticate(
    platform: Platform, name: str, password: str, address: str
) -> Account:
    """Return the account if *password* is its; slow down whoever guesses."""
    if not name or len(name) > 256 or len(password) > MOST_PASSWORD or "\0" in name:
        raise UnauthenticatedError(_WRONG)
    now = platform.database.clock()
    platform.guesses.count(name, address, now)
    async with platform.database.read() as connection:
        account = await history.get_account(connection, name)
    if account is not None:
        _refuse_locked(account, now)
    good = await matches(account.password_hash if account else None, password)
    if account is None or not good:
        refusal = UnauthenticatedError(_WRONG)
        if account is not None:
            await _count_failure(platform, name)
        await record_login(platform, name, address=address, refusal=refusal)
        raise refusal
    platform.guesses.forgive(name, address)
    if account.failures:
        async with platform.database.transaction() as tx:
            await history.change_account(tx, name, failures=0, locked_until=None)
    return account


def _refuse_locked(account: Account, now: datetime) -> None:
    if account.locked_until is not None and account.locked_until > now:
        seconds = 1 + int((account.locked_until - now).total_seconds())
        raise TooManyRequestsError(
            f"too many wrong passwords; try again in {-(-seconds // 60)} minutes",
            retry_after=seconds,
        )


def _must_change(platform: Platform, account: Account) -> bool:
    days = platform.settings.max_password_days
    age = platform.database.clock() - account.changed_at
    return account.must_change or 0 < days <= age / timedelta(days=1)


async def _count_failure(platform: Platform, name: str) -> None:
    async with platform.database.transaction() as tx:
        account = await history.get_account(tx.connection, name, lock=True)
        if account is None:
            return
        failures = account.failures + 1
        locked = failures >= FAILURES_BEFORE_LOCK
        await history.change_account(
            tx,
            name,
            failures=0 if locked else failures,
            locked_until=tx.now + timedelta(minutes=LOCK_MINUTES) if locked else None,
        )
        if locked:
            tx.record(
                Event(
                    kind=EventKind.ACCOUNT_LOCKED,
                    text=f"{failures} wrong passwords in a row",
                    actor=name,
                )
            )


async def record_login(
    platform: Platform,
    name: str,
    *,
    address: str,
    actor: Actor | None = None,
    refusal: HubError | None = None,
) -> None:
    """Write down that somebody has logged in, or was refused."""
    await note_login(
        platform,
        name,
        credential="password",
        address=address,
        actor=actor,
        refusal=refusal,
    )


# --- one's own password ----------------------------------------------------------


async def change_password(
    platform: Platform, principal: Principal, request: PasswordRequest, *, address: str
) -> None:
    """Replace the caller's own password; logins from before it are over."""
    if principal.acted_as:
        raise ForbiddenError("nobody changes somebody else's password so; reset it")
    name = fold(principal.name)
    async with platform.database.read() as connection:
        known = await history.get_account(connection, name)
    if known is None:
        raise NotFoundError(
            "you have no password here: you log in elsewhere, and change it there"
        )
    account = await _authenticate(platform, name, request.old_password, address)
    actor = await ensure_user(platform, principal.name)
    hashed = await _hash_new(request.old_password, request.new_password)
    async with platform.database.transaction() as tx:
        await _replace(tx, account.name, hashed, actor)


async def _hash_new(old: str, new: str) -> str:
    check_password("new_password", new, old=old)
    return await hash_password(new)


async def _replace(tx: Transaction, name: str, hashed: str, actor: Actor) -> None:
    """Give an account the password that its owner has chosen."""
    await store_password(tx, name, hashed, must_change=False)
    tx.audit(
        Act(
            action=Action.CHANGE_PASSWORD,
            object_kind="account",
            object_name=name,
            object_id=actor.id,
            domain_id=actor.domain_id,
            owner_id=actor.id,
        )
    )
    tx.record(
        Event(
            kind=EventKind.ACCOUNT_PASSWORD_CHANGED,
            text=f"{name} chose a new password",
            actor=name,
        )
    )


async def store_password(
    tx: Transaction, name: str, hashed: str, *, must_change: bool
) -> None:
    """Give an account a password; nothing is held against it any more.

    It ends the logins of browsers, which then take no places either.
    """
    await history.change_account(
        tx,
        name,
        password_hash=hashed,
        must_change=must_change,
        failures=0,
        locked_until=None,
        changed_at=tx.now,
    )
    await logins.delete_sessions(tx, name)


# --- still there? ----------------------------------------------------------------


async def check_account(platform: Platform, request: CheckRequest) -> CheckedAccount:
    """Tell whether somebody JupyterHub knows may come in, as things are now."""
    async with platform.database.read() as connection:
        account = await history.get_account(connection, fold(request.name))
    if account is None and request.needs_account:
        return CheckedAccount(
            name=request.name, may_enter=False, reason="there is no such account"
        )
    try:
        actor = await ensure_user(platform, request.name)
        if request.groups is not None:
            actor = await follow_groups(
                platform, actor, request.groups, admin=request.admin
            )
        check_may_enter(actor)
    except ForbiddenError as error:
        return CheckedAccount(name=request.name, may_enter=False, reason=error.message)
    return CheckedAccount(
        name=request.name,
        may_enter=True,
        must_change=account is not None and _must_change(platform, account),
        changed_at=None if account is None else format_time(account.valid_from),
    )
