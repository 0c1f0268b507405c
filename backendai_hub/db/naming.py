"""Naming rows one by one in a statement, as far as databases take that.

PostgreSQL takes 65,535 parameters, SQLite by default 32,766.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import ColumnElement, true
from sqlalchemy.orm import InstrumentedAttribute

MOST_NAMED: Final = 10_000


def is_named(
    column: InstrumentedAttribute[Any], ids: Collection[str]
) -> ColumnElement[bool]:
    """Ask for the rows with these *ids*; for all of them if they are too many to name.

    Whoever reads passes over rows that were not asked for.
    """
    return column.in_(sorted(ids)) if len(ids) <= MOST_NAMED else true()
