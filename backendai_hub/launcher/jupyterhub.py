"""JupyterHub as the launcher runs it: ``python -m backendai_hub.launcher.jupyterhub``.

Nothing of JupyterHub is changed. Before it is imported, one optional package that
takes longer to import than JupyterHub itself, and that only checks international
web addresses in event schemas, is left out.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from backendai_hub.client.lockfile import AlreadyRunningError, hold_lock
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.importing import imports

CONFIG_FILE = Path(__file__).with_name("jupyterhub_config.py")


def main(argv: list[str] | None = None) -> None:
    """Take the lock and become JupyterHub."""
    parser = argparse.ArgumentParser(prog="backendai-jupyterhub", description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--site-config", type=Path)
    options, rest = parser.parse_known_args(argv)
    folder = DataFolder(options.data_dir.resolve())
    try:
        hold_lock(folder.lock("hub"))
    except AlreadyRunningError as error:
        sys.exit(str(error))
    os.environ["BACKENDAI_DATA_DIR"] = str(folder.root)
    if options.site_config is not None:
        os.environ["BACKENDAI_SITE_CONFIG"] = str(options.site_config.resolve())

    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    with imports():
        # Imported here because the line above has to come first.
        from jupyterhub.app import JupyterHub  # noqa: PLC0415

    JupyterHub.launch_instance(["--config", str(CONFIG_FILE), *rest])


if __name__ == "__main__":
    main()
