"""The authenticator: accounts that the hub service keeps, checked by it.

Passwords are hashed and compared there; here they only pass through. An account
whose password must be changed is let in only together with a new one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from jupyterhub.auth import Authenticator
from tornado import web
from traitlets import Bool, default

from backendai_hub.client.accounts import VerifiedAccount
from backendai_hub.core.errors import (
    HubError,
    InvalidRequestError,
    TooManyRequestsError,
    UnauthenticatedError,
)
from backendai_spawner.clients import shared_client
from backendai_spawner.connection import ConnectionSettings

LONGEST_NAME: Final = 255  # what the Hub's database takes
LONGEST_PASSWORD: Final = 1024  # the service's own limit


class LoginProblemError(web.HTTPError):
    """A login that is neither right nor wrong; the page shows the message."""

    def __init__(self, status: int, message: str, *, must_change: bool = False) -> None:
        super().__init__(status, reason=HTTPStatus(status).phrase)
        self.jupyterhub_message = message
        self.must_change = must_change
        """Whether the page has to ask for a new password."""


class BackendAIAuthenticator(ConnectionSettings, Authenticator):
    """Lets in people who have an account with the Backend.AI service."""

    trust_service_admin = Bool(
        default_value=False,
        help="""Whether an administrator of the Backend.AI service is one of JupyterHub
        too. Off, only ``Authenticator.admin_users`` says who is.
        """,
    ).tag(config=True)

    @default("allow_all")
    def _default_allow_all(self) -> bool:
        # Who has an account may use it, unless the site names who may.
        return not self.allowed_users

    def normalize_username(self, username: str) -> str:
        """Return the one spelling of a name: NFKC, without case."""
        folded = _fold(username)
        return str(self.username_map.get(folded, folded))

    async def authenticate(
        self, _handler: web.RequestHandler, data: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """Return who *data* is from, or None for a wrong name or password alike."""
        name = data.get("username", "")
        password = data.get("password", "")
        if (
            not 0 < len(name) <= LONGEST_NAME
            or not 0 < len(password) <= LONGEST_PASSWORD
        ):
            return None
        new_password = _new_password(data)
        try:
            account = await shared_client(self).accounts.verify(
                _fold(name), password, new_password=new_password
            )
        except UnauthenticatedError:
            return None
        except HubError as error:
            raise self._problem(error, wants_change=new_password is not None) from error
        if account.must_change:
            raise LoginProblemError(
                HTTPStatus.FORBIDDEN,
                "Choose a new password before you go on.",
                must_change=True,
            )
        return self._user_model(account)

    def _user_model(self, account: VerifiedAccount) -> dict[str, Any]:
        admin = account.admin if self.trust_service_admin else None
        # None leaves the decision to admin_users.
        return {"name": account.name, "admin": admin or None}

    def _problem(self, error: HubError, *, wants_change: bool) -> LoginProblemError:
        if isinstance(error, TooManyRequestsError):
            pause = error.fields.get("retry_after")
            when = f"in {pause} seconds" if pause else "in a little while"
            return LoginProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Too many attempts to sign in. Try again {when}.",
            )
        if isinstance(error, InvalidRequestError) and wants_change:
            return LoginProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY, error.message, must_change=True
            )
        self.log.error("Accounts cannot be checked: %s", error.message)
        return LoginProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "Signing in is not possible at the moment. Try again in a little while.",
        )


def _fold(name: str) -> str:
    folded = unicodedata.normalize("NFKC", name).strip().casefold()
    return unicodedata.normalize("NFKC", folded)


def _new_password(data: Mapping[str, str]) -> str | None:
    new, again = data.get("new_password", ""), data.get("new_password_again", "")
    if not new and not again:
        return None
    if new != again:
        complaint = "The two new passwords are not the same."
    elif len(new) > LONGEST_PASSWORD:
        complaint = f"The new password is longer than {LONGEST_PASSWORD} characters."
    elif new == data.get("password"):
        complaint = "The new password has to differ from the present one."
    else:
        return new
    raise LoginProblemError(
        HTTPStatus.UNPROCESSABLE_ENTITY, complaint, must_change=True
    )
