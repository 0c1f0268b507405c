"""The live stream of facts, as server-sent events."""

from __future__ import annotations

import asyncio

import msgspec
from tornado.iostream import StreamClosedError

from backendai_hub.core.access import Action
from backendai_hub.core.errors import MalformedRequestError
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations import sessions as verbs

KEEP_ALIVE_SECONDS = 15.0
IDENTIFY_SECONDS = 25.0
"""So often the stream asks anew who reads it. With the time JupyterHub's word is kept,
a token that is taken back reads on for less than a minute."""


class EventsHandler(APIHandler):
    """Facts as they happen."""

    path = "api/events"
    _open = True

    def on_connection_close(self) -> None:
        """Stop sending when nobody reads."""
        self._open = False
        # The waiter below is woken so that it sees this at once.
        self.service.signals.wake("events")

    @operation(Action.READ_EVENTS)
    async def get(self) -> None:
        """Stream facts after ``after`` (or ``Last-Event-ID``); without it, from now."""
        after = await self._begin()
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("X-Accel-Buffering", "no")
        signals = self.service.signals
        clock = asyncio.get_running_loop().time
        identified = clock()
        try:
            await self._send(f": from {after}\nretry: 1000\n\n")
            while self._open and not self.service.stopping:
                ticket = signals.ticket("events")
                after = await self._send_after(after)
                news = await signals.wait("events", ticket, KEEP_ALIVE_SECONDS)
                if clock() - identified > IDENTIFY_SECONDS:
                    if not await self.identify_again():
                        break
                    identified = clock()
                if not news:
                    await self._send(": keep-alive\n\n")
        except StreamClosedError:
            return

    async def _begin(self) -> int:
        given = self.get_query_argument("after", None)
        given = self.request.headers.get("Last-Event-ID", given)
        if given is None:
            return await verbs.newest_message(self.platform)
        if not given.isascii() or not given.isdigit() or len(given) > 18:
            raise MalformedRequestError("after: not the number of an event")
        return int(given)

    async def _send_after(self, after: int) -> int:
        """Send everything after number *after*; return the last number sent."""
        while True:
            found = await verbs.list_messages(
                self.platform, self.principal, after=after
            )
            if not found:
                return after
            text = "".join(
                f"id: {m.seq}\nevent: session\n"
                f"data: {msgspec.json.encode(m).decode()}\n\n"
                for m in found
            )
            await self._send(text)
            after = found[-1].seq

    async def _send(self, text: str) -> None:
        self.write(text)
        await self.flush()
