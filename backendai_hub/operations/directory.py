"""Following JupyterHub's groups and administrators, as the configuration says.

What a user's groups give is applied when the groups, or the rules, have changed since
it was last applied; the digest that is stored with the user tells. Only what was
given so is taken back: manual memberships and roles stay.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection
from typing import Any, Final

import msgspec

from backendai_hub.core.audit import Act
from backendai_hub.core.directory import Grants, apply_rules
from backendai_hub.core.names import fold
from backendai_hub.core.tenancy import Actor, Role
from backendai_hub.db import tenancy
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import UserRow
from backendai_hub.db.tenancy import Granted
from backendai_hub.operations.platform import Platform, Settings
from backendai_hub.operations.users import join_new_domain, with_configured_role

log = logging.getLogger("backendai_hub.directory")

FOLLOW_GROUPS: Final = "user:follow-groups"
_MARK: Final = 16
"""How much of a digest is about the rules; the rest is about the user."""
_MOST_TOLD: Final = 1000


async def follow_groups(
    platform: Platform, actor: Actor, groups: Collection[str], *, admin: bool
) -> Actor:
    """Give a user what their groups in JupyterHub give, and take back what they gave.

    *admin* is whether they administer JupyterHub. Names that the rules make and that
    nothing here has are told in the log, once, and ignored.
    """
    digest = _make_digest(platform.settings, groups, admin=admin)
    if digest == actor.groups_digest:
        return actor
    grants = apply_rules(platform.settings.group_rules, groups)
    if admin and platform.settings.hub_admins_are_superadmins:
        grants = msgspec.structs.replace(grants, role=Role.SUPERADMIN)
    async with platform.database.transaction() as tx:
        await tenancy.lock_user(tx, actor.id)
        known = await tenancy.find_actor(tx.connection, user_id=actor.id)
        if known is None:
            return actor  # purged this moment; the next request tells
        if known.groups_digest != digest:
            await _apply(platform, tx, known, grants, digest)
        actor = await tenancy.find_actor(tx.connection, user_id=actor.id) or actor
    platform.actors.clear()
    return with_configured_role(platform, actor)


async def settle_roles(platform: Platform) -> None:
    """Make those superadmins whom the configuration names, and those of before not.

    Roles that rules gave which are no longer the same are taken back, too, until their
    people come again: nobody keeps a right the configuration has withdrawn.
    """
    names = platform.settings.superadmins
    async with platform.database.transaction() as tx:
        mark = _rules_mark(platform.settings)
        changed = await tenancy.grant_roles(tx, names, Role.SUPERADMIN, mark)
    for name in changed:
        log.info("the role of %s has changed with the configuration", name)
    platform.actors.clear()


async def look_again(platform: Platform, tx: Transaction) -> None:
    """Have groups applied anew: there is a domain or project of a new name."""
    mark = _rules_mark(platform.settings)
    if mark:
        await tenancy.look_again(tx, mark)


def _make_digest(settings: Settings, groups: Collection[str], *, admin: bool) -> str:
    mark = _rules_mark(settings)
    if not mark:
        return ""
    counts = admin and settings.hub_admins_are_superadmins
    own = msgspec.json.encode([sorted(set(groups)), counts])
    return mark + hashlib.sha256(own).hexdigest()[: 64 - _MARK]


def _rules_mark(settings: Settings) -> str:
    """Name the present rules; nothing if there are none."""
    if not settings.group_rules and not settings.hub_admins_are_superadmins:
        return ""
    rules = [
        [rule.group.pattern, rule.domain, rule.project, rule.role]
        for rule in settings.group_rules
    ]
    told: list[Any] = [
        rules,
        settings.hub_admins_are_superadmins,
        sorted(settings.superadmins),
    ]
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:_MARK]


async def _apply(
    platform: Platform, tx: Transaction, actor: Actor, grants: Grants, digest: str
) -> None:
    values: dict[str, Any] = {}
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    domain = await _find_new_domain(platform, tx, actor, grants)
    if domain is not None:
        first = await join_new_domain(platform, tx, actor.id, domain[0])
        values |= {"domain_id": domain[0], "project_id": first}
        before["domain"], after["domain"] = actor.domain, domain[1]
        actor = msgspec.structs.replace(
            actor, domain_id=domain[0], domain=domain[1], project_id=first
        )
    has = await tenancy.read_granted(tx.connection, actor.id)
    joined, left = await _follow_projects(platform, tx, actor, has, grants)
    if joined or left:
        before["left_projects"], after["joined_projects"] = left, joined
    if actor.project_id in left:
        values["project_id"] = None
    if actor.project_id is None or actor.project_id in left:
        values.update({"project_id": joined[0]} if joined else {})
    if actor.name not in platform.settings.superadmins:
        given = _follow_role(has, grants.role)
        if given.get("role", has.role) != has.role:
            before["role"], after["role"] = has.role, given["role"]
        fallen = domain is not None and has.role is Role.DOMAIN_ADMIN
        if fallen and "role" not in given:
            # Of the old domain, not of whatever the groups lead to.
            given = {**given, "role": str(Role.USER), "granted_role": ""}
            before["role"], after["role"] = has.role, str(Role.USER)
        if "role" in given and given["role"] != has.role:
            await tenancy.drop_admin_keys(tx, actor.id)
        values |= given
    if before or after:
        after["revision"] = has.revision + 1
        values |= {"revision": UserRow.revision + 1, "modified_at": tx.now}
        tx.audit(
            Act(
                action=FOLLOW_GROUPS,
                object_kind="user",
                object_id=actor.id,
                object_name=actor.name,
                domain_id=actor.domain_id,
                owner_id=actor.id,
                before=before,
                after=after,
            )
        )
    await tenancy.change_user(tx, actor.id, groups_digest=digest, **values)


async def _find_new_domain(
    platform: Platform, tx: Transaction, actor: Actor, grants: Grants
) -> tuple[str, str] | None:
    """Return the domain, id and name, that a user moves to."""
    if grants.domain is None or fold(grants.domain) == fold(actor.domain):
        return None
    found = await tenancy.find_domain(tx.connection, grants.domain)
    if found is None:
        _tell_once(
            platform, f"a rule gives the domain {grants.domain!r}, which does not exist"
        )
        return None
    return found, grants.domain


async def _follow_projects(
    platform: Platform, tx: Transaction, actor: Actor, has: Granted, grants: Grants
) -> tuple[list[str], list[str]]:
    """Join and leave projects; return the ids of those joined and those left."""
    wanted = []
    for grant in grants.projects:
        name = f"{grant.domain or actor.domain}:{grant.project}"
        if grant.domain is not None and fold(grant.domain) != fold(actor.domain):
            _tell_once(
                platform,
                f"a rule gives the project {name!r} to people of the domain"
                f" {actor.domain!r}; people are in projects of their own domain only",
            )
            continue
        found = await tenancy.find_project(
            tx.connection, actor.domain_id, grant.project
        )
        if found is None:
            _tell_once(
                platform, f"a rule gives the project {name!r}, which does not exist"
            )
            continue
        wanted.append(found)
    joined = [
        project
        for project in dict.fromkeys(wanted)
        if await tenancy.add_member(tx, project, actor.id, "group")
    ]
    gone = [
        project
        for project, source in has.projects.items()
        if source == "group" and project not in wanted
    ]
    left = await tenancy.remove_members(tx, actor.id, project_ids=gone)
    return joined, left


def _follow_role(has: Granted, wanted: Role | None) -> dict[str, Any]:
    """Return the columns to change so that the role is as the groups say."""
    if wanted is not None and wanted is not has.role:
        return {"role": str(wanted), "granted_role": str(wanted)}
    if wanted is None and has.granted_role:
        return {"role": str(Role.USER), "granted_role": ""}
    return {}


def _tell_once(platform: Platform, sentence: str) -> None:
    if sentence not in platform.told and len(platform.told) < _MOST_TOLD:
        platform.told.add(sentence)
        log.warning("%s; it is ignored", sentence)
