"""Following what goes on in the background with folders."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import click

from backendai_hub.commandline.asking import Asking
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.vfolders import FolderTask, TaskState

_POLL_SECONDS: Final = 0.5
_OVER: Final = {TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED}


async def watch_task(asking: Asking, task: FolderTask) -> None:
    """Follow a task to its end, with a bar where there is a terminal."""
    shows = sys.stderr.isatty() and not asking.output.as_json
    try:
        while task.state not in _OVER:
            if shows:
                click.echo(f"\r{show_progress(task)}", nl=False, err=True)
            await asyncio.sleep(_POLL_SECONDS)
            task = await asking.client.folder_verbs.task(task.id)
    finally:
        if shows:
            click.echo("\r\x1b[K", nl=False, err=True)
    if task.state != TaskState.DONE:
        raise InvalidRequestError(f"{task.kind}: {task.error or task.state}")


def show_progress(task: FolderTask, width: int = 30) -> str:
    """Draw how far a task is."""
    if not task.total:
        return f"{task.kind} {task.done} {task.unit}".rstrip()
    full = min(width, width * task.done // task.total)
    bar = "#" * full + "." * (width - full)
    return f"{task.kind} [{bar}] {100 * task.done // task.total}%"
