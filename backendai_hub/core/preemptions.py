"""Making room for others: plans that were carried out, and what became of everybody."""

from __future__ import annotations

from enum import StrEnum

import msgspec

EXPIRY_SECONDS = 300.0
"""How long room is kept past the grace of those who leave: nodes need time to clean up,
and one that does not answer must not keep others' room for ever."""


class Ending(StrEnum):
    """Why a plan is closed."""

    STARTED = "started"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    WITHDRAWN = "withdrawn"
    FAILED = "failed"


class Fate(StrEnum):
    """What became of a session that had to make room."""

    REQUEUED = "requeued"
    TERMINATED = "terminated"
    FAILED = "failed"


class PreemptedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that has to make room, and why; ``fate`` is known once it has left."""

    id: str
    name: str
    owner: str
    reason: str
    fate: Fate | None = None
    left_at: str | None = None


class EnactedPreemption(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that was carried out: for whom, where, and who has to leave.

    Of sessions that the reader may not see there is a number and nothing else:
    ``session`` is null then, and ``others`` counts the victims that are not listed.
    """

    id: str
    kind: str
    mode: str
    resource_group: str | None
    nodes: list[str]
    created_at: str
    expires_at: str
    session: str | None = None
    name: str | None = None
    owner: str | None = None
    closed_at: str | None = None
    ending: Ending | None = None
    victims: list[PreemptedSession] = []
    others: int = 0
