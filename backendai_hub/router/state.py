"""What the router remembers on disk, so that a restart keeps notebooks reachable.

The Hub adds its routes again when it sees the router come back, but it may be down
itself at that moment. The file holds no secrets: addresses and user names only.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

VERSION = 1


class StateFile:
    """One JSON document, replaced as a whole.

    There is no fsync: the file is for a router that died, not for a machine that
    lost power, after which no session is left to route to. A torn file is ignored.
    """

    def __init__(
        self,
        path: Path,
        *,
        collect: Callable[[], dict[str, Any]],
        log: logging.Logger,
    ) -> None:
        self._path = path
        self._collect = collect
        self._log = log
        self._lock = asyncio.Lock()
        self._asked = 0
        self._saved = 0

    def load(self) -> dict[str, Any]:
        """Return what was saved last; nothing if there is no usable file."""
        try:
            document = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            self._log.warning("State file %s is not usable: %s", self._path, error)
            return {}
        if not isinstance(document, dict) or document.get("version") != VERSION:
            self._log.warning("State file %s is of another version", self._path)
            return {}
        return document

    async def save(self) -> None:
        """Return once everything true at the time of the call is in the file.

        Callers that come while a write is under way share the next one.
        """
        self._asked += 1
        wanted = self._asked
        async with self._lock:
            if self._saved >= wanted:
                return
            covers = self._asked
            text = json.dumps({"version": VERSION, **self._collect()}).encode()
            try:
                await asyncio.to_thread(self._replace, text)
            except OSError as error:
                # Routing goes on; only the memory across a restart is lost.
                self._log.error("Could not write %s: %s", self._path, error)
                return
            self._saved = covers

    def _replace(self, text: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        draft.replace(self._path)
