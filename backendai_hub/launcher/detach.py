"""Leaving a supervisor behind: the command returns, the platform stays.

The command forks before anything is started. The child becomes the supervisor and
reports through a pipe, one JSON line per event, until everything is ready; the
parent shows the lines as if it had done the work itself.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec

from backendai_hub.launcher.logs import open_log
from backendai_hub.launcher.messages import Arrived, Failure, Message, Send


def leave_behind(supervise: Callable[[Send], int], log: Path) -> Iterator[Message]:
    """Run *supervise* in a process of its own and yield what it sends.

    Ends when the platform is ready or has failed. An interrupted parent takes the
    unfinished child down with it.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _become_supervisor(supervise, writing, log)
    os.close(writing)
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                yield msgspec.json.decode(line, type=Message)
    except KeyboardInterrupt:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        raise
    finally:
        signal.signal(signal.SIGTERM, previous)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _become_supervisor(
    supervise: Callable[[Send], int], writing: int, log: Path
) -> NoReturn:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    with open_log(log) as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    pipe = os.fdopen(writing, "wb", buffering=0)

    def send(message: Message) -> None:
        if pipe.closed:
            return
        with suppress(BrokenPipeError):
            pipe.write(msgspec.json.encode(message) + b"\n")
        if isinstance(message, (Arrived, Failure)):
            pipe.close()

    code = 1
    try:
        code = supervise(send)
    except BaseException as error:  # noqa: BLE001 - told to the parent, then we end
        traceback.print_exc()
        send(Failure(text=f"{type(error).__name__}: {error}"))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
