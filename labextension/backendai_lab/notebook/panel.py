"""The panel of sessions: a live list, and a form for new ones."""

from __future__ import annotations

from html import escape
from threading import RLock
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from backendai_lab.notebook.form import SessionForm
from backendai_lab.notebook.hearing import hear_while_busy
from backendai_lab.notebook.rows import SessionRow, put
from backendai_lab.notebook.wording import quote

if TYPE_CHECKING:
    from backendai_lab.notebook.sessions import Sessions

_FOLLOWED = ("sessions", "why", "usage", "state", "error")


class SessionsPanel(widgets.VBox):
    """Live sessions, each with a way to end it, and a form to ask for another.

    The model changes in another thread, and a click may come in a third one: what is
    shown is changed by one of them at a time. A click never waits for the platform.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._model = sessions.model
        self._say = sessions.say
        self._lock = RLock()
        self._rows: dict[str, SessionRow] = {}
        self._head = widgets.HTML()
        self._error = widgets.HTML()
        self._list = widgets.VBox()
        self.form = SessionForm(sessions)
        self._more = widgets.Accordion(
            [self.form], titles=(self._say("new"),), selected_index=None
        )
        self._follows = True
        super().__init__([self._head, self._error, self._list, self._more])
        self.add_class("backendai-sessions")
        hear_while_busy(self)
        self._model.observe(self._follow, list(_FOLLOWED))
        self._more.observe(self._open_form, "selected_index")
        self._model.watch(self)
        self._follow()

    def row(self, session_id: str) -> SessionRow:
        """Return the row of one session."""
        return self._rows[session_id]

    def stop(self, session_id: str) -> None:
        """End a session, as its button does."""
        self._model.stop(session_id)

    def close(self) -> None:
        """Stop following, and leave the page."""
        if self._follows:
            self._follows = False
            self._model.unobserve(self._follow, list(_FOLLOWED))
            self._model.leave(self)
        for row in self._rows.values():
            row.close()
        super().close()

    def _open_form(self, change: Any) -> None:
        if change["new"] == 0:
            self.form.fill()

    def _follow(self, _change: Any = None) -> None:
        with self._lock:
            self._write_head()
            self._write_rows()

    def _write_head(self) -> None:
        model, say = self._model, self._say
        state = "" if model.state == "idle" else say(model.state)
        put(
            self._head,
            f"<b>{escape(say('title'))}</b> <span role='status' style='color:"
            f"var(--jp-ui-font-color2, #666)'>{escape(state)}</span>",
        )
        error = quote(model.error, say)
        told = say("failed", reason=error) if error else ""
        put(self._error, f"<span role='alert'>{escape(told)}</span>" if told else "")

    def _write_rows(self) -> None:
        model = self._model
        for session in model.sessions.values():
            if session.id not in self._rows:
                self._rows[session.id] = SessionRow(self._say, self.stop)
            self._rows[session.id].show(
                session, model.why.get(session.id), model.usage.get(session.id)
            )
        for session_id in [key for key in self._rows if key not in model.sessions]:
            self._rows.pop(session_id).close()
        shown: list[widgets.Widget] = [self._rows[key] for key in model.sessions]
        if not shown and model.state == "live":
            shown = [self._nothing()]
        # Putting the same children in again would take the focus from a button.
        if [*self._list.children] != shown:
            self._list.children = shown

    def _nothing(self) -> widgets.Widget:
        standing = self._list.children
        if len(standing) == 1 and isinstance(standing[0], widgets.Label):
            return standing[0]
        return widgets.Label(self._say("none"))
