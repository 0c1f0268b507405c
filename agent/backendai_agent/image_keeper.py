"""Holds and removes images as the hub service wishes, ahead of any session's need.

Like the driver this is level-triggered: whatever happens only wakes it, and what is
done follows from a full look. A fetch is shared with the sessions that wait for the
same image; a session's own fetch is never held up by what is done here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from backendai_agent.actions import FAILURES, read_failure
from backendai_agent.image_plan import (
    DiscardImage,
    Failure,
    FetchImage,
    GiveUpImage,
    ImageAction,
    ImageView,
    ImageWork,
    describe_images,
    next_retry,
    plan_images,
)
from backendai_agent.images import Images
from backendai_agent.logs import Log
from backendai_hub.api.agents import ImageProgress, ImageWanted


@dataclass(frozen=True, kw_only=True)
class KeeperTiming:
    """How patient the keeper is, in seconds."""

    resync: float = 10.0
    fetch: float = 4 * 3600.0
    tell: float = 1.0
    retry: float = 5.0
    retry_longest: float = 600.0


@dataclass(frozen=True)
class _Task:
    work: ImageWork
    task: asyncio.Task[None]


class ImageKeeper:
    """Keeps this node's images as the hub service wants them.

    *needed* lists the images that sessions here run in or are about to; *on_change*
    is called when :meth:`account` says something new, for mere progress at most once
    in ``timing.tell`` seconds.
    """

    def __init__(
        self,
        images: Images,
        *,
        needed: Callable[[], Collection[str]],
        on_change: Callable[[], None],
        log: Log,
        limit: int = 2,
        timing: KeeperTiming | None = None,
    ) -> None:
        self._images = images
        self._needed = needed
        self._on_change = on_change
        self._log = log
        self._limit = limit
        self._timing = timing or KeeperTiming()
        self._wanted: Sequence[ImageWanted] = ()
        self._tasks: dict[str, _Task] = {}
        self._past: dict[str, Failure] = {}
        self._amounts: dict[str, float | None] = {}
        self._woken = asyncio.Event()
        self._looked = False
        self._told: list[ImageProgress] = []
        self._told_at = float("-inf")

    def assign(self, wanted: Sequence[ImageWanted]) -> None:
        """Take up what the hub service wants; what is new is tried without delay."""
        before = {image.reference: image for image in self._wanted}
        after = {image.reference: image for image in wanted}
        for reference in list(self._past):
            if before.get(reference) != after.get(reference):
                del self._past[reference]
        self._wanted = list(after.values())
        self.wake()

    def wake(self) -> None:
        """Look again soon."""
        self._woken.set()

    def account(self) -> list[ImageProgress]:
        """Say how far every wanted image is; nothing before the first full look."""
        if not self._looked:
            return []
        return describe_images(self._wanted, self._view(), self._amounts)

    async def run(self) -> None:
        """Keep images until cancelled. What is here stays."""
        try:
            while True:
                self._woken.clear()
                pause = await self._try_pass()
                self._tell()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._woken.wait()
        finally:
            tasks = [entry.task for entry in self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _view(self) -> ImageView:
        return ImageView(
            held=self._images.present,
            fetching=self._images.fetching,
            needed=self._needed(),
            busy={name: entry.work for name, entry in self._tasks.items()},
            past=self._past,
            shorten=self._images.shorten,
        )

    async def _try_pass(self) -> float:
        """Look once; returns how many seconds later to look again at the latest."""
        resync = self._timing.resync
        try:
            await self._images.refresh_after(resync)
        except FAILURES as error:
            self._log.warning("cannot look at images: %s", read_failure(error))
            return resync
        self._looked = True
        now = asyncio.get_running_loop().time()
        for action in plan_images(
            self._wanted, self._view(), limit=self._limit, now=now
        ):
            self._begin(action)
        retry_at = next_retry(self._wanted, self._view())
        return resync if retry_at is None else min(resync, max(0.05, retry_at - now))

    def _begin(self, action: ImageAction) -> None:
        match action:
            case FetchImage(wanted):
                self._spawn(wanted, ImageWork.FETCH, self._fetch(wanted))
            case DiscardImage(wanted):
                self._spawn(wanted, ImageWork.DISCARD, self._discard(wanted))
            case GiveUpImage(reference):
                self._tasks[reference].task.cancel()

    async def _fetch(self, wanted: ImageWanted) -> None:
        self._log.info("fetching image %s ahead of need", wanted.reference)

        def hear(amount: float | None) -> None:
            rounded = None if amount is None else round(amount, 2)
            self._amounts[wanted.reference] = rounded
            self._tell(merely=True)

        try:
            async with asyncio.timeout(self._timing.fetch):
                await self._images.ensure(wanted.reference, hear, wanted.credential)
        finally:
            self._amounts.pop(wanted.reference, None)

    async def _discard(self, wanted: ImageWanted) -> None:
        self._log.info("removing image %s", wanted.reference)
        await self._images.discard(wanted.reference)

    def _spawn(
        self, wanted: ImageWanted, work: ImageWork, action: Coroutine[Any, Any, None]
    ) -> None:
        reference = wanted.reference
        entry = _Task(work, asyncio.create_task(action))
        self._tasks[reference] = entry

        def finished(task: asyncio.Task[None]) -> None:
            del self._tasks[reference]
            if not task.cancelled():
                self._note(wanted, work, task.exception())
            self._tell()
            self.wake()

        entry.task.add_done_callback(finished)

    def _note(
        self, wanted: ImageWanted, work: ImageWork, error: BaseException | None
    ) -> None:
        reference = wanted.reference
        if error is None:
            self._past.pop(reference, None)
            return
        if isinstance(error, FAILURES):
            reason = read_failure(error)
            self._log.warning("cannot %s image %s: %s", work, reference, reason)
        else:
            reason = "the node's agent made an error"
            self._log.error("cannot %s image %s", work, reference, exc_info=error)
        if wanted not in self._wanted:
            return  # what is wanted now is another matter
        times = self._past[reference].times + 1 if reference in self._past else 1
        pause = self._timing.retry * 2.0 ** min(times - 1, 16)
        now = asyncio.get_running_loop().time()
        retry_at = now + min(pause, self._timing.retry_longest)
        self._past[reference] = Failure(times, reason, retry_at)

    def _tell(self, *, merely: bool = False) -> None:
        """Call ``on_change`` if there is news; *merely* progress can wait a little."""
        now = asyncio.get_running_loop().time()
        if merely and now - self._told_at < self._timing.tell:
            return
        account = self.account()
        if account != self._told:
            self._told, self._told_at = account, now
            self._on_change()
