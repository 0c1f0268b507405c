"""Registries, the images they hold, and where images are kept ready."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Float,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
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


class RegistryRow(Kept, Base):
    """Where images come from. The password is sealed with the database key."""

    __tablename__ = "registries"
    __table_args__ = (UniqueConstraint("name_key"),)

    url: Mapped[str] = mapped_column(String(1024), default="")
    type: Mapped[Short]
    project: Mapped[Name] = mapped_column(default="")
    repositories: Mapped[list[str]] = mapped_column(Document, default=list)
    username: Mapped[Name] = mapped_column(default="")
    password: Mapped[bytes | None] = mapped_column(LargeBinary())
    ssl_verify: Mapped[bool] = mapped_column(default=True)
    is_active: Mapped[bool] = mapped_column(default=True)
    is_global: Mapped[bool] = mapped_column(default=False)
    extra: Mapped[dict[str, Any]] = mapped_column(Document, default=dict)
    rescanned_at: Mapped[Moment | None]


class ImageRow(Kept, Base):
    """One environment for one architecture.

    ``minimum`` and ``maximum`` are what applies; ``label_minimum`` is what the image
    itself asks for. All three are in smallest units.
    """

    __tablename__ = "images"
    __table_args__ = (
        UniqueConstraint("name_key", "architecture"),
        Index("ix_images_digest", "digest"),
        CheckConstraint("status IN ('ALIVE', 'DELETED')", name="status"),
        CheckConstraint("type IN ('compute', 'system', 'service')", name="type"),
    )

    title: Mapped[Name] = mapped_column(default="")
    description: Mapped[str] = mapped_column(String(512), default="")
    registry_id: Mapped[Id] = mapped_column(ForeignKey("registries.id"))
    owner_id: Mapped[Id | None] = mapped_column(ForeignKey("users.id"))
    project: Mapped[Name] = mapped_column(default="")
    repository: Mapped[str] = mapped_column(String(512), default="")
    tag: Mapped[Name] = mapped_column(default="")
    architecture: Mapped[str] = mapped_column(String(64))
    digest: Mapped[str] = mapped_column(String(128), default="")
    config_digest: Mapped[str] = mapped_column(String(128), default="")
    size_bytes: Mapped[Amount] = mapped_column(default=0)
    type: Mapped[Short] = mapped_column(default="compute")
    runtime: Mapped[str] = mapped_column(String(64), default="")
    references: Mapped[dict[str, str]] = mapped_column(Document, default=dict)
    label_minimum: Mapped[dict[str, int | None]] = mapped_column(Document, default=dict)
    minimum: Mapped[dict[str, int | None]] = mapped_column(Document, default=dict)
    maximum: Mapped[dict[str, int | None]] = mapped_column(Document, default=dict)
    preferred: Mapped[dict[str, int | None]] = mapped_column(Document, default=dict)
    shmem: Mapped[Amount] = mapped_column(default=64 << 20)
    accelerators: Mapped[list[str]] = mapped_column(Document, default=list)
    labels: Mapped[dict[str, str]] = mapped_column(Document, default=dict)
    status: Mapped[Short] = mapped_column(default="ALIVE")
    position: Mapped[int] = mapped_column(default=0)
    last_used_at: Mapped[Moment | None]


class ImageAliasRow(Base):
    """Another name of an image."""

    __tablename__ = "image_aliases"

    alias: Mapped[str] = mapped_column(String(256), primary_key=True)
    alias_key: Mapped[Name] = mapped_column(unique=True)
    image_id: Mapped[Id] = mapped_column(ForeignKey("images.id"))


class ImageInstallRow(Base):
    """An image that one node has been asked to hold, or to remove."""

    __tablename__ = "image_installs"
    __table_args__ = (
        UniqueConstraint("agent_id", "reference"),
        CheckConstraint("wanted IN ('present', 'absent')", name="wanted"),
        CheckConstraint(
            "state IN ('waiting', 'pulling', 'done', 'failed')", name="state"
        ),
    )

    id: Mapped[Key]
    image_id: Mapped[Id] = mapped_column(ForeignKey("images.id"))
    agent_id: Mapped[Id] = mapped_column(ForeignKey("agents.id"))
    reference: Mapped[str] = mapped_column(String(512))
    wanted: Mapped[Short]
    state: Mapped[Short]
    progress: Mapped[float | None] = mapped_column(Float())
    reason: Mapped[str] = mapped_column(Text(), default="")
    requested_by: Mapped[Name]
    requested_at: Mapped[Moment]
    changed_at: Mapped[Moment]
