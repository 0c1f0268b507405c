"""Where people land who come from JupyterHub, and what their groups give them."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable
from typing import Any

import pytest
from sqlalchemy import select

from backendai_hub.core.access import Caller
from backendai_hub.core.directory import read_rules
from backendai_hub.core.errors import ForbiddenError, InvalidRequestError
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Actor, Role
from backendai_hub.db.tables import ProjectRow, UserRow
from backendai_hub.operations.directory import follow_groups, settle_roles
from backendai_hub.operations.members import MembersRequest, change_members
from backendai_hub.operations.nouns import change_noun, create_noun
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import ensure_user, find_user
from tests.factories import principal_of

TEAMS = {"group": "team-(?P<team>.+)", "project": "{team}"}
USER, DOMAIN = noun_of("user"), noun_of("domain")


def configured(platform: Platform, **settings: Any) -> Platform:
    """Return the same platform after a restart with another configuration."""
    settings.setdefault("superadmins", frozenset({"root"}))
    settings["group_rules"] = read_rules(settings.get("group_rules", ()))
    return dataclasses.replace(
        platform, settings=dataclasses.replace(platform.settings, **settings), actors={}
    )


async def make(platform: Platform, noun: str, **fields: Any) -> Any:
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    found = noun_of(noun)
    return await create_noun(platform, root, found, found.create_type(**fields))


async def change_user(platform: Platform, name: str, **fields: Any) -> Any:
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    return await change_noun(platform, root, USER, name, USER.change_type(**fields))


async def come(
    platform: Platform, name: str, groups: Iterable[str] = (), *, admin: bool = False
) -> Actor:
    """Do what a request with JupyterHub's credential does."""
    actor = await ensure_user(platform, name)
    return await follow_groups(platform, actor, list(groups), admin=admin)


def projects(actor: Actor) -> list[str]:
    return sorted(actor.projects.values())


# --- landing ---------------------------------------------------------------------


async def test_new_people_join_the_default_domain_and_project(platform: Platform):
    ada = await come(platform, "ada")

    assert (ada.domain, ada.project, ada.role) == ("default", "default", Role.USER)


async def test_the_configuration_says_where_new_people_land(platform: Platform):
    site = configured(platform, join_domain="Lab", join_project="onboarding")
    await make(site, "domain", name="lab")
    await make(site, "project", name="onboarding", domain="lab")

    ada = await come(site, "ada")

    assert (ada.domain, ada.project) == ("lab", "onboarding")


async def test_without_a_project_to_join_people_are_in_none(platform: Platform):
    ada = await come(configured(platform, join_project=""), "ada")

    assert ada.projects == {}
    assert ada.project is None


async def test_nobody_lands_elsewhere_while_the_domain_is_missing(platform: Platform):
    site = configured(platform, join_domain="lab")

    with pytest.raises(ForbiddenError, match="'lab', which new people join"):
        await come(site, "ada")
    assert await find_user(site, "ada") is None

    assert (await come(site, "root")).domain == "default", "somebody has to make it"
    await make(site, "domain", name="lab")
    assert (await come(site, "ada")).domain == "lab"


# --- groups ----------------------------------------------------------------------


async def test_groups_give_projects_and_take_them_back(platform: Platform):
    site = configured(platform, group_rules=[TEAMS])
    await make(site, "project", name="vision", domain="default")
    await make(site, "project", name="speech", domain="default")

    both = await come(site, "ada", ["team-vision", "team-speech", "others"])
    assert projects(both) == ["default", "speech", "vision"]

    one = await come(site, "ada", ["team-speech"])
    assert projects(one) == ["default", "speech"]

    none = await come(site, "ada")
    assert projects(none) == ["default"]


async def test_what_people_were_given_by_hand_stays(platform: Platform):
    site = configured(platform, group_rules=[TEAMS])
    await make(site, "project", name="vision", domain="default")
    await come(site, "ada")
    root = await principal_of(site, "root", Caller.SUPERADMIN)
    await change_members(site, root, "vision", MembersRequest(add=["ada"]))

    await come(site, "ada", ["team-vision"])
    left = await come(site, "ada")

    assert projects(left) == ["default", "vision"]


async def test_a_project_that_is_lost_is_nobodys_usual_one(platform: Platform):
    site = configured(platform, group_rules=[TEAMS], join_project="")
    await make(site, "project", name="vision", domain="default")

    assert (await come(site, "ada", ["team-vision"])).project == "vision"
    assert (await come(site, "ada")).project_id is None


async def test_a_missing_project_is_told_once_and_joined_when_it_is_made(
    platform: Platform, caplog: pytest.LogCaptureFixture
):
    site = configured(platform, group_rules=[TEAMS])
    with caplog.at_level(logging.WARNING, "backendai_hub.directory"):
        for name in ("ada", "bob"):
            found = await come(site, name, ["team-missing-one"])
            assert projects(found) == ["default"]
    told = [r for r in caplog.records if "missing-one" in r.getMessage()]
    assert len(told) == 1
    assert "does not exist; it is ignored" in told[0].getMessage()

    await make(site, "project", name="missing-one", domain="default")

    found = await come(site, "ada", ["team-missing-one"])
    assert projects(found) == ["default", "missing-one"]


async def test_groups_never_reach_into_another_domain(
    platform: Platform, caplog: pytest.LogCaptureFixture
):
    rules = [
        {"group": "staff", "domain": "lab"},
        {"group": "spies", "domain": "default", "project": "secret"},
        {"group": "staff", "project": "secret"},
    ]
    site = configured(platform, group_rules=rules)
    await make(site, "domain", name="lab")
    await make(site, "project", name="secret", domain="default")

    ada = await come(site, "ada", ["staff", "spies"])

    assert ada.domain == "lab"
    assert ada.projects == {}
    assert "of their own domain only" in caplog.text


async def test_a_rule_moves_people_and_they_leave_what_they_were_in(
    platform: Platform,
):
    rules = [{"group": "lab", "domain": "lab", "project": "bench"}]
    site = configured(platform, group_rules=rules)
    await come(site, "ada")
    await make(site, "domain", name="lab")
    for name in ("default", "bench"):
        await make(site, "project", name=name, domain="lab")

    ada = await come(site, "ada", ["lab"])

    assert (ada.domain, projects(ada)) == ("lab", ["bench", "default"])
    domains = {await domain_of(platform, project) for project in ada.projects}
    assert domains == {ada.domain_id}


async def domain_of(platform: Platform, project_id: str) -> str:
    async with platform.database.read() as connection:
        found = await connection.scalar(
            select(ProjectRow.domain_id).where(ProjectRow.id == project_id)
        )
    return str(found)


async def test_a_missing_domain_moves_nobody(platform: Platform):
    rules = [{"group": "lab", "domain": "nowhere"}]

    ada = await come(configured(platform, group_rules=rules), "ada", ["lab"])

    assert (ada.domain, projects(ada)) == ("default", ["default"])


async def test_groups_give_roles_and_take_them_back(platform: Platform):
    site = configured(platform, group_rules=[{"group": "ops", "role": "superadmin"}])

    assert (await come(site, "ada", ["ops"])).role is Role.SUPERADMIN
    assert (await find_user(site, "ada")).role is Role.SUPERADMIN, "by keypair, too"
    assert (await come(site, "ada")).role is Role.USER


async def test_a_role_that_an_administrator_gave_stays(platform: Platform):
    site = configured(platform, group_rules=[{"group": "ops", "role": "monitor"}])
    await come(site, "ada")
    await come(site, "bob", ["ops"])
    await change_user(site, "ada", role="domain-admin")
    await change_user(site, "bob", role="domain-admin")

    assert (await come(site, "ada", ["others"])).role is Role.DOMAIN_ADMIN
    assert (await come(site, "bob")).role is Role.DOMAIN_ADMIN


async def test_a_user_who_asks_again_costs_no_transaction(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    site = configured(platform, group_rules=[TEAMS])
    await come(site, "ada", ["b", "a"])

    def refuse() -> None:
        raise AssertionError("nothing has changed")

    monkeypatch.setattr(type(site.database), "transaction", lambda self: refuse())
    await come(site, "ada", ["a", "b"])


# --- administrators --------------------------------------------------------------


async def test_a_hub_admin_is_a_superadmin_only_if_the_configuration_says_so(
    platform: Platform,
):
    assert (await come(platform, "ada", admin=True)).role is Role.USER
    ruled = configured(platform, group_rules=[TEAMS])
    assert (await come(ruled, "ada", admin=True)).role is Role.USER

    site = configured(platform, hub_admins_are_superadmins=True)
    assert (await come(site, "ada", admin=True)).role is Role.SUPERADMIN
    assert (await come(site, "ada", admin=False)).role is Role.USER


async def test_the_configurations_superadmins_are_stored_as_such(platform: Platform):
    """What guards superadmins from domain admins looks at the stored role."""
    site = configured(platform, superadmins=frozenset({"ada"}))
    await ensure_user(site, "ada")

    assert await stored_role(platform, "ada") == "superadmin"


async def test_who_was_there_before_becomes_one_at_the_next_start(platform: Platform):
    await ensure_user(platform, "ada")
    site = configured(platform, superadmins=frozenset({"ada"}))
    await settle_roles(site)
    assert await stored_role(platform, "ada") == "superadmin"

    await settle_roles(configured(platform, superadmins=frozenset()))
    assert await stored_role(platform, "ada") == "user"


async def test_a_restart_leaves_roles_that_administrators_gave(platform: Platform):
    site = configured(platform)
    await come(site, "ada")
    await change_user(site, "ada", role="superadmin")

    await settle_roles(site)

    assert await stored_role(platform, "ada") == "superadmin"


async def test_roles_of_rules_end_with_the_rules_and_not_with_a_restart(
    platform: Platform,
):
    rules = [{"group": "ops", "role": "superadmin"}]
    site = configured(platform, group_rules=rules)
    await come(site, "ada", ["ops"])

    await settle_roles(configured(platform, group_rules=rules))
    assert await stored_role(platform, "ada") == "superadmin"

    await settle_roles(configured(platform, group_rules=[TEAMS]))
    assert await stored_role(platform, "ada") == "user"


async def test_projects_of_rules_that_are_gone_are_left_at_the_next_visit(
    platform: Platform,
):
    site = configured(platform, group_rules=[TEAMS])
    await make(site, "project", name="vision", domain="default")
    await come(site, "ada", ["team-vision"])

    left = await come(configured(platform), "ada", ["team-vision"])

    assert projects(left) == ["default"]


async def test_a_domain_admin_makes_nobody_whom_the_configuration_trusts(
    platform: Platform,
):
    site = configured(platform, superadmins=frozenset({"root", "Ada"}))
    await come(site, "dean")
    await change_user(site, "dean", role="domain-admin")
    dean = await principal_of(site, "dean", Caller.DOMAIN_ADMIN)

    with pytest.raises(ForbiddenError, match="only a superadmin makes"):
        await create_noun(site, dean, USER, USER.create_type(name="ada"))


async def test_the_configurations_superadmins_are_not_demoted_by_hand(
    platform: Platform,
):
    site = configured(platform, superadmins=frozenset({"root", "ada"}))
    await come(site, "ada")

    with pytest.raises(InvalidRequestError, match=r"c\.HubService\.superadmins"):
        await change_user(site, "ada", role="user")


async def stored_role(platform: Platform, name: str) -> str:
    async with platform.database.read() as connection:
        found = await connection.scalar(
            select(UserRow.role).where(UserRow.name == name)
        )
    return str(found)
