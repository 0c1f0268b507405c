"""Answers about why a session waits."""

from __future__ import annotations

import msgspec

from backendai_hub.core.mounts import Mount
from backendai_hub.core.sessions import SessionStatus


class PossibleChange(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that would start a session now. ``text`` completes "would start …".

    ``slots`` is the whole request as it would be, if that is what would change.
    ``yours`` tells whether its owner can bring it about without anybody else.
    """

    text: str
    yours: bool
    slots: dict[str, str] | None = None
    resource_group: str | None = None


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why a session waits, what would start it now, and when it starts otherwise.

    ``position`` of ``waiting`` is its place among those who wait for the same nodes.
    ``starts_at`` counts on everybody who runs staying as long as they have declared;
    with ``at_the_earliest`` others in the queue may make it later.
    ``hangs_on`` says what that hangs on, or why nobody can tell. ``at`` is when this
    was found out, of one that is shown again later.
    """

    session: str
    status: SessionStatus
    reasons: list[str]
    position: int | None = None
    waiting: int | None = None
    changes: list[PossibleChange] = []
    starts_at: str | None = None
    at_the_earliest: bool = False
    hangs_on: str = ""
    at: str | None = None


class Objection(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a session would be refused for."""

    code: str
    text: str


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a session if it were asked for now. Nothing is stored.

    With ``refused`` it would not be taken. Otherwise it would start now, or wait for
    what ``why`` tells; its ``session`` is empty. ``nodes`` names where it would start
    to those who may see nodes. ``slots`` is what the request comes to, and ``mounts``
    are its folders, with those that come by themselves.
    """

    refused: list[Objection] = []
    starts_now: bool = False
    nodes: list[str] = []
    project: str | None = None
    resource_group: str | None = None
    slots: dict[str, str] = {}
    mounts: list[Mount] = []
    why: Why | None = None
