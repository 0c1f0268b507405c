"""When a session counts as unused, by what JupyterHub tells of its server.

A session's server tells JupyterHub every minute when it was used last, and it counts
as used while a kernel computes. What JupyterHub says is therefore always a little
old. The *watch* keeps what it says, and since when it says so without a gap: time
in which nobody could look is never taken for time without use.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

REPORT_SECONDS: Final = 60
"""How often a session's server tells JupyterHub of its use."""

UNSEEN: Final = timedelta(seconds=150)
"""How long a use may stay unseen: two reports and what may delay them."""

LONGEST_SILENCE: Final = timedelta(seconds=60)
"""After so long without a look, what was seen before is no basis for a decision."""

Server = tuple[str, str]
"""A user's name and the name of one of their servers."""


class Activity(msgspec.Struct, frozen=True):
    """When a server was last seen used, and since when it has been watched.

    Of a server of which no use has been told yet, ``used_at`` is None.
    """

    used_at: datetime | None
    watched_since: datetime


class ActivityWatch:
    """What JupyterHub says of the use of servers, look by look."""

    def __init__(self) -> None:
        self._said: dict[Server, datetime | None] = {}
        self._seen: dict[Server, Activity] = {}
        self._looked_at: datetime | None = None
        self._is_blind = True

    def note(self, servers: Mapping[Server, datetime | None], *, now: datetime) -> None:
        """Note when each server was used last, as JupyterHub says.

        Of those that are not among them nothing is known from now on.
        """
        missed = self._measure_gap(now)
        self._seen = {
            server: self._judge(server, said, now, missed)
            for server, said in servers.items()
        }
        self._said = dict(servers)
        self._looked_at = now
        self._is_blind = False

    def lose_sight(self) -> None:
        """Note that JupyterHub does not answer: of no server anything is known."""
        self._is_blind = True

    def find(self, server: Server, *, now: datetime) -> Activity | None:
        """Tell what is known of a server; None is nothing."""
        if self._is_blind or self._measure_gap(now) is not None:
            return None
        return self._seen.get(server)

    @property
    def is_blind(self) -> bool:
        """Whether nothing is known of any server."""
        return self._is_blind

    def _measure_gap(self, now: datetime) -> timedelta | None:
        """Return how long nobody has looked (or a clock was set), if it was long."""
        if self._looked_at is None:
            return None
        passed = now - self._looked_at
        return None if timedelta() <= passed <= LONGEST_SILENCE else passed

    def _judge(
        self,
        server: Server,
        said: datetime | None,
        now: datetime,
        missed: timedelta | None,
    ) -> Activity:
        before = self._seen.get(server)
        if before is None:
            return Activity(None if said is None else min(said, now), now)
        # That something new is said counts, not what: clocks of nodes may be wrong.
        if said != self._said[server]:
            return Activity(now, now if missed else before.watched_since)
        if missed is None:
            return before
        used_at = None if before.used_at is None else before.used_at + missed
        return Activity(used_at, now)


def find_idle_end(
    seconds: int, *, started_at: datetime, activity: Activity
) -> datetime | None:
    """Tell when a session ends unless it is used before; None is never.

    That is when it will have been unused for *seconds*, and any use of it would have
    been seen. The time before it ran does not count.
    """
    if seconds <= 0:
        return None
    used_at = max(started_at, activity.used_at or started_at)
    unused = used_at + timedelta(seconds=seconds)
    return max(unused, activity.watched_since) + UNSEEN
