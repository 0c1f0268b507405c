"""What the agent remembers of its containers across restarts, one file for each."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from backendai_agent.folders import container_folder, write_durably
from backendai_agent.reconcile import Phase, Record
from backendai_hub.core.ids import is_id


class Records:
    """The records in memory, written to disk before anybody relies on them."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self.past: dict[str, Record] = {}

    async def load(self) -> list[str]:
        """Read every record; returns the ids of those that cannot be read.

        An unreadable record counts as *began*: at worst a session is reported
        lost that had not begun, but never is one started twice.
        """
        self.past, broken = await asyncio.to_thread(_load, self._data_dir)
        return broken

    async def save(self, container_id: str, record: Record) -> None:
        """Remember *record*: when this returns, a crash does not lose it."""
        path = container_folder(self._data_dir, container_id).record
        content = msgspec.json.encode(record)
        await asyncio.to_thread(write_durably, path, content)
        self.past[container_id] = record

    def bury(self, container_id: str, session_id: str) -> None:
        """Remember, until the hub service stops asking, that it was removed."""
        self.past[container_id] = Record(
            session_id=session_id, phase=Phase.REMOVED, began=True
        )

    def forget_removed(self, named: set[str]) -> None:
        """Drop removed containers that the hub service no longer names."""
        for container_id, record in list(self.past.items()):
            if record.phase is Phase.REMOVED and container_id not in named:
                del self.past[container_id]

    async def learn_beginnings(self) -> None:
        """Notice which containers have taken up their activation meanwhile."""
        starting = [c for c, r in self.past.items() if not r.began]
        if not starting:
            return
        began = await asyncio.to_thread(
            lambda: [c for c in starting if not self._is_waiting(c)]
        )
        for container_id in began:
            # Not saved: the missing file says the same after a restart.
            record = self.past.get(container_id)
            if record is not None:
                self.past[container_id] = msgspec.structs.replace(record, began=True)

    def _is_waiting(self, container_id: str) -> bool:
        return container_folder(self._data_dir, container_id).activation.exists()


def _load(data_dir: Path) -> tuple[dict[str, Record], list[str]]:
    past: dict[str, Record] = {}
    broken: list[str] = []
    for path in sorted((data_dir / "containers").glob("*/record.json")):
        container_id = path.parent.name
        if not is_id(container_id):
            continue
        try:
            past[container_id] = msgspec.json.decode(path.read_bytes(), type=Record)
        except (OSError, msgspec.MsgspecError):
            broken.append(container_id)
            past[container_id] = Record(session_id="", phase=Phase.STARTED, began=True)
    return past, broken
