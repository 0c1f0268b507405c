"""Domains, projects and users."""

from __future__ import annotations

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backendai_hub.db.tables.base import Base, Id, Key, Moment, Name


class DomainRow(Base):
    """A tenant."""

    __tablename__ = "domains"

    id: Mapped[Key]
    name: Mapped[Name] = mapped_column(unique=True)
    created_at: Mapped[Moment]


class ProjectRow(Base):
    """A group of people who share limits, inside one domain."""

    __tablename__ = "projects"
    __table_args__ = (UniqueConstraint("domain_id", "name"),)

    id: Mapped[Key]
    domain_id: Mapped[Id] = mapped_column(ForeignKey("domains.id"))
    name: Mapped[Name]
    created_at: Mapped[Moment]


class UserRow(Base):
    """A person JupyterHub has logged in. ``name`` is JupyterHub's."""

    __tablename__ = "users"

    id: Mapped[Key]
    name: Mapped[Name] = mapped_column(unique=True)
    domain_id: Mapped[Id] = mapped_column(ForeignKey("domains.id"))
    project_id: Mapped[Id] = mapped_column(ForeignKey("projects.id"))
    created_at: Mapped[Moment]
