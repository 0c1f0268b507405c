"""The client's part about images beyond the common verbs: rescans, names, installs."""

from __future__ import annotations

from collections.abc import Sequence

from backendai_hub.api.agents import ImageWish
from backendai_hub.api.images import Install, InstallAnswer, RescanStatus
from backendai_hub.client.tenancy import Part
from backendai_hub.client.transport import segment
from backendai_hub.core.images import ImageRecord


class ImageVerbs(Part):
    """Read registries, name images, and have nodes hold them."""

    async def rescan(
        self,
        registry: str,
        *,
        repository: str | None = None,
        project: str | None = None,
    ) -> RescanStatus:
        """Have a registry read; one that is being read already goes on as it is."""
        return await self._transport.post(
            f"registries/{segment(registry)}/rescan",
            {"repository": repository, "project": project},
            RescanStatus,
            act_for=self._act_for,
        )

    async def rescan_status(self, registry: str) -> RescanStatus:
        """Tell how far the latest reading of a registry is."""
        path = f"registries/{segment(registry)}/rescan"
        return await self._transport.get(path, RescanStatus, act_for=self._act_for)

    async def change_aliases(
        self, image: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> ImageRecord:
        """Give an image other names and take some away; all of them or none."""
        return await self._transport.post(
            _path(image, "aliases"),
            {"add": add, "remove": remove},
            ImageRecord,
            act_for=self._act_for,
        )

    async def forget(self, image: str) -> ImageRecord:
        """Take an image off offer; what runs of it goes on."""
        return await self._transport.post(
            _path(image, "forget"), {}, ImageRecord, act_for=self._act_for
        )

    async def untag(self, image: str) -> ImageRecord:
        """Remove an image's tag from its registry, and take it off offer."""
        return await self._transport.post(
            _path(image, "untag"), {}, ImageRecord, act_for=self._act_for
        )

    async def install(
        self,
        image: str,
        *,
        resource_group: str,
        wanted: ImageWish = ImageWish.PRESENT,
    ) -> InstallAnswer:
        """Ask the nodes of a resource group to hold an image, or to remove it."""
        return await self._transport.post(
            _path(image, "install"),
            {"resource_group": resource_group, "wanted": wanted},
            InstallAnswer,
            act_for=self._act_for,
        )

    async def installs(self, image: str) -> Sequence[Install]:
        """Return which nodes hold an image or are asked to, and how far they are."""
        return await self._transport.get(
            _path(image, "installs"), tuple[Install, ...], act_for=self._act_for
        )


def _path(image: str, verb: str) -> str:
    return f"images/{segment(image)}/{verb}"
