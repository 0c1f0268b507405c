"""What is told of one session that waits, and what may be otherwise with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from backendai_hub.scheduling.changes import Change
from backendai_hub.scheduling.lines import Line
from backendai_hub.scheduling.snapshot import PendingSession


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one session that waits."""

    session: str
    position: int
    """Its place among those who wait for the same nodes, from 1."""
    waiting: int
    """How many wait there."""
    reasons: tuple[str, ...]
    changes: tuple[Change, ...]
    """What would start it now, the smallest change first."""
    starts: int | None
    """When it starts if all end as late as they have declared."""
    at_the_earliest: bool = False
    """Whether others in the queue, before or behind it, may make it later."""
    ahead: int = 0
    """How many before it may take what becomes free: those who are held do not."""
    behind: int = 0
    """How many behind it may take a part of that before the rest is free as well."""
    after: str = ""
    """The session that has to end for that."""
    through: tuple[str, ...] = ()
    """Those that wait, each for the next and the last for that one, which have to end
    as well."""
    node: str = ""
    window: bool = False
    """Whether a reservation there has to end for that."""
    unknown: str = ""
    """Why nobody can tell when it starts, if so."""

    def once_ended(self, path: Sequence[str], at: int, *, runs: bool) -> Explanation:
        """Return the same, starting *at* that moment once all on a *path* have ended.

        Each of them waits for the next; the last may run already.
        """
        return replace(
            self,
            starts=at,
            at_the_earliest=True,
            after=path[-1] if runs else "",
            through=tuple(path[:-1] if runs else path),
            unknown="",
        )


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a session that nobody has asked for yet."""

    nodes: tuple[str, ...] = ()
    """Where it would start now, by id; nowhere if it would wait."""
    explanation: Explanation | None = None
    """Why it would wait, if so."""


class Options(NamedTuple):
    """What could be otherwise with a session that waits."""

    groups: tuple[str, ...] = ()
    """The resource groups that it may wait in."""
    least: Mapping[str, int] = {}
    """What it has to ask for at least."""
    timed: bool = False
    """Whether who has asked for it says how long it runs."""
    leaves_hold: bool = False
    """Whether what holds it up is its resource group's alone."""


DEFAULT = Options()


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One session in its line after a pass."""

    session: PendingSession
    line: Line
    told: str
    """What the pass says of it."""
    order: Sequence[str]
    """Who has waited there in the pass, by id and in its order."""
    place: int
    waiting: int
    """How many wait there, with it."""


class Places:
    """Where those who wait stand after a pass, each in its line."""

    def __init__(
        self, waiting: Iterable[PendingSession], lines: Mapping[str, Line]
    ) -> None:
        self.order: dict[int, list[str]] = {}
        """Who waits in each line, in order."""
        self.of: dict[str, int] = {}
        self._unheld: dict[int, list[int]] = {}
        for session in waiting:
            line_id = id(lines[session.id])
            order = self.order.setdefault(line_id, [])
            order.append(session.id)
            self.of[session.id] = len(order)
            counts = self._unheld.setdefault(line_id, [0])
            counts.append(counts[-1] + (not session.hold))

    def ahead(self, line: Line, place: int) -> int:
        """Tell how many before a place in a line are not held."""
        return self._unheld.get(id(line), [0])[place - 1]
