"""Password accounts, for the shipped authenticator."""

from __future__ import annotations

from backendai_hub.core.access import Action
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations.accounts import (
    AccountRequest,
    NewAccount,
    VerifiedAccount,
    VerifyRequest,
    create_account,
    verify_account,
)


class VerifyHandler(APIHandler):
    """The check of a password."""

    path = "api/accounts/verify"

    @operation(Action.VERIFY_ACCOUNT)
    async def post(self, body: VerifyRequest) -> VerifiedAccount:
        """Check a password, and set a new one if the request has one."""
        return await verify_account(self.platform, body)


class AccountsHandler(APIHandler):
    """The accounts."""

    path = "api/accounts"

    @operation(Action.CREATE_ACCOUNT, status=201)
    async def post(self, body: AccountRequest) -> NewAccount:
        """Create an account; the answer holds its one-time password."""
        return await create_account(self.platform, self.principal.name, body)
