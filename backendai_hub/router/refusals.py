"""What the router says when it cannot pass a request on."""

from __future__ import annotations

import html
import json
from http import HTTPStatus
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

from aiohttp.web import BaseRequest, Response, StreamResponse

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{status} {title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 15vh auto; max-width: 36rem;
  padding: 0 1rem; color: #1f2328; background: #fff; }}
h1 {{ font-size: 1.4rem; }}
a {{ color: inherit; }}
p.code {{ color: #59636e; font-size: 0.85rem; }}
@media (prefers-color-scheme: dark) {{
  body {{ color: #e6edf3; background: #0d1117; }}
  p.code {{ color: #9198a1; }}
}}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{detail}</p>
{again}<p class="code">{status} · {code}</p>
</main>
</body>
</html>
"""

_AGAIN: Final = """<p><a href="">Try again</a>. \
This page does so by itself every {seconds} seconds.</p>
"""

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}


class RefusalError(Exception):
    """The request ends here; ``detail`` says why, and what can be done."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        ours: bool = False,
        retry_after: int | None = None,
        close: bool = False,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        #: We know more than the Hub does, so its error page is not asked for.
        self.ours = ours
        self.retry_after = retry_after
        #: What is left of the connection cannot be made sense of.
        self.close = close


class ErrorSource(Protocol):
    """Somebody else who can make error pages, such as JupyterHub."""

    async def fetch(self, status: int, raw_path: str) -> StreamResponse | None:
        """Return a page for *status*, or None if none could be had."""


class RefusalPages:
    """Turns refusals into responses: HTML for browsers, JSON for programs."""

    def __init__(
        self, *, source: ErrorSource | None = None, folder: Path | None = None
    ) -> None:
        self._source = source
        self._folder = folder

    async def respond(
        self, request: BaseRequest, refusal: RefusalError, *, raw_path: str
    ) -> StreamResponse:
        """Return the response that tells the client of *refusal*."""
        response = await self._choose(request, refusal, raw_path)
        if refusal.retry_after is not None:
            response.headers["Retry-After"] = str(refusal.retry_after)
        if refusal.close:
            response.force_close()
        return response

    async def _choose(
        self, request: BaseRequest, refusal: RefusalError, raw_path: str
    ) -> StreamResponse:
        if not wants_html(request):
            return _as_json(refusal)
        if self._source is not None and refusal.status >= 404 and not refusal.ours:
            page = await self._source.fetch(refusal.status, raw_path)
            if page is not None:
                return page
        return self._from_folder(refusal) or _as_html(request, refusal)

    def _from_folder(self, refusal: RefusalError) -> StreamResponse | None:
        if self._folder is None:
            return None
        for name in (f"{refusal.status}.html", "error.html"):
            try:
                page = (self._folder / name).read_bytes()
            except OSError:
                continue
            return Response(status=refusal.status, body=page, content_type="text/html")
        return None


def wants_html(request: BaseRequest) -> bool:
    """Tell whether a person is going to read the answer."""
    return any("text/html" in value for value in request.headers.getall("Accept", ()))


def loggable(raw_path: str) -> str:
    """Return *raw_path* without its query and without anything odd in it."""
    return ascii(raw_path.partition("?")[0])[1:-1]


def error_path(status: int, raw_path: str) -> str:
    """Return where, below an error target, the page is for *status*."""
    return f"/{status}?url={quote(raw_path, safe='')}"


def _as_json(refusal: RefusalError) -> Response:
    document = {
        "type": "about:blank",
        "title": HTTPStatus(refusal.status).phrase,
        "status": refusal.status,
        "code": refusal.code,
        "detail": refusal.detail,
        # What JupyterHub's and Jupyter Server's clients look for.
        "message": refusal.detail,
    }
    return Response(
        status=refusal.status,
        text=json.dumps(document),
        content_type="application/problem+json",
        headers=_HEADERS,
    )


def _as_html(request: BaseRequest, refusal: RefusalError) -> Response:
    headers, again = dict(_HEADERS), ""
    # What was sent with another method is not sent again unasked.
    if refusal.retry_after is not None and request.method == "GET":
        headers["Refresh"] = str(refusal.retry_after)
        again = _AGAIN.format(seconds=refusal.retry_after)
    page = _PAGE.format(
        again=again,
        status=refusal.status,
        title=html.escape(HTTPStatus(refusal.status).phrase),
        detail=html.escape(refusal.detail),
        code=html.escape(refusal.code),
    )
    return Response(
        status=refusal.status, text=page, content_type="text/html", headers=headers
    )
