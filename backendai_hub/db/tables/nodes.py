"""Agents, their devices, and how they join."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from backendai_hub.db.tables.base import (
    Amount,
    Base,
    Document,
    Id,
    Key,
    Moment,
    Name,
)

_NOTHING = text("'{}'")


class AgentRow(Base):
    """One node. ``generation`` is the version of what it should run.

    ``labels`` are those it reports, ``set_labels`` those operators give it.
    """

    __tablename__ = "agents"
    __table_args__ = (
        CheckConstraint(
            "status IN ('ALIVE', 'SUSPECT', 'LOST', 'TERMINATED')", name="status"
        ),
    )

    id: Mapped[Key]
    name: Mapped[Name]
    machine_id: Mapped[Name]
    status: Mapped[str] = mapped_column(String(16))
    resource_group_id: Mapped[Id | None] = mapped_column(
        ForeignKey("resource_groups.id")
    )
    schedulable: Mapped[bool] = mapped_column(default=True)
    epoch: Mapped[Amount] = mapped_column(default=1)
    sequence: Mapped[Amount] = mapped_column(default=0)
    generation: Mapped[Amount] = mapped_column(default=1)
    url: Mapped[str] = mapped_column(String(512), default="")
    architecture: Mapped[str] = mapped_column(String(64), default="")
    version: Mapped[str] = mapped_column(String(64), default="")
    protocol: Mapped[int] = mapped_column(default=1, server_default="1")
    isolation: Mapped[dict[str, Any]] = mapped_column(Document, default=dict)
    images: Mapped[list[str]] = mapped_column(Document, default=list)
    unknown: Mapped[list[str]] = mapped_column(Document, default=list)
    enrolled_at: Mapped[Moment]
    first_seen_at: Mapped[Moment | None]
    last_seen_at: Mapped[Moment | None]
    labels: Mapped[dict[str, str]] = mapped_column(
        Document, default=dict, server_default=_NOTHING
    )
    set_labels: Mapped[dict[str, str]] = mapped_column(
        Document, default=dict, server_default=_NOTHING
    )
    max_containers: Mapped[int | None]


class DeviceRow(Base):
    """One device of a node. ``name`` is the node's stable id for it.

    ``links`` are by such names. ``slices`` are all that ``profiles`` name, as bits; 0
    for what is not cut.
    """

    __tablename__ = "devices"
    __table_args__ = (UniqueConstraint("agent_id", "name"),)

    id: Mapped[Key]
    agent_id: Mapped[Id] = mapped_column(ForeignKey("agents.id"))
    name: Mapped[Name]
    kind: Mapped[str] = mapped_column(String(64))
    model: Mapped[Name] = mapped_column(default="")
    numa: Mapped[int | None]
    whole: Mapped[bool] = mapped_column(default=False)
    present: Mapped[bool] = mapped_column(default=True)
    links: Mapped[dict[str, int]] = mapped_column(
        Document, default=dict, server_default=_NOTHING
    )
    profiles: Mapped[dict[str, list[int]]] = mapped_column(
        Document, default=dict, server_default=_NOTHING
    )
    slices: Mapped[Amount] = mapped_column(default=0, server_default="0")


class EnrollTokenRow(Base):
    """A single-use token, by its hash; ``agent_id`` is who used it."""

    __tablename__ = "enroll_tokens"

    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    expires_at: Mapped[Moment]
    agent_id: Mapped[Id | None]
    machine_id: Mapped[Name | None]


class VersionRow(Base):
    """Counters of versioned documents that belong to no single row."""

    __tablename__ = "versions"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[Amount]
