"""The line to the hub service: follow assignments, send reports, never give up.

Two loops over one keep-alive connection pool. Whatever is lost is said again: a
report is a full account, an assignment set the full wish. While the hub service is
away nothing on the node changes.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import aiohttp
import msgspec

from backendai_agent.certs import HUB_NAME
from backendai_agent.folders import write_durably
from backendai_agent.leases import tell_time
from backendai_agent.logs import Log
from backendai_agent.numbering import Numbering
from backendai_agent.outbox import Outbox
from backendai_hub.api.agents import AgentReport, AssignmentSet, ReportAnswer


class LinkRefusedError(OSError):
    """The hub service answers, but not as hoped; ``status`` is HTTP's."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"{status}: {words}")
        self.status = status


LINK_ERRORS = (aiohttp.ClientError, TimeoutError, OSError, msgspec.MsgspecError)
"""All that can go wrong between two machines, and what is not our protocol."""

_UNWANTED = {400, 404, 405, 413}
"""Answers that will not be others tomorrow: too long, unknown, or too new for it."""

UNWANTED_SECONDS = 60.0
"""So long nothing is sent again that the hub service does not understand."""

INSISTING = 8
"""After so many older answers in a row (half a minute) we give in."""


class Position(msgspec.Struct, frozen=True, order=True):
    """How new an assignment set is: epochs first, then generations."""

    epoch: int = 0
    generation: int = -1


@dataclass(frozen=True, kw_only=True)
class LinkTiming:
    """How patient the link is, in seconds."""

    wait: float = 30.0
    call: float = 10.0
    longest_pause: float = 5.0


def next_pause(failures: int, longest: float, chance: float) -> float:
    """Return how long to wait after *failures* in a row; *chance* is 0 to 1.

    Half of the pause is chance, so that a thousand nodes that lost the hub at the
    same moment do not come back at the same moment.
    """
    full: float = min(longest, 0.2 * 2.0 ** min(failures, 10))
    return full * (0.5 + chance / 2)


@dataclass(frozen=True, kw_only=True)
class LinkSettings:
    """Where the hub service is, and what survives a restart of the agent."""

    hub_url: str
    epoch_file: Path
    sequence: Numbering
    outbox: Outbox
    timing: LinkTiming = field(default_factory=LinkTiming)


class Party(Protocol):
    """The agent behind the link."""

    def take(self, desired: AssignmentSet) -> None:
        """Take up a newer document."""

    def report(self, sequence: int, epoch: int) -> AgentReport | None:
        """Make the next report; None while there is nothing to say yet."""

    async def hear(self, sent_at: float) -> None:
        """Note that the hub service has taken a report sent at *sent_at*."""


class Link:
    """Speaks with the hub service for one agent."""

    def __init__(
        self,
        settings: LinkSettings,
        party: Party,
        *,
        context: ssl.SSLContext,
        log: Log,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._url = f"{settings.hub_url.rstrip('/')}/agent/v1"
        self._context = context
        self._party = party
        self._epoch_file = settings.epoch_file
        self._sequence = settings.sequence
        self._outbox = settings.outbox
        self._timing = settings.timing
        self._log = log
        self._chance = chance
        self._heartbeat = 5.0
        self._changed = asyncio.Event()
        self._usage = b""
        self._measured = asyncio.Event()
        self._lost = False
        self._older = 0
        self.position = Position(epoch=_read_epoch(settings.epoch_file))

    def say(self) -> None:
        """Send a report at once: something has changed."""
        self._changed.set()

    def tell_usage(self, content: bytes) -> None:
        """Send what was measured; what is not sent yet by then is not worth it."""
        self._usage = content
        self._measured.set()

    async def run(self) -> None:
        """Follow and report until cancelled."""
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=self._context, keepalive_timeout=60.0
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
            ) as session,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(self._follow(session))
            group.create_task(self._report(session))
            group.create_task(self._tell(session))

    # -- following -----------------------------------------------------------------

    async def _follow(self, session: aiohttp.ClientSession) -> None:
        failures = 0
        wait = 0.0  # the first answer comes at once, whatever the generation
        while True:
            try:
                document = await self._ask(session, wait)
            except LINK_ERRORS as error:
                failures += 1
                self._note_loss(error)
                await self._pause(failures)
                continue
            failures = 0
            self._note_return()
            wait = self._timing.wait
            if await self._consider(document):
                self._older = 0
            else:
                self._older += 1
                await self._pause(self._older)

    async def _ask(self, session: aiohttp.ClientSession, wait: float) -> AssignmentSet:
        async with session.get(
            f"{self._url}/assignments",
            params={
                "newer_than": str(self.position.generation),
                "wait": f"{wait:g}",
            },
            server_hostname=HUB_NAME,
            timeout=aiohttp.ClientTimeout(total=wait + self._timing.call),
        ) as answer:
            await _check(answer)
            return msgspec.json.decode(await answer.read(), type=AssignmentSet)

    async def _consider(self, document: AssignmentSet) -> bool:
        """Take *document* up unless it is older than what we have.

        Answers may overtake each other, and the newest counts. If the hub service
        insists on an older generation of the same epoch, its database was restored
        from a backup, and what it says is the truth.
        """
        position = Position(document.epoch, document.generation)
        insists = self._older >= INSISTING and position.epoch == self.position.epoch
        if position < self.position and not insists:
            self._log.warning(
                "ignoring assignments of epoch %s, generation %s: ours are of"
                " epoch %s, generation %s",
                document.epoch,
                document.generation,
                self.position.epoch,
                self.position.generation,
            )
            self.say()  # the hub learns from our report what we have seen
            return False
        self._heartbeat = max(0.05, document.heartbeat_seconds)
        if position == self.position:
            return True
        if position.epoch != self.position.epoch:
            await asyncio.to_thread(
                write_durably, self._epoch_file, f"{position.epoch}\n".encode()
            )
        self.position = position
        self._party.take(document)
        return True

    # -- reporting -----------------------------------------------------------------

    async def _report(self, session: aiohttp.ClientSession) -> None:
        failures = 0
        while True:
            if failures:
                await self._pause(failures)
            else:
                await self._wait_for_change()
            self._changed.clear()
            number = await self._sequence.next()
            report = self._party.report(number, self.position.epoch)
            if report is None:
                continue
            try:
                await self._deliver(session)
                sent_at = tell_time()
                newest = await self._send(session, report)
                await self._party.hear(sent_at)
                if newest > self.position.generation:
                    # The long poll should have said so. If it has missed it, a
                    # heartbeat later is soon enough.
                    await self._consider(await self._ask(session, 0.0))
            except LINK_ERRORS as error:
                failures += 1
                self._note_loss(error)
            else:
                failures = 0

    async def _wait_for_change(self) -> None:
        beat = self._heartbeat * (0.8 + 0.4 * self._chance())
        try:
            async with asyncio.timeout(beat):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _deliver(self, session: aiohttp.ClientSession) -> None:
        """Send what containers printed, so that it is there when their end is told.

        What the hub service does not want is dropped: the end shall not wait for it.
        """
        for parcel in await asyncio.to_thread(self._outbox.list):
            try:
                async with session.put(
                    f"{self._url}/log",
                    data=msgspec.json.encode(parcel),
                    headers={"Content-Type": "application/json"},
                    server_hostname=HUB_NAME,
                    timeout=aiohttp.ClientTimeout(total=self._timing.call),
                ) as answer:
                    await _check(answer)
            except LinkRefusedError as error:
                if error.status not in _UNWANTED:
                    raise
                self._log.warning(
                    "the hub service does not want the log of container %s (%s)",
                    parcel.container,
                    error,
                )
            await asyncio.to_thread(self._outbox.drop, parcel.container)

    async def _send(self, session: aiohttp.ClientSession, report: AgentReport) -> int:
        """Send *report*; return the generation the hub service is at."""
        async with session.put(
            f"{self._url}/report",
            data=msgspec.json.encode(report),
            headers={"Content-Type": "application/json"},
            server_hostname=HUB_NAME,
            timeout=aiohttp.ClientTimeout(total=self._timing.call),
        ) as answer:
            await _check(answer)
            said = msgspec.json.decode(await answer.read(), type=ReportAnswer)
            return said.generation

    async def _tell(self, session: aiohttp.ClientSession) -> None:
        """Send measurements beside the reports; whatever goes wrong, once.

        The reports say already whether the hub service answers.
        """
        while True:
            await self._measured.wait()
            self._measured.clear()
            try:
                async with session.put(
                    f"{self._url}/usage",
                    data=self._usage,
                    headers={"Content-Type": "application/json"},
                    server_hostname=HUB_NAME,
                    timeout=aiohttp.ClientTimeout(total=self._timing.call),
                ) as answer:
                    await _check(answer)
            except LinkRefusedError as error:
                if error.status in _UNWANTED:  # it is older than we are, perhaps
                    await asyncio.sleep(UNWANTED_SECONDS)
            except LINK_ERRORS:
                continue

    # -- patience ------------------------------------------------------------------

    async def _pause(self, failures: int) -> None:
        await asyncio.sleep(
            next_pause(failures, self._timing.longest_pause, self._chance())
        )

    def _note_loss(self, error: BaseException) -> None:
        if not self._lost:
            self._lost = True
            self._log.warning(
                "the hub service does not answer (%s); sessions keep running",
                str(error) or type(error).__name__,
            )

    def _note_return(self) -> None:
        if self._lost:
            self._lost = False
            self._log.info("the hub service answers again")


async def _check(answer: aiohttp.ClientResponse) -> None:
    """Raise what the hub service says against it, in its own words."""
    if answer.status >= 400:
        text = (await answer.read())[:2000].decode("utf-8", "replace")
        raise LinkRefusedError(answer.status, text.strip() or str(answer.reason))


def _read_epoch(path: Path) -> int:
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return 0
