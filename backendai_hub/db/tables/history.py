"""Append-only facts, and the accounts of the shipped authenticator."""

from __future__ import annotations

from sqlalchemy import Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backendai_hub.db.tables.base import Base, BigKey, Id, Moment, Name


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


class AccountRow(Base):
    """A password account. Only argon2 hashes are kept."""

    __tablename__ = "accounts"

    name: Mapped[str] = mapped_column(String(256), primary_key=True)
    password_hash: Mapped[str] = mapped_column(String(512))
    must_change: Mapped[bool] = mapped_column(default=False)
    failures: Mapped[int] = mapped_column(default=0)
    locked_until: Mapped[Moment | None]
    changed_at: Mapped[Moment]
