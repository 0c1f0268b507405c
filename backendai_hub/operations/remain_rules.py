"""Which of what lies on storage hosts belongs to nobody, and who removes it.

What nobody can miss (halves of uploads, copies and removals, scopes of people who are
gone) goes alone; folders and what was thrown away in them may be somebody's data: they
go when an administrator says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, Literal

from backendai_hub.db.storage_remains import Known, Thing, is_unmanaged
from backendai_hub.storage.places import TASK

SCOPE: Final = "scope"
MISSING: Final = "missing"
_LONGEST: Final = 256

REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "folder": "no folder has this id any more",
        "trash": "the folder that this was thrown away in is gone",
        "upload": "there is no such upload any more",
        "removing": "its removal was not ended",
        "cloning": "its copying was not ended",
        "staging": "it was not ended when the storage's worker was",
        "unknown": "the platform puts nothing here; look at it yourself",
        SCOPE: "its user or project is gone",
        MISSING: "the folder is not on the storage",
    }
)
UNMISSED: Final = frozenset({"upload", "removing", "cloning", "staging", SCOPE})
"""What is removed without asking: it was never complete, or is on its way out."""
REPAIRED: Final = UNMISSED | {"folder", "trash"}
"""What is removed when an administrator says so."""


def find_strange(things: Collection[Thing], known: Known) -> dict[Thing, str]:
    """Choose what nobody knows, with the reason in words."""
    there = {thing.name for thing in things if thing.kind == "folder"}
    strange = [thing for thing in things if not is_known(thing, known)]
    strange += [Thing(MISSING, one) for one in known.settled - there - known.busy]
    if not known.has_owner and not known.folders and not known.is_unmanaged:
        strange.append(Thing(SCOPE, ""))
    return {
        Thing(thing.kind, thing.name[:_LONGEST]): REASONS[thing.kind]
        for thing in strange
    }


def is_known(thing: Thing, known: Known) -> bool:
    """Tell whether a row tells of something."""
    alive = known.folders | known.busy
    if thing.kind == "upload":
        return thing.name in known.uploads
    if thing.kind in {"folder", "trash", "cloning"}:
        return thing.name in alive
    if thing.kind == "staging":
        return thing.name.startswith(TASK) and thing.name[len(TASK) :] in known.tasks
    if thing.kind == "removing":
        return thing.name.removesuffix(".trash") in alive
    return False


def choose_remover(thing: Thing, scope: str) -> Literal["alone", "repair", "no"]:
    """Tell who removes something: the platform alone, when that is said, or nobody.

    In an unmanaged folder only what has this platform's mark is looked at; but it is
    somebody else's folder, in which nothing goes unasked.
    """
    if thing.kind not in REPAIRED:
        return "no"
    alone = thing.kind in UNMISSED and not is_unmanaged(scope)
    return "alone" if alone else "repair"


def may_go(thing: Thing, scope: str, known: Known, *, repair: bool) -> bool:
    """Tell whether something is to be removed, once its time of grace is over.

    Without being asked nothing is touched in scopes that this platform has not made:
    somebody else may use the storage, too.
    """
    remover = choose_remover(thing, scope)
    if repair:
        return remover != "no"
    return remover == "alone" and (known.is_ours or known.has_owner)
