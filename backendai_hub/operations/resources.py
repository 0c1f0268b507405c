"""What the launch form shows: environments, limits, and the room there is now."""

from __future__ import annotations

import numpy as np

from backendai_hub.api.sessions import ImageChoice, LimitMeter, Resources, SlotRoom
from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.images import Image
from backendai_hub.core.slots import format_amount, parse_amount
from backendai_hub.core.tenancy import Actor
from backendai_hub.db import agents
from backendai_hub.db.groups import list_allowed
from backendai_hub.db.images import list_images
from backendai_hub.db.limits import load_tenant_scopes
from backendai_hub.db.snapshots import load_nodes
from backendai_hub.operations.platform import Platform
from backendai_hub.scheduling.cluster import Cluster


async def load_resources(platform: Platform, user: Actor) -> Resources:
    """Say what a user can choose from, and how much of each slot is free now."""
    async with platform.database.read() as connection:
        project_id = user.project_id or next(iter(user.projects), "")
        targets = [user.domain_id, *user.projects, user.keypair_id]
        open_groups = {
            g.id: g
            for g in await list_allowed(connection, targets)
            if g.is_active and g.is_public
        }
        nodes = [n for n in await load_nodes(connection) if n.group in open_groups]
        offered = await list_images(connection, user.domain_id, user.id)
        records = [
            a
            for a in await agents.list_agents(connection)
            if a.resource_group_id in open_groups
        ]
        scopes = await load_tenant_scopes(
            connection,
            domain_id=user.domain_id,
            project_id=project_id,
            user_id=user.id,
        )
    alive = [a for a in records if a.status is AgentStatus.ALIVE]
    installed = {
        (str(a.isolation.get("runtime", "")), reference)
        for a in alive
        for reference in a.images
    }
    cluster = Cluster([n for n in nodes if not n.closed])
    return Resources(
        images=[
            ImageChoice(
                name=image.name,
                title=image.title or image.name,
                minimum=least,
                preferred=_usual(least, image),
                installed=any(r in installed for r in image.references.items()),
            )
            for image in offered
            for least in [_least(image)]
        ],
        room=[
            SlotRoom(
                slot=slot,
                total=format_amount(slot, int(cluster.total[:, column].sum())),
                free=format_amount(slot, int(cluster.free[:, column].sum())),
                largest=format_amount(slot, int(np.max(cluster.free[:, column]))),
                most=format_amount(slot, int(np.max(cluster.total[:, column]))),
            )
            for column, slot in enumerate(cluster.slots)
        ],
        nodes=len(cluster.nodes),
        project=user.projects.get(project_id, ""),
        projects=sorted(user.projects.values()),
        resource_groups=[g.name for g in open_groups.values()],
        limits=[
            LimitMeter(
                scope=str(scope.kind),
                name=scope.name,
                slot=slot,
                used=format_amount(slot, scope.used.get(slot, 0)),
                cap=format_amount(slot, limit),
            )
            for scope in scopes
            for slot in sorted({*scope.limits, *cluster.slots})
            if (limit := scope.limit_of(slot)) is not None
        ],
    )


def _least(image: Image) -> dict[str, str]:
    """Return what a session has to ask for at least: shared memory comes on top."""
    mem = image.minimum.get("mem")
    if mem is None:
        return image.minimum
    total = parse_amount("mem", mem) + parse_amount("shmem", image.shmem)
    return {**image.minimum, "mem": format_amount("mem", total)}


def _usual(least: dict[str, str], image: Image) -> dict[str, str]:
    """Return what a session gets that does not say; never less than the least."""
    usual = {**least, **image.preferred}
    for slot, amount in least.items():
        if parse_amount(slot, usual[slot]) < parse_amount(slot, amount):
            usual[slot] = amount
    return usual
