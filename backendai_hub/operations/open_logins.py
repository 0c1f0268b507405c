"""How many places somebody may be logged in from at once, and ending those logins.

A browser's login is told of by the shipped authenticator and lasts as long as its
cookie; a command line's lasts as long as the keypair that it was given. Who may not
log in any more because too many places are open can always end those: with the
password on the page to log in, on a command line, or by asking an administrator.
"""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from typing import Final

import msgspec

from backendai_hub.core.access import Action, Principal
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import ForbiddenError
from backendai_hub.core.names import fold
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Actor, Role
from backendai_hub.db import history
from backendai_hub.db import logins as rows
from backendai_hub.db.engine import Transaction
from backendai_hub.db.logins import OpenLogin
from backendai_hub.db.purges import purge_keypair
from backendai_hub.operations.nouns import find_visible, require
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import find_user

BROWSER: Final = "browser"
COMMAND_LINE: Final = "command line"
LONGEST_DAYS: Final = 366.0
_MOST_TOLD: Final = 5
_USER: Final = noun_of("user")


class LogoutRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Somebody has logged out of a browser."""

    name: str
    session: str


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
        await rows.delete_session(tx, actor.id, _digest(request.session))


async def end_logins(tx: Transaction, user_id: str, name: str) -> int:
    """End every login of a person: browsers', and command lines' with their keys."""
    await rows.lock_logins(tx, user_id)
    ended = len(await rows.list_logins(tx.connection, user_id, tx.now))
    for keypair_id in await rows.delete_logins(tx, user_id):
        await purge_keypair(tx, keypair_id)
    # JupyterHub asks for this time, and lets nobody stay who came in before it.
    await history.change_account(tx, fold(name), logins_ended_at=tx.now)
    return ended


async def end_own_logins(platform: Platform, principal: Principal) -> EndedLogins:
    """End all of the caller's own logins."""
    if principal.acted_as:
        raise ForbiddenError("nobody ends somebody else's logins so: name them")
    async with platform.database.transaction() as tx:
        await tx.alone()
        ended = await end_logins(tx, principal.id, principal.name)
        tx.audit(_act(Action.END_LOGINS, principal.id, principal.name, None, ended))
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
        configured = user["name"] in platform.settings.superadmins
        is_super = configured or user["role"] == Role.SUPERADMIN
        if is_super and principal.role is not Role.SUPERADMIN:
            raise ForbiddenError("only a superadmin ends the logins of a superadmin")
        ended = await end_logins(tx, user["id"], user["name"])
        tx.audit(
            _act(
                Action.RESET_PASSWORD,
                user["id"],
                user["name"],
                user["domain_id"],
                ended,
            )
        )
    platform.actors.clear()
    return EndedLogins(name=user["name"], ended=ended)


def _act(
    action: Action, user_id: str, name: str, domain_id: str | None, ended: int
) -> Act:
    return Act(
        action=action,
        object_kind="user",
        object_id=user_id,
        object_name=name,
        domain_id=domain_id,
        owner_id=user_id,
        before={"logins": ended},
        after={"logins": 0},
    )


def _digest(session: str) -> str:
    return sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
