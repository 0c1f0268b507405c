"""Virtual folders, who may use them, what is done to them, and sessions' mounts."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    String,
    Text,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from backendai_hub.db.tables.base import (
    Amount,
    Base,
    Document,
    Id,
    Key,
    Moment,
    Name,
    Short,
)
from backendai_hub.db.tables.tenancy import Kept

_NAMED = text("status IN ('ready', 'performing', 'cloning', 'mounted', 'error')")
_PENDING = text("state = 'pending'")
_OPEN = text("state IN ('pending', 'running')")


class FolderRow(Kept, Base):
    """A virtual folder; ``owner_id`` is the user or the project.

    ``scope`` is the quota scope that it lies and counts in: its owner's, but for what
    was left by users who were purged. It is empty where the folder is unmanaged.
    """

    __tablename__ = "vfolders"
    __table_args__ = (
        Index(
            "uq_vfolders_named",
            "owner_id",
            "name_key",
            unique=True,
            sqlite_where=_NAMED,
            postgresql_where=_NAMED,
        ),
        Index("ix_vfolders_domain", "domain_id"),
        Index("ix_vfolders_scope", "host", "scope"),
        Index("ix_vfolders_status", "status"),
        CheckConstraint(
            "(user_id IS NULL) <> (project_id IS NULL)", name="exactly_one_owner"
        ),
        CheckConstraint("owner_id = COALESCE(user_id, project_id)", name="owner"),
        CheckConstraint("usage_mode IN ('general', 'model', 'data')", name="usage"),
        CheckConstraint("permission IN ('ro', 'rw', 'wd')", name="permission"),
        CheckConstraint("ownership_type IN ('user', 'project')", name="ownership"),
        CheckConstraint("reserved_bytes >= 0", name="reserved"),
        CheckConstraint(
            "status IN ('ready', 'performing', 'cloning', 'mounted', 'error',"
            " 'delete-pending', 'delete-ongoing', 'delete-complete', 'delete-error')",
            name="status",
        ),
    )

    host: Mapped[Name]
    scope: Mapped[str] = mapped_column(String(64), default="")
    domain_id: Mapped[Id] = mapped_column(ForeignKey("domains.id"))
    ownership_type: Mapped[Short]
    owner_id: Mapped[Id]
    user_id: Mapped[Id | None] = mapped_column(ForeignKey("users.id"))
    project_id: Mapped[Id | None] = mapped_column(ForeignKey("projects.id"))
    creator: Mapped[Name] = mapped_column(default="")
    creator_id: Mapped[Id | None]
    usage_mode: Mapped[Short] = mapped_column(default="general")
    permission: Mapped[Short] = mapped_column(default="rw")
    cloneable: Mapped[bool] = mapped_column(default=False)
    max_size: Mapped[Amount] = mapped_column(default=-1)
    max_files: Mapped[int | None]
    unmanaged_path: Mapped[str] = mapped_column(String(4096), default="")
    status: Mapped[Short]
    status_changed_at: Mapped[Moment]
    status_reason: Mapped[str] = mapped_column(Text(), default="")
    status_history: Mapped[list[dict[str, Any]]] = mapped_column(Document, default=list)
    used_bytes: Mapped[Amount] = mapped_column(default=0)
    used_files: Mapped[Amount] = mapped_column(default=0)
    reserved_bytes: Mapped[Amount] = mapped_column(default=0)
    reserved_files: Mapped[Amount] = mapped_column(default=0, server_default="0")
    scanned_at: Mapped[Moment | None]
    last_used_at: Mapped[Moment | None]
    trashed_at: Mapped[Moment | None]
    """When it was thrown away, by the database's own clock."""


class FolderGrantRow(Base):
    """What one person may do in one folder, whatever the folder says.

    ``kind`` is ``invited`` for those who have accepted an invitation to somebody's
    folder, and ``override`` for what a project's folder is to one of its members.
    """

    __tablename__ = "vfolder_permissions"
    __table_args__ = (
        Index("ix_vfolder_permissions_user", "user_id"),
        CheckConstraint("permission IN ('ro', 'rw', 'wd')", name="permission"),
        CheckConstraint("kind IN ('invited', 'override')", name="kind"),
    )

    folder_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("vfolders.id"), primary_key=True
    )
    user_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("users.id"), primary_key=True
    )
    permission: Mapped[Short]
    kind: Mapped[Short]
    created_at: Mapped[Moment]


class InvitationRow(Base):
    """Somebody has asked somebody else to share a folder."""

    __tablename__ = "vfolder_invitations"
    __table_args__ = (
        Index("ix_vfolder_invitations_invitee", "invitee_id"),
        Index("ix_vfolder_invitations_inviter", "inviter_id"),
        Index(
            "uq_vfolder_invitations_pending",
            "folder_id",
            "invitee_id",
            unique=True,
            sqlite_where=_PENDING,
            postgresql_where=_PENDING,
        ),
        CheckConstraint("permission IN ('ro', 'rw', 'wd')", name="permission"),
        CheckConstraint(
            "state IN ('pending', 'accepted', 'rejected', 'canceled')", name="state"
        ),
    )

    id: Mapped[Key]
    folder_id: Mapped[Id] = mapped_column(ForeignKey("vfolders.id"))
    inviter_id: Mapped[Id] = mapped_column(ForeignKey("users.id"))
    invitee_id: Mapped[Id] = mapped_column(ForeignKey("users.id"))
    permission: Mapped[Short]
    state: Mapped[Short] = mapped_column(default="pending")
    created_at: Mapped[Moment]
    modified_at: Mapped[Moment]


class QuotaScopeRow(Base):
    """How much one user or project holds on one host, and may hold at most.

    A limit that is null is the one of its owner's policy. ``reserved_bytes`` is for
    what is being written: use and reservations together never pass the limit.
    """

    __tablename__ = "quota_scopes"
    __table_args__ = (
        CheckConstraint("used_bytes >= 0 AND used_files >= 0", name="used"),
        CheckConstraint("reserved_bytes >= 0", name="reserved"),
    )

    host: Mapped[str] = mapped_column(String(256), primary_key=True)
    scope: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[Short]
    owner_id: Mapped[Id]
    limit_bytes: Mapped[Amount | None]
    limit_files: Mapped[Amount | None]
    used_bytes: Mapped[Amount] = mapped_column(default=0)
    used_files: Mapped[Amount] = mapped_column(default=0)
    reserved_bytes: Mapped[Amount] = mapped_column(default=0)
    reserved_files: Mapped[Amount] = mapped_column(default=0, server_default="0")
    applied_bytes: Mapped[Amount | None]
    """The limit that the host was last told; null: none."""
    applied_files: Mapped[Amount | None]
    applied_at: Mapped[Moment | None]
    scanned_at: Mapped[Moment | None]
    created_at: Mapped[Moment]
    modified_at: Mapped[Moment]


class UploadRow(Base):
    """A file on its way into a folder. What has arrived is known to the host."""

    __tablename__ = "uploads"
    __table_args__ = (
        Index("ix_uploads_folder", "folder_id"),
        Index("ix_uploads_expires", "expires_at"),
        CheckConstraint("length >= 0 AND reserved_bytes >= 0", name="length"),
        CheckConstraint("conflict IN ('fail', 'replace', 'rename')", name="conflict"),
        CheckConstraint("state IN ('open', 'finishing', 'done', 'gone')", name="state"),
    )

    id: Mapped[Key]
    folder_id: Mapped[Id] = mapped_column(ForeignKey("vfolders.id"))
    user_id: Mapped[Id | None]
    path: Mapped[str] = mapped_column(Text())
    length: Mapped[Amount]
    conflict: Mapped[Short] = mapped_column(default="fail")
    checksum: Mapped[str] = mapped_column(String(256), default="")
    details: Mapped[dict[str, Any]] = mapped_column(Document, default=dict)
    state: Mapped[Short] = mapped_column(default="open")
    reserved_bytes: Mapped[Amount] = mapped_column(default=0)
    reserved_files: Mapped[Amount] = mapped_column(default=0, server_default="0")
    created_at: Mapped[Moment]
    modified_at: Mapped[Moment]
    expires_at: Mapped[Moment]


class FolderTaskRow(Base):
    """Something that is to be done on disk: the intent, its progress and its end.

    The folder may be gone when it has ended, so nothing refers to its row.
    """

    __tablename__ = "folder_tasks"
    __table_args__ = (
        Index("ix_folder_tasks_folder", "folder_id"),
        Index("ix_folder_tasks_user", "user_id"),
        Index(
            "ix_folder_tasks_open",
            "created_at",
            sqlite_where=_OPEN,
            postgresql_where=_OPEN,
        ),
        CheckConstraint(
            "state IN ('pending', 'running', 'done', 'failed', 'cancelled')",
            name="state",
        ),
    )

    id: Mapped[Key]
    kind: Mapped[Short]
    folder_id: Mapped[Id]
    user_id: Mapped[Id | None]
    actor: Mapped[Name] = mapped_column(default="")
    state: Mapped[Short] = mapped_column(default="pending")
    done: Mapped[Amount] = mapped_column(default=0)
    total: Mapped[Amount | None]
    unit: Mapped[Short] = mapped_column(default="")
    error: Mapped[str] = mapped_column(Text(), default="")
    arguments: Mapped[dict[str, Any]] = mapped_column(Document, default=dict)
    attempts: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[Moment]
    started_at: Mapped[Moment | None]
    ended_at: Mapped[Moment | None]


class SessionMountRow(Base):
    """A folder in a session, as it was decided when the session was asked for.

    It outlives the folder, as the session's history: only live ones keep a folder.
    """

    __tablename__ = "session_mounts"
    __table_args__ = (
        Index("ix_session_mounts_folder", "folder_id"),
        CheckConstraint("permission IN ('ro', 'rw', 'wd')", name="permission"),
    )

    session_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("sessions.id"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    folder_id: Mapped[Id]
    folder_name: Mapped[Name]
    host: Mapped[Name]
    scope: Mapped[str] = mapped_column(String(64), default="")
    unmanaged_path: Mapped[str] = mapped_column(String(4096), default="")
    subpath: Mapped[str] = mapped_column(String(4096), default="")
    target: Mapped[str] = mapped_column(String(4096))
    permission: Mapped[Short]
    automatic: Mapped[bool] = mapped_column(default=False)


class RemainRow(Base):
    """Something that lies on a storage host and that no other row knows.

    ``found_at`` is when it was first seen so, by the database's own clock; ``removing``
    is written before anything is removed.
    """

    __tablename__ = "storage_remains"
    __table_args__ = (CheckConstraint("state IN ('found', 'removing')", name="state"),)

    host: Mapped[str] = mapped_column(String(256), primary_key=True)
    scope: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(String(256), primary_key=True)
    state: Mapped[Short] = mapped_column(default="found")
    reason: Mapped[str] = mapped_column(Text(), default="")
    found_at: Mapped[Moment]
