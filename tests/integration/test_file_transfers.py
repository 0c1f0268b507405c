"""Whole files, parts of them and archives of them, over HTTP and by our own client."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from backendai_hub.client.hub import HubClient
from backendai_hub.client.sync import Client
from backendai_hub.core.errors import ConflictError, InsufficientStorageError
from tests.file_desk import Desk, Site, opened_desk, opened_site
from tests.harness import until

CONTENT = random.Random(5).randbytes(3_000_000)


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with opened_site(request.param) as site:
        yield site


@pytest.fixture
async def desk(site: Site) -> AsyncIterator[Desk]:
    async with opened_desk(site) as desk:
        yield desk


@pytest.fixture
async def client(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[HubClient]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    key = desk.site.key
    async with HubClient(
        desk.url, access_key=key.name, secret_key=key.secret
    ) as client:
        yield client


# --- HTTP ------------------------------------------------------------------------


async def test_a_download_is_saved_and_never_shown(desk: Desk) -> None:
    name = "<script>\"\r\nSet-Cookie: a=b;'ü.svg"
    desk.put(name, CONTENT)
    answer, content = await desk.fetch("content", name)
    assert content == CONTENT
    headers = answer.headers
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"].startswith("sandbox")
    assert "Set-Cookie" not in headers
    disposition = headers["Content-Disposition"]
    assert disposition.startswith('attachment; filename="_script_')
    assert "filename*=UTF-8''%3Cscript%3E%22%0D%0ASet-Cookie" in disposition


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        ("bytes=2999990-", 2_999_990, 3_000_000),
        ("bytes=2999990-99999999", 2_999_990, 3_000_000),
        ("bytes=-5", 2_999_995, 3_000_000),
        ("bytes=-99999999", 0, 3_000_000),
    ],
)
async def test_a_range_is_answered_with_that_part(
    desk: Desk, asked: str, start: int, end: int
) -> None:
    desk.put("a", CONTENT)
    answer, content = await desk.fetch("content", "a", Range=asked)
    assert answer.status == 206
    assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/{len(CONTENT)}"
    assert content == CONTENT[start:end]


@pytest.mark.parametrize("asked", ["bytes=0-1,5-6", "lines=1-2", "bytes=5-2", "x"])
async def test_ranges_we_do_not_know_are_answered_with_the_whole(
    desk: Desk, asked: str
) -> None:
    desk.put("a", b"0123456789")
    answer, content = await desk.fetch("content", "a", Range=asked)
    assert (answer.status, content) == (200, b"0123456789")


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=99-100", "bytes=-0"])
async def test_a_range_after_the_end_is_refused_with_the_size(
    desk: Desk, asked: str
) -> None:
    desk.put("a", b"0123456789")
    answer, _ = await desk.fetch("content", "a", Range=asked)
    assert answer.status == 416
    assert answer.headers["Content-Range"] == "bytes */10"


async def test_conditions_are_of_the_content_that_is_there(desk: Desk) -> None:
    file = desk.put("a", b"0123456789")
    answer, content = await desk.fetch("content", "a", "HEAD")
    tag = answer.headers["ETag"]
    assert (content, answer.headers["Content-Length"]) == (b"", "10")
    answer, content = await desk.fetch("content", "a", If_None_Match=tag)
    assert (answer.status, content) == (304, b"")
    part = {"Range": "bytes=5-", "If_Range": tag}
    assert (await desk.fetch("content", "a", **part))[1] == b"56789"
    assert (await desk.fetch("content", "a", If_Match='"other"'))[0].status == 412
    file.write_bytes(b"abcdefghijk")
    answer, content = await desk.fetch("content", "a", **part)
    assert (answer.status, content) == (200, b"abcdefghijk")
    assert (await desk.fetch("content", "a", If_None_Match=tag))[0].status == 200
    assert (await desk.fetch("content", "a", If_Match=tag))[0].status == 412


async def test_an_empty_file_is_downloaded(desk: Desk) -> None:
    desk.put("empty")
    answer, content = await desk.fetch("content", "empty")
    assert (answer.status, content) == (200, b"")
    assert (await desk.fetch("content", "empty", Range="bytes=0-"))[0].status == 416


async def test_a_reader_who_goes_away_ends_the_reading(desk: Desk) -> None:
    with (desk.place / "large").open("wb") as file:
        file.truncate(4 << 30)
    url = f"{desk.url}{desk.base}/content?path=large"
    for _ in range(5):
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers=desk.headers) as answer,
        ):
            await answer.content.readexactly(1_000_000)
            answer.close()

    async def is_idle() -> bool:
        # A file that is being read is open; of a worker's own are none here.
        return not [
            link
            for link in Path("/proc").glob("[0-9]*/fd/*")
            if _target(link) == str(desk.place / "large")
        ]

    await until(is_idle, "nobody reads the file any more")


async def test_what_becomes_shorter_meanwhile_does_not_look_complete(
    desk: Desk,
) -> None:
    large = desk.place / "large"
    with large.open("wb") as file:
        file.truncate(1 << 30)
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            f"{desk.url}{desk.base}/content?path=large", headers=desk.headers
        ) as answer,
    ):
        await answer.content.readexactly(1_000_000)
        os.truncate(large, 0)
        with pytest.raises(aiohttp.ClientError):
            await answer.read()


async def test_an_archive_that_breaks_off_does_not_look_complete(desk: Desk) -> None:
    with (desk.place / "large").open("wb") as file:
        file.truncate(1 << 30)
    service = desk.site.stack.programs["service"].process
    assert service is not None
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            f"{desk.url}{desk.base}/archive?kind=tar&path=large", headers=desk.headers
        ) as answer,
    ):
        await answer.content.readexactly(1_000_000)
        for worker in _children(service.pid):
            os.kill(worker, signal.SIGKILL)
        with pytest.raises(aiohttp.ClientError):
            await answer.read()

    async def is_back() -> bool:
        return (await desk.api.send("GET", f"{desk.base}/entries"))[0] == 200

    await until(is_back, "another worker has begun")


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


async def test_a_reader_who_pauses_does_not_fill_the_memory(desk: Desk) -> None:
    with (desk.place / "large").open("wb") as file:
        file.truncate(1 << 30)
    service = desk.site.stack.programs["service"].process
    assert service is not None
    before = _highest_memory(service.pid)
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            f"{desk.url}{desk.base}/content?path=large", headers=desk.headers
        ) as answer,
    ):
        await answer.content.readexactly(1000)
        for _ in range(30):  # the others are served, and it has time to read on
            await desk.get("entries")
        assert _highest_memory(service.pid) - before < 100_000_000
        answer.close()


def _highest_memory(pid: int) -> int:
    told = Path(f"/proc/{pid}/status").read_text()
    (line,) = [one for one in told.splitlines() if one.startswith("VmHWM")]
    return 1024 * int(line.split()[1])


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


async def _archive(desk: Desk, kind: str, *paths: str) -> bytes:
    query = [("kind", kind), *(("path", p) for p in paths)]
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            f"{desk.url}{desk.base}/archive", params=query, headers=desk.headers
        ) as answer,
    ):
        assert answer.status == 200, await answer.text()
        assert answer.headers["Content-Disposition"].startswith("attachment")
        return await answer.read()


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
async def test_several_paths_come_as_one_archive(desk: Desk, kind: str) -> None:
    desk.put("runs/1/log", b"one")
    desk.put("runs/2/log", CONTENT)
    desk.put("notes", b"notes")
    desk.put("other", b"not asked for")
    packed = io.BytesIO(await _archive(desk, kind, "runs", "notes"))
    found = {}
    if kind == "zip":
        with zipfile.ZipFile(packed) as archive:
            assert archive.testzip() is None
            found = {n: archive.read(n) for n in archive.namelist() if n[-1] != "/"}
    else:
        with tarfile.open(fileobj=packed) as archive:
            for member in archive:
                if (content := archive.extractfile(member)) is not None:
                    found[member.name] = content.read()
    assert found == {"runs/1/log": b"one", "runs/2/log": CONTENT, "notes": b"notes"}


async def test_a_folder_as_a_whole_comes_by_its_name(desk: Desk) -> None:
    desk.put("a/b", b"b")
    desk.put("c", b"c")
    (desk.place / "link").symlink_to("/etc/passwd")
    await desk.post("entries/trash", paths=["c"])
    answer, packed = await desk.fetch("archive", "")
    wanted = f'attachment; filename="{desk.name}.zip"'
    assert answer.headers["Content-Disposition"] == wanted
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        files = [n for n in archive.namelist() if not n.endswith("/")]
        assert "a/b" in files
        assert "c" not in files
        assert all(b"root:" not in archive.read(name) for name in files)


async def test_an_archive_of_what_is_not_there_is_refused_at_once(desk: Desk) -> None:
    desk.put("a", b"a")
    query = [("path", "a"), ("path", "missing")]
    status, said = await desk.api.refused("GET", f"{desk.base}/archive", params=query)
    assert (status, "missing" in said) == (404, True)


async def test_an_archive_comes_back_as_the_files_it_was_made_of(desk: Desk) -> None:
    desk.put("runs/1/log", CONTENT)
    desk.put("packed.zip", await _archive(desk, "zip", "runs"))
    before = await desk.scope()
    body = {"path": "packed.zip", "target": "again"}
    task = (await desk.post("extract", **body))["task"]
    assert (await desk.ended(task))["state"] == "done"
    assert (desk.place / "again/runs/1/log").read_bytes() == CONTENT
    after = await desk.scope()
    assert after["used_bytes"] == before["used_bytes"] + len(CONTENT)
    assert after["reserved_bytes"] == 0


async def test_an_archive_bomb_is_refused_and_leaves_nothing(desk: Desk) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", b"\0" * 100_000_000)
    desk.put("bomb.zip", bomb.getvalue())
    task = (await desk.post("extract", path="bomb.zip", target="out"))["task"]
    ended = await desk.ended(task)
    assert (ended["state"], "becomes more than" in ended["error"]) == ("failed", True)
    assert desk.names() == ["bomb.zip"]
    assert (await desk.scope())["reserved_bytes"] == 0


async def test_an_archive_that_does_not_fit_leaves_nothing(desk: Desk) -> None:
    desk.put("runs/log", CONTENT)
    desk.put("packed.zip", await _archive(desk, "zip", "runs"))
    async with desk.limited(1_000_000):
        task = (await desk.post("extract", path="packed.zip", target="out"))["task"]
        assert (await desk.ended(task))["state"] == "failed"
        assert desk.names() == ["packed.zip", "runs"]
        assert (await desk.scope())["reserved_bytes"] == 0


async def test_a_copy_counts_and_one_that_does_not_fit_does_not_begin(
    desk: Desk,
) -> None:
    desk.put("runs/1", CONTENT)
    desk.put("runs/2", b"two")
    before = await desk.scope()
    size = len(CONTENT) + 3
    async with desk.limited(size + 10):
        task = (await desk.post("copy", path="runs", target="more"))["task"]
        assert (await desk.ended(task))["state"] == "done"
        assert (await desk.scope())["used_bytes"] == before["used_bytes"] + size
        status, said = await desk.refused("copy", path="runs", target="third")
        assert (status, "would not fit" in said) == (507, True)
    assert desk.names() == ["more", "runs"]
    assert (desk.place / "more/1").read_bytes() == CONTENT
    status, _ = await desk.refused("copy", path="runs", target="more")
    assert status == 409


# --- our own client --------------------------------------------------------------


async def test_the_client_sends_and_fetches(
    desk: Desk, client: HubClient, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    files = client.files(desk.name)
    told: list[tuple[int, int]] = []
    await files.upload(source, "a b/c", progress=lambda *t: told.append(t))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert (desk.place / "a b/c").read_bytes() == CONTENT
    target = tmp_path / "target"
    await files.download("a b/c", target)
    assert target.read_bytes() == CONTENT
    with pytest.raises(ConflictError):
        await files.download("a b/c", target)
    with pytest.raises(ConflictError):
        await files.upload(source, "a b/c")
    await files.upload(source, "a b/c", conflict="replace")
    assert [e.name async for e in files.list()] == ["a b"]
    assert not list(tmp_path.glob("cache/backendai/transfers/*"))


async def test_what_does_not_fit_is_refused_before_it_is_sent(
    desk: Desk, client: HubClient, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    async with desk.limited(1000):
        with pytest.raises(InsufficientStorageError):
            await client.files(desk.folder).upload(source, "a")
    assert desk.names() == []


async def test_many_files_are_sent_and_fetched_and_each_ends_for_itself(
    desk: Desk, client: HubClient, tmp_path: Path
) -> None:
    pairs = []
    for number in range(20):
        source = tmp_path / f"s{number}"
        source.write_bytes(b"%d" % number * 1000)
        pairs.append((source, f"in/{number}"))
    pairs.append((tmp_path / "missing", "in/missing"))
    files = client.files(desk.folder)
    results = await files.upload_many(pairs, parallel=4)
    failed = [r.path for r in results if r.error is not None]
    assert failed == ["in/missing"]
    wanted = [(f"in/{number}", tmp_path / f"t{number}") for number in range(20)]
    results = await files.download_many(wanted)
    assert all(r.error is None for r in results)
    for number in range(20):
        assert (tmp_path / f"t{number}").read_bytes() == b"%d" % number * 1000


@pytest.mark.parametrize("seed", range(4))
async def test_a_download_goes_on_from_wherever_it_was_cut_off(
    desk: Desk, client: HubClient, tmp_path: Path, seed: int
) -> None:
    desk.put("a", CONTENT)
    files = client.files(desk.folder)
    cut = random.Random(seed).randrange(1, len(CONTENT))

    class CutError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if cut <= done < total:
            raise CutError

    target = tmp_path / "target"
    begun: list[int] = []
    try:
        await files.download("a", target, progress=stop)
    except CutError:
        assert not target.exists()
        await files.download("a", target, progress=lambda d, _: begun.append(d))
        assert begun[0] > 0
    assert hashlib.sha256(target.read_bytes()).digest() == (
        hashlib.sha256(CONTENT).digest()
    )
    assert not (tmp_path / "target.part").exists()


async def test_a_download_of_what_was_changed_meanwhile_begins_anew(
    desk: Desk, client: HubClient, tmp_path: Path
) -> None:
    desk.put("a", CONTENT)
    files = client.files(desk.folder)
    target = tmp_path / "target"

    class CutError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if 0 < done < total:
            raise CutError

    with pytest.raises(CutError):
        await files.download("a", target, progress=stop)
    desk.put("a", CONTENT[::-1])
    await files.download("a", target)
    assert target.read_bytes() == CONTENT[::-1]


PROGRAM = """
import sys, os
from backendai_hub.client.sync import Client
url, key, secret, folder, source, stop = sys.argv[1:]
def told(done, total):
    if int(stop) and done >= int(stop):
        os.kill(os.getpid(), 9)
    print(done, flush=True)
with Client(url, access_key=key, secret_key=secret) as client:
    client.files(folder).upload(source, "a", progress=told)
"""


def test_an_upload_whose_program_was_killed_goes_on(site: Site, tmp_path: Path) -> None:
    async def walk() -> None:
        async with opened_desk(site) as desk:
            await asyncio.to_thread(upload_twice, desk, tmp_path)
            assert (desk.place / "a").read_bytes() == CONTENT * 8

    asyncio.run(walk())


def upload_twice(desk: Desk, folder: Path) -> None:
    source = folder / "source"
    source.write_bytes(CONTENT * 8)
    key = desk.site.key
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    command = [sys.executable, "-c", PROGRAM, desk.url, key.name, str(key.secret)]
    command += [desk.folder, str(source)]
    killed = subprocess.run(
        [*command, "8000000"], check=False, timeout=60, env=environ, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = subprocess.run(
        [*command, "0"], check=False, timeout=60, env=environ, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) >= 8_000_000


async def test_a_file_that_is_changed_while_it_is_sent_does_not_appear(
    desk: Desk, client: HubClient, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(CONTENT * 6)

    def change(done: int, total: int) -> None:
        if 0 < done < total:
            source.write_bytes(CONTENT[::-1] * 6)

    with pytest.raises(ConflictError, match="changed while"):
        await client.files(desk.folder).upload(source, "a", progress=change)
    assert desk.names() == []
    assert (await desk.scope())["reserved_bytes"] == 0


def test_all_of_it_works_without_await(site: Site, tmp_path: Path) -> None:
    key = site.key
    with Client(site.stack.url, access_key=key.name, secret_key=key.secret) as client:
        folder = client.folders.create(name=f"sync-{time.time_ns()}")
        files = client.files(folder.id)
        files.mkdir("d")
        files.write_text("d/a", "text", tag="")
        assert files.read_text("d/a").text == "text"
        assert files.move("d/a", "d/b") == "d/b"
        thrown = files.trash(["d/b"]).results[0]
        assert [t.path for t in files.trashed()] == ["d/b"]
        assert files.restore([str(thrown.id)]).succeeded == 1
        files.archive(["d"], tmp_path / "d.zip")
        assert zipfile.ZipFile(tmp_path / "d.zip").read("d/b") == b"text"
