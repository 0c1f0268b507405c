"""What an image says of itself in its labels.

Labels that begin with ``ai.backend.`` tell what the image needs and what it is for.
An image without them is an environment like any other, with the usual amounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.images import is_accelerator
from backendai_hub.core.slots import (
    ResourceSlots,
    format_amount,
    parse_amount,
    parse_slots,
)

KERNELSPEC: Final = 1
DEFAULT_MINIMUM: Final[Mapping[str, str]] = {"cpu": "1", "mem": "1g"}
DEFAULT_SHMEM: Final = "64m"

_PREFIX: Final = "ai.backend."
_MINIMUM: Final = f"{_PREFIX}resource.min."
_PREFERRED: Final = f"{_PREFIX}resource.preferred."
_SHMEM: Final = f"{_PREFERRED}shmem"
_LONGEST_TEXT: Final = 512
_MOST_WORDS: Final = 64


class Role(StrEnum):
    """What an image is for."""

    COMPUTE = "COMPUTE"
    INFERENCE = "INFERENCE"
    SYSTEM = "SYSTEM"


class ImageTraits(msgspec.Struct, frozen=True, kw_only=True):
    """What an image needs, and what it is for.

    Amounts are text as users write them. ``minimum`` always names ``cpu`` and
    ``mem``, without shared memory; ``preferred`` is never below it. ``service_ports``
    is the label as it is. ``is_labelled`` tells whether the image says anything.
    """

    minimum: dict[str, str]
    preferred: dict[str, str] = {}
    shmem: str = DEFAULT_SHMEM
    accelerators: tuple[str, ...] = ()
    role: Role = Role.COMPUTE
    features: tuple[str, ...] = ()
    base_distro: str = ""
    runtime_type: str = ""
    runtime_path: str = ""
    service_ports: str = ""
    is_labelled: bool = False


class BadLabels(msgspec.Struct, frozen=True):
    """Why an image cannot be offered: one sentence for each label that is wrong."""

    reasons: tuple[str, ...]


def read_labels(labels: Mapping[str, str]) -> ImageTraits | BadLabels:
    """Read an image's labels: what it needs, or everything that is wrong with them."""
    reader = _Reader(labels)
    reader.check_all()
    shmem = reader.amount(_SHMEM, "shmem", DEFAULT_SHMEM)
    minimum = parse_slots(DEFAULT_MINIMUM)
    minimum = _override(minimum, reader.slots(_MINIMUM))
    preferred = reader.slots(_PREFERRED, without="shmem")
    traits = ImageTraits(
        minimum=minimum.to_text(),
        preferred=_at_least(preferred, minimum).to_text(),
        shmem=format_amount("shmem", shmem),
        accelerators=reader.accelerators(),
        role=reader.role(),
        features=reader.words("features"),
        base_distro=reader.text("base-distro"),
        runtime_type=reader.text("runtime-type"),
        runtime_path=reader.text("runtime-path"),
        service_ports=reader.text("service-ports"),
        is_labelled=any(name.startswith(_PREFIX) for name in labels),
    )
    return BadLabels(tuple(reader.reasons)) if reader.reasons else traits


class _Reader:
    """Reads labels one by one, and collects what is wrong."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels
        self.reasons: list[str] = []

    def check_all(self) -> None:
        """Refuse what no table can hold, and a contract that is not known here."""
        if any("\0" in text for pair in self._labels.items() for text in pair):
            self.reasons.append("a label contains the character NUL")
        told = self._get("kernelspec", str(KERNELSPEC)).strip()
        if told != str(KERNELSPEC):
            self._refuse(
                f"{_PREFIX}kernelspec",
                f"{told[:20]!r} is not known here; {KERNELSPEC} is",
            )

    def slots(self, prefix: str, *, without: str = "") -> ResourceSlots:
        """Read the amounts of every label that begins with *prefix*."""
        found: dict[str, int] = {}
        for label, given in sorted(self._labels.items()):
            slot = label.removeprefix(prefix)
            if label.startswith(prefix) and slot != without:
                try:
                    found.update(parse_slots({slot: given.strip()}))
                except InvalidRequestError as error:
                    self._refuse(label, error.message)
        return ResourceSlots(found)

    def amount(self, label: str, slot: str, usual: str) -> int:
        """Read one amount."""
        try:
            return parse_amount(slot, self._labels.get(label, usual).strip())
        except InvalidRequestError as error:
            self._refuse(label, error.message)
            return 0

    def accelerators(self) -> tuple[str, ...]:
        """Read which kinds of accelerators the image was made for."""
        label = f"{_PREFIX}accelerators"
        names = [name.strip() for name in self._get("accelerators").split(",")]
        found = tuple(dict.fromkeys(name for name in names if name and name != "none"))
        for name in found:
            if not is_accelerator(name):
                self._refuse(label, f"{name[:40]!r} is not a kind of accelerator")
        return self._few(label, found)

    def role(self) -> Role:
        """Read what the image is for."""
        told = self._get("role", Role.COMPUTE).strip().upper()
        if told in Role.__members__:
            return Role(told)
        self._refuse(
            f"{_PREFIX}role", f"{told[:40]!r} is none of {', '.join(Role.__members__)}"
        )
        return Role.COMPUTE

    def words(self, name: str) -> tuple[str, ...]:
        """Read a label of words between spaces, each once."""
        return self._few(_PREFIX + name, tuple(dict.fromkeys(self.text(name).split())))

    def text(self, name: str) -> str:
        """Read a label that is shown to people or given to a runtime."""
        told = self._get(name).strip()
        if len(told) > _LONGEST_TEXT or not told.isprintable():
            self._refuse(
                _PREFIX + name,
                f"it is longer than {_LONGEST_TEXT} characters or has control"
                " characters",
            )
        return told

    def _get(self, name: str, usual: str = "") -> str:
        return self._labels.get(_PREFIX + name, usual)

    def _few(self, label: str, found: tuple[str, ...]) -> tuple[str, ...]:
        if len(found) > _MOST_WORDS:
            self._refuse(label, f"{len(found)} words; at most {_MOST_WORDS} make sense")
        return found

    def _refuse(self, label: str, why: str) -> None:
        self.reasons.append(f"label {label[:120]}: {why}")


def _override(usual: ResourceSlots, told: ResourceSlots) -> ResourceSlots:
    # A zero is no amount: nothing runs without a CPU and memory.
    return ResourceSlots({**usual, **told})


def _at_least(told: ResourceSlots, minimum: ResourceSlots) -> ResourceSlots:
    return ResourceSlots({slot: max(told[slot], minimum[slot]) for slot in told})
