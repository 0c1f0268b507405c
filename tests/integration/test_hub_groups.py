"""What groups and administrators of a real JupyterHub are to the platform."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.harness import until
from tests.integration.people_harness import (
    PASSWORD,
    SOON,
    Site,
    is_inside,
    log_in,
    running_site,
)
from tests.integration.spawner_harness import browser


@pytest.fixture
def flags() -> list[str]:
    """Settings of the service."""
    return []


@pytest.fixture
async def site(flags: list[str]) -> AsyncIterator[Site]:
    async with running_site(*flags) as running:
        yield running


def put_in_group(site: Site, user: str, group: str) -> None:
    from jupyterhub import orm  # noqa: PLC0415 - it is slow

    known = orm.Group.find(site.app.db, group)
    if known is None:
        known = orm.Group(name=group)
        site.app.db.add(known)
    known.users.append(site.user(user).orm_user)
    site.app.db.commit()


RULES = '[{"group": "team-(?P<team>.+)", "project": "{team}"}]'


@pytest.mark.parametrize("flags", [[f"--HubService.group_rules={RULES}"]])
async def test_the_projects_of_a_hub_group_are_there_when_a_server_is_started(
    site: Site,
):
    await site.admin.make("projects", name="vision", domain="default")
    await site.make("ada")
    put_in_group(site, "ada", "team-vision")

    async with browser(site) as tab:
        assert is_inside(*await log_in(tab, "ada", PASSWORD))
        status, page = await tab.get("spawn/ada/work")
        assert status == 200
        assert "vision" in page
    status, _ = await site.start("ada", "work", {"project": "vision"})
    assert status in {201, 202}
    await site.until_ready("ada", "work")


async def test_a_hub_admin_is_nobody_special_here(site: Site):
    await site.make("ada")
    site.user("ada").admin = True
    site.app.db.commit()

    await site.start("ada", "work")
    await site.until_ready("ada", "work")

    assert (await site.admin.get("api/users/ada"))["role"] == "user"


@pytest.mark.parametrize("flags", [["--HubService.hub_admins_are_superadmins=True"]])
async def test_unless_the_configuration_makes_them_superadmins(site: Site):
    await site.make("ada")
    site.user("ada").admin = True
    site.app.db.commit()
    async with browser(site) as tab:
        assert is_inside(*await log_in(tab, "ada", PASSWORD))

        async def role() -> str:
            await tab.get("home")
            return str((await site.admin.get("api/users/ada"))["role"])

        async def is_superadmin() -> bool:
            return await role() == "superadmin"

        async def is_none() -> bool:
            return await role() == "user"

        await until(is_superadmin, "a hub admin is a superadmin", SOON)
        site.user("ada").admin = False
        site.app.db.commit()
        await until(is_none, "who is no hub admin any more is none", SOON)
