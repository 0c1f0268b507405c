"""Makes the environments that sessions run in.

``build NAME`` makes a container image from ``images/NAME``; ``prepare FOLDER`` makes
a virtual environment for the runtime without containers; ``lock NAME`` chooses
versions anew. Our own code gets into an environment by copying the few packages that
a session imports, from wherever they lie, so nothing has to be packed first.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

BASE: Final = "backendai/base:bookworm"
TAGS: Final = {"jupyterlab": "backendai/jupyterlab:4"}
PYTHON_VERSION: Final = "3.11.2"
"""The oldest Python a lock must work with: Debian 12's."""

UNWANTED: Final = ("rfc3987-syntax", "lark")
"""Grammars that jsonschema would compile at every start, and does well without."""

SITE: Final = (
    "backendai_lab",
    "backendai_hub/__init__.py",
    "backendai_hub/api",
    "backendai_hub/client",
    "backendai_hub/core",
)
"""What a session imports of us; the service's own code stays outside."""

LAB_ASSETS: Final = "share/jupyter/labextensions/@backendai/lab"
PIP_SETTINGS: Final = (
    "INDEX_URL",
    "EXTRA_INDEX_URL",
    "TRUSTED_HOST",
    "DEFAULT_TIMEOUT",
)


class EnvironmentFailure(Exception):  # noqa: N818 - it is what happened
    """An environment could not be made; the message says why and what to do."""


def say(line: str) -> None:
    """Tell whoever waits how far we are."""
    sys.stderr.write(f"→ {line}\n")
    sys.stderr.flush()


# -- what goes in ----------------------------------------------------------------


def package_folder(name: str) -> Path:
    """Return the folder of the importable package *name*."""
    spec = find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise EnvironmentFailure(f"the package {name} is not installed")
    return Path(places[0])


def recipe_folder(name: str) -> Path:
    """Return the folder with the Dockerfile and the lock of *name*."""
    here = Path(__file__).resolve().parent
    for images in (here / "images_data", here.parent.parent / "images"):
        if (images / name).is_dir():
            return images / name
    raise EnvironmentFailure(f"there is no recipe for an environment {name!r}")


def copy_site(target: Path) -> None:
    """Copy the packages that a session imports into the folder *target*."""
    skip = shutil.ignore_patterns("__pycache__", "labextension", "node_modules")
    for entry in SITE:
        package, _, inside = entry.partition("/")
        source = package_folder(package) / inside
        destination = target / entry
        destination.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, destination, ignore=skip, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, destination)


def copy_prefix(target: Path) -> None:
    """Copy what Jupyter looks for under ``sys.prefix`` into the folder *target*."""
    lab = package_folder("backendai_lab")
    shutil.copytree(lab / "prefix", target, dirs_exist_ok=True)
    for built in (
        lab / "labextension",
        Path(sys.prefix) / LAB_ASSETS,
    ):
        if (built / "package.json").is_file():
            shutil.copytree(built, target / LAB_ASSETS, dirs_exist_ok=True)
            return
    say("the JupyterLab panels are not built; the environment will lack them")


def pip_settings(environ: dict[str, str]) -> str:
    """Write the caller's settings of pip as a ``pip.conf``."""
    lines = ["[global]"]
    lines += [
        f"{name.lower().replace('_', '-')} = {value}"
        for name in PIP_SETTINGS
        if (value := environ.get(f"PIP_{name}"))
    ]
    return "\n".join(lines) + "\n"


def fill_context(context: Path, recipe: Path) -> None:
    """Put all that building *recipe* needs into the folder *context*."""
    for name in ("Dockerfile", "requirements.txt"):
        shutil.copyfile(recipe / name, context / name)
    copy_site(context / "site")
    copy_prefix(context / "prefix")
    build = context / "build"
    build.mkdir()
    (build / "pip.conf").write_text(pip_settings(dict(os.environ)))
    bundle = os.environ.get("PIP_CERT")
    (build / "ca.crt").write_bytes(Path(bundle).read_bytes() if bundle else b"")


def pack(folder: Path) -> io.BytesIO:
    """Pack *folder* for the engine: owned by root, and the same from every machine."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = 0
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(folder, arcname=".", filter=plain)
    packed.seek(0)
    return packed


# -- building an image -----------------------------------------------------------


def build(name: str, *, tag: str, base: str) -> str:
    """Build the image *tag* from the recipe *name* on *base*; returns its id."""
    import docker  # noqa: PLC0415 - only images need it
    import docker.errors  # noqa: PLC0415

    recipe = recipe_folder(name)
    try:
        api = docker.APIClient(version="auto", timeout=3600)
    except docker.errors.DockerException as error:
        raise EnvironmentFailure(
            f"the container engine does not answer: {error}"
        ) from error
    try:
        _ensure_base(api, base, recipe.parent / "base" / "build.sh")
        with tempfile.TemporaryDirectory(prefix="backendai-image-") as folder:
            fill_context(Path(folder), recipe)
            context = pack(Path(folder))
        say(f"building {tag}; this takes a minute or two")
        steps = api.build(
            fileobj=context,
            custom_context=True,
            encoding="identity",
            tag=tag,
            buildargs={"BASE": base},
            network_mode="host",
            rm=True,
            forcerm=True,
            decode=True,
        )
        for line in narrate(steps):
            say(line)
        made = api.inspect_image(tag)  # type: ignore[no-untyped-call]
        say(f"{tag} is ready ({made['Size'] / 1e6:.0f} MB)")
        return str(made["Id"])
    except docker.errors.DockerException as error:
        raise EnvironmentFailure(f"the container engine refused: {error}") from error
    finally:
        api.close()


def _ensure_base(api: Any, base: str, script: Path) -> None:
    if api.images(name=base):
        return
    if base != BASE:
        raise EnvironmentFailure(f"this node does not have the image {base}; pull it")
    say(f"making {base} with debootstrap")
    if subprocess.run([str(script), base], check=False).returncode != 0:  # noqa: S603
        raise EnvironmentFailure(f"{script} failed; its last words are above")


def narrate(steps: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Yield the steps of a build as lines; raises what the engine reports at last."""
    printed: list[str] = []
    for step in steps:
        if "error" in step:
            tail = "".join(printed[-20:]).strip()
            raise EnvironmentFailure(f"{step['error'].strip()}\n{tail}".strip())
        text = step.get("stream", "")
        printed.append(text)
        if text.startswith("Step "):
            yield text.strip().splitlines()[0][:100]


# -- preparing a folder ----------------------------------------------------------


def prepare(folder: Path, *, name: str) -> Path:
    """Make *folder* a virtual environment like the image's and return its Python.

    Where the running Python already has all that a session needs, it is that.
    """
    needed = ("jupyterlab", "jupyterhub", "ipykernel", "backendai_lab")
    if all(find_spec(package) is not None for package in needed):
        return Path(sys.executable)
    lock = recipe_folder(name) / "requirements.txt"
    say(f"making a virtual environment in {folder}")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-deps"]
    done = subprocess.run(  # noqa: S603
        [*command, "--require-hashes", "-r", str(lock)], check=False
    )
    if done.returncode != 0:
        raise EnvironmentFailure(f"pip could not install {lock}; see above")
    variables = {"base": str(folder), "platbase": str(folder)}
    copy_site(Path(sysconfig.get_path("purelib", "venv", variables)))
    copy_prefix(folder)
    return python


def lock(name: str) -> None:
    """Choose the versions of an environment anew and write them down with hashes."""
    recipe = recipe_folder(name)
    leave_out = [word for each in UNWANTED for word in ("--no-emit-package", each)]
    command = [
        *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--upgrade"),
        *("--generate-hashes", "--python-version", PYTHON_VERSION),
        *("--no-emit-index-url", "--no-emit-find-links", "--no-header"),
        *("--no-annotate", *leave_out),
        *(str(recipe / "requirements.in"), "-o", str(recipe / "requirements.txt")),
    ]
    if subprocess.run(command, check=False).returncode != 0:  # noqa: S603
        raise EnvironmentFailure("uv could not choose versions; see above")


# -- the command -----------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m backendai_agent.environments",
        description="Make the environments that sessions run in.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    building = verbs.add_parser("build", help="build a container image")
    building.add_argument("name", choices=sorted(TAGS))
    building.add_argument("--tag", help="what to call it (default: the usual name)")
    building.add_argument("--json", action="store_true", help="print what was made")
    building.add_argument("--base", default=BASE, help="image with Python ≥ 3.11")
    preparing = verbs.add_parser("prepare", help="make a virtual environment")
    preparing.add_argument("folder", type=Path)
    locking = verbs.add_parser("lock", help="choose versions anew")
    locking.add_argument("name", choices=sorted(TAGS))
    given = parser.parse_args(argv)
    try:
        match given.verb:
            case "build":
                tag = given.tag or TAGS[given.name]
                digest = build(given.name, tag=tag, base=given.base)
                if given.json:
                    made = {"reference": tag, "id": digest}
                    sys.stdout.write(f"{json.dumps(made)}\n")
            case "prepare":
                sys.stdout.write(f"{prepare(given.folder, name='jupyterlab')}\n")
            case "lock":
                lock(given.name)
    except EnvironmentFailure as failure:
        sys.exit(f"✗ {failure}")


if __name__ == "__main__":
    main()
