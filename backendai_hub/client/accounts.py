"""The accounts' part of the client, for the authenticator and for administrators."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from backendai_hub.api.accounts import NewAccount
from backendai_hub.client.transport import Again, Transport, segment


class VerifiedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An account whose password was right.

    While ``must_change`` is set nobody may be let in with it. Logins from before
    ``changed_at`` are over.
    """

    name: str
    admin: bool = False
    must_change: bool = False
    changed_at: str | None = None


class CheckedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Whether somebody may come in; if not, ``reason`` says why."""

    name: str
    may_enter: bool
    reason: str | None = None
    must_change: bool = False
    changed_at: str | None = None


class AccountResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one of many ended: with a one-time password, or with an error."""

    index: int
    status: int
    name: str | None = None
    line: int | None = None
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
    must_change: bool = False
    locked_until: str | None = None
    changed_at: str | None = None


class Browser(msgspec.Struct, frozen=True, kw_only=True):
    """Where somebody logs in: what JupyterHub calls the browser, and for how long.

    With ``end_others`` all other logins end first.
    """

    session: str
    days: float = 14.0
    end_others: bool = False


class EndedLogins(msgspec.Struct, frozen=True, kw_only=True):
    """Whose logins are over, and how many there were."""

    name: str
    ended: int


class Accounts:
    """Check passwords against the service's own accounts, and look after them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def verify(
        self,
        name: str,
        password: str,
        *,
        new_password: str | None = None,
        address: str = "",
        browser: Browser | None = None,
    ) -> VerifiedAccount:
        """Check *password*, and replace it by *new_password* if one is given.

        Raises ``UnauthenticatedError`` for a wrong name or password alike. It is sent
        only once: each attempt counts against the account's limit. *address* is where
        the person comes from; without a *browser* no login is counted.
        """
        body: dict[str, Any] = {
            "name": name,
            "password": password,
            "address": address,
            **(msgspec.structs.asdict(browser) if browser else {}),
        }
        if new_password is not None:
            body["new_password"] = new_password
        return await self._transport.post(
            "accounts/verify", body, VerifiedAccount, again=Again.NEVER
        )

    async def check(
        self,
        name: str,
        *,
        needs_account: bool = False,
        groups: Collection[str] | None = None,
        admin: bool = False,
    ) -> CheckedAccount:
        """Ask whether somebody may come in as things are now.

        With *groups*, which are JupyterHub's, what they give is brought up to date.
        """
        body: dict[str, Any] = {
            "name": name,
            "needs_account": needs_account,
            "admin": admin,
        }
        if groups is not None:
            body["groups"] = sorted(groups)
        return await self._transport.post("accounts/check", body, CheckedAccount)

    async def create(self, name: str, /, **fields: str) -> NewAccount:
        """Make a user with an account: *fields* are email, full_name, domain, …."""
        body = {"name": name, **fields}
        return await self._transport.post(
            "accounts", body, NewAccount, again=Again.NEVER
        )

    async def create_series(
        self, prefix: str, count: int, /, *, suffix: str = "", **fields: str
    ) -> AccountResults:
        """Make *count* numbered accounts: domain, project and role are the same."""
        body = {"prefix": prefix, "count": count, "suffix": suffix, **fields}
        return await self._transport.post(
            "accounts/bulk", body, AccountResults, again=Again.NEVER
        )

    async def create_from_table(self, table: str) -> AccountResults:
        """Make the accounts of a CSV table; its first line names the columns."""
        return await self._transport.post(
            "accounts/csv", {"csv": table}, AccountResults, again=Again.NEVER
        )

    async def state(self, name: str) -> AccountState:
        """Tell how an account is; there is none for who comes in elsewhere."""
        path = f"accounts/{segment(name)}/state"
        return await self._transport.get(path, AccountState)

    async def reset(self, name: str) -> NewAccount:
        """Give somebody a new one-time password."""
        return await self._transport.post(
            f"accounts/{segment(name)}/reset", {}, NewAccount, again=Again.NEVER
        )

    async def require_change(self, name: str) -> AccountState:
        """Let somebody in next time only with a new password."""
        path = f"accounts/{segment(name)}/require-change"
        return await self._transport.post(path, {}, AccountState)

    async def unlock(self, name: str) -> AccountState:
        """Forget the wrong passwords of an account."""
        path = f"accounts/{segment(name)}/unlock"
        return await self._transport.post(path, {}, AccountState)

    async def logout(self, name: str, session: str, *, address: str = "") -> None:
        """Tell that somebody at *address* has logged out of the browser *session*."""
        body = {"name": name, "session": session, "address": address}
        await self._transport.post("accounts/logout", body, type(None))

    async def end_logins(self, name: str) -> EndedLogins:
        """End all of somebody's logins, of browsers and command lines."""
        path = f"accounts/{segment(name)}/end-logins"
        return await self._transport.post(path, {}, EndedLogins)

    async def change_password(self, old: str, new: str) -> None:
        """Change the caller's own password."""
        body = {"old_password": old, "new_password": new}
        await self._transport.post(
            "accounts/password", body, type(None), again=Again.NEVER
        )
