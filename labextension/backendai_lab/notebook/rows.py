"""One session as a row of widgets, brought up to date in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Final
from urllib.parse import urlsplit

import ipywidgets as widgets

from backendai_hub.api.explanations import Why
from backendai_hub.core.live_usage import UsageNow
from backendai_hub.core.sessions import TERMINAL, Session, SessionStatus
from backendai_lab.notebook.hearing import hear_while_busy
from backendai_lab.notebook.plain import (
    show_bytes,
    show_slots,
    tell_status,
    word_of,
)
from backendai_lab.notebook.texts import Words
from backendai_lab.notebook.wording import quote, show_time

_COLOURS: Final[Mapping[str, tuple[str, str]]] = {
    SessionStatus.RUNNING: ("●", "var(--jp-success-color0, #2e7d32)"),
    SessionStatus.ERROR: ("▲", "var(--jp-error-color0, #b71c1c)"),
    SessionStatus.PENDING: ("◷", "var(--jp-warn-color0, #8a4b00)"),
    SessionStatus.RESERVED: ("◷", "var(--jp-warn-color0, #8a4b00)"),
}
_OTHERS: Final = ("◌", "var(--jp-info-color0, #0d47a1)")
_ENDED: Final = ("○", "var(--jp-ui-font-color2, #666)")
_TRACK: Final = (
    "height:6px;border-radius:3px;overflow:hidden;"
    "background:var(--jp-border-color2, #ddd)"
)
_FILL: Final = "height:100%;background:var(--jp-brand-color1, #1976d2)"
_QUIET: Final = "color:var(--jp-ui-font-color2, #666);font-size:smaller"


class SessionRow(widgets.GridBox):
    """Its name, how it is, what it uses, and a way to end it."""

    def __init__(self, say: Words, on_stop: Callable[[str], None]) -> None:
        self._say = say
        self._id = ""
        self._name = widgets.HTML()
        self._status = widgets.HTML()
        self._cpu = widgets.HTML()
        self._memory = widgets.HTML()
        self._accelerator = widgets.HTML()
        self._stop = widgets.Button(
            description=say("stop"),
            icon="stop",
            layout=widgets.Layout(width="max-content"),
        )
        self._stop.on_click(lambda _button: on_stop(self._id))
        bars = widgets.VBox([self._cpu, self._memory, self._accelerator])
        super().__init__(
            [self._name, self._status, bars, self._stop],
            layout=widgets.Layout(
                grid_template_columns="minmax(120px, 2fr) minmax(140px, 3fr)"
                " minmax(120px, 2fr) max-content",
                grid_gap="0 12px",
                align_items="center",
                padding="4px 0",
                border_top="1px solid var(--jp-border-color2, #ddd)",
            ),
        )
        hear_while_busy(self)

    def show(self, session: Session, why: Why | None, use: UsageNow | None) -> None:
        """Show the session as it is now."""
        self._id = session.id
        put(self._name, _write_name(session, self._say))
        put(self._status, _write_status(session, why, self._say))
        ended = session.status in TERMINAL
        stopping = session.status is SessionStatus.TERMINATING
        self._stop.layout.visibility = "hidden" if ended else "visible"
        self._stop.disabled = stopping
        self._stop.tooltip = self._say("stopOf", name=session.name)
        self._show_use(None if ended else use)

    def _show_use(self, use: UsageNow | None) -> None:
        say = self._say
        cpu, cores = (use.cpu, use.cpu_limit) if use else (None, None)
        memory, most = (use.memory, use.memory_limit) if use else (None, None)
        text = "" if cpu is None else f"{cpu:.1f}"
        if cpu is not None:
            text = (
                say("cpuOf", used=text, limit=f"{cores:g}")
                if cores
                else say("cpuUsed", used=text)
            )
        put(self._cpu, write_meter(say("cpu"), cpu, cores, text))
        text = "" if memory is None else show_bytes(memory)
        if memory is not None and most:
            text = say("memoryOf", used=text, limit=show_bytes(most))
        put(self._memory, write_meter(say("memory"), memory, most, text))
        busy = use.utilization if use else None
        text = "" if busy is None else say("deviceUse", percent=f"{100 * busy:.0f}")
        put(self._accelerator, write_meter(say("accelerator"), busy, 1.0, text))


def write_meter(name: str, used: float | None, limit: float | None, text: str) -> str:
    """Write *used* of *limit* as words, and as a bar where the limit is known."""
    if used is None:
        return ""
    words = f'<span style="{_QUIET}">{escape(text)}</span>'
    if not limit:
        return words
    share = round(100 * min(1.0, used / limit))
    return (
        f'{words}<div role="meter" aria-label="{escape(name, quote=True)}"'
        f' aria-valuemin="0" aria-valuemax="100" aria-valuenow="{share}"'
        f' aria-valuetext="{escape(text, quote=True)}" style="{_TRACK}">'
        f'<div style="{_FILL};width:{share}%"></div></div>'
    )


def put(label: widgets.HTML, html: str) -> None:
    """Change what is written only if it changes: nothing flickers."""
    if label.value != html:
        label.value = html


def _write_name(session: Session, say: Words) -> str:
    name = f"<b>{escape(session.name)}</b>"
    if session.url and is_web(session.url) and session.status is SessionStatus.RUNNING:
        url = escape(session.url, quote=True)
        name = f'<a href="{url}" target="_blank" rel="noopener">{name}</a>'
    what = f"{escape(session.image)} · {escape(show_slots(session.slots, say))}"
    return f'{name}<br><span style="{_QUIET}">{what}</span>'


def is_web(url: str) -> bool:
    """Tell whether a link leads to a page, and runs nothing."""
    return urlsplit(url).scheme in {"", "http", "https"}


def _write_status(session: Session, why: Why | None, say: Words) -> str:
    usual = _ENDED if session.status in TERMINAL else _OTHERS
    icon, colour = _COLOURS.get(word_of(session), usual)
    word, *reasons = tell_status(session, why, say).split(" · ", 1)
    lines = [f'<span style="color:{colour}">{icon} {escape(word)}</span>']
    lines += [f'<span style="{_QUIET}">{escape(text)}</span>' for text in reasons]
    if why is not None and session.status is SessionStatus.PENDING:
        if why.changes:
            change = say("would", change=quote(why.changes[0].text, say))
            lines.append(f'<span style="{_QUIET}">{escape(change)}</span>')
        if why.starts_at:
            expected = say("expected", time=show_time(why.starts_at))
            lines.append(f'<span style="{_QUIET}">{escape(expected)}</span>')
    return "<br>".join(lines)
