"""Files of folders over HTTP: looking, making, moving, throwing away."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest

from tests.admin import make_person
from tests.file_desk import Desk, Site, opened_desk, opened_site


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


async def test_a_folder_is_listed_in_parts_in_the_order_that_is_asked_for(
    desk: Desk,
) -> None:
    for number, name in enumerate(["b", "a", "d", "c"]):
        desk.put(name, b"x" * number)
    (desk.place / "sub").mkdir()
    first = await desk.get("entries", limit="3")
    assert [e["name"] for e in first["items"]] == ["a", "b", "c"]
    assert first["total"] == 5
    rest = await desk.get("entries", limit="3", after=first["next"])
    assert [e["name"] for e in rest["items"]] == ["d", "sub"]
    assert rest["next"] is None
    largest = await desk.get("entries", sort="size", descending="true", limit="1")
    assert (largest["items"][0]["name"], largest["items"][0]["size"]) == ("c", 3)


async def test_a_hundred_thousand_entries_are_paged_and_searched(desk: Desk) -> None:
    many = desk.place / "many"
    many.mkdir()
    here = os.open(many, os.O_RDONLY)
    try:
        for number in range(100_000):
            made = os.open(f"{number:06}", os.O_CREAT | os.O_WRONLY, dir_fd=here)
            os.close(made)
    finally:
        os.close(here)
    page = await desk.get("entries", path="many", limit="1000")
    assert page["total"] == 100_000
    assert [e["name"] for e in page["items"]] == [f"{n:06}" for n in range(1000)]
    page = await desk.get("entries", path="many", limit="2", after=page["next"])
    assert [e["name"] for e in page["items"]] == ["001000", "001001"]
    page = await desk.get("entries", path="many", search="9999")
    assert page["total"] == 19


async def test_blanks_and_steering_characters_of_names_stay_what_they_are(
    desk: Desk,
) -> None:
    names = [" a", "a", "a ", "a\x01b", "a b", "ünïcode\u202e", "<img src=x>"]
    for name in names:
        desk.put(name, name.encode())
    for name in names:
        assert (await desk.get("entry", path=name))["name"] == name
        _, content = await desk.fetch("content", name)
        assert content == name.encode()


async def test_links_are_told_and_never_followed(desk: Desk) -> None:
    (desk.place / "out").symlink_to("/etc/passwd")
    (desk.place / "up").symlink_to("..")
    [out, up] = (await desk.get("entries"))["items"]
    assert (out["kind"], out["target"]) == ("link", "/etc/passwd")
    assert up["kind"] == "link"
    for path in ("out", "up/x", "up"):
        answer, _ = await desk.fetch("content", path)
        assert answer.status in {403, 404, 409, 422}, path
        answer, _ = await desk.fetch("text", path)
        assert answer.status in {403, 404, 409, 422}, path


async def test_folders_are_made_with_those_on_the_way(desk: Desk) -> None:
    status, said = await desk.refused("directories", path="a/b/c")
    assert status == 404, said
    made = await desk.post("directories", path="a/b/c", parents=True)
    assert (made["name"], made["kind"]) == ("c", "folder")
    assert (await desk.refused("directories", path="a/b/c"))[0] == 409
    await desk.post("directories", path="a/b/c", exist_ok=True)
    assert desk.names("a/b") == ["c"]


@pytest.mark.parametrize(
    ("conflict", "status", "names"),
    [
        ("fail", 409, ["a", "b"]),
        ("replace", 200, ["b"]),
        ("rename", 200, ["b", "b (1)"]),
    ],
)
async def test_what_has_the_name_already_stays_unless_it_is_to_be_replaced(
    desk: Desk, conflict: str, status: int, names: list[str]
) -> None:
    desk.put("a", b"new")
    desk.put("b", b"old")
    body = {"path": "a", "target": "b", "conflict": conflict}
    got, _ = await desk.api.send("POST", f"{desk.base}/move", json=body)
    assert got == status
    assert desk.names() == names


HOSTILE = [
    "..",
    "../x",
    "a/../../x",
    "./x",
    "a\0b",
    "x" * 256,
    "/".join("x" * 300),
    ".backendai/../..",
    "a/" * 2500,
]


@pytest.mark.parametrize("path", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_path_leads_out_of_the_folder(desk: Desk, path: str) -> None:
    desk.put("a/inside", b"x")
    before = what_is_there(desk)
    for what, body in (
        ("directories", {"path": path, "parents": True}),
        ("move", {"path": "a", "target": path}),
        ("move", {"path": path, "target": "z"}),
        ("copy", {"path": path, "target": "z"}),
        ("extract", {"path": path, "target": "z"}),
    ):
        status, said = await desk.refused(what, **body)
        assert status in {404, 422}, (what, said)
    for what in ("entries", "entry", "content", "archive", "text"):
        answer, _ = await desk.fetch(what, path)
        assert answer.status in {400, 404, 422}, what
    answer = await desk.post("entries/trash", paths=[path])
    assert answer["failed"] == 1
    assert what_is_there(desk) == before


def what_is_there(desk: Desk) -> list[str]:
    """List the folder, its neighbours, and what lies above; not what goes on beside."""
    root = desk.site.folders
    above = [*root.parent.iterdir(), *root.glob("*"), *root.glob("*/[!.]*/*/*")]
    return sorted(str(p) for p in (*above, *desk.place.rglob("*")))


async def test_what_is_thrown_away_comes_back_byte_for_byte(desk: Desk) -> None:
    content = bytes(range(256)) * 1000
    file = desk.put("runs/7/weights", content)
    file.chmod(0o750)
    os.utime(file, ns=(1, 1_600_000_000_123_456_789))
    desk.put("runs/log", b"log")
    answer = await desk.post("entries/trash", paths=["runs", "nothing"])
    assert (answer["succeeded"], answer["failed"]) == (1, 1)
    assert answer["results"][1]["status"] == 404
    assert desk.names() == []
    [thrown] = (await desk.get("trashed"))["items"]
    assert (thrown["path"], thrown["kind"]) == ("runs", "folder")
    assert thrown["thrown_by"] == "root"
    restored = await desk.post("trashed/restore", ids=[thrown["id"]])
    assert restored["results"][0]["path"] == "runs"
    file = desk.place / "runs/7/weights"
    assert file.read_bytes() == content
    assert file.stat().st_mode & 0o777 == 0o750
    assert file.stat().st_mtime_ns == 1_600_000_000_123_456_789
    assert (await desk.get("trashed"))["items"] == []


async def test_a_name_that_was_taken_meanwhile_is_not_lost_by_coming_back(
    desk: Desk,
) -> None:
    desk.put("a", b"first")
    [thrown] = (await desk.post("entries/trash", paths=["a"]))["results"]
    desk.put("a", b"second")
    again = await desk.post("trashed/restore", ids=[thrown["id"]])
    assert again["results"][0]["status"] == 409
    again = await desk.post("trashed/restore", ids=[thrown["id"]], conflict="rename")
    assert again["results"][0]["path"] == "a (1)"
    assert (desk.place / "a").read_bytes() == b"second"
    assert (desk.place / "a (1)").read_bytes() == b"first"


async def test_the_trash_counts_until_it_is_emptied(desk: Desk) -> None:
    before = (await desk.scope())["used_bytes"]
    await desk.api.send(
        "PUT", f"{desk.base}/text", params={"path": "a"}, json={"text": "x" * 5000}
    )
    await desk.post("entries/trash", paths=["a"])
    assert (await desk.scope())["used_bytes"] == before + 5000
    task = (await desk.post("trashed/empty"))["task"]
    assert (await desk.ended(task))["state"] == "done"
    assert (await desk.scope())["used_bytes"] == before
    assert (await desk.get("trashed"))["items"] == []


async def test_one_entry_of_the_trash_is_removed_and_the_others_stay(
    desk: Desk,
) -> None:
    for name in ("a", "b"):
        desk.put(name, b"x")
    results = (await desk.post("entries/trash", paths=["a", "b"]))["results"]
    task = (await desk.post("trashed/empty", ids=[results[0]["id"]]))["task"]
    await desk.ended(task)
    assert [t["path"] for t in (await desk.get("trashed"))["items"]] == ["b"]


ROUTES = [
    ("GET", "entries", None),
    ("GET", "entry?path=a", None),
    ("GET", "trashed", None),
    ("GET", "content?path=a", None),
    ("HEAD", "content?path=a", None),
    ("GET", "archive", None),
    ("GET", "text?path=a", None),
    ("PUT", "text?path=a", {"text": "x"}),
    ("POST", "directories", {"path": "d"}),
    ("POST", "move", {"path": "a", "target": "b"}),
    ("POST", "copy", {"path": "a", "target": "b"}),
    ("POST", "extract", {"path": "a", "target": "b"}),
    ("POST", "entries/trash", {"paths": ["a"]}),
    ("POST", "trashed/restore", {"ids": ["a"]}),
    ("POST", "trashed/empty", {}),
]


async def test_others_folders_are_not_there(desk: Desk) -> None:
    desk.put("a", b"secret")
    async with await make_person(desk.site.stack, desk.api, "eve") as eve:
        for method, what, body in ROUTES:
            status, text, _ = await eve.ask(method, f"{desk.base}/{what}", json=body)
            assert status == 404, (what, text)
            assert "secret" not in text
    assert desk.names() == ["a"]


async def test_a_read_only_folder_is_read_and_nothing_else(desk: Desk) -> None:
    desk.put("a", b"x")
    await desk.api.change(f"folders/{desk.folder}", permission="ro")
    for method, what, body in ROUTES:
        path = f"{desk.url}{desk.base}/{what}"
        async with (
            aiohttp.ClientSession(headers=desk.headers) as session,
            session.request(method, path, json=body) as answer,
        ):
            wanted = 200 if method in {"GET", "HEAD"} else 403
            assert answer.status == wanted, (what, await answer.read())
    assert desk.names() == ["a"]


async def test_who_may_write_a_shared_folder_does_not_delete_in_it(desk: Desk) -> None:
    desk.put("a", b"x")
    key = await make_person(desk.site.stack, desk.api, "mia")
    invited = await desk.post("invite", users=["mia"], permission="rw")
    async with key as mia:
        accept = f"api/invitations/{invited[0]['invitation']}/accept"
        assert (await mia.send("POST", accept, json={}))[0] == 200
        moved = {"path": "a", "target": "b"}
        assert (await mia.send("POST", f"{desk.base}/move", json=moved))[0] == 200
        status, said = await mia.refused(
            "POST", f"{desk.base}/entries/trash", json={"paths": ["b"]}
        )
        assert (status, "delete" in said) == (403, True)
    assert desk.names() == ["b"]


async def test_what_the_host_does_not_permit_is_refused_with_its_name(
    desk: Desk,
) -> None:
    desk.put("a", b"x")
    allowed = ["create-vfolder", "modify-vfolder"]
    await desk.api.change("domains/default", allowed_vfolder_hosts={"local": allowed})
    status, said = await desk.api.refused("GET", f"{desk.base}/content?path=a")
    assert (status, "download-file" in said) == (403, True)
    status, said = await desk.refused("directories", path="d")
    assert (status, "upload-file" in said) == (403, True)


async def test_what_was_done_is_in_the_folders_activity(desk: Desk) -> None:
    desk.put("a", b"x")
    await desk.post("directories", path="d")
    await desk.post("move", path="a", target="d/a")
    await desk.post("entries/trash", paths=["d/a"])
    done = await desk.get("activity")
    actions = [item["action"] for item in done["items"]]
    wanted = ["file:trash", "file:move", "file:make-directory"]
    assert [a for a in actions if a.startswith("file:")] == wanted


async def test_text_is_written_only_over_what_was_read(desk: Desk) -> None:
    where = {"params": {"path": "notes.md"}}
    base = f"{desk.base}/text"

    async def write(text: str, **headers: str) -> int:
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        status, _ = await desk.api.send(
            "PUT", base, json={"text": text}, headers=named, **where
        )
        return status

    assert await write("none", If_Match="*") == 412
    assert not (desk.place / "notes.md").exists()
    assert await write("one", If_None_Match="*") == 200
    assert await write("other", If_None_Match="*") == 412
    _, body, headers = await desk.api.ask("GET", base, **where)
    assert '"one"' in body
    tag = headers["ETag"]
    assert await write("two", If_Match=tag) == 200
    assert await write("three", If_Match=tag) == 412
    assert await write("three", If_Match='"*"') == 412  # a tag, though no file has it
    assert (desk.place / "notes.md").read_bytes() == b"two"
    assert await write("four", If_Match="*") == 200
    assert (desk.place / "notes.md").read_bytes() == b"four"
    assert (await desk.scope())["reserved_bytes"] == 0


async def test_text_that_does_not_fit_changes_nothing(desk: Desk) -> None:
    place = {"params": {"path": "a"}}
    base = f"{desk.base}/text"
    await desk.api.send("PUT", base, json={"text": "x" * 100}, **place)
    async with desk.limited(50):
        status, said = await desk.api.refused(
            "PUT", base, json={"text": "y" * 200}, **place
        )
        assert status == 507, said
        assert (await desk.scope())["reserved_bytes"] == 0
    assert (desk.place / "a").read_bytes() == b"x" * 100


async def test_of_many_writers_at_once_exactly_what_is_there_counts(desk: Desk) -> None:

    async def write(number: int) -> int:
        status, _ = await desk.api.send(
            "PUT",
            f"{desk.base}/text",
            params={"path": f"f{number % 3}"},
            json={"text": "x" * (number * 10)},
        )
        return int(status)

    statuses = await asyncio.gather(*(write(number) for number in range(1, 25)))
    assert set(statuses) <= {200, 409}
    there = sum(p.stat().st_size for p in desk.place.iterdir())
    # The folder's own: elsewhere in the quota, work of other tests may still go on.
    folder = await desk.api.get(f"api/folders/{desk.folder}")
    assert folder["used_bytes"] == there
    assert (await desk.scope())["reserved_bytes"] == 0


async def test_text_is_small_and_of_utf_8(desk: Desk) -> None:
    desk.put("binary", b"\xff\xfe")
    desk.put("large", b"x" * ((1 << 20) + 1))
    assert (await desk.fetch("text", "binary"))[0].status == 422
    assert (await desk.fetch("text", "large"))[0].status == 413
