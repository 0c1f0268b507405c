"""What `make up` installs beside the Python packages; all around it is faked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "requirements" / "install"
TOOLS = ("sh", "cat", "cut", "dirname", "grep", "mkdir", "sha256sum")


class Checkout:
    """A checkout with nothing to install, on a machine with few programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "programs"
        self.asked = folder / "asked"
        for name in ("requirements", ".venv/bin", ".venv/stamps", "programs"):
            (folder / name).mkdir(parents=True)
        shutil.copy(SCRIPT, folder / "requirements")
        for name in ("build", "run", "test"):
            (folder / f"requirements/{name}.txt").touch()
        for name in ("pyproject.toml", "hatch_build.py"):
            (folder / name).touch()
        for name in TOOLS:
            (self.programs / name).symlink_to(shutil.which(name) or name)
        self.add("id", "echo 0")
        self.add("apt-get", f'echo "$@" >> {self.asked}')
        self._write(folder / ".venv/bin/python", "exit 0")

    def add(self, name: str, lines: str = "exit 0") -> None:
        self._write(self.programs / name, lines)

    def _write(self, path: Path, lines: str) -> None:
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)

    def install(self, which: str) -> list[str]:
        """Install the set *which*; returns what was said."""
        done = subprocess.run(
            [str(self.folder / "requirements/install"), which],
            env={"PATH": str(self.programs), "PAGES": "no"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stderr.splitlines()

    @property
    def wanted(self) -> str:
        return self.asked.read_text() if self.asked.exists() else ""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_root_gets_what_keeps_sessions_apart_once_and_in_one_line(checkout: Checkout):
    said = checkout.install("run")
    assert [line for line in said if "bubblewrap" in line] == [
        "→ installing bubblewrap and slirp4netns"
    ]
    assert checkout.wanted.endswith(" bubblewrap slirp4netns\n")
    before = checkout.wanted
    checkout.install("run")
    assert checkout.wanted == before


def test_nothing_is_installed_that_is_there(checkout: Checkout):
    checkout.add("bwrap")
    checkout.add("slirp4netns")
    checkout.install("run")
    assert checkout.wanted == ""


def test_others_than_root_and_other_sets_change_nothing_on_the_machine(
    checkout: Checkout,
):
    checkout.install("test")
    checkout.add("id", "echo 1000")
    checkout.install("run")
    assert checkout.wanted == ""


def test_without_a_mirror_it_goes_on_and_says_what_to_do(checkout: Checkout):
    checkout.add("apt-get", "exit 100")
    said = checkout.install("run")
    assert any("backendai doctor" in line for line in said)
    assert said[-1] == "→ installing the project itself"
