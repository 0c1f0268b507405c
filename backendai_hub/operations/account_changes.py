"""Making password accounts, one or many, and giving people new passwords."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy.exc import DBAPIError

from backendai_hub.api.accounts import NewAccount
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.accounts import number_names, read_account_name, read_table
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    HubError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
)
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.names import fold
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Role
from backendai_hub.core.times import format_time
from backendai_hub.db import history
from backendai_hub.db.engine import Transaction
from backendai_hub.db.history import Account
from backendai_hub.db.nouns import Item
from backendai_hub.operations.accounts import store_password
from backendai_hub.operations.audit_notes import note_refusal
from backendai_hub.operations.nouns import create_noun, find_visible, require
from backendai_hub.operations.passwords import hash_password, make_password
from backendai_hub.operations.platform import Platform

log = logging.getLogger("backendai_hub.accounts")

_USER = noun_of("user")
_ABOVE = frozenset({Role.SUPERADMIN, Role.MONITOR})
Text = str | msgspec.UnsetType


class AccountFields(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What new accounts have in common; what is left out is as for any new user."""

    domain: Text = msgspec.UNSET
    project: Text = msgspec.UNSET
    role: Text = msgspec.UNSET


class AccountRequest(AccountFields, frozen=True, kw_only=True):
    """A new person with a password account."""

    name: str
    email: Text = msgspec.UNSET
    full_name: Text = msgspec.UNSET


class SeriesRequest(AccountFields, frozen=True, kw_only=True):
    """Numbered accounts: ``prefix``, a number of one width, ``suffix``."""

    prefix: str
    count: int
    suffix: str = ""


class TableRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A table of accounts as CSV; its first line names the columns."""

    csv: str


class AccountResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one of many ended: with a one-time password, or with an error."""

    index: int
    status: int
    name: str | None = None
    line: int | None = None
    """Where it is in the table, if it comes from one."""
    password: str | None = None
    error: str | None = None
    code: str | None = None


class AccountResults(msgspec.Struct, frozen=True, kw_only=True):
    """How each of many ended."""

    succeeded: int
    failed: int
    results: list[AccountResult]


class AccountState(msgspec.Struct, frozen=True, kw_only=True):
    """What administrators may know of an account."""

    name: str
    must_change: bool
    locked_until: str | None
    changed_at: str | None


# --- making ----------------------------------------------------------------------


async def create_account(
    platform: Platform, principal: Principal, request: AccountRequest
) -> NewAccount:
    """Make a user with an account, whose one-time password has to be changed at once.

    What goes for any new user goes here: see the noun's rules. Raises
    :class:`ConflictError` if there is such a user or account already.
    """
    fields: dict[str, Any] = {
        name: value
        for name in request.__struct_fields__
        if (value := getattr(request, name)) is not msgspec.UNSET
    }
    name = fields["name"] = read_account_name(request.name)
    password = make_password()
    hashed = await hash_password(password, once=True)

    async def add_account(tx: Transaction, user: Item) -> None:
        if await history.get_account(tx.connection, name) is not None:
            raise ConflictError(f"there is an account {name!r} already")
        await _insert(tx, name, hashed, actor=principal.name)
        tx.audit(_act(Action.CREATE_ACCOUNT, user, after={"must_change": True}))

    body = _USER.create_type(**fields)
    await create_noun(platform, principal, _USER, body, also=add_account)
    return NewAccount(name=name, password=password)


async def create_series(
    platform: Platform, principal: Principal, request: SeriesRequest
) -> AccountResults:
    """Make numbered accounts; each ends for itself."""
    names = number_names(request.prefix, request.count, request.suffix)
    common = {name: getattr(request, name) for name in AccountFields.__struct_fields__}
    return await _create_each(
        platform, principal, [(None, {"name": name, **common}) for name in names]
    )


async def create_from_table(
    platform: Platform, principal: Principal, request: TableRequest
) -> AccountResults:
    """Make the accounts of a table; each row ends for itself."""
    rows = read_table(request.csv)
    return await _create_each(
        platform,
        principal,
        [(row.line, row.error or row.values) for row in rows],
    )


async def _create_each(
    platform: Platform,
    principal: Principal,
    wanted: Sequence[tuple[int | None, Mapping[str, Any] | str]],
) -> AccountResults:
    results = []
    for index, (line, fields) in enumerate(wanted):
        name = None if isinstance(fields, str) else fields["name"]
        ended = await _attempt(platform, principal, fields)
        if isinstance(ended, NewAccount):
            result = AccountResult(
                index=index,
                line=line,
                status=201,
                name=ended.name,
                password=ended.password,
            )
        else:
            await note_refusal(platform, _refused(name), ended)
            result = AccountResult(
                index=index,
                line=line,
                status=ended.status,
                name=name,
                error=ended.message,
                code=ended.code,
            )
        results.append(result)
    failed = sum(1 for result in results if result.error is not None)
    return AccountResults(
        succeeded=len(results) - failed, failed=failed, results=results
    )


async def _attempt(
    platform: Platform, principal: Principal, fields: Mapping[str, Any] | str
) -> NewAccount | HubError:
    """Make one of many; what has been made before is told whatever happens."""
    if isinstance(fields, str):
        return InvalidRequestError(fields)
    try:
        return await create_account(platform, principal, AccountRequest(**fields))
    except HubError as error:
        return error
    except DBAPIError:
        log.exception("the account %s could not be stored", fields["name"])
        return UnavailableError("the database does not answer; send this one again")


def _refused(name: str | None) -> Act:
    action = Action.CREATE_ACCOUNT
    return Act(action=action, object_kind="account", object_name=name or "")


async def ensure_account(platform: Platform, name: str, password_hash: str) -> bool:
    """Make the first administrator's account; tell whether it is new.

    While nobody has chosen a password of their own, another one-time password takes
    the place of the first: it may never have reached anybody's eyes.
    """
    name = fold(name)
    async with platform.database.transaction() as tx:
        account = await history.get_account(tx.connection, name, lock=True)
        if account is None:
            await _insert(tx, name, password_hash, actor="system")
        elif account.must_change and account.password_hash != password_hash:
            await store_password(tx, name, password_hash, must_change=True)
    return account is None


async def _insert(tx: Transaction, name: str, hashed: str, *, actor: str) -> None:
    await history.insert_account(
        tx,
        Account(
            name=name,
            password_hash=hashed,
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


# --- changing --------------------------------------------------------------------


async def reset_password(
    platform: Platform, principal: Principal, name: str
) -> NewAccount:
    """Give somebody a new one-time password; who has no account gets one."""
    password = make_password()
    hashed = await hash_password(password, once=True)

    async def give(tx: Transaction, user: Item) -> None:
        known = await history.get_account(tx.connection, fold(user["name"]), lock=True)
        if known is not None:
            await store_password(tx, known.name, hashed, must_change=True)
            return
        if read_account_name(user["name"]) != user["name"]:
            raise InvalidRequestError(
                f"name: {user['name']!r} comes from another authenticator; an account"
                " here would be another person's"
            )
        await _insert(tx, user["name"], hashed, actor=principal.name)

    state = await _change(platform, principal, name, give, unlocks=True)
    return NewAccount(name=state.name, password=password)


async def read_account(
    platform: Platform, principal: Principal, name: str
) -> AccountState:
    """Tell how an account is; raises :class:`NotFoundError` for who has none."""
    async with platform.database.read() as connection:
        user = await find_visible(connection, principal, _USER, name)
        await require(connection, principal, _USER, user, Action.READ_ACCOUNT)
        account = await history.get_account(connection, fold(user["name"]))
    if account is None:
        raise _no_account(user)
    return AccountState(name=account.name, **_describe(account))


async def require_change(
    platform: Platform, principal: Principal, name: str
) -> AccountState:
    """Let somebody in next time only with a new password."""

    async def demand(tx: Transaction, user: Item) -> None:
        await _require_account(tx, user)
        await history.change_account(tx, fold(user["name"]), must_change=True)

    return await _change(platform, principal, name, demand)


async def unlock(platform: Platform, principal: Principal, name: str) -> AccountState:
    """Forget the wrong passwords of an account."""

    async def forget(tx: Transaction, user: Item) -> None:
        await _require_account(tx, user)
        key = fold(user["name"])
        await history.change_account(tx, key, failures=0, locked_until=None)

    return await _change(platform, principal, name, forget, unlocks=True)


async def _require_account(tx: Transaction, user: Item) -> None:
    account = await history.get_account(tx.connection, fold(user["name"]), lock=True)
    if account is None:
        raise _no_account(user)


def _no_account(user: Item) -> NotFoundError:
    return NotFoundError(f"{user['name']} has no password here; 'reset' gives them one")


async def _change(
    platform: Platform,
    principal: Principal,
    name: str,
    do: Callable[[Transaction, Item], Awaitable[None]],
    *,
    unlocks: bool = False,
) -> AccountState:
    """Do something to an account the caller may, and write it down."""
    async with platform.database.transaction() as tx:
        user = await find_visible(tx.connection, principal, _USER, name)
        await require(tx.connection, principal, _USER, user, Action.RESET_PASSWORD)
        _refuse_above(platform, principal, user)
        before = await history.get_account(tx.connection, fold(user["name"]))
        await do(tx, user)
        account = await history.get_account(tx.connection, fold(user["name"]))
        assert account is not None
        was, now = _describe(before), _describe(account)
        tx.audit(_act(Action.RESET_PASSWORD, user, before=was, after=now))
    if unlocks:
        platform.guesses.forget(account.name)
    return AccountState(name=account.name, **now)


def _refuse_above(platform: Platform, principal: Principal, user: Item) -> None:
    if user["id"] == principal.id:
        raise ForbiddenError(
            "nobody resets their own password; change it with the present one"
        )
    configured = user["name"] in platform.settings.superadmins
    role = Role.SUPERADMIN if configured else user["role"]
    if role in _ABOVE and principal.role is not Role.SUPERADMIN:
        raise ForbiddenError(f"only a superadmin touches the account of a {role}")


def _describe(account: Account | None) -> dict[str, Any]:
    if account is None:
        return {}
    return {
        "must_change": account.must_change,
        "locked_until": format_time(account.locked_until),
        "changed_at": format_time(account.changed_at),
    }


def _act(action: str, user: Item, **changes: Any) -> Act:
    return Act(
        action=action,
        object_kind="account",
        object_id=user["id"],
        object_name=user["name"],
        domain_id=user["domain_id"],
        owner_id=user["id"],
        **changes,
    )
