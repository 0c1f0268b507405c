"""Reading the head of a request strictly, before anything is decided by it."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from aiohttp import hdrs
from aiohttp.web import BaseRequest

from backendai_hub.router.headers import is_upgrade
from backendai_hub.router.refusals import RefusalError
from backendai_hub.router.trie import decode_path

_HTTP_1_1: Final = (1, 1)
_DOTS: Final = frozenset({".", ".."})
_AS_WRITTEN: Final = string.punctuation


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a request may be. Zero means any size."""

    line: int = 16 * 1024
    field: int = 32 * 1024
    fields: int = 128
    head: int = 64 * 1024
    body: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """What a request asks for.

    ``raw`` is the path and query as they were written and as they are forwarded;
    ``path`` is the decoded path, for looking routes up.
    """

    host: str
    raw: str
    path: str


def read_address(request: BaseRequest, limits: Limits) -> Address:
    """Return what *request* asks for; refuse what can be read in two ways."""
    if request.method == hdrs.METH_CONNECT:
        raise RefusalError(
            405, "connect", "This is not a proxy for other sites.", close=True
        )
    _check_head(request, limits)
    host, raw = _read_target(request)
    if not raw.isascii():
        raw = quote(raw, safe=_AS_WRITTEN, errors="surrogateescape")
    path = decode_path(raw.partition("?")[0])
    if not _DOTS.isdisjoint(path.split("/")):
        raise _bad("dot-segments", "The address may not contain '.' or '..' segments.")
    return Address(host, raw, path)


def _check_head(request: BaseRequest, limits: Limits) -> None:
    headers = request.headers
    if limits.head and sum(map(_field_size, request.raw_headers)) > limits.head:
        raise RefusalError(
            431,
            "head-too-large",
            f"The headers are larger than {limits.head} bytes together."
            " Deleting this site's cookies may help.",
            close=True,
        )
    hosts = headers.getall(hdrs.HOST, ())
    if len(hosts) > 1 or (not hosts and request.version >= _HTTP_1_1):
        raise _bad("host", "A request must have exactly one Host header.")
    lengths = headers.getall(hdrs.CONTENT_LENGTH, ())
    encodings = headers.getall(hdrs.TRANSFER_ENCODING, ())
    # The parser refuses these as well. Who may be fooled is the server behind us,
    # so the rule is not left to a dependency alone.
    if len(lengths) > 1 or (lengths and encodings):
        raise _bad("framing", "The request says its length in more than one way.")
    if encodings and [value.strip().lower() for value in encodings] != ["chunked"]:
        raise _bad("framing", "Only the chunked transfer encoding is understood.")
    if limits.body and lengths and int(lengths[0]) > limits.body:
        raise too_large(limits)
    if is_upgrade(request) and request.can_read_body:
        raise _bad("upgrade", "A WebSocket request may not have a body.")


def too_large(limits: Limits) -> RefusalError:
    """Return the refusal of a body beyond the limit."""
    return RefusalError(
        413,
        "body-too-large",
        f"The request's body is larger than the {limits.body} bytes allowed here.",
        close=True,
    )


def _read_target(request: BaseRequest) -> tuple[str, str]:
    target = request.raw_path
    host = request.headers.get(hdrs.HOST, "")
    if target.startswith("/"):
        return _check_host(host), target
    if target == "*" and request.method == hdrs.METH_OPTIONS:
        return _check_host(host), "/*"
    try:
        parts = urlsplit(target)
    except ValueError:
        raise _bad("target", "The request's target is not a URL.") from None
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise _bad("target", "The request's target must begin with a slash.")
    rest = target.partition("://")[2][len(parts.netloc) :]
    return _check_host(parts.netloc), rest if rest.startswith("/") else f"/{rest}"


def _check_host(host: str) -> str:
    if host.isascii() and not _HOST_TRAPS.intersection(host):
        return host
    raise _bad("host", "The Host header is not a host name.")


_HOST_TRAPS: Final = frozenset("/\\?#@<>\"'` \t%,;{}|^")


def _field_size(field: tuple[bytes, bytes]) -> int:
    return len(field[0]) + len(field[1]) + 4


def _bad(code: str, detail: str) -> RefusalError:
    return RefusalError(400, code, detail, close=True)
