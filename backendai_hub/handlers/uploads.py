"""Uploads by the tus protocol, version 1.0, as any client of it makes them.

The content is never held here: what comes in goes on to the storage host as fast as
that takes it, and a part is acknowledged when it is safe on the disk.
"""

from __future__ import annotations

import asyncio
from email.utils import format_datetime
from typing import Any, Final

from tornado import web

from backendai_hub.api.files import UploadPage
from backendai_hub.core.access import Action
from backendai_hub.core.errors import HubError, MalformedRequestError, StalledError
from backendai_hub.core.uploads import (
    CHECKSUMS,
    CHUNK_TYPE,
    EXTENSIONS,
    HIGHEST,
    VERSION,
    UploadRecord,
    WrongTypeError,
    check_version,
    choose_conflict,
    choose_path,
    read_checksum,
    read_metadata,
    read_number,
)
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.handlers.diversion import Diversion, Moved, divert
from backendai_hub.operations import uploads as verbs
from backendai_hub.operations.folder_access import OpenFolder
from backendai_hub.operations.uploads import Part, Standing, UploadsQuery, Wish

MOST_IGNORED: Final = 64 << 20
"""So much of what was refused is waited for; then the connection is cut."""


class _TusHandler(APIHandler):
    """Speaks the protocol, and hands on the content that comes with a request."""

    _writer: Part | None = None
    _diversion: Diversion | None = None
    _watch: asyncio.TimerHandle | None = None
    _heard = 0.0
    _is_busy = False
    _refusal: HubError | None = None
    _ignored = 0
    _upload: UploadRecord
    _opened: OpenFolder

    def set_default_headers(self) -> None:
        """Name the protocol in every answer, refusals among them."""
        super().set_default_headers()
        self.set_header("Tus-Resumable", VERSION)
        self.set_header("Tus-Version", VERSION)

    async def prepare(self) -> None:
        """Find out who asks, and what comes with the request.

        A refusal waits for the content: whoever still sends does not hear it, and a
        connection that is closed on them takes it away.
        """
        if self.request.method == "POST":
            override = self.request.headers.get("X-HTTP-Method-Override")
            if override in {"PATCH", "DELETE"}:
                self.request.method = override
        try:
            await super().prepare()
            method = getattr(self, (self.request.method or "").lower(), None)
            described = getattr(method, "operation", None)
            if described is not None and self.request.method in {"POST", "PATCH"}:
                async with self.trail.doing(described.action):
                    await self.begin()
                    self._begin_to_watch()
        except HubError as error:
            if self.request.headers.get("Expect", "").lower() == "100-continue":
                raise  # they wait for a word before they send anything
            self._refusal = error
            self._take_everything()
            self._begin_to_watch()

    def _begin_to_watch(self) -> None:
        """From now on something has to come, every now and then."""
        loop = asyncio.get_running_loop()
        self._heard = loop.time()
        seconds = self.platform.settings.upload_stall_seconds
        self._watch = loop.call_later(seconds / 2, self._look, seconds)

    def _look(self, seconds: float) -> None:
        """Cut off who sends nothing; waiting for the storage is not their doing."""
        if self._finished or (self._writer is None and self._refusal is None):
            return
        loop = asyncio.get_running_loop()
        if self._is_busy or (self._writer is not None and self._writer.is_full):
            self._heard = loop.time()
        left = self._heard + seconds - loop.time()
        if left > 0:
            half = seconds / 2
            if left <= half and self._diversion is not None:
                self._diversion.take_anything()
            later = left if left <= half else left - half
            self._watch = loop.call_later(later, self._look, seconds)
            return
        error = StalledError(
            f"nothing has come for {seconds:g} s; what has come is kept: ask how much"
            " it is, and go on from there"
        )
        self.set_header("Connection", "close")
        self.send_error(error.status, exc_info=(type(error), error, None))

    def _take_everything(self) -> None:
        """Let a body be as long as it likes: it is not kept here."""
        self.request.connection.set_max_body_size(HIGHEST)  # type: ignore[union-attr]

    def check_refused(self) -> None:
        """Refuse now what was to be refused."""
        if self._refusal is not None:
            raise self._refusal

    async def begin(self) -> None:
        """Do what comes before the content."""

    async def begin_part(self, offset: int) -> None:
        """Take the content that follows, from *offset* on."""
        headers = self.request.headers
        given = headers.get("Content-Type", "").strip().lower()
        if given != CHUNK_TYPE:
            raise WrongTypeError(f"Content-Type: send parts as {CHUNK_TYPE!r}")
        # What is too much is refused by the storage, which knows how much it has.
        self._take_everything()
        self._writer = await verbs.open_part(
            self.platform,
            self._upload,
            self._opened,
            offset=offset,
            checksum=read_checksum(headers.get("Upload-Checksum")),
        )
        self._diversion = divert(self.request, self._writer.take, self._refuse_rest)

    def _refuse_rest(self, error: HubError) -> None:
        """Note why nothing more is taken of what still comes."""
        if self._writer is not None:
            self.drop_writer()
            self._refusal = error

    async def data_received(self, chunk: bytes | Moved) -> None:
        """Hand a piece on, as fast as the storage takes it."""
        if isinstance(chunk, Moved):
            self._heard = asyncio.get_running_loop().time()
        elif self._writer is not None:
            self._is_busy = True
            try:
                await self._writer.write(chunk)
            except HubError as error:
                self._refuse_rest(error)
            finally:
                self._is_busy = False
                self._heard = asyncio.get_running_loop().time()
        elif self._refusal is not None and not self._finished:
            self._ignored += len(chunk)
            if self._ignored > MOST_IGNORED:
                self.send_error(
                    self._refusal.status,
                    exc_info=(type(self._refusal), self._refusal, None),
                )

    async def end_part(self) -> Standing:
        """Wait until the part is safe."""
        self.check_refused()
        self._end_watch()
        writer = self._let_go()
        assert writer is not None
        state = await writer.finish()
        return await verbs.note_part(
            self.platform, self._upload, self._opened, state.offset
        )

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _let_go(self) -> Part | None:
        """Take nothing more; return what took it."""
        if self._diversion is not None:
            self._diversion.end()
            self._diversion = None
        writer, self._writer = self._writer, None
        return writer

    def drop_writer(self) -> None:
        """Cut off what is being sent, and keep what has come of it."""
        writer = self._let_go()
        if writer is not None:
            self.platform.folder_work.begin(f"cut {self.request_id}", writer.close)

    def on_connection_close(self) -> None:
        """Keep what has come of a part that was cut off."""
        super().on_connection_close()
        self._end_watch()
        self.drop_writer()

    def on_finish(self) -> None:
        """Let go of what is left of the content."""
        super().on_finish()
        self._end_watch()
        self.drop_writer()

    def tell_terms(self) -> None:
        """Tell what of the protocol is spoken here, and how much a file may have."""
        self.check_refused()
        most = self.platform.settings.max_upload_size
        self.set_header("Tus-Extension", ",".join(EXTENSIONS))
        self.set_header("Tus-Checksum-Algorithm", ",".join(CHECKSUMS))
        if most:
            self.set_header("Tus-Max-Size", str(most))

    def show(self, standing: Standing) -> None:
        """Tell how far the upload is."""
        self.set_header("Upload-Offset", str(standing.offset))
        expires = standing.upload.expires_at
        if standing.offset < standing.upload.length:
            self.set_header("Upload-Expires", format_datetime(expires, usegmt=True))
        if standing.published is not None:
            self.set_header("Upload-Path", _ascii(standing.published.path))


def _ascii(path: str) -> str:
    """Spell a path as a header can carry it."""
    return path.encode("unicode_escape").decode("ascii")


@web.stream_request_body
class UploadsHandler(_TusHandler):
    """New uploads into a folder."""

    path = "api/folders/{folder_id}/uploads"

    @operation(Action.CHECK_UPLOADS, status=204)
    async def options(self, folder_id: str) -> None:
        """Say what of the protocol is spoken here; anybody may know."""
        del folder_id
        self.tell_terms()

    @operation(Action.READ_UPLOADS, query=UploadsQuery)
    async def get(self, folder_id: str) -> UploadPage:
        """List what is on its way into a folder; who decides about it sees all."""
        self.check_refused()
        query = self.decode_query(UploadsQuery)
        return await verbs.list_uploads(
            self.platform, self.principal, self.user, folder_id, query
        )

    async def begin(self) -> None:
        """Keep room for the file, and take a first part if one comes along."""
        headers = self.request.headers
        check_version(headers.get("Tus-Resumable"))
        if "Upload-Defer-Length" in headers:
            raise MalformedRequestError(
                "Upload-Defer-Length: say how long the file is, as 'Upload-Length'"
            )
        metadata = read_metadata(headers.get("Upload-Metadata"))
        begun = await verbs.begin_upload(
            self.platform,
            self.principal,
            self.require_user(),
            self.path_args[0],
            Wish(
                choose_path(metadata),
                read_number("Upload-Length", headers.get("Upload-Length")),
                choose_conflict(metadata),
            ),
        )
        self._upload, self._opened = begun.upload, begun.opened
        if headers.get("Content-Type", "").strip().lower() == CHUNK_TYPE:
            await self.begin_part(0)

    @operation(Action.UPLOAD_FILE, status=201)
    async def post(self, folder_id: str) -> None:
        """Begin an upload, with a first part if one comes along."""
        del folder_id
        self.check_refused()
        if self._writer is not None:
            standing = await self.end_part()
        else:  # also a file without content is complete now
            standing = await verbs.note_part(
                self.platform, self._upload, self._opened, 0
            )
        self.show(standing)
        prefix = self.service.prefix
        self.set_header("Location", f"{prefix}api/uploads/{self._upload.id}")
        self.clear_header("Content-Type")


@web.stream_request_body
class UploadHandler(_TusHandler):
    """One upload."""

    path = "api/uploads/{upload_id}"

    @operation(Action.CHECK_UPLOADS, status=204)
    async def options(self, upload_id: str) -> None:
        """Say what of the protocol is spoken here; anybody may know."""
        del upload_id
        self.tell_terms()

    async def begin(self) -> None:
        """Find the upload, and begin to take a part."""
        headers = self.request.headers
        check_version(headers.get("Tus-Resumable"))
        offset = read_number("Upload-Offset", headers.get("Upload-Offset"))
        self._upload, self._opened = await verbs.find_upload(
            self.platform, self.principal, self.require_user(), self.path_args[0]
        )
        await self.begin_part(offset)

    @operation(Action.CONTINUE_UPLOAD)
    async def head(self, upload_id: str) -> None:
        """Tell how much of an upload is safe."""
        self.check_refused()
        check_version(self.request.headers.get("Tus-Resumable"))
        standing = await verbs.tell_standing(
            self.platform, self.principal, self.require_user(), upload_id
        )
        self.show(standing)
        self.set_header("Upload-Length", str(standing.upload.length))
        self.clear_header("Content-Type")

    @operation(Action.CONTINUE_UPLOAD, status=204)
    async def patch(self, upload_id: str) -> None:
        """Add a part; the file appears with the last one."""
        del upload_id
        self.show(await self.end_part())

    @operation(Action.END_UPLOAD, status=204)
    async def delete(self, upload_id: str) -> None:
        """End an upload that is not complete."""
        self.check_refused()
        check_version(self.request.headers.get("Tus-Resumable"))
        await verbs.end_upload(
            self.platform, self.principal, self.require_user(), upload_id
        )


UPLOAD_HANDLERS: Any = (UploadsHandler, UploadHandler)
