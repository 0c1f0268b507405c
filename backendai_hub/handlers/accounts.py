"""Password accounts, for the shipped authenticator."""

from __future__ import annotations

from backendai_hub.core.access import Action
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations.accounts import (
    VerifiedAccount,
    VerifyRequest,
    verify_account,
)


class VerifyHandler(APIHandler):
    """The check of a password."""

    path = "api/accounts/verify"

    @operation(Action.VERIFY_ACCOUNT)
    async def post(self, body: VerifyRequest) -> VerifiedAccount:
        """Check a password, and set a new one if the request has one."""
        return await verify_account(self.platform, body)
