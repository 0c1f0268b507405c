"""Manifests, indexes and configurations of images, read from what a registry sends.

A *manifest* names the layers and the configuration of one image; an *index* names
one manifest for each platform. Docker's older media types mean the same.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec

from backendai_hub.registries.names import DIGEST

ACCEPT: Final = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_INDEXES: Final = frozenset(
    {
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    }
)
_MANIFESTS: Final = frozenset(
    {
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    }
)
_IMAGES: Final = frozenset(
    {
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.docker.container.image.v1+json",
    }
)
_LARGEST_IMAGE: Final = 1 << 50
_ATTESTATION: Final = "vnd.docker.reference.type"

# Go's names of architectures, and what `uname -m` says.
_MACHINES: Final = {
    "amd64": "x86_64",
    "arm64": "aarch64",
    "386": "i686",
    "loong64": "loongarch64",
}
_ARM: Final = {"v5": "armv5tel", "v6": "armv6l", "v8": "aarch64"}
_ARCHITECTURE: Final = re.compile(r"[a-z0-9_]{1,32}", re.ASCII)

Size = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST_IMAGE)]
Digest = Annotated[str, msgspec.Meta(pattern=f"^(?:{DIGEST})$", max_length=135)]


class FoundImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image that a registry has, for one architecture.

    ``digest`` is that of this architecture's manifest, also where *tag* names an
    index; ``size_bytes`` is what a node has to fetch. ``tag`` is empty if the image
    was asked for by digest.
    """

    repository: str
    tag: str
    digest: str
    config_digest: str
    architecture: str
    size_bytes: int
    labels: dict[str, str]
    created: datetime | None = None


class Platform(msgspec.Struct, frozen=True):
    """What an image is made for."""

    architecture: str = ""
    os: str = ""
    variant: str = ""

    def machine(self) -> str:
        """Return the architecture as ``uname -m`` names it."""
        if self.architecture == "arm":
            return _ARM.get(self.variant, "armv7l")
        return _MACHINES.get(self.architecture, self.architecture)

    def is_usable(self) -> bool:
        """Tell whether it is a Linux machine of some kind."""
        known = _ARCHITECTURE.fullmatch(self.architecture) is not None
        return self.os == "linux" and known and self.architecture != "unknown"


class Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    """A reference from one document to another, or to a layer."""

    digest: Digest
    size: Size
    media_type: str = ""
    platform: Platform | None = None
    annotations: dict[str, str] | None = None


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """A manifest or an index: whichever of its parts are there."""

    schema_version: int
    media_type: str = ""
    config: Descriptor | None = None
    layers: list[Descriptor] | None = None
    manifests: list[Descriptor] | None = None

    def is_index(self) -> bool:
        """Tell whether it names other manifests."""
        return self.manifests is not None and self.media_type not in _MANIFESTS

    def is_image(self) -> bool:
        """Tell whether it is an image at all: charts and signatures are kept too."""
        return (
            not self.is_index()
            and self.config is not None
            and self.config.media_type in _IMAGES
        )

    def size_bytes(self) -> int:
        """Return what has to be fetched: every layer, compressed, and the rest."""
        parts = [*(self.layers or []), *([self.config] if self.config else [])]
        return min(sum(part.size for part in parts), _LARGEST_IMAGE)

    def choose(self) -> dict[str, Descriptor]:
        """Return an index's image for each machine, the least demanding variant."""
        found: dict[str, Descriptor] = {}
        for entry in sorted(self.manifests or [], key=_variant):
            platform = entry.platform or Platform()
            if platform.is_usable() and _names_image(entry):
                found.setdefault(platform.machine(), entry)
        return found


class ContainerConfig(msgspec.Struct, frozen=True):
    """The part of a configuration that is about containers."""

    labels: dict[str, str] | None = msgspec.field(default=None, name="Labels")


class ImageConfig(msgspec.Struct, frozen=True):
    """The configuration of one image."""

    architecture: str = ""
    os: str = ""
    variant: str = ""
    created: str | None = None
    config: ContainerConfig | None = None

    def platform(self) -> Platform:
        """Return what the image is made for."""
        return Platform(self.architecture, self.os, self.variant)

    def labels(self) -> dict[str, str]:
        """Return the image's labels."""
        return (self.config and self.config.labels) or {}

    def created_at(self) -> datetime | None:
        """Return when the image says it was made; None where that is no time."""
        try:
            when = msgspec.convert(self.created, datetime)
            return when.astimezone(UTC) if when.tzinfo else None
        except (msgspec.ValidationError, OverflowError):
            return None


def _names_image(entry: Descriptor) -> bool:
    attested = _ATTESTATION in (entry.annotations or {})
    return entry.media_type not in _INDEXES and not attested


def _variant(entry: Descriptor) -> str:
    return entry.platform.variant if entry.platform else ""
