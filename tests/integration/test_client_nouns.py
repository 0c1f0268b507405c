"""The Python client against a real service: nouns, typed errors, limits of requests."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.client import Client, HubClient
from backendai_hub.core.dotfiles import Dotfile
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InUseError,
    InvalidRequestError,
    LimitReachedError,
    NotFoundError,
    PreconditionFailedError,
    TooManyRequestsError,
    UnauthenticatedError,
)
from backendai_hub.core.nouns import NOUNS
from backendai_hub.core.tenancy import Domain, Keypair, User
from tests.admin import make_administrator
from tests.harness import running_stack


@asynccontextmanager
async def administered(tmp_path, *, agent=False):
    async with running_stack(tmp_path / "data", agent=agent) as stack:
        key = await make_administrator(stack)
        async with HubClient(
            stack.url, access_key=key.name, secret_key=key.secret
        ) as root:
            yield stack, root


async def test_nouns_are_typed_and_lists_go_over_pages(tmp_path):
    async with administered(tmp_path) as (_, root):
        made = await root.domains.create(name="research", total_resource_slots={})
        assert isinstance(made, Domain)
        answer = await root.users.bulk(
            create=[{"name": f"s{n}", "domain": "research"} for n in range(7)]
        )
        assert (answer.succeeded, answer.failed) == (7, 0)

        page = await root.users.page(limit=3, domain="research", order="-name")
        assert [user.name for user in page.items] == ["s6", "s5", "s4"]
        assert isinstance(page.items[0], User)
        everyone = [u.name async for u in root.users.list(page_size=2, domain=made.id)]
        assert everyone == [f"s{n}" for n in range(7)]
        some = [u.name async for u in root.users.list(name=["s1", "s3"], search="s")]
        assert some == ["s1", "s3"]

        for noun in NOUNS:
            async for item in root.nouns(noun.name).list():
                assert isinstance(item, noun.shown)
                break


async def test_refusals_are_the_errors_they_were_made_from(tmp_path):
    async with administered(tmp_path) as (_, root):
        made = await root.domains.create(name="research")
        await root.projects.create(name="vision", domain="research")
        changed = await root.domains.update(
            "research", if_match=made.revision, description="new"
        )
        assert changed.revision == made.revision + 1

        with pytest.raises(PreconditionFailedError) as stale:
            await root.domains.update(
                "research", if_match=made.revision, description="x"
            )
        assert stale.value.fields["revision"] == changed.revision
        with pytest.raises(InvalidRequestError) as wrong:
            await root.domains.create(name="-", total_resource_slots={"cpu": "many"})
        fields = [entry["field"] for entry in wrong.value.fields["errors"]]
        assert fields == ["name", "total_resource_slots"]
        with pytest.raises(ConflictError, match="another spelling"):
            await root.domains.create(name="RESEARCH")
        await root.domains.update("research", is_active=False)
        with pytest.raises(InUseError) as used:
            await root.domains.purge("research")
        assert used.value.fields["users"] == {"projects": ["vision"]}
        with pytest.raises(PreconditionFailedError):
            await root.domains.purge("research", if_match=1)
        with pytest.raises(NotFoundError):
            await root.domains.get("elsewhere")


async def test_a_key_has_its_users_rights_and_ends_when_it_is_issued_anew(tmp_path):
    async with administered(tmp_path) as (stack, root):
        await root.users.create(name="grace")
        made = await root.keypairs.create(user="grace")
        assert isinstance(made, Keypair)
        grace = HubClient(stack.url, access_key=made.name, secret_key=made.secret)
        async with grace:
            assert (await grace.me()).name == "grace"
            with pytest.raises(ForbiddenError):
                await grace.domains.create(name="mine")
            files = [Dotfile(path=".vimrc", content="set nu\n")]
            assert await grace.dotfiles.write("keypair", made.name, files) == files
            assert await grace.dotfiles.read("keypair", made.name) == files
            issued = await root.keys.issue(made.name)
            assert issued.secret != made.secret
            with pytest.raises(UnauthenticatedError):
                await grace.me()


async def test_a_limit_of_waiting_sessions_is_an_error_of_its_own(tmp_path):
    async with administered(tmp_path, agent=True) as (stack, root):
        await root.users.create(name="grace")
        await root.keypair_policies.create(
            name="none-waits",
            max_pending_session_count=0,
            total_resource_slots={"cpu": "1"},
        )
        (usual,) = [key async for key in root.keypairs.list(user="grace")]
        await root.keypairs.update(usual.name, resource_policy="none-waits")
        made = await root.keypairs.create(user="grace")
        async with HubClient(
            stack.url, access_key=made.name, secret_key=made.secret
        ) as grace:
            with pytest.raises(LimitReachedError, match="none-waits"):
                await grace.sessions.create(SessionRequest(image="jupyterlab"))


async def test_who_asks_too_often_is_told_for_how_long(tmp_path):
    async with administered(tmp_path) as (stack, root):
        await root.users.create(name="grace")
        made = await root.keypairs.create(user="grace", rate_limit=3)
        async with HubClient(
            stack.url, access_key=made.name, secret_key=made.secret
        ) as grace:
            for _ in range(3):
                await grace.me()
            with pytest.raises(TooManyRequestsError, match="more than 3") as refused:
                await asyncio.wait_for(grace.me(), 60)
            assert 0 < refused.value.fields["retry_after"] <= 900


async def test_scripts_and_notebooks_use_all_of_it_without_await(tmp_path):
    async with administered(tmp_path) as (stack, _):
        key = await make_administrator(stack, "script")
        environ = {
            "BACKENDAI_ENDPOINT": stack.url,
            "BACKENDAI_ACCESS_KEY": key.name,
            "BACKENDAI_SECRET_KEY": key.secret or "",
        }

        def script() -> None:
            with Client(environ=environ) as client:
                client.domains.create(
                    name="research", allowed_docker_registries=["local"]
                )
                client.projects.create(name="vision", domain="research")
                client.users.create(name="grace", domain="research")
                (done,) = client.members.change("research:vision", add=["grace"])
                assert done.added
                members = client.members.list("research:vision")
                assert [m.user for m in members] == ["grace"]
                client.resource_groups.create(name="gpu")
                client.group_access.change("gpu", allow=[("domain", "research")])
                assert client.group_access.list("gpu")[0].name == "research"
                assert client.limits.verify_usage().drift == 0
                assert client.limits.check_presets().project == "default"
                names = [d.name for d in client.domains.list(order="name")]
                assert names == ["default", "research"]
                with pytest.raises(NotFoundError):
                    client.domains.get("elsewhere")
                account = client.accounts.create("ada", domain="research")
                assert account.password

        await asyncio.to_thread(script)


def test_a_keypair_is_whole_or_there_is_a_token():
    with pytest.raises(ValueError, match="access key"):
        HubClient("http://127.0.0.1:9/", access_key="a")
    with pytest.raises(ValueError, match="access key"):
        HubClient("http://127.0.0.1:9/", access_key="a", secret_key="b", token="t")
