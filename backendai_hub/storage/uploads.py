"""Uploads, as a worker does them: in parts, safe before they are acknowledged.

What has arrived lies in a file of its own, called by the upload's id. Beside it there
may be ``<id>.chunk``: a chunk with a checksum is being written, and the file counts up
to what stands there; and ``<id>.intent``: where the whole upload is to appear. With
the intent there and the file gone, it has appeared.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import hmac
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Protocol

import msgspec

from backendai_hub.core.errors import (
    ChecksumMismatchError,
    ConflictError,
    HubError,
    InsufficientStorageError,
    InvalidRequestError,
    LockedError,
    NotFoundError,
    TooLargeError,
)
from backendai_hub.safefs.entries import exists, look_at, tag_of
from backendai_hub.safefs.errors import in_words
from backendai_hub.safefs.paths import Parts, read_path, show_path
from backendai_hub.safefs.placing import Conflict, other_names, place
from backendai_hub.safefs.work import Tally
from backendai_hub.storage import durable
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.crashpoints import crashpoint
from backendai_hub.storage.ops import (
    AbandonUpload,
    AppendUpload,
    BeginUpload,
    FinishUpload,
    ListUploads,
    Place,
    Published,
    UploadNames,
    UploadOffset,
    UploadState,
)
from backendai_hub.storage.places import UPLOADS, check_uuid, give
from backendai_hub.storage.wire import PIECE
from backendai_hub.storage.work import Host, read_visible

FILE_MODE: Final = 0o644
_CHUNK: Final = ".chunk"
_INTENT: Final = ".intent"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_SUCH: Final = "there is no such upload; begin a new one"


class _Intent(msgspec.Struct, frozen=True):
    path: str
    tag: str
    folders: int = 0
    replaced_bytes: int = 0
    replaced_files: int = 0


class _Hash(Protocol):
    def update(self, content: memoryview, /) -> None: ...
    def hexdigest(self) -> str: ...


class _Crc32:
    """CRC-32, as the extension of tus has it: four bytes, the highest first."""

    def __init__(self) -> None:
        self._value = 0

    def update(self, content: memoryview, /) -> None:
        self._value = zlib.crc32(content, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


def begin(host: Host, op: BeginUpload, channel: Channel) -> UploadState:
    """Make the file that takes what arrives."""
    upload_id = check_uuid(op.upload_id, "upload_id")
    with host.ground.folder(op.place):
        pass  # it has to be there: an upload into nothing would be work for nothing
    with host.ground.beside(op.place, UPLOADS) as uploads, _words_of_full():
        partial = durable.open_file(uploads, upload_id, os.O_RDWR | os.O_CREAT)
        try:
            give(partial, host.owner)
            os.fsync(uploads)
            state = UploadState(offset=os.fstat(partial).st_size)
        finally:
            os.close(partial)
    _check_still_there(host, op)
    return state


def _check_still_there(host: Host, op: BeginUpload) -> None:
    """Leave nothing if the folder was removed at this very moment.

    Whoever removes a folder ends its uploads afterwards: one of both sees the other.
    """
    try:
        with host.ground.folder(op.place):
            return
    except NotFoundError:
        partial = _Partial(host, op.place, op.upload_id)
        with suppress(NotFoundError), partial.lock():
            partial.forget()
        raise


def tell_offset(host: Host, op: UploadOffset, channel: Channel) -> UploadState:
    """Make safe what has arrived, and tell how much it is."""
    with _Partial(host, op.place, op.upload_id).open() as partial:
        os.fdatasync(partial.descriptor)
        return UploadState(offset=partial.size)


def append(host: Host, op: AppendUpload, channel: Channel) -> UploadState:
    """Take a chunk: all of it, or nothing if there is no room or a wrong checksum."""
    with _Partial(host, op.place, op.upload_id).open() as partial:
        if op.offset != partial.size:
            raise ConflictError(
                f"offset: {op.offset} is not where the upload ends; it has"
                f" {partial.size} bytes: go on from there",
                offset=partial.size,
            )
        hashed = _make_hash(op)
        if hashed is not None:
            partial.doubt()
        channel.go()
        try:
            end = _write(partial, op, channel, hashed)
            crashpoint("upload.written")
            os.fdatasync(partial.descriptor)
            _check(op, hashed)
        except (OSError, TooLargeError, ChecksumMismatchError) as error:
            partial.take_back(op.offset)
            if isinstance(error, OSError) and error.errno in _FULL:
                raise _no_room(error) from error
            raise
        partial.trust()
        crashpoint("upload.synced")
        return UploadState(offset=end)


def finish(host: Host, op: FinishUpload, channel: Channel) -> Published:
    """Let the upload appear where it belongs, whole; or say where it did before."""
    parts = read_visible(op.place, op.path)
    if not parts:
        raise InvalidRequestError("path: name the file that the upload is to become")
    partial = _Partial(host, op.place, op.upload_id)
    published = partial.find_published(op.length)
    if published is not None:
        return published
    with partial.open():
        if partial.size != op.length:
            raise ConflictError(
                f"the upload has {partial.size} of {op.length} bytes; send the rest",
                offset=partial.size,
            )
        os.fchmod(partial.descriptor, FILE_MODE)
        give(partial.descriptor, host.owner)
        os.fsync(partial.descriptor)
        made = partial.publish(parts, op)
    crashpoint("upload.published")
    return made


def abandon(host: Host, op: AbandonUpload, channel: Channel) -> None:
    """Remove what is there of an upload, also while somebody is sending it."""
    partial = _Partial(host, op.place, op.upload_id)
    with suppress(NotFoundError):
        try:
            with partial.lock():
                partial.forget()
        except LockedError:
            partial.stop_writer()


def list_uploads(host: Host, op: ListUploads, channel: Channel) -> UploadNames:
    """List uploads by what they left on the disk."""
    where = op.place or Place(scope=op.scope)
    with host.ground.beside(where, UPLOADS) as uploads:
        found = sorted({n.partition(".")[0] for n in durable.list_names(uploads)})
        sizes = [_size_of(uploads, name) for name in found]
    return UploadNames(names=found, sizes=sizes)


def _size_of(folder: int, name: str) -> int:
    with suppress(FileNotFoundError):
        return look_at(folder, name).st_size
    return 0  # it has appeared meanwhile, or was abandoned


class _Partial:
    """The files of one upload."""

    def __init__(self, host: Host, place: Place, upload_id: str) -> None:
        self._host = host
        self._place = place
        self._id = check_uuid(upload_id, "upload_id")
        self._folder = -1
        self.descriptor = -1

    @property
    def size(self) -> int:
        """How much has arrived."""
        return os.fstat(self.descriptor).st_size

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only one in this process who changes the upload."""
        held = self._host.writing
        with self._host.lock:
            if self._id in held:
                raise _locked()
            held.add(self._id)
        try:
            with self._host.ground.beside(self._place, UPLOADS) as self._folder:
                try:
                    yield
                finally:
                    if self.is_abandoned:
                        self.forget()
        finally:
            with self._host.lock:
                held.discard(self._id)
                self._host.abandoned.discard(self._id)

    def stop_writer(self) -> None:
        """Have whoever is sending it end, and leave nothing of it."""
        with self._host.lock:
            if self._id in self._host.writing:
                self._host.abandoned.add(self._id)
        with self._host.ground.beside(self._place, UPLOADS) as self._folder:
            self.forget()

    @property
    def is_abandoned(self) -> bool:
        """Whether somebody wants nothing to be left of it, though it is being sent."""
        return self._id in self._host.abandoned

    @contextmanager
    def open(self) -> Iterator[_Partial]:
        """Open it for one writer at a time, without what an end in between left."""
        with self.lock():
            try:
                self.descriptor = durable.open_file(self._folder, self._id, os.O_RDWR)
            except FileNotFoundError:
                raise NotFoundError(_NO_SUCH) from None
            try:
                # A worker that was given up may still be writing.
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._settle()
                yield self
            except BlockingIOError:
                raise _locked() from None
            finally:
                os.close(self.descriptor)

    def doubt(self) -> None:
        """Write down that what follows does not count before it is trusted."""
        durable.write(self._folder, self._id + _CHUNK, str(self.size).encode())

    def take_back(self, offset: int) -> None:
        """Let nothing count behind *offset*.

        With its quota used up btrfs shortens no file. Then what is not doubted stays:
        it takes room until somebody goes on with it or abandons the upload.
        """
        try:
            os.ftruncate(self.descriptor, offset)
        except OSError as error:
            if error.errno not in _FULL:
                raise
        else:
            self.trust()

    def trust(self) -> None:
        """Let everything count that is there."""
        with suppress(FileNotFoundError):
            os.unlink(self._id + _CHUNK, dir_fd=self._folder)
            os.fsync(self._folder)

    def publish(self, parts: Parts, op: FinishUpload) -> Published:
        """Move it into place under the first name that may be taken."""
        renames = op.conflict is Conflict.RENAME
        how = Conflict.FAIL if renames else op.conflict
        with self._host.ground.tree(op.place) as tree:
            made = 0
            if op.parents and parts[:-1]:
                made = tree.make_folder(parts[:-1], parents=True, exist_ok=True)
            with in_words(parts), tree.folder_of(parts) as folder:
                for name in other_names(parts[-1]) if renames else parts[-1:]:
                    intent = self._plan(folder, (*parts[:-1], name), made)
                    if self._appear(folder, intent, name, how):
                        return _tell(intent, op.length, intent.tag)
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

    def _plan(self, folder: int, parts: Parts, made: int) -> _Intent:
        """Say where it is to appear, and what that would replace."""
        tally = Tally()
        with suppress(FileNotFoundError):
            tally.add(look_at(folder, parts[-1]))
        return _Intent(
            show_path(parts),
            tag_of(os.fstat(self.descriptor)),
            folders=made,
            replaced_bytes=tally.bytes,
            replaced_files=tally.entries,
        )

    def _appear(self, folder: int, intent: _Intent, name: str, how: Conflict) -> bool:
        """Take this name; tell whether it could be taken."""
        if how is Conflict.FAIL and intent.replaced_files:
            return False
        self._intend(intent)
        crashpoint("upload.intended")
        try:
            place(self._folder, self._id, folder, name, how)
        except FileExistsError:
            return False
        os.fsync(folder)
        os.fsync(self._folder)
        return True

    def find_published(self, length: int) -> Published | None:
        """Tell where it appeared, if it did."""
        with self.lock():
            intent = self._read_intent()
            if intent is None or exists(self._folder, self._id):
                return None
        return _tell(intent, length, self._find_tag(intent))

    def forget(self) -> None:
        """Remove all its files; the intent first, without which it never appeared."""
        for name in (self._id + _CHUNK, self._id + _INTENT, self._id):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._folder)

    def _intend(self, intent: _Intent) -> None:
        durable.write(self._folder, self._id + _INTENT, msgspec.json.encode(intent))

    def _read_intent(self) -> _Intent | None:
        try:
            written = durable.read(self._folder, self._id + _INTENT)
        except FileNotFoundError:
            return None
        return msgspec.json.decode(written, type=_Intent)

    def _find_tag(self, intent: _Intent) -> str:
        """Return the file's tag, if it still is where it appeared."""
        with suppress(HubError), self._host.ground.tree(self._place) as tree:
            found = tree.stat(read_path(intent.path))
            return found.tag if found.tag == intent.tag else ""
        return ""

    def _settle(self) -> None:
        """Take away what was written of a chunk whose checksum nobody has seen."""
        try:
            written = durable.read(self._folder, self._id + _CHUNK)
        except FileNotFoundError:
            return
        os.ftruncate(self.descriptor, int(written))
        os.fdatasync(self.descriptor)
        self.trust()


def _tell(intent: _Intent, length: int, tag: str) -> Published:
    return Published(
        path=intent.path,
        size=length,
        tag=tag,
        folders=intent.folders,
        replaced_bytes=intent.replaced_bytes,
        replaced_files=intent.replaced_files,
    )


def _write(
    partial: _Partial, op: AppendUpload, channel: Channel, hashed: _Hash | None
) -> int:
    """Write the stream at the upload's end and return the new end."""
    pipe, descriptor, end = channel.pipe, partial.descriptor, op.offset
    buffer = memoryview(bytearray(PIECE if hashed else 0))
    with durable.Window(descriptor, end) as window:
        while True:
            most = PIECE if op.most is None else min(PIECE, op.offset + op.most - end)
            if not most:
                _expect_end(pipe, op)
                return end
            if hashed is None:
                count = durable.move_in(pipe, descriptor, end, most)
            else:
                count = os.readv(pipe, [buffer[:most]])
                hashed.update(buffer[:count])
                durable.write_at(descriptor, buffer[:count], end)
            if partial.is_abandoned:
                raise NotFoundError(_NO_SUCH)
            if not count:
                return end
            end += count
            window.reach(end)


def _expect_end(pipe: int, op: AppendUpload) -> None:
    if os.read(pipe, 1):
        raise TooLargeError(
            f"more than {op.most} bytes were sent; the upload is not longer"
        )


def _make_hash(op: AppendUpload) -> _Hash | None:
    if op.checksum_kind is None:
        return None
    if op.checksum_kind == "crc32":
        return _Crc32()
    return hashlib.new(op.checksum_kind, usedforsecurity=False)


def _check(op: AppendUpload, hashed: _Hash | None) -> None:
    if hashed is None:
        return
    found = hashed.hexdigest()
    if not hmac.compare_digest(found, op.checksum.lower()):
        raise ChecksumMismatchError(
            f"the chunk has the {op.checksum_kind} {found}, not"
            f" {op.checksum.lower()[:128]}; send it again",
            offset=op.offset,
        )


@contextmanager
def _words_of_full() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise _no_room(error) from error


def _no_room(error: OSError) -> InsufficientStorageError:
    what = "the quota is used up" if error.errno == errno.EDQUOT else "it is full"
    return InsufficientStorageError(
        f"there is no room on the storage for this: {what}; remove something, or ask"
        " for more"
    )


def _locked() -> LockedError:
    return LockedError("somebody else is sending this upload; wait until they are done")
