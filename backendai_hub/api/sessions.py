"""Requests and answers about sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from backendai_hub.api.explanations import Why
from backendai_hub.core.attempts import Attempt
from backendai_hub.core.clusters import ClusterMode, ClusterStrategy
from backendai_hub.core.mounts import Mount, MountRequest
from backendai_hub.core.sessions import Attachment, Session, SessionType


class SessionRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What a user asks for.

    ``slots`` are amounts as people write them: ``{"cpu": "2", "mem": "4g"}``. What
    is left out comes from the image, the project, and the first resource group that
    is open to the user. ``bootstrap_script`` takes the place of the keypair's.
    ``attachment`` and ``argv`` are taken from the spawner only, and so is ``environ``
    for sessions that are not batch sessions.

    A batch session runs ``startup_command`` (a line for the shell) once there is room
    for it, and ends with it: after ``batch_timeout`` seconds at the latest, not before
    ``starts_at`` (RFC 3339), and only if all ``dependencies`` (ids or names of one's
    batch sessions) succeed. With ``max_attempts`` above 1 it is started again, so many
    times in all, when its node is lost or it could not be started there; what has run
    before is known to have stopped then. ``agents`` are the nodes it may run on,
    ``preferred_agents`` those that are tried first; both are for administrators.
    ``labels`` are what its nodes must be labelled: ``{"gpu": "h100"}``. ``mounts`` are
    virtual folders; those whose names begin with a dot come without being named, unless
    ``automatic_mounts`` is false.
    """

    image: str
    architecture: str | None = None
    name: str | None = None
    type: SessionType = SessionType.INTERACTIVE
    project: str | None = None
    resource_group: str | None = None
    priority: int | None = None
    cluster_size: int = 1
    cluster_mode: ClusterMode = ClusterMode.SINGLE_NODE
    cluster_strategy: ClusterStrategy | None = None
    bootstrap_script: str | None = None
    slots: dict[str, Any] = {}
    shmem: str | int | None = None
    attachment: Attachment | None = None
    environ: dict[str, str] = {}
    argv: list[str] = []
    startup_command: str | None = None
    batch_timeout: int | None = None
    starts_at: datetime | None = None
    dependencies: list[str] = []
    max_attempts: int = 1
    tag: str | None = None
    job_priority: int | None = None
    is_preemptible: bool = True
    agents: list[str] = []
    preferred_agents: list[str] = []
    labels: dict[str, str] = {}
    mounts: list[MountRequest] = []
    automatic_mounts: bool = True


class SessionChange(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What can be changed of a session that has not ended: what it is called."""

    name: str


class SessionLog(msgspec.Struct, frozen=True, kw_only=True):
    """The end of what a session has printed.

    ``attempt`` counts from 1; ``clipped`` says that there was more before it, ``live``
    that there may be more after it. ``followed`` promises to who asked for it that
    their streams tell of that; otherwise they have to ask again.
    """

    session_id: str
    attempt: int
    text: str
    clipped: bool = False
    live: bool = False
    followed: bool = False


class ShownSession(Session, frozen=True, kw_only=True):
    """One session with its folders, and while it waits, with why it does.

    That is told as it was found out last.
    """

    why: Why | None = None
    mounts: list[Mount] = msgspec.field(default_factory=list)


class QueuePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session stands among ``waiting`` others, as was found out ``at``."""

    position: int
    waiting: int
    at: str


class SessionPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of sessions; ``next`` is the cursor of the following page.

    ``places`` are those in the queue of the ones on it that wait, by id, as far as they
    are known already.
    """

    items: list[Session]
    next: str | None = None
    places: dict[str, QueuePlace] = {}


class HistoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of what was tried for a session; ``next`` is ``after`` for the next."""

    items: list[Attempt]
    next: int | None = None


class SlotRoom(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a slot there is: in all, and on one node at most; free, and not.

    ``total`` and ``free`` are sums over nodes, ``largest`` is what the best node has
    free now, and ``most`` what the biggest node has in all: nothing above it can ever
    start.
    """

    slot: str
    total: str
    free: str
    largest: str
    most: str


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What the launch form shows: environments, and the room there is now."""

    images: list[ImageChoice]
    room: list[SlotRoom]
    nodes: int
    project: str
    projects: list[str] = []
    resource_groups: list[str] = []
    limits: list[LimitMeter] = []


class ImageChoice(msgspec.Struct, frozen=True, kw_only=True):
    """An environment a user can pick, with its least and its usual amounts."""

    name: str
    title: str
    minimum: dict[str, str]
    preferred: dict[str, str]
    installed: bool


class LimitMeter(msgspec.Struct, frozen=True, kw_only=True):
    """One limit that applies to the caller; no ``cap`` means unlimited."""

    scope: str
    name: str
    slot: str
    used: str
    cap: str | None = None


class EventMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One fact about a session or a folder, as the event stream sends it.

    That a session waits comes with why, as was found out last.
    """

    seq: int
    at: str
    kind: str
    session_id: str | None
    text: str
    status: str | None = None
    session: Session | None = None
    why: Why | None = None
    folder_id: str | None = None


class SpawnedSession(msgspec.Struct, frozen=True, kw_only=True):
    """What the spawner gets: the session, where it answers, and its born token."""

    session: Session
    token: str | None = None
