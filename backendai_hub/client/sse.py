"""Server-sent events, read from a byte stream."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

import msgspec


class ServerSentEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a stream; ``id`` is what to resume after."""

    id: str = ""
    event: str = "message"
    text: str = ""


async def read_events(
    lines: AsyncIterable[bytes],
) -> AsyncIterator[ServerSentEvent]:
    """Yield the events in *lines*, which come as they arrived, with their ends.

    Comments (keep-alives) are dropped, as is an event cut off by the end.
    """
    last_id, kind = "", ""
    data: list[str] = []
    async for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                text = "\n".join(data)
                yield ServerSentEvent(id=last_id, event=kind or "message", text=text)
            kind, data = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == "id":
            last_id = value
