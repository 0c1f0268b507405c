"""What a control plane makes true when it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.fields import fields_of, read_fields
from backendai_hub.core.images import LOCAL_REGISTRY, Image, is_accelerator
from backendai_hub.core.nouns import Noun, noun_of
from backendai_hub.core.slots import parse_amount, parse_slots
from backendai_hub.core.tenancy import DEFAULT_DOMAIN, DEFAULT_PROJECT
from backendai_hub.db import groups, images, nouns, sessions, tenancy
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import PresetRow
from backendai_hub.operations.platform import Platform

_NO_LIMIT = {"max_concurrent_sessions": 0, "idle_timeout": 0}
LOCAL_HOST = "local"
"""The storage host of an installation that names none."""
SLOT_TYPES = (
    ("cpu", "count", "CPU", "Core", 100, True),
    ("mem", "bytes", "Memory", "GiB", 200, True),
    ("cuda.device", "count", "NVIDIA GPU", "GPU", 300, False),
    ("cuda.shares", "count", "NVIDIA GPU share", "fGPU", 400, False),
)
PRESETS: tuple[tuple[str, dict[str, str], str], ...] = (
    ("cpu01-small", {"cpu": "1", "mem": "1g"}, "0"),
    ("cpu02-medium", {"cpu": "4", "mem": "8g"}, "1g"),
    ("cpu03-large", {"cpu": "8", "mem": "16g"}, "2g"),
    ("cuda01-small", {"cpu": "1", "mem": "4g", "cuda.device": "1"}, "0"),
    ("cuda02-medium", {"cpu": "4", "mem": "16g", "cuda.device": "2"}, "0"),
    ("cuda03-large", {"cpu": "8", "mem": "32g", "cuda.device": "4"}, "0"),
)
"""What a new installation offers; administrators change it as they like."""


async def offer_images(platform: Platform, offered: Sequence[Image]) -> None:
    """Make *offered* the local environments, and have the default tenants exist.

    Raises :class:`InvalidRequestError` for a minimum that is not an amount, and for
    what is no kind of accelerator.
    """
    for image in offered:
        parse_slots(image.minimum)
        parse_amount("shmem", image.shmem)
        for name in image.accelerators:
            if not is_accelerator(name):
                raise InvalidRequestError(
                    f"accelerators: {name!r} is not a kind of accelerator; write kinds"
                    " such as 'cuda'"
                )
    async with platform.database.transaction() as tx:
        await images.put_local_images(tx, offered, platform.new_id)
        await sessions.find_images(tx)
        await ensure_defaults(platform, tx)


async def ensure_defaults(platform: Platform, tx: Transaction) -> None:
    """Make what a new installation needs: one of everything, each the default.

    What is there stays as administrators have made it. The limits of the configuration
    are those of the first domain, project and keypair policy, and only at first.
    """
    quotas = platform.settings.quotas
    policy = {**_NO_LIMIT, "total_resource_slots": quotas.get("user", {})}
    await _ensure(platform, tx, "keypair-policy", policy)
    await _ensure(platform, tx, "user-policy", {})
    project_policy = await _ensure(platform, tx, "project-policy", {})
    group = await _ensure(platform, tx, "resource-group", {})
    domain = await _ensure(
        platform,
        tx,
        "domain",
        {
            "name": DEFAULT_DOMAIN,
            "allowed_docker_registries": [LOCAL_REGISTRY],
            "total_resource_slots": quotas.get("domain", {}),
            # Otherwise nobody could keep anything before an administrator has come.
            "allowed_vfolder_hosts": {LOCAL_HOST: ["*"]},
        },
    )
    if domain.new:
        await groups.open_group(tx, group.id, "domain", domain.id)
    if await tenancy.find_project(tx.connection, domain.id, DEFAULT_PROJECT) is None:
        noun = noun_of("project")
        limits = quotas.get("project", {})
        values = _values(noun, {"name": DEFAULT_PROJECT, "domain": domain.id})
        values |= {
            "domain_id": domain.id,
            "resource_policy_id": project_policy.id,
            "total_resource_slots": dict(limits),
        }
        await nouns.insert_item(tx, noun, platform.new_id(), values)
    await _ensure_slot_types(platform, tx)
    if not await tx.connection.scalar(select(func.count()).select_from(PresetRow)):
        await _add_presets(platform, tx)


class _Ensured:
    def __init__(self, item_id: str, *, new: bool) -> None:
        self.id = item_id
        self.new = new


def _values(noun: Noun, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a new item; slots may be given in smallest units."""
    exact = {k: dict(v) for k, v in given.items() if k == "total_resource_slots"}
    texts = {k: v for k, v in given.items() if k not in exact}
    read = read_fields(noun.shown, texts, change=False) | exact
    return {
        name + fields_of(noun.shown)[name].kind.column: value
        for name, value in read.items()
    }


async def _ensure(
    platform: Platform, tx: Transaction, name: str, given: Mapping[str, Any]
) -> _Ensured:
    noun = noun_of(name)
    table = nouns.table_of(noun).row
    found = await tenancy.default_id(tx.connection, table)
    if found is not None:
        return _Ensured(found, new=False)
    item_id = platform.new_id()
    values = _values(noun, {"name": "default", "is_default": True, **given})
    await nouns.insert_item(tx, noun, item_id, values)
    return _Ensured(item_id, new=True)


async def _ensure_slot_types(platform: Platform, tx: Transaction) -> None:
    for name, kind, title, unit, rank, required in SLOT_TYPES:
        await nouns.ensure_slot_type(
            tx,
            platform.new_id(),
            name,
            slot_type=kind,
            display_name=title,
            display_unit=unit,
            rank=rank,
            required=required,
            number_format={"binary": kind == "bytes"},
        )


async def _add_presets(platform: Platform, tx: Transaction) -> None:
    noun = noun_of("preset")
    for name, slots, shared in PRESETS:
        given = {"name": name, "resource_slots": slots, "shared_memory": shared}
        values = _values(noun, given)
        await nouns.insert_item(tx, noun, platform.new_id(), values)
