"""Counters in Prometheus' text format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from aiohttp.web import BaseRequest, Response, StreamResponse

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What happened since the router started."""

    def __init__(self) -> None:
        self._requests: Counter[int] = Counter()
        self._gauges: dict[str, tuple[str, Callable[[], int]]] = {}

    def count(self, status: int) -> None:
        """Count one finished request."""
        self._requests[status] += 1

    def gauge(self, name: str, help_text: str, read: Callable[[], int]) -> None:
        """Report what *read* returns as ``backendai_router_<name>``."""
        self._gauges[name] = (help_text, read)

    def text(self) -> str:
        """Return everything in Prometheus' text format."""
        lines = [
            "# HELP backendai_router_requests_total Requests finished, by status.",
            "# TYPE backendai_router_requests_total counter",
        ]
        lines += [
            f'backendai_router_requests_total{{status="{status}"}} {count}'
            for status, count in sorted(self._requests.items())
        ]
        for name, (help_text, read) in self._gauges.items():
            lines += [
                f"# HELP backendai_router_{name} {help_text}",
                f"# TYPE backendai_router_{name} gauge",
                f"backendai_router_{name} {read()}",
            ]
        return "\n".join(lines) + "\n"

    async def serve(self, request: BaseRequest) -> StreamResponse:
        """Answer a scrape."""
        if request.path != "/metrics":
            return Response(status=404)
        return Response(body=self.text().encode(), headers={"Content-Type": _TYPE})
