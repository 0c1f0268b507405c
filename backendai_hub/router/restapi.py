"""configurable-http-proxy's REST API, by which JupyterHub drives the router."""

from __future__ import annotations

import hmac
import json
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import unquote

from aiohttp.web import BaseRequest, HTTPRequestEntityTooLarge, Response, StreamResponse

from backendai_hub.router.refusals import loggable
from backendai_hub.router.routes import PublicRoute, RouteStore, parse_time
from backendai_hub.router.targets import BadTargetError

_ROUTES: Final = re.compile(r"/api/routes(/.*)?")
_TOKEN: Final = re.compile(r"token\s+(\S+)", re.IGNORECASE)


class RestApi:
    """Shows and changes the public routing table.

    A change is answered only once it would survive the router's death.
    """

    def __init__(
        self,
        routes: RouteStore,
        *,
        token: str,
        save: Callable[[], Awaitable[None]],
        on_removed: Callable[[PublicRoute], Awaitable[None]],
        log: logging.Logger,
    ) -> None:
        self._routes = routes
        self._token = token.encode()
        self._save = save
        self._on_removed = on_removed
        self._log = log

    async def serve(self, request: BaseRequest) -> StreamResponse:
        """Answer one API request."""
        response = await self._dispatch(request)
        level = logging.INFO if response.status < 400 else logging.WARNING
        self._log.log(
            level,
            "%d %s %s",
            response.status,
            request.method,
            loggable(request.raw_path),
        )
        return response

    async def _dispatch(self, request: BaseRequest) -> StreamResponse:
        raw_path = request.raw_path.partition("?")[0]
        match = _ROUTES.fullmatch(raw_path)
        if match is None:
            return Response(status=404, text="Not Found")
        handlers = {"GET": self._get, "POST": self._post, "DELETE": self._delete}
        handler = handlers.get(request.method)
        if handler is None:
            return Response(status=405, text="Method not supported")
        if not self._is_authorized(request):
            return Response(status=403)
        return await handler(request, unquote(match[1] or "/"))

    def _is_authorized(self, request: BaseRequest) -> bool:
        match = _TOKEN.search(request.headers.get("Authorization", ""))
        given = match[1].encode("utf-8", "surrogateescape") if match else b""
        return hmac.compare_digest(given, self._token)

    async def _get(self, request: BaseRequest, prefix: str) -> Response:
        if prefix != "/":
            route = self._routes.get(prefix)
            if route is None:
                return Response(status=404)
            return _json(route.document())
        query = request.query
        since = query.get("inactiveSince") or query.get("inactive_since")
        if not since:
            return _json(self._routes.document())
        try:
            moment = parse_time(since)
        except ValueError:
            return Response(status=400, text="The time must be written as in ISO 8601")
        return _json(self._routes.document(inactive_since=moment))

    async def _post(self, request: BaseRequest, prefix: str) -> Response:
        try:
            document = json.loads(await request.read())
        except HTTPRequestEntityTooLarge:
            return Response(status=413, text="Body too large")
        except (ValueError, RecursionError):
            return Response(status=400, text="Body not valid JSON")
        if not isinstance(document, dict):
            return Response(status=400, text="Body must be a JSON object")
        try:
            route = self._routes.add(prefix, document)
        except BadTargetError as error:
            return Response(status=400, text=str(error))
        self._log.info("Route added %s -> %s", route.prefix, document["target"])
        await self._save()
        return Response(status=201)

    async def _delete(self, _request: BaseRequest, prefix: str) -> Response:
        route = self._routes.remove(prefix)
        if route is None:
            return Response(status=404)
        self._log.info("Route removed %s", route.prefix)
        await self._save()
        await self._on_removed(route)
        return Response(status=204)


def _json(document: object) -> Response:
    return Response(text=json.dumps(document), content_type="application/json")
