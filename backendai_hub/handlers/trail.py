"""The rows that one request leaves in the audit.

Operations write what they change with the change. Here is what makes the rest sure: a
request that does something and left no row gets one when it is over, and so does one
that is refused. Who shows no credential at all leaves none: nobody has tried anything
as anybody, and everybody on the network could fill the disk.
"""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, ClassVar, Final, Protocol

import msgspec
from tornado import web

from backendai_hub.core.access import PEOPLE, Action, Caller
from backendai_hub.core.audit import LOGIN, Act, Asking, is_change
from backendai_hub.core.errors import HubError
from backendai_hub.core.nouns import NOUNS
from backendai_hub.core.tenancy import Role
from backendai_hub.db.chain import ASKING
from backendai_hub.handlers.identify import Identity
from backendai_hub.handlers.problems import PlainError, as_hub_error
from backendai_hub.operations.audit_notes import note, note_refusal
from backendai_hub.operations.platform import Platform

_KIND_OF: Final = {
    **{noun.plural: noun.name for noun in NOUNS},
    "sessions": "session",
    "agents": "agent",
    "accounts": "account",
}
_ACCESS_KEY: Final = re.compile(r"AKIA[A-Z2-7]{16}")
_MOST_KEYS: Final = 100_000


class SeenKeys:
    """Which keypairs have come from which addresses, since this process started."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def is_new(self, keypair_id: str, address: str) -> bool:
        """Tell whether this is the first time; from then on it is not."""
        place = (keypair_id, address)
        if place in self._seen:
            return False
        if len(self._seen) >= _MOST_KEYS:
            self._seen.clear()
        self._seen.add(place)
        return True


class Asked(Protocol):
    """What is needed of the handler of a request."""

    path: ClassVar[str]
    many: ClassVar[bool]
    request: Any
    request_id: str
    path_args: list[str]

    @property
    def service(self) -> Any:
        """What this process works with."""

    @property
    def platform(self) -> Platform:
        """The control plane."""

    def get_status(self) -> int:
        """Return the status of the answer so far."""

    def get_cookie(self, name: str) -> str | None:
        """Return a cookie that came with the request."""


class Trail:
    """What is known of one request, and the rows it leaves."""

    def __init__(self, handler: Asked) -> None:
        self._handler = handler
        self._first: Identity | None = None
        self._person = False
        self.asking = Asking(
            request_id=handler.request_id,
            address=str(handler.request.remote_ip),
            elapsed=handler.request.request_time,
            credential=_shown(handler),
        )

    def know(self, found: Identity) -> None:
        """Remember who asks; also before it is known whether they may."""
        principal = found.principal
        if principal.caller is Caller.ANONYMOUS:
            return
        if self._first is None:
            self._first = found
        self._person = principal.caller in PEOPLE or (
            principal.caller is Caller.SPAWNER and found.actor is not None
        )
        asking = self.asking
        asking.credential = principal.credential or str(principal.caller)
        if found.on_behalf:
            asking.actor = found.on_behalf
            asking.actor_id = found.on_behalf_id
            asking.acted_as = principal.name
            asking.acted_as_id = principal.id or None
        else:
            asking.actor = principal.name
            asking.actor_id = principal.id or None
        # What they do concerns the whole site, unless it is done to one domain.
        everywhere = principal.role in {Role.SUPERADMIN, Role.MONITOR}
        asking.domain_id = None if everywhere else principal.domain_id or None

    def suspect(self, name: str) -> None:
        """Remember whose cookie came, though it may not be they who sent it."""
        self.asking.actor = name
        self.asking.credential = "cookie"
        self._person = True

    async def note_entry(self) -> None:
        """Write that a keypair has come from an address for the first time."""
        first = self._first
        if first is None or first.principal.credential != "keypair":
            return
        keypair_id = first.principal.keypair_id or ""
        keys = self._handler.service.key_logins
        if first.actor is None or not keys.is_new(keypair_id, self.asking.address):
            return
        await note(
            self._handler.platform,
            Act(
                action=LOGIN,
                object_kind="keypair",
                object_id=keypair_id,
                object_name=_claimed_key(self._handler) or "",
                domain_id=first.actor.domain_id,
                owner_id=first.actor.id,
                actor=first.actor.name,
                actor_id=first.actor.id,
            ),
        )

    @asynccontextmanager
    async def entering(self, action: str) -> AsyncIterator[None]:
        """Stand around finding out who asks and whether they may."""
        ASKING.set(self.asking)
        try:
            yield
        except Exception as error:
            # What was written on the way in (somebody's first login) is not this.
            self.asking.written = 0
            await self._refuse(action, _problem(error))
            raise
        self.asking.written = 0

    @asynccontextmanager
    async def doing(self, action: str) -> AsyncIterator[None]:
        """Stand around doing what was asked for."""
        try:
            yield
        except web.Finish:
            raise
        except Exception as error:
            await self._refuse(action, _problem(error))
            raise
        status = self._handler.get_status()
        if status >= 400:  # a page that shows its refusal itself
            reason = HTTPStatus(status).phrase
            await self._refuse(action, PlainError(reason, status))
        elif self._changes(action) and self._person and not self._handler.many:
            await self._confirm(action)

    async def _confirm(self, action: str) -> None:
        """Write what was done and changed nothing: a repeat, mostly."""
        if self.asking.written == 0:
            await note(self._handler.platform, self._act(action))

    async def _refuse(self, action: str, error: HubError) -> None:
        if self.asking.written == 0 and self._is_noted(action, error):
            await note_refusal(self._handler.platform, self._act(action), error)

    async def refuse_entry(
        self, action: str, kind: str, name: str | None, error: HubError
    ) -> None:
        """Write that one of many was refused."""
        act = Act(action=action, object_kind=kind, object_name=name or "")
        await note_refusal(self._handler.platform, act, error)

    def _is_noted(self, action: str, error: HubError) -> bool:
        shown = bool(self.asking.credential or self.asking.actor)
        if action in {Action.ENROLL_AGENT, Action.VERIFY_ACCOUNT}:
            return True  # what they show is in the body
        if error.status in {401, 403} and shown:
            return True
        return self._person and self._changes(action)

    def _changes(self, action: str) -> bool:
        method = self._handler.request.method or ""
        return self._handler.many or is_change(action, method)

    def _act(self, action: str) -> Act:
        arguments = [str(a) for a in self._handler.path_args if a]
        place = self._handler.path.removeprefix("api/").partition("/")[0]
        kind = _KIND_OF.get(place) or action.partition(":")[0]
        name = "/".join(arguments) or _named(self._handler.request.body)
        claimed = _claimed_key(self._handler) if self._first is None else None
        return Act(
            action=action,
            object_kind=kind,
            object_name=name,
            object_id=arguments[0] if arguments else None,
            after={"access_key": claimed} if claimed else None,
            code="unchanged",
        )


def _problem(error: Exception) -> HubError:
    status = error.status_code if isinstance(error, web.HTTPError) else 500
    return as_hub_error(error, status)


def _named(body: bytes) -> str:
    """Return the name that a body gives to what it asks for."""
    if not body or len(body) > 1 << 16:
        return ""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    name = document.get("name") if isinstance(document, dict) else None
    return name if isinstance(name, str) else ""


def _shown(handler: Asked) -> str:
    """Tell what kind of credential came along, whoever's it is; empty: none.

    A cookie that JupyterHub no longer knows is an old login, and looking at a page
    with it no attempt at anything.
    """
    kind = handler.request.headers.get("Authorization", "").partition(" ")[0].lower()
    if kind in {"token", "bearer"}:
        return "token"
    if kind == "basic":
        return "keypair"
    auth = handler.service.hub_auth
    reads = handler.request.method in {"GET", "HEAD"}
    if auth is not None and not reads and handler.get_cookie(auth.cookie_name):
        return "cookie"
    return ""


def _claimed_key(handler: Asked) -> str | None:
    """Return the access key that was sent, if it looks like one.

    What is sent in its place may be a secret that somebody put on the wrong side.
    """
    sent = handler.request.headers.get("Authorization", "").partition(" ")[2]
    try:
        text = base64.b64decode(sent.strip(), validate=True).decode("ascii")
    except ValueError:  # no base64, or no ASCII
        return None
    key = text.partition(":")[0]
    return key if _ACCESS_KEY.fullmatch(key) else None
