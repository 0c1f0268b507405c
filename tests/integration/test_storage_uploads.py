"""Uploads in parts: what is acknowledged is safe, what is not is nowhere to be seen."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import signal
import zlib

import msgspec
import pytest

from backendai_hub.core.errors import (
    ChecksumMismatchError,
    ConflictError,
    HubError,
    InsufficientStorageError,
    InvalidRequestError,
    LockedError,
    NotFoundError,
    TooLargeError,
    UnavailableError,
)
from backendai_hub.storage import ops
from tests.harness import until
from tests.storage import (
    OTHER_SCOPE,
    Desk,
    few_descriptors,
    new_id,
    new_place,
    path_of,
    replaced,
    running_hosts,
)

CONTENT = random.Random(5).randbytes(1_300_017)


@pytest.fixture
def local(tmp_path):
    return {"local": {"path": str(tmp_path / "folders"), "check_seconds": 0.2}}


@pytest.fixture
async def desk(local):
    async with running_hosts(local) as hosts:
        yield await Desk(hosts).make()


async def test_an_upload_in_parts_appears_only_when_it_is_finished(desk):
    upload_id = await desk.begin()
    middle = await desk.send(upload_id, CONTENT[:500_000])
    assert middle == 500_000
    assert await desk.names() == []
    assert await desk.send(upload_id, CONTENT[middle:], middle) == len(CONTENT)

    done = await desk.finish(upload_id, "a/b/c.bin", len(CONTENT))

    assert (done.path, done.size) == ("a/b/c.bin", len(CONTENT))
    entry = await desk.do(ops.StatEntry, path="a/b/c.bin")
    assert (entry.size, entry.tag) == (len(CONTENT), done.tag)
    assert await desk.read("a/b/c.bin") == CONTENT


async def test_an_empty_file_can_be_uploaded(desk):
    done = await desk.upload("empty", b"")
    assert done.size == 0
    assert await desk.read("empty") == b""


async def test_a_chunk_goes_only_where_the_upload_ends(desk):
    upload_id = await desk.begin()
    await desk.send(upload_id, CONTENT[:1000])
    for offset in (0, 999, 1001):
        with pytest.raises(ConflictError, match="go on from there") as refused:
            await desk.send(upload_id, b"x", offset)
        assert refused.value.fields == {"offset": 1000}
    assert (await desk.do(ops.UploadOffset, upload_id=upload_id)).offset == 1000


async def test_an_upload_that_nobody_began_is_not_found(desk):
    for attempt in (
        desk.do(ops.UploadOffset, upload_id=new_id()),
        desk.send(new_id(), b"x"),
        desk.finish(new_id(), "a", 0),
    ):
        with pytest.raises(NotFoundError, match="no such upload"):
            await attempt
    with pytest.raises(InvalidRequestError, match="is not an id"):
        await desk.do(ops.BeginUpload, upload_id="../../etc/passwd")


async def test_an_upload_is_finished_only_when_all_of_it_is_there(desk):
    upload_id = await desk.begin()
    await desk.send(upload_id, CONTENT[:10])
    with pytest.raises(ConflictError, match="10 of 11 bytes"):
        await desk.finish(upload_id, "a", 11)
    assert await desk.names() == []


async def test_two_cannot_send_one_upload_at_once(desk):
    upload_id = await desk.begin()
    operation = ops.AppendUpload(place=desk.place, upload_id=upload_id, offset=0)
    async with await desk.hosts.upload("local", operation) as body:
        await body.write(b"mine")
        for attempt in (
            desk.send(upload_id, b"theirs"),
            desk.do(ops.UploadOffset, upload_id=upload_id),
            desk.finish(upload_id, "a", 0),
        ):
            with pytest.raises(LockedError):
                await attempt
        assert (await body.finish()).offset == 4
    assert await desk.send(upload_id, b"!", 4) == 5


async def test_an_upload_is_given_up_while_it_is_being_sent(desk):
    upload_id = await desk.begin()
    operation = ops.AppendUpload(place=desk.place, upload_id=upload_id, offset=0)
    async with await desk.hosts.upload("local", operation) as body:
        await body.write(b"mine")
        await desk.do(ops.AbandonUpload, upload_id=upload_id)
        left = await desk.hosts.call("local", ops.ListUploads(place=desk.place))
        assert left.names == []
        with pytest.raises(NotFoundError):
            await body.finish()
    with pytest.raises(NotFoundError):
        await desk.do(ops.UploadOffset, upload_id=upload_id)


async def test_what_arrived_before_the_line_broke_counts(desk):
    upload_id = await desk.begin()
    operation = ops.AppendUpload(place=desk.place, upload_id=upload_id, offset=0)
    async with await desk.hosts.upload("local", operation) as body:
        await body.write(CONTENT[:70_000])

    async def offset():
        try:
            return (await desk.do(ops.UploadOffset, upload_id=upload_id)).offset
        except LockedError:
            return 0

    await until(offset, "the broken line is noticed")
    arrived = await offset()
    assert 0 < arrived <= 70_000
    await desk.send(upload_id, CONTENT[arrived:], arrived)
    await desk.finish(upload_id, "whole", len(CONTENT))
    assert await desk.read("whole") == CONTENT


@pytest.mark.parametrize("kind", ["sha1", "sha256", "md5", "crc32"])
async def test_a_chunk_with_another_checksum_counts_for_nothing(desk, kind):
    def digest(content):
        if kind == "crc32":
            return f"{zlib.crc32(content):08x}"
        return hashlib.new(kind, content).hexdigest()

    upload_id = await desk.begin()
    good = CONTENT[:1000]
    await desk.send(upload_id, good, checksum_kind=kind, checksum=digest(good))
    with pytest.raises(ChecksumMismatchError, match="send it again"):
        await desk.send(
            upload_id, b"bad", 1000, checksum_kind=kind, checksum=digest(good)
        )
    assert (await desk.do(ops.UploadOffset, upload_id=upload_id)).offset == 1000
    upper = digest(b"good").upper()
    assert (
        await desk.send(upload_id, b"good", 1000, checksum_kind=kind, checksum=upper)
        == 1004
    )


async def test_more_than_was_said_is_refused_and_nothing_of_it_kept(desk):
    upload_id = await desk.begin()
    with pytest.raises(TooLargeError, match="more than 5 bytes"):
        await desk.send(upload_id, CONTENT, most=5)
    assert (await desk.do(ops.UploadOffset, upload_id=upload_id)).offset == 0


async def test_a_name_that_is_taken_is_refused_replaced_or_avoided(desk):
    await desk.upload("a.txt", b"old")
    with pytest.raises(ConflictError, match="exists already"):
        await desk.upload("a.txt", b"new")
    assert await desk.read("a.txt") == b"old"

    beside = await desk.upload("a.txt", b"beside", conflict="rename")
    assert beside.path == "a (1).txt"
    again = await desk.upload("a.txt", b"again", conflict="rename")
    assert again.path == "a (2).txt"
    await desk.upload("a.txt", b"new", conflict="replace")

    assert await desk.names() == ["a (1).txt", "a (2).txt", "a.txt"]
    assert await desk.read("a.txt") == b"new"
    assert await desk.read("a (1).txt") == b"beside"


async def test_a_folder_is_never_replaced_by_a_file(desk):
    await desk.do(ops.MakeDirectory, path="a")
    with pytest.raises(ConflictError):
        await desk.upload("a", b"x", conflict="replace")
    with pytest.raises(ConflictError):
        await desk.upload("a", b"x")


async def test_finishing_again_says_the_same_until_it_is_forgotten(desk):
    upload_id = await desk.begin()
    await desk.upload("a", b"other")
    await desk.send(upload_id, b"mine")
    first = await desk.finish(upload_id, "a", 4, conflict="rename")
    assert await desk.finish(upload_id, "a", 4, conflict="rename") == first
    assert await desk.names() == ["a", "a (1)"]

    uploads = ops.ListUploads(scope=desk.place.scope)
    assert upload_id in (await desk.hosts.call("local", uploads)).names
    await desk.do(ops.AbandonUpload, upload_id=upload_id)
    assert upload_id not in (await desk.hosts.call("local", uploads)).names
    await desk.do(ops.AbandonUpload, upload_id=upload_id)
    assert await desk.names() == ["a", "a (1)"]
    with pytest.raises(NotFoundError):
        await desk.finish(upload_id, "a", 4)


async def test_an_abandoned_upload_leaves_nothing(desk, tmp_path):
    upload_id = await desk.begin()
    await desk.send(upload_id, CONTENT)
    await desk.do(ops.AbandonUpload, upload_id=upload_id)
    left = [p for p in tmp_path.rglob(f"*{upload_id}*") if p.is_file()]
    assert left == []


async def test_uploads_lie_within_the_quota_of_their_scope(desk, tmp_path):
    upload_id = await desk.begin()
    (found,) = tmp_path.rglob(upload_id)
    assert found.parent == tmp_path / "folders" / desk.place.scope / ".uploads"


async def test_an_upload_into_a_folder_that_is_gone_is_refused(desk):
    gone = Desk(desk.hosts)
    with pytest.raises(NotFoundError, match="does not exist on the storage"):
        await gone.begin()
    other = Desk(desk.hosts, ops.Place(scope=OTHER_SCOPE, folder_id=new_id()))
    with pytest.raises(NotFoundError):
        await other.begin()


async def test_a_link_in_the_way_is_never_followed(desk, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    inside = path_of(tmp_path / "folders", desk.place)
    (inside / "link").symlink_to(outside)
    (inside / "file").symlink_to(outside / "made")
    with pytest.raises(HubError):
        await desk.upload("link/file", b"x")
    with pytest.raises(ConflictError):
        await desk.upload("file", b"x")
    await desk.upload("file", b"x", conflict="replace")
    assert list(outside.iterdir()) == []
    assert (inside / "file").read_bytes() == b"x"
    assert not (inside / "file").is_symlink()


# --- a worker that dies in between -------------------------------------------------


@pytest.mark.parametrize("point", ["upload.written", "upload.synced"])
async def test_a_crash_while_a_chunk_is_written_loses_no_acknowledged_byte(
    local, point
):
    # The second chunk's: the first was acknowledged.
    async with running_hosts(local, crash_at=f"{point}:2") as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        upload_id = await desk.begin()
        acknowledged = await desk.send(upload_id, CONTENT[:600_000])
        with pytest.raises(UnavailableError):
            await desk.send(upload_id, CONTENT[600_000:], acknowledged)
        await replaced(hosts, pid)

        assert await desk.names() == []
        offset = (await desk.do(ops.UploadOffset, upload_id=upload_id)).offset
        assert offset in {acknowledged, len(CONTENT)}
        await desk.send(upload_id, CONTENT[offset:], offset)
        await desk.finish(upload_id, "whole", len(CONTENT))
        assert await desk.read("whole") == CONTENT


async def test_a_crash_before_the_checksum_was_seen_takes_the_chunk_back(local):
    async with running_hosts(local, crash_at="upload.written:2") as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        upload_id = await desk.begin()
        await desk.send(upload_id, b"good")
        with pytest.raises(UnavailableError):
            await desk.send(
                upload_id, b"bad", 4, checksum_kind="md5", checksum="0" * 32
            )
        await replaced(hosts, pid)
        assert (await desk.do(ops.UploadOffset, upload_id=upload_id)).offset == 4


@pytest.mark.parametrize("conflict", ["fail", "replace", "rename"])
@pytest.mark.parametrize("point", ["upload.intended", "upload.published"])
async def test_a_crash_around_the_rename_leaves_nothing_or_the_whole_file_once(
    local, point, conflict
):
    async with running_hosts(local, crash_at=f"{point}:2") as hosts:
        desk, pid = await Desk(hosts).make(), hosts.health()["local"].pid
        before = "there" if conflict != "fail" else "elsewhere"
        await desk.upload(before, b"before")
        upload_id = await desk.begin()
        await desk.send(upload_id, CONTENT)
        finish = {"path": "there", "length": len(CONTENT), "conflict": conflict}
        with pytest.raises(UnavailableError):
            await desk.finish(upload_id, **finish)
        await replaced(hosts, pid)

        done = await desk.finish(upload_id, **finish)
        assert await desk.finish(upload_id, **finish) == done
        names = {"fail": ["elsewhere", "there"], "replace": ["there"]}
        assert await desk.names() == names.get(conflict, ["there", "there (1)"])
        assert await desk.read(done.path) == CONTENT
        if conflict == "rename":
            assert await desk.read("there") == b"before"


async def test_an_upload_killed_at_any_moment_is_resumed_to_the_same_bytes(local):
    chance = random.Random(24)
    async with running_hosts(local) as hosts:
        desk = await Desk(hosts).make()
        upload_id = await desk.begin()
        offset = 0
        for _ in range(4):
            operation = ops.AppendUpload(
                place=desk.place, upload_id=upload_id, offset=offset
            )
            length, pid = chance.randrange(1, 400_000), hosts.health()["local"].pid
            async with await hosts.upload("local", operation) as body:
                await body.write(CONTENT[offset : offset + length])
                os.kill(pid, signal.SIGKILL)
                with pytest.raises(UnavailableError):
                    await body.finish()
            await replaced(hosts, pid)
            now = (await desk.do(ops.UploadOffset, upload_id=upload_id)).offset
            assert offset <= now <= offset + length
            offset = now
        await desk.send(upload_id, CONTENT[offset:], offset)
        await desk.finish(upload_id, "whole", len(CONTENT))
        found = await desk.read("whole")
        assert hashlib.sha256(found).digest() == hashlib.sha256(CONTENT).digest()


async def test_many_upload_at_once_and_each_gets_its_own(desk):
    async def one(number):
        content = CONTENT[number * 1000 : number * 1000 + 30_000]
        await desk.upload(f"many/{number:02}", content)
        return content

    sent = await asyncio.gather(*(one(number) for number in range(20)))
    for number, content in enumerate(sent):
        assert await desk.read(f"many/{number:02}") == content


async def test_a_full_host_says_so_and_keeps_what_it_had(tmp_path):
    described = {"local": {"path": str(tmp_path), "driver": "fake", "full": True}}
    async with running_hosts(described) as hosts:
        desk = await Desk(hosts).make()
        upload_id = await desk.begin()
        with pytest.raises(InsufficientStorageError):
            await desk.send(upload_id, b"x")
        assert (await desk.do(ops.UploadOffset, upload_id=upload_id)).offset == 0


async def test_an_upload_for_which_no_pipe_can_be_made_leaves_its_turn(local):
    local["local"] |= {"most_uploads_per_user": 1, "turn_seconds": 1.0}
    async with running_hosts(local) as hosts:
        place = msgspec.structs.replace(new_place(), asker=new_id())
        desk = await Desk(hosts, place).make()
        upload_id = await desk.begin()
        with few_descriptors(left=2), pytest.raises(OSError, match="Too many open"):
            await desk.send(upload_id, CONTENT)
        assert await desk.send(upload_id, CONTENT) == len(CONTENT)
