"""Sessions that are only asked about, and not in the queue: the latest few of them."""

from __future__ import annotations

from backendai_hub.db.sessions import SessionRecord
from backendai_hub.scheduling.snapshot import ScopeKey

_MOST = 64


class Guests:
    """Whose limits and groups are read beside those of the queue.

    Those who ask for the same scopes and group are one: asking again costs nothing.
    """

    def __init__(self) -> None:
        self._known: dict[str, SessionRecord] = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    def __contains__(self, guest: SessionRecord) -> bool:
        return _key_of(guest) in self._known

    def add(self, guest: SessionRecord) -> None:
        """Remember *guest*; whoever came first is forgotten when there are many."""
        if guest not in self:
            while len(self._known) >= _MOST:
                del self._known[next(iter(self._known))]
        self._known[_key_of(guest)] = guest

    @property
    def scopes(self) -> set[ScopeKey]:
        """The scopes that any of them is in."""
        return {scope for guest in self._known.values() for scope in guest.scopes}

    @property
    def groups(self) -> set[str]:
        """The resource groups, by id, that any of them is asked about for."""
        return {guest.resource_group_id or "" for guest in self._known.values()}


def _key_of(guest: SessionRecord) -> str:
    return repr((guest.scopes, guest.resource_group_id))
