"""What the configuration says of an image is what sessions of it may ask for."""

from __future__ import annotations

import msgspec
import pytest

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.operations.bootstrap import offer_images
from backendai_hub.operations.platform import Platform
from tests.factories import IMAGE, submit


async def test_more_than_an_images_configured_maximum_is_refused(platform: Platform):
    small = msgspec.structs.replace(IMAGE, maximum={"cpu": "2"})
    await offer_images(platform, [small])
    with pytest.raises(InvalidRequestError, match="at most 2"):
        await submit(platform, slots={"cpu": "3"})
    assert (await submit(platform, slots={"cpu": "2"})).created
