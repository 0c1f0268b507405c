"""Uploading files: permission and room first, then bytes, then the file appears.

The room for the whole file is kept when it begins, so that it cannot run out half-way,
and nothing of it is seen in the folder before all of it is there. Whoever sends a part
is asked for their permission again: it may have been taken back meanwhile.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

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
from backendai_hub.core.uploads import Checksum, GoneError, UploadRecord
from backendai_hub.db import folders, quota_scopes, uploads
from backendai_hub.db.engine import Transaction
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
    Published,
    StatEntry,
    UploadOffset,
    UploadState,
)

LIFE: Final = timedelta(days=1)
"""So long an upload is kept that does not go on."""
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
    upload = UploadRecord(
        id=platform.new_id(),
        folder_id=opened.folder.id,
        user_id=user.id,
        path=path,
        length=length,
        conflict=conflict,
        state=uploads.OPEN,
        reserved_bytes=length,
        expires_at=platform.database.clock() + LIFE,
    )
    async with platform.database.transaction() as tx:
        begun = await uploads.count_open(tx.connection, user.id)
        if begun >= MOST_OPEN:
            raise LimitReachedError(
                f"you have begun {begun} uploads and not ended them; the most is"
                f" {MOST_OPEN}: go on with those, or end them"
            )
        await quota_scopes.reserve(tx, opened.folder, length, insider=opened.is_insider)
        await uploads.insert_upload(tx, upload)
        tx.audit(act_of("file:upload", opened.folder, after={"path": path}))
    try:
        operation = BeginUpload(place=opened.place, upload_id=upload.id)
        await platform.storage.call(opened.host, operation)
    except HubError:
        await _give_up(platform, upload)
        raise
    return Begun(upload, opened)


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
) -> BodyWriter[UploadState]:
    """Begin to take a part at *offset*, which has to be where the last one ended."""
    if upload.state == uploads.DONE:
        raise ConflictError(
            "Upload-Offset: this upload is complete", offset=upload.length
        )
    return await platform.storage.upload(
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


async def note_part(
    platform: Platform, upload: UploadRecord, opened: OpenFolder, offset: int
) -> Standing:
    """Note that a part is safe; with the last one the file appears."""
    if offset >= upload.length:
        return await finish_upload(platform, upload, opened)
    now = platform.database.clock()
    if upload.expires_at - now < LIFE - timedelta(minutes=5):
        async with platform.database.transaction() as tx:
            await uploads.extend(tx, upload.id, now + LIFE)
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
        if await uploads.end_upload(tx, upload.id, uploads.DONE, until):
            await quota_scopes.settle(
                tx,
                opened.folder,
                reserved=upload.reserved_bytes,
                used=upload.length,
                files=1,
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
    if not await uploads.end_upload(tx, upload.id, uploads.GONE, tx.now + MEMORY):
        return
    folder = await folders.find_folder(tx.connection, upload.folder_id)
    if folder is not None:
        await quota_scopes.give_back(tx, folder, upload.reserved_bytes)


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
                raise
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
