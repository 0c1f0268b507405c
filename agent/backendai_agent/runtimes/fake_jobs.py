"""What the fake runtime makes of the command of a batch session.

Of a command it understands ``sleep SECONDS``, ``echo WORDS`` and ``exit CODE``, one
after the other, and takes everything else for done at once.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from backendai_hub.api.agents import ContainerSpec
from backendai_hub.core.batch import TIMEOUT_CODE, describe_timeout

_STEP: Final = re.compile(r"\s*(?:&&|;|\n)\s*")


class FakeJob(msgspec.Struct, frozen=True):
    """How long a command takes, what it prints, and how it ends."""

    seconds: float = 0.0
    lines: list[str] = []
    exit_code: int = 0
    reason: str = ""


def read_command(spec: ContainerSpec, *, seconds: float, exit_code: int) -> FakeJob:
    """Foresee what a command does; *seconds* and *exit_code* unless it says so."""
    lines: list[str] = []
    slept: float | None = None
    for step in _STEP.split(spec.command):
        verb, _, rest = step.strip().partition(" ")
        if verb == "echo":
            lines.append(rest.strip("'\""))
        elif verb == "sleep" and re.fullmatch(r"\d+(\.\d+)?", rest):
            slept = (slept or 0.0) + float(rest)
        elif verb == "exit" and re.fullmatch(r"\d{1,3}", rest):
            exit_code = int(rest)
            break
    takes = seconds if slept is None else slept
    if spec.timeout_seconds and takes > spec.timeout_seconds:
        reason = describe_timeout(round(spec.timeout_seconds))
        return FakeJob(spec.timeout_seconds, lines, TIMEOUT_CODE, reason)
    return FakeJob(takes, lines, exit_code, f"its command ended with code {exit_code}")
