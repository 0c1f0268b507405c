"""Facts that have happened, each with a stable public name.

An event is written in the transaction of the change it tells of. ``text`` is the
sentence people read; ``status`` is the session's new state where there is one.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class EventKind(StrEnum):
    """The public names of facts."""

    SESSION_SUBMITTED = "session.submitted"
    SESSION_WAITING = "session.waiting"
    SESSION_SCHEDULED = "session.scheduled"
    SESSION_PROGRESS = "session.progress"
    SESSION_STARTED = "session.started"
    SESSION_RESERVED = "session.reserved"
    SESSION_PREEMPTED = "session.preempted"
    SESSION_RESCHEDULING = "session.rescheduling"
    SESSION_REQUEUED = "session.requeued"
    SESSION_TERMINATING = "session.terminating"
    SESSION_TERMINATED = "session.terminated"
    SESSION_FAILED = "session.failed"
    SESSION_CANCELLED = "session.cancelled"
    SESSION_RENAMED = "session.renamed"
    SESSION_PRIORITY = "session.priority"
    SESSION_HELD = "session.held"
    SESSION_RELEASED = "session.released"
    AGENT_ENROLLED = "agent.enrolled"
    AGENT_STATUS = "agent.status"
    AGENT_DRAINED = "agent.drained"
    AGENT_UNDRAINED = "agent.undrained"
    GROUP_FROZEN = "resource-group.frozen"
    GROUP_UNFROZEN = "resource-group.unfrozen"
    AGENT_UNKNOWN_CONTAINERS = "agent.unknown-containers"
    ACCOUNT_CREATED = "account.created"
    ACCOUNT_PASSWORD_CHANGED = "account.password-changed"  # noqa: S105 - a name
    ACCOUNT_LOCKED = "account.locked"
    USER_JOINED = "user.joined"
    IMAGE_INSTALL = "image.install"
    REGISTRY_RESCAN = "registry.rescan"
    FOLDER_CREATED = "folder.created"
    FOLDER_CHANGED = "folder.changed"
    FOLDER_TRASHED = "folder.trashed"
    FOLDER_RESTORED = "folder.restored"
    FOLDER_CLONED = "folder.cloned"
    FOLDER_REMOVED = "folder.removed"
    FOLDER_FAILED = "folder.failed"
    FOLDER_PROGRESS = "folder.progress"
    FOLDER_SHARED = "folder.shared"
    FOLDER_TRANSFERRED = "folder.transferred"
    FOLDER_INVITATION = "folder.invitation"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One fact, before it has its number."""

    kind: EventKind
    text: str
    actor: str = "system"
    session_id: str | None = None
    owner_id: str | None = None
    status: str | None = None
    agent_id: str | None = None
    folder_id: str | None = None
