"""What containers of the engine have printed, and waiting for more of it.

The engine tells who follows a log as soon as there is more. Only the first of that is
read before one lets go of it: however much a container prints, it costs no more. And it
is waited for without a thread, of which there are few.
"""

from __future__ import annotations

import time
from typing import Final

import aiohttp
from docker.utils import parse_host

from backendai_agent.runtimes.base import STAMP_SECONDS, LogNews, RuntimeFailure
from backendai_agent.runtimes.docker_engine import Engine, NotThereError

_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10)
_SOCKET: Final = "http+unix://"
_LAST: Final = 10
"""Lines at the end, of which one is new if any is: two streams are stamped apart."""


async def read_log(engine: Engine, name: str, tail: int) -> str:
    """Return the last *tail* lines the container printed, of both its streams."""
    try:
        printed = await engine.ask(lambda api: api.logs(name, tail=tail))
    except NotThereError:
        return ""
    return bytes(printed).decode(errors="replace")


async def hear_log(engine: Engine, name: str, age: float) -> LogNews:
    """Wait until the container has printed something within *age* seconds."""
    if await _hear(engine.url, name, time.time() - age - STAMP_SECONDS):
        return LogNews.PRINTED
    try:
        found = await engine.ask(lambda api: api.inspect_container(name))
    except NotThereError:
        return LogNews.ABSENT
    # One that is made but does not run yet has no log to be followed either.
    over = found["State"]["Status"] in {"exited", "dead"}
    return LogNews.ENDED if over else LogNews.ABSENT


async def _hear(url: str, name: str, since: float) -> bool:
    """Tell whether something was printed before the log's end."""
    base = str(parse_host(url))
    connector: aiohttp.BaseConnector = aiohttp.TCPConnector()
    if base.startswith(_SOCKET):
        connector = aiohttp.UnixConnector(path=base.removeprefix(_SOCKET))
        base = "http://engine"
    # Without `tail` the engine would look through all of it.
    wanted: dict[str, str | int] = {"since": f"{since:.6f}", "tail": _LAST}
    wanted |= {"follow": 1, "stdout": 1, "stderr": 1}
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT) as session,
            session.get(f"{base}/containers/{name}/logs", params=wanted) as answer,
        ):
            return answer.status == 200 and bool(await answer.content.read(1))
    except aiohttp.ClientError as error:
        raise RuntimeFailure(f"the container engine does not tell: {error}") from error
