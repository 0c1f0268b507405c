"""A real service with a folder in it, whose files tests put, ask for, and look at."""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from backendai_hub.core.tenancy import Keypair
from tests.admin import KeyAPI, basic, make_administrator
from tests.databases import new_database
from tests.harness import Stack, until


@dataclass
class Site:
    """A service on one of the databases, shared by the tests of a module."""

    stack: Stack
    key: Keypair
    folders: Path


@contextmanager
def opened_site(database: str, *settings: str) -> Iterator[Site]:
    """Start a service with a storage host of its own."""
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="backendai-"))
        url = None
        if database == "postgresql":
            url = opened.enter_context(new_database())
        stack = Stack(Path(folder) / "platform", url)
        opened.callback(stack.stop)
        stack.settings = [f"--HubService.local_folders={folder}/folders", *settings]
        asyncio.run(stack.start_service())
        key = asyncio.run(make_administrator(stack))
        yield Site(stack, key, Path(folder) / "folders")


@dataclass
class Desk:
    """An administrator's keypair, and a folder of theirs."""

    site: Site
    api: KeyAPI
    headers: dict[str, str]
    folder: str
    name: str

    @property
    def url(self) -> str:
        """Where the API is."""
        return self.site.stack.url

    @property
    def base(self) -> str:
        """Where the folder's files are."""
        return f"api/folders/{self.folder}"

    @property
    def place(self) -> Path:
        """Where the folder is on the disk."""
        digits = uuid.UUID(self.folder).hex
        below = f"*/{digits[:2]}/{digits[2:4]}/{digits[4:]}"
        (found,) = self.site.folders.glob(below)
        return found

    def put(self, path: str, content: bytes = b"") -> Path:
        """Put a file into the folder as a session would."""
        file = self.place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return file

    def names(self, path: str = "") -> list[str]:
        """List what is on the disk."""
        return sorted(p.name for p in (self.place / path).iterdir())

    async def get(self, what: str, **params: Any) -> Any:
        """Ask for something that has to be there."""
        return await self.api.get(f"{self.base}/{what}", params=params)

    async def post(self, what: str, **body: Any) -> Any:
        """Do something that has to go well."""
        status, answer = await self.api.send("POST", f"{self.base}/{what}", json=body)
        assert status < 300, (what, body, status, answer)
        return answer

    async def refused(self, what: str, **body: Any) -> tuple[int, str]:
        """Do something that is refused."""
        return await self.api.refused("POST", f"{self.base}/{what}", json=body)

    async def fetch(
        self, what: str, path: str, method: str = "GET", **headers: str
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        """Ask for content as a browser does."""
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        known = {**self.headers, **named}
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(
                method,
                f"{self.url}{self.base}/{what}",
                params={"path": path},
                headers=known,
            ) as answer,
        ):
            return answer, await answer.read()

    async def ended(self, task: dict[str, Any]) -> dict[str, Any]:
        """Wait for the end of a task."""

        async def over() -> Any:
            found = await self.api.get(f"api/folder-tasks/{task['id']}")
            return found if found["ended_at"] else None

        found: dict[str, Any] = await until(over, f"{task['kind']} has ended")
        return found

    async def scope(self) -> dict[str, Any]:
        """Tell what is used and kept of the quota."""
        return dict((await self.api.get("api/quota-scopes"))["items"][0])

    @asynccontextmanager
    async def limited(self, more: int) -> AsyncIterator[dict[str, Any]]:
        """Let so much more be written than there is now."""
        scope = await self.scope()
        place = f"quota-scopes/{scope['host']}/{scope['scope']}"
        await self.api.change(place, limit_bytes=scope["used_bytes"] + more)
        try:
            yield scope
        finally:
            await self.api.change(place, limit_bytes=-1)


@asynccontextmanager
async def opened_desk(site: Site) -> AsyncIterator[Desk]:
    """Make a folder of the test's own."""
    key = site.key
    assert key.secret is not None
    headers = {"Authorization": basic(key.name, key.secret)}
    async with KeyAPI(site.stack.url, key.name, key.secret) as api:
        await api.change("domains/default", allowed_vfolder_hosts={"local": ["*"]})
        name = f"data-{uuid.uuid4().hex[:8]}"
        made = await api.make("folders", name=name)
        yield Desk(site, api, headers, made["id"], name)
