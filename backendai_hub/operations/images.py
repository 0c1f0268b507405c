"""What is done with images beside changing them: aliases, forgetting, installing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.agents import ImageState, ImageWish
from backendai_hub.api.images import (
    MOST_ALIASES,
    AliasesRequest,
    Install,
    InstallAnswer,
    InstallRequest,
    SkippedNode,
)
from backendai_hub.core.access import Action, Principal, Target, can
from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InUseError,
    InvalidRequestError,
    NotFoundError,
    RegistryLacksError,
)
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.ids import is_id
from backendai_hub.core.images import ImageRecord, RegistryType
from backendai_hub.core.names import RESERVED, fold, read_line
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.times import format_time
from backendai_hub.db import catalog, installs
from backendai_hub.db.catalog import GroupNode
from backendai_hub.db.engine import Transaction
from backendai_hub.db.image_views import is_held
from backendai_hub.db.installs import InstallRecord
from backendai_hub.db.nouns import Item, find_item
from backendai_hub.operations.installs import make_new_install
from backendai_hub.operations.noun_rules import rules_of
from backendai_hub.operations.nouns import find_visible, require
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.registry_reading import open_client

_IMAGE: Final = noun_of("image")
_ALIAS: Final = re.compile(r"\w(?:[\w./:-]*\w)?")
_LONGEST_ALIAS: Final = 256


# -- aliases ----------------------------------------------------------------------


async def change_aliases(
    platform: Platform, principal: Principal, reference: str, body: AliasesRequest
) -> ImageRecord:
    """Give an image other names and take some away; all of them or none."""
    added = [_check_alias(alias) for alias in body.add]
    try:
        async with platform.database.transaction() as tx:
            image = await find_visible(tx.connection, principal, _IMAGE, reference)
            await require(
                tx.connection, principal, _IMAGE, image, Action.CHANGE_ALIASES
            )
            before = await _show(tx.connection, image["id"])
            for alias in body.remove:
                if not await catalog.remove_alias(tx, image["id"], alias):
                    raise InvalidRequestError(
                        f"remove: {image['name']} has no alias {alias[:64]!r}"
                    )
            for alias in added:
                await _add_alias(tx, image, alias)
            if await catalog.count_aliases(tx.connection, image["id"]) > MOST_ALIASES:
                raise InvalidRequestError(
                    f"add: an image has at most {MOST_ALIASES} aliases"
                )
            if (await _show(tx.connection, image["id"])).aliases == before.aliases:
                return before
            await catalog.change_image(tx, image["id"], {})
            after = await _show(tx.connection, image["id"])
            tx.audit(
                _act(
                    Action.CHANGE_ALIASES,
                    image,
                    before={"aliases": before.aliases},
                    after={"aliases": after.aliases},
                )
            )
            return after
    except IntegrityError:
        raise ConflictError(
            "add: somebody has given one of these names to an image just now; read"
            " the images again"
        ) from None


def _check_alias(given: str) -> str:
    alias = read_line("add", given, _LONGEST_ALIAS)
    if _ALIAS.fullmatch(alias) is None:
        raise InvalidRequestError(
            f"add: {alias[:64]!r} will not do; use letters, digits and - _ . / :"
            " between them"
        )
    if fold(alias) in RESERVED or is_id(fold(alias)):
        raise InvalidRequestError(f"add: {alias[:64]!r} is reserved; choose another")
    return alias


async def _add_alias(tx: Transaction, image: Item, alias: str) -> None:
    if await catalog.is_image_name(tx.connection, alias):
        raise ConflictError(f"add: {alias!r} is the name of an image already")
    taken = await catalog.find_alias(tx.connection, alias)
    if taken is None:
        await catalog.add_alias(tx, image["id"], alias)
    elif taken["image_id"] != image["id"]:
        if taken["status"] == "ALIVE":
            raise ConflictError(
                f"add: {alias!r} is an alias of {taken['name']}; take it away there"
                " first"
            )
        await catalog.remove_alias(tx, taken["image_id"], alias)
        await catalog.add_alias(tx, image["id"], alias)


# -- forgetting -------------------------------------------------------------------


async def forget_image(
    platform: Platform, principal: Principal, reference: str
) -> ImageRecord:
    """Take an image off offer; what runs of it goes on.

    Who has made an image may forget it, too.
    """
    async with platform.database.transaction() as tx:
        image = await find_visible(tx.connection, principal, _IMAGE, reference)
        # Not the registry's: whoever may use a registry does not own what is in it.
        if not can(principal, Action.FORGET_IMAGE, Target(image["owner_id"])):
            raise ForbiddenError(
                f"you may see this image, but not do {Action.FORGET_IMAGE} to it"
            )
        await _refuse_local(tx.connection, image)
        await _forget(tx, Action.FORGET_IMAGE, image, [image["id"]])
        return await _show(tx.connection, image["id"])


async def untag_image(
    platform: Platform, principal: Principal, reference: str
) -> ImageRecord:
    """Remove an image's tag from its registry, and forget what it named.

    One tag may name an image for each of several architectures.
    """
    async with platform.database.read() as connection:
        image = await find_visible(connection, principal, _IMAGE, reference)
        await require(connection, principal, _IMAGE, image, Action.UNTAG_IMAGE)
        registry = await _refuse_local(connection, image)
        ids = await catalog.list_same_name(
            connection, image["registry_id"], image["name"]
        )
        needing = await catalog.count_needing(connection, ids)
    if needing:
        raise InUseError(
            f"{needing} sessions wait for {image['name']} and still have to fetch it;"
            " let them start or end them first"
        )
    async with open_client(platform, registry) as client:
        try:
            await client.untag(image["repository"], image["tag"])
        except RegistryLacksError:
            await (
                client.ping()
            )  # gone already, as long as it is a registry that says so
    async with platform.database.transaction() as tx:
        await _forget(tx, Action.UNTAG_IMAGE, image, ids)
        return await _show(tx.connection, image["id"])


async def _refuse_local(connection: AsyncConnection, image: Item) -> Mapping[str, Any]:
    registry = await catalog.find_registry(connection, image["registry_id"])
    assert registry is not None
    if registry["type"] == RegistryType.LOCAL:
        raise ConflictError(
            f"{image['name']} is in the service's configuration; take it out of"
            " HubService.images instead"
        )
    return registry


async def _forget(
    tx: Transaction, action: Action, image: Item, ids: Sequence[str]
) -> None:
    gone = await catalog.forget_images(tx, ids)
    wishes = await catalog.list_wishes(tx.connection, ids)
    await installs.forget_installs(tx, wishes)
    if gone or action is Action.UNTAG_IMAGE:
        tx.audit(
            _act(
                action,
                image,
                before={"status": image["status"]},
                after={"status": "DELETED"},
            )
        )


# -- installing -------------------------------------------------------------------


async def install_image(
    platform: Platform, principal: Principal, reference: str, body: InstallRequest
) -> InstallAnswer:
    """Ask the nodes of a resource group to hold an image, or to remove it."""
    async with platform.database.transaction() as tx:
        image = await find_visible(tx.connection, principal, _IMAGE, reference)
        await require(tx.connection, principal, _IMAGE, image, Action.INSTALL_IMAGE)
        if body.wanted is ImageWish.PRESENT and image["status"] != "ALIVE":
            raise ConflictError(f"{image['name']} was forgotten; it is not on offer")
        group = await _find_group(tx.connection, principal, body.resource_group)
        nodes = await catalog.list_group_nodes(tx.connection, group["id"])
        reasons = {node.id: _why_not(node, image) for node in nodes}
        asked = {
            node.id: make_new_install(
                platform,
                image_id=image["id"],
                agent_id=node.id,
                reference=image["references"][node.isolation["runtime"]],
                wanted=body.wanted,
                requested_by=principal.name,
            )
            for node in nodes
            if not reasons[node.id]
        }
        await installs.put_installs(tx, list(asked.values()))
        stored = await installs.list_installs(tx.connection, image_id=image["id"])
        if asked:
            tx.audit(
                _act(
                    Action.INSTALL_IMAGE,
                    image,
                    after={
                        "resource_group": group["name"],
                        "wanted": str(body.wanted),
                        "nodes": len(asked),
                    },
                )
            )
            tx.record(_tell_asked(principal, image, group, body.wanted, len(asked)))
    names = {node.id: node.name for node in nodes}
    return InstallAnswer(
        asked=[
            _install(record, names)
            for record in stored
            if record.agent_id in asked
            and record.reference == asked[record.agent_id].reference
        ],
        skipped=[
            SkippedNode(node=node.name, reason=reasons[node.id])
            for node in nodes
            if reasons[node.id]
        ],
    )


async def _find_group(
    connection: AsyncConnection, principal: Principal, name: str
) -> Item:
    try:
        return await find_visible(
            connection, principal, noun_of("resource-group"), name
        )
    except NotFoundError as error:
        raise InvalidRequestError(f"resource_group: {error.message}") from None


def _why_not(node: GroupNode, image: Item) -> str:
    """Say why a node cannot be asked for an image; nothing: it can."""
    if node.status != AgentStatus.ALIVE:
        return f"it does not answer: {node.status}"
    runtime = str(node.isolation.get("runtime", ""))
    if runtime not in image["references"]:
        known = ", ".join(sorted(image["references"])) or "no runtime"
        return f"its runtime is {runtime or 'unknown'}; the image is for {known}"
    if node.architecture != image["architecture"]:
        return (
            f"it is {node.architecture or 'unknown'}; the image is for"
            f" {image['architecture']}"
        )
    return ""


def _tell_asked(
    principal: Principal, image: Item, group: Item, wanted: ImageWish, count: int
) -> Event:
    what = "hold" if wanted is ImageWish.PRESENT else "remove"
    return Event(
        kind=EventKind.IMAGE_INSTALL,
        text=f"{principal.name} asks {count} nodes of {group['name']} to {what}"
        f" {image['name']}",
        actor=principal.name,
        status=str(ImageState.WAITING),
    )


async def list_image_installs(
    platform: Platform, principal: Principal, reference: str
) -> list[Install]:
    """List which nodes hold an image or have been asked to, and how far they are."""
    async with platform.database.read() as connection:
        image = await find_visible(connection, principal, _IMAGE, reference)
        await require(connection, principal, _IMAGE, image, Action.READ_INSTALLS)
        nodes = await catalog.list_group_nodes(connection)
        records = await installs.list_installs(connection, image_id=image["id"])
    names = {node.id: node.name for node in nodes}
    asked = {record.agent_id for record in records}
    shown = [_install(record, names) for record in records]
    shown += [
        _held(node, image)
        for node in nodes
        if node.id not in asked and _is_held(node, image)
    ]
    return sorted(shown, key=lambda install: (install.node, install.agent_id))


def _is_held(node: GroupNode, image: Item) -> bool:
    digests = (image["digest"], image["config_digest"])
    runtime = str(node.isolation.get("runtime", ""))
    is_alive = node.status == AgentStatus.ALIVE
    return is_alive and is_held(
        runtime, frozenset(node.images), image["references"], digests
    )


def _install(record: InstallRecord, names: Mapping[str, str]) -> Install:
    return Install(
        node=names.get(record.agent_id, ""),
        agent_id=record.agent_id,
        reference=record.reference,
        wanted=record.wanted,
        state=record.state,
        progress=record.progress,
        reason=record.reason,
        requested_by=record.requested_by,
        requested_at=format_time(record.requested_at),
        changed_at=format_time(record.changed_at),
    )


def _held(node: GroupNode, image: Item) -> Install:
    return Install(
        node=node.name,
        agent_id=node.id,
        reference=image["references"][node.isolation["runtime"]],
        wanted=ImageWish.PRESENT,
        state=ImageState.DONE,
        progress=1.0,
    )


# -- all of them ------------------------------------------------------------------


async def _show(connection: AsyncConnection, image_id: str) -> ImageRecord:
    item = await find_item(connection, _IMAGE, image_id)
    assert item is not None
    [shown] = await rules_of(_IMAGE).present(connection, _IMAGE, [item])
    return shown  # type: ignore[no-any-return]


def _act(
    action: Action,
    image: Item,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> Act:
    return Act(
        action=action,
        object_kind="image",
        object_id=image["id"],
        object_name=image["name"],
        before=before,
        after=after,
    )
