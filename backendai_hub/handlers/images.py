"""Routes about images beyond the common verbs: rescans, aliases, installs."""

from __future__ import annotations

from backendai_hub.api.images import (
    AliasesRequest,
    Install,
    InstallAnswer,
    InstallRequest,
    RescanRequest,
    RescanStatus,
)
from backendai_hub.core.access import Action
from backendai_hub.core.images import ImageRecord
from backendai_hub.core.nouns import Verb, noun_of
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations import images, rescans


class RescanHandler(APIHandler):
    """The reading of a registry."""

    path = "api/registries/{reference}/rescan"

    @operation(noun_of("registry").action(Verb.READ))
    async def get(self, reference: str) -> RescanStatus:
        """Tell how far the latest reading of a registry is."""
        return await rescans.read_rescan(self.platform, self.principal, reference)

    @operation(Action.RESCAN_IMAGES, status=202)
    async def post(self, reference: str, body: RescanRequest) -> RescanStatus:
        """Have a registry read; one that is being read already goes on as it is."""
        return await rescans.request_rescan(
            self.platform, self.principal, reference, body
        )


class AliasesHandler(APIHandler):
    """The other names of an image."""

    path = "api/images/{reference}/aliases"

    @operation(Action.CHANGE_ALIASES)
    async def post(self, reference: str, body: AliasesRequest) -> ImageRecord:
        """Give an image other names and take some away; all of them or none."""
        return await images.change_aliases(
            self.platform, self.principal, reference, body
        )


class ForgetImageHandler(APIHandler):
    """The end of an offer."""

    path = "api/images/{reference}/forget"

    @operation(Action.FORGET_IMAGE)
    async def post(self, reference: str) -> ImageRecord:
        """Take an image off offer; what runs of it goes on."""
        return await images.forget_image(self.platform, self.principal, reference)


class UntagImageHandler(APIHandler):
    """The removal of a tag."""

    path = "api/images/{reference}/untag"

    @operation(Action.UNTAG_IMAGE)
    async def post(self, reference: str) -> ImageRecord:
        """Remove an image's tag from its registry, and take it off offer."""
        return await images.untag_image(self.platform, self.principal, reference)


class InstallImageHandler(APIHandler):
    """What nodes are asked to do with an image."""

    path = "api/images/{reference}/install"

    @operation(Action.INSTALL_IMAGE, status=202)
    async def post(self, reference: str, body: InstallRequest) -> InstallAnswer:
        """Ask the nodes of a resource group to hold an image, or to remove it."""
        return await images.install_image(
            self.platform, self.principal, reference, body
        )


class InstallsHandler(APIHandler):
    """What nodes do with an image."""

    path = "api/images/{reference}/installs"

    @operation(Action.READ_INSTALLS)
    async def get(self, reference: str) -> list[Install]:
        """List which nodes hold an image or are asked to, and how far they are."""
        return await images.list_image_installs(
            self.platform, self.principal, reference
        )
