"""Routes of what is in files.

What people put into files is never shown as a page of ours: browsers save it, guess at
nothing, and let it do nothing. It goes from the storage to the socket as fast as that
takes it, and no faster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from email.utils import format_datetime
from typing import Any, ClassVar, Final

from tornado.iostream import StreamClosedError

from backendai_hub.api.files import FileEntry, TextFile, TextRequest
from backendai_hub.core.access import Action
from backendai_hub.core.errors import HubError, InvalidRequestError, UnavailableError
from backendai_hub.core.files import BadRangeError, disposition, read_only_tag
from backendai_hub.handlers.base import MOST_READ, APIHandler, operation
from backendai_hub.handlers.files import FilesHandler
from backendai_hub.operations import file_contents as verbs
from backendai_hub.operations.file_contents import (
    ArchiveQuery,
    Conditions,
    Content,
    Stream,
)
from backendai_hub.operations.files import PathQuery, open_for_content
from backendai_hub.operations.folder_access import OpenFolder

log = logging.getLogger("backendai_hub.handlers")

_ARCHIVES: Final = {
    "zip": "application/zip",
    "tar": "application/x-tar",
    "tar.gz": "application/gzip",
}


class ContentsHandler(FilesHandler):
    """Sends what people have written."""

    stall_seconds: ClassVar[float] = 60.0
    """Who takes nothing for so long is not kept a place for."""
    _sending: asyncio.Task[None] | None = None

    async def open_to_take(self, folder_id: str) -> OpenFolder:
        """Open a folder to take content away."""
        return await open_for_content(
            self.platform, self.principal, self.user, folder_id
        )

    def guard(self, kind: str, name: str) -> None:
        """Have a browser save what follows by a name, whatever it is."""
        self.set_header("Content-Type", kind)
        self.set_header("Content-Disposition", disposition(name))
        self.set_header("Content-Security-Policy", "sandbox; default-src 'none'")
        self.set_header("X-Accel-Buffering", "no")

    async def send(self, stream: Stream) -> None:
        """Send all that comes; what breaks off is seen to be broken off."""
        self._sending = asyncio.create_task(self._pump(stream))
        try:
            with suppress(asyncio.CancelledError, StreamClosedError):
                await self._sending
        except HubError as error:
            log.warning("request %s broke off: %s", self.request_id, error.message)
            self._cut_off()
        finally:
            stream.close()
        if self._sending.cancelled():
            self._cut_off()

    def on_connection_close(self) -> None:
        """Stop reading what nobody wants any more."""
        super().on_connection_close()
        if self._sending is not None:
            self._sending.cancel()

    async def _pump(self, stream: Stream) -> None:
        async for chunk in stream:
            self.write(chunk)
            await taken_in_time(self.flush(), self.stall_seconds)

    def _cut_off(self) -> None:
        """Close the connection: what was sent must not look complete."""
        connection: Any = self.request.connection
        connection.stream.close()


async def taken_in_time(sent: Awaitable[None], seconds: float) -> None:
    """Wait until what was sent is taken, which has to happen at some time."""
    try:
        async with asyncio.timeout(seconds):
            await sent
    except TimeoutError:
        raise UnavailableError(f"nothing of it was taken for {seconds:g} s") from None


class ContentHandler(ContentsHandler):
    """What is in one file."""

    path = "api/folders/{folder_id}/content"

    @operation(Action.DOWNLOAD_FILE, query=PathQuery)
    async def get(self, folder_id: str) -> None:
        """Download a file, or a range of it; conditions by ETag are understood."""
        query = self.decode_query(PathQuery)
        opened = await self.open_to_take(folder_id)
        try:
            content = await verbs.open_content(
                self.platform, opened, query.path, self._conditions()
            )
        except BadRangeError as error:
            self._show_size(error)
            raise
        self._show(content)
        if content.stream is not None:
            await self.send(content.stream)

    @operation(Action.DOWNLOAD_FILE, query=PathQuery)
    async def head(self, folder_id: str) -> None:
        """Tell what a download would be."""
        query = self.decode_query(PathQuery)
        opened = await self.open_to_take(folder_id)
        try:
            content = await verbs.look_at_content(
                self.platform, opened, query.path, self._conditions()
            )
        except BadRangeError as error:
            self._show_size(error)
            raise
        self._show(content)

    def _conditions(self) -> Conditions:
        headers = self.request.headers
        return Conditions(
            if_match=headers.get("If-Match"),
            if_none_match=headers.get("If-None-Match"),
            if_range=headers.get("If-Range"),
            range=headers.get("Range"),
        )

    def _show(self, content: Content) -> None:
        entry = content.entry
        self.set_header("ETag", f'"{entry.tag}"')
        self.set_header("Last-Modified", format_datetime(entry.modified, usegmt=True))
        self.set_header("Accept-Ranges", "bytes")
        # Kept by the browser, but shown only after asking here.
        self.set_header("Cache-Control", "private, no-cache")
        if content.is_known:
            self.set_status(304)
            self.clear_header("Content-Type")
            return
        self.guard("application/octet-stream", entry.name)
        length = entry.size
        if content.part is not None:
            start, end = content.part.start, content.part.end
            self.set_status(206)
            self.set_header("Content-Range", f"bytes {start}-{end - 1}/{entry.size}")
            length = end - start
        self.set_header("Content-Length", str(length))

    def _show_size(self, error: BadRangeError) -> None:
        self._unsatisfied = f"bytes */{error.fields['size']}"

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Tell also how long the file is that has nothing in a range."""
        unsatisfied = getattr(self, "_unsatisfied", None)
        if unsatisfied is not None:
            self.set_header("Content-Range", unsatisfied)
        super().write_error(status_code, **kwargs)


class ArchiveHandler(ContentsHandler):
    """Several paths as one archive."""

    path = "api/folders/{folder_id}/archive"

    @operation(Action.DOWNLOAD_FILE, query=ArchiveQuery)
    async def get(self, folder_id: str) -> None:
        """Download several paths, or the whole folder, as one archive."""
        query = self.decode_query(ArchiveQuery)
        opened = await self.open_to_take(folder_id)
        stream = await verbs.open_archive(self.platform, opened, query)
        last = query.path[0].strip("/").rpartition("/")[2] if query.path else ""
        several = len(query.path) > 1 or not last
        name = opened.folder.name if several else last
        self.guard(_ARCHIVES[query.kind], f"{name}.{query.kind}")
        await self.send(stream)


class TextHandler(ContentsHandler):
    """A small file of text."""

    path = "api/folders/{folder_id}/text"
    most_body = MOST_READ

    @operation(Action.DOWNLOAD_FILE, query=PathQuery)
    async def get(self, folder_id: str) -> TextFile:
        """Read a small file of text, to be edited."""
        query = self.decode_query(PathQuery)
        opened = await self.open_to_take(folder_id)
        found = await verbs.load_text(self.platform, opened, query.path)
        self.set_header("ETag", f'"{found.tag}"')
        return found

    @operation(Action.WRITE_FILE, query=PathQuery)
    async def put(self, folder_id: str, body: TextRequest) -> FileEntry:
        """Write a small file of text; with If-Match, only if it is as it was then."""
        query = self.decode_query(PathQuery)
        opened = await self.open_to_add(folder_id)
        entry = await verbs.store_text(
            self.platform, opened, query.path, body.text, if_tag=self._wanted_tag()
        )
        self.set_header("ETag", f'"{entry.tag}"')
        return entry

    def _wanted_tag(self) -> str | None:
        headers = self.request.headers
        never = headers.get("If-None-Match")
        if never is None:
            return read_only_tag(headers.get("If-Match"))
        if never.strip() != "*":
            raise InvalidRequestError("If-None-Match: only '*' makes sense here")
        return ""


CONTENT_HANDLERS: tuple[type[APIHandler], ...] = (
    ContentHandler,
    ArchiveHandler,
    TextHandler,
)
