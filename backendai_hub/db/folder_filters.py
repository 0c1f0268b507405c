"""Which virtual folders somebody means: by a name, or by what a list is filtered by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    exists,
    or_,
    select,
)

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.names import fold
from backendai_hub.core.sessions import TERMINAL
from backendai_hub.core.vfolders import (
    NAMED,
    FolderStatus,
)
from backendai_hub.db.tables import (
    DomainRow,
    FolderRow,
    SessionMountRow,
    SessionRow,
    UserRow,
)


def choose_folder(
    rows: Sequence[Mapping[str, Any]], reference: str, user_id: str
) -> Mapping[str, Any]:
    """Choose what a person means by a name: their own first, the trash last.

    Raises :class:`InvalidRequestError` where that does not tell.
    """
    rest = rows
    for keep in (
        lambda row: row["status"] in NAMED,
        lambda row: row["user_id"] == user_id,
    ):
        rest = [row for row in rest if keep(row)] or rest
    if len(rest) == 1:
        return rest[0]
    ids = ", ".join(sorted(str(row["id"]) for row in rest)[:5])
    raise InvalidRequestError(
        f"there are {len(rest)} folders named {reference[:64]!r}; say which by its id:"
        f" {ids}"
    )


def _named(row: Any, values: Sequence[Any]) -> Any:
    keys = [fold(str(value)) for value in values]
    return select(row.id).where(row.name_key.in_(keys) | row.id.in_(keys))


def _has_status(values: Sequence[Any]) -> Any:
    """Compare what is shown: what is ready is mounted while a session has it."""
    wanted = {str(value).strip().lower() for value in values}
    stored = wanted - {FolderStatus.MOUNTED, FolderStatus.READY}
    seen: list[Any] = [FolderRow.status.in_(sorted(stored))]
    mounted = exists().where(
        SessionMountRow.folder_id == FolderRow.id,
        SessionRow.id == SessionMountRow.session_id,
        SessionRow.status.not_in([str(s) for s in TERMINAL]),
    )
    ready = FolderRow.status == str(FolderStatus.READY)
    if FolderStatus.MOUNTED in wanted:
        seen.append(ready & mounted)
    if FolderStatus.READY in wanted:
        seen.append(ready & ~mounted)
    return or_(*seen)


FILTERS: Final[Mapping[str, Any]] = {
    "user": lambda values: FolderRow.user_id.in_(_named(UserRow, values)),
    "domain": lambda values: FolderRow.domain_id.in_(_named(DomainRow, values)),
    "status": _has_status,
}
"""Filters of folders that are no plain comparison."""
