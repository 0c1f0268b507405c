"""Logging in a command line: what it asks, and the page where a person confirms.

The page is made here and has no scripts: its policy allows none, it may not be framed,
and its form is only sent to itself, with a token that other sites cannot know.
"""

from __future__ import annotations

import html
import secrets
from typing import Final
from urllib.parse import urlencode

from backendai_hub.core.access import Action, Resource, admin_scope
from backendai_hub.core.errors import (
    ForbiddenError,
    HubError,
    TooManyRequestsError,
)
from backendai_hub.core.tenancy import Role
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.handlers.console import PageHandler
from backendai_hub.operations.logins import (
    LoginAnswer,
    LoginRequest,
    LoginTokenRequest,
    StartedLogin,
    WaitingLogin,
    confirm_login,
)
from backendai_hub.operations.open_logins import EndedLogins, end_own_logins

STARTS_PER_ADDRESS: Final = 30
"""How many logins may be started from one address in a window."""
TRIES_PER_USER: Final = 30
"""How many codes one person may try in a window."""


class LoginsHandler(APIHandler):
    """Logins of command lines."""

    path = "api/logins"

    @operation(Action.START_LOGIN, status=201)
    async def post(self, body: LoginRequest) -> StartedLogin:
        """Start to log in a command line; a person confirms its code in a browser."""
        address = str(self.request.remote_ip)
        _count(self, f"logins from {address}", STARTS_PER_ADDRESS)
        device_code, user_code = self.service.logins.open(
            body.machine,
            agent=self.request.headers.get("User-Agent", ""),
            address=address,
        )
        page = f"{self.request.protocol}://{self.request.host}{self._page}"
        return StartedLogin(
            device_code=device_code,
            user_code=user_code,
            verification_url=page,
            verification_url_complete=f"{page}?{urlencode({'code': user_code})}",
        )

    @property
    def _page(self) -> str:
        return f"{self.service.prefix}{ActivateHandler.path}"


class LoginTokenHandler(APIHandler):
    """What a command line asks while its person confirms."""

    path = "api/logins/token"

    @operation(Action.START_LOGIN)
    async def post(self, body: LoginTokenRequest) -> LoginAnswer:
        """Ask whether a login has been confirmed; the keypair is told once."""
        return self.service.logins.collect(body.device_code)


class OwnLoginsHandler(APIHandler):
    """The end of all of one's own logins."""

    path = "api/logins/end"

    @operation(Action.END_LOGINS)
    async def post(self) -> EndedLogins:
        """End all of one's own logins, of browsers and command lines."""
        return await end_own_logins(self.platform, self.principal)


class ActivateHandler(PageHandler):
    """The page on which a person confirms the login of a command line."""

    path = "activate"

    @operation(Action.CONFIRM_LOGIN)
    async def get(self) -> None:
        """Show who wants to log in, or ask for the code."""
        code = self.get_query_argument("code", "")
        if not code:
            self._send("Log in a command line", _ASK)
            return
        try:
            _count(self, f"codes of {self.principal.id}", TRIES_PER_USER)
            waiting = self.service.logins.find(code)
        except HubError as error:
            self._refuse(error)
            return
        self._send("Log in a command line?", self._describe(waiting))

    @operation(Action.CONFIRM_LOGIN)
    async def post(self) -> None:
        """Confirm or refuse a login."""
        if self.request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
            raise ForbiddenError("a person confirms this, no script")
        code = self.get_body_argument("code", "")
        desk = self.service.logins
        try:
            _count(self, f"codes of {self.principal.id}", TRIES_PER_USER)
            if self.get_body_argument("decision", "") != "confirm":
                desk.deny(desk.claim(code).user_code)
                self._send("Refused", "<p>Nobody was logged in.</p>")
                return
            waiting = await confirm_login(
                self.platform,
                self.principal,
                desk,
                code,
                is_admin=self.get_body_argument("is_admin", "") == "yes",
            )
        except HubError as error:
            self._refuse(error)
            return
        where = html.escape(waiting.machine or waiting.address)
        self._send(
            "Logged in",
            f"<p>The command line on <b>{where}</b> now acts as you. You can close this"
            " page. Its key is in your list of keypairs; take it away there.</p>",
        )

    def _describe(self, waiting: WaitingLogin) -> str:
        admin = ""
        has_more = admin_scope(Resource.ACCOUNT) in self.principal.scopes
        if self.principal.role is not Role.USER and has_more:
            admin = (
                '<p><label><input type="checkbox" name="is_admin" value="yes"> with my'
                f" rights as {html.escape(self.principal.role)}</label></p>"
            )
        token = self.xsrf_token
        text = token.decode() if isinstance(token, bytes) else str(token)
        return _CONFIRM.format(
            code=html.escape(waiting.user_code),
            machine=html.escape(waiting.machine or "(it does not say)"),
            agent=html.escape(waiting.agent or "(it does not say)"),
            address=html.escape(waiting.address),
            user=html.escape(self.principal.name),
            xsrf=html.escape(text),
            admin=admin,
        )

    def _refuse(self, error: HubError) -> None:
        self.set_status(error.status)
        self._send(error.title, f"<p>{html.escape(error.message)}</p>{_ASK}")

    def _send(self, title: str, content: str) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Referrer-Policy", "no-referrer")
        nonce = secrets.token_urlsafe(16)
        self.set_header(
            "Content-Security-Policy",
            f"default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none';"
            " form-action 'self'; frame-ancestors 'none'",
        )
        self.finish(
            _PAGE.format(
                title=html.escape(title), content=content, style=_STYLE, nonce=nonce
            )
        )


def _count(handler: APIHandler, key: str, limit: int) -> None:
    """Count one attempt; raises :class:`TooManyRequestsError` beyond the limit."""
    state = handler.service.limiter.count(key, limit)
    if state.exceeded:
        raise TooManyRequestsError(
            f"more than {limit} tries in {state.window // 60} minutes; the window ends"
            f" in {state.retry_after} seconds",
            retry_after=state.retry_after,
        )


_STYLE: Final = """
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 34rem; margin: 10vh auto; padding: 0 1.5rem; }
h1 { font-size: 1.5rem; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .4rem 1.2rem; }
dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
button, input { font: inherit; padding: .4rem .9rem; margin-right: .5rem; }
input[type=checkbox] { margin-right: .4rem; }
"""
_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style nonce="{nonce}">{style}</style></head>
<body><main><h1>{title}</h1>{content}</main></body>
</html>
"""
_ASK: Final = """<form method="get">
<p><label>The code that your terminal shows:
<input name="code" autocomplete="off" autocapitalize="characters" spellcheck="false"
 size="12" maxlength="16" required></label>
<button>Continue</button></p>
</form>
"""
_CONFIRM: Final = """<p>A command line asks to act as <b>{user}</b>.</p>
<dl>
<dt>Code</dt><dd><b>{code}</b></dd>
<dt>It says it runs on</dt><dd>{machine}</dd>
<dt>It says it is</dt><dd>{agent}</dd>
<dt>It asks from the address</dt><dd>{address}</dd>
</dl>
<p><b>Confirm only if you have just typed the command yourself, and your terminal shows
the same code.</b> If somebody sent you here, or gave you the code, refuse: they would
be able to do everything in your name.</p>
<form method="post">
<input type="hidden" name="_xsrf" value="{xsrf}">
<input type="hidden" name="code" value="{code}">
{admin}
<p><button name="decision" value="confirm">Confirm</button>
<button name="decision" value="refuse">Refuse</button></p>
</form>
"""
