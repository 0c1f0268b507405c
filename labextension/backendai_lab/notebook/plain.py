"""Tables without a front end: as text, and as HTML that needs no script."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Final

from backendai_hub.api.explanations import Why
from backendai_hub.core.live_usage import UsageNow
from backendai_hub.core.sessions import (
    Session,
    SessionResult,
    SessionStatus,
    SessionType,
)
from backendai_hub.core.slots import describe_amount, parse_amount
from backendai_lab.notebook.texts import Words
from backendai_lab.notebook.wording import quote, show_time, title_slot

Table = tuple[Sequence[str], Sequence[Sequence[str]]]

UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def show_bytes(amount: float) -> str:
    """Write bytes as people read them: ``1.5 GiB``."""
    step = 0
    while amount >= 1024 and step < len(UNITS) - 1:
        amount, step = amount / 1024, step + 1
    shown = f"{amount:.0f}" if step == 0 or amount >= 100 else f"{amount:.1f}"
    return f"{shown.removesuffix('.0')} {UNITS[step]}"


def show_slots(slots: dict[str, str], say: Words) -> str:
    """Write what a session has: ``2 CPU, 4 GiB, 0.5 NVIDIA GPU share``."""
    amounts = {slot: parse_amount(slot, amount) for slot, amount in slots.items()}
    return ", ".join(
        _show_slot(slot, amounts[slot], say)
        for slot in sorted(amounts, key=lambda s: (s not in _FIRST, s))
        if amounts[slot]
    )


def _show_slot(slot: str, amount: int, say: Words) -> str:
    shown = describe_amount(slot, amount)
    return shown if slot == "mem" else f"{shown} {title_slot(slot, say)}"


_FIRST: Final = ("cpu", "mem")


def word_of(session: Session) -> str:
    """Return the key of the word for how a session is, or what became of it."""
    if session.status is not SessionStatus.TERMINATED:
        return session.status
    if session.type is not SessionType.BATCH:
        return session.status
    return _OUTCOMES[session.result]


_OUTCOMES: Final = {
    SessionResult.SUCCESS: "succeeded",
    SessionResult.FAILURE: str(SessionStatus.ERROR),
    SessionResult.UNDEFINED: "stopped",
}
"""What became of a batch session; only those that somebody stopped do not say."""


def tell_status(session: Session, why: Why | None, say: Words) -> str:
    """Say how a session is, and why if there is a reason."""
    parts = [say(word_of(session))]
    waits = session.status in {SessionStatus.PENDING, SessionStatus.RESERVED}
    if waits and why is not None:
        if why.position is not None and why.waiting is not None:
            parts.append(say("position", position=why.position, waiting=why.waiting))
        parts.extend(quote(reason, say) for reason in why.reasons[:2])
    elif session.reason:
        parts.append(quote(session.reason, say))
    if session.exit_code is not None:
        parts.append(say("exit", code=session.exit_code))
    return " · ".join(parts)


def tell_use(use: UsageNow | None, say: Words) -> str:
    """Say what a session uses now; nothing where nothing is measured."""
    if use is None:
        return ""
    parts = []
    if use.cpu is not None:
        used = f"{use.cpu:.1f}"
        if use.cpu_limit is None:
            parts.append(say("cpuUsed", used=used))
        else:
            parts.append(say("cpuOf", used=used, limit=f"{use.cpu_limit:g}"))
    if use.memory is not None:
        limit = use.memory_limit
        used = show_bytes(use.memory)
        parts.append(
            used
            if limit is None
            else say("memoryOf", used=used, limit=show_bytes(limit))
        )
    if use.utilization is not None:
        parts.append(say("deviceUse", percent=f"{100 * use.utilization:.0f}"))
    return " · ".join(parts)


def tabulate_sessions(
    sessions: Sequence[Session],
    why: dict[str, Why],
    usage: dict[str, UsageNow],
    say: Words,
) -> Table:
    """Make the table of sessions: its heads, and its rows."""
    heads = [
        say(key)
        for key in ("name", "status", "environment", "resources", "use", "since")
    ]
    rows = [
        [
            session.name,
            tell_status(session, why.get(session.id), say),
            session.image,
            show_slots(session.slots, say),
            tell_use(usage.get(session.id), say),
            show_time(session.started_at or session.created_at),
        ]
        for session in sessions
    ]
    return heads, rows


def write_text(table: Table, empty: str) -> str:
    """Write a table for a terminal."""
    heads, rows = table
    if not rows:
        return empty
    lines = [list(map(_tame, row)) for row in (heads, *rows)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell + " " * (width - _width(cell))
            for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def write_html(table: Table, empty: str) -> str:
    """Write a table for a page; whatever the cells hold is text there."""
    heads, rows = table
    if not rows:
        return f"<p>{escape(empty)}</p>"
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(h)}</th>' for h in heads)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_CELL: Final = "text-align:left;vertical-align:top"


def _tame(cell: str) -> str:
    """Keep a name from moving the terminal's cursor."""
    return "".join(c if c.isprintable() else " " for c in cell)


def _width(text: str) -> int:
    return sum(_columns(c) for c in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Mn":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
