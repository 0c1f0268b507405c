"""The public routing table, in configurable-http-proxy's terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from backendai_hub.router.targets import BadTargetError, Target, parse_target
from backendai_hub.router.trie import PrefixTrie, clean_prefix

LAST_ACTIVITY = "last_activity"


@dataclass(slots=True)
class PublicRoute:
    """Requests under *prefix* go to *target*; *extra* belongs to whoever added it."""

    prefix: str
    target: Target
    last_activity: float
    extra: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the route as the REST API shows it."""
        return {**self.extra, LAST_ACTIVITY: format_time(self.last_activity)}


def format_time(seconds: float) -> str:
    """Write a time the way JavaScript does, which is what JupyterHub reads."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def parse_time(text: str) -> float:
    """Read an ISO 8601 time; one without a zone is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


class RouteStore:
    """The routes JupyterHub added, and when each was last used."""

    def __init__(self, *, clock: Callable[[], float], host_routing: bool) -> None:
        self._clock = clock
        self._host_routing = host_routing
        self._routes: dict[str, PublicRoute] = {}
        self._trie: PrefixTrie[PublicRoute] = PrefixTrie()

    def __iter__(self) -> Iterator[PublicRoute]:
        return iter(list(self._routes.values()))

    def add(self, prefix: str, document: Mapping[str, Any]) -> PublicRoute:
        """Add or replace the route at *prefix*.

        Raises :class:`BadTargetError` if the document's ``target`` is unusable.
        """
        return self._put(prefix, document, last_activity=self._clock())

    def remove(self, prefix: str) -> PublicRoute | None:
        """Remove the route at *prefix* and return it, if there was one."""
        prefix = clean_prefix(prefix)
        route = self._routes.pop(prefix, None)
        if route is not None:
            self._trie.remove(prefix)
        return route

    def get(self, prefix: str) -> PublicRoute | None:
        """Return the route at exactly *prefix*."""
        return self._routes.get(clean_prefix(prefix))

    def find(self, path: str, *, host: str = "") -> PublicRoute | None:
        """Return the route for a (decoded) path; with host routing, on *host*."""
        return self._trie.find(f"/{host}{path}" if self._host_routing else path)

    def touch(self, route: PublicRoute) -> None:
        """Note that somebody is using *route*."""
        route.last_activity = self._clock()

    def document(self, *, inactive_since: float | None = None) -> dict[str, Any]:
        """Return the table, or the part nobody used since *inactive_since*."""
        return {
            prefix: route.document()
            for prefix, route in self._routes.items()
            if inactive_since is None or route.last_activity < inactive_since
        }

    def restore(self, document: Mapping[str, Any]) -> int:
        """Bring back routes saved by :meth:`document`; return how many."""
        restored = 0
        for prefix, saved in document.items():
            try:
                last_activity = parse_time(saved[LAST_ACTIVITY])
                self._put(prefix, saved, last_activity=last_activity)
            except (BadTargetError, KeyError, TypeError, ValueError):
                continue
            restored += 1
        return restored

    def _put(
        self, prefix: str, document: Mapping[str, Any], *, last_activity: float
    ) -> PublicRoute:
        prefix = clean_prefix(prefix)
        text = document.get("target")
        if not isinstance(text, str):
            raise BadTargetError("Must specify 'target' as string")
        extra = dict(document)
        if self._host_routing and prefix != "/":
            extra["host"] = prefix.split("/")[1]
        route = PublicRoute(prefix, parse_target(text), last_activity, extra)
        self._routes[prefix] = route
        self._trie.add(prefix, route)
        return route
