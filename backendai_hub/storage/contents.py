"""What is in files: read, written as a whole, packed and unpacked, by a worker."""

from __future__ import annotations

import os
import stat
from typing import Final

from backendai_hub.core.errors import InvalidRequestError, PreconditionFailedError
from backendai_hub.core.files import ANY_TAG
from backendai_hub.safefs.archives import extract, stream_archive
from backendai_hub.safefs.entries import Kind, describe
from backendai_hub.safefs.errors import EntryMissingError, NotAFileError, in_words
from backendai_hub.safefs.making import FILE_MODE
from backendai_hub.safefs.paths import Parts, quote
from backendai_hub.safefs.placing import Conflict
from backendai_hub.safefs.tree import Tree
from backendai_hub.safefs.work import Tally
from backendai_hub.storage import durable
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.files import watch
from backendai_hub.storage.once import desk_of
from backendai_hub.storage.ops import (
    Archive,
    ArchiveHead,
    ExtractArchive,
    FileHead,
    Placed,
    ReadFile,
    WriteText,
    Written,
)
from backendai_hub.storage.wire import PIECE
from backendai_hub.storage.work import Host, hidden_names, read_visible

_PERMISSIONS: Final = 0o777
_PIECE: Final = 8 * PIECE


def read(host: Host, op: ReadFile, channel: Channel) -> None:
    """Send a file, or a part of it."""
    parts = read_visible(op.place, op.path)
    with host.ground.tree(op.place) as tree:
        opened = tree.open_read(parts)
    try:
        found = os.fstat(opened)
        start, end = _read_range(op, found.st_size)
        entry = describe(parts[-1], found)
        channel.answer(FileHead(entry=entry, start=start, length=end - start))
        for offset in range(start, end, _PIECE):
            channel.file_piece(opened, offset, min(_PIECE, end - offset))
        channel.end_pieces()
    finally:
        os.close(opened)


def write_text(host: Host, op: WriteText, channel: Channel) -> Written:
    """Replace a small file, if it is as whoever wrote it has seen it."""
    parts = read_visible(op.place, op.path)
    if not parts:
        raise InvalidRequestError("path: name the file to be written")
    with host.tree(op.place) as tree, host.texts:
        mode, tally = _check_unchanged(tree, parts, op.if_tag), Tally()
        _replace(tree, parts, op.content, mode, tally)
        return Written(
            entry=tree.stat(parts),
            replaced_bytes=tally.bytes,
            replaced_files=tally.entries,
        )


def send_archive(host: Host, op: Archive, channel: Channel) -> None:
    """Send several paths as one archive."""
    paths = [read_visible(op.place, path) for path in op.paths]
    with host.ground.tree(op.place) as tree:
        for parts in paths:
            tree.stat(parts)
        channel.answer(ArchiveHead(kind=op.kind))
        sent = _Pieces(channel)
        hidden = hidden_names(op.place)
        stream_archive(tree, paths, op.kind, sent.write, hidden=hidden)
        sent.flush()
        channel.end_pieces()


def unpack(host: Host, op: ExtractArchive, channel: Channel) -> Placed:
    """Unpack an archive; nothing of it appears if it is refused."""
    source = read_visible(op.place, op.path)
    target = read_visible(op.place, op.target)
    work = watch(channel, unit="bytes", limit=op.most_bytes)
    with (
        host.ground.tree(op.place) as tree,
        desk_of(host, op.place, op.task_id) as desk,
    ):

        def make(to: Tree, parts: Parts) -> Placed:
            opened = tree.open_read(source)
            try:
                made = extract(to, opened, parts, limits=op.limits, work=work)
            finally:
                os.close(opened)
            return Placed(
                path="",
                bytes=made.bytes,
                kept=made.usage.kept,
                files=made.usage.entries,
                skipped=made.skipped,
            )

        return desk.unpack(tree, target, op.conflict, make)


class _Pieces:
    """Joins what comes in small parts to pieces worth sending."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._waiting = bytearray()

    def write(self, content: bytes) -> None:
        self._waiting += content
        if len(self._waiting) >= PIECE:
            self.flush()

    def flush(self) -> None:
        self._channel.piece(bytes(self._waiting))
        self._waiting.clear()


def _read_range(op: ReadFile, size: int) -> tuple[int, int]:
    start = op.start if op.start >= 0 else max(0, size + op.start)
    end = size if op.end is None else min(op.end, size)
    if start > size or end < start:
        raise InvalidRequestError(
            f"range: it begins at {start}, and the file has {size} bytes", size=size
        )
    return start, end


def _check_unchanged(tree: Tree, parts: Parts, if_tag: str | None) -> int:
    """Return the mode of the file that is replaced, or of a new one."""
    try:
        found = tree.stat(parts)
    except EntryMissingError:
        if if_tag:
            raise PreconditionFailedError(
                f"there is no {quote(parts)} to be replaced"
                if if_tag == ANY_TAG
                else f"{quote(parts)} was removed since you read it"
            ) from None
        return FILE_MODE
    if found.kind is not Kind.FILE:
        raise NotAFileError(f"{quote(parts)} is not a file")
    if if_tag not in {None, ANY_TAG, found.tag}:
        raise PreconditionFailedError(
            f"{quote(parts)} exists already"
            if not if_tag
            else f"{quote(parts)} was changed since you read it; read it again",
            tag=found.tag,
        )
    return found.mode & _PERMISSIONS


def _replace(tree: Tree, parts: Parts, content: bytes, mode: int, tally: Tally) -> None:
    with tree.staged() as (unfinished, name):
        made = unfinished.create((name,), mode=stat.S_IRUSR | stat.S_IWUSR)
        try:
            with in_words(parts):
                durable.write_at(made, memoryview(content), 0)
                os.fchmod(made, mode)
        finally:
            os.close(made)
        unfinished.publish(
            (name,), parts, conflict=Conflict.REPLACE, to=tree, tally=tally
        )
