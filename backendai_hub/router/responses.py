"""Responses whose head is the upstream server's, not ours."""

from __future__ import annotations

from typing import Final

from aiohttp import hdrs
from aiohttp.web import BaseRequest, StreamResponse
from multidict import CIMultiDict

_HTTP_1_1: Final = (1, 1)


class PassedResponse(StreamResponse):
    """A response that adds no header of its own except those that frame it.

    aiohttp's own class adds a Server, a Date and a Content-Type. The head is held
    back until the first chunk, so that a small response is one packet; call
    :meth:`flush_head` when that chunk is still to come.
    """

    _send_headers_immediately = False

    def __init__(self, status: int, reason: str, headers: CIMultiDict[str]) -> None:
        super().__init__(status=status, reason=reason, headers=headers)

    async def _prepare_headers(self) -> None:
        request = self._req
        writer = self._payload_writer
        assert request is not None
        assert writer is not None
        keep_alive = self._keep_alive
        if keep_alive is None:
            keep_alive = request.keep_alive
        headers = self.headers
        if self.status == 101:
            self._keep_alive = False
            return
        length = headers.get(hdrs.CONTENT_LENGTH)
        if has_body(request, self.status):
            if length is not None:
                writer.length = int(length)
            elif request.version >= _HTTP_1_1:
                writer.enable_chunking()
                headers[hdrs.TRANSFER_ENCODING] = "chunked"
            else:
                keep_alive = False
        elif self.status == 204:
            headers.popall(hdrs.CONTENT_LENGTH, None)
        self._keep_alive = keep_alive
        if not keep_alive:
            headers[hdrs.CONNECTION] = "close"
        elif request.version < _HTTP_1_1:
            headers[hdrs.CONNECTION] = "keep-alive"

    def flush_head(self) -> None:
        """Send the head now: what follows may take a while."""
        if self._payload_writer is not None:
            self._payload_writer.send_headers()


def has_body(request: BaseRequest, status: int) -> bool:
    """Tell whether a response with *status* to *request* carries a body."""
    return request.method != hdrs.METH_HEAD and status not in {204, 304}
