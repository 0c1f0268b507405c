"""Start JupyterLab for one session: ``python -m backendai_lab.boot``.

All imports come first; then the process waits for its *activation*, a file that
the agent writes into ``/run/backendai`` with the environment (which holds secrets
and therefore is no part of the container's configuration) and the arguments of the
server. A session that was started ahead of need differs from any other only in
that this wait is longer. Then the owner's dotfiles are written and the bootstrap
script is run, and a word is left for the agent how that went (``preparation.json``,
beside where the activation was); then the server starts.

Read from the process's own environment: ``BACKENDAI_RUN_DIR`` (where the activation
appears, default ``/run/backendai``), ``BACKENDAI_PARK_SECONDS`` (how long to wait for
it; 0, the default, is for ever) and ``BACKENDAI_UMASK`` (octal, default 022). Read
from the activation: ``BACKENDAI_LISTEN`` and all that JupyterHub gives its servers.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from backendai_lab.bootstrap import BootstrapError, run_bootstrap
from backendai_lab.dotfiles import File, write_dotfiles
from backendai_lab.lean import import_lean

POLL_SECONDS: Final = 0.01
ACTIVATION: Final = "activation.json"
PREPARATION: Final = "preparation.json"
BOOTSTRAP_SECONDS: Final = 300.0

OPTIONS: Final = (
    "--ServerApp.jpserver_extensions=backendai_lab=True",
    "--ServerApp.jpserver_extensions=jupyter_lsp=False",
    "--ServerApp.jpserver_extensions=notebook_shim=False",
    "--ServerApp.allow_root=True",
    "--ServerApp.open_browser=False",
    # How long a person is let in who may not come in any more.
    "--HubOAuth.cache_max_age=30",
    # Without it, an HTTP client for PyPI need not be imported and set up; what would
    # be installed with it would be lost with the container anyway.
    "--LabApp.extension_manager=readonly",
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
)


SERVER: Final = "jupyterhub.singleuser.extension"
NEEDED: Final = (
    SERVER,
    "backendai_lab.activity",
    "backendai_lab.handlers",
    "jupyter_server_terminals.app",
    "jupyterlab.labapp",
)
"""What a session imports, as far as it can be known before its activation."""


class BootError(Exception):
    """The session cannot start; the message is for its owner."""


@dataclass(frozen=True)
class Activation:
    """What turns a waiting process into somebody's session."""

    environ: Mapping[str, str]
    argv: Sequence[str]
    files: Sequence[File] = ()
    bootstrap: str = ""
    bootstrap_seconds: float = BOOTSTRAP_SECONDS


def take_activation(path: Path) -> Activation | None:
    """Read and delete the activation, if it has come."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    path.unlink()
    try:
        given = json.loads(text)
        return Activation(
            {str(k): str(v) for k, v in given["environ"].items()},
            [str(word) for word in given.get("argv", [])],
            tuple(_read_file(file) for file in given.get("files", [])),
            str(given.get("bootstrap", "")),
            float(given.get("bootstrap_seconds", BOOTSTRAP_SECONDS)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BootError(f"the activation cannot be read: {error!r}") from error


def _read_file(given: Mapping[str, Any]) -> File:
    return File(str(given["path"]), str(given["permission"]), str(given["content"]))


def wait_for_activation(
    path: Path,
    *,
    park_seconds: float,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Activation:
    """Wait until the agent has written the activation; 0 seconds is for ever."""
    until = clock() + park_seconds if park_seconds > 0 else float("inf")
    while (activation := take_activation(path)) is None:
        if clock() >= until:
            raise BootError(
                f"no activation came within {park_seconds:g} seconds; ending"
            )
        pause(POLL_SECONDS)
    return activation


def listen_on(listen: str, environ: Mapping[str, str]) -> tuple[list[str], str]:
    """Return the options and the ``JUPYTERHUB_SERVICE_URL`` to listen on *listen*.

    *listen* is ``unix:/path`` or ``tcp:host:port``. JupyterHub's extension takes
    host and port from the service URL, so that is where they are put; the path of
    the URL stays. With a Unix socket it still wants a URL and does not use it; any
    port but Jupyter's own would then be refused as a second place to listen.
    """
    path = urlsplit(environ.get("JUPYTERHUB_SERVICE_URL", "")).path
    prefix = path or environ.get("JUPYTERHUB_SERVICE_PREFIX", "/")
    kind, _, place = listen.partition(":")
    if kind == "unix" and place.startswith("/"):
        url = urlunsplit(("http", "localhost:8888", prefix, "", ""))
        return [f"--ServerApp.sock={place}", "--ServerApp.sock_mode=0600"], url
    host, _, port = place.rpartition(":")
    if kind == "tcp" and host and port.isdecimal():
        return [], urlunsplit(("http", f"{host}:{port}", prefix, "", ""))
    raise BootError(
        f"BACKENDAI_LISTEN is {listen!r}; it must be unix:/path or tcp:host:port"
    )


def import_server() -> Any:
    """Import all that a session runs and return JupyterHub's application class."""
    # jsonschema would compile thirty grammars for formats no Jupyter schema uses;
    # that takes longer than all the rest of the boot. It does without quietly.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    import_lean(NEEDED)
    handlers = sys.modules["jupyter_server.serverapp"].JUPYTER_SERVICE_HANDLERS
    import_lean([name for names in handlers.values() for name in names or ()])
    return sys.modules[SERVER].JupyterHubSingleUser


async def trust_hub_version(server: Any) -> None:
    """Stand in for the single-user server's question to the Hub for its version.

    The answer would only choose a warning, yet a session could not start while the
    Hub is down, and its start would wait for a round trip.
    """


def prepare(activation: Activation, *, home: Path, run_dir: Path) -> None:
    """Put the owner's files into *home* and run their script; tell the agent of it."""
    if not activation.files and not activation.bootstrap.strip():
        return
    failure = ""
    if activation.files:
        for line in write_dotfiles(home, activation.files):
            sys.stderr.write(f"backendai_lab.boot: {line}\n")
    try:
        if activation.bootstrap.strip():
            run_bootstrap(
                activation.bootstrap,
                home=home,
                run_dir=run_dir,
                seconds=activation.bootstrap_seconds,
            )
            importlib.invalidate_caches()  # it may have installed packages
    except BootstrapError as error:
        failure = str(error)
    leave_word(run_dir / PREPARATION, failure)
    if failure:
        raise BootError(failure)


def leave_word(path: Path, failure: str) -> None:
    """Tell the agent that the home is prepared, or why it could not be."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps({"failure": failure}))
    unfinished.chmod(0o644)  # an agent that is not root must be able to read it
    unfinished.replace(path)


def start(application: Any, activation: Activation, *, run_dir: Path) -> None:
    """Become the session: set the environment and serve until told to end."""
    environ = dict(activation.environ)
    listen = environ.get("BACKENDAI_LISTEN", "tcp:0.0.0.0:8888")
    options, environ["JUPYTERHUB_SERVICE_URL"] = listen_on(listen, environ)
    os.environ.update(environ)
    home = Path(environ.get("HOME") or os.environ.get("HOME") or "/")
    if home.is_dir():
        os.chdir(home)
    prepare(activation, home=home, run_dir=run_dir)
    application.check_hub_version = trust_hub_version
    application.launch_instance(argv=[*OPTIONS, *options, *activation.argv])


def main() -> None:
    """Import, wait for the activation, serve."""
    os.umask(int(os.environ.get("BACKENDAI_UMASK", "022"), 8))
    run_dir = Path(os.environ.get("BACKENDAI_RUN_DIR", "/run/backendai"))
    park_seconds = float(os.environ.get("BACKENDAI_PARK_SECONDS", "0"))
    # Nothing made by an import is garbage: collecting while importing costs a tenth
    # of the start and frees nothing.
    gc.disable()
    application = import_server()
    gc.freeze()
    gc.enable()
    try:
        activation = wait_for_activation(
            run_dir / ACTIVATION, park_seconds=park_seconds
        )
        start(application, activation, run_dir=run_dir)
    except BootError as error:
        sys.exit(f"backendai_lab.boot: {error}")


if __name__ == "__main__":
    main()
