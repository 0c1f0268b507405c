"""Transfers of files that go on where they were cut off.

What is known of an unfinished transfer is kept in the user's cache, by what is
transferred and where to: a program that is started again finds it there.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import stat
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp
import msgspec

from backendai_hub.client.backoff import Backoff
from backendai_hub.client.transport import Transport, segment
from backendai_hub.core.errors import (
    ConflictError,
    HubError,
    InsufficientStorageError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
)

T = TypeVar("T")
CHUNK: Final = 8 << 20
"""So much is sent, and acknowledged, at once."""
_TUS: Final = {"Tus-Resumable": "1.0.0"}
_RETRIES: Final = 8
"""Failures in a row, without anything coming through, after which it is given up."""
_AGAIN: Final = frozenset({423, 460})
_GONE: Final = frozenset({404, 410})

Progress = Callable[[int, int], None]
"""Is told how many bytes of how many have come through."""


def _ignore(done: int, total: int) -> None:
    del done, total


class Transfers:
    """Unfinished transfers, each in a small file of its own."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _cache(os.environ)

    def recall(self, *key: str) -> str:
        """Return what was noted under *key*; empty: nothing."""
        try:
            return self._file(key).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    def note(self, text: str, *key: str) -> None:
        """Note something; where that cannot be, the transfer goes on without."""
        file = self._file(key)
        unfinished = file.with_suffix(f".{os.getpid()}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            unfinished.write_text(text, "utf-8")
            unfinished.replace(file)
        except OSError:
            return

    def forget(self, *key: str) -> None:
        """Forget what was noted."""
        try:
            self._file(key).unlink(missing_ok=True)
        except OSError:
            return

    def _file(self, key: tuple[str, ...]) -> Path:
        named = hashlib.sha256(msgspec.json.encode(key)).hexdigest()
        return self._folder / named


def _cache(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "backendai" / "transfers"


class _Tries:
    """Bears failures that may pass, until too many come without progress."""

    def __init__(self) -> None:
        self._delays = Backoff(attempts=_RETRIES).delays()

    def succeed(self) -> None:
        """Something has come through."""
        self._delays = Backoff(attempts=_RETRIES).delays()

    async def bear(self, error: HubError) -> None:
        """Wait a while, or raise *error* after all."""
        if not (isinstance(error, UnavailableError) or error.status in _AGAIN):
            raise error
        delay = next(self._delays, None)
        if delay is None:
            raise error
        await asyncio.sleep(delay)

    async def persist(self, verb: Callable[[], Awaitable[T]]) -> T:
        """Do what may be done again until it is answered."""
        while True:
            try:
                return await verb()
            except HubError as error:
                await self.bear(error)


# --- up --------------------------------------------------------------------------


class Upload:
    """One file on its way into a folder, by the tus protocol."""

    def __init__(
        self, transport: Transport, act_for: str | None, folder: str, path: str
    ) -> None:
        self._transport = transport
        self._act_for = act_for
        self._folder = folder
        self._path = path

    async def send(
        self,
        source: Path,
        *,
        conflict: str = "fail",
        resume: Transfers | None = None,
        progress: Progress = _ignore,
    ) -> None:
        """Send *source*; with *resume* it goes on where an earlier attempt ended."""
        opened = await asyncio.to_thread(_open_source, source)
        try:
            await self._send_open(opened, source, conflict, resume, progress)
        finally:
            os.close(opened)

    async def _send_open(
        self,
        opened: int,
        source: Path,
        conflict: str,
        resume: Transfers | None,
        progress: Progress,
    ) -> None:
        identity = _identify(opened)
        size = os.fstat(opened).st_size
        key = (
            self._transport.api_url,
            self._folder,
            self._path,
            conflict,
            os.fspath(await asyncio.to_thread(source.resolve)),
            identity,
        )
        known = resume.recall(*key) if resume is not None else ""
        tries = _Tries()
        offset = None
        if known:
            offset = await tries.persist(partial(self._find_offset, known, size))
        if offset is None:
            # One that began and was not heard of is ended by the service in a day.
            known = await tries.persist(partial(self._begin, size, conflict))
            offset = 0
            if resume is not None:
                resume.note(known, *key)
        await self._send_rest(known, opened, identity, offset, progress)
        if resume is not None:
            resume.forget(*key)

    async def _begin(self, size: int, conflict: str) -> str:
        metadata = ",".join(
            f"{name} {base64.b64encode(value.encode()).decode()}"
            for name, value in (("path", self._path), ("conflict", conflict))
        )
        answer = await self._ask(
            "POST",
            f"folders/{self._folder}/uploads",
            {"Upload-Length": str(size), "Upload-Metadata": metadata},
        )
        return answer.get("Location", "").rpartition("/")[2]

    async def _find_offset(self, upload: str, size: int) -> int | None:
        """Ask how much has come; None: the upload is no more, or another one's."""
        try:
            answer = await self._ask("HEAD", f"uploads/{segment(upload)}", {})
        except HubError as error:
            if error.status in _GONE:
                return None
            raise
        if answer.get("Upload-Length") != str(size):
            return None
        return int(answer.get("Upload-Offset", "0"))

    async def _send_rest(
        self, upload: str, opened: int, identity: str, offset: int, progress: Progress
    ) -> None:
        size = os.fstat(opened).st_size
        tries = _Tries()
        progress(offset, size)
        while offset < size:
            chunk, checksum = await asyncio.to_thread(_read_chunk, opened, offset)
            if _identify(opened) != identity or not chunk:
                await self._ask("DELETE", f"uploads/{upload}", {})
                raise ConflictError(
                    f"{self._path}: the file was changed while it was sent; send it"
                    " again"
                )
            try:
                offset = await self._send_chunk(upload, offset, chunk, checksum)
                tries.succeed()
            except InsufficientStorageError:
                # What has come takes room that somebody may need.
                with suppress(HubError):
                    await self._ask("DELETE", f"uploads/{upload}", {})
                raise
            except HubError as error:
                # What has come of it, or whether it is locked, is told when asked.
                await tries.bear(error)
                offset = await self._ask_offset(upload, size, tries)
            progress(offset, size)

    async def _ask_offset(self, upload: str, size: int, tries: _Tries) -> int:
        found = await tries.persist(partial(self._find_offset, upload, size))
        if found is None:
            raise NotFoundError(f"{self._path}: the upload was ended; begin anew")
        return found

    async def _send_chunk(
        self, upload: str, offset: int, chunk: bytes, checksum: str
    ) -> int:
        answer = await self._ask(
            "PATCH",
            f"uploads/{upload}",
            {
                "Upload-Offset": str(offset),
                "Upload-Checksum": checksum,
                "Content-Type": "application/offset+octet-stream",
            },
            chunk,
        )
        return int(answer.get("Upload-Offset", "0"))

    async def _ask(
        self, method: str, path: str, headers: dict[str, str], content: Any = None
    ) -> Mapping[str, str]:
        answer = await self._transport.exchange(
            method,
            path,
            headers={**_TUS, **headers},
            content=content,
            act_for=self._act_for,
        )
        async with answer:
            return answer.headers


def _open_source(source: Path) -> int:
    # A pipe in the place of a file would keep us waiting for ever.
    opened = os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise InvalidRequestError(f"{source}: only files are sent")
    return opened


def _identify(opened: int) -> str:
    found = os.fstat(opened)
    return f"{found.st_dev}-{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"


def _read_chunk(opened: int, offset: int) -> tuple[bytes, str]:
    chunk = os.pread(opened, CHUNK, offset)
    digest = hashlib.sha256(chunk).digest()
    return chunk, f"sha256 {base64.b64encode(digest).decode()}"


# --- down ------------------------------------------------------------------------


class Download:
    """One file on its way out of a folder: into ``….part`` until it is complete."""

    def __init__(
        self, transport: Transport, act_for: str | None, folder: str, path: str
    ) -> None:
        self._transport = transport
        self._act_for = act_for
        self._folder = folder
        self._path = path

    async def save(
        self,
        target: Path,
        *,
        overwrite: bool = False,
        resume: Transfers | None = None,
        progress: Progress = _ignore,
    ) -> None:
        """Save the file as *target*, which appears when all of it has come."""
        if not overwrite and await asyncio.to_thread(os.path.lexists, target):
            raise ConflictError(f"{target} exists already")
        part = target.with_name(f"{target.name}.part")
        where = os.fspath(await asyncio.to_thread(part.resolve))
        key = (self._transport.api_url, self._folder, self._path, where)
        tag = resume.recall(*key) if resume is not None else ""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        opened = os.open(part, flags, 0o666)
        try:
            if not tag:
                os.ftruncate(opened, 0)
            await self._save_open(opened, tag, key, resume, progress)
            await asyncio.to_thread(os.fsync, opened)
        finally:
            os.close(opened)
        await asyncio.to_thread(part.replace, target)
        if resume is not None:
            resume.forget(*key)

    async def _save_open(
        self,
        opened: int,
        tag: str,
        key: tuple[str, ...],
        resume: Transfers | None,
        progress: Progress,
    ) -> None:
        tries = _Tries()
        while True:
            before = os.fstat(opened).st_size
            try:
                answer = await self._ask(before, tag)
            except HubError as error:
                if error.status == 416:  # shorter by now, or all of it is here
                    if await self._is_complete(before, tag):
                        return
                    os.ftruncate(opened, 0)
                    tag = ""
                    continue
                await tries.bear(error)
                continue
            async with answer:
                tag = answer.headers.get("ETag", "")
                if resume is not None:
                    resume.note(tag, *key)
                try:
                    await _receive(answer, opened, progress)
                except UnavailableError as error:
                    if os.fstat(opened).st_size > before:
                        tries.succeed()
                    await tries.bear(error)
                    continue
            return

    async def _ask(self, have: int, tag: str) -> aiohttp.ClientResponse:
        headers = {}
        if have and tag:
            headers = {"Range": f"bytes={have}-", "If-Range": tag}
        return await self._transport.exchange(
            "GET",
            f"folders/{self._folder}/content",
            params={"path": self._path},
            headers=headers,
            act_for=self._act_for,
        )

    async def _is_complete(self, have: int, tag: str) -> bool:
        answer = await self._transport.exchange(
            "HEAD",
            f"folders/{self._folder}/content",
            params={"path": self._path},
            act_for=self._act_for,
        )
        async with answer:
            length = answer.headers.get("Content-Length")
            return length == str(have) and answer.headers.get("ETag") == tag


async def _receive(
    answer: aiohttp.ClientResponse, opened: int, progress: Progress
) -> None:
    """Write what comes where it belongs; the whole replaces what was there."""
    offset = 0
    if answer.status == 206:
        offset = os.lseek(opened, 0, os.SEEK_END)
    else:
        os.ftruncate(opened, 0)
    total = offset + int(answer.headers.get("Content-Length", "0"))
    progress(offset, total)
    try:
        async for chunk in answer.content.iter_any():
            offset += _write(opened, chunk, offset)
            progress(offset, total)
    except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
        raise UnavailableError(f"the download was cut off: {error}") from error
    if offset != total:
        raise UnavailableError(f"the download ended after {offset} of {total} bytes")


def _write(opened: int, chunk: bytes, offset: int) -> int:
    written = 0
    while written < len(chunk):
        written += os.pwrite(opened, memoryview(chunk)[written:], offset + written)
    return written
