"""Images that a real container engine fetches from a real registry, and removes."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import os
import socket
import time
import uuid

import docker
import docker.errors
import pytest
from traitlets.config import Config

from backendai_agent.images import Images
from backendai_agent.runtimes.base import RuntimeFailure
from backendai_agent.runtimes.docker import DockerRuntime
from backendai_hub.api.agents import RegistryCredential
from tests.registry import (
    CONFIG,
    LAYER,
    MANIFEST,
    PASSWORD,
    USERNAME,
    describe,
    digest_of,
    make_layer,
    running_registry,
)

pytestmark = [pytest.mark.docker, pytest.mark.registry]


@pytest.fixture
def registry(tmp_path):
    with running_registry(tmp_path) as running:
        yield running


@pytest.fixture
def closed_registry(tmp_path):
    with running_registry(tmp_path, password=True) as running:
        yield running


@pytest.fixture
def api():
    """The engine itself, to look behind the runtime's back."""
    client = docker.APIClient(version="auto")
    yield client
    client.close()


@pytest.fixture
def repository():
    """A name of this test's own: engines remember layers, registries do not."""
    return f"team/{uuid.uuid4().hex}"


@pytest.fixture
async def runtime(api, tmp_path, repository):
    mark = uuid.uuid4().hex[:6]
    config = Config()
    config.DockerRuntime.network = f"test-{mark}"
    config.DockerRuntime.subnet = f"10.215.{int(mark[:2], 16)}.0/24"
    made = DockerRuntime(config=config, data_dir=str(tmp_path / "a"), agent_id=mark)
    await made.open()
    yield made
    await made.close()
    for network in api.networks(names=[f"test-{mark}"]):
        api.remove_network(network["Id"])
    for image in api.images():
        names = [*(image["RepoTags"] or ()), *(image["RepoDigests"] or ())]
        if any(repository in name for name in names):
            api.remove_image(image["Id"], force=True)


def push_large(registry, repository, size):
    """Push an image of one layer that takes the engine a moment."""
    layer = make_layer(os.urandom(size // 2).hex())
    described = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {
                "type": "layers",
                "diff_ids": [digest_of(gzip.decompress(layer))],
            },
        }
    ).encode()
    for blob in (layer, described):
        registry.push_blob(repository, blob)
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": describe(CONFIG, described),
        "layers": [describe(LAYER, layer)],
    }
    registry.push_manifest(repository, "large", manifest)
    return f"{registry.host}/{repository}:large"


def login(registry, password=PASSWORD):
    return RegistryCredential(
        registry=registry.host, username=USERNAME, password=password
    )


async def test_an_image_is_fetched_listed_and_removed(runtime, registry, repository):
    registry.push_image(repository, "1")
    reference = f"{registry.host}/{repository}:1"
    await runtime.fetch(reference, lambda _: None)
    assert reference in await runtime.images()
    await runtime.fetch(reference, lambda _: None)  # again is no error
    await runtime.discard(reference)
    assert reference not in await runtime.images()
    await runtime.discard(reference)


async def test_an_image_is_known_by_its_digest(runtime, registry, repository):
    pushed = registry.push_image(repository, "1")
    for tag in ("", ":1"):
        reference = f"{registry.host}/{repository}{tag}@{pushed.digest}"
        images = Images(runtime)
        await images.ensure(reference, lambda _: None)
        assert images.shorten(reference) in images.present
        await images.discard(reference)
        assert images.shorten(reference) not in images.present


async def test_progress_grows_from_nothing_to_all(runtime, registry, repository):
    reference = push_large(registry, repository, 40_000_000)
    heard = []
    await runtime.fetch(reference, heard.append)
    amounts = [amount for amount in heard if amount is not None]
    assert amounts == sorted(amounts)
    assert len(amounts) > 3
    assert amounts[0] < 0.5
    assert amounts[-1] == 1.0


async def test_an_image_with_a_container_stays(runtime, registry, repository, api):
    registry.push_image(repository, "1")
    reference = f"{registry.host}/{repository}:1"
    await runtime.fetch(reference, lambda _: None)
    made = api.create_container(reference, command=["/greeting"])
    try:
        with pytest.raises(RuntimeFailure, match="is needed by a container"):
            await runtime.discard(reference)
        assert reference in await runtime.images()
    finally:
        api.remove_container(made["Id"])
    await runtime.discard(reference)
    assert reference not in await runtime.images()


async def test_another_name_of_an_image_keeps_it(runtime, registry, repository):
    pushed = registry.push_image(repository, "1")
    registry.tag_again(repository, pushed.digest, "2")
    one, two = (f"{registry.host}/{repository}:{tag}" for tag in "12")
    await runtime.fetch(one, lambda _: None)
    await runtime.fetch(two, lambda _: None)
    await runtime.discard(one)
    assert two in await runtime.images()


async def test_a_login_opens_a_closed_registry_and_is_seen_nowhere(
    runtime, closed_registry, repository, api, tmp_path, caplog
):
    caplog.set_level(logging.DEBUG)
    closed_registry.push_image(repository, "1")
    reference = f"{closed_registry.host}/{repository}:1"
    for credential in (None, login(closed_registry, "wrong-password")):
        with pytest.raises(RuntimeFailure, match="refuses the login, or wants one"):
            await runtime.fetch(reference, lambda _: None, credential)
    await runtime.fetch(reference, lambda _: None, login(closed_registry))

    assert reference in await runtime.images()
    assert PASSWORD not in json.dumps(api.inspect_image(reference))
    assert PASSWORD not in caplog.text
    kept = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert all(PASSWORD.encode() not in path.read_bytes() for path in kept)
    # Nor has the engine, or docker-py, kept it for whoever comes next.
    await runtime.discard(reference)
    with pytest.raises(RuntimeFailure, match="refuses the login, or wants one"):
        await runtime.fetch(reference, lambda _: None)


async def test_what_a_registry_does_not_have_is_said_so(runtime, registry, repository):
    registry.push_image(repository, "1")
    with pytest.raises(RuntimeFailure, match="there is no such tag"):
        await runtime.fetch(f"{registry.host}/{repository}:2", lambda _: None)


async def test_a_registry_that_is_away_is_said_so(runtime, repository):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RuntimeFailure, match="its registry cannot be reached"):
        await runtime.fetch(f"127.0.0.1:{port}/{repository}:1", lambda _: None)


async def test_a_registry_that_says_nothing_holds_nobody_up(runtime, repository):
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        port = server.getsockname()[1]
        pulls = [
            asyncio.create_task(
                runtime.fetch(f"127.0.0.1:{port}/{repository}:{n}", lambda _: None)
            )
            for n in range(20)
        ]
        server.settimeout(60)
        connection, _ = await asyncio.to_thread(server.accept)
        began = time.monotonic()
        async with asyncio.timeout(60):
            await runtime.images()  # other questions are still answered
        for pull in pulls:
            pull.cancel()
        await asyncio.gather(*pulls, return_exceptions=True)
        assert time.monotonic() - began < 60
        connection.close()
