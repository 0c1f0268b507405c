"""The same stories again, told by an agent that is not root."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.bwrap

HERE = Path(__file__).parent
UID = 201987
STORIES = (
    *("attacks", "lifecycle", "limits", "mounts_plain", "network", "no_isolation"),
    "restart",
)
TUN = 'mount -t tmpfs tun /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec "$@"'
"""Ordinary distributions let everybody open the device; only ours shall here."""


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder of that user's; pytest's own are closed to all others."""
    with tempfile.TemporaryDirectory(prefix="backendai-") as folder:
        os.chown(folder, UID, UID)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("story", STORIES)
def test_a_plain_user_can_tell_it_too(story: str, home: Path) -> None:
    python = Path("/usr/bin/python3")
    wanted = f"{sys.version_info.major}.{sys.version_info.minor}"
    asked = [str(python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    if said.strip() != wanted:
        pytest.skip(f"a plain user needs /usr/bin/python3 to be Python {wanted}")
    told = subprocess.run(
        [
            *("unshare", "--mount", "sh", "-c", TUN, "sh"),
            *("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"),
            *("--inh-caps=-all", str(python), "-m", "pytest", "-q", "-x"),
            *("-p", "no:cacheprovider", f"--basetemp={home}/t", "--color=no"),
            str(HERE / f"test_process_{story}.py"),
        ],
        env={
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(home),
            "PYTHONPATH": ":".join(path for path in sys.path if path),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert told.returncode == 0, told.stdout[-6000:] + told.stderr[-2000:]
    assert "passed" in told.stdout
