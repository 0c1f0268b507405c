"""The common verbs of every noun: list, read, create, change, purge.

What a noun demands beyond its fields is in its rules (:mod:`.noun_rules`); who may do
what is in the one access matrix. What somebody may not see is not found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy.exc import IntegrityError

from backendai_hub.core.access import Principal, Reach, Target, can, reach
from backendai_hub.core.audit import Act
from backendai_hub.core.cursors import read_cursor, write_cursor
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InUseError,
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
    PreconditionFailedError,
)
from backendai_hub.core.fields import (
    Flag,
    Number,
    Rank,
    Reference,
    fields_of,
    given_fields,
    read_fields,
)
from backendai_hub.core.names import suggest
from backendai_hub.core.nouns import Noun, Verb, noun_of
from backendai_hub.db import nouns
from backendai_hub.db.engine import Transaction
from backendai_hub.db.nouns import Item, ListFilter
from backendai_hub.operations.noun_rules import rules_of
from backendai_hub.operations.platform import Platform

MOST_PER_PAGE = 200
MOST_PER_FILTER = 100
_PAGING = {"limit", "after", "order", "search"}
_NUMBERS = {"rank", "size_bytes", "used_bytes"}
"""Fields that lists are ordered by and that are no text."""


# --- reading ---------------------------------------------------------------------


async def list_nouns(
    platform: Platform, principal: Principal, noun: Noun, query: Mapping[str, str]
) -> tuple[list[Any], str | None]:
    """Return one page of what the caller may see, and the next page's cursor.

    *query* holds ``limit``, ``after``, ``order`` (``-`` before it: descending),
    ``search``, and any filter of the noun, several values of which are separated by
    commas.
    """
    wanted = _read_query(noun, query)
    sight = nouns.in_sight(noun, principal, reach(principal, noun.action(Verb.READ)))
    more_than = msgspec.structs.replace(wanted, limit=wanted.limit + 1)
    async with platform.database.read() as connection:
        found = await nouns.list_items(connection, noun, more_than, sight)
        page = found[: wanted.limit]
        rules = rules_of(noun)
        shown = await rules.present(connection, noun, page)
        shown = await rules.personalise(platform, connection, principal, shown)
    following = None
    if len(found) > wanted.limit:
        following = _write_cursor(wanted.order, page[-1])
    return shown, following


def _read_query(noun: Noun, query: Mapping[str, str]) -> ListFilter:
    allowed = {*_PAGING, *noun.filters}
    for name in query:
        if name not in allowed:
            raise MalformedRequestError(
                f"{name[:64]!r} is not a parameter here{suggest(name, allowed)}; use"
                f" {', '.join(sorted(allowed))}"
            )
    order = query.get("order", noun.sorts[0])
    field = order.removeprefix("-")
    if field not in noun.sorts:
        raise InvalidRequestError(
            f"order: {order[:64]!r} is not one of {', '.join(noun.sorts)}, with '-'"
            " before it for the other direction"
        )
    limit = query.get("limit", "20")
    digits = limit.isascii() and limit.isdigit() and len(limit) <= 3
    if not (digits and 1 <= int(limit) <= MOST_PER_PAGE):
        raise InvalidRequestError(
            f"limit: {limit[:16]!r} is not between 1 and {MOST_PER_PAGE}"
        )
    after = query.get("after")
    return ListFilter(
        equal={
            name: _read_values(noun, name, query[name])
            for name in noun.filters
            if name in query
        },
        search=query.get("search", "")[:256],
        order=field,
        descending=order.startswith("-"),
        after=None if after is None else _read_cursor(after, field),
        limit=int(limit),
    )


def _read_values(noun: Noun, name: str, text: str) -> list[Any]:
    values = text.split(",")
    if len(values) > MOST_PER_FILTER:
        raise InvalidRequestError(
            f"{name}: {len(values)} values; the most is {MOST_PER_FILTER}"
        )
    return [_read_filter(noun, name, value) for value in values]


def _read_filter(noun: Noun, name: str, text: str) -> Any:
    declared = fields_of(noun.shown).get(name)
    if declared is not None and isinstance(declared.kind, Flag):
        words = {"true": True, "yes": True, "1": True}
        words |= {"false": False, "no": False, "0": False}
        try:
            return words[text.strip().lower()]
        except KeyError:
            raise InvalidRequestError(
                f"{name}: {text[:32]!r} is neither 'true' nor 'false'"
            ) from None
    if declared is not None and isinstance(declared.kind, Number):
        try:
            return int(text)
        except ValueError:
            raise InvalidRequestError(f"{name}: {text[:32]!r} is no number") from None
    return text.strip()


def _write_cursor(order: str, item: Item) -> str:
    value = item["name_key" if order == "name" else order]
    if isinstance(value, datetime):
        value = value.isoformat()
    return write_cursor(order, value, item["id"])


def _read_cursor(cursor: str, order: str) -> tuple[Any, str]:
    refusal = MalformedRequestError(
        "after: not a cursor of this list in this order; leave it out for the first"
        " page"
    )
    kind, value, item_id = read_cursor(cursor, tuple[str, str | int, str])
    if kind != order or isinstance(value, int) != (order in _NUMBERS):
        raise refusal
    if not order.endswith("_at"):
        return value, item_id
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise refusal from None
    if moment.utcoffset() != timedelta(0):
        raise refusal
    return moment, item_id


async def read_noun(
    platform: Platform, principal: Principal, noun: Noun, reference: str
) -> Any:
    """Return one item the caller may see."""
    async with platform.database.read() as connection:
        item = await find_visible(connection, principal, noun, reference)
        rules = rules_of(noun)
        shown = await rules.present(connection, noun, [item])
        return (await rules.personalise(platform, connection, principal, shown))[0]


async def find_visible(
    connection: Any,
    principal: Principal,
    noun: Noun,
    reference: str,
    *,
    lock: bool = False,
    least: Reach | None = None,
) -> Item:
    """Find an item the caller may see; raises :class:`NotFoundError` otherwise.

    *least* is how far they see where their credential does not let them read at all.
    """
    extent = reach(principal, noun.action(Verb.READ)) or least
    sight = nouns.in_sight(noun, principal, extent)
    item = None
    if "\0" not in reference:
        found = await nouns.find_items(
            connection,
            noun,
            reference,
            domain_id=principal.domain_id,
            sight=sight,
            lock=lock,
        )
        item = nouns.choose_item(noun, found, reference, principal.id)
    if item is None:
        raise NotFoundError(f"there is no {noun.name} {reference[:64]!r}")
    return item


async def require(
    connection: Any, principal: Principal, noun: Noun, item: Item, action: str
) -> Target:
    """See that the caller may do *action* to an item they see."""
    target = await nouns.target_of(connection, noun, item)
    if not can(principal, action, target):
        raise ForbiddenError(f"you may see this {noun.name}, but not do {action} to it")
    return target


# --- writing ---------------------------------------------------------------------


async def create_noun(
    platform: Platform,
    principal: Principal,
    noun: Noun,
    body: msgspec.Struct,
    *,
    also: Callable[[Transaction, Item], Awaitable[None]] | None = None,
) -> Any:
    """Create an item, and *also* what goes with it.

    Nothing is stored if anything is wrong with either.
    """
    given = given_fields(body)
    values = read_fields(noun.shown, given, change=False)
    rules = rules_of(noun)
    item_id = platform.new_id()
    try:
        async with platform.database.transaction() as tx:
            await tx.alone()
            columns = await _resolve(tx, principal, noun, values)
            columns = await rules.complete(platform, tx, principal, columns)
            target = rules.target(item_id, columns, principal)
            if not can(principal, noun.action(Verb.CREATE), target):
                raise ForbiddenError(f"you may not create such a {noun.name}")
            _check_rank(principal, noun, given)
            await rules.check(platform, tx, principal, None, columns)
            extra = await rules.create(platform, tx, noun, item_id, columns)
            item = await nouns.find_item(tx.connection, noun, item_id)
            if item is None:
                raise ConflictError(f"somebody has just made such a {noun.name}")
            shown = (await rules.present(tx.connection, noun, [item]))[0]
            tx.audit(_act(noun, Verb.CREATE, item, target, after=_public(shown)))
            if also is not None:
                await also(tx, item)
    except IntegrityError:
        name = str(values.get("name", ""))
        raise ConflictError(
            f"there is a {noun.name} named {name!r} already, perhaps in another"
            " spelling; choose another name"
            if name
            else f"there is such a {noun.name} already"
        ) from None
    platform.actors.clear()
    shown = msgspec.structs.replace(shown, **extra) if extra else shown
    return await rules.settle(platform, principal, noun, shown)


async def change_noun(
    platform: Platform,
    principal: Principal,
    noun: Noun,
    reference: str,
    body: msgspec.Struct,
    *,
    revision: int | None = None,
) -> Any:
    """Change fields of an item, if *revision* is still the present one."""
    given = given_fields(body)
    values = read_fields(noun.shown, given, change=True)
    rules = rules_of(noun)
    try:
        async with platform.database.transaction() as tx:
            await tx.alone()
            item = await find_visible(tx.connection, principal, noun, reference)
            target = await require(
                tx.connection, principal, noun, item, noun.action(Verb.UPDATE)
            )
            if revision is not None and revision != item["revision"]:
                raise await _stale(tx, noun, item, revision)
            columns = await _resolve(tx, principal, noun, values)
            changes = {c: v for c, v in columns.items() if item[c] != v}
            changed_fields = {
                name: v
                for name, v in given.items()
                if name + fields_of(noun.shown)[name].kind.column in changes
            }
            _check_rank(principal, noun, changed_fields)
            before = (await rules.present(tx.connection, noun, [item]))[0]
            if changes:
                await rules.check(platform, tx, principal, item, changes)
                changes = await rules.change(platform, tx, noun, item, changes)
                if not await nouns.change_item(tx, noun, item, changes):
                    raise await _stale(tx, noun, item, item["revision"])
            now = await nouns.find_item(tx.connection, noun, item["id"])
            assert now is not None
            shown = (await rules.present(tx.connection, noun, [now]))[0]
            old, new = _difference(before, shown)
            tx.audit(_act(noun, Verb.UPDATE, item, target, before=old, after=new))
            tx.wake("scheduler")
            (shown,) = await rules.personalise(
                platform, tx.connection, principal, [shown]
            )
    except IntegrityError:
        raise ConflictError(
            f"another {noun.name} has that name already, perhaps in another spelling"
        ) from None
    platform.actors.clear()
    return shown


async def purge_noun(
    platform: Platform,
    principal: Principal,
    noun: Noun,
    reference: str,
    *,
    revision: int | None = None,
    also: Collection[str] = (),
) -> None:
    """Remove an item for good; raises :class:`InUseError` listing what needs it.

    With what *also* names, of what the noun offers there.
    """
    rules = rules_of(noun)
    unknown = sorted({*also} - {*noun.purge_also})
    if unknown:
        raise InvalidRequestError(
            f"also: there is no {unknown[0][:64]!r} to remove with a {noun.name}; there"
            f" are {', '.join(noun.purge_also) or 'none'}"
        )
    try:
        async with platform.database.transaction() as tx:
            await tx.alone()
            item = await find_visible(tx.connection, principal, noun, reference)
            target = await require(
                tx.connection, principal, noun, item, noun.action(Verb.PURGE)
            )
            if revision is not None and revision != item["revision"]:
                raise await _stale(tx, noun, item, revision)
            shown = (await rules.present(tx.connection, noun, [item]))[0]
            for thing in also:
                await rules.purge_also(platform, tx, item, thing)
            await rules.purge(platform, tx, principal, noun, item)
            tx.audit(_act(noun, Verb.PURGE, item, target, before=_public(shown)))
    except IntegrityError:
        raise InUseError(
            f"something has just begun to use the {noun.name} {reference[:64]!r}; look"
            " again what needs it"
        ) from None
    platform.actors.clear()


async def _stale(
    tx: Transaction, noun: Noun, item: Item, revision: int
) -> PreconditionFailedError:
    """Say who has changed what since *revision*."""
    told = await rules_of(noun).tell_changes(tx.connection, item, revision)
    return PreconditionFailedError(
        f"this {noun.name} has changed since revision {revision}: it is at"
        f" {item['revision']} now{told}; read it again and repeat your change",
        revision=item["revision"],
    )


async def _resolve(
    tx: Transaction, principal: Principal, noun: Noun, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return columns: what is referred to, by id. What is out of sight is unknown."""
    columns: dict[str, Any] = {}
    for name, value in values.items():
        kind = fields_of(noun.shown)[name].kind
        if not isinstance(kind, Reference) or value is None:
            columns[name + kind.column] = value
            continue
        other = noun_of(kind.noun)
        try:
            # What is one's own may be named with any credential.
            found = await find_visible(
                tx.connection, principal, other, value, least=Reach.OWN
            )
        except NotFoundError as error:
            raise InvalidRequestError(f"{name}: {error.message}") from None
        columns[name + kind.column] = found["id"]
    return columns


def _check_rank(principal: Principal, noun: Noun, given: Mapping[str, Any]) -> None:
    """Refuse fields that are above the caller's rank."""
    extent = reach(principal, noun.action(Verb.UPDATE)) or reach(
        principal, noun.action(Verb.CREATE)
    )
    rank = {
        Reach.ALL: Rank.SUPERADMIN,
        Reach.DOMAIN: Rank.DOMAIN_ADMIN,
        Reach.OWN: Rank.ANYBODY,
        None: Rank.ANYBODY,
    }[extent]
    order = list(Rank)
    for name in given:
        needed = fields_of(noun.shown)[name].by
        if order.index(needed) > order.index(rank):
            raise ForbiddenError(f"{name}: only a {needed} may set this")


def _public(shown: Any) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(shown)
    shown_once = {"secret", "password", "wsproxy_api_token"}
    public = {k: v for k, v in document.items() if k not in shown_once}
    if script := public.get("bootstrap_script"):
        # It may hold secrets, as dotfiles may: that it changed is enough.
        digest = hashlib.sha256(script.encode()).hexdigest()[:12]
        public["bootstrap_script"] = f"{len(script)} characters, {digest}"
    return public


def _difference(before: Any, after: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields that differ, as they were and as they are."""
    old, new = _public(before), _public(after)
    names = [n for n in new if old.get(n) != new[n] and n != "modified_at"]
    return {n: old.get(n) for n in names}, {n: new[n] for n in names}


def _act(
    noun: Noun,
    verb: Verb,
    item: Item,
    target: Target,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> Act:
    return Act(
        action=noun.action(verb),
        object_kind=noun.name,
        object_id=item["id"],
        object_name=item["name"],
        domain_id=target.domain_id,
        owner_id=target.owner_id if noun.name in {"user", "keypair"} else None,
        before=before,
        after=after,
    )
