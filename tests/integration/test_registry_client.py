"""The client of image registries against a real registry."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backendai_hub.core.errors import (
    InvalidRequestError,
    RegistryError,
    RegistryLacksError,
    RegistryRefusedError,
    RegistryUnlistedError,
    RegistryUnsupportedError,
)
from backendai_hub.registries.client import RegistryClient
from backendai_hub.registries.labels import read_labels
from backendai_hub.registries.manifests import FoundImage
from tests.registry import (
    PASSWORD,
    USERNAME,
    TokenServer,
    basic,
    free_port,
    running_registry,
)

pytestmark = pytest.mark.registry

LABELS = {"ai.backend.resource.min.mem": "2g", "maintainer": "nobody"}


@pytest.fixture
def registry(tmp_path):
    with running_registry(tmp_path) as running:
        yield running


@pytest.fixture
def locked_registry(tmp_path):
    with running_registry(tmp_path, password=True) as running:
        yield running


@pytest.fixture
async def tokens():
    server = TokenServer()
    server.start()
    yield server
    await server.stop()


@pytest.fixture
def token_registry(tmp_path, tokens):
    with running_registry(tmp_path, tokens=tokens) as running:
        yield running


async def everything(names):
    return [name async for name in names]


async def test_what_was_pushed_is_found_with_all_that_is_known_of_it(registry):
    pushed = registry.push_image("team/lab", "1.0", labels=LABELS)

    async with RegistryClient(registry.url) as client:
        await client.ping()
        assert await everything(client.repositories()) == ["team/lab"]
        assert await everything(client.tags("team/lab")) == ["1.0"]
        assert await client.digest("team/lab", "1.0") == pushed.digest
        assert await client.resolve("team/lab", "1.0") == [
            FoundImage(
                repository="team/lab",
                tag="1.0",
                digest=pushed.digest,
                config_digest=pushed.config_digest,
                architecture="x86_64",
                size_bytes=pushed.size_bytes,
                labels=LABELS,
                created=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
            )
        ]


async def test_an_index_is_one_image_for_each_architecture_and_no_attestation(registry):
    pushed = registry.push_index("lab", "2", "amd64", "arm64", labels=LABELS)

    async with RegistryClient(registry.url) as client:
        found = await client.resolve("lab", "2")
        assert await client.digest("lab", "2") == pushed["index"].digest

    assert {image.architecture: image.digest for image in found} == {
        "x86_64": pushed["amd64"].digest,
        "aarch64": pushed["arm64"].digest,
    }
    assert {image.tag for image in found} == {"2"}
    assert read_labels(found[0].labels).minimum == {"cpu": "1", "mem": "2g"}


async def test_an_image_may_be_asked_for_by_its_digest(registry):
    pushed = registry.push_image("lab", "1", architecture="arm64")

    async with RegistryClient(registry.url) as client:
        [image] = await client.resolve("lab", pushed.digest)

    assert (image.tag, image.architecture) == ("", "aarch64")


async def test_images_for_other_systems_are_none(registry):
    registry.push_image("lab", "windows", os="windows")

    async with RegistryClient(registry.url) as client:
        assert await client.resolve("lab", "windows") == []


async def test_a_long_catalog_is_read_to_its_end(registry):
    names = [f"many/image-{number:03}" for number in range(250)]
    for name in names:
        registry.create_repository(name)

    async with RegistryClient(registry.url) as client:
        assert await everything(client.repositories()) == names


async def test_a_project_is_the_part_of_the_catalog_below_it(registry):
    for name in ("team/lab", "team/deep/lab", "teams/lab", "lab"):
        registry.push_image(name, "1")

    async with RegistryClient(registry.url, project="team") as client:
        assert await everything(client.repositories()) == ["team/deep/lab", "team/lab"]


async def test_what_is_not_there_is_told_by_name(registry):
    async with RegistryClient(registry.url) as client:
        with pytest.raises(RegistryLacksError, match="does not have lab:1"):
            await client.resolve("lab", "1")
        with pytest.raises(RegistryLacksError, match="does not have lab:1"):
            await client.digest("lab", "1")
        with pytest.raises(RegistryLacksError, match="the tags of lab"):
            await everything(client.tags("lab"))


async def test_nothing_listens_there():
    async with RegistryClient(f"http://127.0.0.1:{free_port()}") as client:
        with pytest.raises(RegistryError, match="does not answer: Connection refused"):
            await client.ping()


async def test_the_password_opens_a_locked_registry(locked_registry):
    locked_registry.push_image("team/lab", "1")

    async with RegistryClient(
        locked_registry.url, username=USERNAME, password=PASSWORD
    ) as client:
        assert await everything(client.repositories()) == ["team/lab"]
        assert len(await client.resolve("team/lab", "1")) == 1


@pytest.mark.parametrize("password", [None, "wrong", ""])
async def test_without_the_password_a_locked_registry_refuses(
    locked_registry, password
):
    given = {} if password is None else {"username": USERNAME, "password": password}
    async with RegistryClient(locked_registry.url, **given) as client:
        for attempt in (
            client.ping(),
            everything(client.repositories()),
            client.resolve("team/lab", "1"),
        ):
            with pytest.raises(RegistryRefusedError, match="give it the name and pass"):
                await attempt


async def test_tokens_are_fetched_once_for_each_thing_to_do(token_registry, tokens):
    token_registry.push_index("team/lab", "1", "amd64", "arm64")

    async with RegistryClient(
        token_registry.url, username=USERNAME, password=PASSWORD
    ) as client:
        assert len(await client.resolve("team/lab", "1")) == 2
        assert await everything(client.tags("team/lab")) == ["1"]
        await client.untag("team/lab", "1")

    assert [asked["scopes"] for asked in tokens.asked] == [
        ["repository:team/lab:pull"],
        ["repository:team/lab:delete"],
    ]
    assert {asked["authorization"] for asked in tokens.asked} == {basic()}


async def test_a_token_that_has_run_out_is_fetched_anew(token_registry, tokens):
    token_registry.push_image("public/lab", "1")
    now = 0.0

    async with RegistryClient(token_registry.url, clock=lambda: now) as client:
        await client.digest("public/lab", "1")
        await client.digest("public/lab", "1")
        assert len(tokens.asked) == 1
        now = tokens.life + 1.0
        await client.digest("public/lab", "1")
        assert len(tokens.asked) == 2


async def test_nobody_needs_a_password_for_what_is_public(token_registry, tokens):
    token_registry.push_image("public/lab", "1")

    async with RegistryClient(token_registry.url) as client:
        assert len(await client.resolve("public/lab", "1")) == 1
        with pytest.raises(RegistryRefusedError, match=r"refuses team/lab:1"):
            await client.resolve("team/lab", "1")

    assert {asked["authorization"] for asked in tokens.asked} == {None}


async def test_the_token_server_does_not_know_the_password(token_registry):
    async with RegistryClient(
        token_registry.url, username=USERNAME, password="wrong"
    ) as client:
        with pytest.raises(RegistryRefusedError, match="token server") as refused:
            await everything(client.repositories())

    assert "wrong" not in str(refused.value)


async def test_a_registry_that_lists_nothing_is_told_from_a_wrong_password(
    token_registry,
):
    token_registry.push_image("team/lab", "1")
    given = {"username": USERNAME, "password": PASSWORD}

    async with RegistryClient(token_registry.url, **given) as client:
        with pytest.raises(RegistryUnlistedError, match="name the repositories"):
            await everything(client.repositories())

    async with RegistryClient(
        token_registry.url, repositories=["team/lab"], **given
    ) as client:
        assert await everything(client.repositories()) == ["team/lab"]


async def test_deleting_a_digest_takes_its_tags_along(registry):
    pushed = registry.push_image("lab", "1")
    registry.tag_again("lab", pushed.digest, "latest")
    kept = registry.push_image("lab", "2", architecture="arm64")

    async with RegistryClient(registry.url) as client:
        await client.delete("lab", pushed.digest)
        with pytest.raises(RegistryLacksError):
            await client.digest("lab", "latest")
        with pytest.raises(RegistryLacksError, match="the removal of lab@sha256"):
            await client.delete("lab", pushed.digest)
        assert await client.digest("lab", "2") == kept.digest


async def test_a_tag_goes_with_its_image_where_no_other_tag_needs_it(registry):
    registry.push_image("lab", "1")
    registry.push_image("lab", "2", architecture="arm64")

    async with RegistryClient(registry.url) as client:
        await client.untag("lab", "1")
        assert await everything(client.tags("lab")) == ["2"]


async def test_a_tag_stays_where_another_leads_to_the_same_image(registry):
    pushed = registry.push_image("lab", "1")
    registry.tag_again("lab", pushed.digest, "latest")
    inside = registry.push_index("lab", "both", "amd64", "arm64")
    registry.tag_again("lab", inside["arm64"].digest, "part")
    before = set(await list_tags(registry))

    async with RegistryClient(registry.url) as client:
        with pytest.raises(RegistryUnsupportedError, match="is also latest"):
            await client.untag("lab", "1")
        with pytest.raises(RegistryUnsupportedError, match="is also both"):
            await client.untag("lab", "part")

    assert set(await list_tags(registry)) == before == {"1", "latest", "both", "part"}


async def list_tags(registry):
    async with RegistryClient(registry.url) as client:
        return await everything(client.tags("lab"))


async def test_a_registry_that_does_not_delete_says_so(tmp_path):
    with running_registry(tmp_path, can_delete=False) as registry:
        pushed = registry.push_image("lab", "1")
        async with RegistryClient(registry.url) as client:
            with pytest.raises(RegistryUnsupportedError, match="the removal of lab@"):
                await client.delete("lab", pushed.digest)


@pytest.mark.parametrize(
    ("repository", "reference"),
    [
        ("../../_catalog", "1"),
        ("Lab", "1"),
        ("lab?x=", "1"),
        ("lab/", "1"),
        ("a" * 256, "1"),
        ("lab", "../../x"),
        ("lab", "a" * 129),
        ("lab", ".hidden"),
        ("lab", "sha256:abc"),
        ("lab", ""),
        ("lab\n", "1"),
        ("lab", "1\n"),
    ],
)
async def test_what_is_no_name_is_never_sent(repository, reference):
    async with RegistryClient(f"http://127.0.0.1:{free_port()}") as client:
        for attempt in (client.resolve, client.digest, client.delete, client.untag):
            with pytest.raises(InvalidRequestError):
                await attempt(repository, reference)
