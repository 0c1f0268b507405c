"""What the scheduler has tried."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backendai_hub.db.tables.base import (
    Amount,
    Base,
    BigKey,
    Document,
    Id,
    Key,
    Moment,
)


class AttemptRow(Base):
    """Attempts in a row that ended alike: how often, from when to when.

    ``shape`` is what they have in common; ``message`` is the last one's.
    """

    __tablename__ = "scheduling_history"
    __table_args__ = (
        CheckConstraint("attempts > 0", name="attempts"),
        Index("ix_scheduling_history_session", "session_id", "id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    session_id: Mapped[Id] = mapped_column(ForeignKey("sessions.id"))
    phase: Mapped[str] = mapped_column(String(32))
    result: Mapped[str] = mapped_column(String(32))
    shape: Mapped[str] = mapped_column(String(64))
    message: Mapped[str] = mapped_column(Text())
    attempts: Mapped[Amount]
    first_at: Mapped[Moment]
    last_at: Mapped[Moment]


class ExplanationRow(Base):
    """Why a session waits, as it was told its owner the last time; one for each."""

    __tablename__ = "explanations"

    session_id: Mapped[Key] = mapped_column(ForeignKey("sessions.id"))
    at: Mapped[Moment]
    why: Mapped[dict[str, Any]] = mapped_column(Document)
