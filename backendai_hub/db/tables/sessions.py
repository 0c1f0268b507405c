"""Sessions, their containers, and the ledger of what they hold."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    false,
    text,
    true,
)
from sqlalchemy.orm import Mapped, mapped_column

from backendai_hub.core.sessions import TERMINAL, SessionResult, SessionStatus
from backendai_hub.db.tables.base import (
    Amount,
    Base,
    Document,
    Id,
    Key,
    Moment,
    Name,
)


def _quoted(names: object) -> str:
    return ", ".join(f"'{name}'" for name in sorted(map(str, names)))  # type: ignore[call-overload]


_LIVE = text(f"status NOT IN ({_quoted(TERMINAL)})")
_UNCOUNTED = text(
    "freed_at IS NULL OR counted_until IS NULL OR counted_until <> freed_at"
)
_LIVE_ATTACHED = text(f"server IS NOT NULL AND status NOT IN ({_quoted(TERMINAL)})")


class SessionRow(Base):
    """One session. ``revision`` grows by one with every change."""

    __tablename__ = "sessions"
    __table_args__ = (
        CheckConstraint(f"status IN ({_quoted(SessionStatus)})", name="status"),
        CheckConstraint(f"result IN ({_quoted(SessionResult)})", name="result"),
        CheckConstraint("requeues < max_attempts", name="attempts"),
        CheckConstraint("cluster_size >= 1", name="cluster_size"),
        UniqueConstraint("owner_id", "idempotency_key"),
        Index(
            "uq_sessions_live_name",
            "owner_id",
            "name",
            unique=True,
            sqlite_where=_LIVE,
            postgresql_where=_LIVE,
        ),
        Index(
            "uq_sessions_live_server",
            "owner_id",
            "server",
            unique=True,
            sqlite_where=_LIVE_ATTACHED,
            postgresql_where=_LIVE_ATTACHED,
        ),
        Index("ix_sessions_owner_created", "owner_id", "created_at", "id"),
        Index("ix_sessions_created", "created_at", "id"),
        Index("ix_sessions_live", "status", sqlite_where=_LIVE, postgresql_where=_LIVE),
    )

    id: Mapped[Key]
    name: Mapped[Name]
    type: Mapped[str] = mapped_column(String(16))
    owner_id: Mapped[Id] = mapped_column(ForeignKey("users.id"))
    domain_id: Mapped[Id] = mapped_column(ForeignKey("domains.id"))
    project_id: Mapped[Id] = mapped_column(ForeignKey("projects.id"))
    keypair_id: Mapped[Id | None] = mapped_column(ForeignKey("keypairs.id"))
    resource_group_id: Mapped[Id | None] = mapped_column(
        ForeignKey("resource_groups.id")
    )
    image_id: Mapped[Id | None] = mapped_column(ForeignKey("images.id"))
    priority: Mapped[int] = mapped_column(default=10, server_default="10")
    image: Mapped[Name]
    slots: Mapped[dict[str, int]] = mapped_column(Document)
    shmem: Mapped[Amount]
    status: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(Text())
    agent_id: Mapped[Id | None] = mapped_column(ForeignKey("agents.id"))
    server: Mapped[Name | None]
    prefix: Mapped[str | None] = mapped_column(String(1024))
    ready: Mapped[bool] = mapped_column(default=True)
    exit_code: Mapped[int | None]
    idempotency_key: Mapped[str] = mapped_column(String(128))
    request_hash: Mapped[str] = mapped_column(String(64))
    revision: Mapped[Amount] = mapped_column(default=1)
    created_at: Mapped[Moment]
    scheduled_at: Mapped[Moment | None]
    started_at: Mapped[Moment | None]
    ended_at: Mapped[Moment | None]
    deadline_at: Mapped[Moment | None]
    result: Mapped[str] = mapped_column(
        String(16), default="undefined", server_default="undefined"
    )
    batch_timeout: Mapped[int | None]
    starts_at: Mapped[Moment | None]
    max_attempts: Mapped[int] = mapped_column(default=1, server_default="1")
    requeues: Mapped[int] = mapped_column(default=0, server_default="0")
    tag: Mapped[str | None] = mapped_column(String(64))
    job_priority: Mapped[int] = mapped_column(default=0, server_default="0")
    is_preemptible: Mapped[bool] = mapped_column(default=True, server_default=true())
    preemptions: Mapped[int] = mapped_column(default=0, server_default="0")
    agents: Mapped[list[str]] = mapped_column(
        Document, default=list, server_default=text("'[]'")
    )
    preferred_agents: Mapped[list[str]] = mapped_column(
        Document, default=list, server_default=text("'[]'")
    )
    cluster_size: Mapped[int] = mapped_column(default=1, server_default="1")
    cluster_mode: Mapped[str] = mapped_column(
        String(16), default="single-node", server_default="single-node"
    )
    cluster_strategy: Mapped[str | None] = mapped_column(String(16))
    ends_as: Mapped[str | None] = mapped_column(String(16))
    """The state that follows TERMINATING; none: TERMINATED."""
    labels: Mapped[dict[str, str]] = mapped_column(
        Document, default=dict, server_default=text("'{}'")
    )


class DependencyRow(Base):
    """A session that starts only after another one has succeeded."""

    __tablename__ = "session_dependencies"
    __table_args__ = (
        CheckConstraint("session_id <> depends_on", name="not_itself"),
        Index("ix_session_dependencies_depends_on", "depends_on"),
    )

    session_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("sessions.id"), primary_key=True
    )
    depends_on: Mapped[str] = mapped_column(
        String(36), ForeignKey("sessions.id"), primary_key=True
    )


class LogRow(Base):
    """The end of what a container printed, kept after the container is gone.

    ``clipped`` says that there was more before it.
    """

    __tablename__ = "session_logs"
    __table_args__ = (Index("ix_session_logs_session", "session_id"),)

    container_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("containers.id"), primary_key=True
    )
    session_id: Mapped[Id] = mapped_column(ForeignKey("sessions.id"))
    content: Mapped[bytes] = mapped_column(LargeBinary())
    clipped: Mapped[bool]
    stored_at: Mapped[Moment]


class ContainerRow(Base):
    """One container of a session on a node, until the node says it is gone.

    ``state`` is what its node has last said of it; ``stranded`` is one whose node is
    silent and which has ended itself by now, since its lease has run out.
    ``former`` ones belong to an attempt that is over: whatever is still heard of them
    says nothing about the session.
    """

    __tablename__ = "containers"
    __table_args__ = (
        CheckConstraint("desired IN ('running', 'absent')", name="desired"),
        CheckConstraint("role IN ('main', 'sub')", name="role"),
        Index("ix_containers_agent", "agent_id", "gone_at"),
        Index("ix_containers_session", "session_id"),
    )

    id: Mapped[Key]
    session_id: Mapped[Id] = mapped_column(ForeignKey("sessions.id"))
    agent_id: Mapped[Id] = mapped_column(ForeignKey("agents.id"))
    desired: Mapped[str] = mapped_column(String(16))
    image: Mapped[Name]
    generation: Mapped[Amount]
    created_at: Mapped[Moment]
    gone_at: Mapped[Moment | None]
    former: Mapped[bool] = mapped_column(default=False, server_default=false())
    role: Mapped[str] = mapped_column(String(8), default="main", server_default="main")
    idx: Mapped[int] = mapped_column(default=1, server_default="1")
    host: Mapped[str] = mapped_column(
        String(32), default="main1", server_default="main1"
    )
    state: Mapped[str] = mapped_column(
        String(16), default="scheduled", server_default="scheduled"
    )
    reason: Mapped[str] = mapped_column(Text(), default="", server_default=text("''"))
    exit_code: Mapped[int | None]


class AllocationRow(Base):
    """A share of one device held by one container; freed exactly once.

    ``slices`` are those of the device that it takes, as bits; 0 if it is not cut.
    """

    __tablename__ = "allocations"
    __table_args__ = (
        CheckConstraint("amount > 0", name="amount"),
        CheckConstraint("slices >= 0", name="slices"),
        Index(
            "uq_allocations_live",
            "container_id",
            "device_id",
            "slot",
            "slices",
            unique=True,
            sqlite_where=text("freed_at IS NULL"),
            postgresql_where=text("freed_at IS NULL"),
        ),
        Index("ix_allocations_session", "session_id"),
        Index(
            "ix_allocations_uncounted",
            "id",
            sqlite_where=_UNCOUNTED,
            postgresql_where=_UNCOUNTED,
        ),
    )

    id: Mapped[Key]
    session_id: Mapped[Id] = mapped_column(ForeignKey("sessions.id"))
    container_id: Mapped[Id] = mapped_column(ForeignKey("containers.id"))
    device_id: Mapped[Id] = mapped_column(ForeignKey("devices.id"))
    slot: Mapped[str] = mapped_column(String(128))
    amount: Mapped[Amount]
    slices: Mapped[Amount] = mapped_column(default=0, server_default="0")
    freed_at: Mapped[Moment | None]
    counted_until: Mapped[Moment | None]
    """Up to when its use has been counted; none of it yet if there is nothing."""


class LedgerRow(Base):
    """How much of a slot one scope uses, and how much it may.

    ``quota`` is what policy or the node's report says (none: unlimited). ``cap`` is
    ``max(quota, used)``: after a quota is lowered below what is in use, it sinks as
    things end, so that ``0 <= used <= cap`` is true at every commit and nothing
    running is touched.
    """

    __tablename__ = "ledger"
    __table_args__ = (
        CheckConstraint("used >= 0", name="not_negative"),
        CheckConstraint("cap IS NULL OR used <= cap", name="within_cap"),
        CheckConstraint(
            "(cap IS NULL) = (quota IS NULL) AND (quota IS NULL OR quota <= cap)",
            name="quota_within_cap",
        ),
        CheckConstraint(
            "kind IN ('domain', 'project', 'user', 'keypair', 'device')", name="kind"
        ),
    )

    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    owner_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    slot: Mapped[str] = mapped_column(String(128), primary_key=True)
    used: Mapped[Amount] = mapped_column(default=0)
    quota: Mapped[Amount | None]
    cap: Mapped[Amount | None]


class SecretRow(Base):
    """What a session is born with (environment, arguments, token), encrypted."""

    __tablename__ = "session_secrets"

    session_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("sessions.id"), primary_key=True
    )
    ciphertext: Mapped[bytes] = mapped_column(LargeBinary())
