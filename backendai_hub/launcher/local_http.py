"""Small requests to our own processes on this machine.

The launcher waits a lot and asks little; the standard library's client starts
faster than any other, and the calls run in threads.
"""

from __future__ import annotations

import asyncio
import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Answer:
    """An answer; ``status`` is 0 when nobody answered."""

    status: int
    body: bytes = b""

    def json(self) -> Any:
        """Return the decoded body."""
        return json.loads(self.body)


def request(
    method: str,
    url: str,
    *,
    token: str = "",
    body: Any = None,
    timeout: float = 5.0,
) -> Answer:
    """Ask once. Nobody listening is an answer with status 0, not an error."""
    parts = urlsplit(url)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"token {token}"
    data = None
    if body is not None:
        data = json.dumps(body)
        headers["Content-Type"] = "application/json"
    connection = http.client.HTTPConnection(parts.netloc, timeout=timeout)
    try:
        connection.request(method, path, body=data, headers=headers)
        response = connection.getresponse()
        return Answer(response.status, response.read())
    except (OSError, http.client.HTTPException):
        return Answer(0)
    finally:
        connection.close()


async def ask(
    method: str, url: str, *, token: str = "", body: Any = None, timeout: float = 5.0
) -> Answer:
    """Ask once without holding up anything else."""
    return await asyncio.to_thread(
        request, method, url, token=token, body=body, timeout=timeout
    )
