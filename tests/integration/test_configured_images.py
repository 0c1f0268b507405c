"""What the configuration says of an image is what sessions of it may ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.operations.bootstrap import offer_images
from backendai_hub.operations.platform import Platform
from tests.admin import admin_api
from tests.factories import IMAGE, submit
from tests.harness import Stack, running_stack

MADE_FOR_CUDA = (
    '--HubService.images=[{"name": "torch", "references": {"fake": "fake"},'
    ' "minimum": {"cpu": "1"}, "accelerators": ["cuda"]}]'
)


@pytest.fixture
async def cuda_site(tmp_path: Path, migrated_url: str) -> AsyncIterator[Stack]:
    """A real service that offers nothing but an image that is made for CUDA."""
    async with running_stack(
        tmp_path / "data", migrated_url, agent=False, flags=[MADE_FOR_CUDA]
    ) as running:
        yield running


async def test_more_than_an_images_configured_maximum_is_refused(platform: Platform):
    small = msgspec.structs.replace(IMAGE, maximum={"cpu": "2"})
    await offer_images(platform, [small])
    with pytest.raises(InvalidRequestError, match="at most 2"):
        await submit(platform, slots={"cpu": "3"})
    assert (await submit(platform, slots={"cpu": "2"})).created


async def test_accelerators_an_image_is_not_made_for_are_told_with_all_else(
    cuda_site: Stack,
):
    async with admin_api(cuda_site) as root:
        await root.make("slot-types", name="rocm.device", slot_type="count")
        slots = {"cpu": 0.5, "rocm.device": 2}
        asked = {"image": "torch", "slots": slots, "cluster_size": 2}
        status, told = await root.send("POST", "api/sessions/dry-run", json=asked)
        assert status == 200
        made_for = (
            "rocm.device: torch is made for cuda, not for rocm; leave it out, or choose"
            " another environment"
        )
        one, another, third = [objection["text"] for objection in told["refused"]]
        assert one.startswith("cpu: 0.5 is less than torch needs")
        assert another == made_for
        assert third.startswith("cluster_size: 2 containers are more than 1")

        asked = {"image": "torch", "slots": {"rocm.device": 2}}
        assert await root.refused("POST", "api/sessions", json=asked) == (422, made_for)
        asked["slots"] = {"cuda.device": 2, "rocm.device": 0}
        status, made = await root.send("POST", "api/sessions", json=asked)
        assert (status, made["slots"]["cuda.device"]) == (201, "2")


@pytest.mark.parametrize("name", ["cuda.device", "CUDA", ""])
async def test_what_is_no_kind_of_accelerator_is_not_configured(
    platform: Platform, name: str
):
    image = msgspec.structs.replace(IMAGE, accelerators=["cuda", name])
    with pytest.raises(InvalidRequestError, match="is not a kind of accelerator"):
        await offer_images(platform, [image])
