"""Uploads by clients that others wrote, killed wherever they are, and gone on with."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.file_desk import Desk, Site, opened_desk, opened_site
from tests.harness import ROOT, until

CONTENT = random.Random(24).randbytes(24 << 20)
PART = 77_777
"""So small that a client is at it for a while."""
KILLS = 3


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with opened_site(request.param) as opened:
        yield opened


@pytest.fixture
async def desk(site: Site) -> AsyncIterator[Desk]:
    async with opened_desk(site) as desk:
        yield desk


async def ask(desk: Desk, method: str, url: str, **more: str) -> aiohttp.ClientResponse:
    named = {key.replace("_", "-"): value for key, value in more.items()}
    headers = {"Tus-Resumable": "1.0.0", **desk.headers, **named}
    async with aiohttp.ClientSession() as session:
        answer = await session.request(method, url, headers=headers)
        await answer.read()
        return answer


async def begin(desk: Desk) -> str:
    """Begin an upload and return where it goes on."""
    answer = await ask(
        desk,
        "POST",
        f"{desk.url}{desk.base}/uploads",
        Upload_Length=str(len(CONTENT)),
        Upload_Metadata=f"filename {base64.b64encode(b'a.bin').decode()}",
    )
    assert answer.status == 201, await answer.text()
    stack = desk.site.stack
    return f"{stack.url.removesuffix(stack.prefix)}{answer.headers['Location']}"


async def send_with_kills(desk: Desk, seed: int, *command: str) -> None:
    """Have a client send the file, kill it at random places, and let it go on."""
    url = await begin(desk)
    (partial,) = desk.site.folders.glob(f"*/.uploads/{url.rpartition('/')[2]}")
    cuts = sorted(random.Random(seed).sample(range(1, len(CONTENT) // 2), KILLS))
    offset = 0
    for cut in cuts:
        client = await asyncio.create_subprocess_exec(*command, url)

        def has_come(wanted: int = max(cut, offset + 1)) -> bool:
            return partial.stat().st_size >= wanted

        await until(has_come, "so much of it has come")
        client.kill()
        assert await client.wait() == -signal.SIGKILL

        async def is_free() -> str | None:
            answer = await ask(desk, "HEAD", url)
            return answer.headers["Upload-Offset"] if answer.status == 200 else None

        told = await until(is_free, "the service has seen that the client is gone")
        assert cut <= int(told) < len(CONTENT)
        assert desk.names() == []
        offset = int(told)
    client = await asyncio.create_subprocess_exec(*command, url)
    assert await client.wait() == 0
    found = (desk.place / "a.bin").read_bytes()
    assert hashlib.sha256(found).digest() == hashlib.sha256(CONTENT).digest()


TUSPY = """
import sys
from tusclient import client as tus
source, authorization, part, url = sys.argv[1:]
client = tus.TusClient(url, headers={"Authorization": authorization})
client.uploader(source, chunk_size=int(part), url=url).upload()
"""


@pytest.mark.parametrize("seed", range(2))
async def test_tuspy_killed_anywhere_goes_on_to_the_same_bytes(
    desk: Desk, tmp_path: Path, seed: int
) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(CONTENT)
    known = (str(source), desk.headers["Authorization"], str(PART))
    await send_with_kills(desk, seed, sys.executable, "-c", TUSPY, *known)


TUS_JS = """
import { createReadStream, statSync } from "node:fs";
import * as tus from "tus-js-client";
const [file, authorization, part, url] = process.argv.slice(2);
new tus.Upload(createReadStream(file), {
  endpoint: url, uploadUrl: url, uploadSize: statSync(file).size,
  chunkSize: Number(part), retryDelays: null,
  headers: { Authorization: authorization },
  onError: (error) => { console.error(String(error)); process.exit(1); },
}).start();
"""


@pytest.mark.node
@pytest.mark.parametrize("seed", range(2))
async def test_tus_js_client_killed_anywhere_goes_on_to_the_same_bytes(
    desk: Desk, tmp_path: Path, seed: int
) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(CONTENT)
    node = shutil.which("node")
    assert node is not None
    # Node looks for modules beside the script.
    with tempfile.TemporaryDirectory(dir=ROOT / "labextension" / "node_modules") as at:
        script = Path(at) / "upload.mjs"
        script.write_text(TUS_JS)
        known = (str(source), desk.headers["Authorization"], str(PART))
        await send_with_kills(desk, seed, node, str(script), *known)
