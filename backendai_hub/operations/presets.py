"""Which presets could start now, and how much of everything is left to a user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from backendai_hub.api.sessions import LimitMeter
from backendai_hub.core.access import Principal
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.names import fold
from backendai_hub.core.quotas import QuotaScope, charge, find_shortfalls
from backendai_hub.core.slots import ResourceSlots, format_amount
from backendai_hub.core.tenancy import Actor
from backendai_hub.db import nouns
from backendai_hub.db.groups import GroupRecord, list_allowed
from backendai_hub.db.limits import load_tenant_scopes
from backendai_hub.db.presets import PresetRecord, list_presets
from backendai_hub.db.snapshots import load_nodes
from backendai_hub.operations.platform import Platform
from backendai_hub.scheduling.cluster import Cluster


class CheckedPreset(msgspec.Struct, frozen=True, kw_only=True):
    """A preset, and whether a session of it could start now; ``reason`` if not."""

    name: str
    resource_slots: dict[str, str]
    shared_memory: str
    resource_group: str | None
    allocatable: bool
    reason: str = ""


class GroupRoom(msgspec.Struct, frozen=True, kw_only=True):
    """What the nodes of a resource group have in all, and free."""

    name: str
    total: dict[str, str]
    using: dict[str, str]
    remaining: dict[str, str]


class PresetCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and use of each scope, room in each group, and the presets."""

    project: str
    resource_group: str | None
    limits: list[LimitMeter]
    resource_groups: list[GroupRoom]
    presets: list[CheckedPreset]


class PresetCheckQuery(msgspec.Struct, frozen=True, kw_only=True):
    """For which project and resource group; without, the usual ones."""

    project: str | None = None
    resource_group: str | None = None


async def check_presets(
    platform: Platform, principal: Principal, actor: Actor, query: PresetCheckQuery
) -> PresetCheck:
    """Say of each preset whether some node and every limit has room for it now.

    As Backend.AI: a preset is allocatable if a node of a group has all of it free and
    what is left to user, project and domain is at least as much.
    """
    project_id = _choose_project(actor, query.project)
    keypair_id = principal.keypair_id or actor.keypair_id
    async with platform.database.read() as connection:
        opened = [
            group
            for group in await list_allowed(
                connection, [actor.domain_id, project_id, keypair_id]
            )
            if group.is_active and group.is_public
        ]
        opened = _choose_groups(opened, query.resource_group)
        all_nodes = await load_nodes(connection)
        scopes = await load_tenant_scopes(
            connection,
            domain_id=actor.domain_id,
            project_id=project_id,
            user_id=actor.id,
        )
        presets = await list_presets(connection, [g.id for g in opened])
        known = await nouns.list_slot_types(connection)
    clusters = {
        g.id: Cluster([n for n in all_nodes if n.group == g.id and not n.closed])
        for g in opened
    }
    names = {g.id: g.name for g in opened}
    return PresetCheck(
        project=actor.projects.get(project_id, ""),
        resource_group=opened[0].name if query.resource_group and opened else None,
        limits=list(_meters(scopes, known)),
        resource_groups=[_room(names[i], c) for i, c in clusters.items()],
        presets=[_check(p, scopes, clusters, names) for p in presets],
    )


def _choose_project(actor: Actor, wanted: str | None) -> str:
    if wanted is None:
        return actor.project_id or next(iter(actor.projects), "")
    for project_id, name in actor.projects.items():
        if fold(wanted) in {fold(name), project_id}:
            return project_id
    raise InvalidRequestError(f"project: you are not a member of {wanted[:64]!r}")


def _choose_groups(opened: list[GroupRecord], wanted: str | None) -> list[GroupRecord]:
    if wanted is None:
        return opened
    found = [g for g in opened if fold(wanted) in {fold(g.name), g.id}]
    if not found:
        raise InvalidRequestError(f"resource_group: {wanted[:64]!r} is not open to you")
    return found


def _meters(scopes: Iterable[QuotaScope], known: Iterable[str]) -> Iterable[LimitMeter]:
    slots = list(known)
    for scope in scopes:
        for slot in dict.fromkeys([*slots, *scope.limits, *scope.used]):
            limit = scope.limit_of(slot)
            yield LimitMeter(
                scope=str(scope.kind),
                name=scope.name,
                slot=slot,
                used=format_amount(slot, scope.used.get(slot, 0)),
                cap=None if limit is None else format_amount(slot, limit),
            )


def _room(name: str, cluster: Cluster) -> GroupRoom:
    def amounts(table: Any) -> dict[str, str]:
        if not cluster.nodes:
            return {}
        sums = np.asarray(table).sum(axis=0)
        return {
            s: format_amount(s, int(n))
            for s, n in zip(cluster.slots, sums, strict=True)
        }

    return GroupRoom(
        name=name,
        total=amounts(cluster.total),
        using=amounts(cluster.total - cluster.free) if cluster.nodes else {},
        remaining=amounts(cluster.free),
    )


def _check(
    preset: PresetRecord,
    scopes: list[QuotaScope],
    clusters: Mapping[str, Cluster],
    names: Mapping[str, str],
) -> CheckedPreset:
    request = ResourceSlots(preset.resource_slots)
    reasons = [str(s) for s in find_shortfalls(charge(request), scopes)]
    places = [
        cluster
        for group, cluster in clusters.items()
        if preset.resource_group_id in {None, group}
    ]
    if not any(_has_room(cluster, request) for cluster in places):
        reasons.append("no node has all of it free now")
    return CheckedPreset(
        name=preset.name,
        resource_slots=request.to_text(),
        shared_memory=format_amount("mem", preset.shared_memory),
        resource_group=names.get(preset.resource_group_id or ""),
        allocatable=not reasons,
        reason="; ".join(reasons),
    )


def _has_room(cluster: Cluster, request: ResourceSlots) -> bool:
    if not cluster.nodes:
        return False
    mask = np.ones(len(cluster.nodes), bool)
    for slot, amount in request.items():
        mask &= cluster.fits(slot, amount)
    return bool(mask.any())
