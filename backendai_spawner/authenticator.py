"""The authenticator: accounts that the hub service keeps, checked by it.

Passwords are hashed and compared there; here they only pass through. An account
whose password must be changed is let in only together with a new one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4
from weakref import WeakKeyDictionary

from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.auth import Authenticator
from jupyterhub.handlers.base import BaseHandler
from jupyterhub.handlers.login import LogoutHandler
from jupyterhub.user import User
from jupyterhub.utils import maybe_future
from tornado import web
from traitlets import Bool, default

from backendai_hub.client.accounts import Browser, VerifiedAccount
from backendai_hub.core.errors import (
    ForbiddenError,
    HubError,
    InvalidRequestError,
    TooManyRequestsError,
    UnauthenticatedError,
)
from backendai_hub.core.names import fold
from backendai_spawner.clients import shared_client
from backendai_spawner.connection import ConnectionSettings

LONGEST_NAME: Final = 255  # what the Hub's database takes
COOKIE_DAYS: Final = 14.0
"""How long JupyterHub's cookie is good where its configuration does not say."""
LONGEST_PASSWORD: Final = 1024  # the service's own limit


class LoginProblemError(web.HTTPError):
    """A login that is neither right nor wrong; the page shows the message."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        must_change: bool = False,
        too_many: bool = False,
    ) -> None:
        super().__init__(status, reason=HTTPStatus(status).phrase)
        self.jupyterhub_message = message
        self.must_change = must_change
        """Whether the page has to ask for a new password."""
        self.too_many = too_many
        """Whether the page offers to end other logins."""


class ToldLogoutHandler(LogoutHandler):
    """Log out as JupyterHub does, and tell the service of it."""

    async def default_handle_logout(self) -> None:
        """Remember who and which browser it is: afterwards neither is known."""
        user, session = self.current_user, self.get_session_cookie()
        await super().default_handle_logout()
        if user is not None and session:
            address = str(self.request.remote_ip or "")
            await self.authenticator.tell_logout(user.name, session, address)


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

    @default("auth_refresh_age")
    def _default_auth_refresh_age(self) -> int:
        # With the time others keep the Hub's word: disabled people are out in a minute.
        return 30

    @default("auth_refresh_strict")
    def _default_auth_refresh_strict(self) -> bool:
        # Tokens of people who may not come in any more are refused, too.
        return True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._new_users: dict[str, str] = {}
        """The marks of people who come in for the first time."""
        self._sessions: WeakKeyDictionary[BaseHandler, str] = WeakKeyDictionary()
        """What browsers are called from now on, if they come in."""

    def normalize_username(self, username: str) -> str:
        """Return the one spelling of a name: NFKC, without case."""
        folded = fold(username)
        return str(self.username_map.get(folded, folded))

    async def get_authenticated_user(
        self, handler: BaseHandler | None, data: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """Give a browser its name together with its login, and never before.

        The form of a page that asks once more is good only for a browser with the name
        that it had when it asked the first time.
        """
        found: dict[str, Any] | None = await super().get_authenticated_user(
            handler, data
        )
        session = self._sessions.pop(handler, None) if handler else None
        if handler and found and session and not handler.get_session_cookie():
            handler._session_id = session  # noqa: SLF001 - else it makes up another
            handler.set_session_cookie()
        return found

    async def authenticate(
        self, handler: BaseHandler | None, data: Mapping[str, str]
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
        browser = _browser_of(handler, data)
        try:
            account = await shared_client(self).accounts.verify(
                fold(name),
                password,
                new_password=new_password,
                address=str(handler.request.remote_ip or "") if handler else "",
                browser=browser,
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
        user = handler.find_user(account.name) if handler else None
        if user is None:
            self._new_users[account.name] = _mark(account.changed_at)
        else:
            ends = browser is not None and browser.end_others
            self._see_password(account.changed_at, user, handler, ends=ends)
        if handler and browser:
            self._sessions[handler] = browser.session
        return self._user_model(account)

    async def add_user(self, user: User) -> None:
        """Let the first cookie of a new user be one that is from now."""
        await maybe_future(super().add_user(user))
        if mark := self._new_users.pop(user.name, None):
            user.cookie_id = _make_cookie_id(mark)

    async def refresh_user(
        self, user: User, handler: BaseHandler | None = None
    ) -> bool:
        """Tell whether *user* may still come in.

        While the service does not answer, who is in stays in: an outage logs nobody
        out, and without the service nothing of it can be used either.
        """
        try:
            found = await shared_client(self).accounts.check(
                user.name,
                needs_account=True,
                groups=[group.name for group in user.groups],
                admin=bool(user.admin),
            )
        except HubError as error:
            self.log.warning("%s cannot be checked: %s", user.name, error.message)
            return True
        if not found.may_enter:
            self.log.warning("%s is logged out: %s", user.name, found.reason)
            return False
        ended = self._see_password(found.changed_at, user, handler)
        # A one-time password is changed on the login page, where tokens do not come.
        by_token = handler is None or _is_by_token(handler)
        return by_token or not (ended or found.must_change)

    def get_handlers(self, app: Any) -> list[tuple[str, Any]]:
        """Add to the Hub's own pages, whose logging out the service has to hear of."""
        return [*super().get_handlers(app), ("/logout", ToldLogoutHandler)]

    async def tell_logout(self, name: str, session: str, address: str) -> None:
        """Free the place of a browser; without an answer, it is free in some days."""
        try:
            await shared_client(self).accounts.logout(name, session, address=address)
        except HubError as error:
            self.log.warning("the logout of %s is not counted: %s", name, error.message)

    def _see_password(
        self,
        changed_at: str | None,
        user: User,
        handler: BaseHandler | None,
        *,
        ends: bool = False,
    ) -> bool:
        """End the logins from before *changed_at*; tell whether there may be any.

        The Hub's cookies, and what browsers got through them, end. Tokens that people
        have made for their programs, and those of their servers, stay.

        What cookies are checked against says of which password they are. That is in
        the Hub's database: changes while it was down end logins, too.
        """
        mark = _mark(changed_at)
        is_current = not ends and user.cookie_id.startswith(f"{mark}-")
        if is_current or handler is None:
            return False
        self.log.info("earlier logins of %s end", user.name)
        user.cookie_id = _make_cookie_id(mark)
        for token in list(user.api_tokens):
            if token.session_id:
                handler.db.delete(token)
        handler.db.commit()
        return True

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
            # The page has one field that it can be about, with a name of its own.
            words = error.message.removeprefix("new_password: ")
            return LoginProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"{words[:1].upper()}{words[1:]}.",
                must_change=True,
            )
        if isinstance(error, ForbiddenError) and "reason" in error.fields:
            return LoginProblemError(
                HTTPStatus.FORBIDDEN,
                error.message,
                too_many=error.fields["reason"] == "too-many-logins",
            )
        self.log.error("Accounts cannot be checked: %s", error.message)
        return LoginProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "Signing in is not possible at the moment. Try again in a little while.",
        )


def _is_by_token(handler: BaseHandler) -> bool:
    """Tell whether a request came with a token and not with a cookie.

    Of cookies JupyterHub says nothing, and stumbles over that when it logs people out:
    here it is told.
    """
    by_token = bool(getattr(handler, "_token_authenticated", False))
    handler._token_authenticated = by_token  # noqa: SLF001
    return by_token


def _mark(changed_at: str | None) -> str:
    """Return what the cookies begin with that are valid since *changed_at*."""
    return sha256((changed_at or "").encode()).hexdigest()[:16]


def _make_cookie_id(mark: str) -> str:
    return f"{mark}-{secrets.token_hex(16)}"


def _browser_of(handler: BaseHandler | None, data: Mapping[str, str]) -> Browser | None:
    """Tell which browser somebody logs in with, and for how long its cookie is good.

    Who asks the Hub's API for a token, with a password, gets no cookie.
    """
    if handler is None or isinstance(handler, APIHandler):
        return None
    # Where the Hub has no name for it yet, it has this one once it is let in.
    session = handler.get_session_cookie() or uuid4().hex
    return Browser(
        session=str(session),
        days=float(handler.settings.get("cookie_max_age_days") or COOKIE_DAYS),
        end_others=bool(data.get("end_others")),
    )


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
