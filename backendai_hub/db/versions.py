"""Which transactions have changed what is kept for a moment elsewhere.

Whoever keeps something that was read asks here for the version of what it was read
from, *before* reading it, and keeps the two together: it may be used while the version
is still the same. A transaction moves the versions on after its commit, before whoever
asked for it is answered. One hub service works on a database (:mod:`.leader`), so
what is counted in this process is all there is.

Nothing has to be announced: every statement of a transaction is looked at. One that
changes sessions without saying whose changes everybody's.

Whoever keeps a whole table's worth, as the scheduler does, follows what has become
*stale* instead, by id where the statements say so, and reads just that anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final
from weakref import WeakSet

_MOST_OWNERS: Final = 100_000

_OF_SESSIONS: Final = frozenset({"sessions", "allocations"})
_SHOWN_WITH_SESSIONS: Final = frozenset(
    {"users", "domains", "projects", "resource_groups", "devices"}
)
"""Their names stand in lists of sessions. Nodes' do, too, but their rows change with
every report: lists are as old as that at most (``handlers.page_cache``)."""

_NOBODYS: Final = _OF_SESSIONS | {
    "agents",
    "audit",
    "audit_head",
    "container_usage",
    "containers",
    "devices",
    "dotfiles",
    "enroll_tokens",
    "events",
    "explanations",
    "folder_tasks",
    "image_aliases",
    "image_installs",
    "images",
    "ledger",
    "preemption_victims",
    "preemptions",
    "quota_scopes",
    "scheduling_history",
    "session_dependencies",
    "session_logs",
    "session_mounts",
    "session_secrets",
    "stops",
    "uploads",
    "usage_buckets",
    "versions",
    "vfolder_invitations",
    "vfolder_permissions",
    "vfolders",
}
"""Tables that say nothing about who somebody is and what they may do; others may."""


class Stale:
    """What of the queue, the nodes and their use has changed since it was read."""

    def __init__(self, *, everything: bool = False) -> None:
        self._begin(everything=everything)

    def _begin(self, *, everything: bool) -> None:
        self.sessions: set[str] = set()
        self.nodes: set[str] = set()
        self.devices: set[str] = set()
        self.all_sessions = self.all_nodes = everything
        self.images = self.use = self.tenancy = everything

    def note(self, table: str | None, ids: Collection[str] | None) -> None:
        """Note a change of *table*, of just these rows if they are given."""
        if table == "sessions":
            self.all_sessions |= ids is None
            self.sessions.update(ids or ())
        elif table == "agents":
            self.all_nodes |= ids is None
            self.nodes.update(ids or ())
        elif table in {"devices", "ledger"}:
            self.all_nodes |= ids is None
            self.devices.update(ids or ())
            self.use |= table == "ledger"
        elif table == "images":
            self.images |= ids is None
        elif table == "stops":  # of nodes, by id; None is a group's
            self.tenancy |= ids is None
            self.nodes.update(ids or ())
        elif table is None:  # a text; whatever it does
            self.merge(Stale(everything=True))

    def merge(self, other: Stale) -> None:
        """Add what *other* has noted."""
        self.sessions |= other.sessions
        self.nodes |= other.nodes
        self.devices |= other.devices
        self.all_sessions |= other.all_sessions
        self.all_nodes |= other.all_nodes
        self.images |= other.images
        self.use |= other.use
        self.tenancy |= other.tenancy

    def take(self) -> Stale:
        """Return what has been noted, and begin anew."""
        taken = Stale()
        taken.merge(self)
        self._begin(everything=False)
        return taken


class Changes:
    """What one transaction changes."""

    def __init__(self) -> None:
        self.stale = Stale()
        self.tables: set[str | None] = set()
        """Tables that look different now; None is any."""
        self.owners: set[str] = set()
        self.everybody = False
        self.tenancy = False
        self.written = False
        """Whether there has been anything but reading."""

    def note(
        self,
        statement: Any,
        owner: str | Collection[str] | None = None,
        ids: Collection[str] | None = None,
    ) -> None:
        """Note what *statement* changes; if sessions, then *owner*'s or everybody's."""
        if getattr(statement, "is_select", False):
            return
        self.written = True
        table = getattr(getattr(statement, "table", None), "name", None)
        self.stale.note(table, ids)
        if ids is None or ids:
            self.tables.add(table)
        if table is None:  # a text; whatever it does
            self.everybody = self.tenancy = True
        elif table in _OF_SESSIONS:
            self._note_sessions(owner)
        elif table in _SHOWN_WITH_SESSIONS and not statement.is_insert:
            self.everybody = True
        if table not in _NOBODYS:
            self.tenancy = self.stale.tenancy = True

    def _note_sessions(self, owner: str | Collection[str] | None) -> None:
        if owner is None:
            self.everybody = True
        elif isinstance(owner, str):
            self.owners.add(owner)
        else:
            self.owners.update(owner)


class Versions:
    """Counts changes: of each person's sessions, of all sessions, and of tenancy."""

    def __init__(self) -> None:
        self._sessions = 0
        self._everybody = 0
        self._owners: dict[str, int] = {}
        self.tenancy = 0
        """Moves on with every change of who somebody is and what they may do."""
        self._followers: WeakSet[Stale] = WeakSet()
        self._tables: Counter[str | None] = Counter()

    def of_tables(self, names: Collection[str]) -> int:
        """Return the version of these tables; it moves on with a change of any."""
        return self._tables[None] + sum(self._tables[name] for name in names)

    def follow(self) -> Stale:
        """Return what will note everything that becomes stale; all is, to begin with.

        It is followed for as long as somebody keeps it.
        """
        stale = Stale(everything=True)
        self._followers.add(stale)
        return stale

    def of_sessions(self, owner: str | None) -> int:
        """Return the version of *owner*'s sessions; None: of all there are."""
        if owner is None:
            return self._sessions
        return max(self._everybody, self._owners.get(owner, 0))

    @asynccontextmanager
    async def following(self) -> AsyncIterator[Changes]:
        """Follow one transaction, and move on when it is over, however it ended."""
        changes = Changes()
        try:
            yield changes
        finally:
            self.advance(changes)

    def advance(self, changes: Changes) -> None:
        """Move on what *changes* has changed."""
        self._tables.update(changes.tables)
        for follower in self._followers:
            follower.merge(changes.stale)
        if changes.tenancy:
            self.tenancy += 1
        known = len(self._owners) + len(changes.owners)
        everybody = changes.everybody or known > _MOST_OWNERS
        if not everybody and not changes.owners:
            return
        self._sessions += 1
        if everybody:
            self._everybody = self._sessions
            self._owners.clear()
        for owner in changes.owners:
            self._owners[owner] = self._sessions
