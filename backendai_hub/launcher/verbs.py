"""The commands that look after the platform's processes on this machine."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec
from traitlets import TraitError

from backendai_hub import __version__
from backendai_hub.api.accounts import NewAccount
from backendai_hub.core.errors import HubError
from backendai_hub.launcher import report
from backendai_hub.launcher.commands import Layout
from backendai_hub.launcher.configuration import read_checked_config
from backendai_hub.launcher.control import open_api, read_status, stop_platform
from backendai_hub.launcher.detach import leave_behind
from backendai_hub.launcher.doctor import Severity, examine
from backendai_hub.launcher.folder import DataFolder, default_data_dir
from backendai_hub.launcher.platform_api import count_containers
from backendai_hub.launcher.settings import RUNTIMES, make_launcher
from backendai_hub.launcher.state import load_state
from backendai_hub.launcher.up import UpRequest, supervise

STOP_SECONDS = 30.0


data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="BACKENDAI_DATA_DIR",
    default=default_data_dir,
    show_default="/var/lib/backendai for root, ~/.local/share/backendai otherwise",
    help="Where everything is kept.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one object.")


@click.command()
@data_dir_option
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option("--runtime", type=click.Choice(RUNTIMES), help="What sessions run in.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True),
    help="The site's configuration.  [default: backendai_config.py in the data dir]",
)
@click.option("--detach", is_flag=True, help="Return when everything is ready.")
@click.option("--attach", is_flag=True, help="Serve a JupyterHub the site runs itself.")
@click.option("--hub-api-url", default="", help="That JupyterHub's API, with --attach.")
@json_option
def up(
    data_dir: Path,
    config_file: Path | None,
    *,
    detach: bool,
    attach: bool,
    hub_api_url: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Bring the platform up and keep it up."""
    if attach != bool(hub_api_url):
        raise click.UsageError("--attach and --hub-api-url go together")
    folder = DataFolder(data_dir.expanduser().resolve())
    if config_file is None and folder.site_config.exists():
        config_file = folder.site_config
    try:
        config = read_checked_config(config_file)
        launcher = make_launcher(config, **options)
    except (HubError, TraitError) as error:
        report.show_failure(str(error))
        sys.exit(1)
    request = UpRequest(
        folder=folder,
        launcher=launcher,
        site_config=config_file,
        hub_api_url=hub_api_url,
        wants_token=as_json,
        version=__version__,
    )
    show = report.Show(version=request.version, as_json=as_json, foreground=not detach)
    if not detach:
        sys.exit(supervise(show.message, request))
    folder.create()
    become = partial(supervise, request=request)
    try:
        for message in leave_behind(become, folder.log("supervisor")):
            show.message(message)
    except KeyboardInterrupt:
        report.show_failure("interrupted; what was started is stopped again")
    sys.exit(show.code)


@click.command()
@data_dir_option
@click.option("--sessions", is_flag=True, help="End all sessions first.")
@click.option("--timeout", default=60.0, help="Seconds to wait for them.")
def down(data_dir: Path, *, sessions: bool, timeout: float) -> None:
    """Stop the platform; sessions keep running unless told otherwise."""
    folder = DataFolder(data_dir.expanduser().resolve())
    layout = Layout(folder=folder, state=load_state(folder))
    try:
        if sessions:
            click.echo(
                f"  ended {asyncio.run(_end_sessions(layout, timeout))} sessions"
            )
    except HubError as error:
        report.show_failure(error.message, hint="nothing else was stopped")
        sys.exit(1)
    report.show_stopped(
        stop_platform(folder, STOP_SECONDS), kept=count_containers(layout)
    )


async def _end_sessions(layout: Layout, timeout: float) -> int:
    return await (await open_api(layout)).end_sessions(timeout)


@click.command()
@data_dir_option
@json_option
def status(data_dir: Path, *, as_json: bool) -> None:
    """Show the processes, nodes and sessions; exit code 3 if nothing runs."""
    found = asyncio.run(read_status(DataFolder(data_dir.expanduser().resolve())))
    if as_json:
        click.echo(msgspec.json.encode(found))
    else:
        report.show_status(found)
    sys.exit(0 if found.running else 3)


@click.command()
@data_dir_option
@json_option
def doctor(data_dir: Path, *, as_json: bool) -> None:
    """Look for what this machine lacks, and say what to do about it."""
    findings = examine(DataFolder(data_dir.expanduser().resolve()))
    if as_json:
        click.echo(msgspec.json.encode(findings))
    else:
        report.show_findings(findings)
    serious = any(finding.severity is Severity.SERIOUS for finding in findings)
    sys.exit(1 if serious else 0)


@click.group()
def user() -> None:
    """The people who log in with the platform's own accounts."""


@user.command("add")
@click.argument("name")
@data_dir_option
@json_option
def add_user(name: str, data_dir: Path, *, as_json: bool) -> None:
    """Create an account; prints its one-time password once."""
    folder = DataFolder(data_dir.expanduser().resolve())
    try:
        created = asyncio.run(_create_account(folder, name))
    except HubError as error:
        report.show_failure(error.message)
        sys.exit(1)
    if as_json:
        click.echo(msgspec.json.encode(created))
    else:
        click.echo(f"  {created.name} can log in once with  {created.password}")
        click.echo("  and then chooses a password; it is not shown again.")


async def _create_account(folder: DataFolder, name: str) -> NewAccount:
    layout = Layout(folder=folder, state=load_state(folder))
    return await (await open_api(layout)).create_account(name)
