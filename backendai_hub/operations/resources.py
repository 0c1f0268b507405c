"""What the launch form shows: environments, limits, and the room there is now."""

from __future__ import annotations

import numpy as np

from backendai_hub.api.sessions import ImageChoice, LimitMeter, Resources, SlotRoom
from backendai_hub.core.agents import AgentStatus
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import format_amount
from backendai_hub.core.tenancy import User
from backendai_hub.db import agents
from backendai_hub.db.snapshots import load_nodes
from backendai_hub.operations.platform import Platform
from backendai_hub.scheduling.cluster import Cluster


async def load_resources(platform: Platform, user: User) -> Resources:
    """Say what a user can choose from, and how much of each slot is free now."""
    async with platform.database.read() as connection:
        nodes = await load_nodes(connection)
        images = await agents.list_images(connection)
        records = await agents.list_agents(connection)
        balances = await agents.list_balances(
            connection,
            [ScopeKind.DOMAIN, ScopeKind.PROJECT, ScopeKind.USER],
            [user.domain_id, user.project_id, user.id],
        )
    alive = [a for a in records if a.status is AgentStatus.ALIVE]
    installed = {
        (str(a.isolation.get("runtime", "")), reference)
        for a in alive
        for reference in a.images
    }
    cluster = Cluster([n for n in nodes if not n.closed])
    scopes = (
        (ScopeKind.DOMAIN, user.domain_id, user.domain),
        (ScopeKind.PROJECT, user.project_id, user.project),
        (ScopeKind.USER, user.id, user.name),
    )
    return Resources(
        images=[
            ImageChoice(
                name=image.name,
                title=image.title or image.name,
                minimum=image.minimum,
                preferred={**image.minimum, **image.preferred},
                installed=any(r in installed for r in image.references.items()),
            )
            for image in images
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
        project=user.project,
        limits=[
            LimitMeter(
                scope=str(kind),
                name=name,
                slot=slot,
                used=format_amount(slot, balance.used),
                cap=format_amount(slot, balance.quota),
            )
            for kind, owner, name in scopes
            for slot, balance in sorted(balances.get((kind, owner), {}).items())
            if balance.quota is not None
        ],
    )
