"""The part of the platform that runs inside a session: boot and server extension.

Importing this package costs nothing: everything a session may not need is imported
where it is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

    from backendai_lab.notebook import Folders, Sessions

    folders: Folders
    sessions: Sessions

LAB_PACKAGE = "@backendai/lab"


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Tell JupyterLab where the front end lies, once it has been built."""
    built = Path(__file__).parent / "labextension" / "package.json"
    if not built.is_file():
        return []
    return [{"src": "labextension", "dest": LAB_PACKAGE}]


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Tell Jupyter Server which module to load."""
    return [{"module": "backendai_lab"}]


def _load_jupyter_server_extension(server: ServerApp) -> None:
    """Add the proxy to the platform's API to *server*, and watch what is busy."""
    from backendai_lab import handlers  # noqa: PLC0415 - kept light
    from backendai_lab.activity import watch_activity  # noqa: PLC0415 - kept light

    handlers.add_handlers(server)
    handlers.keep_tokens(server)
    watch_activity(server)


def __getattr__(name: str) -> Any:
    """Make ``sessions`` and ``folders`` when a notebook first asks for them."""
    if name not in {"folders", "sessions"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from backendai_lab.notebook import Folders, Link, Sessions  # noqa: PLC0415

    link = Link()
    made = {"folders": Folders(link), "sessions": Sessions(link)}
    globals().update(made)
    return made[name]
