"""Append-only facts, the shipped authenticator's accounts, and who is logged in."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Float,
    ForeignKey,
    Index,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from backendai_hub.db.tables.base import (
    Amount,
    Base,
    BigKey,
    Document,
    Id,
    Key,
    Moment,
    Name,
    Short,
)


class EventRow(Base):
    """One fact. Never updated; ``seq`` grows in the order of commits."""

    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_session", "session_id", "seq"),
        Index("ix_events_owner", "owner_id", "seq"),
        # Without AUTOINCREMENT SQLite may hand the number of a pruned row out again.
        {"sqlite_autoincrement": True},
    )

    seq: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    at: Mapped[Moment]
    kind: Mapped[str] = mapped_column(String(64))
    text: Mapped[str] = mapped_column(Text())
    actor: Mapped[Name]
    session_id: Mapped[Id | None]
    owner_id: Mapped[Id | None]
    agent_id: Mapped[Id | None]
    status: Mapped[str | None] = mapped_column(String(16))
    folder_id: Mapped[Id | None]


class AuditRow(Base):
    """One act: who did what to which object, and how it ended. Never updated.

    ``hash`` is over the row and the hash of the row before it, so that nothing can be
    taken out, put in or changed without being seen.
    """

    __tablename__ = "audit"
    __table_args__ = (
        Index("ix_audit_actor", "actor_id", "seq"),
        Index("ix_audit_domain", "domain_id", "seq"),
        Index("ix_audit_object", "object_id", "seq"),
        CheckConstraint("result IN ('success', 'refused', 'failed')", name="result"),
    )

    seq: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=False)
    at: Mapped[Moment]
    request_id: Mapped[str] = mapped_column(String(32))
    actor_id: Mapped[Id | None]
    actor: Mapped[Name]
    acted_as: Mapped[Name] = mapped_column(default="")
    """For whom somebody with the right to it acted; empty: for themselves."""
    credential: Mapped[str] = mapped_column(String(32))
    address: Mapped[str] = mapped_column(String(64))
    action: Mapped[str] = mapped_column(String(64))
    object_kind: Mapped[str] = mapped_column(String(32))
    object_id: Mapped[Id | None]
    object_name: Mapped[str] = mapped_column(String(512))
    domain_id: Mapped[Id | None]
    owner_id: Mapped[Id | None]
    before: Mapped[dict[str, Any] | None] = mapped_column(Document)
    after: Mapped[dict[str, Any] | None] = mapped_column(Document)
    result: Mapped[str] = mapped_column(String(16))
    code: Mapped[str] = mapped_column(String(64), default="")
    message: Mapped[str] = mapped_column(Text(), default="")
    duration_ms: Mapped[float] = mapped_column(Float())
    hash: Mapped[str] = mapped_column(String(64))


class AuditHeadRow(Base):
    """The newest act's number and hash: one row, locked by whoever adds the next."""

    __tablename__ = "audit_head"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    seq: Mapped[Amount]
    hash: Mapped[str] = mapped_column(String(64))


class AccountRow(Base):
    """A password account. Only argon2 hashes are kept."""

    __tablename__ = "accounts"

    name: Mapped[str] = mapped_column(String(256), primary_key=True)
    password_hash: Mapped[str] = mapped_column(String(512))
    must_change: Mapped[bool] = mapped_column(default=False)
    failures: Mapped[int] = mapped_column(default=0)
    locked_until: Mapped[Moment | None]
    changed_at: Mapped[Moment]
    logins_ended_at: Mapped[Moment | None]
    """When all of its logins were ended at once: those from before are over."""


class LoginRow(Base):
    """A place somebody is logged in from: a browser, or a command line's keypair."""

    __tablename__ = "logins"
    __table_args__ = (
        UniqueConstraint("user_id", "session_hash"),
        Index("ix_logins_keypair", "keypair_id"),
    )

    id: Mapped[Key]
    user_id: Mapped[Id] = mapped_column(ForeignKey("users.id"))
    kind: Mapped[Short]
    place: Mapped[str] = mapped_column(String(128), default="")
    session_hash: Mapped[str | None] = mapped_column(String(64))
    keypair_id: Mapped[Id | None] = mapped_column(ForeignKey("keypairs.id"))
    created_at: Mapped[Moment]
    expires_at: Mapped[Moment | None]
