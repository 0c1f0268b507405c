"""Following a versioned document by long-poll, through any outage."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeVar

from backendai_hub.client.backoff import Backoff
from backendai_hub.client.transport import is_transient

T = TypeVar("T")

_logger: Final = logging.getLogger(__name__)
_PATIENT: Final = Backoff(first=0.2, most=10.0)


def version_of(document: Any) -> int:
    """Return a document's own version: its ``version`` or ``generation``."""
    version = getattr(document, "version", None)
    if version is None:
        version = document.generation
    return int(version)


async def follow(
    fetch: Callable[[int | None], Awaitable[T]],
    *,
    version: Callable[[T], int] = version_of,
    backoff: Backoff = _PATIENT,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[T]:
    """Yield each new version of a document, for as long as the caller listens.

    ``fetch(newer_than)`` asks for a version newer than the given one (None at the
    first call) and is expected to be held by the server until there is one, or
    until its own time is up, when the same version may come again; that one is not
    yielded. Transient failures are retried after a growing, jittered delay; any
    other error is the caller's. A version that goes *down* is yielded too: the
    server was restored from an older copy, and it is still the truth.
    """
    seen: int | None = None
    delays = backoff.delays()
    while True:
        try:
            document = await fetch(seen)
        except Exception as error:
            if not is_transient(error):
                raise
            delay = next(delays, backoff.most)
            _logger.warning("Asking again in %.1f s: %s", delay, error)
            await sleep(delay)
            continue
        delays = backoff.delays()
        if version(document) != seen:
            seen = version(document)
            yield document
