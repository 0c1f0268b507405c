"""Password accounts, for the shipped authenticator and for administrators."""

from __future__ import annotations

from typing import Any

from backendai_hub.api.accounts import NewAccount
from backendai_hub.core.access import Action
from backendai_hub.core.errors import MalformedRequestError
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations import account_changes as changes
from backendai_hub.operations import accounts as verbs
from backendai_hub.operations.account_changes import (
    AccountRequest,
    AccountResults,
    AccountState,
    SeriesRequest,
    TableRequest,
)
from backendai_hub.operations.accounts import (
    CheckedAccount,
    CheckRequest,
    PasswordRequest,
    VerifiedAccount,
    VerifyRequest,
)
from backendai_hub.operations.open_logins import (
    EndedLogins,
    LogoutRequest,
    close_login,
    end_logins_of,
)


class VerifyHandler(APIHandler):
    """The check of a password."""

    path = "api/accounts/verify"

    @operation(Action.VERIFY_ACCOUNT)
    async def post(self, body: VerifyRequest) -> VerifiedAccount:
        """Check a password, and set a new one if the request has one."""
        return await verbs.verify_account(self.platform, body)


class CheckHandler(APIHandler):
    """The check whether somebody may still come in."""

    path = "api/accounts/check"

    @operation(Action.CHECK_ACCOUNT)
    async def post(self, body: CheckRequest) -> CheckedAccount:
        """Tell whether somebody may come in, and follow their groups."""
        return await verbs.check_account(self.platform, body)


class PasswordHandler(APIHandler):
    """One's own password."""

    path = "api/accounts/password"

    @operation(Action.CHANGE_PASSWORD, status=204)
    async def post(self, body: PasswordRequest) -> None:
        """Change one's own password."""
        address = str(self.request.remote_ip or "")
        await verbs.change_password(
            self.platform, self.principal, body, address=address
        )


class AccountsHandler(APIHandler):
    """The accounts."""

    path = "api/accounts"

    @operation(Action.CREATE_ACCOUNT, status=201)
    async def post(self, body: AccountRequest) -> NewAccount:
        """Make a user with an account; the answer holds the one-time password."""
        return await changes.create_account(self.platform, self.principal, body)


class AccountSeriesHandler(APIHandler):
    """Many numbered accounts."""

    path = "api/accounts/bulk"
    many = True

    @operation(Action.CREATE_ACCOUNT)
    async def post(self, body: SeriesRequest) -> AccountResults:
        """Make numbered accounts; each ends for itself."""
        return await changes.create_series(self.platform, self.principal, body)


class AccountTableHandler(APIHandler):
    """Many accounts from a table."""

    path = "api/accounts/csv"
    many = True

    def decode_body(self, kind: Any) -> Any:
        """Take the table as it is, too."""
        content_type = self.request.headers.get("Content-Type", "").split(";")[0]
        if content_type.strip().lower() != "text/csv":
            return super().decode_body(kind)
        try:
            return TableRequest(csv=self.request.body.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise MalformedRequestError(
                f"the table is not written in UTF-8: {error}"
            ) from None

    @operation(Action.CREATE_ACCOUNT)
    async def post(self, body: TableRequest) -> AccountResults:
        """Make the accounts of a CSV table; each row ends for itself."""
        return await changes.create_from_table(self.platform, self.principal, body)


class AccountStateHandler(APIHandler):
    """How an account is."""

    path = "api/accounts/{name}/state"

    @operation(Action.READ_ACCOUNT)
    async def get(self, name: str) -> AccountState:
        """Tell whether an account is locked, and when its password was set."""
        return await changes.read_account(self.platform, self.principal, name)


class ResetHandler(APIHandler):
    """A new one-time password for somebody."""

    path = "api/accounts/{name}/reset"

    @operation(Action.RESET_PASSWORD)
    async def post(self, name: str) -> NewAccount:
        """Give somebody a new one-time password."""
        return await changes.reset_password(self.platform, self.principal, name)


class RequireChangeHandler(APIHandler):
    """Another password at the next login."""

    path = "api/accounts/{name}/require-change"

    @operation(Action.RESET_PASSWORD)
    async def post(self, name: str) -> AccountState:
        """Let somebody in next time only with a new password."""
        return await changes.require_change(self.platform, self.principal, name)


class UnlockHandler(APIHandler):
    """An end to a lock."""

    path = "api/accounts/{name}/unlock"

    @operation(Action.RESET_PASSWORD)
    async def post(self, name: str) -> AccountState:
        """Forget the wrong passwords of an account."""
        return await changes.unlock(self.platform, self.principal, name)


class LogoutHandler(APIHandler):
    """The end of a browser's login."""

    path = "api/accounts/logout"

    @operation(Action.CHECK_ACCOUNT, status=204)
    async def post(self, body: LogoutRequest) -> None:
        """Tell that somebody has logged out of a browser, which frees its place."""
        await close_login(self.platform, body)


class EndLoginsHandler(APIHandler):
    """The end of all logins of somebody."""

    path = "api/accounts/{name}/end-logins"

    @operation(Action.RESET_PASSWORD)
    async def post(self, name: str) -> EndedLogins:
        """End all of somebody's logins, of browsers and command lines."""
        return await end_logins_of(self.platform, self.principal, name)
