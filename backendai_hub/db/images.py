"""Reading and writing the environments on offer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.fields import Slots
from backendai_hub.core.images import (
    LOCAL_REGISTRY,
    Image,
    RegistryType,
    merge_minimum,
)
from backendai_hub.core.names import fold
from backendai_hub.core.slots import format_amount, parse_amount, parse_slots
from backendai_hub.db.engine import Transaction
from backendai_hub.db.ledger import insert_ignore
from backendai_hub.db.tables import (
    DomainRow,
    ImageAliasRow,
    ImageRow,
    RegistryRow,
)

_USE_NOTED = timedelta(minutes=1)
_COLUMNS = (
    ImageRow.id,
    ImageRow.name,
    ImageRow.title,
    ImageRow.references,
    ImageRow.architecture,
    ImageRow.minimum,
    ImageRow.maximum,
    ImageRow.preferred,
    ImageRow.shmem,
    ImageRow.accelerators,
    ImageRow.type,
)


def _text(slots: dict[str, int | None]) -> dict[str, str]:
    return {s: "inf" if a is None else format_amount(s, a) for s, a in slots.items()}


def _image(row: Any) -> Image:
    values = dict(row._mapping)
    for bag in ("minimum", "maximum", "preferred"):
        values[bag] = _text(values[bag])
    values["shmem"] = format_amount("mem", values["shmem"])
    return Image(**values)


async def ensure_registry(tx: Transaction, new_id: Callable[[], str]) -> str:
    """Make the registry of the configuration's own images if absent; return its id."""
    await tx.execute(
        insert_ignore(tx, RegistryRow).values(
            id=new_id(),
            name=LOCAL_REGISTRY,
            name_key=LOCAL_REGISTRY,
            type=str(RegistryType.LOCAL),
            created_at=tx.now,
            modified_at=tx.now,
        )
    )
    found = await tx.connection.scalar(
        select(RegistryRow.id).where(RegistryRow.name_key == LOCAL_REGISTRY)
    )
    return str(found)


async def put_local_images(
    tx: Transaction, images: Sequence[Image], new_id: Callable[[], str]
) -> None:
    """Make *images*, in this order, the local ones on offer; others are forgotten."""
    registry = await ensure_registry(tx, new_id)
    local = ImageRow.registry_id == registry
    await tx.execute(update(ImageRow).where(local).values(status="DELETED"))
    for position, image in enumerate(images):
        minimum = dict(parse_slots(image.minimum).items())
        values = {
            "name": image.name,
            "title": image.title,
            "registry_id": registry,
            "references": image.references,
            "label_minimum": minimum,
            "minimum": minimum,
            "preferred": dict(parse_slots(image.preferred).items()),
            "shmem": parse_amount("shmem", image.shmem),
            "accelerators": image.accelerators,
            "type": image.type,
            "status": "ALIVE",
            "position": position,
            "modified_at": tx.now,
        }
        if image.maximum:  # else what administrators have said stays
            values["maximum"] = Slots().read("maximum", image.maximum)
        # Also one that a registry had till now: the configuration's word counts.
        same = (ImageRow.name_key == fold(image.name)) & (
            ImageRow.architecture == image.architecture
        )
        known = (
            await tx.execute(
                select(ImageRow.label_minimum, ImageRow.minimum).where(same)
            )
        ).first()
        if known is not None:
            values["minimum"] = merge_minimum(
                known.label_minimum, known.minimum, minimum
            )
            await tx.execute(update(ImageRow).where(same).values(**values))
        else:
            await tx.execute(
                insert(ImageRow).values(
                    id=new_id(),
                    name_key=fold(image.name),
                    architecture=image.architecture,
                    created_at=tx.now,
                    **values,
                )
            )


def named(reference: str) -> Any:
    """Build the condition that an image is what *reference* says.

    A name, which there may be once for each architecture; ``name@architecture``; an
    alias; or an id.
    """
    key = fold(reference)
    aliased = select(ImageAliasRow.image_id).where(ImageAliasRow.alias_key == key)
    found = [ImageRow.name_key == key, ImageRow.id == key, ImageRow.id.in_(aliased)]
    name, at, architecture = key.rpartition("@")
    if at:
        built = ImageRow.architecture == architecture
        found.append((ImageRow.name_key == name) & built)
    return or_(*found)


def choose_image(rows: Sequence[dict[str, Any]], reference: str) -> dict[str, Any]:
    """Return the one of several images that is meant: the only one on offer.

    Raises :class:`InvalidRequestError` where it is built for several architectures.
    """
    alive = [row for row in rows if row["status"] == "ALIVE"]
    if len(alive) == 1:
        return alive[0]
    names = sorted(f"{row['name']}@{row['architecture']}" for row in alive or rows)
    raise InvalidRequestError(
        f"{reference[:128]!r} is several images; say which: {', '.join(names)}"
    )


def _visible(owner_id: str, registries: Sequence[str]) -> Any:
    return (
        select(*_COLUMNS)
        .join(RegistryRow, RegistryRow.id == ImageRow.registry_id)
        .where(
            ImageRow.status == "ALIVE",
            RegistryRow.is_active,
            RegistryRow.name_key.in_([fold(name) for name in registries]),
            or_(ImageRow.owner_id.is_(None), ImageRow.owner_id == owner_id),
        )
    )


async def list_images(
    connection: AsyncConnection, domain_id: str, owner_id: str
) -> list[Image]:
    """List the environments a user may choose, in their order.

    Only those of registries that the user's domain allows: an empty list of allowed
    registries means that nothing runs. Images made by a user are that user's only.
    """
    allowed = await connection.scalar(
        select(DomainRow.allowed_docker_registries).where(DomainRow.id == domain_id)
    )
    if not allowed:
        return []
    query = _visible(owner_id, allowed).order_by(
        RegistryRow.type != str(RegistryType.LOCAL), ImageRow.position, ImageRow.name
    )
    return [_image(row) for row in await connection.execute(query)]


async def find_images(
    connection: AsyncConnection, domain_id: str, owner_id: str, wanted: str
) -> list[Image]:
    """Find what a user may mean by *wanted*: a name, an alias or an id.

    A name may be there once for each architecture; ``name@architecture`` is one.
    """
    allowed = await connection.scalar(
        select(DomainRow.allowed_docker_registries).where(DomainRow.id == domain_id)
    )
    if not allowed or "\0" in wanted:
        return []
    query = _visible(owner_id, allowed).where(named(wanted))
    return [_image(row) for row in await connection.execute(query)]


async def load_images(
    connection: AsyncConnection, ids: Sequence[str]
) -> dict[str, Image]:
    """Read images by id, whoever may choose them and whether or not forgotten."""
    rows = await connection.execute(select(*_COLUMNS).where(ImageRow.id.in_(ids)))
    return {row.id: _image(row) for row in rows}


async def note_use(tx: Transaction, image_id: str) -> None:
    """Note that a session of the image has been asked for, to the minute.

    Everybody who asks for the same image would wait for the row otherwise.
    """
    recent = ImageRow.last_used_at > tx.now - _USE_NOTED
    await tx.execute(
        update(ImageRow)
        .where(ImageRow.id == image_id, ImageRow.last_used_at.is_(None) | ~recent)
        .values(last_used_at=tx.now),
        ids=(),
    )
