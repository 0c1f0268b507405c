"""Storage hosts for tests: real workers, on folders of the test's own."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from backendai_hub.core.vfolders import folder_parts
from backendai_hub.storage import ops
from backendai_hub.storage.crashpoints import VARIABLE
from backendai_hub.storage.hosts import StorageHosts
from tests.harness import until

SCOPE = f"user-{uuid.UUID(int=7)}"
OTHER_SCOPE = f"project-{uuid.UUID(int=8)}"
PART = 65536
WELL = {"ok", "slow"}
"""What a host is that answers; on a busy machine that may take a while."""


def new_id() -> str:
    return str(uuid.uuid4())


def new_place(scope: str = SCOPE) -> ops.Place:
    return ops.Place(scope=scope, folder_id=new_id())


def path_of(root: Path, place: ops.Place) -> Path:
    """Return where a place is on the disk."""
    return root.joinpath(*folder_parts(place.scope, place.folder_id))


@asynccontextmanager
async def running_hosts(
    described: Mapping[str, Any],
    *,
    default: str = "",
    crash_at: str = "",
    mark: str = "ours",
) -> AsyncIterator[StorageHosts]:
    """Run storage hosts; their first workers die at *crash_at*, the next do not."""
    hosts = StorageHosts(described, default, mark=mark)
    if crash_at:
        os.environ[VARIABLE] = crash_at
    try:
        hosts.start()
        await settled(hosts)
    finally:
        os.environ.pop(VARIABLE, None)
    try:
        yield hosts
    finally:
        await hosts.close()


@contextmanager
def few_descriptors(*, left: int) -> Iterator[None]:
    """Let this process open only so many more."""
    taken = []
    with suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    for _ in range(left):
        os.close(taken.pop())
    try:
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)


async def settled(hosts: StorageHosts) -> None:
    """Wait until every host has said how it is."""
    await until(
        lambda: all(health.state != "starting" for health in hosts.health().values()),
        "every storage host has said how it is",
    )


async def is_ok(hosts: StorageHosts, host: str = "local") -> None:
    """Wait until a host is well."""
    await until(
        lambda: hosts.health()[host].state in WELL, f"storage host {host} is well"
    )


async def replaced(hosts: StorageHosts, pid: int | None, host: str = "local") -> None:
    """Wait until another worker than *pid* does the host's work, and well."""

    def is_another() -> bool:
        health = hosts.health()[host]
        return health.state in WELL and health.pid != pid

    await until(is_another, f"another worker than {pid} is at work for {host}")


class Desk:
    """One folder of one host, and what is done with it."""

    def __init__(
        self, hosts: StorageHosts, place: ops.Place | None = None, host: str = "local"
    ) -> None:
        self.hosts = hosts
        self.host = host
        self.place = place or new_place()

    async def make(self, **limits: Any) -> Desk:
        if self.place.scope:
            await self.hosts.call(
                self.host, ops.MakeScope(scope=self.place.scope, **limits)
            )
        await self.do(ops.MakeFolder)
        return self

    async def do(self, kind: type[ops.Operation[Any]], **given: Any) -> Any:
        return await self.hosts.call(self.host, kind(place=self.place, **given))

    async def begin(self) -> str:
        upload_id = new_id()
        await self.do(ops.BeginUpload, upload_id=upload_id)
        return upload_id

    async def send(
        self, upload_id: str, content: bytes, offset: int = 0, **more: Any
    ) -> int:
        """Append a chunk and return the new offset."""
        operation = ops.AppendUpload(
            place=self.place, upload_id=upload_id, offset=offset, **more
        )
        async with await self.hosts.upload(self.host, operation) as body:
            for at in range(0, len(content), PART):
                await body.write(content[at : at + PART])
            return (await body.finish()).offset

    async def finish(
        self, upload_id: str, path: str, length: int, **more: Any
    ) -> ops.Published:
        published: ops.Published = await self.do(
            ops.FinishUpload, upload_id=upload_id, path=path, length=length, **more
        )
        return published

    async def upload(self, path: str, content: bytes, **more: Any) -> ops.Published:
        upload_id = await self.begin()
        if content:
            await self.send(upload_id, content)
        return await self.finish(upload_id, path, len(content), **more)

    async def read(self, path: str, **part: Any) -> bytes:
        operation = ops.ReadFile(place=self.place, path=path, **part)
        async with await self.hosts.download(self.host, operation) as body:
            return b"".join([chunk async for chunk in body])

    async def names(self, path: str = "") -> list[str]:
        page = await self.do(ops.ListEntries, path=path)
        return [entry.name for entry in page.entries]
