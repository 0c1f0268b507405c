"""Reading and writing nouns: the same few statements for all of them.

An item is a mapping of its columns, in stored form. References are stored by id; for
showing, each is read together with the name of what it refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import (
    Select,
    and_,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import aliased

from backendai_hub.core.access import Principal, Reach, Target
from backendai_hub.core.fields import Reference, fields_of
from backendai_hub.core.ids import is_id
from backendai_hub.core.names import fold
from backendai_hub.core.nouns import Noun, noun_of
from backendai_hub.core.times import format_time
from backendai_hub.db import folder_filters, folder_rights
from backendai_hub.db.engine import Transaction
from backendai_hub.db.images import choose_image
from backendai_hub.db.images import named as named_image
from backendai_hub.db.ledger import insert_ignore
from backendai_hub.db.tables import (
    DomainRow,
    FolderRow,
    ImageRow,
    KeypairPolicyRow,
    KeypairRow,
    PresetRow,
    ProjectPolicyRow,
    ProjectRow,
    RegistryRow,
    ReservationRow,
    ResourceGroupAccessRow,
    ResourceGroupRow,
    SlotTypeRow,
    UserPolicyRow,
    UserRow,
)

Item = Mapping[str, Any]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Where a noun is kept, and how its owner and domain are found.

    ``owner`` is whose it is: an id that its owners *hold*. ``domain`` is the domain it
    belongs to; a noun of the whole site has none. ``shared`` says what a person may
    see although it belongs to nobody in particular, ``private`` whose only it is, and
    ``also`` what one person in particular may see besides. ``equal`` are filters that
    are no plain comparison. Where several may have one name, ``rivals`` chooses what a
    person means by it, or refuses.
    """

    row: Any
    owner: Any
    domain: Any = None
    shared: Any = None
    private: Any = None
    also: Callable[[Principal], Any] | None = None
    equal: Mapping[str, Callable[[Sequence[Any]], Any]] = {}
    rivals: Callable[[Sequence[Item], str, str], Item] | None = None


def _domain_of_user(user_id: Any) -> Any:
    return select(UserRow.domain_id).where(UserRow.id == user_id).scalar_subquery()


_TABLES: Mapping[str, Table] = {
    "domain": Table(row=DomainRow, owner=DomainRow.id, domain=DomainRow.id),
    "project": Table(row=ProjectRow, owner=ProjectRow.id, domain=ProjectRow.domain_id),
    "user": Table(row=UserRow, owner=UserRow.id, domain=UserRow.domain_id),
    "keypair": Table(
        row=KeypairRow,
        owner=KeypairRow.user_id,
        domain=_domain_of_user(KeypairRow.user_id),
    ),
    "keypair-policy": Table(row=KeypairPolicyRow, owner=KeypairPolicyRow.id),
    "user-policy": Table(row=UserPolicyRow, owner=UserPolicyRow.id),
    "project-policy": Table(row=ProjectPolicyRow, owner=ProjectPolicyRow.id),
    "resource-group": Table(row=ResourceGroupRow, owner=ResourceGroupRow.id),
    "preset": Table(
        row=PresetRow,
        owner=PresetRow.resource_group_id,
        shared=PresetRow.resource_group_id.is_(None),
    ),
    "reservation": Table(row=ReservationRow, owner=ReservationRow.id),
    "slot-type": Table(row=SlotTypeRow, owner=SlotTypeRow.id),
    "registry": Table(row=RegistryRow, owner=RegistryRow.id),
    "image": Table(
        row=ImageRow,
        owner=ImageRow.registry_id,
        private=ImageRow.owner_id,
        rivals=lambda rows, reference, _: choose_image(
            list(map(dict, rows)), reference
        ),
    ),
    "folder": Table(
        row=FolderRow,
        owner=FolderRow.owner_id,
        domain=FolderRow.domain_id,
        also=lambda principal: or_(
            folder_rights.is_given_to(principal.id),
            folder_rights.is_in_store_of(principal.domain_id),
        ),
        equal=folder_filters.FILTERS,
        rivals=folder_filters.choose_folder,
    ),
}


def table_of(noun: Noun) -> Table:
    """Return where *noun* is kept."""
    return _TABLES[noun.name]


def tables_of(noun: Noun) -> frozenset[str]:
    """Name the tables that *noun* is read from: its own, and those of what it names."""
    others = (noun_of(reference.noun) for reference in _references(noun).values())
    rows = (table_of(each).row for each in (noun, *others))
    return frozenset(str(row.__tablename__) for row in rows)


def _references(noun: Noun) -> dict[str, Reference]:
    return {
        name: declared.kind
        for name, declared in fields_of(noun.shown).items()
        if isinstance(declared.kind, Reference)
    }


@cache
def _query(name: str) -> Select[Any]:
    """Build the statement that reads items with the names of what they refer to."""
    noun = noun_of(name)
    row = table_of(noun).row
    query = select(row.__table__)
    for field, reference in _references(noun).items():
        other = aliased(table_of(noun_of(reference.noun)).row, name=f"of_{field}")
        query = query.outerjoin(other, other.id == getattr(row, f"{field}_id"))
        query = query.add_columns(other.name.label(f"{field}__name"))
    return query


def in_sight(noun: Noun, principal: Principal, extent: Reach | None) -> Any:
    """Build the condition that *principal* may do something of *extent* to a row."""
    table = table_of(noun)
    if extent is None:
        return false()
    if extent is Reach.ALL:
        return true()
    own = table.owner.in_(sorted(principal.holds))
    if table.private is not None:
        own = own & (table.private.is_(None) | (table.private == principal.id))
    seen = [own]
    if table.shared is not None:
        seen.append(table.shared)
    if table.also is not None:
        seen.append(table.also(principal))
    if extent is Reach.DOMAIN:
        seen.append(_in_domain(noun, principal.domain_id))
    return or_(*seen)


def _in_domain(noun: Noun, domain_id: str) -> Any:
    table = table_of(noun)
    if noun.name in {"resource-group", "preset"}:
        return table.owner.in_(_groups_of_domain(domain_id))
    return false() if table.domain is None else table.domain == domain_id


def _groups_of_domain(domain_id: str) -> Any:
    projects = select(ProjectRow.id).where(ProjectRow.domain_id == domain_id)
    keypairs = (
        select(KeypairRow.id)
        .join(UserRow, UserRow.id == KeypairRow.user_id)
        .where(UserRow.domain_id == domain_id)
    )
    target = ResourceGroupAccessRow.target_id
    return select(ResourceGroupAccessRow.group_id).where(
        or_(target == domain_id, target.in_(projects), target.in_(keypairs))
    )


def _named(noun: Noun, reference: str, domain_id: str) -> Any:
    """Build the condition that a row is what *reference* says.

    An id, or a name; ``domain:name`` for what is named inside a domain, where a bare
    name means one's own domain.
    """
    if noun.name == "image":
        return named_image(reference)
    row = table_of(noun).row
    key = fold(reference)
    if is_id(key):
        return or_(row.id == key, row.name_key == key)
    if noun.name != "project":
        return row.name_key == key
    domain, colon, name = reference.partition(":")
    if not colon:
        return and_(row.name_key == key, row.domain_id == domain_id)
    of_domain = select(DomainRow.id).where(DomainRow.name_key == fold(domain))
    return and_(
        row.name_key == fold(name), row.domain_id == of_domain.scalar_subquery()
    )


async def find_item(
    connection: AsyncConnection,
    noun: Noun,
    reference: str,
    *,
    domain_id: str = "",
    sight: Any = None,
    lock: bool = False,
) -> Item | None:
    """Find one item by id or name, if it is in sight.

    Raises :class:`InvalidRequestError` for a name that could mean several.
    """
    rows = await find_items(
        connection, noun, reference, domain_id=domain_id, sight=sight, lock=lock
    )
    return choose_item(noun, rows, reference)


async def find_items(
    connection: AsyncConnection,
    noun: Noun,
    reference: str,
    *,
    domain_id: str = "",
    sight: Any = None,
    lock: bool = False,
) -> list[Item]:
    """Find all that an id or a name could mean: mostly one, or none."""
    query = _query(noun.name).where(_named(noun, reference, domain_id))
    if sight is not None:
        query = query.where(sight)
    if lock:
        query = query.with_for_update(of=table_of(noun).row)
    return [dict(row) for row in (await connection.execute(query)).mappings()]


def choose_item(
    noun: Noun, rows: Sequence[Item], reference: str, user_id: str = ""
) -> Item | None:
    """Choose what somebody means; raises :class:`InvalidRequestError` if unclear."""
    rivals = table_of(noun).rivals
    if len(rows) > 1 and rivals is not None:
        return rivals(rows, reference, user_id)
    return rows[0] if rows else None


class ListFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which items a list shows, from where, and in which order."""

    equal: Mapping[str, Sequence[Any]] = {}
    search: str = ""
    order: str = "name"
    descending: bool = False
    after: tuple[Any, str] | None = None
    limit: int = 20


async def list_items(
    connection: AsyncConnection, noun: Noun, wanted: ListFilter, sight: Any
) -> list[Item]:
    """Read one page (keyset: never an offset)."""
    row = table_of(noun).row
    query = _query(noun.name).where(sight)
    for field, values in wanted.equal.items():
        query = query.where(_equal(noun, field, values))
    if wanted.search:
        query = query.where(_contains(row, wanted.search))
    # Names are ordered as they are compared, alike on every database.
    column = row.name_key if wanted.order == "name" else getattr(row, wanted.order)
    if wanted.after is not None:
        value, item_id = wanted.after
        beyond = column < value if wanted.descending else column > value
        tie = row.id < item_id if wanted.descending else row.id > item_id
        query = query.where(or_(beyond, and_(column == value, tie)))
    order = (column, row.id)
    query = query.order_by(*(c.desc() if wanted.descending else c.asc() for c in order))
    rows = await connection.execute(query.limit(wanted.limit))
    return [dict(r) for r in rows.mappings()]


def _equal(noun: Noun, field: str, values: Sequence[Any]) -> Any:
    row = table_of(noun).row
    if field in table_of(noun).equal:
        return table_of(noun).equal[field](values)
    if field == "name":
        return row.name_key.in_([fold(str(v)) for v in values])
    if field in _references(noun):
        other = table_of(noun_of(_references(noun)[field].noun)).row
        keys = [fold(str(v)) for v in values]
        named = select(other.id).where(other.name_key.in_(keys) | other.id.in_(keys))
        return getattr(row, f"{field}_id").in_(named)
    if noun.name == "image" and field == "registry":
        keys = [fold(str(v)) for v in values]
        named = select(RegistryRow.id).where(RegistryRow.name_key.in_(keys))
        return row.registry_id.in_(named)
    return getattr(row, field).in_(list(values))


def _contains(row: Any, text: str) -> Any:
    escaped = fold(text).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    pattern = f"%{escaped}%"
    found = [row.name_key.like(pattern, escape="\\")]
    for column in ("description", "full_name", "email", "title"):
        if hasattr(row, column):
            lowered = func.lower(getattr(row, column))
            found.append(lowered.like(pattern, escape="\\"))
    return or_(*found)


async def insert_item(tx: Transaction, noun: Noun, item_id: str, values: Item) -> None:
    """Store a new item."""
    await tx.execute(
        insert(table_of(noun).row).values(
            id=item_id,
            name_key=fold(values["name"]),
            created_at=tx.now,
            modified_at=tx.now,
            **values,
        )
    )


async def change_item(tx: Transaction, noun: Noun, item: Item, values: Item) -> bool:
    """Change an item, if nobody has since it was read; tell whether it is so."""
    row = table_of(noun).row
    changes = dict(values)
    if "name" in changes:
        changes["name_key"] = fold(changes["name"])
    changed = await tx.execute(
        update(row)
        .where(row.id == item["id"], row.revision == item["revision"])
        .values(revision=item["revision"] + 1, modified_at=tx.now, **changes)
    )
    return bool(changed.rowcount)


async def delete_item(tx: Transaction, noun: Noun, item_id: str) -> None:
    """Remove an item."""
    row = table_of(noun).row
    await tx.execute(delete(row).where(row.id == item_id))


async def clear_default(
    tx: Transaction, noun: Noun, *, user_id: str | None = None
) -> None:
    """Make no item the default, so that another can be."""
    row = table_of(noun).row
    query = update(row).where(row.is_default)
    if user_id is not None:
        query = query.where(row.user_id == user_id)
    await tx.execute(query.values(is_default=False, revision=row.revision + 1))


async def count_rows(connection: AsyncConnection, row: Any, condition: Any) -> int:
    """Count the rows of a table that fulfil *condition*."""
    query = select(func.count()).select_from(row).where(condition)
    return int(await connection.scalar(query) or 0)


async def list_names(
    connection: AsyncConnection, row: Any, condition: Any, limit: int = 5
) -> list[str]:
    """Return the first names of the rows that fulfil *condition*."""
    query = select(row.name).where(condition).order_by(row.name).limit(limit)
    return [name for (name,) in await connection.execute(query)]


async def ensure_slot_type(
    tx: Transaction, item_id: str, name: str, **values: Any
) -> bool:
    """Register a kind of resource if it is unknown; tell whether it was."""
    added = await tx.execute(
        insert_ignore(tx, SlotTypeRow).values(
            id=item_id,
            name=name,
            name_key=fold(name),
            created_at=tx.now,
            modified_at=tx.now,
            **values,
        )
    )
    return bool(added.rowcount)


async def list_slot_types(
    connection: AsyncConnection, *, enabled: bool = True
) -> dict[str, str]:
    """Return the known kinds of resources and how each is counted, in their order."""
    query = select(SlotTypeRow.name, SlotTypeRow.slot_type).order_by(
        SlotTypeRow.rank, SlotTypeRow.name
    )
    if enabled:
        query = query.where(SlotTypeRow.enabled)
    rows = await connection.execute(query)
    return {str(key): str(name) for key, name in rows}


async def load_slot_rules(
    connection: AsyncConnection,
) -> tuple[dict[str, str], list[str]]:
    """Return the kinds of resources in use, and of which every session needs some."""
    rows = (
        await connection.execute(
            select(SlotTypeRow.name, SlotTypeRow.slot_type, SlotTypeRow.required)
            .where(SlotTypeRow.enabled)
            .order_by(SlotTypeRow.rank, SlotTypeRow.name)
        )
    ).all()
    return {r.name: r.slot_type for r in rows}, [r.name for r in rows if r.required]


async def target_of(connection: AsyncConnection, noun: Noun, item: Item) -> Target:
    """Tell whose an item is, and in which domain, for the access check."""
    table = table_of(noun)
    columns = [table.owner.label("owner")]
    if table.domain is not None:
        columns.append(table.domain.label("domain"))
    row = (
        (await connection.execute(select(*columns).where(table.row.id == item["id"])))
        .mappings()
        .one()
    )
    return Target(row["owner"], row.get("domain"))


def present(noun: Noun, item: Item, **more: Any) -> Any:
    """Make the Struct that the API shows of an item."""
    declared = fields_of(noun.shown)
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(noun.shown):
        name = field.name
        if name in more:
            values[name] = more[name]
        elif name in declared and isinstance(declared[name].kind, Reference):
            values[name] = item[f"{name}__name"]
        elif name in item:
            raw = item[name]
            if name in declared:
                raw = declared[name].kind.show(raw)
            values[name] = format_time(raw) if isinstance(raw, datetime) else raw
    return msgspec.convert(values, noun.shown)
