"""What scopes weigh and are guaranteed in a resource group, and what they have used."""

from __future__ import annotations

from datetime import date

from sqlalchemy import CheckConstraint, Date, Double, ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from backendai_hub.db.tables.base import Amount, Base, Document, Moment


class GroupShareRow(Base):
    """Weight, guarantee and maximum of a domain, a project or a user in a group.

    A scope is named by the ids of the scopes it is in; those it has none of are empty:
    of a domain both others, of a project the user. Without a weight it has the group's
    default one.
    """

    __tablename__ = "group_shares"
    __table_args__ = (
        CheckConstraint("weight >= 0.001 AND weight <= 1000000", name="weight"),
        CheckConstraint("user_id = '' OR project_id <> ''", name="scope"),
    )

    group_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("resource_groups.id"), primary_key=True
    )
    domain_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    project_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    user_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    weight: Mapped[float | None] = mapped_column(Double())
    guaranteed: Mapped[dict[str, int]] = mapped_column(Document, default=dict)
    maximum: Mapped[dict[str, int]] = mapped_column(
        Document, default=dict, server_default=text("'{}'")
    )
    revision: Mapped[Amount] = mapped_column(default=1)
    modified_at: Mapped[Moment]


class UsageBucketRow(Base):
    """What a user has used in a project on one day (UTC): amounts times seconds.

    Amounts are in smallest units, and bytes of memory for a day are beyond what an
    integer holds, so that this is a floating-point number: it is looked at for whose
    turn it is, and nothing is ever taken from it. Purged users' and projects' rows
    stay, since they count for what these were in.
    """

    __tablename__ = "usage_buckets"
    __table_args__ = (Index("ix_usage_buckets_day", "day"),)

    group_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    domain_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    project_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    user_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    slot: Mapped[str] = mapped_column(String(128), primary_key=True)
    day: Mapped[date] = mapped_column(Date(), primary_key=True)
    seconds: Mapped[float] = mapped_column(Double())
