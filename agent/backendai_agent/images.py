"""Fetching environments: each one once, however many sessions wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from backendai_agent.runtimes.base import Runtime

Progress = Callable[[float | None], None]


@dataclass
class _Fetch:
    task: asyncio.Task[None]
    listeners: list[Progress] = field(default_factory=list)
    latest: float | None = None


class Images:
    """What this node has, and what it is fetching."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._fetches: dict[str, _Fetch] = {}
        self.present: list[str] = []
        self._refreshed_at = float("-inf")

    async def refresh(self) -> None:
        """Ask the runtime anew what is here."""
        self.present = sorted(await self._runtime.images())
        self._refreshed_at = asyncio.get_running_loop().time()

    async def refresh_after(self, seconds: float) -> None:
        """Ask anew if the last answer is older than *seconds*."""
        if asyncio.get_running_loop().time() - self._refreshed_at >= seconds:
            await self.refresh()

    async def ensure(self, image: str, progress: Progress) -> None:
        """Return when *image* is here; *progress* hears 0 to 1, or None.

        Whoever waits may be cancelled alone; the fetch itself ends when nobody
        waits for it any more.
        """
        if image not in self.present:
            await self.refresh()
        if image in self.present:
            return
        fetch = self._fetches.get(image) or self._begin(image)
        fetch.listeners.append(progress)
        progress(fetch.latest)
        try:
            await asyncio.shield(fetch.task)
        finally:
            fetch.listeners.remove(progress)
            if not fetch.listeners and not fetch.task.done():
                fetch.task.cancel()
                self._fetches.pop(image, None)
        await self.refresh()

    def _begin(self, image: str) -> _Fetch:
        loop = asyncio.get_running_loop()

        def tell(amount: float | None) -> None:
            fetch.latest = amount
            for listener in list(fetch.listeners):
                listener(amount)

        def heard(amount: float | None) -> None:
            loop.call_soon_threadsafe(tell, amount)

        def finished(_: asyncio.Task[None]) -> None:
            if self._fetches.get(image) is fetch:
                del self._fetches[image]

        fetch = _Fetch(loop.create_task(self._runtime.fetch(image, heard)))
        fetch.task.add_done_callback(finished)
        self._fetches[image] = fetch
        return fetch
