"""Whose credential a request carries, and what it may be used for."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import time
from typing import Any, Final, Protocol

import msgspec

from backendai_hub.core.access import (
    ADMIN_SCOPES,
    USER_SCOPES,
    Caller,
    Principal,
    Resource,
    admin_scope,
    expand_scopes,
)
from backendai_hub.core.errors import (
    ForbiddenError,
    NotFoundError,
    UnauthenticatedError,
)
from backendai_hub.core.tenancy import Actor, Role
from backendai_hub.handlers.identities import Shown
from backendai_hub.operations.directory import follow_groups
from backendai_hub.operations.keypairs import find_login
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import (
    check_may_enter,
    check_user_name,
    ensure_user,
    find_user,
    make_principal,
)

ACT_FOR: Final = "X-Backendai-Act-For"
KEPT_SECONDS: Final = 10.0
"""How long what is known of a person is used again without asking the database."""


class Asked(Protocol):
    """What is needed of the handler of a request."""

    request: Any

    @property
    def service(self) -> Any:
        """What this process works with."""

    @property
    def platform(self) -> Platform:
        """The control plane."""

    async def ask_hub(self) -> dict[str, Any] | None:
        """Ask JupyterHub whose token or cookie this is."""

    def recognise(self, found: Identity) -> None:
        """Learn who asks, before it is known whether they may come in."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, as what, and how often they may."""

    principal: Principal
    actor: Actor | None = None
    rate_limit: int = 10_000
    on_behalf: str = ""
    counted_as: str = ""
    """Whose requests these are, where somebody acts for another."""
    on_behalf_id: str | None = None

    @property
    def rate_key(self) -> str:
        """Under what their requests are counted."""
        if self.counted_as:
            return self.counted_as
        return self.principal.keypair_id or (self.actor.id if self.actor else "")


async def identify(handler: Asked) -> Identity:
    """Tell whose credential *handler*'s request carries; nobody's is anonymous.

    Raises :class:`UnauthenticatedError` for a keypair that is wrong, and
    :class:`ForbiddenError` for people who may not come in (at all, or from there).
    """
    kind, credential = _sent(handler)
    known = handler.service.credentials
    if kind == "token" and _same(credential, known.router):
        return Identity(principal=Principal(caller=Caller.ROUTER, name="router"))
    if kind == "token" and _same(credential, known.spawner):
        return await _identify_spawner(handler)
    request = handler.request
    shown = Shown.of(request.headers, request.remote_ip, ACT_FOR)
    if shown is None or "token" in request.arguments:  # which JupyterHub reads first
        return await _find_out(handler, kind, credential)
    identities = handler.service.identities
    found: Identity | None = identities.find(shown, handler.platform)
    if found is not None:
        note_use(handler.platform, found)
        return found
    began = identities.begin(handler.platform)
    found = await _find_out(handler, kind, credential)
    if _proves_itself(handler, kind, found):
        identities.keep(shown, began, found)
    return found


def note_use(platform: Platform, found: Identity) -> None:
    """Count that a keypair, if it is one, is used once more."""
    if found.principal.keypair_id is not None:
        platform.key_uses.note(found.principal.keypair_id, platform.database.clock())


def _proves_itself(handler: Asked, kind: str, found: Identity) -> bool:
    """Tell whether the header alone says who this is, and not a cookie beside it."""
    if found.actor is None:
        return False
    if kind == "basic":
        return found.principal.credential == "keypair"
    return kind == "token" and getattr(handler, "_token_authenticated", False)


async def _find_out(handler: Asked, kind: str, credential: str) -> Identity:
    if kind == "basic":
        found = await _identify_keypair(handler.platform, credential)
        if found is not None:
            return await _finish(handler, found)
    model = await handler.ask_hub()
    if model is None:
        return Identity(principal=Principal(caller=Caller.ANONYMOUS))
    scopes = expand_scopes(set(model.get("scopes", ())))
    if model.get("kind") != "user" or not scopes & USER_SCOPES:
        raise ForbiddenError(
            "this token carries no scope of Backend.AI, such as"
            " custom:backendai:user; make one that does"
        )
    actor = await _actor(handler.platform, model["name"])
    actor = await follow_groups(
        handler.platform,
        actor,
        model.get("groups") or (),
        admin=bool(model.get("admin")),
    )
    return await _finish(
        handler,
        Identity(
            principal=make_principal(actor, scopes=scopes, credential="hub"),
            actor=actor,
            rate_limit=actor.rate_limit,
        ),
    )


def _sent(handler: Asked) -> tuple[str, str]:
    kind, _, rest = handler.request.headers.get("Authorization", "").partition(" ")
    kind = kind.lower()
    if kind in {"token", "bearer"} and rest.strip():
        return "token", rest.strip()
    return ("basic", rest.strip()) if kind == "basic" else ("", "")


def _same(one: str, other: str) -> bool:
    return bool(other) and hmac.compare_digest(one.encode(), other.encode())


async def _identify_spawner(handler: Asked) -> Identity:
    name = handler.request.headers.get(ACT_FOR)
    if name is None:
        return Identity(principal=Principal(caller=Caller.SPAWNER, name="spawner"))
    # Who may not come in any more starts nothing, which is checked where things start;
    # but what they run goes on, and JupyterHub has to be able to look at it and end it.
    actor = await _actor(handler.platform, _read_name(name))
    made = make_principal(actor, scopes=frozenset(), credential="spawner")
    return Identity(
        principal=msgspec.structs.replace(made, caller=Caller.SPAWNER),
        actor=actor,
        on_behalf="spawner",
    )


def _read_name(header: str) -> str:
    # Header bytes arrive as latin-1; names are sent as UTF-8.
    return header.encode("latin-1", "replace").decode("utf-8", "replace")


async def _identify_keypair(platform: Platform, sent: str) -> Identity | None:
    """Check an access key and its secret; None if that is not what was sent."""
    try:
        text = base64.b64decode(sent, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    access_key, colon, secret = text.partition(":")
    if not colon or "\0" in text:
        return None
    login = await find_login(platform, access_key, secret)
    if login is None:
        raise UnauthenticatedError("wrong access key or secret, or not active")
    platform.key_uses.note(login.id, platform.database.clock())
    actor = await _actor(platform, login.user)
    scopes = USER_SCOPES | ADMIN_SCOPES if login.is_admin else USER_SCOPES
    return Identity(
        principal=make_principal(
            actor, scopes=scopes, credential="keypair", keypair_id=login.id
        ),
        actor=actor,
        rate_limit=login.rate_limit,
    )


async def _actor(platform: Platform, name: str) -> Actor:
    """Return who *name* is, as it was at most a few seconds ago."""
    check_user_name(name)  # also: the empty name marks changes in the table
    now = time.monotonic()
    until, actor = platform.actors.get(name, (0.0, None))
    if actor is None or until < now:
        # Whatever is changed while this is read empties the table, and the mark with
        # it: what was read may be from before the change, and is not kept.
        mark = platform.actors.setdefault("", object())
        actor = await ensure_user(platform, name)
        if platform.actors.get("") is mark:
            platform.actors[name] = (now + KEPT_SECONDS, actor)
    found: Actor = actor
    return found


async def _finish(handler: Asked, found: Identity) -> Identity:
    """See that they may come in, from there, and for whom."""
    assert found.actor is not None
    handler.recognise(found)
    check_may_enter(found.actor)
    _check_address(found.actor, handler.request.remote_ip)
    wanted = handler.request.headers.get(ACT_FOR)
    if wanted is None:
        return found
    return await _act_for(handler.platform, found, _read_name(wanted))


def _check_address(actor: Actor, address: Any) -> None:
    if not actor.allowed_client_ip:
        return
    try:
        seen = ipaddress.ip_address(str(address))
    except ValueError:
        seen = None
    if seen is None or not any(
        seen in ipaddress.ip_network(network) for network in actor.allowed_client_ip
    ):
        raise ForbiddenError(
            f"{actor.name} may not come from {address}; ask an administrator"
        )


async def _act_for(platform: Platform, found: Identity, name: str) -> Identity:
    """Give a superadmin the rights of somebody else, and not more than those."""
    principal = found.principal
    if (
        principal.role is not Role.SUPERADMIN
        or admin_scope(Resource.TENANCY) not in principal.scopes
    ):
        raise ForbiddenError("only a superadmin acts for others")
    actor = await find_user(platform, name)
    if actor is None:
        raise NotFoundError(f"there is no user {name[:64]!r}")
    check_may_enter(actor)
    made = make_principal(actor, scopes=USER_SCOPES, credential=principal.credential)
    return Identity(
        principal=msgspec.structs.replace(made, acted_as=actor.name),
        actor=actor,
        rate_limit=found.rate_limit,
        counted_as=found.rate_key,
        on_behalf=principal.name,
        on_behalf_id=principal.id,
    )
