"""Uploads by the tus protocol into a real service, by clients that others wrote."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tusclient import client as tus

from backendai_hub.core.tenancy import Keypair
from tests.admin import KeyAPI, basic, make_administrator, make_person
from tests.databases import new_database
from tests.harness import Stack, until

ROOT = Path(__file__).parents[2]
CONTENT = bytes(range(256)) * 4096
"""One mebibyte, no two kibibytes of which begin alike at another place."""


@dataclass
class Desk:
    """A service, an administrator's keypair, and a folder of theirs."""

    stack: Stack
    api: KeyAPI
    headers: dict[str, str]
    folder: str
    path: Path

    @property
    def endpoint(self) -> str:
        return f"{self.stack.url}api/folders/{self.folder}/uploads"

    async def send(
        self, method: str, url: str, *, data: Any = None, **headers: str
    ) -> aiohttp.ClientResponse:
        """Speak the protocol by hand."""
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        known = {"Tus-Resumable": "1.0.0", **self.headers, **named}
        async with aiohttp.ClientSession() as session:
            answer = await session.request(method, url, data=data, headers=known)
            await answer.read()
            return answer

    async def begin(self, length: int, *, name: str = "a.bin", **more: str) -> str:
        """Begin an upload and return where it goes on."""
        metadata = {"filename": name, **more}
        pairs = ",".join(
            f"{key} {base64.b64encode(value.encode()).decode()}"
            for key, value in metadata.items()
        )
        answer = await self.send(
            "POST", self.endpoint, Upload_Length=str(length), Upload_Metadata=pairs
        )
        assert answer.status == 201, await answer.text()
        root = self.stack.url.removesuffix(self.stack.prefix)
        return f"{root}{answer.headers['Location']}"

    async def patch(self, url: str, part: Any, offset: int, **more: str) -> Any:
        return await self.send(
            "PATCH",
            url,
            data=part,
            Content_Type="application/offset+octet-stream",
            Upload_Offset=str(offset),
            **more,
        )

    async def scope(self) -> dict[str, Any]:
        """Tell what is used and kept of the quota."""
        return dict((await self.api.get("api/quota-scopes"))["items"][0])

    @property
    def place(self) -> Path:
        """Where the folder is on the disk."""
        digits = uuid.UUID(self.folder).hex
        (found,) = self.path.glob(f"*/{digits[:2]}/{digits[2:4]}/{digits[4:]}")
        return found

    def content(self, name: str) -> bytes:
        """Return a file of the folder as it is on the disk."""
        return (self.place / name).read_bytes()

    def names(self) -> list[str]:
        """List what is seen in the folder."""
        return sorted(p.name for p in self.place.iterdir())


@dataclass
class Site:
    """A service on one of the databases, shared by these tests."""

    stack: Stack
    key: Keypair
    folders: Path


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="backendai-"))
        url = None
        if request.param == "postgresql":
            url = opened.enter_context(new_database())
        stack = Stack(Path(folder) / "platform", url)
        opened.callback(stack.stop)
        stack.settings = [f"--HubService.local_folders={folder}/folders"]
        asyncio.run(stack.start_service())
        key = asyncio.run(make_administrator(stack))
        yield Site(stack, key, Path(folder) / "folders")


@asynccontextmanager
async def opened_desk(site: Site) -> AsyncIterator[Desk]:
    """Make a folder of the test's own."""
    key = site.key
    assert key.secret is not None
    headers = {"Authorization": basic(key.name, key.secret)}
    async with KeyAPI(site.stack.url, key.name, key.secret) as api:
        await api.change("domains/default", allowed_vfolder_hosts={"local": ["*"]})
        made = await api.make("folders", name=f"data-{uuid.uuid4().hex[:8]}")
        yield Desk(site.stack, api, headers, made["id"], site.folders)


@pytest.fixture
async def desk(site: Site) -> AsyncIterator[Desk]:
    async with opened_desk(site) as desk:
        yield desk


def digest(kind: str, content: bytes) -> str:
    made = hashlib.new(kind, content).digest()
    return f"{kind} {base64.b64encode(made).decode()}"


async def test_a_file_appears_when_all_of_it_has_come(desk: Desk) -> None:
    url = await desk.begin(len(CONTENT))
    assert (await desk.patch(url, CONTENT[:1000], 0)).headers["Upload-Offset"] == "1000"
    assert desk.names() == []
    answer = await desk.patch(url, CONTENT[1000:], 1000)
    assert answer.status == 204
    assert answer.headers["Upload-Offset"] == str(len(CONTENT))
    assert desk.names() == ["a.bin"]
    assert desk.content("a.bin") == CONTENT


async def test_a_cut_connection_keeps_what_came_and_the_rest_follows(
    desk: Desk,
) -> None:
    content = CONTENT * 6
    url = await desk.begin(len(content))

    async def a_part() -> AsyncIterator[bytes]:
        yield content[:5_000_000]
        await asyncio.Event().wait()

    sending = asyncio.create_task(desk.patch(url, a_part(), 0))
    (partial,) = desk.path.glob(f"*/.uploads/{url.rpartition('/')[2]}")
    await until(lambda: partial.stat().st_size > 0, "some of it is on the disk")
    sending.cancel()

    async def is_free() -> bool:
        return (await desk.send("HEAD", url)).status == 200

    await until(is_free, "the service has seen that the connection is gone")
    offset = int((await desk.send("HEAD", url)).headers["Upload-Offset"])
    assert 0 < offset <= 5_000_000
    rest = io.BytesIO(content[offset:])
    assert (await desk.patch(url, rest, offset)).status == 204
    assert desk.content("a.bin") == content


async def test_a_part_at_the_wrong_place_is_refused_with_the_right_one(
    desk: Desk,
) -> None:
    url = await desk.begin(100)
    await desk.patch(url, b"x" * 40, 0)
    answer = await desk.patch(url, b"y" * 10, 39)
    assert answer.status == 409
    assert (await answer.json())["fields"]["offset"] == 40


async def test_more_than_was_announced_is_refused_and_does_not_count(
    desk: Desk,
) -> None:
    url = await desk.begin(10)
    answer = await desk.patch(url, b"x" * 11, 0)
    assert answer.status == 413
    assert (await desk.send("HEAD", url)).headers["Upload-Offset"] == "0"


@pytest.mark.parametrize("kind", ["sha1", "sha256", "md5"])
async def test_a_part_with_a_wrong_checksum_does_not_count(
    desk: Desk, kind: str
) -> None:
    url = await desk.begin(6)
    wrong = await desk.patch(url, b"abcdef", 0, Upload_Checksum=digest(kind, b"else"))
    assert wrong.status == 460
    assert (await desk.send("HEAD", url)).headers["Upload-Offset"] == "0"
    right = await desk.patch(url, b"abcdef", 0, Upload_Checksum=digest(kind, b"abcdef"))
    assert right.status == 204
    assert desk.content("a.bin") == b"abcdef"


async def test_a_file_without_content_is_complete_at_once(desk: Desk) -> None:
    await desk.begin(0, name="empty")
    assert desk.names() == ["empty"]


async def test_content_may_come_with_the_beginning(desk: Desk) -> None:
    name = base64.b64encode(b"a.bin").decode()
    answer = await desk.send(
        "POST",
        desk.endpoint,
        data=b"hello",
        Content_Type="application/offset+octet-stream",
        Upload_Length="5",
        Upload_Metadata=f"filename {name}",
    )
    assert answer.status == 201
    assert answer.headers["Upload-Offset"] == "5"
    assert desk.content("a.bin") == b"hello"


async def test_folders_on_the_way_are_made(desk: Desk) -> None:
    url = await desk.begin(1, relativePath="runs/7/log.txt", folder="old")
    assert (await desk.patch(url, b"x", 0)).status == 204
    assert desk.names() == ["old"]
    assert desk.content("old/runs/7/log.txt") == b"x"


@pytest.mark.parametrize(
    ("conflict", "status", "names"),
    [
        ("fail", 409, ["a.bin"]),
        ("replace", 201, ["a.bin"]),
        ("rename", 201, ["a (1).bin", "a.bin"]),
    ],
)
async def test_what_is_there_already_stays_unless_it_is_to_be_replaced(
    desk: Desk, conflict: str, status: int, names: list[str]
) -> None:
    await desk.patch(await desk.begin(3), b"old", 0)
    pairs = {"filename": "a.bin", "conflict": conflict}
    answer = await desk.send(
        "POST",
        desk.endpoint,
        data=b"new",
        Content_Type="application/offset+octet-stream",
        Upload_Length="3",
        Upload_Metadata=",".join(
            f"{k} {base64.b64encode(v.encode()).decode()}" for k, v in pairs.items()
        ),
    )
    assert answer.status == status, await answer.text()
    assert desk.names() == names
    if conflict == "replace":
        assert desk.content("a.bin") == b"new"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../escape", ".."),
        ("a/../../b", ".."),
        ("x" * 300, "255"),
    ],
)
async def test_no_upload_leaves_its_folder(desk: Desk, path: str, said: str) -> None:
    answer = await desk.send(
        "POST",
        desk.endpoint,
        Upload_Length="1",
        Upload_Metadata=f"path {base64.b64encode(path.encode()).decode()}",
    )
    body = await answer.json()
    assert answer.status in {400, 422}, body
    assert said in body["detail"]


async def test_room_is_kept_when_it_begins_and_given_back_when_it_is_ended(
    desk: Desk,
) -> None:
    scope = await desk.scope()
    place = f"quota-scopes/{scope['host']}/{scope['scope']}"
    held = scope["used_bytes"] + scope["reserved_bytes"]
    await desk.api.change(place, limit_bytes=held + 1000)
    try:
        url = await desk.begin(800)
        assert (await desk.scope())["reserved_bytes"] == scope["reserved_bytes"] + 800
        answer = await desk.send(
            "POST", desk.endpoint, Upload_Length="201", Upload_Metadata="filename Yg=="
        )
        assert answer.status == 507
        assert "would not fit" in (await answer.json())["detail"]
        assert (await desk.send("DELETE", url)).status == 204
        assert (await desk.scope())["reserved_bytes"] == scope["reserved_bytes"]
        assert (await desk.send("HEAD", url)).status == 410
        await desk.patch(await desk.begin(201), b"x" * 201, 0)
        assert (await desk.scope())["used_bytes"] == scope["used_bytes"] + 201
    finally:
        await desk.api.change(place, limit_bytes=-1)


async def test_of_many_at_once_only_those_that_fit_begin(desk: Desk) -> None:
    scope = await desk.scope()
    place = f"quota-scopes/{scope['host']}/{scope['scope']}"
    held = scope["used_bytes"] + scope["reserved_bytes"]
    await desk.api.change(place, limit_bytes=held + 500)
    try:
        answers = await asyncio.gather(
            *(
                desk.send(
                    "POST",
                    desk.endpoint,
                    Upload_Length="100",
                    Upload_Metadata=f"filename {name}",
                )
                for name in (base64.b64encode(b"%d" % n).decode() for n in range(12))
            )
        )
        assert sorted(a.status for a in answers) == [201] * 5 + [507] * 7
        for answer in answers:
            if answer.status == 201:
                root = desk.stack.url.removesuffix(desk.stack.prefix)
                await desk.send("DELETE", f"{root}{answer.headers['Location']}")
    finally:
        await desk.api.change(place, limit_bytes=-1)


async def test_others_neither_see_an_upload_nor_go_on_with_it(desk: Desk) -> None:
    url = await desk.begin(3)
    eve = await make_person(desk.stack, desk.api, f"eve-{uuid.uuid4().hex[:8]}")
    theirs = {"Authorization": basic(eve.access_key, eve.secret)}
    assert (await desk.send("HEAD", url, **theirs)).status == 404
    assert (await desk.patch(url, b"abc", 0, **theirs)).status == 404
    asked = {"Upload_Length": "1", "Upload_Metadata": "filename YQ==", **theirs}
    assert (await desk.send("POST", desk.endpoint, **asked)).status == 404


async def test_permission_is_asked_for_again_with_every_part(desk: Desk) -> None:
    url = await desk.begin(6)
    await desk.patch(url, b"abc", 0)
    await desk.api.change(f"folders/{desk.folder}", permission="ro")
    answer = await desk.patch(url, b"def", 3)
    assert answer.status == 403
    assert "read-only" in (await answer.json())["detail"]


async def test_what_is_spoken_here_is_told(desk: Desk) -> None:
    answer = await desk.send("OPTIONS", desk.endpoint)
    assert answer.status == 204
    assert answer.headers["Tus-Version"] == "1.0.0"
    told = answer.headers["Tus-Extension"].split(",")
    assert {"creation", "termination", "expiration", "checksum"} <= set(told)
    url = await desk.begin(2)
    for answer in (await desk.send("HEAD", url), await desk.patch(url, b"x", 0)):
        ends = parsedate_to_datetime(answer.headers["Upload-Expires"])
        left = ends - datetime.now(UTC)
        assert timedelta(hours=23) < left <= timedelta(hours=24, minutes=1)
    answer = await desk.patch(url, b"y", 1)
    assert "Upload-Expires" not in answer.headers, "complete: nothing ends any more"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Tus_Resumable": "0.2.2"}, 412),
        ({"Upload_Length": "-1"}, 400),
        ({"Upload_Length": "1e9"}, 400),
        ({"Upload_Length": str(1 << 63)}, 422),
        ({"Upload_Metadata": "filename !!!"}, 400),
        ({"Upload_Metadata": "filename YQ==,filename YQ=="}, 400),
        ({"Upload_Metadata": ""}, 422),
        ({"Upload_Metadata": "filename YQ==,conflict Ym9i"}, 422),
        ({"Upload_Defer_Length": "1"}, 400),
    ],
)
async def test_headers_that_make_no_sense_are_refused_in_words(
    desk: Desk, headers: dict[str, str], status: int
) -> None:
    given = {"Upload_Length": "1", "Upload_Metadata": "filename YQ==", **headers}
    answer = await desk.send("POST", desk.endpoint, **given)
    body = await answer.json()
    assert answer.status == status, body
    assert ":" in body["detail"]


def test_tuspy_uploads_and_goes_on_where_it_was_stopped(
    site: Site, tmp_path: Path
) -> None:
    """With the client as it comes, in parts that end anywhere."""

    async def walk() -> None:
        async with opened_desk(site) as desk:
            await asyncio.to_thread(upload_with_tuspy, desk, tmp_path)
            assert desk.content("a.bin") == CONTENT

    asyncio.run(walk())


def upload_with_tuspy(desk: Desk, folder: Path) -> None:
    source = folder / "source.bin"
    source.write_bytes(CONTENT)
    client = tus.TusClient(desk.endpoint, headers=desk.headers)
    metadata = {"filename": "a.bin"}
    with source.open("rb") as file:
        first = client.uploader(
            file_stream=file, chunk_size=77_777, metadata=metadata, upload_checksum=True
        )
        first.upload(stop_at=400_000)
        assert 0 < first.offset < len(CONTENT)
        again = client.uploader(file_stream=file, chunk_size=123_456, url=first.url)
        assert again.offset == first.offset
        again.upload()


@pytest.mark.node
def test_tus_js_client_uploads_and_goes_on_where_it_was_killed(
    site: Site, tmp_path: Path
) -> None:
    async def walk() -> None:
        async with opened_desk(site) as desk:
            await asyncio.to_thread(upload_with_javascript, desk, tmp_path)
            made = hashlib.sha256(desk.content("a.bin")).hexdigest()
            assert made == hashlib.sha256(CONTENT * 8).hexdigest()

    asyncio.run(walk())


SCRIPT = """
import { createReadStream, statSync, writeFileSync } from "node:fs";
import * as tus from "tus-js-client";
const [endpoint, file, authorization, known, stopAt] = process.argv.slice(2);
const upload = new tus.Upload(createReadStream(file), {
  endpoint, uploadUrl: known || null, uploadSize: statSync(file).size,
  chunkSize: 500000, retryDelays: null, metadata: { filename: "a.bin" },
  headers: { Authorization: authorization },
  onChunkComplete: (size, accepted) => {
    if (stopAt && accepted >= Number(stopAt)) {
      writeFileSync(file + ".url", upload.url);
      process.kill(process.pid, "SIGKILL");
    }
  },
  onSuccess: () => console.log("done"),
  onError: (error) => { console.error(String(error)); process.exit(1); },
});
upload.start();
"""


def upload_with_javascript(desk: Desk, folder: Path) -> None:
    source = folder / "source.bin"
    source.write_bytes(CONTENT * 8)
    node = shutil.which("node")
    assert node is not None
    # Node looks for modules beside the script.
    with tempfile.TemporaryDirectory(dir=ROOT / "labextension" / "node_modules") as at:
        script = Path(at) / "upload.mjs"
        script.write_text(SCRIPT)
        command = [node, str(script), desk.endpoint, str(source)]
        command.append(desk.headers["Authorization"])
        killed = subprocess.run([*command, "", "3000000"], check=False, timeout=60)
        assert killed.returncode == -9
        known = Path(f"{source}.url").read_text()
        done = subprocess.run(
            [*command, known, ""], check=False, timeout=60, capture_output=True
        )
        assert done.stdout == b"done\n", done.stderr
