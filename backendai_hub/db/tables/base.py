"""The declarative base: named constraints, UTC times, and the column types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from sqlalchemy import JSON, BigInteger, DateTime, MetaData, String
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import DeclarativeBase, mapped_column
from sqlalchemy.types import TypeDecorator

_NAMING = {
    "ix": "ix_%(column_0_N_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC time on both engines (SQLite keeps none of the zone)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> Any:
        """Refuse naive times; keep UTC."""
        del dialect
        if value is not None and value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Any) -> datetime | None:
        """Give every time its zone back."""
        del dialect
        if not isinstance(value, datetime):
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value


BigKey = BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
Document = JSON().with_variant(postgresql.JSONB(), "postgresql")

Id = Annotated[str, mapped_column(String(36))]
Key = Annotated[str, mapped_column(String(36), primary_key=True)]
Name = Annotated[str, mapped_column(String(256))]
Short = Annotated[str, mapped_column(String(16))]
Moment = Annotated[datetime, mapped_column(UtcTime())]
Amount = Annotated[int, mapped_column(BigInteger())]


class Base(DeclarativeBase):
    """The root of all tables."""

    metadata = MetaData(naming_convention=_NAMING)
