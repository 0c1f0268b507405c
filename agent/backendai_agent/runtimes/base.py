"""What a runtime must do. Decisions are the reconciler's; a runtime only acts.

A runtime keeps no memory of its own: whatever it needs to recognise a container
after a restart it writes on the container (labels) or beside it (a small file in
the container's own folder), and reads back in :meth:`Runtime.list`.

A runtime is a traitlets ``Configurable``. The agent makes it as ``cls(parent=app)``;
``parent.data_dir`` is the agent's folder, and
:func:`backendai_agent.folders.container_folder` says where a container's own folder
lies. Before :meth:`Runtime.start` the agent has made that folder, and written
``run/activation.json`` and ``run/hub.sock`` in it; a runtime that runs containers
as another user hands ``run`` and ``work`` (and what is in them) to that user.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal, Protocol

from backendai_hub.api.agents import ContainerSpec, RegistryCredential
from backendai_hub.core.agents import Isolation

Progress = Callable[[float | None], None]
"""Hears how much of an image is here: 0 to 1, or None while that is not known."""


class RuntimeFailure(Exception):  # noqa: N818 - it is what happened, told to the owner
    """A container could not be made or kept; the message is for its owner."""


@dataclass(frozen=True)
class ShownFolder:
    """A path of the node that a container sees at *target*.

    The source is the agent's own, or below a storage host's root where no user can
    change what leads to it. With ``read_only`` the runtime has to see to it that
    nobody writes; what the agent has bound is closed already, where it is to be.
    """

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Resident:
    """Who the processes of a session are on the node, and how folders reach them.

    ``way`` is "bind" where a source can be bound to its target, "link" where the
    session sees the node as it is and can only be given links in its home, and
    "none" where nothing really runs.
    """

    uid: int
    gid: int
    way: Literal["bind", "link", "none"] = "bind"


@dataclass(frozen=True)
class ContainerPatch:
    """What accelerators and storage hosts add to a container."""

    environ: dict[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    """Device nodes (``/dev/…``) or CDI names (``nvidia.com/gpu=GPU-…``)"""
    nodes: tuple[str, ...] = ()
    """The device nodes that stand for the CDI names in ``devices``.

    A runtime uses the one or the other: Docker the names, and the engine knows what
    belongs to them; the process runtime, which knows no CDI, these nodes.
    """
    mounts: tuple[tuple[str, str, bool], ...] = ()
    """(source on the node, target inside, read only)"""
    folders: tuple[ShownFolder, ...] = ()
    """Virtual folders; one that lies in another comes after it."""


@dataclass(frozen=True)
class Observed:
    """One container as the runtime sees it now.

    ``id`` is our container id, or the runtime's own id when it carries none of our
    labels. ``running`` is false once its main process has ended; ``reason`` then
    says why in words ("out of memory", "exited with code 3").
    """

    id: str
    session_id: str
    running: bool
    exit_code: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Endpoint:
    """Where an app of a container answers: a unix socket, or host and port."""

    socket: Path | None = None
    host: str = ""
    port: int = 0


class LogNews(StrEnum):
    """What has become of a log that somebody waits for more of."""

    PRINTED = "printed"
    ENDED = "ended"
    """Nothing more will come: what printed there has ended."""
    ABSENT = "absent"
    """Nothing prints there yet, or any more."""


STAMP_SECONDS: Final = 0.1
"""What is printed may be stamped with a time so much before it can be read."""


class Runtime(Protocol):
    """Starts, lists and removes containers on this node.

    A runtime may also have ``listen`` (what JupyterLab is told to listen on; without
    it ``unix:<run>/lab.sock``), ``run_inside(container_id)`` (where the container
    sees its ``run`` folder; without it ``/run/backendai``), ``isolation_now`` (what is
    kept apart now; without it, what :meth:`open` said holds for good) and
    ``shorten(reference)`` (how :meth:`images` spells it; without it, just so) and
    ``resident(spec)`` (which :class:`Resident` a container is going to be; without it
    the runtime shows no folders) and ``measure(specs)`` (what some running containers
    use, by id, as ``measuring.readings.Reading``; it is called on a thread, where it
    may block for a while; without it nothing is measured).
    """

    name: str

    async def open(self) -> Isolation:
        """Probe what is possible here; raises RuntimeFailure if nothing is."""

    async def close(self) -> None:
        """Let go of connections and threads. Containers keep running."""

    async def images(self) -> list[str]:
        """List the references of environments that need no fetching."""

    async def fetch(
        self,
        image: str,
        progress: Progress,
        credential: RegistryCredential | None = None,
    ) -> None:
        """Make *image* available; raises RuntimeFailure with the reason.

        *credential* is for the registry it names alone, and nothing may show it.
        """

    async def discard(self, image: str) -> None:
        """Remove *image* from this node; absent is success.

        Raises RuntimeFailure with the reason while anything here runs in it.
        """

    async def start(self, spec: ContainerSpec, patch: ContainerPatch) -> None:
        """Create and start the container; doing it twice makes one container.

        Returns when the main process runs, not when it answers. The activation
        (environment and arguments) is delivered by file; see ``activation.py``.
        """

    async def wind_down(self, container_id: str, grace: float) -> None:
        """Ask what runs in the container to end, and wait so long for it.

        What it has printed until then can still be read; ``stop`` follows. Whoever
        still runs after it, or is not there, is no failure.
        """

    async def stop(self, container_id: str, grace: float) -> None:
        """End the container and remove every trace of it; absent is success."""

    async def list(self) -> list[Observed]:
        """List what is here, ours and unknown alike."""

    async def endpoint(self, container_id: str, app: str) -> Endpoint | None:
        """Tell where *app* ("lab") of a running container answers."""

    def changes(self) -> AsyncIterator[str]:
        """Yield a container id whenever something may have happened to it."""

    async def logs(self, container_id: str, tail: int) -> str:
        """Return the last *tail* lines the container printed; nothing if it is gone."""

    async def hear_log(self, container_id: str, age: float) -> LogNews:
        """Wait until there is something in the log that came within *age* seconds.

        Returns at once where that is so already, or nothing more will come. What came
        shortly before may count as well, but nothing that came later is ever missed.
        """
