"""Rescans: having a registry read, and following how far that is.

A rescan is asked for, and done in the background by the service.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from backendai_hub.api.images import RescanRequest, RescanState, RescanStatus
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import ConflictError, HubError, InvalidRequestError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.images import RegistryType
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.times import format_time
from backendai_hub.db import catalog
from backendai_hub.db.nouns import list_slot_types
from backendai_hub.operations.nouns import find_visible, require
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.registry_reading import Reading, Rescan, open_client
from backendai_hub.registries.names import check_repository

log = logging.getLogger(__name__)


# -- asking -----------------------------------------------------------------------


async def request_rescan(
    platform: Platform, principal: Principal, reference: str, request: RescanRequest
) -> RescanStatus:
    """Have a registry read; one that is being read already goes on as it is."""
    for name in (request.repository, request.project):
        if name is not None:
            check_repository(name)
    noun = noun_of("registry")
    begun: Rescan | None = None
    try:
        async with platform.database.transaction() as tx:
            registry = await find_visible(tx.connection, principal, noun, reference)
            await require(
                tx.connection, principal, noun, registry, Action.RESCAN_IMAGES
            )
            known: Rescan | None = platform.rescans.get(registry["id"])
            if known is not None and known.is_open:
                return known.tell()
            _check_readable(registry)
            begun = Rescan(registry, request, principal.name)
            platform.rescans[begun.registry_id] = begun
            tx.audit(_act(begun))
            tx.wake("rescans")
    except BaseException:
        if begun is not None:  # what could not be written down is not done
            platform.rescans.pop(begun.registry_id, None)
        raise
    return begun.tell()


def _check_readable(registry: Mapping[str, Any]) -> None:
    if registry["type"] == RegistryType.LOCAL:
        raise InvalidRequestError(
            f"the registry {registry['name']} has the images of the configuration;"
            " they are read when the service starts"
        )
    if not registry["url"]:
        raise InvalidRequestError(
            f"the registry {registry['name']} has no address; give it a url first"
        )


def _act(rescan: Rescan) -> Act:
    asked = {
        "repository": rescan.request.repository,
        "project": rescan.request.project,
    }
    return Act(
        action=Action.RESCAN_IMAGES,
        object_kind="registry",
        object_id=rescan.registry_id,
        object_name=rescan.registry,
        after={name: value for name, value in asked.items() if value is not None},
    )


async def read_rescan(
    platform: Platform, principal: Principal, reference: str
) -> RescanStatus:
    """Tell how far the latest reading of a registry is."""
    async with platform.database.read() as connection:
        registry = await find_visible(
            connection, principal, noun_of("registry"), reference
        )
    known: Rescan | None = platform.rescans.get(registry["id"])
    if known is not None:
        return known.tell()
    return RescanStatus(
        registry=registry["name"], ended_at=format_time(registry["rescanned_at"])
    )


# -- doing ------------------------------------------------------------------------


async def run_rescan(platform: Platform, rescan: Rescan) -> None:
    """Read the registry; the rescan says how it has ended, unless it is cancelled."""
    clock = platform.database.clock
    try:
        reason = await _read_registry(platform, rescan)
        await _note_end(platform, rescan, "")
    except HubError as error:
        reason = error.message
    except Exception:
        log.exception("the rescan of the registry %s failed", rescan.registry)
        reason = "something unexpected went wrong; it is in the service's log"
    else:
        rescan.end(RescanState.DONE, clock(), reason)
        return
    try:
        await _note_end(platform, rescan, reason)
    finally:
        rescan.end(RescanState.FAILED, clock(), reason)


async def _note_end(platform: Platform, rescan: Rescan, failure: str) -> None:
    counts = (
        f"{rescan.added} added, {rescan.updated} updated, {rescan.removed} removed,"
        f" {len(rescan.skipped) + rescan.skipped_more} skipped"
    )
    async with platform.database.transaction() as tx:
        if not failure:
            await catalog.note_rescan(tx, rescan.registry_id)
        tx.record(
            Event(
                kind=EventKind.REGISTRY_RESCAN,
                text=f"registry {rescan.registry}: "
                + (f"could not be read: {failure}" if failure else counts),
                actor=rescan.requested_by,
                status="failed" if failure else "done",
            )
        )


async def _read_registry(platform: Platform, rescan: Rescan) -> str:
    """Read everything that was asked for; return what was left out, in words."""
    async with platform.database.read() as connection:
        registry = await catalog.find_registry(connection, rescan.registry_id)
        known = await list_slot_types(connection, enabled=False)
    if registry is None:
        raise ConflictError(f"the registry {rescan.registry} was removed")
    async with open_client(platform, registry, rescan.request) as client:
        reading = Reading(platform, rescan, registry, client, known)
        await reading.list_tags()
        await reading.take_all()
    await reading.forget_gone()
    return reading.left_out
