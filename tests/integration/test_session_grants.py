"""What administrators say of people and of resource groups reaches the node."""

from __future__ import annotations

import msgspec
import pytest

from backendai_hub.api.agents import ContainerSpec, Identity
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import ForbiddenError, InvalidRequestError
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Role
from backendai_hub.operations.nodes import load_assignments
from backendai_hub.operations.nouns import change_noun
from backendai_hub.operations.platform import Platform
from tests.factories import add_node, principal_of, start
from tests.tenants import Office


@pytest.fixture
async def office(platform: Platform) -> Office:
    return Office(platform)


class Told:
    """A node, and what it is told of the sessions of alice and bob."""

    def __init__(self, platform: Platform, node_id: str) -> None:
        self._platform, self._node_id = platform, node_id

    async def __call__(self) -> dict[str, ContainerSpec]:
        told = await load_assignments(self._platform, self._node_id)
        return {spec.owner: spec for spec in told.containers}


@pytest.fixture
async def told(platform: Platform) -> Told:
    node = await add_node(platform)
    for name in ("alice", "bob"):
        await start(platform, name)
    return Told(platform, node.id)


async def test_without_a_word_of_administrators_nothing_is_granted(told: Told):
    for spec in (await told()).values():
        assert (spec.host_network, spec.sudo, spec.identity) == (False, False, None)


async def test_sessions_of_a_group_are_on_their_nodes_network(
    told: Told, office: Office
):
    await office.change("resource-group", "default", use_host_network=True)
    assert {s.host_network for s in (await told()).values()} == {True}
    await office.change("resource-group", "default", use_host_network=False)
    assert {s.host_network for s in (await told()).values()} == {False}


async def test_sudo_is_for_the_sessions_of_one_person(told: Told, office: Office):
    await office.change("user", "alice", sudo_session_enabled=True)
    found = await told()
    assert (found["alice"].sudo, found["bob"].sudo) == (True, False)


async def test_the_numbers_of_one_person_are_those_of_their_sessions(
    told: Told, office: Office
):
    await office.change("user", "alice", container_uid=5001)
    assert (await told())["alice"].identity == Identity(uid=5001)
    await office.change(
        "user", "alice", container_main_gid=5002, container_gids=[5003, 5004]
    )
    found = await told()
    assert found["alice"].identity == Identity(uid=5001, gid=5002, gids=[5003, 5004])
    assert found["bob"].identity is None
    await office.change(
        "user",
        "alice",
        container_uid=None,
        container_main_gid=None,
        container_gids=[],
    )
    assert (await told())["alice"].identity is None


FIELDS = [
    {"sudo_session_enabled": True},
    {"container_uid": 5001},
    {"container_main_gid": 5001},
    {"container_gids": [5001]},
]


@pytest.mark.parametrize("change", FIELDS, ids=lambda change: next(iter(change)))
@pytest.mark.parametrize("role", [Role.USER, Role.DOMAIN_ADMIN, Role.MONITOR])
async def test_only_a_superadmin_grants_them_and_nobody_themselves(
    told: Told, office: Office, role: Role, change: dict[str, object]
):
    await office.change("user", "alice", role=role)
    alice = await principal_of(office.platform, "alice", Caller.USER)
    noun = noun_of("user")
    body = msgspec.convert(change, noun.change_type)
    with pytest.raises(ForbiddenError):
        await change_noun(office.platform, alice, noun, "alice", body)
    spec = (await told())["alice"]
    assert (spec.sudo, spec.identity) == (False, None)


@pytest.mark.parametrize(
    "change",
    [{"container_uid": 0}, {"container_main_gid": 0}, {"container_gids": [0]}],
    ids=lambda change: next(iter(change)),
)
async def test_nobody_is_made_root_of_a_node(
    told: Told, office: Office, change: dict[str, object]
):
    with pytest.raises(InvalidRequestError, match=next(iter(change))):
        await office.change("user", "alice", **change)
    assert (await told())["alice"].identity is None
