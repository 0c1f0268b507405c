"""The sessions' routes, followed from the hub service."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from backendai_hub.api.agents import Route, RouteTable
from backendai_hub.router.trie import PrefixTrie, decode_path

_WAIT_SECONDS: Final = 30.0
_GRACE_SECONDS: Final = 15.0
_FIRST_DELAY: Final = 0.1
_LONGEST_DELAY: Final = 5.0


class SessionTable:
    """The last route table that was heard of. It serves on while nobody updates it."""

    def __init__(self) -> None:
        self._table: RouteTable | None = None
        self._trie: PrefixTrie[Route] = PrefixTrie()
        self._changed = asyncio.Event()

    @property
    def version(self) -> int | None:
        """Return the version of the table; None if there never was one."""
        return None if self._table is None else self._table.version

    @property
    def agents(self) -> set[str]:
        """Return the agents that the table mentions."""
        routes = self._table.routes if self._table else []
        return {route.agent_id for route in routes}

    def adopt(self, table: RouteTable) -> None:
        """Make *table* the one that counts, and wake whoever waits for a change."""
        trie: PrefixTrie[Route] = PrefixTrie()
        for route in table.routes:
            trie.add(decode_path(route.prefix), route)
        self._table, self._trie = table, trie
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def find(self, path: str) -> Route | None:
        """Return the route for a (decoded) path."""
        return self._trie.find(path)

    async def find_soon(self, path: str, *, patience: float) -> Route | None:
        """Return the route for *path*, waiting up to *patience* seconds for it.

        A session's address may be asked for a moment before its route gets here.
        """
        route = self.find(path)
        if route is not None or patience <= 0:
            return route
        try:
            async with asyncio.timeout(patience):
                while route is None:
                    await self._changed.wait()
                    route = self.find(path)
        except TimeoutError:
            return None
        return route

    def document(self) -> Any:
        """Return the table as plain data, for the state file."""
        return None if self._table is None else msgspec.to_builtins(self._table)

    def restore(self, document: Any) -> int:
        """Adopt a table saved by :meth:`document`; return how many routes it has."""
        if document is None:
            return 0
        try:
            table = msgspec.convert(document, RouteTable)
        except msgspec.ValidationError:
            return 0
        self.adopt(table)
        return len(table.routes)


class TableUnavailableError(Exception):
    """The hub service did not answer with a table."""


class TableFollower:
    """Keeps a :class:`SessionTable` as the hub service has it, by long-poll."""

    def __init__(
        self,
        table: SessionTable,
        *,
        url: str,
        token_file: Path,
        log: logging.Logger,
        on_change: Callable[[], Awaitable[None]],
    ) -> None:
        self._table = table
        self._url = url
        self._token_file = token_file
        self._log = log
        self._on_change = on_change
        self._session: aiohttp.ClientSession | None = None

    async def follow(self) -> None:
        """Follow for ever. The first question is answered at once, to be in step."""
        delay = _FIRST_DELAY
        failing = False
        wait = 0.0
        async with aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar()
        ) as self._session:
            while True:
                asked = time.monotonic()
                try:
                    table = await self._ask(wait)
                except TableUnavailableError as error:
                    if not failing:
                        self._log.warning(
                            "Routes are not being updated: %s; serving those of"
                            " version %s",
                            error,
                            self._table.version,
                        )
                    failing = True
                    wait = 0.0
                    await asyncio.sleep(delay * random.uniform(0.5, 1.5))  # noqa: S311 - spreads load, guards nothing
                    delay = min(delay * 2, _LONGEST_DELAY)
                    continue
                if failing:
                    self._log.info("Routes are being updated again")
                failing, delay = False, _FIRST_DELAY
                if table.version != self._table.version or wait == 0:
                    self._table.adopt(table)
                    self._log.debug(
                        "%d session routes, version %d",
                        len(table.routes),
                        table.version,
                    )
                    await self._on_change()
                elif time.monotonic() - asked < 1:
                    # A service that does not wait must not be asked in a tight loop.
                    await asyncio.sleep(1)
                wait = _WAIT_SECONDS

    async def _ask(self, wait: float) -> RouteTable:
        version = self._table.version
        newer_than = 0 if version is None else version
        assert self._session is not None
        try:
            token = self._token_file.read_text().strip()
            async with self._session.get(
                self._url,
                params={"newer_than": str(newer_than), "wait": f"{wait:g}"},
                headers={"Authorization": f"token {token}"},
                timeout=aiohttp.ClientTimeout(
                    total=wait + _GRACE_SECONDS, sock_connect=5
                ),
                allow_redirects=False,
            ) as response:
                body = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise TableUnavailableError(str(error) or repr(error)) from None
        if response.status != 200:
            raise TableUnavailableError(
                f"{self._url} answered {response.status} {response.reason}"
            )
        try:
            return msgspec.json.decode(body, type=RouteTable)
        except msgspec.DecodeError as error:
            raise TableUnavailableError(
                f"{self._url} answered something else: {error}"
            ) from None
