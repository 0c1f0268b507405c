"""Sessions without a sandbox, on nodes where the agent is root.

They are users of their own who own nothing, as in a sandbox; but nothing is hidden
from them, so their folders must lie where such a user can go. The agent's own folder
is closed to everybody, and stays so: the folder of the containers is put elsewhere,
and a link says where.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable
from pathlib import Path

from backendai_agent.runtimes.base import RuntimeFailure
from backendai_agent.runtimes.process_sandbox import leave_root


def place_containers(folder: Path, elsewhere: Path) -> None:
    """Make *folder* a link into *elsewhere*, where sessions can go.

    Raises RuntimeFailure with the path that is in the way.
    """
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    target = elsewhere / name
    for path in (elsewhere, target):
        path.mkdir(mode=0o711, parents=True, exist_ok=True)
        if path.is_symlink() or path.stat().st_uid != os.geteuid():
            raise RuntimeFailure(f"{path} belongs to somebody else")
        path.chmod(0o711)
    closed = find_closed([str(target)], need=stat.S_IXOTH)
    if closed:
        raise RuntimeFailure(
            f"sessions without isolation run as users that own nothing here, and"
            f" cannot go through {closed}; open it, or set"
            " ProcessRuntime.open_folder to a place that everybody can reach"
        )
    if folder.is_symlink() and folder.resolve() == target.resolve():
        return
    try:
        folder.unlink() if folder.is_symlink() else folder.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise RuntimeFailure(
            f"there are containers in {folder} from a time when this node could"
            f" isolate them, and sessions without isolation cannot be kept beside"
            f" them: end those first ({error.strerror})"
        ) from error
    folder.symlink_to(target)


def try_plainly(argv: list[str], uid: int) -> str:
    """Run *argv* as *uid*; returns its last words if it fails, else nothing.

    A shell comes first: what setpriv starts itself, it finds with the power of root.
    """
    try:
        done = subprocess.run(  # noqa: S603 - built by us
            [*leave_root(uid), "/bin/sh", "-c", 'exec "$@"', "sh", *argv],
            env={"PATH": os.defpath},
            cwd="/",
            capture_output=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return said[-1][:300] if said else f"it ended with code {done.returncode}"


def find_closed(paths: Iterable[str], *, need: int = stat.S_IROTH) -> str:
    """Return the first thing on the way to *paths* that is closed to strangers.

    *need* is the right that strangers need at the end of each way. The answer is
    in words ("/root (mode 0700)"), or empty.
    """
    ends = [end for p in paths for end in (Path(p).absolute(), Path(p).resolve())]
    for end in ends:
        for step in (*reversed(end.parents), end):
            mode = step.stat().st_mode
            wanted = need if step == end else stat.S_IXOTH
            if stat.S_ISDIR(mode):
                wanted |= stat.S_IXOTH
            if mode & wanted != wanted:
                return f"{step} (mode {stat.S_IMODE(mode):04o})"
    return ""


def open_way(container: Path, uid: int) -> None:
    """Let *uid* pass through the folder of its container, and look at nothing."""
    os.chown(container, 0, uid)
    container.chmod(0o710)
