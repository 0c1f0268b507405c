"""Every route with every credential: what each is answered, as one table.

``python -m backendai_hub.handlers.matrix`` writes it where it is committed;
``--check`` fails if what is committed differs. Tests ask a running service for every
cell of the committed table, so that a route that is not in it cannot be merged.

Cells: ``yes`` lets in, ``shown`` and ``hidden`` say whether a list holds the thing;
``401``, ``403`` and ``404`` refuse; ``–`` is nothing that could be asked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from backendai_hub.core.access import (
    ADMIN_SCOPES,
    SESSION_SCOPES,
    USER_SCOPES,
    Action,
    Caller,
    Principal,
    Reach,
    is_for_anybody,
    reach,
)
from backendai_hub.core.nouns import NOUNS
from backendai_hub.handlers.base import APIHandler, Operation
from backendai_hub.handlers.routes import AGENTS, API
from backendai_hub.handlers.spec import list_operations

TARGET: Final = Path("docs/source/reference/generated/role-matrix.md")


class Relation(StrEnum):
    """Whose the thing is that is asked for."""

    OWN = "own"
    MATE = "other project"
    FOREIGN = "other domain"


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of credential, asking for one kind of thing."""

    title: str
    caller: Caller
    scopes: frozenset[str] = frozenset()
    relation: Relation = Relation.OWN


_USER, _ADMIN = USER_SCOPES, USER_SCOPES | ADMIN_SCOPES
COLUMNS: Final = (
    Column(title="anonymous", caller=Caller.ANONYMOUS),
    Column(title="expired token", caller=Caller.ANONYMOUS),
    Column(title="session token: own", caller=Caller.USER, scopes=SESSION_SCOPES),
    Column(
        title="session token: other's",
        caller=Caller.USER,
        scopes=SESSION_SCOPES,
        relation=Relation.MATE,
    ),
    Column(
        title="superadmin's session token: other's",
        caller=Caller.SUPERADMIN,
        scopes=SESSION_SCOPES,
        relation=Relation.MATE,
    ),
    Column(title="user: own", caller=Caller.USER, scopes=_USER),
    Column(
        title="user: other project",
        caller=Caller.USER,
        scopes=_USER,
        relation=Relation.MATE,
    ),
    Column(
        title="user: other domain",
        caller=Caller.USER,
        scopes=_USER,
        relation=Relation.FOREIGN,
    ),
    Column(
        title="domain admin: own domain",
        caller=Caller.DOMAIN_ADMIN,
        scopes=_ADMIN,
        relation=Relation.MATE,
    ),
    Column(
        title="domain admin: other domain",
        caller=Caller.DOMAIN_ADMIN,
        scopes=_ADMIN,
        relation=Relation.FOREIGN,
    ),
    Column(
        title="superadmin",
        caller=Caller.SUPERADMIN,
        scopes=_ADMIN,
        relation=Relation.FOREIGN,
    ),
    Column(
        title="monitor",
        caller=Caller.MONITOR,
        scopes=_ADMIN,
        relation=Relation.FOREIGN,
    ),
    Column(title="spawner: own", caller=Caller.SPAWNER),
    Column(title="spawner: other's", caller=Caller.SPAWNER, relation=Relation.FOREIGN),
    Column(title="router", caller=Caller.ROUTER),
    Column(title="agent certificate", caller=Caller.AGENT),
)

READ_OF_PLACE: Final[Mapping[str, str]] = {
    **{noun.plural: f"{noun.name}:read" for noun in NOUNS},
    "sessions": str(Action.READ_SESSION),
    "accounts": "user:read",
}
"""Who sees what is kept below ``api/<place>/``."""


def address(path: str) -> tuple[str, str]:
    """Return where what a path names is kept, and the name of its parameter.

    Both are empty for a path that names nothing whose owner matters.
    """
    found = re.fullmatch(r"api/([a-z-]+)/\{([a-z_]+)\}(/.*)?", path)
    if found is None or found[1] not in READ_OF_PLACE:
        return "", ""
    return found[1], found[2]


def is_list(path: str, described: Operation) -> bool:
    """Tell whether a route lists things, each of which is shown or hidden."""
    place = path.removeprefix("api/")
    return described.method == "get" and place in READ_OF_PLACE


def answer(path: str, described: Operation, column: Column) -> str:
    """Say what a route answers to a kind of credential."""
    if path.startswith("agent/"):
        return _answer_node(described, column)
    if column.caller is Caller.AGENT:
        return "404"  # no route of people is on the nodes' listener
    return _answer_people(path, described, column)


def _answer_people(path: str, described: Operation, column: Column) -> str:
    asking = Principal(caller=column.caller, scopes=column.scopes)
    extent = reach(asking, described.action)
    if extent is None:
        return "401" if column.caller is Caller.ANONYMOUS else "403"
    if is_list(path, described):
        place = path.removeprefix("api/")
        return "shown" if _covers(place, extent, column.relation) else "hidden"
    place, _ = address(path)
    if not place or is_for_anybody(described.action):
        return "–" if _is_told(column) else "yes"
    seen = reach(asking, READ_OF_PLACE[place])
    if described.action == Action.READ_QUEUE:
        seen = seen or Reach.OWN  # one's own group may be named by any credential
    if not _covers(place, seen, column.relation):
        return "404"
    return "yes" if _covers(place, extent, column.relation) else "403"


def _answer_node(described: Operation, column: Column) -> str:
    """On the nodes' listener a certificate is what counts; tokens are nobody's."""
    caller = column.caller if column.caller is Caller.AGENT else Caller.ANONYMOUS
    if reach(Principal(caller=caller), described.action) is not None:
        return "yes"
    return "401"


def _is_told(column: Column) -> bool:
    """Tell whether a column before tells of the same credential already."""
    return any(
        c.caller is column.caller
        and c.scopes == column.scopes
        and COLUMNS.index(c) < COLUMNS.index(column)
        for c in COLUMNS
    )


def _covers(place: str, extent: Reach | None, relation: Relation) -> bool:
    if extent is None:
        return False
    if place == "domains" and relation is Relation.MATE:
        relation = Relation.OWN  # another project is in the same domain
    if place == "images" and extent is Reach.DOMAIN:
        extent = Reach.OWN  # what somebody has made for themselves is no domain's
    return {
        Reach.ALL: True,
        Reach.DOMAIN: relation is not Relation.FOREIGN,
        Reach.OWN: relation is Relation.OWN,
    }[extent]


def build() -> str:
    """Build the table of every route."""
    handlers: tuple[type[APIHandler], ...] = (*API, *AGENTS)
    routes = sorted(list_operations(handlers), key=lambda r: (r[0], r[1].method))
    lines = [
        _row("Route", *(column.title for column in COLUMNS)),
        _row("---", *("---" for _ in COLUMNS)),
        *(
            _row(
                f"`{described.method.upper()} {path}`",
                *(answer(path, described, column) for column in COLUMNS),
            )
            for path, described in routes
        ),
    ]
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def read_table(text: str) -> dict[str, dict[str, str]]:
    """Read a written table: answers by column, by route such as ``GET api/me``."""
    head, _, *rows = (
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.strip().splitlines()
    )
    return {
        row[0].strip("`"): dict(zip(head[1:], row[1:], strict=True)) for row in rows
    }


def main(arguments: list[str]) -> int:
    """Write the committed table, or with ``--check`` compare it."""
    text = build()
    if "--check" not in arguments:
        TARGET.write_text(text, "utf-8")
        return 0
    present = TARGET.read_text("utf-8") if TARGET.is_file() else ""
    if present == text:
        return 0
    ours, theirs = text.splitlines(), present.splitlines()
    told = [f"+ {line}" for line in ours if line not in theirs]
    told += [f"- {line}" for line in theirs if line not in ours]
    sys.stderr.write(
        "\n".join(
            [
                *told,
                f"{TARGET} is not what routes and access table say; look at each line"
                " above, then run 'python -m backendai_hub.handlers.matrix'",
                "",
            ]
        )
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
