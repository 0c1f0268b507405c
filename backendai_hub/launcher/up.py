"""`backendai up`: becoming the supervisor of a data directory, or finding one there."""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from backendai_hub.client.lockfile import AlreadyRunningError
from backendai_hub.core.errors import HubError
from backendai_hub.launcher.bring_up import (
    Audience,
    Findings,
    prepare,
    run_platform,
    take_lock,
)
from backendai_hub.launcher.commands import Layout
from backendai_hub.launcher.events import Event, EventKind
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.logs import open_log, rotate_logs
from backendai_hub.launcher.messages import Arrived, Failure, Happened, Send
from backendai_hub.launcher.platform_api import Reports
from backendai_hub.launcher.settings import Launcher
from backendai_hub.launcher.state import load_state
from backendai_hub.launcher.supervisor import StartError

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class UpRequest:
    """What was asked for on the command line and in the configuration file."""

    folder: DataFolder
    launcher: Launcher
    site_config: Path | None = None
    hub_api_url: str = ""
    wants_token: bool = False
    version: str = ""


def supervise(send: Send, request: UpRequest) -> int:
    """Be the supervisor until told to stop; returns the command's exit code.

    If there is a supervisor already, say what it supervises and leave it alone.
    """
    folder = request.folder
    try:
        take_lock(folder)
    except AlreadyRunningError as error:
        return asyncio.run(_join(send, request, error.pid))
    rotate_logs(folder, "supervisor")
    try:
        asyncio.run(_run(send, request))
    except StartError as error:
        text = f"{error.message}; all it printed is in {folder.log(error.process)}"
        send(Failure(text=text, detail=error.detail))
        return 1
    except HubError as error:
        send(Failure(text=error.message))
        return 1
    return 0


async def _run(send: Send, request: UpRequest) -> None:
    layout, password = prepare(
        request.folder,
        request.launcher,
        site_config=request.site_config,
        hub_api_url=request.hub_api_url,
        version=request.version,
    )
    stop = asyncio.Event()
    for number in _STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    with open_log(request.folder.log("supervisor")) as log:

        def tell(event: Event) -> None:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            print(now, event.process, event.kind, event.text, file=log, flush=True)
            send(Happened(event=event))

        await run_platform(
            layout,
            password,
            launcher=request.launcher,
            audience=Audience(
                tell=tell,
                tell_ready=lambda ready: send(Arrived(ready=ready)),
                wants_token=request.wants_token,
            ),
            stop=stop,
        )


async def _join(send: Send, request: UpRequest, pid: int | None) -> int:
    """Report the platform that another supervisor keeps up."""
    text = f"another supervisor (process {pid}) keeps this data directory up already"
    send(Happened(event=Event(kind=EventKind.ADOPTED, process="supervisor", text=text)))
    layout = Layout(
        folder=request.folder,
        state=load_state(request.folder),
        host=request.launcher.host,
        run_agent=request.launcher.run_agent,
    )
    findings = Findings(layout, wants_token=request.wants_token, reports=Reports(None))
    deadline = time.monotonic() + request.launcher.start_timeout
    for name, check in findings.checks().items():
        while not await check():
            if time.monotonic() > deadline:
                text = f"{name} does not answer; `backendai status` tells more"
                send(Failure(text=text))
                return 1
            await asyncio.sleep(0.1)
    send(Arrived(ready=findings.ready(None), joined=True))
    return 0
