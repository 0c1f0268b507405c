"""The live stream: facts, what sessions use, and of what else something has changed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import msgspec
from tornado.iostream import StreamClosedError

from backendai_hub.core.access import Action
from backendai_hub.core.errors import MalformedRequestError
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations import sessions as verbs
from backendai_hub.operations.bulletin import BulletinReader
from backendai_hub.operations.live_usage import EVERYBODY, LiveUsageQuery, read_live
from backendai_hub.operations.log_desk import name_of

KEEP_ALIVE_SECONDS = 15.0
IDENTIFY_SECONDS = 25.0
"""So often the stream asks anew who reads it. With the time JupyterHub's word is kept,
a token that is taken back reads on for less than a minute."""
BEAT_SECONDS = 2.0
"""So often whoever asks for it is told what is used, and of which kinds something has
changed, if anything has."""
_USAGE = {
    "1": LiveUsageQuery(),
    "own": LiveUsageQuery(),
    "all": LiveUsageQuery(owner=EVERYBODY),
}


class EventStreamQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Facts after number ``after``; without it, from now.

    With ``usage`` also what sessions use, every two seconds as events named "usage":
    "1" of one's own sessions, "all" of all that one may see. With ``changes=1`` also
    events named "changed", with the ``kinds`` of which something looks different now,
    and of which sessions that one follows there is more in the ``logs``.
    """

    after: int | None = None
    usage: str | None = None
    changes: str | None = None


class EventsHandler(APIHandler):
    """Facts as they happen."""

    path = "api/events"
    _open = True
    _usage: LiveUsageQuery | None = None
    _bulletin: BulletinReader | None = None
    _beat_due = 0.0
    _said_at = 0.0
    _told = 0
    """The number of the last measurement that this reader was told of."""

    def on_connection_close(self) -> None:
        """Stop sending when nobody reads."""
        self._open = False
        # The waiter below is woken so that it sees this at once.
        self.service.signals.wake("events")

    @operation(Action.READ_EVENTS, query=EventStreamQuery)
    async def get(self) -> None:
        """Stream facts after ``after`` (or ``Last-Event-ID``); without it, from now."""
        after = await self._begin()
        self._usage = self._choose_usage()
        with contextlib.ExitStack() as until_the_end:
            self._bulletin = self._choose_changes(until_the_end)
            self.set_header("Content-Type", "text/event-stream")
            self.set_header("X-Accel-Buffering", "no")
            with contextlib.suppress(StreamClosedError):
                await self._follow(after)

    async def _follow(self, after: int) -> None:
        signals = self.service.signals
        clock = asyncio.get_running_loop().time
        identified = clock()
        hints = ["events", name_of(self.principal.id)]
        # Whoever is cut off before the first fact goes on from here all the same.
        await self._send(f": from {after}\nid: {after}\nretry: 1000\n\n")
        looked, look_at = -1, 0.0
        while self._open and not self.service.stopping:
            tickets = {name: signals.ticket(name) for name in hints}
            # A beat alone says nothing of new facts; a hint may have been missed.
            if tickets["events"] != looked or clock() >= look_at:
                looked, look_at = tickets["events"], clock() + KEEP_ALIVE_SECONDS
                after = await self._send_after(after)
            await self._send_changes()
            await self._send_usage()
            silent_until = self._said_at + KEEP_ALIVE_SECONDS
            wake_at = min((silent_until, *self._appointments()))
            await signals.wait_for_any(tickets, max(0.0, wake_at - clock()))
            if clock() - identified > IDENTIFY_SECONDS:
                if not await self.identify_again():
                    break
                identified = clock()
            if clock() >= silent_until:
                await self._send(": keep-alive\n\n")

    def _appointments(self) -> Iterator[float]:
        """Yield when there is something to do, whatever happens."""
        if self._beat_due:
            yield self._beat_due
        if self._bulletin is not None:
            yield self._bulletin.logs.due

    async def _begin(self) -> int:
        given = self.get_query_argument("after", None)
        given = self.request.headers.get("Last-Event-ID", given)
        if given is None:
            return await verbs.newest_message(self.platform)
        if not given.isascii() or not given.isdigit() or len(given) > 18:
            raise MalformedRequestError("after: not the number of an event")
        return int(given)

    def _choose_usage(self) -> LiveUsageQuery | None:
        wanted = self.get_query_argument("usage", None)
        if wanted is None:
            return None
        if wanted not in _USAGE:
            raise MalformedRequestError("usage: use 1 for your own sessions, or all")
        return _USAGE[wanted]

    def _choose_changes(self, until: contextlib.ExitStack) -> BulletinReader | None:
        wanted = self.get_query_argument("changes", None)
        if wanted is None:
            return None
        if wanted != "1":
            raise MalformedRequestError("changes: use 1, or leave it out")
        self._look()
        logs = until.enter_context(self.service.logs.reading(self.principal.id))
        return BulletinReader(self.platform, self.service.bulletin, logs)

    def _look(self) -> float:
        clock = asyncio.get_running_loop().time()
        self.service.bulletin.look(self.platform, self.service.simulations, clock)
        return clock

    async def _send_changes(self) -> None:
        """Send of which kinds something has changed, which nobody need ask then."""
        if self._bulletin is None:
            return
        clock = self._look()
        news = self._bulletin.take(self.principal, clock)
        if news is not None:
            await self._send(f"event: changed\ndata: {_encode(news)}\n\n")
        if self._usage is None and clock >= self._beat_due:
            self._beat_due = clock + BEAT_SECONDS

    async def _send_usage(self) -> None:
        """Send what was measured since the last time, every two seconds."""
        clock = asyncio.get_running_loop().time
        if self._usage is None or clock() < self._beat_due:
            return
        self._beat_due = clock() + BEAT_SECONDS
        number = self.platform.usage.keeper.number
        live = read_live(self.platform, self.principal, self._usage, after=self._told)
        self._told = number
        if live.items or live.nodes:
            await self._send(f"event: usage\ndata: {_encode(live)}\n\n")

    async def _send_after(self, after: int) -> int:
        """Send everything after number *after*; return the last number sent."""
        while True:
            found = await verbs.list_messages(
                self.platform, self.principal, after=after
            )
            if not found:
                return after
            text = "".join(
                f"id: {m.seq}\nevent: session\ndata: {_encode(m)}\n\n" for m in found
            )
            await self._send(text)
            after = found[-1].seq

    async def _send(self, text: str) -> None:
        self._said_at = asyncio.get_running_loop().time()
        self.write(text)
        await self.flush()


def _encode(document: msgspec.Struct) -> str:
    return msgspec.json.encode(document).decode()
