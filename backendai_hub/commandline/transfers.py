"""Sending files and folders into a virtual folder, and fetching them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from backendai_hub.client.files import Files, Moved
from backendai_hub.commandline.asking import Asking
from backendai_hub.core.errors import ConflictError, HubError, InvalidRequestError
from backendai_hub.safefs.paths import read_name, show_name


class _Job(NamedTuple):
    """One file to be transferred: where it is here and there, and its size."""

    here: Path
    there: str
    size: int


async def upload(
    asking: Asking,
    *,
    folder: str,
    sources: tuple[Path, ...],
    to: str,
    parallel: int,
    **options: Any,
) -> None:
    """Send files and folders; each file ends for itself."""
    jobs, folders, left_out = await asyncio.to_thread(_find_sources, sources, to)
    for source in left_out:
        asking.output.note(f"{source}: neither a file nor a folder, left out")
    files = asking.client.files(folder)
    for path in folders:
        await files.mkdir(path, parents=True, exist_ok=True)
    with _bar(asking, sum(job.size for job in jobs), "sending") as told:
        results = await files.upload_many(
            ((job.here, job.there) for job in jobs),
            parallel=parallel,
            progress=told,
            **options,
        )
    _tell_results(asking, results, "is uploaded")


def _find_sources(
    sources: Sequence[Path], to: str
) -> tuple[list[_Job], list[str], list[Path]]:
    """Return the files to send, the empty folders to make, and what is neither."""
    jobs: list[_Job] = []
    folders: list[str] = []
    left_out: list[Path] = []
    for source in sources:
        top = _join(to, show_name(source.resolve().name))
        if not source.is_dir():
            jobs.append(_Job(source, top, source.stat().st_size))
            continue
        for where, below, names in os.walk(source):
            here = Path(where)
            parts = [show_name(part) for part in here.relative_to(source).parts]
            there = "/".join([top, *parts])
            if not below and not names:
                folders.append(there)
            for name in names:
                file = here / name
                if file.is_symlink() or not file.is_file():
                    left_out.append(file)
                    continue
                path = _join(there, show_name(name))
                jobs.append(_Job(file, path, file.stat().st_size))
    return jobs, folders, left_out


async def download(
    asking: Asking,
    *,
    folder: str,
    paths: tuple[str, ...],
    to: Path,
    parallel: int,
    archive: str | None,
    **options: Any,
) -> None:
    """Fetch files and folders, or an archive of them."""
    files = asking.client.files(folder)
    if archive is not None:
        with _bar(asking, None, "fetching") as told:
            name = paths[0].strip("/").rpartition("/")[2] if len(paths) == 1 else ""
            target = to / f"{read_name(name or folder)}.{archive}"
            if target.exists() and not options["overwrite"]:
                raise ConflictError(f"{target} exists already; say --overwrite")
            await files.archive(
                paths, target, kind=archive, progress=partial(told, str(target))
            )
        asking.output.say(f"{target} is here", {"path": str(target)})
        return
    jobs = [job async for job in _find_files(files, paths, to)]
    with _bar(asking, sum(job.size for job in jobs), "fetching") as told:
        results = await files.download_many(
            ((job.there, job.here) for job in jobs),
            parallel=parallel,
            progress=told,
            **options,
        )
    _tell_results(asking, results, "is here")


async def _find_files(
    files: Files, paths: Sequence[str], to: Path
) -> AsyncIterator[_Job]:
    """Yield the files at and below *paths*; folders are made here on the way."""
    waiting: list[tuple[str, Path]] = []
    for path in paths:
        entry = await files.stat(path)
        # What a server calls a file is a name here, and never a way to elsewhere.
        here = to / read_name(entry.name) if entry.name else to
        if entry.kind == "file":
            yield _Job(here, path, entry.size)
        elif entry.kind == "folder":
            waiting.append((path.strip("/"), here))
        else:
            raise InvalidRequestError(f"{path} is a {entry.kind}")
    while waiting:
        path, here = waiting.pop()
        await asyncio.to_thread(here.mkdir, parents=True, exist_ok=True)
        async for entry in files.list(path):
            there, target = _join(path, entry.name), here / read_name(entry.name)
            if entry.kind == "file":
                yield _Job(target, there, entry.size)
            elif entry.kind == "folder":
                waiting.append((there, target))


def _join(above: str, name: str) -> str:
    above = above.strip("/")
    return f"{above}/{name}" if above else name


def _tell_results(asking: Asking, results: Sequence[Moved], said: str) -> None:
    failed = [one for one in results if one.error is not None]
    asking.count_failures(len(failed), len(results))
    if asking.output.as_json:
        asking.output.show_list(
            [{"path": one.path, "error": _words(one)} for one in results], ()
        )
        return
    for one in results:
        if one.error is not None:
            asking.output.note(f"{one.path}: {_words(one)}")
        else:
            asking.output.say(f"{one.path} {said}")


def _words(one: Moved) -> str | None:
    if one.error is None:
        return None
    return one.error.message if isinstance(one.error, HubError) else str(one.error)


@contextmanager
def _bar(asking: Asking, total: int | None, said: str) -> Iterator[Any]:
    """Show how far all of it is, where there is a terminal."""
    done: dict[str, int] = {}

    def count(path: str, now: int, of: int) -> None:
        del of
        done[path] = now

    if not sys.stderr.isatty() or asking.output.as_json:
        yield count
        return
    from rich.console import Console  # noqa: PLC0415 - only terminals need it
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(said, total=total)

        def show(path: str, now: int, of: int) -> None:
            count(path, now, of)
            shown.update(task, completed=sum(done.values()))

        yield show
