"""The client's part about the files in one folder."""

from __future__ import annotations

import asyncio
import builtins
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec

from backendai_hub.api.files import (
    FileEntry,
    FileOutcomes,
    FilePage,
    FilePlace,
    TaskAnswer,
    TextFile,
    TrashedFile,
    TrashedPage,
    UploadPage,
    UploadShown,
)
from backendai_hub.client.tenancy import Part
from backendai_hub.client.transfers import Download, Progress, Transfers, Upload
from backendai_hub.client.transport import Again, Transport, segment
from backendai_hub.core.errors import HubError, UnavailableError
from backendai_hub.core.ids import is_id
from backendai_hub.core.uploads import VERSION
from backendai_hub.core.vfolders import Folder, FolderTask

T = TypeVar("T")
PAGE = 1000


def _ignore(done: int, total: int) -> None:
    del done, total


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """How one of many transfers ended."""

    path: str
    error: HubError | OSError | None = None


class Files(Part):
    """Look at, move, send and fetch the files in a folder.

    Paths are relative to the folder, with slashes. Uploads and downloads that were cut
    off go on where they were, also in another process, unless ``resume`` is false.
    """

    def __init__(
        self,
        transport: Transport,
        act_for: str | None,
        folder: str,
        *,
        transfers: Transfers | None = None,
    ) -> None:
        super().__init__(transport, act_for)
        self._reference = folder
        self._id = folder if is_id(folder) else ""
        self._transfers = transfers or Transfers()

    async def page(
        self,
        path: str = "",
        *,
        limit: int = 200,
        after: str | None = None,
        sort: str = "name",
        descending: bool = False,
        search: str | None = None,
    ) -> FilePage:
        """Return a part of what is in a folder."""
        params = {
            "path": path,
            "limit": limit,
            "after": after,
            "sort": sort,
            "descending": descending,
            "search": search,
        }
        return await self._get("entries", FilePage, params)

    async def list(self, /, path: str = "", **order: Any) -> AsyncIterator[FileEntry]:
        """Yield all that is in a folder; *order* is that of :meth:`page`."""
        after: str | None = None
        while True:
            page = await self.page(path, limit=PAGE, after=after, **order)
            for entry in page.items:
                yield entry
            after = page.next
            if after is None:
                return

    async def stat(self, path: str = "") -> FileEntry:
        """Return what is known of one entry."""
        return await self._get("entry", FileEntry, {"path": path})

    async def mkdir(
        self, path: str, *, parents: bool = False, exist_ok: bool = False
    ) -> FileEntry:
        """Make a folder in the folder."""
        body = {"path": path, "parents": parents, "exist_ok": exist_ok}
        return await self._post("directories", body, FileEntry)

    async def move(self, path: str, target: str, *, conflict: str = "fail") -> str:
        """Move or rename an entry, and return where it is now."""
        body = {"path": path, "target": target, "conflict": conflict}
        return (await self._post("move", body, FilePlace)).path

    async def copy(
        self, path: str, target: str, *, conflict: str = "fail"
    ) -> FolderTask:
        """Begin to copy an entry."""
        body = {"path": path, "target": target, "conflict": conflict}
        return (await self._post("copy", body, TaskAnswer)).task

    async def extract(
        self, /, path: str, target: str, *, conflict: str = "fail", **limits: Any
    ) -> FolderTask:
        """Begin to unpack an archive into the folder *target*."""
        body = {"path": path, "target": target, "conflict": conflict, **limits}
        return (await self._post("extract", body, TaskAnswer)).task

    # --- the trash ---------------------------------------------------------------

    async def trash(self, paths: Sequence[str]) -> FileOutcomes:
        """Throw entries into the folder's trash; each ends for itself."""
        body = {"paths": [*paths]}
        return await self._post("entries/trash", body, FileOutcomes)

    async def trashed(self) -> AsyncIterator[TrashedFile]:
        """Yield what was thrown away, the earliest first."""
        after: str | None = None
        while True:
            params = {"limit": PAGE, "after": after}
            page = await self._get("trashed", TrashedPage, params)
            for entry in page.items:
                yield entry
            after = page.next
            if after is None:
                return

    async def restore(
        self, ids: Sequence[str], *, target: str = "", conflict: str = "fail"
    ) -> FileOutcomes:
        """Put back what was thrown away; *target* goes with one of them."""
        body = {"ids": [*ids], "target": target, "conflict": conflict}
        return await self._post("trashed/restore", body, FileOutcomes)

    async def empty_trash(self, ids: Sequence[str] | None = None) -> FolderTask:
        """Begin to remove for good what was thrown away, or some of it."""
        body = {"ids": None if ids is None else [*ids]}
        return (await self._post("trashed/empty", body, TaskAnswer)).task

    # --- content -----------------------------------------------------------------

    async def read_text(self, path: str) -> TextFile:
        """Read a small file of text."""
        return await self._get("text", TextFile, {"path": path})

    async def write_text(
        self, path: str, text: str, *, tag: str | None = None
    ) -> FileEntry:
        """Write a small file of text, if it still has *tag*; ``""``: if it is new."""
        headers = {"Content-Type": "application/json"}
        if tag is not None:
            name, value = ("If-Match", f'"{tag}"') if tag else ("If-None-Match", "*")
            headers[name] = value
        answer = await self._transport.exchange(
            "PUT",
            await self._below("text"),
            params={"path": path},
            headers=headers,
            content=msgspec.json.encode({"text": text}),
            act_for=self._act_for,
        )
        async with answer:
            return msgspec.json.decode(await answer.read(), type=FileEntry)

    async def content(self, path: str) -> AsyncIterator[bytes]:
        """Yield a file's content as it comes."""
        place = await self._below("content")
        params = {"path": path}
        async for chunk in self._transport.download(
            place, params=params, act_for=self._act_for
        ):
            yield chunk

    async def upload(
        self,
        source: str | Path,
        path: str,
        *,
        conflict: str = "fail",
        resume: bool = True,
        progress: Progress = _ignore,
    ) -> None:
        """Send a file, which appears at *path* when all of it has come."""
        upload = Upload(self._transport, self._act_for, await self.folder_id(), path)
        await upload.send(
            Path(source),
            conflict=conflict,
            resume=self._transfers if resume else None,
            progress=progress,
        )

    async def uploads(self) -> AsyncIterator[UploadShown]:
        """Yield what is on its way into the folder: one's own, or everybody's for who
        decides about the folder."""
        after: str | None = None
        while True:
            params = {"limit": PAGE, "after": after}
            page = await self._get("uploads", UploadPage, params)
            for upload in page.items:
                yield upload
            after = page.next
            if after is None:
                return

    async def end_upload(self, upload: str) -> None:
        """End an upload that is not complete; what has come of it is removed."""
        answer = await self._transport.exchange(
            "DELETE",
            f"uploads/{segment(upload)}",
            headers={"Tus-Resumable": VERSION},
            act_for=self._act_for,
        )
        async with answer:
            await answer.read()

    async def download(
        self,
        path: str,
        target: str | Path,
        *,
        overwrite: bool = False,
        resume: bool = True,
        progress: Progress = _ignore,
    ) -> None:
        """Save a file as *target*, which appears when all of it has come."""
        download = Download(
            self._transport, self._act_for, await self.folder_id(), path
        )
        await download.save(
            Path(target),
            overwrite=overwrite,
            resume=self._transfers if resume else None,
            progress=progress,
        )

    async def upload_many(
        self,
        /,
        files: Iterable[tuple[str | Path, str]],
        *,
        parallel: int = 4,
        progress: Callable[[str, int, int], None] | None = None,
        **options: Any,
    ) -> builtins.list[Moved]:
        """Send files, each a source and its path; each ends for itself."""

        def send(pair: tuple[str | Path, str]) -> Awaitable[None]:
            told = _ignore if progress is None else _told(progress, pair[1])
            return self.upload(pair[0], pair[1], progress=told, **options)

        pairs = [*files]
        return await _each(pairs, [pair[1] for pair in pairs], send, parallel)

    async def download_many(
        self,
        /,
        files: Iterable[tuple[str, str | Path]],
        *,
        parallel: int = 4,
        progress: Callable[[str, int, int], None] | None = None,
        **options: Any,
    ) -> builtins.list[Moved]:
        """Save files, each a path and its target; each ends for itself."""

        def save(pair: tuple[str, str | Path]) -> Awaitable[None]:
            told = _ignore if progress is None else _told(progress, pair[0])
            return self.download(pair[0], pair[1], progress=told, **options)

        pairs = [*files]
        return await _each(pairs, [pair[0] for pair in pairs], save, parallel)

    async def archive(
        self,
        paths: Sequence[str],
        target: str | Path,
        *,
        kind: str = "zip",
        progress: Progress = _ignore,
    ) -> None:
        """Save several entries, or the whole folder, as one archive."""
        query = [("kind", kind), *(("path", path) for path in paths)]
        part = Path(f"{target}.part")
        done = 0
        answer = await self._transport.exchange(
            "GET", await self._below("archive"), params=query, act_for=self._act_for
        )
        try:
            async with answer:
                with part.open("wb") as opened:  # noqa: ASYNC230 - as fast as it comes
                    async for chunk in answer.content.iter_any():
                        opened.write(chunk)
                        done += len(chunk)
                        progress(done, 0)
                    opened.flush()
                    await asyncio.to_thread(os.fsync, opened.fileno())
            await asyncio.to_thread(part.replace, target)
        except (aiohttp.ClientError, TimeoutError) as error:
            await asyncio.to_thread(part.unlink, missing_ok=True)
            raise UnavailableError(f"the archive was cut off: {error}") from error

    # --- asking ------------------------------------------------------------------

    async def folder_id(self) -> str:
        """Return the id of the folder."""
        if not self._id:
            path = f"folders/{segment(self._reference)}"
            found = await self._transport.get(path, Folder, act_for=self._act_for)
            self._id = found.id
        return self._id

    async def _below(self, rest: str) -> str:
        return f"folders/{await self.folder_id()}/{rest}"

    async def _get(self, rest: str, kind: type[T], params: dict[str, Any]) -> T:
        return await self._transport.get(
            await self._below(rest), kind, params=params, act_for=self._act_for
        )

    async def _post(self, rest: str, body: Any, kind: type[T]) -> T:
        return await self._transport.post(
            await self._below(rest),
            body,
            kind,
            act_for=self._act_for,
            again=Again.UNDONE,
        )


def _told(progress: Callable[[str, int, int], None], path: str) -> Progress:
    return lambda done, total: progress(path, done, total)


async def _each(
    items: Sequence[T],
    names: Sequence[str],
    verb: Callable[[T], Awaitable[None]],
    parallel: int,
) -> builtins.list[Moved]:
    room = asyncio.Semaphore(max(1, parallel))

    async def one(item: T, name: str) -> Moved:
        async with room:
            try:
                await verb(item)
            except (HubError, OSError) as error:
                return Moved(path=name, error=error)
        return Moved(path=name)

    async with asyncio.TaskGroup() as group:
        begun = [
            group.create_task(one(item, name))
            for item, name in zip(items, names, strict=True)
        ]
    return [task.result() for task in begun]
