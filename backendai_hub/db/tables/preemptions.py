"""Who had to make room for whom, and what became of both."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from backendai_hub.db.tables.base import Base, Document, Id, Key, Moment

_OPEN = text("closed_at IS NULL")
_LEAVING = text("left_at IS NULL")


class PreemptionRow(Base):
    """One plan that was carried out: the session it is for, and where its room is.

    ``grace`` is how many seconds the others have to leave, ``parts`` are nodes and what
    is kept of their devices. It is open until that
    session starts, or does not wait for this room any more; ``outcome`` says which.
    """

    __tablename__ = "preemptions"
    __table_args__ = (
        CheckConstraint("kind IN ('priority', 'reclaim')", name="kind"),
        CheckConstraint("mode IN ('terminate', 'reschedule')", name="mode"),
        CheckConstraint("(closed_at IS NULL) = (outcome IS NULL)", name="closed"),
        Index(
            "uq_preemptions_open",
            "session_id",
            unique=True,
            sqlite_where=_OPEN,
            postgresql_where=_OPEN,
        ),
        Index("ix_preemptions_session", "session_id"),
    )

    id: Mapped[Key]
    session_id: Mapped[Id] = mapped_column(ForeignKey("sessions.id"))
    resource_group_id: Mapped[Id | None]
    kind: Mapped[str] = mapped_column(String(16))
    mode: Mapped[str] = mapped_column(String(16))
    grace: Mapped[int]
    parts: Mapped[list[dict[str, Any]]] = mapped_column(Document)
    created_at: Mapped[Moment]
    expires_at: Mapped[Moment]
    closed_at: Mapped[Moment | None]
    outcome: Mapped[str | None] = mapped_column(String(16))


class VictimRow(Base):
    """A session that had to make room; nobody has to twice at the same time."""

    __tablename__ = "preemption_victims"
    __table_args__ = (
        CheckConstraint("(left_at IS NULL) = (outcome IS NULL)", name="left"),
        Index(
            "uq_preemption_victims_leaving",
            "session_id",
            unique=True,
            sqlite_where=_LEAVING,
            postgresql_where=_LEAVING,
        ),
        Index("ix_preemption_victims_session", "session_id"),
    )

    preemption_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("preemptions.id"), primary_key=True
    )
    session_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("sessions.id"), primary_key=True
    )
    reason: Mapped[str] = mapped_column(Text())
    left_at: Mapped[Moment | None]
    outcome: Mapped[str | None] = mapped_column(String(16))
