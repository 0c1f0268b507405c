"""What tests need beyond Python: skipped with a reason here, a failure in CI.

A test says what it needs with a marker (``@pytest.mark.docker``). On somebody's
own machine a test whose need is not met is skipped; with ``CI=true`` it fails,
because there everything is provided and its absence means that nothing was tested.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from backendai_hub.launcher import machine

POSTGRES_URL = "BACKENDAI_TEST_POSTGRES_URL"
SESSION_IMAGE = "BACKENDAI_TEST_SESSION_IMAGE"
CHROMIUM = "BACKENDAI_TEST_CHROMIUM"


def find_chromium() -> str | None:
    """Return the browser's program, if there is one."""
    given = os.environ.get(CHROMIUM)
    return given or shutil.which("chromium") or shutil.which("google-chrome")


def _lacks_postgres() -> str:
    return "" if os.environ.get(POSTGRES_URL) else f"{POSTGRES_URL} is not set"


def _lacks_docker() -> str:
    if machine.docker_info() is None:
        return "no Docker Engine answers"
    if not os.environ.get(SESSION_IMAGE):
        return f"{SESSION_IMAGE} is not set: the session image was not built"
    return ""


def _lacks_bwrap() -> str:
    said = machine.try_bubblewrap()
    return "bubblewrap is not installed" if said is None else said


def _lacks_browser() -> str:
    return "" if find_chromium() else "Chromium is not installed"


def _lacks_node() -> str:
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return "node and npm are not installed"
    said = subprocess.run(
        [node, "--version"], capture_output=True, text=True, check=False
    )
    major, minor = (int(part) for part in said.stdout.strip("v\n").split(".")[:2])
    good = (major == 20 and minor >= 19) or (major, minor) >= (22, 12)
    return "" if good else f"node {said.stdout.strip()} is too old"


def _lacks_registry() -> str:
    found = shutil.which("docker-registry")
    return "" if found else "docker-registry is not installed"


@cache
def _try_mounting() -> str:
    """Try what tests of filesystems do: mount one, in a folder of nobody else's."""
    if os.geteuid() != 0:
        return "only root may mount"
    with tempfile.TemporaryDirectory(prefix="backendai-") as folder:
        mount = ["mount", "-t", "tmpfs", "tmpfs", folder]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"nothing can be mounted: {done.stderr.strip()}"
        subprocess.run(["umount", folder], check=True)
    return ""


def _lacks_btrfs() -> str:
    lack = _try_mounting()
    if lack:
        return lack
    if shutil.which("mkfs.btrfs") is None:
        return "btrfs-progs is not installed"
    if "btrfs" not in Path("/proc/filesystems").read_text("ascii").split():
        return "this kernel has no btrfs"
    return "" if Path("/dev/loop-control").exists() else "there are no loop devices"


def _lacks_ext4() -> str:
    lack = _try_mounting()
    if lack:
        return lack
    if shutil.which("mkfs.ext4") is None:
        return "e2fsprogs is not installed"
    if "ext4" not in Path("/proc/filesystems").read_text("ascii").split():
        return "this kernel has no ext4"
    return "" if Path("/dev/loop-control").exists() else "there are no loop devices"


def _lacks_gluster() -> str:
    lack = _try_mounting()
    if lack:
        return lack
    if shutil.which("glusterd") is None:
        return "glusterfs-server is not installed"
    return "" if Path("/dev/fuse").exists() else "there is no FUSE"


NEEDS: dict[str, Callable[[], str]] = {
    "postgres": _lacks_postgres,
    "docker": _lacks_docker,
    "bwrap": _lacks_bwrap,
    "browser": _lacks_browser,
    "node": _lacks_node,
    "registry": _lacks_registry,
    "mounts": _try_mounting,
    "btrfs": _lacks_btrfs,
    "ext4": _lacks_ext4,
    "gluster": _lacks_gluster,
}


@cache
def find_lack(need: str) -> str:
    """Say what is missing for *need*; empty when it is met."""
    return NEEDS[need]()


UNMET = "unmet need"
STOOD_IN = "need that something simpler stood in for"


def _fail_in_ci(need: str, lack: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"needs {need}: {lack}", pytrace=False)


def prefer(item: pytest.Item, *needs: str) -> None:
    """Say that *item* would rather have these: a failure in CI, told elsewhere."""
    for need in needs:
        lack = find_lack(need)
        if lack:
            item.user_properties.append((STOOD_IN, [need, lack]))
            _fail_in_ci(need, lack)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail in CI, before a test whose needs are not met is set up."""
    for need in NEEDS:
        if item.get_closest_marker(need) is None:
            continue
        lack = find_lack(need)
        if not lack:
            continue
        # Reports carry this from a worker to where the summary is written.
        item.user_properties.append((UNMET, [need, lack]))
        _fail_in_ci(need, lack)
        pytest.skip(f"needs {need}: {lack}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once what could not be tested here, or only with less, and why."""
    _tell(terminalreporter, "not tested on this machine", UNMET, "skipped", "error")
    # What was set up well has a report of its own that stands in no count.
    _tell(terminalreporter, "tested with something simpler", STOOD_IN, "")


def _tell(
    reporter: pytest.TerminalReporter, title: str, what: str, *categories: str
) -> None:
    found: Counter[tuple[str, str]] = Counter(
        (need, lack)
        for category in categories
        for report in reporter.stats.get(category, ())
        for name, said in getattr(report, "user_properties", ())
        if name == what and report.when == "setup"
        for need, lack in [said]
    )
    if not found:
        return
    reporter.section(title)
    for (need, lack), count in sorted(found.items()):
        reporter.write_line(f"{need:<10} {count} tests: {lack}")
