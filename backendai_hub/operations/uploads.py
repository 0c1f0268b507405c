"""Uploading files: permission and room first, then bytes, then the file appears.

The room for the whole file is kept when it begins, so that it cannot run out half-way,
and nothing of it is seen in the folder before all of it is there. For guests room is
kept step by step as bytes come: who only announces a file takes nothing of what others
may keep. Whoever sends a part is asked for their permission again: it may have been
taken back meanwhile.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Final, Self

import msgspec

from backendai_hub.api.files import UploadPage, UploadShown
from backendai_hub.core.access import Principal
from backendai_hub.core.errors import (
    ConflictError,
    HubError,
    InvalidRequestError,
    LimitReachedError,
    NotFoundError,
    TooLargeError,
)
from backendai_hub.core.events import EventKind
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.ids import is_id
from backendai_hub.core.tenancy import Actor
from backendai_hub.core.times import format_time
from backendai_hub.core.uploads import Checksum, GoneError, UploadRecord
from backendai_hub.db import folders, quota_scopes, uploads
from backendai_hub.db.engine import Transaction
from backendai_hub.db.folders import FolderRecord
from backendai_hub.operations.folder_access import (
    OpenFolder,
    authorize_folder,
    keeps,
    place_of,
    recheck_access,
)
from backendai_hub.operations.folder_making import act_of
from backendai_hub.operations.folder_work import is_passing, tell
from backendai_hub.operations.platform import Platform
from backendai_hub.safefs.paths import read_path
from backendai_hub.safefs.placing import Conflict
from backendai_hub.storage.connection import BodyWriter
from backendai_hub.storage.ops import (
    AbandonUpload,
    AppendUpload,
    BeginUpload,
    FinishUpload,
    ListUploads,
    Published,
    StatEntry,
    UploadOffset,
    UploadState,
)

log = logging.getLogger("backendai_hub.folders")

LIFE: Final = timedelta(days=1)
"""So long an upload is kept that does not go on."""
GUEST_LIFE: Final = timedelta(hours=1)
"""So long one into what belongs to somebody else."""
GUEST_STEP: Final = 64 << 20
"""So much room is kept at once for a guest's upload."""
MOST_OF_GUEST: Final = 50
"""Uploads that a guest may have begun and not ended in one owner's folders."""
_NOTED: Final = timedelta(minutes=5)
"""That an upload goes on is written down this often at most."""
MEMORY: Final = timedelta(days=1)
"""So long it is remembered how an upload ended."""
MOST_OPEN: Final = 1000
"""Uploads that one person may have begun and not ended."""
_SWEEP: Final = 100
_ENDED: Final = "this upload was ended, or did not go on for too long; begin a new one"


class Wish(msgspec.Struct, frozen=True):
    """A file that is to be uploaded: where it is to appear, and how long it is."""

    path: str
    length: int
    conflict: str = "fail"


class Begun(msgspec.Struct, frozen=True):
    """An upload that has just begun, and its folder."""

    upload: UploadRecord
    opened: OpenFolder


class Standing(msgspec.Struct, frozen=True):
    """How far an upload is."""

    upload: UploadRecord
    offset: int
    published: Published | None = None


async def begin_upload(
    platform: Platform,
    principal: Principal,
    user: Actor,
    folder_id: str,
    wish: Wish,
) -> Begun:
    """Keep room for a file that is to appear in a folder.

    Raises :class:`InsufficientStorageError` if there is no room, and
    :class:`ConflictError` if there is something already and ``conflict`` is ``fail``.
    """
    path, length, conflict = wish.path, wish.length, wish.conflict
    most = platform.settings.max_upload_size
    if most and length > most:
        raise TooLargeError(
            f"Upload-Length: {length} bytes; this site takes files of up to {most}"
        )
    opened = await _authorize(platform, principal, user, folder_id)
    await _look_before(platform, opened, path, conflict)
    now = platform.database.clock()
    upload = UploadRecord(
        id=platform.new_id(),
        folder_id=opened.folder.id,
        user_id=user.id,
        path=path,
        length=length,
        conflict=conflict,
        state=uploads.OPEN,
        reserved_bytes=length if opened.is_insider else min(length, GUEST_STEP),
        reserved_files=1,
        created_at=now,
        expires_at=now + _life(opened),
    )
    async with platform.database.transaction() as tx:
        # First, since it holds the scope and the folder: of several only one counts.
        await quota_scopes.reserve(
            tx,
            opened.folder,
            length,
            files=upload.reserved_files,
            insider=opened.is_insider,
        )
        # It would fit now; more than the first step is not kept for guests.
        await quota_scopes.give_back(tx, opened.folder, length - upload.reserved_bytes)
        await _check_folder(tx, opened)
        await _check_count(tx, opened, user)
        await uploads.insert_upload(tx, upload)
        tx.audit(act_of("file:upload", opened.folder, after={"path": path}))
    try:
        operation = BeginUpload(place=opened.place, upload_id=upload.id)
        await platform.storage.call(opened.host, operation)
    except HubError:
        await _give_up(platform, upload)
        raise
    return Begun(upload, opened)


def _life(opened: OpenFolder) -> timedelta:
    return LIFE if opened.is_insider else GUEST_LIFE


async def _check_folder(tx: Transaction, opened: OpenFolder) -> None:
    """Refuse if the folder is being thrown away or removed at this moment."""
    now = await folders.find_folder(tx.connection, opened.folder.id, lock=True)
    if now is None or now.status is not opened.folder.status:
        raise ConflictError(
            f"the folder {opened.folder.name!r} is being changed; try again"
        )


async def _check_count(tx: Transaction, opened: OpenFolder, user: Actor) -> None:
    begun, most = await uploads.count_open(tx.connection, user.id), MOST_OPEN
    if begun < most and not opened.is_insider:
        begun = await uploads.count_open_in_scope(
            tx.connection, user.id, opened.host, opened.scope
        )
        most = MOST_OF_GUEST
    if begun >= most:
        raise LimitReachedError(
            f"you have begun {begun} uploads and not ended them; the most is"
            f" {most}: go on with those, or end them",
            limit=most,
            used=begun,
        )


async def _look_before(
    platform: Platform, opened: OpenFolder, path: str, conflict: str
) -> None:
    """Refuse at once what would be refused after all has been sent."""
    if not read_path(path):
        raise InvalidRequestError("path: name the file that is to appear")
    try:
        operation = StatEntry(place=opened.place, path=path)
        entry = await platform.storage.call(opened.host, operation)
    except NotFoundError:
        return
    if conflict == "rename":
        return
    if conflict != "replace":
        raise ConflictError(
            f"{path!r} exists already; choose another name, or 'replace' or 'rename'"
            " as 'conflict'"
        )
    if entry.kind != "file":
        raise ConflictError(f"{path!r} exists already and is a {entry.kind}")


async def find_upload(
    platform: Platform, principal: Principal, user: Actor, upload_id: str
) -> tuple[UploadRecord, OpenFolder]:
    """Return somebody's own upload, if they may still write into its folder."""
    async with platform.database.read() as connection:
        found = None
        if is_id(upload_id):
            found = await uploads.find_upload(connection, upload_id)
    if found is None or found.user_id != user.id:
        raise NotFoundError(f"there is no upload {upload_id[:64]!r}")
    if found.state == uploads.GONE:
        raise GoneError(_ENDED)
    return found, await _authorize(platform, principal, user, found.folder_id)


async def _authorize(
    platform: Platform, principal: Principal, user: Actor, folder_id: str
) -> OpenFolder:
    return await authorize_folder(
        platform, principal, user, folder_id, need=HostPermission.UPLOAD, write=True
    )


async def tell_standing(
    platform: Platform, principal: Principal, user: Actor, upload_id: str
) -> Standing:
    """Tell how much of an upload is safe; a complete one appears, if it has not yet."""
    upload, opened = await find_upload(platform, principal, user, upload_id)
    if upload.state == uploads.DONE:
        return Standing(upload, upload.length)
    operation = UploadOffset(place=opened.place, upload_id=upload.id)
    try:
        state = await platform.storage.call(opened.host, operation)
    except NotFoundError:
        # It appeared, and somebody died before that was written down.
        return await finish_upload(platform, upload, opened)
    if state.offset < upload.length:
        return Standing(upload, state.offset)
    return await finish_upload(platform, upload, opened)


async def open_part(
    platform: Platform,
    upload: UploadRecord,
    opened: OpenFolder,
    *,
    offset: int,
    checksum: Checksum | None,
) -> Part:
    """Begin to take a part at *offset*, which has to be where the last one ended."""
    if upload.state == uploads.DONE:
        raise ConflictError(
            "Upload-Offset: this upload is complete", offset=upload.length
        )
    writer = await platform.storage.upload(
        opened.host,
        AppendUpload(
            place=opened.place,
            upload_id=upload.id,
            offset=offset,
            most=max(0, upload.length - offset),
            checksum_kind=None if checksum is None else checksum.kind,
            checksum="" if checksum is None else checksum.digits,
        ),
    )
    return Part(platform, upload, opened, offset, writer)


class Part:
    """Bytes of an upload on their way to the storage; room is kept as they come.

    As a context it gives up what was not finished.
    """

    def __init__(
        self,
        platform: Platform,
        upload: UploadRecord,
        opened: OpenFolder,
        offset: int,
        writer: BodyWriter[UploadState],
    ) -> None:
        self._platform = platform
        self._upload = upload
        self._opened = opened
        self._end = offset
        self._kept = upload.reserved_bytes
        self._until = upload.expires_at
        self._writer = writer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def write(self, chunk: bytes | memoryview) -> None:
        """Send bytes on, as fast as they are written; raises why they are not."""
        await self._keep_room(len(chunk))
        self._end += len(chunk)
        await self._writer.write(chunk)

    async def take(self, source: int, most: int) -> int | None:
        """Send on what has come over a socket, as :meth:`BodyWriter.take` does."""
        await self._keep_room(1)
        if self._kept < self._upload.length:
            most = min(most, self._kept - self._end)
        moved = await self._writer.take(source, most)
        self._end += moved or 0
        return moved

    @property
    def is_full(self) -> bool:
        """Whether it is the storage that is waited for."""
        return self._writer.is_full

    async def finish(self) -> UploadState:
        """Wait until all of it is safe on the disk, and return how far it goes."""
        return await self._writer.finish()

    async def close(self) -> None:
        """Cut it off where it is, unless it is finished."""
        await self._writer.close()

    async def _keep_room(self, coming: int) -> None:
        """Keep room for what is coming, and note now and then that it goes on."""
        most, end = self._upload.length, self._end + coming
        now = self._platform.database.clock()
        if end > self._kept < most:
            wanted = min(most, max(end, self._kept + GUEST_STEP))
            await self._note(wanted - self._kept)
            self._kept = wanted
        elif self._until - now < _life(self._opened) - _NOTED:
            await self._note(0)

    async def _note(self, more: int) -> None:
        """Write down that it goes on, with room for *more* bytes."""
        opened = self._opened
        async with self._platform.database.transaction() as tx:
            until = tx.now + _life(opened)
            if not await uploads.keep_more(tx, self._upload.id, more, until):
                raise GoneError(_ENDED)
            if more:
                await quota_scopes.reserve(
                    tx, opened.folder, more, insider=opened.is_insider
                )
        self._until = until


async def note_part(
    platform: Platform, upload: UploadRecord, opened: OpenFolder, offset: int
) -> Standing:
    """Note that a part is safe; with the last one the file appears."""
    if offset >= upload.length:
        return await finish_upload(platform, upload, opened)
    now = platform.database.clock()
    life = _life(opened)
    if upload.expires_at - now < life - _NOTED:
        async with platform.database.transaction() as tx:
            await uploads.extend(tx, upload.id, now + life)
    return Standing(upload, offset)


async def finish_upload(
    platform: Platform, upload: UploadRecord, opened: OpenFolder
) -> Standing:
    """Let the file appear, and count it. Done twice, it is done once."""
    async with platform.database.read() as connection:
        now = await folders.find_folder(connection, upload.folder_id)
        if now is None:
            raise NotFoundError(f"there is no folder {upload.folder_id!r} any more")
        await recheck_access(connection, upload.user_id, now)
    published = await platform.storage.call(
        opened.host,
        FinishUpload(
            place=opened.place,
            upload_id=upload.id,
            path=upload.path,
            length=upload.length,
            conflict=Conflict(upload.conflict),
        ),
    )
    async with platform.database.transaction() as tx:
        until = tx.now + MEMORY
        ended = await uploads.end_upload(tx, upload.id, uploads.DONE, until)
        if ended is not None:
            await quota_scopes.settle(
                tx,
                opened.folder,
                reserved=_room_of(ended),
                used=upload.length - published.replaced_bytes,
                files=1 + published.folders - published.replaced_files,
            )
            tell(
                tx,
                EventKind.FOLDER_CHANGED,
                opened.folder,
                f"{published.path} has been uploaded into {opened.folder.name}",
            )
    # Not before that is written down: until then it can be asked for again.
    await _abandon(platform, opened, upload.id)
    return Standing(upload, upload.length, published)


async def end_upload(
    platform: Platform, principal: Principal, user: Actor, upload_id: str
) -> None:
    """End an upload that is not complete, and give its room back.

    One ends one's own, also when one may not write there any more; and who keeps a
    folder ends all that fill it.
    """
    async with platform.database.read() as connection:
        upload = folder = None
        if is_id(upload_id):
            upload = await uploads.find_upload(connection, upload_id)
        if upload is not None:
            folder = await folders.find_folder(connection, upload.folder_id)
    if upload is None or not (
        upload.user_id == user.id or (folder is not None and keeps(principal, folder))
    ):
        raise NotFoundError(f"there is no upload {upload_id[:64]!r}")
    if upload.state == uploads.GONE:
        raise GoneError(_ENDED)
    if upload.state == uploads.DONE:
        raise GoneError("this upload is complete; remove the file instead")
    if folder is not None:
        await platform.storage.call(
            folder.host, AbandonUpload(place=place_of(folder), upload_id=upload.id)
        )
    await _give_up(platform, upload)


async def _give_up(platform: Platform, upload: UploadRecord) -> None:
    async with platform.database.transaction() as tx:
        await _give_back(tx, upload)


async def _give_back(tx: Transaction, upload: UploadRecord) -> None:
    until = tx.now + MEMORY
    ended = await uploads.end_upload(tx, upload.id, uploads.GONE, until)
    if ended is None:
        return
    folder = await folders.find_folder(tx.connection, upload.folder_id)
    if folder is not None:
        await quota_scopes.give_back(tx, folder, _room_of(ended))


def _room_of(upload: UploadRecord) -> quota_scopes.Room:
    return quota_scopes.Room(upload.reserved_bytes, upload.reserved_files)


class UploadsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a folder's uploads."""

    limit: int = 200
    after: str | None = None


async def list_uploads(
    platform: Platform,
    principal: Principal,
    user: Actor | None,
    folder_id: str,
    query: UploadsQuery,
) -> UploadPage:
    """List what is on its way into a folder: all of it for who decides about the
    folder, and for others their own."""
    if not 1 <= query.limit <= MOST_OPEN:
        raise InvalidRequestError(
            f"limit: {query.limit} is not between 1 and {MOST_OPEN}"
        )
    async with platform.database.read() as connection:
        folder = None
        if is_id(folder_id):
            folder = await folders.find_folder(connection, folder_id)
    everybodys = folder is not None and keeps(principal, folder)
    if folder is None or not everybodys:
        folder = (await authorize_folder(platform, principal, user, folder_id)).folder
    async with platform.database.read() as connection:
        found = await uploads.list_open(
            connection,
            folder.id,
            None if everybodys else principal.id if user is None else user.id,
            after=query.after,
            limit=query.limit + 1,
        )
    page = found[: query.limit]
    sizes = await _load_sizes(platform, folder) if page else {}
    return UploadPage(
        items=[_show(upload, name, sizes.get(upload.id)) for upload, name in page],
        next=page[-1][0].id if len(found) > query.limit else None,
    )


async def _load_sizes(platform: Platform, folder: FolderRecord) -> dict[str, int]:
    """Ask how much has come of each upload; a host that hangs only leaves that out."""
    operation = ListUploads(place=place_of(folder))
    try:
        found = await platform.storage.call(folder.host, operation)
    except HubError:
        return {}
    return dict(zip(found.names, found.sizes, strict=True))


def _show(upload: UploadRecord, user_name: str, received: int | None) -> UploadShown:
    return UploadShown(
        id=upload.id,
        path=upload.path,
        length=upload.length,
        received=received,
        user=user_name,
        created_at=format_time(upload.created_at) or "",
        expires_at=format_time(upload.expires_at) or "",
    )


async def _abandon(platform: Platform, opened: OpenFolder, upload_id: str) -> None:
    await platform.storage.call(
        opened.host, AbandonUpload(place=opened.place, upload_id=upload_id)
    )


async def sweep_uploads(platform: Platform) -> int:
    """End what did not go on for too long, and forget what is over; return how many.

    What comes from people who may not write there any more is ended at once.

    While a host does not answer, its uploads wait: their room is not free before what
    has arrived of them is gone.
    """
    now: datetime = platform.database.clock()
    async with platform.database.read() as connection:
        found = await uploads.list_expired(connection, now, _SWEEP)
    swept = 0
    for upload in found:
        try:
            await _sweep(platform, upload)
            swept += 1
        except HubError as error:
            if not is_passing(error):
                log.warning("upload %s stays: %s", upload.id, error.message)
    return swept


async def _sweep(platform: Platform, upload: UploadRecord) -> None:
    if upload.state != uploads.OPEN:
        async with platform.database.transaction() as tx:
            await uploads.forget_upload(tx, upload.id)
        return
    async with platform.database.read() as connection:
        folder = await folders.find_folder(connection, upload.folder_id)
    if folder is not None:
        await platform.storage.call(
            folder.host, AbandonUpload(place=place_of(folder), upload_id=upload.id)
        )
    await _give_up(platform, upload)
