"""What people see: short lines, plain words."""

from __future__ import annotations

from collections.abc import Sequence

import click
import msgspec

from backendai_hub.core.agents import Isolation
from backendai_hub.launcher.bring_up import Ready
from backendai_hub.launcher.control import PlatformStatus
from backendai_hub.launcher.doctor import Finding, Severity
from backendai_hub.launcher.events import Event, EventKind
from backendai_hub.launcher.messages import Arrived, Failure, Happened, Message

_SIGNS = {
    EventKind.STARTED: ("·", "bright_black"),
    EventKind.ADOPTED: ("↺", "cyan"),
    EventKind.READY: ("✓", "green"),
    EventKind.CRASHED: ("✗", "red"),
    EventKind.STOPPED: ("■", "bright_black"),
    EventKind.NOTE: ("!", "yellow"),
}
_TITLES = {"hub": "jupyterhub", "service": "hub service"}


def title(process: str) -> str:
    """Return what a process is called in front of people."""
    return _TITLES.get(process, process)


def show_event(event: Event) -> None:
    """Print one event, with the process's last words if it crashed."""
    sign, colour = _SIGNS[event.kind]
    name = click.style(f"{title(event.process):<12}", bold=True)
    click.echo(f"  {click.style(sign, fg=colour)} {name} {event.text}", err=True)
    show_detail(event.detail)


def show_detail(detail: str) -> None:
    """Print the last lines of a log, indented."""
    for line in detail.splitlines():
        click.secho(f"      │ {line}", dim=True, err=True)


def show_failure(text: str, detail: str = "", *, hint: str = "") -> None:
    """Print why nothing came of it."""
    click.secho(f"  ✗ {text}", fg="red", err=True)
    show_detail(detail)
    if hint:
        click.echo(f"    {hint}", err=True)


class Show:
    """Shows messages to a person, or the one object to a program."""

    def __init__(self, *, version: str, as_json: bool, foreground: bool) -> None:
        self.code = 1
        self._version = version
        self._as_json = as_json
        self._foreground = foreground

    def message(self, message: Message) -> None:
        """Show one message; ``code`` is what the command should exit with."""
        match message:
            case Happened(event=event):
                if not self._as_json:
                    show_event(event)
            case Failure(text=text, detail=detail):
                show_failure(text, detail)
            case Arrived(ready=ready) if self._as_json:
                self.code = 0
                click.echo(msgspec.json.encode(ready))
            case Arrived(ready=ready, joined=joined):
                self.code = 0
                foreground = self._foreground and not joined
                show_ready(ready, version=self._version, foreground=foreground)


def show_ready(ready: Ready, *, version: str, foreground: bool) -> None:
    """Print where to go and how to log in."""
    click.echo()
    click.echo(f"  {click.style('backendai-hub', bold=True)} {version} is ready")
    click.echo()
    _row("Open", click.style(ready.url, fg="cyan", underline=True))
    if ready.connection_file is not None:
        _row("", "that JupyterHub is yours; it has to know us (see below)")
    elif ready.password is not None:
        _row("Log in as", click.style(ready.admin, bold=True))
        _row("Password", click.style(ready.password, bold=True))
        _row("", "shown this once; you choose your own when you log in")
    else:
        _row("Log in as", f"{ready.admin}, or anybody with an account")
    if ready.isolation is not None:
        _show_isolation(ready.isolation)
    _row("Data", ready.data_dir)
    for host in ready.closed_hosts:
        _row("Folders", f"nobody may use the storage host {host} yet; permit it with")
        command = "backendai admin domain update default --allowed-vfolder-hosts"
        _row("", f"{command} '{host}=*'")
    click.echo()
    if ready.connection_file is not None:
        show_attach_lines(ready.connection_file)
    if foreground:
        click.echo("  Ctrl-C stops the platform; sessions keep running.")
    else:
        click.echo("  `backendai status` shows it, `backendai down` stops it.")
    click.echo()


def _show_isolation(isolation: Isolation) -> None:
    _row("Sessions", f"{isolation.runtime} · {isolation.tier}")
    _row("", f"limits: {isolation.limits} · network: {isolation.network}")
    if not isolation.multi_user:
        _row("", click.style("for one user only: nothing separates users", fg="yellow"))
    for note in isolation.notes:
        _row("", f"{click.style('!', fg='yellow')} {note}")


def show_attach_lines(connection_file: str) -> None:
    """Print what the site's own JupyterHub needs."""
    click.echo("  Add this to jupyterhub_config.py and restart JupyterHub:")
    click.echo()
    click.echo("    import backendai_spawner")
    click.echo(f'    backendai_spawner.install(c, "{connection_file}")')
    click.echo('    c.JupyterHub.spawner_class = "backendai"')
    click.echo()


def show_stopped(stopped: Sequence[str], *, kept: int) -> None:
    """Print what was stopped and what goes on."""
    if stopped:
        click.echo(f"  stopped: {', '.join(title(name) for name in stopped)}")
    else:
        click.echo("  nothing was running")
    if kept:
        noun = "sessions keep" if kept > 1 else "session keeps"
        click.echo(f"  {kept} {noun} running; `backendai up` finds them again")


def show_status(found: PlatformStatus) -> None:
    """Print the platform at a glance."""
    for process in found.processes:
        name = f"{title(process.name):<12}"
        if process.pid is None:
            click.echo(f"  {click.style('-', dim=True)} {name} does not run")
            continue
        uptime = describe_seconds(process.uptime_seconds or 0)
        sign = click.style("✓", fg="green")
        click.echo(f"  {sign} {name} process {process.pid}, up {uptime}")
    for node in found.nodes or []:
        text = f"{node.status.lower()}, {node.runtime}"
        if node.unknown_containers:
            text += f", {node.unknown_containers} containers nobody knows"
        click.echo(f"    node {node.name}: {text}")
    if found.sessions is not None:
        click.echo(f"    {found.sessions} live session{'s'[: found.sessions != 1]}")
    if found.url is not None:
        click.echo(f"    {click.style(found.url, fg='cyan', underline=True)}")


def describe_seconds(seconds: float) -> str:
    """Write a duration the way people say it."""
    whole = int(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if whole >= size * 2:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def show_findings(findings: Sequence[Finding]) -> None:
    """Print what was found on this machine."""
    signs = {
        Severity.GOOD: click.style("✓", fg="green"),
        Severity.ADVICE: click.style("!", fg="yellow"),
        Severity.SERIOUS: click.style("✗", fg="red"),
    }
    for finding in findings:
        sign = signs[finding.severity]
        click.echo(f"  {sign} {finding.subject:<12} {finding.text}")
        if finding.remedy:
            click.echo(f"    {'':<12} → {finding.remedy}")


def _row(label: str, text: str) -> None:
    click.echo(f"  {click.style(f'{label:<11}', dim=True)}{text}")
