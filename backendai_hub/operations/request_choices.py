"""Where a session goes and what it runs: as its request names it, or the usual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.images import Image
from backendai_hub.core.names import fold
from backendai_hub.core.policies import SubmissionCaps, choose_priority
from backendai_hub.core.tenancy import Actor
from backendai_hub.db import images
from backendai_hub.db.engine import Database
from backendai_hub.db.groups import GroupRecord, list_allowed
from backendai_hub.db.snapshots import load_nodes
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.snapshot import NodeState

_LONGEST_NAME = 512


def choose_project(user: Actor, request: SessionRequest) -> str:
    """Return the project's id: the one named, or the user's usual one."""
    if request.project is None:
        if user.project_id is not None and user.project_id in user.projects:
            return user.project_id
        if len(user.projects) == 1:
            return next(iter(user.projects))
        names = ", ".join(sorted(user.projects.values()))
        raise InvalidRequestError(
            f"project: name one of yours: {names}"
            if names
            else "project: you are in no project that is active; ask an administrator"
        )
    for project_id, name in user.projects.items():
        if fold(request.project) in {fold(name), project_id}:
            return project_id
    names = ", ".join(sorted(user.projects.values())) or "none"
    raise InvalidRequestError(
        f"project: you are not a member of {request.project[:128]!r}; yours: {names}"
    )


class Place(NamedTuple):
    """The nodes of a resource group, and what can be asked of them."""

    nodes: Sequence[NodeState]
    cluster: Cluster


async def load_place(database: Database, group_id: str) -> Place:
    """Return a group's nodes; what is free of them may be out of date."""

    async def read(connection: AsyncConnection) -> Place:
        every = await load_nodes(connection, whose=False)
        nodes = [n for n in every if n.group == group_id]
        return Place(nodes, Cluster(nodes))

    return await database.recall(("place", group_id), read, ("agents", "devices"))


async def choose_group(
    database: Database, user: Actor, request: SessionRequest, targets: Sequence[str]
) -> GroupRecord:
    """Return the resource group: the one named, or the first that may be used."""
    opened = await database.recall(
        ("groups", *targets), lambda c: list_allowed(c, targets)
    )
    # What is kept for system sessions is not told of.
    opened = [g for g in opened if g.is_public]
    if request.resource_group is not None:
        wanted = fold(request.resource_group)
        named = [g for g in opened if wanted in {fold(g.name), g.id}]
        if not named or not named[0].is_active:
            names = ", ".join(g.name for g in opened if g.is_active) or "none"
            state = "not active" if named else "not open to you"
            raise InvalidRequestError(
                f"resource_group: {request.resource_group[:64]!r} is {state}; open:"
                f" {names}"
            )
        opened = named
    active = [g for g in opened if g.is_active]
    if not active:
        raise InvalidRequestError(
            f"resource_group: {opened[0].name} is not active"
            if opened
            else "resource_group: no resource group is open to your domain, project or"
            " keypair; ask an administrator"
        )
    for group in active:
        if request.type in group.options.allowed_session_types:
            return group
    kinds = ", ".join(active[0].options.allowed_session_types)
    raise InvalidRequestError(
        f"type: the resource group {active[0].name} takes {kinds} sessions only, not"
        f" {request.type!r}"
    )


async def choose_image(
    database: Database,
    user: Actor,
    request: SessionRequest,
    nodes: Sequence[NodeState],
) -> Image:
    """Return the image for the architecture that is asked for, or that nodes have."""
    found: list[Image] = []
    if len(request.image) <= _LONGEST_NAME:  # longer ones are not worth keeping
        found = await database.recall(
            ("images", user.domain_id, user.id, request.image),
            lambda c: images.find_images(c, user.domain_id, user.id, request.image),
            ("images", "image_aliases"),
        )
    if not found:
        async with database.glance() as connection:
            offered = await images.list_images(connection, user.domain_id, user.id)
        names = list(dict.fromkeys(i.name for i in offered))
        shown = ", ".join(names[:10]) or "none yet"
        raise InvalidRequestError(
            f"image: there is no environment {request.image[:128]!r}; on offer:"
            f" {shown}{', …' if len(names) > 10 else ''}"
        )
    if request.architecture is not None:
        same = [i for i in found if i.architecture == request.architecture]
        if not same:
            built = ", ".join(sorted(i.architecture for i in found))
            raise InvalidRequestError(
                f"architecture: {found[0].name} is built for {built}, not for"
                f" {request.architecture[:64]!r}"
            )
        return same[0]
    there = {n.architecture for n in nodes}
    return next((i for i in found if i.architecture in there), found[0])


def choose_session_priority(
    request: SessionRequest, group: GroupRecord, caps: Sequence[SubmissionCaps]
) -> int:
    """Return the priority that is asked for, or the usual one here."""
    if request.priority is None:
        return choose_priority(caps, group.session_options.priority)
    return request.priority
