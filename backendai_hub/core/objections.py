"""What speaks against a request: the first thing ends it, unless all are asked for."""

from __future__ import annotations

from types import TracebackType
from typing import Final

from backendai_hub.core.errors import HubError


class Objections:
    """Raises the first refusal. See :class:`AllObjections` for the other way."""

    def add(self, error: HubError) -> None:
        """Object; whoever objects goes on if this returns."""
        raise error

    def noted(self) -> Noted:
        """Take what is refused inside a ``with`` for an objection."""
        return Noted(self)


class Noted:
    """Hands a refusal over; what comes after it inside is left out."""

    def __init__(self, objections: Objections) -> None:
        self._objections = objections

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Object with what has been refused, if the rest is to be looked at."""
        if isinstance(error, HubError) and isinstance(self._objections, AllObjections):
            self._objections.add(error)
            return True
        return False


FIRST: Final = Objections()
"""Ends with the first refusal."""


class AllObjections(Objections):
    """Notes every refusal, each once, so that all can be told together."""

    def __init__(self) -> None:
        self.found: list[HubError] = []

    def add(self, error: HubError) -> None:
        """Note an objection."""
        if all(error.message != known.message for known in self.found):
            self.found.append(error)
