"""What operators stop, and what they reserve."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from backendai_hub.db.tables.base import Base, Document, Id, Moment, Name, Short
from backendai_hub.db.tables.tenancy import Kept


class StopRow(Base):
    """One session, node or resource group that may start nothing for now."""

    __tablename__ = "stops"
    __table_args__ = (
        CheckConstraint("kind IN ('session', 'node', 'group')", name="kind"),
    )

    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    target_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    actor: Mapped[Name]
    by_owner: Mapped[bool]
    since: Mapped[Moment]
    reason: Mapped[str] = mapped_column(String(512))
    due: Mapped[Moment | None]


class ReservationRow(Kept, Base):
    """A reservation. ``held`` is what it comes to, by id: nodes, devices, for whom."""

    __tablename__ = "reservations"
    __table_args__ = (
        UniqueConstraint("name_key"),
        CheckConstraint("begins_at < ends_at", name="span"),
        CheckConstraint("kind IN ('class', 'maintenance')", name="kind"),
        Index("ix_reservations_ends", "ends_at"),
    )

    description: Mapped[str] = mapped_column(String(512), default="")
    kind: Mapped[Short]
    resource_group_id: Mapped[Id] = mapped_column(ForeignKey("resource_groups.id"))
    begins_at: Mapped[Moment]
    ends_at: Mapped[Moment]
    nodes: Mapped[list[str]] = mapped_column(Document)
    amounts: Mapped[dict[str, int]] = mapped_column(Document)
    domains: Mapped[list[str]] = mapped_column(Document)
    projects: Mapped[list[str]] = mapped_column(Document)
    users: Mapped[list[str]] = mapped_column(Document)
    held: Mapped[dict[str, Any]] = mapped_column(Document)
