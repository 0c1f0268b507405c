"""What containers printed, until the service has it: written before it is relied on."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from backendai_agent.folders import write_durably
from backendai_hub.api.agents import LogParcel
from backendai_hub.core.batch import LOG_BYTES
from backendai_hub.core.ids import is_id

LINES: Final = 20_000
"""How many lines of a log are read at most to find its last part."""


def pack(container_id: str, text: str) -> LogParcel:
    """Cut what a container printed to what is kept of it."""
    content = text.encode("utf-8", "replace")
    clipped = len(content) > LOG_BYTES or text.count("\n") >= LINES
    return LogParcel(
        container=container_id, content=content[-LOG_BYTES:], clipped=clipped
    )


class Outbox:
    """One file for each container whose output the service does not have yet."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "outbox"

    def put(self, parcel: LogParcel) -> None:
        """Keep *parcel*: when this returns, a crash does not lose it."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_durably(self._path(parcel.container), msgspec.msgpack.encode(parcel))

    def list(self) -> list[LogParcel]:
        """Return what waits to be sent; what cannot be read is dropped."""
        if not self._folder.is_dir():
            return []
        found = []
        for path in sorted(self._folder.iterdir()):
            if not is_id(path.name):
                continue
            parcel = self.get(path.name)
            if parcel is None:
                path.unlink(missing_ok=True)
            else:
                found.append(parcel)
        return found

    def get(self, container_id: str) -> LogParcel | None:
        """Return what waits to be sent of one container."""
        try:
            content = self._path(container_id).read_bytes()
            return msgspec.msgpack.decode(content, type=LogParcel)
        except (OSError, ValueError, msgspec.MsgspecError):
            return None

    def drop(self, container_id: str) -> None:
        """Forget what has been sent."""
        self._path(container_id).unlink(missing_ok=True)

    def _path(self, container_id: str) -> Path:
        if not is_id(container_id):
            raise ValueError(f"{container_id[:80]!r} is not a container id")
        return self._folder / container_id
