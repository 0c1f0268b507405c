"""How many places somebody may be logged in from at once, and ending those logins.

A browser's login is told of by the shipped authenticator and lasts as long as its
cookie; a command line's lasts as long as the keypair that it was given. Who may not
log in any more because too many places are open can always end those: with the
password on the page to log in, on a command line, or by asking an administrator.
"""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from typing import Any, Final

import msgspec

from backendai_hub.core.access import Action, Principal
from backendai_hub.core.audit import LOGOUT, Act
from backendai_hub.core.errors import ForbiddenError, NotFoundError
from backendai_hub.core.names import fold
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Actor, Role
from backendai_hub.db import history, tenancy
from backendai_hub.db import logins as rows
from backendai_hub.db.engine import Transaction
from backendai_hub.db.logins import OpenLogin
from backendai_hub.db.purges import purge_keypair
from backendai_hub.operations.nouns import find_visible, require
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import find_user, with_configured_role

BROWSER: Final = "browser"
COMMAND_LINE: Final = "command line"
LONGEST_DAYS: Final = 366.0
_MOST_TOLD: Final = 5
_USER: Final = noun_of("user")
_ABOVE: Final = frozenset({Role.SUPERADMIN, Role.MONITOR})


class LogoutRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Somebody has logged out of a browser, which was at *address*."""

    name: str
    session: str
    address: str = ""


class EndedLogins(msgspec.Struct, frozen=True, kw_only=True):
    """Whose logins are over, and how many there were."""

    name: str
    ended: int


class NewLogin(msgspec.Struct, frozen=True, kw_only=True):
    """A place somebody wants to log in from; ``days`` is how long that lasts."""

    kind: str
    place: str
    session: str = ""
    days: float


async def open_login(
    platform: Platform, tx: Transaction, actor: Actor, new: NewLogin
) -> str:
    """Write down a login and return its id; refuses one more than is allowed.

    A browser that logs in again takes its own place.
    """
    cap = await rows.lock_logins(tx, actor.id)
    digest = _digest(new.session) if new.session else None
    if digest is not None:
        await rows.delete_session(tx, actor.id, digest)
    present = await rows.list_logins(tx.connection, actor.id, tx.now)
    if cap is not None and len(present) >= cap:
        raise _too_many(present, cap)
    login = OpenLogin(
        id=platform.new_id(),
        user_id=actor.id,
        kind=new.kind,
        place=new.place[:128],
        session_hash=digest,
        keypair_id=None,
        created_at=tx.now,
        expires_at=tx.now + timedelta(days=min(max(new.days, 0.0), LONGEST_DAYS)),
    )
    await rows.insert_login(tx, login)
    return login.id


def _too_many(present: list[OpenLogin], cap: int) -> ForbiddenError:
    told = "; ".join(
        f"{login.kind} at {login.place or 'an unknown place'} since"
        f" {login.created_at:%Y-%m-%d %H:%M} UTC"
        for login in present[:_MOST_TOLD]
    )
    more = len(present) - _MOST_TOLD
    return ForbiddenError(
        f"{len(present)} of {cap} logins that your user policy allows at once are open:"
        f" {told}{f'; and {more} more' if more > 0 else ''}. Log out in one of them,"
        " end them all where you log in or with 'backendai logout --all', or ask an"
        " administrator ('backendai admin account end-logins')",
        reason="too-many-logins",
        open=len(present),
        allowed=cap,
    )


async def close_login(platform: Platform, request: LogoutRequest) -> None:
    """Free the place of a browser that was logged out; absent is success."""
    actor = await find_user(platform, fold(request.name))
    if actor is None:
        return
    async with platform.database.transaction() as tx:
        if await rows.delete_session(tx, actor.id, _digest(request.session)):
            tx.audit(_act(LOGOUT, actor, **_themselves(actor, request.address)))


async def end_logins(tx: Transaction, whose: Actor, **asker: Any) -> int:
    """End every login of a person: browsers', and command lines' with their keys.

    *asker* says who does it where that is not who sends the request.
    """
    # JupyterHub asks for this time, and lets nobody stay who came in before it. First
    # the account, as with a new password: everybody locks in this order.
    await history.change_account(tx, fold(whose.name), logins_ended_at=tx.now)
    await rows.lock_logins(tx, whose.id)
    ended = len(await rows.list_logins(tx.connection, whose.id, tx.now))
    for keypair_id in await rows.delete_logins(tx, whose.id):
        await purge_keypair(tx, keypair_id)
    counts = {"before": {"logins": ended}, "after": {"logins": 0}}
    tx.audit(_act(Action.END_LOGINS, whose, **counts, **asker))
    return ended


async def end_other_logins(tx: Transaction, whose: Actor, address: str) -> None:
    """End all logins of somebody who comes in from *address* with the password."""
    await tx.alone()
    await end_logins(tx, whose, **_themselves(whose, address))


async def end_own_logins(platform: Platform, principal: Principal) -> EndedLogins:
    """End all of the caller's own logins."""
    if principal.acted_as:
        raise ForbiddenError("nobody ends somebody else's logins so: name them")
    async with platform.database.transaction() as tx:
        await tx.alone()
        ended = await end_logins(tx, await _find(tx, principal.id))
    platform.actors.clear()
    return EndedLogins(name=principal.name, ended=ended)


async def end_logins_of(
    platform: Platform, principal: Principal, name: str
) -> EndedLogins:
    """End all logins of somebody whose administrator the caller is."""
    async with platform.database.transaction() as tx:
        await tx.alone()
        user = await find_visible(tx.connection, principal, _USER, name)
        await require(tx.connection, principal, _USER, user, Action.RESET_PASSWORD)
        whose = await _find(tx, user["id"])
        role = with_configured_role(platform, whose).role
        if role in _ABOVE and principal.role is not Role.SUPERADMIN:
            raise ForbiddenError(f"only a superadmin ends the logins of a {role}")
        ended = await end_logins(tx, whose)
    platform.actors.clear()
    return EndedLogins(name=whose.name, ended=ended)


async def _find(tx: Transaction, user_id: str) -> Actor:
    found = await tenancy.find_actor(tx.connection, user_id=user_id)
    if found is None:
        raise NotFoundError("this user has no default keypair, and so no logins")
    return found


def _act(action: str, whose: Actor, **more: Any) -> Act:
    return Act(
        action=action,
        object_kind="user",
        object_id=whose.id,
        object_name=whose.name,
        domain_id=whose.domain_id,
        owner_id=whose.id,
        **more,
    )


def _themselves(person: Actor, address: str) -> dict[str, Any]:
    """Say that *person* did it, for whom JupyterHub asks, from *address*."""
    return {
        "actor": person.name,
        "actor_id": person.id,
        "address": address,
        "credential": "password",
    }


def _digest(session: str) -> str:
    return sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
