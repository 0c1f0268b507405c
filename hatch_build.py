"""Packs the built pages into the wheel.

The pages are built by npm beforehand (`make` does it); a wheel without them is
refused, an editable install takes what there is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CONSOLE = "backendai_hub/static/console"
LAB = "labextension/backendai_lab/labextension"


class PagesBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the JupyterLab panels where JupyterLab looks for them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Check that the pages are there, and say where they go."""
        root = Path(self.root)
        console = root / CONSOLE / "index.html"
        lab = root / LAB / "package.json"
        if version != "editable":
            for built in (console, lab):
                if not built.exists():
                    raise FileNotFoundError(
                        f"{built} is missing: run `npm ci && npm run build` in"
                        " labextension first"
                    )
        if lab.exists():
            name = json.loads(lab.read_text("utf-8"))["name"]
            target = f"share/jupyter/labextensions/{name}"
            build_data["shared_data"][LAB] = target
