"""Nothing but the safe file system opens paths that users chose.

Where files of users are worked on, every other call that takes a path is named here,
with what it is about: a path of the site's configuration, a name that we chose, or a
descriptor that is open already.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "backendai_hub/storage/**/*.py",
    "backendai_hub/handlers/*.py",
    "backendai_hub/operations/file*.py",
    "backendai_hub/operations/folder*.py",
    "backendai_hub/operations/upload*.py",
    "agent/backendai_agent/mounts*.py",
    "agent/backendai_agent/runtimes/places.py",
)
OF_OS = frozenset(
    """
    access chdir chmod chown getxattr lchown link listdir listxattr lstat
    makedirs mkdir mkfifo mknod open readlink remove removedirs rename renames
    replace rmdir scandir setxattr stat statvfs symlink truncate unlink utime
    walk fwalk
    """.split()  # noqa: SIM905 - a list of this length is read more easily
)
OF_PATHS = frozenset(
    """
    glob hardlink_to is_dir is_file is_symlink iterdir mkdir read_bytes
    read_text readlink resolve rglob rmdir symlink_to touch unlink write_bytes
    write_text exists chmod lstat samefile
    """.split()  # noqa: SIM905 - a list of this length is read more easily
)
# Why a call is harmless there.
OPEN_ALREADY = "it reads what is open already"
SITE = "a path that the site's configuration names"
KERNEL = "a file of the kernel's or of the machine's own"
OUR_NAME = "a name that we chose, in a folder that is open, outside users' folders"
OUR_FOLDER = "a folder of the agent's own"
ONE_NAME = "one name, checked, in a folder that is open; what it makes is opened safely"
OUR_PAGES = "files of the program itself"

ALLOWED = {
    "agent/backendai_agent/mounts.py": {
        "Path.is_dir": OUR_FOLDER,
        "Path.iterdir": OUR_FOLDER,
        "Path.mkdir": OUR_FOLDER,
        "Path.rmdir": OUR_FOLDER,
    },
    "agent/backendai_agent/mounts_kernel.py": {
        "Path.resolve": OUR_FOLDER,
        "Path.write_text": KERNEL,
        "os.open": KERNEL,
    },
    "agent/backendai_agent/mounts_program.py": {
        "Path.mkdir": OUR_FOLDER,
        "os.mkdir": ONE_NAME,
        "os.open": SITE,
        "os.statvfs": OPEN_ALREADY,
    },
    "agent/backendai_agent/runtimes/places.py": {
        "os.chmod": ONE_NAME,
        "os.chown": ONE_NAME,
        "os.mkdir": ONE_NAME,
        "os.readlink": ONE_NAME,
        "os.symlink": ONE_NAME,
    },
    "backendai_hub/handlers/console.py": {
        "Path.is_file": OUR_PAGES,
        "Path.read_text": OUR_PAGES,
    },
    "backendai_hub/handlers/matrix.py": {
        "Path.is_file": OUR_PAGES,
        "Path.read_text": OUR_PAGES,
        "Path.write_text": OUR_PAGES,
    },
    "backendai_hub/handlers/spec.py": {
        "Path.is_file": OUR_PAGES,
        "Path.read_text": OUR_PAGES,
        "Path.write_text": OUR_PAGES,
    },
    "backendai_hub/storage/drivers/cephfs.py": {
        "os.getxattr": OPEN_ALREADY,
        "os.setxattr": OPEN_ALREADY,
    },
    "backendai_hub/storage/drivers/dir.py": {
        "Path.mkdir": SITE,
        "os.mkdir": OUR_NAME,
        "os.rmdir": OUR_NAME,
    },
    "backendai_hub/storage/drivers/fake.py": {"Path.read_bytes": SITE},
    "backendai_hub/storage/drivers/gluster.py": {"shutil.which": KERNEL},
    "backendai_hub/storage/drivers/mounts.py": {
        "Path.read_text": KERNEL,
        "Path.resolve": SITE,
    },
    "backendai_hub/storage/durable.py": {
        "open": OPEN_ALREADY,
        "os.rename": OUR_NAME,
        "os.scandir": OPEN_ALREADY,
    },
    "backendai_hub/storage/folders.py": {"os.rmdir": OUR_NAME},
    "backendai_hub/storage/once.py": {"Path.read_text": KERNEL, "os.unlink": ONE_NAME},
    "backendai_hub/storage/places.py": {
        "Path.read_text": KERNEL,
        "os.mkdir": OUR_NAME,
        "os.open": SITE,
    },
    "backendai_hub/storage/process.py": {
        "Path.glob": KERNEL,
        "Path.read_text": KERNEL,
    },
    "backendai_hub/storage/scopes.py": {"os.rmdir": OUR_NAME},
    "backendai_hub/storage/uploads.py": {"os.unlink": OUR_NAME},
}


def modules() -> list[Path]:
    return sorted(found for room in ROOMS for found in ROOT.glob(room))


def name_of(call: ast.Call) -> str | None:
    """Name a call that takes a path of the file system; None for any other."""
    function = call.func
    if isinstance(function, ast.Name):
        return "open" if function.id == "open" else None
    if not isinstance(function, ast.Attribute):
        return None
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    if owner == "os":
        return f"os.{function.attr}" if function.attr in OF_OS else None
    if owner in {"shutil", "zipfile", "tarfile", "glob", "tempfile"}:
        return f"{owner}.{function.attr}"
    return f"Path.{function.attr}" if function.attr in OF_PATHS else None


def calls_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and (name := name_of(node)):
            yield name


@pytest.mark.parametrize(
    "module", [str(found.relative_to(ROOT)) for found in modules()]
)
def test_a_module_takes_paths_only_as_it_is_told_here(module):
    found = set(calls_in((ROOT / module).read_text()))
    surplus = found - set(ALLOWED.get(module, ()))
    assert not surplus, (
        f"{module}: use backendai_hub.safefs instead of {sorted(surplus)}, or tell "
        "here why its paths are never a user's"
    )


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("open(path)", "open"),
        ("os.open(path, 0)", "os.open"),
        ("os.rename(a, b)", "os.rename"),
        ("shutil.copytree(a, b)", "shutil.copytree"),
        ("zipfile.ZipFile(a)", "zipfile.ZipFile"),
        ("(root / path).read_bytes()", "Path.read_bytes"),
        ("Path(path).unlink()", "Path.unlink"),
        ("text.replace(a, b)", None),
        ("tree.open_read(parts)", None),
        ("os.close(opened)", None),
    ],
)
def test_calls_that_take_a_path_are_known_as_such(line, name):
    assert list(calls_in(line)) == ([name] if name else [])
