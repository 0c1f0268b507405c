"""Uploads of which nothing comes any more: cut off in words, and gone on with."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.file_desk import Desk, Site, opened_desk, opened_site
from tests.harness import until

LENGTH = 1000


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with opened_site("sqlite", "--HubService.upload_stall_seconds=1") as opened:
        yield opened


@pytest.fixture
async def desk(site: Site) -> AsyncIterator[Desk]:
    async with opened_desk(site) as desk:
        yield desk


async def begin(desk: Desk) -> str:
    """Begin an upload and return the path of where it goes on."""
    name = base64.b64encode(b"a.bin").decode()
    headers = {
        **desk.headers,
        "Tus-Resumable": "1.0.0",
        "Upload-Length": str(LENGTH),
        "Upload-Metadata": f"filename {name}",
    }
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{desk.url}{desk.base}/uploads", headers=headers) as answer,
    ):
        assert answer.status == 201
        return answer.headers["Location"]


class Line:
    """A connection on which a part is sent by hand."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        place = urlsplit(desk.url)
        self._host = place.hostname
        self._port = place.port

    async def send(self, path: str, offset: int, part: bytes) -> bytes:
        """Announce all of it, send *part*, and wait for what is said and the end."""
        reader, writer = await asyncio.open_connection(self._host, self._port)
        named = {
            **self._desk.headers,
            "Host": f"{self._host}:{self._port}",
            "Connection": "close",
            "Tus-Resumable": "1.0.0",
            "Content-Type": "application/offset+octet-stream",
            "Content-Length": str(LENGTH - offset),
            "Upload-Offset": str(offset),
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        writer.write(f"PATCH {path} HTTP/1.1\r\n{head}\r\n".encode() + part)
        try:
            async with asyncio.timeout(60):
                return await reader.read()
        finally:
            writer.close()


async def test_a_part_of_which_nothing_comes_any_more_is_cut_off_with_a_reason(
    desk: Desk,
) -> None:
    path = await begin(desk)
    said = await Line(desk).send(path, 0, b"x" * 10)
    assert said.startswith(b"HTTP/1.1 408 "), said
    assert b"nothing has come for 1 s" in said
    (shown,) = (await desk.get("uploads"))["items"]
    assert shown["received"] == 10
    said = await Line(desk).send(path, 10, b"x" * (LENGTH - 10))
    assert said.startswith(b"HTTP/1.1 204 "), said
    await until(lambda: desk.names() == ["a.bin"], "it has appeared")
    assert (await desk.get("uploads"))["items"] == []


async def test_who_has_been_refused_is_not_waited_for_either(desk: Desk) -> None:
    path = await begin(desk)
    said = await Line(desk).send(path, 7, b"x")
    assert said.splitlines()[0].split()[1] in {b"408", b"409"}
