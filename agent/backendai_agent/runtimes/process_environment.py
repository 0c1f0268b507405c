"""Prepared Python environments: what of the node a session needs to see of one.

The environment's own interpreter is asked, in isolated mode, where its parts lie:
a virtual environment needs the installation it was made from, and an editable
install needs the packages of its checkout (only those, never the whole checkout).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ASK: Final = r"""
import importlib.util, json, os, site, sys
module = sys.argv[1]
own = [os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)]
def outside(path):
    return not any(path == o or path.startswith(o + os.sep) for o in own)
seen = {os.path.realpath(sys.executable)} if outside(
    os.path.realpath(sys.executable)) else set()
for entry in sys.path:
    real = os.path.realpath(entry)
    if not entry or not os.path.isdir(real) or not outside(real):
        continue
    for name in os.listdir(real):
        part = os.path.join(real, name)
        package = os.path.isfile(os.path.join(part, "__init__.py"))
        if package or name.endswith((".dist-info", ".egg-info")):
            seen.add(os.path.realpath(part))
for folder in ("share/jupyter/labextensions", "share/jupyter/kernels"):
    for top, names, _ in os.walk(os.path.join(sys.prefix, folder)):
        for name in names:
            part = os.path.join(top, name)
            if os.path.islink(part) and outside(os.path.realpath(part)):
                seen.add(os.path.realpath(part))
try:
    found = not module or importlib.util.find_spec(module) is not None
except ImportError:
    found = False
system = sys.prefix == sys.base_prefix
if not system:
    with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8") as file:
        settings = [line.replace(" ", "").strip().lower() for line in file]
    system = "include-system-site-packages=true" in settings
print(json.dumps({
    "prefix": sys.prefix, "found": found,
    "paths": sorted({sys.prefix, sys.base_prefix, *own, *seen}),
    "base_python": getattr(sys, "_base_executable", "") or sys.executable,
    "version": "%d.%d" % sys.version_info[:2],
    "packages": [path for path in site.getsitepackages()
        if path.startswith(sys.prefix + os.sep) and os.path.isdir(path)
        ] if sys.prefix != sys.base_prefix else [],
    "system_packages": system,
}))
"""

_BROAD: Final = {"/", "/home", "/root", "/etc", "/var", "/run", "/tmp", "/proc", "/sys"}  # noqa: S108 - named to be refused


class EnvironmentUnusableError(Exception):
    """A prepared environment cannot serve sessions; the message says why."""


@dataclass(frozen=True)
class Environment:
    """A prepared environment and the paths that make it work.

    ``base_python`` is the interpreter it was made from, ``version`` as "3.11".
    ``packages`` are a virtual environment's own folders of packages, and
    ``system_packages`` tells whether it shows those of its base as well.
    """

    name: str
    prefix: str
    python: str
    paths: tuple[str, ...]
    base_python: str
    version: str
    packages: tuple[str, ...] = ()
    system_packages: bool = False


def ask_environment(name: str, prefix: str, *, module: str) -> Environment:
    """Ask the environment at *prefix* what it needs, and whether it has *module*.

    Raises :class:`EnvironmentUnusableError` in words for the operator.
    """
    python = Path(prefix) / "bin" / "python"
    if not python.exists():
        python = python.with_name("python3")
    try:
        asked = subprocess.run(  # noqa: S603 - an environment the operator named
            [str(python), "-I", "-c", _ASK, module],
            capture_output=True,
            timeout=60,
            check=False,
        )
        answer = json.loads(asked.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise EnvironmentUnusableError(
            f"environment {name}: {python} does not answer: {error}"
        ) from error
    if not answer["found"]:
        raise EnvironmentUnusableError(
            f"environment {name}: {prefix} has no {module};"
            f" install it there with: {python} -m pip install 'backendai-hub[lab]'"
        )
    return Environment(
        name,
        prefix,
        str(python),
        _reduce(answer["paths"]),
        base_python=answer["base_python"],
        version=answer["version"],
        packages=tuple(answer["packages"]),
        system_packages=answer["system_packages"],
    )


def _reduce(paths: Iterable[str]) -> tuple[str, ...]:
    """Drop what lies in another path or in ``/usr``, and what is far too broad."""
    kept: list[str] = []
    for path in sorted(set(paths)):
        covered = any(path == k or path.startswith(f"{k}/") for k in ("/usr", *kept))
        if not covered and path not in _BROAD:
            kept.append(path)
    return tuple(kept)
