"""What containers have used, as it was measured."""

from __future__ import annotations

from sqlalchemy import BigInteger, Float, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from backendai_hub.db.tables.base import Base, Id, Moment


class ContainerUsageRow(Base):
    """What one container has used in all; nothing is there of what was not measured.

    Written when it is not measured any more, which is about when it has ended.
    """

    __tablename__ = "container_usage"
    __table_args__ = (Index("ix_container_usage_session", "session_id"),)

    container_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("containers.id"), primary_key=True
    )
    session_id: Mapped[Id] = mapped_column(ForeignKey("sessions.id"))
    measured_at: Mapped[Moment]
    cpu_seconds: Mapped[float | None] = mapped_column(Float(53))
    memory_peak: Mapped[int | None] = mapped_column(BigInteger())
    read_bytes: Mapped[int | None] = mapped_column(BigInteger())
    written_bytes: Mapped[int | None] = mapped_column(BigInteger())
    received_bytes: Mapped[int | None] = mapped_column(BigInteger())
    sent_bytes: Mapped[int | None] = mapped_column(BigInteger())
    device_seconds: Mapped[float | None] = mapped_column(Float(53))
    device_memory_peak: Mapped[int | None] = mapped_column(BigInteger())
