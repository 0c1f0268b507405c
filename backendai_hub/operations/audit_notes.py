"""Writing down what no transaction of its own stands for: refusals and logins.

A change is written with the change itself (``tx.audit``). What is refused changes
nothing, so its row has a transaction to itself.
"""

from __future__ import annotations

import logging

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from backendai_hub.core.audit import LOGIN, Act, Asking, Result
from backendai_hub.core.errors import HubError
from backendai_hub.core.tenancy import Actor
from backendai_hub.db.chain import ASKING
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.refusals import WINDOW, Verdict
from backendai_hub.operations.users import find_user

log = logging.getLogger("backendai_hub.audit")

AND_MORE = "and-more"
"""The code of the row that says that further refusals are left out."""


async def note(platform: Platform, *acts: Act) -> None:
    """Write *acts* that go with no change."""
    async with platform.database.transaction() as tx:
        for act in acts:
            tx.audit(act)


async def note_refusal(platform: Platform, act: Act, error: HubError) -> None:
    """Write that *act* was refused, or failed; never instead of the refusal itself.

    Beyond a limit refusals are left out, and one row says so.
    """
    if act.actor is None:
        # A refusal is seen where the refused person is, not where the object is: the
        # site's administrators are told more in it than a domain's may know.
        act = msgspec.structs.replace(act, domain_id=None, owner_id=None)
    ended = msgspec.structs.replace(
        act,
        result=Result.FAILED if error.status >= 500 else Result.REFUSED,
        code=error.code,
        message=error.message,
    )
    asking = ASKING.get()
    who = _person(act, asking)
    address = act.address or ("" if asking is None else asking.address)
    now = platform.database.clock()
    verdict = platform.refusals.judge(who, address, now)
    if verdict is Verdict.LEAVE:
        return
    acts = [ended]
    if verdict is Verdict.LAST:
        until = (now + WINDOW).strftime("%Y-%m-%d %H:%M UTC")
        message = f"more refusals from {address} are left out, until {until} at most"
        acts.append(
            msgspec.structs.replace(ended, code=AND_MORE, message=message, after=None)
        )
    try:
        await note(platform, *acts)
    except (SQLAlchemyError, OSError, HubError):
        log.exception("a refusal could not be written: %s %s", act.action, error.code)


def _person(act: Act, asking: Asking | None) -> str:
    """Return who is refused; empty: somebody of whom nothing has been shown."""
    if act.actor is not None:
        return act.actor_id or ""
    return "" if asking is None else asking.actor_id or asking.actor


async def note_login(
    platform: Platform,
    name: str,
    *,
    credential: str,
    address: str | None = None,
    actor: Actor | None = None,
    refusal: HubError | None = None,
) -> None:
    """Write that somebody has come in as *name*, or was refused.

    *actor* is who that is here, once it is known; *address* is where they come from,
    if that is not where the request comes from.
    """
    whose = actor
    if whose is None and len(name) <= 255 and "\0" not in name:
        whose = await find_user(platform, name)
    act = Act(
        action=LOGIN,
        object_kind="user",
        object_name=name,
        object_id=None if whose is None else whose.id,
        domain_id=None if whose is None else whose.domain_id,
        owner_id=None if whose is None else whose.id,
        # Who was refused may be anybody.
        actor=name if refusal is None else "",
        actor_id=whose.id if whose is not None and refusal is None else None,
        address=address,
        credential=credential,
    )
    if refusal is None:
        await note(platform, act)
    else:
        await note_refusal(platform, act, refusal)
