"""The form that asks for a new session."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as widgets

from backendai_hub.api.sessions import ImageChoice, Resources, SessionRequest
from backendai_hub.core.errors import HubError
from backendai_hub.core.mounts import MountRequest
from backendai_hub.core.sessions import Session, SessionType
from backendai_lab.notebook.rows import put
from backendai_lab.notebook.wording import quote, title_slot

if TYPE_CHECKING:
    from backendai_lab.notebook.sessions import Sessions

_MOST_FOLDERS: Final = 200
_WIDE: Final = {"description_width": "9em"}


class SessionForm(widgets.VBox):
    """Environment, resources, folders and a command; what is refused is told."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        say = sessions.say
        self.image = widgets.Dropdown(description=say("environment"), style=_WIDE)
        self.name = widgets.Text(description=say("name"), style=_WIDE)
        self.command = widgets.Text(
            description=say("command"),
            placeholder=say("commandHint"),
            style=_WIDE,
            layout=widgets.Layout(width="100%"),
        )
        self.cpu = widgets.BoundedFloatText(
            1, min=0.1, max=4096, step=0.5, description=say("cpu"), style=_WIDE
        )
        self.memory = widgets.Text("1g", description=say("memory"), style=_WIDE)
        self.accelerator = widgets.Dropdown(
            options=[(say("noAccelerator"), "")],
            description=say("accelerator"),
            style=_WIDE,
        )
        self.amount = widgets.BoundedFloatText(
            1, min=0.1, max=1024, step=0.5, description=say("amount"), style=_WIDE
        )
        self.folders = widgets.SelectMultiple(
            description=say("chooseFolders"), style=_WIDE, rows=4
        )
        self.button = widgets.Button(
            description=say("start"), button_style="primary", icon="play"
        )
        self.told = widgets.HTML()
        self.button.on_click(lambda _button: self.submit())
        self.amount.layout.display = "none"
        self._images: dict[str, ImageChoice] = {}
        self.image.observe(self._suggest, "value")
        self.accelerator.observe(self._choose, "value")
        super().__init__(
            [
                self.image,
                self.name,
                self.command,
                self.cpu,
                self.memory,
                self.accelerator,
                self.amount,
                self.folders,
                widgets.HBox([self.button, self.told]),
            ]
        )

    def fill(self) -> None:
        """Look up what there is to choose from, without waiting for it."""
        self._sessions.link.start(self._fill())

    async def _fill(self) -> None:
        client = self._sessions.link.client
        try:
            resources = await client.resources()
            page = await client.folders.page(limit=_MOST_FOLDERS, order="name")
        except HubError as error:
            self._tell(error.message)
            return
        self._offer(resources)
        self.folders.options = [
            f.name for f in page.items if not f.name.startswith(".")
        ]

    def _offer(self, resources: Resources) -> None:
        images = [(image.title or image.name, image.name) for image in resources.images]
        self.image.options = images
        slots = [
            room.slot for room in resources.room if room.slot not in {"cpu", "mem"}
        ]
        say = self._sessions.say
        named = [(title_slot(slot, say), slot) for slot in slots]
        self.accelerator.options = [(say("noAccelerator"), ""), *named]
        self._images = {image.name: image for image in resources.images}
        if self.image.value is None and images:
            self.image.value = images[0][1]

    def _suggest(self, change: Any) -> None:
        """Put in what is usual for the environment that was chosen."""
        image = self._images.get(change["new"])
        if image is not None:
            usual = {**image.minimum, **image.preferred}
            self.memory.value = usual.get("mem", self.memory.value)
            self.cpu.value = float(usual.get("cpu", self.cpu.value))

    def _choose(self, change: Any) -> None:
        self.amount.layout.display = "" if change["new"] else "none"

    def submit(self) -> None:
        """Ask for the session, without waiting for the answer."""
        self.button.disabled = True
        put(self.told, escape(self._sessions.say("starting")))
        self._sessions.link.start(self._submit())

    async def _submit(self) -> None:
        try:
            session = await self._sessions.link.client.sessions.create(self.read())
        except HubError as error:
            self._tell(error.message)
        else:
            self._sessions.model.put(session)
            self._thank(session)
        finally:
            self.button.disabled = False

    def read(self) -> SessionRequest:
        """Return what the form asks for."""
        slots = {"cpu": f"{self.cpu.value:g}", "mem": self.memory.value.strip()}
        if self.accelerator.value:
            slots[self.accelerator.value] = f"{self.amount.value:g}"
        command = self.command.value.strip() or None
        return SessionRequest(
            image=self.image.value or "",
            name=self.name.value.strip() or None,
            type=SessionType.INTERACTIVE if command is None else SessionType.BATCH,
            startup_command=command,
            slots=slots,
            mounts=[MountRequest(folder=name) for name in self.folders.value],
        )

    def _thank(self, session: Session) -> None:
        put(self.told, escape(f"{session.name}: {self._sessions.say(session.status)}"))
        self.name.value = ""

    def _tell(self, reason: str) -> None:
        say = self._sessions.say
        told = say("failed", reason=quote(reason, say))
        put(self.told, f"<span role='alert'>{escape(told)}</span>")
