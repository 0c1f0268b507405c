"""What an image in a registry becomes on offer: name, needs, owner, references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.ids import is_id
from backendai_hub.core.images import ImageType, merge_minimum
from backendai_hub.core.names import suggest
from backendai_hub.core.references import is_reference
from backendai_hub.core.slots import parse_amount, parse_slots
from backendai_hub.registries.labels import BadLabels, ImageTraits, Role, read_labels
from backendai_hub.registries.manifests import FoundImage

OWNER_LABEL: Final = "ai.backend.customized-image.owner"
LARGEST_LABELS: Final = 64 << 10
LONGEST_NAME: Final = 256

_LONGEST_RUNTIME: Final = 64
_TYPES: Final = {
    Role.COMPUTE: ImageType.COMPUTE,
    Role.INFERENCE: ImageType.SERVICE,
    Role.SYSTEM: ImageType.SYSTEM,
}


def name_image(host: str, repository: str, tag: str) -> str:
    """Return what people call a tag of a repository on *host*."""
    return f"{host}/{repository}:{tag}"


def describe_found(
    host: str, found: FoundImage, known: Mapping[str, str]
) -> dict[str, Any]:
    """Return the columns of an image, without its registry and owner.

    *known* are the kinds of resources here. Raises :class:`InvalidRequestError` with
    the reason why it cannot be on offer.
    """
    traits = read_labels(found.labels)
    if isinstance(traits, BadLabels):
        raise InvalidRequestError("; ".join(traits.reasons[:5]))
    name = name_image(host, found.repository, found.tag)
    reference = f"{host}/{found.repository}@{found.digest}"
    _check_sizes(name, reference, found, traits)
    project, slash, _ = found.repository.partition("/")
    minimum = _slots("min", traits.minimum, known)
    return {
        "name": name,
        "project": project if slash else "",
        "repository": found.repository,
        "tag": found.tag,
        "architecture": found.architecture,
        "digest": found.digest,
        "config_digest": found.config_digest,
        "size_bytes": found.size_bytes,
        "type": str(_TYPES[traits.role]),
        "runtime": traits.runtime_type,
        "references": {"docker": reference},
        "label_minimum": minimum,
        "preferred": _slots("preferred", traits.preferred, known),
        "shmem": parse_amount("shmem", traits.shmem),
        "accelerators": list(traits.accelerators),
        "labels": dict(sorted(found.labels.items())),
        "status": "ALIVE",
    }


def find_changes(known: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return which columns of a *known* image change.

    What administrators have set stays: the maximum, and minimum and shared memory
    where these are not what the image has asked for.
    """
    now = dict(found)
    now["minimum"] = merge_minimum(
        known["label_minimum"], known["minimum"], found["label_minimum"]
    )
    before = read_labels(known["labels"])
    asked = before.shmem if isinstance(before, ImageTraits) else "0"
    if known["shmem"] != parse_amount("shmem", asked):
        del now["shmem"]
    return {column: value for column, value in now.items() if known[column] != value}


def read_owner(labels: Mapping[str, str]) -> str | None:
    """Return the id of the user who has made the image, if a user has.

    Raises :class:`InvalidRequestError` for an owner that is no user: such an image is
    somebody's, and must not be everybody's.
    """
    told = labels.get(OWNER_LABEL)
    if told is None:
        return None
    kind, _, user_id = told.strip().partition(":")
    if kind != "user" or not is_id(user_id.lower()):
        raise InvalidRequestError(
            f"label {OWNER_LABEL}: {told[:80]!r} is not 'user:' and a user's id"
        )
    return user_id.lower()


def _check_sizes(
    name: str, reference: str, found: FoundImage, traits: ImageTraits
) -> None:
    if len(name) > LONGEST_NAME:
        raise InvalidRequestError(
            f"its name {name[:40]}… has {len(name)} letters; the most is {LONGEST_NAME}"
        )
    if not is_reference(reference):
        raise InvalidRequestError(
            f"{reference[:80]}… is no reference that container engines know"
        )
    if len(traits.runtime_type) > _LONGEST_RUNTIME:
        raise InvalidRequestError(
            f"label ai.backend.runtime-type: longer than {_LONGEST_RUNTIME} characters"
        )
    size = len(msgspec.json.encode(found.labels))
    if size > LARGEST_LABELS:
        raise InvalidRequestError(
            f"its labels have {size} bytes; the most is {LARGEST_LABELS}"
        )


def _slots(
    word: str, given: Mapping[str, str], known: Mapping[str, str]
) -> dict[str, int]:
    slots = dict(parse_slots(given).items())
    for slot in slots:
        if slot not in known:
            raise InvalidRequestError(
                f"label ai.backend.resource.{word}.{slot}: there is no resource"
                f" {slot!r} here{suggest(slot, known)}"
            )
    return slots
