"""What sessions print, as it comes or as it was."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Final

import click

from backendai_hub.client.logs import find_news
from backendai_hub.client.transport import is_transient
from backendai_hub.commandline.asking import Asking
from backendai_hub.core.errors import UnavailableError
from backendai_hub.core.sessions import TERMINAL, Session

LOOK_SECONDS: Final = 1.0
MOST_LINES: Final = 10_000


class Follower:
    """Tells what a session waits for, and prints what it prints."""

    def __init__(self, asking: Asking, *, to_stderr: bool) -> None:
        self._asking = asking
        self._stream = sys.stderr if to_stderr else sys.stdout
        self._told = ""
        self._attempt = 0
        self._printed = ""
        self.is_told = True
        """Whether who watches the session hears when there is more."""

    def tell(self, session: Session) -> None:
        """Say where the session stands, if that is news."""
        words = f"{session.status}, {session.reason}".rstrip(", ")
        if words != self._told:
            self._told = words
            self._asking.output.note(f"{session.name}: {words}")

    async def print_news(self, session: Session) -> bool:
        """Print what has come since the last time; tells whether it could be asked."""
        if not session.attempts:
            return True
        try:
            log = await self._asking.client.sessions.log(
                session.id, tail=MOST_LINES, follow=True
            )
        except UnavailableError:
            return False  # the node is away for a moment
        self.is_told = log.followed
        if log.attempt != self._attempt:
            if self._attempt:
                self._asking.output.note(f"{session.name}: attempt {log.attempt}")
            self._attempt, self._printed = log.attempt, ""
        click.echo(find_news(self._printed, log.text), nl=False, file=self._stream)
        self._printed = log.text
        return True


class Watch:
    """Hears of a session over the stream of events, as long as there is one."""

    def __init__(self, asking: Asking, session_id: str) -> None:
        self._asking = asking
        self._session_id = session_id
        self._news = asyncio.Event()
        self.is_open = False

    async def keep(self) -> None:
        """Listen, and again after each outage; who may not listen has to look."""
        while True:
            try:
                async with self._asking.client.sessions.watch(
                    self._session_id
                ) as noticed:
                    self.is_open = True
                    self._news.set()
                    async for _ in noticed:
                        self._news.set()
            except Exception as error:
                if not is_transient(error):
                    raise
            finally:
                self.is_open = False
                self._news.set()
            await asyncio.sleep(LOOK_SECONDS)

    async def wait(self, seconds: float | None) -> None:
        """Wait for news since the last time, or so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()


async def follow_session(
    asking: Asking, session: Session, *, to_stderr: bool = False
) -> Session:
    """Print what a session prints until it has ended; returns how it ended."""
    follower = Follower(asking, to_stderr=to_stderr)
    watch = Watch(asking, session.id)
    listening = asyncio.create_task(watch.keep())
    try:
        while True:
            session = await asking.client.sessions.get(session.id)
            follower.tell(session)
            complete = await follower.print_news(session)
            if session.status in TERMINAL:
                if not complete:
                    asking.output.note(
                        "the end of what it printed: backendai session logs"
                        f" {session.id}"
                    )
                return session
            is_told = watch.is_open and complete and follower.is_told
            await watch.wait(None if is_told else LOOK_SECONDS)
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def show_log(
    asking: Asking,
    session: Session,
    *,
    tail: int,
    attempt: int | None,
    host: str | None = None,
) -> None:
    """Print the end of what a session has printed."""
    log = await asking.client.sessions.log(
        session.id, tail=tail, attempt=attempt, host=host
    )
    if asking.output.as_json:
        asking.output.show_one(log)
        return
    if log.clipped:
        asking.output.note("… there was more before this")
    click.echo(log.text, nl=bool(log.text) and not log.text.endswith("\n"))
