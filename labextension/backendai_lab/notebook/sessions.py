"""Sessions as objects of a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from backendai_hub.api.explanations import DryRun, Why
from backendai_hub.api.sessions import Resources, SessionRequest
from backendai_hub.core.errors import InvalidRequestError, NotFoundError
from backendai_hub.core.live_usage import SessionUsage, UsageNow
from backendai_hub.core.mounts import MountRequest
from backendai_hub.core.sessions import TERMINAL, Session, SessionStatus, SessionType
from backendai_lab.notebook.link import Link
from backendai_lab.notebook.model import SessionsModel
from backendai_lab.notebook.plain import Table, tabulate_sessions
from backendai_lab.notebook.shown import Tabular, has_front_end
from backendai_lab.notebook.texts import Words

if TYPE_CHECKING:
    from backendai_lab.notebook.panel import SessionsPanel
    from backendai_lab.notebook.progress import SessionProgress

Status = Literal["live", "ended", "all"]


class NotebookSession(Tabular):
    """One session: what is known of it, and what can be done with it.

    Everything that a :class:`~backendai_hub.core.sessions.Session` has can be read
    here, as of the last look; :meth:`refresh` looks anew.
    """

    def __init__(self, owner: Sessions, session: Session) -> None:
        self._owner = owner
        self._session = session

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._latest(), name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *Session.__struct_fields__]

    def _latest(self) -> Session:
        known: Session | None = self._owner.model.sessions.get(self._session.id)
        if known is not None and known.revision > self._session.revision:
            self._session = known
        return self._session

    def _take(self, session: Session) -> NotebookSession:
        self._session = session
        self._owner.model.put(session)
        return self

    def refresh(self) -> NotebookSession:
        """Look at it anew."""
        return self._take(self._owner.run_get(self._session.id))

    def wait(self, until: Literal["running", "ended"] = "running") -> NotebookSession:
        """Wait until it runs or has ended, or only until it has ended.

        Interrupting the kernel ends the waiting, not the session.
        """
        sessions = self._owner.link.client.sessions
        work = sessions.wait(self._session.id, until=until)
        return self._take(self._owner.link.run(work))

    def stop(self) -> NotebookSession:
        """End it; what waits is cancelled. Ending it twice is no error."""
        return self._take(self._owner.model.stop(self._session.id).result())

    def why(self) -> Why:
        """Return why it waits, what would start it now, and when it starts."""
        sessions = self._owner.link.client.sessions
        return self._owner.link.run(sessions.why(self._session.id))

    def log(self, tail: int = 1000) -> str:
        """Return the end of what it has printed."""
        sessions = self._owner.link.client.sessions
        return self._owner.link.run(sessions.log(self._session.id, tail=tail)).text

    def usage(self) -> SessionUsage:
        """Return what it uses now, over the last minutes, and in all."""
        sessions = self._owner.link.client.sessions
        return self._owner.link.run(sessions.usage(self._session.id))

    def progress(self) -> SessionProgress:
        """Return a widget that tells how far it is, and what it uses."""
        from backendai_lab.notebook.progress import SessionProgress  # noqa: PLC0415

        return SessionProgress(self._owner.model, self._latest(), self._owner.say)

    def tabulate(self) -> tuple[Table, str]:
        """Return it as a table of one row."""
        return self._owner.tabulate_these([self._latest()])


class SessionList(list[NotebookSession], Tabular):
    """Sessions that were found, which show themselves as a table."""

    def __init__(self, owner: Sessions, sessions: Iterable[NotebookSession]) -> None:
        super().__init__(sessions)
        self._owner = owner

    __repr__ = Tabular.__repr__
    __hash__ = None  # type: ignore[assignment]

    def tabulate(self) -> tuple[Table, str]:
        """Return them as a table."""
        return self._owner.tabulate_these([session._latest() for session in self])  # noqa: SLF001


class Sessions(Tabular):
    """The caller's sessions. Shown by itself, it is a panel to work with.

    job = sessions.create("python", command="python train.py", cpu=2, folders=["data"])
    job.wait("ended").exit_code
    """

    def __init__(
        self, link: Link | None = None, *, language: str | None = None
    ) -> None:
        self.link = link or Link()
        self.model = SessionsModel(self.link)
        self.say = Words(language)
        self._panel: SessionsPanel | None = None

    def list(self, status: Status = "live", owner: str | None = None) -> SessionList:
        """Return sessions, the newest first: one's own, or *owner*'s."""
        client = self.link.client

        async def gather() -> list[Session]:
            return [s async for s in client.sessions.list(status=status, owner=owner)]

        found = self.link.run(gather())
        return SessionList(self, [NotebookSession(self, session) for session in found])

    def get(self, reference: str) -> NotebookSession:
        """Return one session, by its id or its name.

        A live one comes before those that have ended, and of those the newest does.
        Raises :class:`~backendai_hub.core.errors.NotFoundError`, and
        :class:`~backendai_hub.core.errors.InvalidRequestError` for a name that
        several live ones have.
        """
        try:
            return NotebookSession(self, self.run_get(reference))
        except NotFoundError:
            found = [s for s in self.list("live") if s.name == reference]
        if len(found) > 1:
            ids = ", ".join(session.id for session in found)
            raise InvalidRequestError(
                f"several sessions are called {reference!r}: {ids}"
            )
        for session in found or self.list("ended"):
            if session.name == reference:
                return session
        raise NotFoundError(f"there is no session {reference!r}")

    __getitem__ = get

    def run_get(self, session_id: str) -> Session:
        """Ask the platform for one session."""
        return self.link.run(self.link.client.sessions.get(session_id))

    def create(  # noqa: PLR0913 - each is what somebody asks for
        self,
        image: str | None = None,
        *,
        command: str | None = None,
        name: str | None = None,
        cpu: float | None = None,
        mem: str | int | None = None,
        slots: Mapping[str, Any] | None = None,
        folders: Sequence[str | MountRequest] = (),
        env: Mapping[str, str] | None = None,
        wait: bool = False,
        **more: Any,
    ) -> NotebookSession:
        """Ask for a session: a notebook one, or with *command* a batch job.

        ``slots`` are further resources: ``{"cuda.shares": 0.5}``. *more* are fields of
        :class:`~backendai_hub.api.sessions.SessionRequest`. With *wait* it returns once
        the session runs, or cannot any more.
        """
        request = self.make_request(
            image,
            command=command,
            name=name,
            slots=_gather_slots(cpu, mem, slots),
            mounts=folders,
            environ=dict(env or {}),
            **more,
        )
        session = self.link.run(self.link.client.sessions.create(request))
        self.model.put(session)
        made = NotebookSession(self, session)
        return made.wait() if wait else made

    def try_out(self, image: str | None = None, **wishes: Any) -> DryRun:
        """Return what would become of :meth:`create` with the same arguments."""
        slots = _gather_slots(
            wishes.pop("cpu", None), wishes.pop("mem", None), wishes.pop("slots", None)
        )
        mounts = wishes.pop("folders", ())
        environ = dict(wishes.pop("env", None) or {})
        request = self.make_request(
            image, slots=slots, mounts=mounts, environ=environ, **wishes
        )
        return self.link.run(self.link.client.sessions.dry_run(request))

    def make_request(
        self,
        image: str | None,
        *,
        command: str | None = None,
        mounts: Sequence[str | MountRequest] = (),
        **fields: Any,
    ) -> SessionRequest:
        """Write down what is asked for; raises ``InvalidRequestError``."""
        unknown = set(fields) - set(SessionRequest.__struct_fields__)
        if unknown:
            raise InvalidRequestError(
                f"{', '.join(sorted(unknown))}: not known; there are"
                f" {', '.join(sorted(SessionRequest.__struct_fields__))}"
            )
        if isinstance(fields.get("starts_at"), str):
            fields["starts_at"] = datetime.fromisoformat(fields["starts_at"])
        return SessionRequest(
            image=image or self._usual_image(),
            type=SessionType.INTERACTIVE if command is None else SessionType.BATCH,
            startup_command=command,
            mounts=[
                MountRequest(folder=mount) if isinstance(mount, str) else mount
                for mount in mounts
            ],
            **fields,
        )

    def _usual_image(self) -> str:
        images = self.resources().images
        if not images:
            raise NotFoundError("there is no environment that you may use")
        return images[0].name

    def resources(self) -> Resources:
        """Return the environments to choose from, and the room there is now."""
        return self.link.run(self.link.client.resources())

    def stop(self, *references: str) -> None:
        """End sessions, by their ids or names."""
        for session in [self.get(reference) for reference in references]:
            session.stop()

    def wait(self, *sessions: NotebookSession) -> None:
        """Wait until all of these have ended."""
        for session in sessions:
            if session.status not in TERMINAL:
                session.wait("ended")

    @property
    def language(self) -> str:
        """In which language it shows itself: ``en``, ``ko``, ``ja`` or ``th``."""
        return self.say.language

    @language.setter
    def language(self, language: str) -> None:
        Words(language)("title")  # which raises for one we do not speak
        self.say.language = language

    def panel(self) -> SessionsPanel:
        """Return the panel. A new one takes the place of the one before."""
        from backendai_lab.notebook.panel import SessionsPanel  # noqa: PLC0415

        if self._panel is not None:
            self._panel.close()
        self._panel = SessionsPanel(self)
        return self._panel

    def close(self) -> None:
        """Close the panel, the connections and their thread."""
        if self._panel is not None:
            self._panel.close()
            self._panel = None
        self.link.close()

    def tabulate(self) -> tuple[Table, str]:
        """Return the live sessions as a table."""
        return self.list().tabulate()

    def tabulate_these(self, sessions: Sequence[Session]) -> tuple[Table, str]:
        """Return *sessions* as a table, with what they use and why they wait."""
        usage = self._measure(sessions)
        why = {
            session.id: self.link.run(self.link.client.sessions.why(session.id))
            for session in sessions[:20]
            if session.status is SessionStatus.PENDING
        }
        return tabulate_sessions(sessions, why, usage, self.say), self.say("none")

    def _measure(self, sessions: Sequence[Session]) -> dict[str, UsageNow]:
        if not any(session.status is SessionStatus.RUNNING for session in sessions):
            return {}
        found = self.link.run(self.link.client.sessions.live_usage())
        return {item.session_id: item for item in found.items}

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**options)
        if has_front_end():
            shown = self.panel()._repr_mimebundle_(**options)
            widget = shown[0] if isinstance(shown, tuple) else shown
            return {**widget, **bundle}
        return bundle


def _gather_slots(
    cpu: float | None, mem: str | int | None, slots: Mapping[str, Any] | None
) -> dict[str, Any]:
    named = {"cpu": None if cpu is None else str(cpu), "mem": mem}
    given = {slot: amount for slot, amount in named.items() if amount is not None}
    return {**given, **{slot: str(amount) for slot, amount in (slots or {}).items()}}
