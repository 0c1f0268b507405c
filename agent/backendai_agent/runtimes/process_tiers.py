"""Find out how well sessions can be shut off from one another on this node.

Nothing is concluded from versions or settings: a sandbox is really started, with
all that a session's has, and only what worked is promised.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from backendai_agent.runtimes.process_sandbox import (
    HOME,
    INFO_FD,
    INNER_UID,
    OPTIONS_FD,
    SECCOMP_FD,
    STARTED_FD,
    Sandbox,
    build_command,
    look_at_host,
    synthesise_etc,
)
from backendai_agent.runtimes.process_seccomp import build_filter
from backendai_hub.core.clusters import MAIN_HOST

NAMESPACES: Final = "namespaces"
NONE: Final = "none"
_WRAPPER: Final = (
    f'exec "$@" {STARTED_FD}>/dev/null {INFO_FD}>/dev/null {OPTIONS_FD}<options'
    f" {SECCOMP_FD}<seccomp"
)


@dataclass(frozen=True)
class Tier:
    """What the sandboxes of this node can do."""

    name: str
    template: Sandbox | None = None
    seccomp: bytes | None = None
    notes: tuple[str, ...] = ()

    @property
    def isolated(self) -> bool:
        """Tell whether sessions have a sandbox at all."""
        return self.template is not None

    @property
    def privileged(self) -> bool:
        """Tell whether the sandbox is made by root, for a user of its own."""
        return self.template is not None and self.template.uid is not None


@dataclass(frozen=True)
class Trial:
    """What a trial in a sandbox showed: empty *failure* means it worked."""

    failure: str = ""


def probe_tier(folder: Path, *, bwrap: str, uid: int) -> Tier:
    """Return the best tier that really works; *folder* may be written below.

    *uid* is a host user sessions may run as, when the agent is root.
    """
    program = shutil.which(bwrap)
    if program is None:
        return Tier(NONE, notes=(f"bubblewrap is not installed ({bwrap})",))
    privileged = os.geteuid() == 0
    seccomp = build_filter(os.uname().machine)
    best = Sandbox(
        bwrap=program,
        host=look_at_host(),
        uid=uid if privileged else None,
        work=Path(),
        run=Path(),
        etc=Path(),
        seccomp=seccomp is not None,
    )
    notes: list[str] = []
    if seccomp is None:
        notes.append(f"no system call filter for {os.uname().machine}")
    failure = ""
    for candidate, note in _candidates(best):
        failure = try_sandbox(candidate, folder, seccomp, ["/bin/true"]).failure
        if not failure:
            kept = [*notes, note] if note else notes
            return Tier(NAMESPACES, candidate, seccomp, tuple(kept))
    return Tier(NONE, notes=(f"no sandbox can be started: {failure}",))


def _candidates(best: Sandbox) -> list[tuple[Sandbox, str]]:
    older = "bubblewrap is old: private /tmp and /dev/shm have no size of their own"
    nested = "bubblewrap is old: user namespaces are refused by the call filter only"
    candidates = [(best, "")]
    if best.uid is None and best.seccomp:
        candidates.append((replace(best, disable_userns=False), nested))
    last = replace(best, disable_userns=False, sized_tmpfs=False)
    return [*candidates, (last, older)]


def try_sandbox(
    template: Sandbox, folder: Path, seccomp: bytes | None, argv: Sequence[str]
) -> Trial:
    """Run *argv* in a sandbox like *template* and see whether it succeeds."""
    with tempfile.TemporaryDirectory(prefix=".probe-", dir=folder) as temporary:
        place = Path(temporary)
        work, run, etc = place / "work", place / "run", place / "etc"
        for path in (work, run, etc):
            path.mkdir(mode=0o700)
        if template.uid is not None:
            os.chown(work, template.uid, template.uid)
        write_etc(etc, template.uid, nameservers=())
        sandbox = replace(
            template,
            work=work,
            run=run,
            etc=etc,
            tmp_bytes=1 << 20,
            shm_bytes=1 << 20,
            environ={"HOME": HOME},
        )
        command = build_command(sandbox, argv)
        (place / "seccomp").write_bytes(seccomp or b"")
        (place / "options").write_bytes(command.options)
        return _run(command.words, place)


def _run(command: Sequence[str], place: Path) -> Trial:
    try:
        done = subprocess.run(  # noqa: S603 - built by us
            ["/bin/sh", "-c", _WRAPPER, "sh", *command],
            env={"PATH": os.defpath},
            cwd=place,
            capture_output=True,
            timeout=30,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Trial(str(error))
    if done.returncode == 0:
        return Trial()
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return Trial(said[-1][:300] if said else f"it ended with code {done.returncode}")


def write_etc(
    folder: Path,
    uid: int | None,
    *,
    gid: int | None = None,
    nameservers: Sequence[str],
    hostname: str = MAIN_HOST,
    others: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the files of ``/etc`` that are made for one session.

    Its group has its user's number unless *gid* says otherwise.
    """
    shell = find_shell()
    inside = INNER_UID if uid is None else uid
    files = synthesise_etc(
        uid=inside,
        gid=inside if gid is None else gid,
        hostname=hostname,
        nameservers=nameservers,
        shell=shell,
        others=others,
    )
    for name, content in files.items():
        path = folder / name
        path.write_text(content, encoding="utf-8")
        path.chmod(0o644)


def find_shell() -> str:
    """Return the shell that sessions get in their terminals."""
    return "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
