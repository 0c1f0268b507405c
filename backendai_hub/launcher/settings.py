"""What a site may set for the launcher, and the reading of its configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from traitlets import Bool, Enum, Float, Int, Unicode
from traitlets.config import Config, Configurable
from traitlets.config.loader import PyFileConfigLoader

from backendai_hub.core.configuration import ConfigurationError

RUNTIMES = ("auto", "docker", "process", "fake")


class Launcher(Configurable):
    """Settings of `backendai up`; the command's options go before them."""

    host = Unicode(
        "127.0.0.1",
        help="""The address browsers reach the platform at.

        With anything but this machine's own address, put TLS in front of it:
        passwords and notebooks travel in clear text otherwise.
        """,
    ).tag(config=True)

    port = Int(
        0,
        help="""The port browsers reach the platform at.

        With 0, the first free port from 8000 upwards is taken at the first start
        and kept from then on.
        """,
    ).tag(config=True)

    runtime = Enum(
        RUNTIMES,
        default_value="auto",
        help="""What this machine's sessions run in.

        `docker` for containers, `process` for sandboxed processes, `fake` for
        trying the platform without running anything; `auto` takes Docker when an
        engine answers and processes otherwise.
        """,
    ).tag(config=True)

    admin_name = Unicode(
        "admin", help="The name of the first administrator, made at the first start."
    ).tag(config=True)

    run_agent = Bool(
        default_value=True,
        help="""Whether this machine runs sessions too.

        Turn it off where all the work is done by other nodes.
        """,
    ).tag(config=True)

    start_timeout = Float(
        60.0, help="Seconds a process may take until it answers."
    ).tag(config=True)

    stop_timeout = Float(
        15.0, help="Seconds a process may take to stop before it is killed."
    ).tag(config=True)


def load_config(path: Path | None) -> Config:
    """Read the configuration file at *path*; without one, everything is default.

    Raises :class:`ConfigurationError` naming the file when it cannot be read or
    run.
    """
    if path is None:
        return Config()
    loader = PyFileConfigLoader(path.name, path=str(path.parent))
    try:
        config: Config = loader.load_config()
    except Exception as error:
        raise ConfigurationError(f"{path}: {type(error).__name__}: {error}") from error
    return config


def make_launcher(config: Config, **options: Any) -> Launcher:
    """Return the launcher's settings; *options* that are None leave the file's say."""
    given = {name: value for name, value in options.items() if value is not None}
    return Launcher(config=config, **given)
