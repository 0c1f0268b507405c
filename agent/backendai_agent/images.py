"""Fetching environments: each one once, however many sessions wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from backendai_agent.runtimes.base import Progress, Runtime, RuntimeFailure
from backendai_hub.api.agents import RegistryCredential


@dataclass
class _Fetch:
    task: asyncio.Task[None]
    credential: RegistryCredential | None
    listeners: list[Progress] = field(default_factory=list)
    latest: float | None = None


class Images:
    """What this node has, what it is fetching, and what it is removing."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._fetches: dict[str, _Fetch] = {}
        self._discards: dict[str, asyncio.Task[None]] = {}
        self.shorten: Callable[[str], str] = getattr(runtime, "shorten", str)
        self.present: list[str] = []
        self._refreshed_at = float("-inf")

    @property
    def fetching(self) -> frozenset[str]:
        """What is being fetched, for whomever, as :attr:`shorten` spells it."""
        return frozenset(self._fetches)

    async def refresh(self) -> None:
        """Ask the runtime anew what is here."""
        self.present = sorted(await self._runtime.images())
        self._refreshed_at = asyncio.get_running_loop().time()

    async def refresh_after(self, seconds: float) -> None:
        """Ask anew if the last answer is older than *seconds*."""
        if asyncio.get_running_loop().time() - self._refreshed_at >= seconds:
            await self.refresh()

    async def ensure(
        self,
        image: str,
        progress: Progress,
        credential: RegistryCredential | None = None,
    ) -> None:
        """Return when *image* is here; *progress* hears 0 to 1, or None.

        Whoever waits may be cancelled alone; the fetch itself ends when nobody
        waits for it any more. Who has joined a fetch that fails with the login of
        somebody else tries once more with the own one.
        """
        name = self.shorten(image)
        while name in self._discards:
            await asyncio.wait({self._discards[name]})
        if name not in self.present:
            await self.refresh()
        if name in self.present:
            return
        while (fetch := self._fetches.get(name)) and fetch.credential != credential:
            try:
                await self._wait(name, fetch, progress)
                break
            except RuntimeFailure:
                continue  # perhaps only for that other login
        else:
            fetch = fetch or self._begin(name, image, credential)
            await self._wait(name, fetch, progress)
        await self.refresh()

    async def _wait(self, name: str, fetch: _Fetch, progress: Progress) -> None:
        fetch.listeners.append(progress)
        progress(fetch.latest)
        try:
            await asyncio.shield(fetch.task)
        finally:
            fetch.listeners.remove(progress)
            if not fetch.listeners:
                fetch.task.cancel()  # does nothing to one that is over
            over = fetch.task.done() or not fetch.listeners
            if over and self._fetches.get(name) is fetch:
                del self._fetches[name]

    def _begin(
        self, name: str, image: str, credential: RegistryCredential | None
    ) -> _Fetch:
        loop = asyncio.get_running_loop()

        def tell(amount: float | None) -> None:
            fetch.latest = amount
            for listener in list(fetch.listeners):
                listener(amount)

        def heard(amount: float | None) -> None:
            loop.call_soon_threadsafe(tell, amount)

        def finished(_: asyncio.Task[None]) -> None:
            if self._fetches.get(name) is fetch:
                del self._fetches[name]

        work = self._runtime.fetch(image, heard, credential)
        fetch = _Fetch(loop.create_task(work), credential)
        fetch.task.add_done_callback(finished)
        self._fetches[name] = fetch
        return fetch

    async def discard(self, image: str) -> None:
        """Remove *image* from the node; who wants it meanwhile waits, and fetches it.

        Once begun it is seen through: the runtime cannot take it back.
        """
        name = self.shorten(image)
        if name in self._fetches:
            raise RuntimeFailure(f"{image} is being fetched")
        task = self._discards.get(name)
        if task is None:
            task = asyncio.create_task(self._discard(name, image))
            self._discards[name] = task
            task.add_done_callback(_hear)
        await asyncio.shield(task)

    async def _discard(self, name: str, image: str) -> None:
        try:
            await self._runtime.discard(image)
            await self.refresh()
        finally:
            del self._discards[name]


def _hear(task: asyncio.Task[None]) -> None:
    """Take note of how *task* ended, if only for nobody who still waits."""
    if not task.cancelled():
        task.exception()
