"""Environments: registries, the images in them, and what an image needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from backendai_hub.core.fields import (
    Choice,
    Document,
    Flag,
    Line,
    Page,
    Size,
    Slots,
    Slug,
    Words,
    field,
)

LOCAL_REGISTRY = "local"
"""The registry of the images that the site's configuration lists."""
_ACCELERATOR = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)


class RegistryType(StrEnum):
    """How a registry is spoken to."""

    DOCKER = "docker"
    HARBOR = "harbor"
    HARBOR2 = "harbor2"
    GITHUB = "github"
    GITLAB = "gitlab"
    ECR = "ecr"
    ECR_PUBLIC = "ecr-public"
    OCP = "ocp"
    LOCAL = "local"


class ImageType(StrEnum):
    """What an image is for."""

    COMPUTE = "compute"
    SYSTEM = "system"
    SERVICE = "service"


class Registry(msgspec.Struct, frozen=True, kw_only=True):
    """Where images come from. The password is stored encrypted and never shown."""

    id: str
    name: Annotated[
        str, field(Slug(), "Its name, as domains' lists of registries have it.")
    ]
    url: Annotated[
        str, field(Line(most=1024), "Its address, such as https://registry.example.")
    ] = ""
    type: Annotated[
        str, field(Choice(of=tuple(RegistryType)), "How it is spoken to.", once=True)
    ] = RegistryType.DOCKER
    project: Annotated[
        str, field(Line(most=256), "The project or namespace that is read.")
    ] = ""
    repositories: Annotated[
        list[str],
        field(
            Words(most=1000, longest=255),
            "Repositories to read where the registry does not list them.",
        ),
    ] = []
    username: Annotated[str, field(Line(most=256), "Who logs in there.")] = ""
    password: Annotated[
        str | None,
        field(
            Page(most=4096),
            "The password or token; write only. Empty takes it away.",
        ),
    ] = ""
    ssl_verify: Annotated[
        bool, field(Flag(), "Whether its certificate is checked.")
    ] = True
    is_active: Annotated[
        bool, field(Flag(), "Inactive: its images are not offered.")
    ] = True
    is_global: Annotated[
        bool, field(Flag(), "Whether projects may name it without being allowed to.")
    ] = False
    extra: Annotated[
        dict[str, Any], field(Document(form=dict[str, Any]), "Further settings.")
    ] = {}
    has_password: bool = False
    rescanned_at: str | None = None
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class ImageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One image for one architecture, as administrators see it.

    ``label_minimum`` is what the image itself asks for; the effective minimum of cpu
    and mem is never below it. ``installed`` counts the nodes that hold the image.
    """

    id: str
    name: str
    architecture: str
    registry: str
    title: Annotated[str, field(Line(most=256), "What people call it.")] = ""
    description: Annotated[str, field(Line(), "What is in it.")] = ""
    minimum: Annotated[
        dict[str, str],
        field(Slots(), "The least a session of it may ask for, by slot."),
    ] = {}
    maximum: Annotated[
        dict[str, str],
        field(Slots(), "The most a session of it may ask for, by slot."),
    ] = {}
    shmem: Annotated[
        str, field(Size(), "Shared memory, if the request does not say.")
    ] = "64m"
    label_minimum: dict[str, str] = {}
    preferred: dict[str, str] = {}
    project: str = ""
    repository: str = ""
    tag: str = ""
    digest: str = ""
    config_digest: str = ""
    size_bytes: int = 0
    type: str = ImageType.COMPUTE
    runtime: str = ""
    accelerators: list[str] = []
    labels: dict[str, str] = {}
    references: dict[str, str] = {}
    status: str = "ALIVE"
    owner: str | None = None
    aliases: list[str] = []
    installed: int = 0
    last_used_at: str | None = None
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """One environment that users may choose.

    ``name`` is what people and requests write; ``references`` says what each runtime
    calls it (a Docker reference or digest, the name of a prepared environment), and
    a node whose runtime is not among them cannot run it; ``minimum`` are the least
    slots it works with, as users write amounts, ``preferred`` what it gets when the
    user does not say. ``accelerators`` are the kinds it is made for, such as ``cuda``;
    one that names none is taken with any.
    """

    name: str
    references: dict[str, str]
    id: str = ""
    title: str = ""
    architecture: str = "x86_64"
    minimum: dict[str, str] = {}
    maximum: dict[str, str] = {}
    preferred: dict[str, str] = {}
    shmem: str = "64m"
    accelerators: list[str] = []
    type: str = ImageType.COMPUTE


def is_accelerator(name: str) -> bool:
    """Tell whether *name* can be a kind of accelerator: slots' names begin with it."""
    return _ACCELERATOR.fullmatch(name) is not None


def is_made_for(image: Image, kind: str) -> bool:
    """Tell whether an image can do anything with a kind of accelerator.

    One that names none says nothing about it. A name stands for its models, too:
    ``tt`` for ``tt-n300``.
    """
    named = image.accelerators
    return not named or any(f"{kind}-".startswith(f"{name}-") for name in named)


def merge_minimum(
    own_before: Mapping[str, int | None],
    before: Mapping[str, int | None],
    own: Mapping[str, int | None],
) -> dict[str, int | None]:
    """Return an image's minimum now that it asks for *own* itself.

    What administrators have changed stays theirs, but for cpu and mem it is never
    below what the image asks for. Slots that nobody has changed follow the image.
    """
    untouched = {
        slot
        for slot in {*own_before, *before, *own}
        if before.get(slot) == own_before.get(slot)
    }
    kept = {slot: least for slot, least in before.items() if slot not in untouched}
    minimum = kept | {slot: least for slot, least in own.items() if slot in untouched}
    for slot in ("cpu", "mem"):
        if own.get(slot):
            minimum[slot] = max(minimum.get(slot) or 0, own[slot] or 0)
    return minimum
