"""Storage hosts with real worker processes: what goes wrong stays where it is."""

from __future__ import annotations

import hashlib
import os
import uuid

import pytest

from backendai_hub.storage import ops
from backendai_hub.storage.hosts import StorageHosts
from tests.harness import until

SCOPE = f"user-{uuid.UUID(int=1)}"


def new_place() -> ops.Place:
    return ops.Place(scope=SCOPE, folder_id=str(uuid.uuid4()))


@pytest.fixture
async def start():
    """Start hosts of the test's own; they are ended at its end."""
    begun = []

    async def start(described, default=""):
        hosts = StorageHosts(described, default)
        begun.append(hosts)
        hosts.start()
        await until(
            lambda: all(h.state != "starting" for h in hosts.health().values()),
            "every host has said how it is",
        )
        return hosts

    yield start
    for hosts in begun:
        await hosts.close()


async def make_folder(hosts, host="local"):
    place = new_place()
    await hosts.call(host, ops.MakeScope(scope=SCOPE))
    await hosts.call(host, ops.MakeFolder(place=place))
    return place


async def send(hosts, place, upload_id, content, *, offset=0, host="local", **more):
    operation = ops.AppendUpload(
        place=place, upload_id=upload_id, offset=offset, **more
    )
    async with await hosts.upload(host, operation) as body:
        for at in range(0, len(content), 65536):
            await body.write(content[at : at + 65536])
        return await body.finish()


async def test_what_is_uploaded_appears_whole_and_is_listed(start, tmp_path):
    hosts = await start({"local": {"path": str(tmp_path / "folders")}})
    place = await make_folder(hosts)
    content, upload_id = os.urandom(3_000_001), str(uuid.uuid4())
    await hosts.call("local", ops.BeginUpload(place=place, upload_id=upload_id))
    first = await send(hosts, place, upload_id, content[:1_500_000])
    assert first.offset == 1_500_000
    assert not (await hosts.call("local", ops.ListEntries(place=place))).entries
    await send(hosts, place, upload_id, content[1_500_000:], offset=first.offset)

    done = await hosts.call(
        "local",
        ops.FinishUpload(
            place=place, upload_id=upload_id, path="a/b/c.bin", length=len(content)
        ),
    )

    assert done.path == "a/b/c.bin"
    page = await hosts.call("local", ops.ListEntries(place=place, path="a/b"))
    assert [(e.name, e.size, e.tag) for e in page.entries] == [
        ("c.bin", len(content), done.tag)
    ]
    (found,) = (tmp_path / "folders").glob("user-*/*/*/*/a/b/c.bin")
    assert (
        hashlib.sha256(found.read_bytes()).digest() == hashlib.sha256(content).digest()
    )
