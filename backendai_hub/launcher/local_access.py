"""The operator's way in: who can read the platform's keys needs no login."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from backendai_hub.commandline.access import Access
from backendai_hub.launcher.commands import Layout
from backendai_hub.launcher.control import open_api
from backendai_hub.launcher.folder import DataFolder, default_data_dir
from backendai_hub.launcher.state import load_state


def find_access(data_dir: Path | None) -> Access | None:
    """Return a way in as the administrator; None where there is no platform of ours.

    Raises :class:`UnavailableError` if the platform is there but does not answer.
    """
    chosen = data_dir or os.environ.get("BACKENDAI_DATA_DIR") or default_data_dir()
    folder = DataFolder(Path(chosen).expanduser().resolve())
    try:
        if not folder.state.is_file():
            return None
        layout = Layout(folder=folder, state=load_state(folder))
        api = asyncio.run(open_api(layout))
    except PermissionError:
        return None
    return Access(url=api.service_url, token=api.token, source=str(folder.root))
