"""The command that shows what sessions use."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import click

from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.finding import find_session
from backendai_hub.core.live_usage import SessionUsage, UsageNow
from backendai_hub.core.sessions import TERMINAL, Session

EVERY_SECONDS: Final = 5.0
_COLUMNS: Final = (
    "name",
    "cpu",
    "memory",
    "devices",
    "device_memory",
    "read",
    "write",
    "receive",
    "send",
)
_UNITS: Final = ("", "k", "m", "g", "t", "p")


def write_bytes(number: float | None) -> str | None:
    """Write bytes as people do, with three digits or so."""
    if number is None:
        return None
    value, unit = float(number), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    digits = 0 if unit == 0 or value >= 100 else 1
    return f"{value:.{digits}f}{_UNITS[unit]}"


def _write_rate(number: float | None) -> str | None:
    written = write_bytes(number)
    return None if written is None else f"{written}/s"


def _of(used: str | None, limit: str | None) -> str | None:
    return used if used is None or limit is None else f"{used}/{limit}"


def _write_cores(number: float | None) -> str | None:
    return None if number is None else f"{number:.2f}".rstrip("0").rstrip(".")


def make_row(name: str, used: UsageNow | None) -> dict[str, str | None]:
    """Write what a session uses in one line; what was not measured is empty."""
    row: dict[str, str | None] = dict.fromkeys(_COLUMNS)
    row["name"] = name
    if used is None:
        return row
    part = used.utilization
    return row | {
        "cpu": _of(_write_cores(used.cpu), _write_cores(used.cpu_limit)),
        "memory": _of(write_bytes(used.memory), write_bytes(used.memory_limit)),
        "devices": None if part is None else f"{part:.0%}",
        "device_memory": _of(
            write_bytes(used.device_memory), write_bytes(used.device_memory_limit)
        ),
        "read": _write_rate(used.read_rate),
        "write": _write_rate(used.write_rate),
        "receive": _write_rate(used.receive_rate),
        "send": _write_rate(used.send_rate),
    }


def describe_totals(usage: SessionUsage) -> str:
    """Say what a session has used in all."""
    totals = usage.totals
    if totals is None:
        return "nothing is known of what it has used"
    words = [
        f"{totals.cpu_seconds:.0f} core seconds" if totals.cpu_seconds else "",
        f"{totals.device_seconds:.0f} device seconds" if totals.device_seconds else "",
        f"{write_bytes(totals.memory_peak)} memory at most"
        if totals.memory_peak
        else "",
        f"{write_bytes(totals.read_bytes)} read" if totals.read_bytes else "",
        f"{write_bytes(totals.written_bytes)} written" if totals.written_bytes else "",
    ]
    return f"in all: {', '.join(filter(None, words)) or 'nothing was measured'}"


async def _usage(
    asking: Asking, *, references: tuple[str, ...], owner: str | None, watch: bool
) -> None:
    if references and owner is not None:
        raise click.UsageError("name sessions or --owner, not both")
    named = [await find_session(asking, name, ended=True) for name in references]
    if len(named) == 1 and not watch:
        await _show_one(asking, named[0])
        return
    while True:
        sessions = await _look(asking, named, owner)
        if watch and asking.output.is_terminal:
            click.clear()
        await _show(asking, sessions, owner)
        if not watch or (named and not sessions):
            return
        await asyncio.sleep(EVERY_SECONDS)


async def _look(
    asking: Asking, named: list[Session], owner: str | None
) -> list[Session]:
    """Return the sessions to show: those named that have not ended, or what runs."""
    client = asking.client.sessions
    if named:
        found = [await client.get(session.id) for session in named]
        return [session for session in found if session.status not in TERMINAL]
    running = client.list(status="RUNNING", owner=owner, page_size=200)
    return [session async for session in running]


async def _show(asking: Asking, sessions: list[Session], owner: str | None) -> None:
    ids = [session.id for session in sessions]
    client = asking.client.sessions
    found = [
        item
        for start in range(0, len(ids), 200)
        for item in (await client.live_usage(ids[start : start + 200])).items
    ]
    if asking.output.as_json:
        asking.output.show_list(found, ())
        return
    used = {item.session_id: item for item in found}
    rows = [make_row(_name(s, owner), used.get(s.id)) for s in sessions]
    asking.output.show_list(rows, _COLUMNS)


def _name(session: Session, owner: str | None) -> str:
    return session.name if owner is None else f"{session.owner}/{session.name}"


async def _show_one(asking: Asking, session: Session) -> None:
    usage = await asking.client.sessions.usage(session.id)
    if asking.output.as_json:
        asking.output.show_one(usage)
        return
    if session.status not in TERMINAL:
        asking.output.show_list([make_row(session.name, usage.now)], _COLUMNS)
        for part in usage.containers:
            asking.output.show_list([make_row(part.host, part.now)], _COLUMNS)
    asking.output.note(describe_totals(usage))


def make_usage() -> click.Command:
    """Make the command."""
    options: list[Any] = [
        click.Argument(["references"], metavar="[SESSION]...", nargs=-1),
        click.Option(["--owner"], help="Whose; '*' is everybody's that you may see."),
        click.Option(
            ["--watch"],
            is_flag=True,
            help="Go on, until all that are named have ended.",
        ),
    ]
    return make_command(
        "usage",
        _usage,
        options,
        help="Show what sessions use now: those you name, or all of yours that run.",
    )
