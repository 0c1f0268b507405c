"""The console's pages and files: pre-compressed, with a strict policy."""

from __future__ import annotations

import html
import mimetypes
import secrets
from pathlib import Path
from typing import Any

from jupyterhub.services.auth import HubOAuthCallbackHandler
from tornado import web

from backendai_hub.core.access import Action, Caller, can
from backendai_hub.core.audit import Asking
from backendai_hub.core.errors import (
    ForbiddenError,
    HubError,
    NotFoundError,
    UnauthenticatedError,
)
from backendai_hub.db.chain import ASKING
from backendai_hub.handlers.base import APIHandler, Operation, Service, operation
from backendai_hub.operations.audit_notes import note_login
from backendai_hub.operations.users import ensure_user

_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))


class PageHandler(APIHandler):
    """A page for people: who is not logged in is sent to JupyterHub."""

    async def enter(self, described: Operation) -> None:
        """Send people without a login to JupyterHub; refuse what is no person."""
        self.principal = await self.identify()
        if can(self.principal, described.action):
            return
        if self.principal.caller is not Caller.ANONYMOUS:
            raise ForbiddenError(f"the {self.principal.caller} has no use of pages")
        auth = self.service.hub_auth
        if auth is None:
            raise NotFoundError("this service runs without a JupyterHub")
        if self.request.method not in {"GET", "HEAD"}:
            raise UnauthenticatedError("your login has expired; open the page again")
        state = auth.set_state_cookie(self, next_url=self.request.uri)
        self.redirect(f"{auth.login_url}&state={state}")


class ConsoleHandler(PageHandler):
    """The console: one page for all its routes."""

    path = "{page}"

    @operation(Action.OPEN_CONSOLE)
    async def get(self, page: str = "") -> None:
        """Send the console's page."""
        del page
        index = Path(self.service.assets) / "index.html"
        if not index.is_file():
            raise NotFoundError("the console is not built into this installation")
        # Asking for the token sets the cookie that the page's writes have to show.
        _ = self.xsrf_token
        nonce = secrets.token_urlsafe(16)
        hub_base = self.platform.settings.hub_base
        text = index.read_text("utf-8")
        for placeholder, value in (
            ("__CSP_NONCE__", nonce),
            ("__PREFIX__", self.service.prefix),
            ("__HUB_BASE__", f"{hub_base}hub/"),
        ):
            text = text.replace(placeholder, html.escape(value))
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header(
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self'"
            f" data:; font-src 'self'; style-src 'self' 'nonce-{nonce}';"
            " base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
        self.finish(text)


class AssetHandler(web.StaticFileHandler):
    """Built files. Names carry a hash, but for the entry points."""

    def set_extra_headers(self, path: str) -> None:
        """Let hashed names be kept for ever, others be asked for again."""
        hashed = "-" in Path(path).stem and "assets/" in path
        self.set_header(
            "Cache-Control",
            "public, max-age=31536000, immutable" if hashed else "no-cache",
        )
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Vary", "Accept-Encoding")
        self.clear_header("Server")

    async def get(self, path: str, include_body: bool = True) -> None:  # noqa: FBT001, FBT002 - tornado's signature
        """Send the smallest stored form the browser takes."""
        accepted = self.request.headers.get("Accept-Encoding", "")
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        self._kind = "text/javascript" if path.endswith(".js") else kind
        for name, suffix in _ENCODINGS:
            stored = Path(self.root) / f"{path}{suffix}"
            if name in accepted and ".." not in path and stored.is_file():
                self.set_header("Content-Encoding", name)
                path = f"{path}{suffix}"
                break
        await super().get(path, include_body)

    def get_content_type(self) -> str:
        """Name the type of the file itself, not of its compressed form."""
        return self._kind


class OAuthCallbackHandler(HubOAuthCallbackHandler):
    """Where JupyterHub sends people back to: they have logged in at the console."""

    _token = ""
    _target = ""

    @property
    def hub_auth(self) -> Any:
        """JupyterHub's authenticator of this service."""
        return self.settings["service"].hub_auth

    async def get(self) -> None:
        """Take the login, write it down, and go where they wanted to."""
        await super().get()
        if self._token:
            await self._note_login()
        if self._target:
            super().redirect(self._target)

    def redirect(self, url: str, *arguments: Any, **options: Any) -> None:
        """Keep where to go until the login is written down."""
        del arguments, options
        self._target = url

    def set_signed_cookie(self, name: str, value: Any, **options: Any) -> None:
        """Keep the token that the cookie is to hold."""
        if name == self.hub_auth.cookie_name:
            self._token = str(value)
        super().set_signed_cookie(name, value, **options)

    set_secure_cookie = set_signed_cookie

    async def _note_login(self) -> None:
        service: Service = self.settings["service"]
        session_id = self.hub_auth.get_session_id(self)
        model = await self.hub_auth.user_for_token(
            self._token, session_id=session_id, sync=False
        )
        if model is None:
            return
        name = str(model["name"])
        ASKING.set(
            Asking(
                request_id=secrets.token_hex(8),
                address=str(self.request.remote_ip),
                elapsed=self.request.request_time,
            )
        )
        try:
            actor = await ensure_user(service.platform, name)
        except HubError:  # the first page they open says what is wrong
            actor = None
        await note_login(service.platform, name, credential="console", actor=actor)
