"""The images of those who wait, as they have been read last."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.images import Image
from backendai_hub.db.images import load_images


class KnownImages:
    """Images by id; each is read once, until somebody asks for all of them anew."""

    def __init__(self) -> None:
        self._images: dict[str, Image] = {}

    def get(self, image_id: str | None) -> Image | None:
        """Return an image that has been read; None if there is none under this id."""
        return self._images.get(image_id or "")

    async def read(
        self, connection: AsyncConnection, ids: Iterable[str | None], *, anew: bool
    ) -> set[str]:
        """Read those that are not known, or all *anew*; return which look different."""
        chosen = {image_id for image_id in ids if image_id is not None}
        missing = chosen if anew else chosen - self._images.keys()
        if not missing:
            return set()
        found = await load_images(connection, sorted(missing))
        known = {} if anew else self._images
        different = {i for i in missing if self._images.get(i) != found.get(i)}
        self._images = {**known, **found}
        return different
