"""A widget that follows one session from its request to its end."""

from __future__ import annotations

from typing import Any, Final

import ipywidgets as widgets

from backendai_hub.core.sessions import TERMINAL, Session, SessionStatus
from backendai_lab.notebook.model import SessionsModel
from backendai_lab.notebook.plain import tell_status, tell_use, word_of
from backendai_lab.notebook.texts import Words

PHASES: Final = (
    SessionStatus.PENDING,
    SessionStatus.SCHEDULED,
    SessionStatus.PREPARING,
    SessionStatus.PULLING,
    SessionStatus.CREATING,
    SessionStatus.RUNNING,
)


class SessionProgress(widgets.VBox):
    """How far a session is on its way, in words and as a bar."""

    def __init__(self, model: SessionsModel, session: Session, say: Words) -> None:
        self._model = model
        self._say = say
        self._session = session
        self._bar = widgets.IntProgress(
            min=0, max=len(PHASES), layout=widgets.Layout(width="100%")
        )
        self._text = widgets.Label()
        self._follows = True
        super().__init__([self._bar, self._text])
        model.put(session)
        model.observe(self._follow, ["sessions", "why", "usage"])
        model.watch(self)
        self._follow()

    def _follow(self, _change: Any = None) -> None:
        session = self._model.sessions.get(self._session.id, self._session)
        self._session = session
        ended = session.status in TERMINAL
        known = session.status in PHASES
        self._bar.value = PHASES.index(session.status) + 1 if known else len(PHASES)
        self._bar.bar_style = (
            "danger"
            if word_of(session) == SessionStatus.ERROR
            else "success"
            if session.status in {SessionStatus.RUNNING, SessionStatus.TERMINATED}
            else "info"
        )
        why = self._model.why.get(session.id)
        use = None if ended else self._model.usage.get(session.id)
        told = [session.name, tell_status(session, why, self._say)]
        self._text.value = " · ".join(filter(None, [*told, tell_use(use, self._say)]))
        if ended:
            self._leave()

    def _leave(self) -> None:
        if self._follows:
            self._follows = False
            self._model.unobserve(self._follow, ["sessions", "why", "usage"])
            self._model.leave(self)

    def close(self) -> None:
        """Stop following, and leave the page."""
        self._leave()
        super().close()
