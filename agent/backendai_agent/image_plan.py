"""What to do about images next, as a pure function of what is wanted and seen.

A node may be asked to *hold* an image before any session needs it, and to *remove*
one. Nothing of that is remembered over a restart: what is here follows from the
runtime, what is wanted from the hub service. ``past`` holds the failures of this
process only, so that what fails is tried again later and later.

References are compared as the runtime spells them; see ``Images.shorten``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from backendai_hub.api.agents import (
    ImageProgress,
    ImageState,
    ImageWanted,
    ImageWish,
)
from backendai_hub.core.references import is_reference

NEEDED = "a session on this node needs it"
HELD_TOO = "it is wanted here under another name"
NO_REFERENCE = "this is not a reference of an image"


class ImageWork(StrEnum):
    """What is being done about a wanted image right now."""

    FETCH = "fetch"
    DISCARD = "discard"


@dataclass(frozen=True)
class Failure:
    """How often in a row something failed, why, and when to try again."""

    times: int
    reason: str
    retry_at: float


@dataclass(frozen=True, kw_only=True)
class ImageView:
    """What is known of this node's images.

    ``fetching`` is being fetched for whomever, ``needed`` is what sessions here run
    in or are about to; ``busy`` and ``past`` tell what is being done and has failed
    for the hub service's wishes.
    """

    held: Collection[str]
    fetching: Collection[str] = ()
    needed: Collection[str] = ()
    busy: Mapping[str, ImageWork] = field(default_factory=dict)
    past: Mapping[str, Failure] = field(default_factory=dict)
    shorten: Callable[[str], str] = str


@dataclass(frozen=True)
class FetchImage:
    """Have the image fetched, or wait for the fetch that is going on."""

    wanted: ImageWanted


@dataclass(frozen=True)
class DiscardImage:
    """Remove the image from the node."""

    wanted: ImageWanted


@dataclass(frozen=True)
class GiveUpImage:
    """Do not wait for the image any longer: it is not wanted any more."""

    reference: str


ImageAction = FetchImage | DiscardImage | GiveUpImage


def plan_images(
    wanted: Iterable[ImageWanted], view: ImageView, *, limit: int, now: float
) -> list[ImageAction]:
    """List what has to be done. Images nobody named are never touched.

    At most *limit* images are fetched at once by this plan; fetches that sessions
    wait for count, but are never held up by it.
    """
    wanted = list(wanted)
    kept = _list_kept(wanted, view)
    named = {w.reference for w in wanted if w.wanted is ImageWish.PRESENT}
    actions: list[ImageAction] = [
        GiveUpImage(reference)
        for reference, work in view.busy.items()
        if work is ImageWork.FETCH and reference not in named
    ]
    fetching = {*view.fetching, *_list_begun(view)}
    for image in wanted:
        if not _is_due(image, view, now):
            continue
        name = view.shorten(image.reference)
        if image.wanted is ImageWish.ABSENT:
            if name in view.held and name not in kept | fetching:
                actions.append(DiscardImage(image))
        elif name not in view.held and (name in fetching or len(fetching) < limit):
            fetching.add(name)
            actions.append(FetchImage(image))
    return actions


def _list_kept(wanted: Iterable[ImageWanted], view: ImageView) -> set[str]:
    held_too = (w.reference for w in wanted if w.wanted is ImageWish.PRESENT)
    return {view.shorten(name) for name in (*view.needed, *held_too)}


def _list_begun(view: ImageView) -> set[str]:
    begun = (name for name, work in view.busy.items() if work is ImageWork.FETCH)
    return {view.shorten(name) for name in begun}


def _is_due(image: ImageWanted, view: ImageView, now: float) -> bool:
    failure = view.past.get(image.reference)
    return (
        is_reference(image.reference)
        and image.reference not in view.busy
        and (failure is None or failure.retry_at <= now)
    )


def next_retry(wanted: Iterable[ImageWanted], view: ImageView) -> float | None:
    """Return when something that failed is to be tried again, if anything has."""
    times = [
        failure.retry_at
        for image in wanted
        if image.reference not in view.busy
        and (failure := view.past.get(image.reference)) is not None
    ]
    return min(times, default=None)


def describe_images(
    wanted: Iterable[ImageWanted],
    view: ImageView,
    amounts: Mapping[str, float | None],
) -> list[ImageProgress]:
    """Say in a report how far every wanted image is; *amounts* is 0 to 1, if known."""
    wanted = list(wanted)
    held_too = {
        view.shorten(w.reference) for w in wanted if w.wanted is ImageWish.PRESENT
    }
    described = []
    for image in wanted:
        if image.wanted is ImageWish.PRESENT:
            state, reason = _describe_present(image, view)
        else:
            state, reason = _describe_absent(image, view, held_too)
        pulling = state is ImageState.PULLING
        described.append(
            ImageProgress(
                reference=image.reference,
                wanted=image.wanted,
                state=state,
                progress=amounts.get(image.reference) if pulling else None,
                reason=reason[:2000],
            )
        )
    return described


def _describe_present(image: ImageWanted, view: ImageView) -> tuple[ImageState, str]:
    if not is_reference(image.reference):
        return ImageState.FAILED, NO_REFERENCE
    if view.shorten(image.reference) in view.held:
        return ImageState.DONE, ""
    if view.busy.get(image.reference) is ImageWork.FETCH:
        return ImageState.PULLING, ""
    if failure := view.past.get(image.reference):
        return ImageState.FAILED, failure.reason
    return ImageState.WAITING, ""


def _describe_absent(
    image: ImageWanted, view: ImageView, held_too: Collection[str]
) -> tuple[ImageState, str]:
    name = view.shorten(image.reference)
    if not is_reference(image.reference):
        return ImageState.FAILED, NO_REFERENCE
    if name in held_too:
        return ImageState.WAITING, HELD_TOO
    if name in view.fetching or name in map(view.shorten, view.needed):
        return ImageState.WAITING, NEEDED
    if name not in view.held:
        return ImageState.DONE, ""
    if failure := view.past.get(image.reference):
        return ImageState.FAILED, failure.reason
    return ImageState.WAITING, ""
