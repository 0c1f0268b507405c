"""Who waits, as the scheduler sees it: with what holds it up, and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from backendai_hub.core.images import Image
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations.prepare import pending
from backendai_hub.scheduling.snapshot import PendingSession

Thing = TypeVar("Thing")

_MOST_KNOWN: Final = 20_000
"""Of so many things it is known at most what others have in common."""
_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})


def describe(
    record: SessionRecord,
    image: Image,
    holds: Iterable[str],
    lifetime: int | None,
    since: datetime | None = None,
) -> PendingSession:
    """Describe a session to the scheduler, with its place and time in the queue.

    *since* is when it came back there; its place is still that of who came then.
    """
    limits = (record.batch_timeout, lifetime)
    return msgspec.structs.replace(
        pending(record, image, hold="; ".join(filter(None, holds))),
        priority=record.priority,
        since=int((since or record.created_at).timestamp()),
        lifetime=min(filter(None, limits), default=None),
    )


class Alike:
    """Lets sessions that ask for the same have it in common.

    A long queue takes less memory, and what has been found out about one of them is
    known for the others without comparing what they ask for.
    """

    def __init__(self) -> None:
        self._known: dict[object, Any] = {}

    def share(self, session: PendingSession) -> PendingSession:
        """Return the same session, with what others like it have."""
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        return msgspec.structs.replace(
            session,
            request=self._find(session.request),
            charge=self._find(session.charge),
            scopes=self._find(session.scopes),
            labels=session.labels or _NO_LABELS,
        )

    def _find(self, thing: Thing) -> Thing:
        found: Thing = self._known.setdefault(thing, thing)
        return found
