"""Batch sessions: what may be asked of them, and what their ends mean.

A batch session runs one command and ends with it. Each time it is given to a node is
an *attempt*; the next one begins only when the one before is known to have stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from backendai_hub.core.durations import describe_duration
from backendai_hub.core.errors import InvalidRequestError

MOST_COMMAND: Final = 64 << 10
MOST_SECONDS: Final = (1 << 31) - 1
MOST_ATTEMPTS: Final = 100
MOST_DEPENDENCIES: Final = 100
MOST_TAG: Final = 64
LOG_BYTES: Final = 1 << 20
"""How much of the end of what a batch session prints is kept after it."""
TIMEOUT_CODE: Final = 124
"""The exit code of a command that was ended because its time was over."""
TIMEOUT_MARGIN: Final = 10.0
"""Seconds after which the service ends what its node should have ended in time."""


def check_command(command: str | None) -> None:
    """Refuse a batch session without a command, or with one that no shell takes."""
    if command is None or not command.strip():
        raise InvalidRequestError(
            "startup_command: a batch session runs a command; say which"
        )
    if "\0" in command:
        raise InvalidRequestError("startup_command: it holds a NUL character")
    if len(command.encode()) > MOST_COMMAND:
        raise InvalidRequestError(
            f"startup_command: longer than {MOST_COMMAND >> 10} KiB; put it into a"
            " file or into bootstrap_script"
        )


def check_limits(timeout: int | None, max_attempts: int) -> None:
    """Refuse amounts that mean nothing."""
    if timeout is not None and not 1 <= timeout <= MOST_SECONDS:
        raise InvalidRequestError(
            f"batch_timeout: {timeout} is not between 1 and {MOST_SECONDS} seconds;"
            " leave it out for no limit"
        )
    if not 1 <= max_attempts <= MOST_ATTEMPTS:
        raise InvalidRequestError(
            f"max_attempts: {max_attempts} is not between 1 and {MOST_ATTEMPTS}; 1 is"
            " never to start it twice"
        )


def check_start(starts_at: datetime | None) -> None:
    """Refuse a time of which nobody knows when it is."""
    if starts_at is not None and starts_at.tzinfo is None:
        raise InvalidRequestError(
            "starts_at: say the time zone, too, as in 2026-01-31T18:00:00Z"
        )


def check_dependencies(name: str | None, references: Sequence[str]) -> None:
    """Refuse more than can be waited for, and a session that waits for itself."""
    if len(references) > MOST_DEPENDENCIES:
        raise InvalidRequestError(
            f"dependencies: {len(references)} are more than {MOST_DEPENDENCIES}; wait"
            " for a session that waits for some of them"
        )
    if name is not None and name in references:
        raise InvalidRequestError(
            f"dependencies: {name!r} would wait for itself, and never start"
        )


def check_tag(tag: str | None) -> None:
    """Refuse a tag that is empty, long, or more than one line."""
    if tag is not None and not (0 < len(tag) <= MOST_TAG and tag.isprintable()):
        raise InvalidRequestError(
            f"tag: use 1 to {MOST_TAG} printable characters, or leave it out"
        )


def describe_timeout(seconds: int) -> str:
    """Say that a session's time was over."""
    return f"timed out after {describe_duration(seconds)}"
