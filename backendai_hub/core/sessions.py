"""Sessions: what they are, which states they have, and who may follow whom.

A *session* is what a user asked for; its *containers* (one, or several in a
cluster) are what runs. Every state that waits has a deadline and a reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec

from backendai_hub.core.clusters import ClusterMode, ClusterStrategy
from backendai_hub.core.errors import ConflictError, InvalidRequestError
from backendai_hub.core.ids import is_id


class SessionStatus(StrEnum):
    """Where a session is on its way from the queue to its end."""

    PENDING = "PENDING"
    RESERVED = "RESERVED"
    SCHEDULED = "SCHEDULED"
    PREPARING = "PREPARING"
    PULLING = "PULLING"
    CREATING = "CREATING"
    RUNNING = "RUNNING"
    PREEMPTED = "PREEMPTED"
    RESCHEDULING = "RESCHEDULING"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


class SessionType(StrEnum):
    """What a session is for."""

    INTERACTIVE = "interactive"
    BATCH = "batch"
    INFERENCE = "inference"
    SYSTEM = "system"


class SessionResult(StrEnum):
    """What became of what a session was for; only batch sessions say.

    Nobody says it of what has not begun, or was stopped by somebody.
    """

    UNDEFINED = "undefined"
    SUCCESS = "success"
    FAILURE = "failure"


_S = SessionStatus

QUEUED: Final = frozenset({_S.PENDING, _S.RESERVED})
"""These wait in the queue and hold nothing; for reserved ones room is being made."""

TERMINAL: Final = frozenset({_S.TERMINATED, _S.ERROR, _S.CANCELLED})
"""Nothing follows these; they hold no resources."""

OCCUPYING: Final = frozenset(
    {
        _S.SCHEDULED,
        _S.PREPARING,
        _S.PULLING,
        _S.CREATING,
        _S.RUNNING,
        _S.PREEMPTED,
        _S.RESCHEDULING,
        _S.TERMINATING,
    }
)
"""These hold their slots (reliability rule V09: a reservation counts)."""

STARTING: Final = frozenset({_S.SCHEDULED, _S.PREPARING, _S.PULLING, _S.CREATING})
"""Placed on a node, not answering yet."""

DISPLACEABLE: Final = STARTING | {_S.RUNNING}
"""These may have to make room for somebody; those that leave anyway need not."""

_ENDS: Final = frozenset({_S.TERMINATING, _S.TERMINATED, _S.ERROR})
_LEFT: Final = _ENDS | {_S.RESCHEDULING, _S.PREEMPTED}

TRANSITIONS: Final[Mapping[SessionStatus, frozenset[SessionStatus]]] = MappingProxyType(
    {
        _S.PENDING: frozenset({_S.RESERVED, _S.SCHEDULED, _S.CANCELLED, _S.ERROR}),
        _S.RESERVED: frozenset({_S.PENDING, _S.SCHEDULED, _S.CANCELLED, _S.ERROR}),
        _S.SCHEDULED: frozenset({_S.PREPARING, _S.PULLING, _S.CREATING, _S.RUNNING})
        | _LEFT,
        _S.PREPARING: frozenset({_S.PULLING, _S.CREATING, _S.RUNNING}) | _LEFT,
        _S.PULLING: frozenset({_S.PREPARING, _S.CREATING, _S.RUNNING}) | _LEFT,
        _S.CREATING: frozenset({_S.RUNNING}) | _LEFT,
        _S.RUNNING: _LEFT,
        # The ways back into the queue: what ran before is known to have stopped.
        _S.PREEMPTED: frozenset({_S.PENDING}) | _ENDS,
        _S.RESCHEDULING: frozenset({_S.PENDING}) | _ENDS,
        _S.TERMINATING: frozenset({_S.TERMINATED, _S.ERROR}),
        _S.TERMINATED: frozenset(),
        _S.ERROR: frozenset(),
        _S.CANCELLED: frozenset(),
    }
)

DEADLINES: Final[Mapping[SessionStatus, float | None]] = MappingProxyType(
    {
        _S.PENDING: None,  # a queue may be long; a group's pending timeout is policy
        _S.RESERVED: 300.0,  # past the grace of those who leave; then PENDING again
        _S.SCHEDULED: 60.0,
        _S.PREPARING: 120.0,
        _S.PULLING: 1800.0,
        _S.CREATING: 120.0,
        _S.RUNNING: None,
        _S.PREEMPTED: 90.0,  # past its grace
        _S.RESCHEDULING: 90.0,
        _S.TERMINATING: 90.0,
    }
)
"""Seconds a session may stay in a state before it ends in ERROR with a reason.

One that is RESERVED goes back to PENDING instead.
"""

WAITING_WORDS: Final[Mapping[SessionStatus, str]] = MappingProxyType(
    {
        _S.PENDING: "waiting in the queue",
        _S.RESERVED: "room is kept for it; waiting for other sessions to leave",
        _S.SCHEDULED: "placed; the node has not taken it up yet",
        _S.PREPARING: "the node is preparing files and limits",
        _S.PULLING: "the node is fetching the environment",
        _S.CREATING: "starting; waiting for it to answer",
        _S.PREEMPTED: "making room for another session; it has a moment left to save",
        _S.RESCHEDULING: "starts again when its node has confirmed that it stopped",
        _S.TERMINATING: "stopping; the node is cleaning up",
    }
)


_STOPPED_BY: Final = "stopped by "


def tell_stopped(name: str) -> str:
    """Say who has asked a session to stop."""
    return f"{_STOPPED_BY}{name}"


def tell_stopped_by_force(name: str) -> str:
    """Say who has ended a session without waiting for its node."""
    return f"{_STOPPED_BY}{name} by force"


def was_stopped(reason: str) -> bool:
    """Tell from why a session stops whether somebody has asked for it."""
    return reason.startswith(_STOPPED_BY)


class Placement(msgspec.Struct, frozen=True):
    """One share of one device given to a session's container."""

    device: str
    slot: str
    amount: int


class Attachment(msgspec.Struct, frozen=True):
    """The JupyterHub named server through which people reach a session."""

    user: str
    server: str
    prefix: str


class HeldDevice(msgspec.Struct, frozen=True, kw_only=True):
    """What one container has of one device: so much of a slot.

    ``slices`` are those of the device that its instance lies on, counted from 0; there
    are none if it is not cut into instances.
    """

    name: str
    model: str
    slot: str
    amount: str
    slices: list[int] = []


class SessionContainer(msgspec.Struct, frozen=True, kw_only=True):
    """One container of a session: ``host`` is its name on the session's network.

    ``idx`` counts from 1 in each ``role``. ``state`` is what its node last said of it,
    and ``scheduled`` before that. ``devices`` are what it has of accelerators now.
    """

    id: str
    host: str
    role: str
    idx: int = 1
    node: str | None
    devices: list[HeldDevice] = []
    state: str
    reason: str = ""
    exit_code: int | None = None


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One session, as the API shows it. Times are RFC 3339 in UTC.

    ``slots`` and ``shmem`` are what each of its ``cluster_size`` containers has.
    ``containers`` are those of the present attempt: of sessions with several, and of
    any where one session is asked for.

    Only batch sessions have a ``result`` that is ever known. ``attempts`` counts how
    often a session has been given to a node, ``max_attempts`` how often it may be;
    ``preemptions`` how often it had to make room and was put back into the queue, which
    uses up no attempt; ``dependencies`` are the ids of the sessions that have to
    succeed first.
    """

    id: str
    name: str
    type: SessionType
    owner: str
    domain: str
    project: str
    image: str
    slots: dict[str, str]
    shmem: str
    status: SessionStatus
    reason: str
    created_at: str
    agent: str | None = None
    scheduled_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    deadline_at: str | None = None
    exit_code: int | None = None
    devices: list[str] = []
    attachment: Attachment | None = None
    url: str | None = None
    resource_group: str | None = None
    priority: int = 10
    revision: int = 1
    result: SessionResult = SessionResult.UNDEFINED
    attempts: int = 0
    max_attempts: int = 1
    batch_timeout: int | None = None
    starts_at: str | None = None
    dependencies: list[str] = []
    tag: str | None = None
    job_priority: int = 0
    is_preemptible: bool = True
    preemptions: int = 0
    labels: dict[str, str] = {}
    """What its nodes must be labelled."""
    idle_expires_at: str | None = None
    """When it ends unless it is used; told where one session is asked for, if known."""
    cluster_size: int = 1
    cluster_mode: ClusterMode = ClusterMode.SINGLE_NODE
    cluster_strategy: ClusterStrategy | None = None
    containers: list[SessionContainer] = []
    cluster_network: str = ""
    """How its containers reach each other; told where one session is asked for."""


def check_can_become(session_id: str, old: SessionStatus, new: SessionStatus) -> None:
    """Raise :class:`ConflictError` unless *new* may follow *old*."""
    if new not in TRANSITIONS[old]:
        raise ConflictError(
            f"session {session_id} is {old} and cannot become {new}",
            status_now=str(old),
        )


_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?", re.ASCII)


def check_session_name(name: str) -> None:
    """Refuse names that are empty, long, no plain characters, or like an id."""
    if _NAME.fullmatch(name) is None:
        raise InvalidRequestError(
            f"name: {name[:64]!r} will not do; use 1 to 64 letters, digits, '-', '_' or"
            " '.', beginning and ending with a letter or digit"
        )
    if is_id(name):
        raise InvalidRequestError(
            f"name: {name!r} looks like the identifier of a session, and would be taken"
            " for one; choose another name"
        )
