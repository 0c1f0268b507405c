"""How much a request means, and whether there is such a thing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.fields import check_not_both
from backendai_hub.core.images import Image, is_made_for
from backendai_hub.core.names import suggest
from backendai_hub.core.objections import FIRST, Objections
from backendai_hub.core.slots import (
    MILLI,
    ResourceSlots,
    describe_amount,
    format_amount,
    parse_amount,
    parse_slots,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.scheduling.layouts import HOST_SLOTS


def resolve_amounts(
    platform: Platform,
    image: Image,
    request: SessionRequest,
    objections: Objections = FIRST,
) -> tuple[ResourceSlots, int]:
    """Return the slots and shared memory a request means, in smallest units.

    What is left out comes from what the image prefers; below its minimum is refused.
    Shared memory is part of ``mem`` and has to leave room for the rest.
    """

    def refuse(text: str) -> None:
        objections.add(InvalidRequestError(text))

    minimum = parse_slots(image.minimum)
    given = parse_slots(request.slots)
    preferred = parse_slots(image.preferred)
    # No session runs without these two, so asking for none of them is asking for the
    # usual; none of anything else is an answer.
    named = {s for s in request.slots if given[s] or s not in {"cpu", "mem"}}
    floor = {
        "cpu": platform.settings.default_cpu,
        "mem": platform.settings.default_memory,
    }
    amounts = {
        slot: given[slot]
        if slot in named
        else preferred[slot] or minimum[slot] or floor.get(slot, 0)
        for slot in sorted({*given, *preferred, *minimum, *floor})
    }
    asked = image.shmem if request.shmem is None else request.shmem
    shmem = parse_amount("shmem", asked)
    # Shared memory comes on top of what the image itself needs.
    minimum = minimum + ResourceSlots({"mem": shmem if minimum["mem"] else 0})
    if "mem" not in named:
        amounts["mem"] = max(amounts["mem"], minimum["mem"])
    for slot, least in minimum.items():
        if amounts[slot] < least:
            refuse(
                f"{slot}: {describe_amount(slot, amounts[slot])} is less than"
                f" {image.name} needs"
                + (" beside its shared memory" if slot == "mem" and shmem else "")
                # Exactly: what is rounded down would be refused again.
                + f"; ask for at least {format_amount(slot, least)}"
            )
    for text in _beyond_bounds(image, amounts):
        refuse(text)
    if shmem >= amounts["mem"]:
        refuse(
            f"shmem: {describe_amount('mem', shmem)} leaves nothing of"
            f" {describe_amount('mem', amounts['mem'])} of memory; ask for more 'mem'"
            " or less 'shmem'"
        )
    return ResourceSlots(amounts), shmem


def _beyond_bounds(image: Image, amounts: Mapping[str, int]) -> Iterator[str]:
    """Say what an image may not have, or nobody."""
    for slot, text in image.maximum.items():
        if text != "inf" and amounts.get(slot, 0) > parse_amount(slot, text):
            yield (
                f"{slot}: {describe_amount(slot, amounts[slot])} is more than"
                f" {image.name} may have; ask for at most"
                f" {describe_amount(slot, parse_amount(slot, text))}"
            )
    for slot, amount in amounts.items():
        if slot.partition(":")[0].endswith(".device") and amount % MILLI:
            yield (
                f"{slot}: devices are given whole; ask for 1, 2, …, not"
                f" {describe_amount(slot, amount)}"
            )


def check_slots(
    request: ResourceSlots,
    known: Mapping[str, str],
    required: Iterable[str],
    objections: Objections = FIRST,
) -> None:
    """Refuse slots that there are not, and the lack of those that everybody needs."""
    with objections.noted():
        check_not_both(request)

    def refuse(text: str) -> None:
        objections.add(InvalidRequestError(text))

    for slot, amount in request.items():
        if slot not in known:
            refuse(
                f"{slot}: there is no such resource here{suggest(slot, known)}; there"
                f" are {', '.join(known)}"
            )
        elif known[slot] == "unique" and amount != MILLI:
            refuse(
                f"{slot}: can be had once; ask for 1, not"
                f" {describe_amount(slot, amount)}"
            )
    for slot in required:
        if not request[slot]:
            refuse(f"{slot}: every session needs some of it; ask for more than 0")


def check_accelerators(
    image: Image,
    request: ResourceSlots,
    known: Iterable[str],
    objections: Objections = FIRST,
) -> None:
    """Refuse accelerators that an image could do nothing with.

    Of what there is not :func:`check_slots` tells. What an image asks for by itself it
    works with, whatever it says that it is made for.
    """
    named = ", ".join(image.accelerators)
    own = {*parse_slots(image.minimum), *parse_slots(image.preferred)}
    for slot in sorted({*request} & {*known} - {*HOST_SLOTS} - own):
        wanted = slot.partition(".")[0]
        if not is_made_for(image, wanted):
            objections.add(
                InvalidRequestError(
                    f"{slot}: {image.name} is made for {named}, not for {wanted};"
                    " leave it out, or choose another environment"
                )
            )
