"""Bodies and answers that are made for each noun."""

from __future__ import annotations

from functools import cache

import msgspec

from backendai_hub.core.nouns import Noun, Verb


class BulkResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one of many ended; ``error`` and ``code`` say why, if not well.

    ``verb`` and ``index`` say which entry of the request it was; ``status`` is what
    the request would have been answered with on its own; ``secret`` is shown once.
    """

    verb: Verb
    index: int
    status: int
    id: str | None = None
    name: str | None = None
    secret: str | None = None
    error: str | None = None
    code: str | None = None


class BulkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How each of many ended; some may have failed while others went well."""

    succeeded: int
    failed: int
    results: list[BulkResult]


@cache
def page_type(noun: Noun) -> type[msgspec.Struct]:
    """Make the answer of a list: a page of items, and the next page's cursor."""
    made = msgspec.defstruct(
        f"{noun.shown.__name__}Page",
        [("items", list[noun.shown]), ("next", str | None, None)],  # type: ignore[name-defined]
        frozen=True,
        kw_only=True,
    )
    made.__doc__ = "One page; ``next`` is the cursor of the following page."
    return made


@cache
def bulk_type(noun: Noun) -> type[msgspec.Struct]:
    """Make the body that does many things to items of one noun."""
    entry = msgspec.defstruct(
        f"{noun.shown.__name__}ChangeEntry",
        [("reference", str), ("fields", noun.change_type)],
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    entry.__doc__ = "Which item to change, and how."
    wanted: list[tuple[str, object, object]] = []
    if Verb.CREATE in noun.verbs:
        creates = list[noun.create_type]  # type: ignore[name-defined]
        wanted.append(("create", creates, msgspec.field(default_factory=list)))
    wanted.append(("update", list[entry], msgspec.field(default_factory=list)))  # type: ignore[valid-type]
    if Verb.PURGE in noun.verbs:
        wanted.append(("purge", list[str], msgspec.field(default_factory=list)))
    made = msgspec.defstruct(
        f"{noun.shown.__name__}Bulk",
        wanted,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    made.__doc__ = "Many items to make, change and remove; each ends for itself."
    return made
