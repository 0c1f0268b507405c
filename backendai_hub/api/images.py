"""What is asked about images and their registries, and what is answered."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from backendai_hub.api.agents import ImageState, ImageWish

MOST_ALIASES = 64
"""Names that one image may have beside its own."""

_Names = Annotated[list[str], msgspec.Meta(max_length=MOST_ALIASES)]


class RescanState(StrEnum):
    """How far the reading of a registry is."""

    IDLE = "idle"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class RescanRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What to read of a registry: one repository, one project, or everything."""

    repository: str | None = None
    project: str | None = None


class SkippedTag(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a registry that is not on offer, and why."""

    repository: str
    tag: str
    reason: str


class RescanStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far the latest reading of a registry is, since the service has started.

    ``total`` and ``done`` count tags, the others images. ``skipped_more`` is how many
    were skipped beyond those that are listed; ``reason`` says why it has failed, or
    what it has left out.
    """

    registry: str
    state: RescanState = RescanState.IDLE
    repository: str | None = None
    project: str | None = None
    total: int = 0
    done: int = 0
    added: int = 0
    updated: int = 0
    removed: int = 0
    skipped: list[SkippedTag] = []
    skipped_more: int = 0
    reason: str = ""
    requested_by: str = ""
    started_at: str | None = None
    ended_at: str | None = None


class AliasesRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Other names for an image: those to give it and those to take away."""

    add: _Names = []
    remove: _Names = []


class InstallRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What the nodes of a resource group shall do with an image: hold or remove it."""

    resource_group: str
    wanted: ImageWish = ImageWish.PRESENT


class Install(msgspec.Struct, frozen=True, kw_only=True):
    """One image on one node: what is wanted of it, and how far that is.

    A node that holds the image without having been asked has no ``requested_by``.
    """

    node: str
    agent_id: str
    reference: str
    wanted: ImageWish
    state: ImageState
    progress: float | None = None
    reason: str = ""
    requested_by: str = ""
    requested_at: str | None = None
    changed_at: str | None = None


class SkippedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that was not asked, and why."""

    node: str
    reason: str


class InstallAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes of a group were asked, and which were not."""

    asked: list[Install]
    skipped: list[SkippedNode]
