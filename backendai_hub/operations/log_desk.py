"""Telling who reads a log that there is more of it, so that no page need ask.

What sessions print is known to their nodes alone. A *reader* is a stream that somebody
has open; who has one may have a log followed. A *follower* waits at the node of one
container, for all who read its log. With the first news it tells them and is done: who
still shows the log reads it again, and has it followed from there. What nobody shows
any more is thereby forgotten.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from backendai_hub.client.agents import AgentClient, AgentUnreachableError, LogNews
from backendai_hub.db.signals import Signals

MOST: Final = 1000
"""So many logs are followed at once; each costs a connection to a node."""
MOST_EACH: Final = 16
"""So many by one person: what they opened first makes room for what they open last."""
MOST_ENDED: Final = 1000
PAUSE_SECONDS: Final = 2.0
"""One reader is told of logs this often at most, the first time at once."""
GATHER_SECONDS: Final = 0.2
"""What is printed in one go comes in one answer."""
AGAIN_SECONDS: Final = 3.0
"""So long after a node did not answer its readers ask it themselves, and are told."""


class Place(NamedTuple):
    """Where a session prints."""

    session_id: str
    container: str
    agent_id: str
    url: str


class LogReader:
    """What one stream has to tell of logs."""

    def __init__(self, person: str) -> None:
        self.person = person
        self.due = math.inf
        """When there is something to tell."""
        self._told_at = -math.inf
        self._news: set[str] = set()

    def note(self, session_id: str) -> None:
        """Have it told that *session_id* has printed something."""
        self._news.add(session_id)
        self.due = self._told_at + PAUSE_SECONDS

    def take(self, clock: float) -> list[str]:
        """Return which sessions have printed something, if it is time to tell."""
        if clock < self.due:
            return []
        found, self._news = sorted(self._news), set()
        self._told_at, self.due = clock, math.inf
        return found


@dataclass(eq=False, kw_only=True)
class _Follower:
    place: Place
    moment: int
    """When the log was read last, by its node's clock."""
    people: set[str]
    task: asyncio.Task[None] = field(init=False)


class LogDesk:
    """Follows logs for whoever reads them, each once."""

    def __init__(self, signals: Signals, nodes: AgentClient | None) -> None:
        self.nodes = nodes
        self._signals = signals
        self._readers: defaultdict[str, set[LogReader]] = defaultdict(set)
        self._followers: dict[str, _Follower] = {}
        self._followed: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """The containers whose logs are followed for each person, by age."""
        self._ended: dict[str, None] = {}
        """Containers that will print nothing more."""

    @property
    def followed(self) -> int:
        """How many logs are followed now."""
        return len(self._followers)

    @contextlib.contextmanager
    def reading(self, person: str) -> Iterator[LogReader]:
        """Have a reader of *person*'s be told; without any, nothing is followed."""
        reader = LogReader(person)
        self._readers[person].add(reader)
        try:
            yield reader
        finally:
            self._readers[person].discard(reader)
            if not self._readers[person]:
                del self._readers[person]
                for container in list(self._followed.get(person, ())):
                    self._leave(person, container)

    def follow(self, person: str, place: Place, moment: int | None) -> bool:
        """Have *person* told when there is more than at *moment*; False: ask yourself.

        Whether they may read the log is for the caller to know.
        """
        if moment is None or person not in self._readers:
            return False
        if place.container in self._ended:
            return True
        known = self._followers.get(place.container)
        if known is None and len(self._followers) >= MOST:
            return False
        if known is None or moment < known.moment:
            self._begin(place, moment, known)
        self._followers[place.container].people.add(person)
        mine = self._followed[person]
        mine.pop(place.container, None)
        mine[place.container] = None
        if len(mine) > MOST_EACH:
            oldest = next(iter(mine))
            # Who still shows it asks again, and so makes it the newest.
            self._tell(person, self._followers[oldest].place.session_id)
            self._leave(person, oldest)
        return True

    def _begin(self, place: Place, moment: int, former: _Follower | None) -> None:
        people = former.people if former else set()
        follower = _Follower(place=place, moment=moment, people=people)
        self._followers[place.container] = follower
        if former:
            former.task.cancel()
        follower.task = asyncio.create_task(self._serve(follower))

    def _leave(self, person: str, container: str) -> None:
        mine = self._followed[person]
        mine.pop(container, None)
        if not mine:
            del self._followed[person]
        follower = self._followers.get(container)
        if follower is None:
            return
        follower.people.discard(person)
        if not follower.people:
            del self._followers[container]
            follower.task.cancel()

    async def _serve(self, follower: _Follower) -> None:
        container = follower.place.container
        try:
            if await self._wait(follower) is LogNews.END:
                self._note_end(container)
            else:
                await asyncio.sleep(GATHER_SECONDS)
        except AgentUnreachableError:
            await asyncio.sleep(AGAIN_SECONDS)
        finally:
            if self._followers.get(container) is follower:
                del self._followers[container]
                for person in follower.people:
                    self._leave(person, container)
                    self._tell(person, follower.place.session_id)

    async def _wait(self, follower: _Follower) -> LogNews:
        _, container, agent_id, url = follower.place
        while self.nodes is not None:
            news = await self.nodes.await_log(
                agent_id, url, container=container, moment=follower.moment
            )
            if news is not LogNews.NOTHING:
                return news
        return LogNews.END

    def _note_end(self, container: str) -> None:
        self._ended[container] = None
        if len(self._ended) > MOST_ENDED:
            del self._ended[next(iter(self._ended))]

    def _tell(self, person: str, session_id: str) -> None:
        for reader in self._readers.get(person, ()):
            reader.note(session_id)
        self._signals.wake(name_of(person))


def name_of(person: str) -> str:
    """Say by which name a person's readers are woken."""
    return f"log:{person}"
