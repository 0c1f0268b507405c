"""Password accounts of the shipped authenticator: argon2, lock, forced change."""

from __future__ import annotations

import asyncio
import re
import secrets
import unicodedata
from datetime import timedelta
from typing import Final

import msgspec
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from backendai_hub.core.errors import (
    ConflictError,
    InvalidRequestError,
    TooManyRequestsError,
    UnauthenticatedError,
)
from backendai_hub.core.events import Event, EventKind
from backendai_hub.db import history
from backendai_hub.db.history import Account
from backendai_hub.operations.platform import Platform

FAILURES_BEFORE_LOCK: Final = 10
LOCK_MINUTES: Final = 15
LEAST_PASSWORD: Final = 8
_MOST_PASSWORD: Final = 1024

_NAME: Final = re.compile(r"[\w][\w.@-]{0,63}")

_hasher = PasswordHasher()
# Checked when there is no such account, so that both answers take as long.
_NOBODY: Final = _hasher.hash("nobody has this password")
_WRONG: Final = "wrong user name or password"


class VerifyRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A log-in, with a new password if one is to be set."""

    name: str
    password: str
    new_password: str | None = None


class VerifiedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Who has logged in; with ``must_change``, only to choose a new password."""

    name: str
    admin: bool
    must_change: bool


def normalise(name: str) -> str:
    """Fold a user name so that look-alike spellings are one account."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


def _matches(hashed: str, password: str) -> bool:
    try:
        return _hasher.verify(hashed, password)
    except (VerificationError, InvalidHashError):
        return False


async def verify_account(platform: Platform, request: VerifyRequest) -> VerifiedAccount:
    """Check a password; repeated failures lock the account for a while.

    Raises :class:`UnauthenticatedError` with one message for unknown name and wrong
    password, and :class:`TooManyRequestsError` while locked.
    """
    name = normalise(request.name)
    if not name or len(name) > 256 or len(request.password) > _MOST_PASSWORD:
        raise UnauthenticatedError(_WRONG)
    async with platform.database.read() as connection:
        account = await history.get_account(connection, name)
    now = platform.database.clock()
    if account and account.locked_until is not None and account.locked_until > now:
        minutes = 1 + int((account.locked_until - now).total_seconds() // 60)
        raise TooManyRequestsError(
            f"too many wrong passwords; try again in {minutes} minutes",
            retry_after=minutes * 60,
        )
    hashed = account.password_hash if account else _NOBODY
    # argon2 takes tens of milliseconds on purpose: not on the event loop.
    good = await asyncio.to_thread(_matches, hashed, request.password)
    if account is None or not good:
        if account is not None:
            await _count_failure(platform, name)
        raise UnauthenticatedError(_WRONG)
    must_change = account.must_change
    if request.new_password is not None:
        await _change(platform, account, request)
        must_change = False
    elif account.failures:
        async with platform.database.transaction() as tx:
            await history.change_account(tx, name, failures=0, locked_until=None)
    return VerifiedAccount(
        name=name,
        admin=name in platform.settings.superadmins,
        must_change=must_change,
    )


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


def check_new_password(old: str, new: str) -> None:
    """Refuse passwords that are too short, absurdly long, or the old one."""
    if not LEAST_PASSWORD <= len(new) <= _MOST_PASSWORD:
        raise InvalidRequestError(
            f"new_password: use {LEAST_PASSWORD} to {_MOST_PASSWORD} characters"
        )
    if new == old:
        raise InvalidRequestError("new_password: choose another one than the present")


async def _change(platform: Platform, account: Account, request: VerifyRequest) -> None:
    new = request.new_password or ""
    check_new_password(request.password, new)
    hashed = await asyncio.to_thread(_hasher.hash, new)
    async with platform.database.transaction() as tx:
        await history.change_account(
            tx,
            account.name,
            password_hash=hashed,
            must_change=False,
            failures=0,
            locked_until=None,
            changed_at=tx.now,
        )
        tx.record(
            Event(
                kind=EventKind.ACCOUNT_PASSWORD_CHANGED,
                text=f"{account.name} chose a new password",
                actor=account.name,
            )
        )


class AccountRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A new account."""

    name: str


class NewAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A new account's one-time password: shown here and never again."""

    name: str
    password: str


async def create_account(
    platform: Platform, actor: str, request: AccountRequest
) -> NewAccount:
    """Create an account with a one-time password that has to be changed at once.

    Raises :class:`ConflictError` if there is such an account already.
    """
    name = normalise(request.name)
    if _NAME.fullmatch(name) is None:
        raise InvalidRequestError(
            f"name: {name[:64]!r} will not do; use 1 to 64 letters, digits, '.', '_',"
            " '-' or '@', beginning with a letter or digit"
        )
    password = secrets.token_urlsafe(12)
    hashed = await asyncio.to_thread(_hasher.hash, password)
    if not await ensure_account(platform, name, hashed, actor=actor):
        raise ConflictError(f"there is an account {name!r} already")
    return NewAccount(name=name, password=password)


async def ensure_account(
    platform: Platform, name: str, password_hash: str, *, actor: str = "system"
) -> bool:
    """Create an account whose password has to be changed; tell whether it is new.

    While nobody has chosen a password of their own, another one-time password takes
    the place of the first: it may never have reached anybody's eyes.
    """
    name = normalise(name)
    async with platform.database.transaction() as tx:
        account = await history.get_account(tx.connection, name, lock=True)
        if account is not None:
            if account.must_change and account.password_hash != password_hash:
                await history.change_account(tx, name, password_hash=password_hash)
            return False
        await history.insert_account(
            tx,
            Account(
                name=name,
                password_hash=password_hash,
                must_change=True,
                failures=0,
                locked_until=None,
                changed_at=tx.now,
            ),
        )
        tx.record(
            Event(
                kind=EventKind.ACCOUNT_CREATED,
                text=f"{actor} created the account {name}",
                actor=actor,
            )
        )
        return True
