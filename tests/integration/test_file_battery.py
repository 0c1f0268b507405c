"""Odd and hostile things in a folder, asked for over the API by every way there is."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import unicodedata
import zipfile
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.file_desk import Desk, Site, opened_desk, opened_site

REFUSED = {403, 404, 409, 422}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with opened_site("sqlite") as opened:
        yield opened


@pytest.fixture
async def desk(site: Site) -> AsyncIterator[Desk]:
    async with opened_desk(site) as desk:
        yield desk


async def kinds(desk: Desk) -> dict[str, str]:
    return {e["name"]: e["kind"] for e in (await desk.get("entries"))["items"]}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
async def test_a_device_is_told_and_never_opened(desk: Desk) -> None:
    os.mknod(desk.place / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    assert await kinds(desk) == {"zero": "other"}
    for what in ("content", "text"):
        answer, _ = await desk.fetch(what, "zero")
        assert answer.status in REFUSED, what
    desk.put("file", b"kept")
    task = (await desk.post("copy", path="zero", target="copied"))["task"]
    await desk.ended(task)
    assert "copied" not in desk.names() or not (desk.place / "copied").is_char_device()
    _, packed = await desk.fetch("archive", "")
    with zipfile.ZipFile(io.BytesIO(packed)) as made:
        assert made.namelist() == ["file"], "what a device says has no end"


async def test_a_pipe_holds_nobody_up(desk: Desk) -> None:
    os.mkfifo(desk.place / "pipe")
    assert await kinds(desk) == {"pipe": "other"}
    for what in ("content", "text"):
        answer, _ = await desk.fetch(what, "pipe")
        assert answer.status in REFUSED, what
    status, _ = await desk.refused("extract", path="pipe", target="out")
    assert status in REFUSED


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127 + "x", "한" * 85])
async def test_a_name_of_255_bytes_goes_every_way(desk: Desk, name: str) -> None:
    assert len(name.encode()) == 255
    desk.put(name, b"content")
    assert await kinds(desk) == {name: "file"}
    _, content = await desk.fetch("content", name)
    assert content == b"content"
    thrown = await desk.post("entries/trash", paths=[name])
    await desk.post("trashed/restore", ids=[thrown["results"][0]["id"]])
    await desk.post("move", path=name, target="short")
    await desk.post("move", path="short", target=name)
    await desk.post("directories", path="d")
    task = (await desk.post("copy", path=name, target=f"d/{name}"))["task"]
    assert (await desk.ended(task))["state"] == "done"
    assert desk.names("d") == [name]
    status, said = await desk.refused("move", path=name, target=f"{name}y")
    assert (status, "255" in said) == (422, True)


async def test_twins_of_unicode_are_two_files_over_the_api_as_well(desk: Desk) -> None:
    twins = [unicodedata.normalize(form, "é.txt") for form in ("NFC", "NFD")]
    for name in twins:
        desk.put(name, name.encode())
    assert sorted(await kinds(desk)) == sorted(twins)
    for name in twins:
        _, content = await desk.fetch("content", name)
        assert content == name.encode()


@pytest.mark.parametrize("target", ["/etc", "..", "elsewhere"])
async def test_a_link_in_an_archive_leads_nowhere(desk: Desk, target: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as made:
        link = tarfile.TarInfo("way")
        link.type, link.linkname = tarfile.SYMTYPE, target
        made.addfile(link)
        file = tarfile.TarInfo("way/planted")
        file.size = 4
        made.addfile(file, io.BytesIO(b"evil"))
    desk.put("a.tar", packed.getvalue())
    task = (await desk.post("extract", path="a.tar", target="out"))["task"]
    ended = await desk.ended(task)
    assert (ended["state"], "link" in ended["error"]) == ("failed", True)
    assert desk.names() == ["a.tar"]
