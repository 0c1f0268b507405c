"""Finding the session that somebody names on the command line."""

from __future__ import annotations

from backendai_hub.commandline.asking import Asking
from backendai_hub.core.errors import InvalidRequestError, NotFoundError
from backendai_hub.core.sessions import Session


async def find_session(
    asking: Asking, reference: str, *, ended: bool = False
) -> Session:
    """Return the session with this id, or the caller's only live one of this name.

    With *ended*, that is the latest one that has ended if none lives.
    """
    try:
        return await asking.client.sessions.get(reference)
    except NotFoundError:
        live = asking.client.sessions.list(status="live")
        found = [session async for session in live if session.name == reference]
    if not found and ended:
        past = asking.client.sessions.list(status="ended", page_size=200)
        async for session in past:
            if session.name == reference:
                return session
    if not found:
        raise NotFoundError(
            f"there is no session {reference!r}; one that has ended is named by its id"
        )
    if len(found) > 1:
        ids = ", ".join(session.id for session in found)
        raise InvalidRequestError(f"several sessions are called {reference!r}: {ids}")
    return found[0]
