"""What passwords have to be, and lists of accounts to be made at once."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.names import fold, suggest

LEAST_PASSWORD: Final = 8
MOST_PASSWORD: Final = 1024
MOST_NUMBERED: Final = 100
"""Of one series: more people than that come with a list of their names."""
MOST_ROWS: Final = 500
"""Of one table: making each account takes a moment, and the caller waits for all."""

COLUMNS: Final = ("name", "email", "full_name", "domain", "project", "role")
_OTHER_WORDS: Final = {
    "username": "name",
    "user_name": "name",
    "full name": "full_name",
}
_NAME: Final = re.compile(r"\w[\w.@-]{0,63}")


def read_account_name(given: str) -> str:
    """Return the one spelling of an account's name.

    It is the name JupyterHub knows, so that *Ada* and *ada* are one person there, too.
    Raises :class:`InvalidRequestError`.
    """
    name = fold(given)
    if _NAME.fullmatch(name) is None:
        raise InvalidRequestError(
            f"name: {name[:64]!r} will not do; use 1 to 64 letters, digits, '.', '_',"
            " '-' or '@', beginning with a letter or digit"
        )
    return name


def check_password(field: str, new: str, *, old: str | None = None) -> None:
    """Refuse a password that is too weak, absurdly long, or the old one.

    Raises :class:`InvalidRequestError`, which says everything that is missing.
    """
    if len(new) > MOST_PASSWORD:
        raise InvalidRequestError(f"{field}: use at most {MOST_PASSWORD} characters")
    missing = []
    if len(new) < LEAST_PASSWORD:
        missing.append(f"{LEAST_PASSWORD - len(new)} more characters")
    if not any(c.isalpha() for c in new):
        missing.append("a letter")
    if not any(c.isdecimal() for c in new):
        missing.append("a digit")
    if all(c.isalnum() for c in new):
        missing.append("a special character, such as '-' or a space")
    if missing:
        raise InvalidRequestError(
            f"{field}: use at least {LEAST_PASSWORD} characters, among them a letter, a"
            f" digit and a special character; missing: {', '.join(missing)}"
        )
    if new == old:
        raise InvalidRequestError(f"{field}: choose another one than the present")


def number_names(prefix: str, count: int, suffix: str = "") -> list[str]:
    """Return *count* names whose numbers are as wide as the last one's.

    Raises :class:`InvalidRequestError` for a count that is none.
    """
    if not 1 <= count <= MOST_NUMBERED:
        raise InvalidRequestError(
            f"count: {count} is not between 1 and {MOST_NUMBERED}; for more people send"
            " a table of their names"
        )
    width = len(str(count))
    return [f"{prefix}{n:0{width}}{suffix}" for n in range(1, count + 1)]


class TableRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a table of accounts: its line, and what it says or why it is wrong."""

    line: int
    values: Mapping[str, str] = {}
    error: str | None = None


def read_table(text: str) -> list[TableRow]:
    """Read a table of accounts; a wrong row is told with its line, beside the others.

    The first line names the columns. Empty cells say nothing, empty lines are left
    out. Raises :class:`InvalidRequestError` if the table as a whole cannot be read.
    """
    text = text.removeprefix("\ufeff")
    first = text.partition("\n")[0]
    delimiter = ";" if ";" in first and "," not in first else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = _read_header(next(reader, []))
        rows = [
            _read_row(reader.line_num, columns, cells)
            for cells in reader
            if any(cell.strip() for cell in cells)
        ]
    except csv.Error as error:
        raise InvalidRequestError(
            f"csv: line {reader.line_num} cannot be read: {error}"
        ) from None
    if len(rows) > MOST_ROWS:
        raise InvalidRequestError(
            f"csv: {len(rows)} rows; send at most {MOST_ROWS} at once"
        )
    return rows


def _read_header(cells: Sequence[str]) -> list[str]:
    columns = []
    for cell in cells:
        word = cell.strip().lower()
        name = _OTHER_WORDS.get(word, word)
        if name not in COLUMNS:
            raise InvalidRequestError(
                f"csv: {cell[:64]!r} is not a column{suggest(name, COLUMNS)}; the first"
                f" line names some of {', '.join(COLUMNS)}"
            )
        if name in columns:
            raise InvalidRequestError(f"csv: the column {name} is there twice")
        columns.append(name)
    if "name" not in columns:
        raise InvalidRequestError(
            "csv: there is no column 'name'; the first line names the columns"
        )
    return columns


def _read_row(line: int, columns: Sequence[str], cells: Sequence[str]) -> TableRow:
    if len(cells) > len(columns):
        return TableRow(
            line=line,
            error=f"{len(cells)} cells in a table of {len(columns)} columns; put '\"'"
            " around a cell that holds the delimiter",
        )
    values = {
        name: cell.strip()
        for name, cell in zip(columns, cells, strict=False)
        if cell.strip()
    }
    if "name" not in values:
        return TableRow(line=line, error="there is no name in this row")
    return TableRow(line=line, values=values)
