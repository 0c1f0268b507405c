"""Bringing the platform up and keeping it up, until somebody says stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from backendai_hub.client.lockfile import hold_lock, holder
from backendai_hub.core.agents import Agent, Isolation
from backendai_hub.core.errors import UnavailableError
from backendai_hub.launcher.admin import prepare_first_admin
from backendai_hub.launcher.commands import Layout, build_commands, connection
from backendai_hub.launcher.events import Event, EventKind, Tell
from backendai_hub.launcher.files import write_private
from backendai_hub.launcher.folder import PROCESSES, DataFolder
from backendai_hub.launcher.keys import create_missing_keys
from backendai_hub.launcher.platform_api import (
    PlatformApi,
    Reports,
    count_containers,
    find_local,
    is_answering,
    make_token,
)
from backendai_hub.launcher.ports import choose_ports
from backendai_hub.launcher.settings import Launcher
from backendai_hub.launcher.state import load_state, save_state
from backendai_hub.launcher.supervisor import Check, Supervisor

TOKEN_SECONDS = 3600
"""How long the token of `backendai up --json` works."""
_SHORT_TOKEN_SECONDS = 120


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """What is told when everything answers; ``password`` only the first time."""

    url: str
    """Where people come in; the site's JupyterHub, if it runs its own."""
    admin: str
    password: str | None
    token: str | None
    runtime: str | None
    isolation: Isolation | None
    data_dir: str
    connection_file: str | None = None
    """Set when JupyterHub is the site's own and has to be told of us."""
    closed_hosts: list[str] = []
    """Storage hosts that nobody has permitted anybody to use."""


def running_processes(folder: DataFolder) -> dict[str, int]:
    """Return the processes that hold their lock, by name, with their ids."""
    found = {name: holder(folder.lock(name)) for name in PROCESSES}
    return {name: pid for name, pid in found.items() if pid is not None}


def prepare(
    folder: DataFolder,
    launcher: Launcher,
    *,
    site_config: Path | None,
    hub_api_url: str = "",
    version: str = "",
) -> tuple[Layout, str | None]:
    """Make what is missing in the data directory; nothing is started yet.

    The caller holds the supervisor's lock. Returns the layout, and the first
    administrator's password when it has not been shown before.
    """
    create_missing_keys(folder, now=datetime.now(UTC))
    state = choose_ports(
        load_state(folder),
        host=launcher.host,
        wanted=launcher.port or None,
        running=running_processes(folder),
    )
    state = msgspec.structs.replace(state, hub_api_url=hub_api_url)
    if not state.password_shown:
        state = msgspec.structs.replace(state, admin=launcher.admin_name)
    password = None if hub_api_url else prepare_first_admin(folder, state)
    save_state(folder, state)
    layout = Layout(
        folder=folder,
        state=state,
        host=launcher.host,
        runtime=launcher.runtime,
        site_config=site_config,
        run_agent=launcher.run_agent,
        version=version,
    )
    described = msgspec.json.encode(connection(layout))
    write_private(folder.connection, msgspec.json.format(described))
    return layout, password


def take_lock(folder: DataFolder) -> None:
    """Become the supervisor of *folder*, or raise ``AlreadyRunningError``."""
    folder.create()
    hold_lock(folder.lock("supervisor"))


@dataclass(frozen=True)
class Audience:
    """Who hears of it: *tell* of every event, *tell_ready* when all answers."""

    tell: Tell
    tell_ready: Callable[[Ready], None]
    wants_token: bool = False


async def run_platform(
    layout: Layout,
    password: str | None,
    *,
    launcher: Launcher,
    audience: Audience,
    stop: asyncio.Event,
) -> None:
    """Start every process, say when they are ready, and keep them until *stop*.

    If one cannot be started, those that were started are stopped again and
    :class:`~backendai_hub.launcher.supervisor.StartError` is raised.
    """
    folder = layout.folder
    supervisor = Supervisor(build_commands(layout), folder=folder, tell=audience.tell)
    adopted = set(running_processes(folder))
    supervisor.start(running=adopted)
    asked_to_stop = asyncio.create_task(stop.wait())
    findings = Findings(
        layout,
        wants_token=audience.wants_token,
        reports=Reports(None if "agent" in adopted else datetime.now(UTC)),
    )
    coming_up = asyncio.create_task(
        supervisor.wait_ready(findings.checks(), launcher.start_timeout)
    )
    broken = asyncio.create_task(supervisor.wait_broken())
    was_up = False
    try:
        await _first_of(coming_up, asked_to_stop, broken)
        if coming_up.done():
            coming_up.result()
            was_up = True
            audience.tell_ready(findings.ready(password))
            _remember_shown(layout, password)
            await _first_of(asked_to_stop, broken)
        if broken.done():
            broken.result()
    finally:
        for task in (asked_to_stop, coming_up, broken):
            await _cancel(task)
        _say_what_stays(layout, audience.tell)
        # What ran before a start that failed goes on as it was.
        await supervisor.stop(launcher.stop_timeout, release_adopted=not was_up)


class Findings:
    """Finds out whether the processes are ready, and what the node offers."""

    def __init__(self, layout: Layout, *, wants_token: bool, reports: Reports) -> None:
        self._layout = layout
        self._reports = reports
        self._wants_token = wants_token
        self._token: str | None = None
        self._agent: Agent | None = None
        self._closed: list[str] = []

    def checks(self) -> dict[str, Check]:
        """Return how to tell for each process whether it is ready."""
        found: dict[str, Check] = {
            "router": self._router_answers,
            "service": self._service_answers,
        }
        if not self._layout.attached:
            found["hub"] = self._hub_lets_in
        if self._layout.run_agent:
            found["agent"] = self._agent_is_known
        return found

    def ready(self, password: str | None) -> Ready:
        """Return what there is to tell."""
        isolation = self._agent.isolation if self._agent else None
        attached = self._layout.attached
        return Ready(
            url=self._layout.public_url,
            admin=self._layout.state.admin,
            password=password,
            token=self._token if self._wants_token else None,
            runtime=isolation.runtime if isolation else None,
            isolation=isolation,
            data_dir=str(self._layout.folder.root),
            connection_file=str(self._layout.folder.connection) if attached else None,
            closed_hosts=self._closed,
        )

    async def _router_answers(self) -> bool:
        state = self._layout.state
        if self._layout.attached:
            return await asyncio.to_thread(_accepts, "127.0.0.1", state.gateway)
        return await asyncio.to_thread(_accepts, "127.0.0.1", state.proxy_api)

    async def _service_answers(self) -> bool:
        return await is_answering(self._layout.service_url + "api/")

    async def _hub_lets_in(self) -> bool:
        if not await is_answering(self._layout.public_url + "hub/login"):
            return False
        # JupyterHub answers before it has told its proxy where its services are.
        service = self._layout.public_url + self._layout.prefix.lstrip("/")
        if not await is_answering(service + "api/"):
            return False
        seconds = TOKEN_SECONDS if self._wants_token else _SHORT_TOKEN_SECONDS
        self._token = await make_token(
            self._layout, seconds=seconds, note="made by backendai up"
        )
        return self._token is not None

    async def _agent_is_known(self) -> bool:
        own_id = _read_text(self._layout.folder.agent / "agent.id")
        if self._layout.attached or not own_id:
            return bool(own_id)
        if self._token is None:  # JupyterHub is not there yet
            return False
        api = PlatformApi(self._layout.service_url, self._token)
        with suppress(UnavailableError):
            self._agent = find_local(await api.agents(), own_id)
            self._closed = await api.closed_hosts()
        return self._agent is not None and self._reports.are_new(self._agent)


def _accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except FileNotFoundError:
        return ""


def _remember_shown(layout: Layout, password: str | None) -> None:
    if password is not None:
        state = msgspec.structs.replace(layout.state, password_shown=True)
        save_state(layout.folder, state)


def _say_what_stays(layout: Layout, tell: Tell) -> None:
    count = count_containers(layout)
    if count:
        text = (
            f"{count} session{'s keep' if count > 1 else ' keeps'} running on this"
            " machine; `backendai up` finds them again,"
            " `backendai down --sessions` ends them first"
        )
        tell(Event(kind=EventKind.NOTE, process="sessions", text=text))


async def _first_of(*tasks: asyncio.Task[object]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def _cancel(task: asyncio.Task[object]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
