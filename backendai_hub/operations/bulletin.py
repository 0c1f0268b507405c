"""Telling pages of which kind something has changed, so that they need not ask.

A *bulletin* counts, for everybody at once, how often each kind has changed; a *reader*
of it is told of a kind by its name when that has moved on. Names are all that is told,
never what has changed, whose it is, or how: who wants to know asks, and sees as much as
they may see. Nothing is read from the database for this: the kinds follow the versions
of tables (:mod:`backendai_hub.db.versions`) and what this process keeps anyway. Logs
alone are told one by one, to who has them followed (:mod:`.log_desk`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final, NamedTuple

import msgspec

from backendai_hub.core.access import Action, Principal, Reach, can, reach
from backendai_hub.core.nouns import NOUNS, Noun, Verb
from backendai_hub.db.nouns import tables_of
from backendai_hub.operations.live_usage import has_news
from backendai_hub.operations.log_desk import LogReader
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.simulations import SimulationDesk
from backendai_hub.storage.keeper import HostHealth

LOOK_SECONDS: Final = 1.0
"""What changes within so much time counts as one change."""
USAGE: Final = "usage"
USAGE_SECONDS: Final = 5.0
"""How often nodes measure; the same is not told twice."""


class Announcement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something of each of these kinds has changed.

    There is more in the ``logs`` of these sessions, which the reader has followed.
    """

    kinds: list[str]
    logs: list[str] = []


class _Sources(NamedTuple):
    platform: Platform
    simulations: SimulationDesk


class Kind(NamedTuple):
    """Something that pages show, and what it looks different with.

    ``shared`` is what depends on everybody's doings, such as how much room is left: of
    that all hear who may read any of it. Of other kinds only those hear who may read
    all of it, so that nobody is told when somebody elsewhere is at work.
    """

    name: str
    action: str
    seconds: float
    """It is told to one reader this often at most; the first time at once."""
    state: Callable[[_Sources], Hashable]
    shared: bool = False

    def is_for(self, principal: Principal) -> bool:
        """Tell whether *principal* may hear that something of it has changed."""
        if self.shared:
            return can(principal, self.action)
        return reach(principal, self.action) is Reach.ALL


def _tables(*names: str) -> Callable[[_Sources], Hashable]:
    return lambda sources: sources.platform.database.versions.of_tables(names)


def _images(sources: _Sources) -> Hashable:
    rescans = sources.platform.rescans.values()
    under_way = tuple((r.registry_id, r.state, r.done, r.total) for r in rescans)
    return under_way, _tables("images", "image_installs", "registries")(sources)


def _storage(sources: _Sources) -> Hashable:
    return tuple(
        # Every byte would be news; a thousandth of the host is.
        (name, h.state, h.reason, 1000 * h.free_bytes // max(1, h.total_bytes))
        for name, h in sources.platform.storage.health().items()
    )


def _hosts(sources: _Sources) -> Hashable:
    return tell_states(sources.platform.storage.health())


def tell_states(health: Mapping[str, HostHealth]) -> Hashable:
    """Say what of storage hosts everybody with folders there has to know."""
    return tuple((name, host.state) for name, host in health.items())


def _remains(sources: _Sources) -> Hashable:
    # Looking for them is work on folders like any other.
    under_way = frozenset(sources.platform.folder_work.names())
    return under_way, _tables("storage_remains")(sources)


def _simulation(sources: _Sources) -> Hashable:
    progress = sources.simulations.progress
    return progress.running, round(progress.part, 2)


def _noun(noun: Noun) -> Kind:
    return Kind(noun.plural, noun.action(Verb.READ), 5, _tables(*tables_of(noun)))


_TOLD_OTHERWISE: Final = {"folder", "image"}
"""Folders by facts, and images together with what nodes have of them."""

_HELD: Final = ("agents", "devices", "ledger", "stops")

_SHARED: Final = (
    Kind("attempts", Action.READ_SESSION, 10, _tables("scheduling_history")),
    Kind("queue", Action.READ_QUEUE, 5, _tables("sessions", "stops", "reservations")),
    Kind("resources", Action.READ_RESOURCES, 10, _tables(*_HELD)),
    Kind("hosts", Action.READ_STORAGE_HOSTS, 1, _hosts),
)
KINDS: Final = (
    *(kind._replace(shared=True) for kind in _SHARED),
    Kind("nodes", Action.READ_AGENTS, 5, _tables(*_HELD)),
    Kind("images", Action.READ_INSTALLS, 2, _images),
    Kind("storage", Action.READ_STORAGE_HOSTS, 10, _storage),
    Kind("remains", Action.READ_REMAINS, 2, _remains),
    Kind("simulation", Action.READ_SCHEDULE, 2, _simulation),
    *(_noun(noun) for noun in NOUNS if noun.name not in _TOLD_OTHERWISE),
)
"""Everything of which is told; what sessions use comes on top, by whose they are."""


class Bulletin:
    """Counts the changes of each kind, once for all readers of one process."""

    def __init__(self, *, look_seconds: float = LOOK_SECONDS) -> None:
        self._look_seconds = look_seconds
        self._next_look = 0.0
        self._states: dict[str, Hashable] = {}
        self.numbers: dict[str, int] = {kind.name: 0 for kind in KINDS}

    def look(
        self, platform: Platform, simulations: SimulationDesk, clock: float
    ) -> None:
        """Count what has changed, unless somebody has only just looked."""
        if clock < self._next_look:
            return
        self._next_look = clock + self._look_seconds
        sources = _Sources(platform, simulations)
        for kind in KINDS:
            state = kind.state(sources)
            if self._states.setdefault(kind.name, state) != state:
                self._states[kind.name] = state
                self.numbers[kind.name] += 1


class BulletinReader:
    """What one reader has been told of, and when they may be told again."""

    def __init__(self, platform: Platform, bulletin: Bulletin, logs: LogReader) -> None:
        self.logs = logs
        self._platform = platform
        self._bulletin = bulletin
        self._told = dict(bulletin.numbers)
        self._due: dict[str, float] = {}
        self._measured = platform.usage.keeper.number

    def take(self, principal: Principal, clock: float) -> Announcement | None:
        """Return what *principal* has not been told of yet; None: nothing."""
        numbers = self._bulletin.numbers
        kinds = []
        for kind in KINDS:
            number = numbers[kind.name]
            is_news = number != self._told[kind.name] and kind.is_for(principal)
            if is_news and self._is_due(kind.name, kind.seconds, clock):
                self._told[kind.name] = number
                kinds.append(kind.name)
        if self._takes_usage(principal, clock):
            kinds.append(USAGE)
        logs = self.logs.take(clock)
        if not can(principal, Action.READ_LOG):
            logs = []
        return Announcement(kinds=kinds, logs=logs) if kinds or logs else None

    def _takes_usage(self, principal: Principal, clock: float) -> bool:
        number = self._platform.usage.keeper.number
        if number == self._measured or clock < self._due.get(USAGE, 0.0):
            return False
        self._due[USAGE] = clock + USAGE_SECONDS
        before, self._measured = self._measured, number
        return has_news(self._platform, principal, after=before)

    def _is_due(self, name: str, seconds: float, clock: float) -> bool:
        if clock < self._due.get(name, 0.0):
            return False
        self._due[name] = clock + seconds
        return True
