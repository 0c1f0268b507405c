"""The data directory: where everything that outlives a process is kept."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from backendai_hub.launcher.files import make_private_folder

PROCESSES = ("router", "service", "hub", "agent")
"""The processes of the platform, in the order in which they are shown."""


def default_data_dir() -> Path:
    """Return where data goes when nobody says: by user, or the system's for root."""
    if os.geteuid() == 0:
        return Path("/var/lib/backendai")
    base = os.environ.get("XDG_DATA_HOME") or Path("~/.local/share").expanduser()
    return Path(base) / "backendai"


@dataclass(frozen=True)
class DataFolder:
    """Names of the files and folders inside the data directory."""

    root: Path

    @property
    def keys(self) -> Path:
        """Certificates, tokens and secrets."""
        return self.root / "keys"

    @property
    def run(self) -> Path:
        """Locks and ports: what belongs to running processes."""
        return self.root / "run"

    @property
    def logs(self) -> Path:
        """What each process printed."""
        return self.root / "logs"

    @property
    def databases(self) -> Path:
        """The embedded databases."""
        return self.root / "db"

    @property
    def agent(self) -> Path:
        """The local agent's own data directory."""
        return self.root / "agent"

    @property
    def folders(self) -> Path:
        """People's virtual folders, unless the site keeps them elsewhere."""
        return self.root / "folders"

    @property
    def connection(self) -> Path:
        """What a JupyterHub needs to know to use the platform."""
        return self.root / "connection.json"

    @property
    def site_config(self) -> Path:
        """The site's own configuration, read by every process."""
        return self.root / "backendai_config.py"

    @property
    def state(self) -> Path:
        """Ports and other choices that stay the same across restarts."""
        return self.run / "state.json"

    def key(self, name: str) -> Path:
        """Return the path of one key, such as ``ca.crt``."""
        return self.keys / name

    def lock(self, process: str) -> Path:
        """Return the lock that *process* holds while it is alive."""
        return self.run / f"{process}.lock"

    def record(self, process: str) -> Path:
        """Return where it is noted how *process* was started."""
        return self.run / f"{process}.json"

    def log(self, process: str) -> Path:
        """Return the file that receives what *process* prints."""
        return self.logs / f"{process}.log"

    def create(self) -> None:
        """Make the folders that are missing, closed to other users."""
        for folder in (self.root, self.keys, self.run, self.logs, self.databases):
            make_private_folder(folder)
        make_private_folder(self.agent)
