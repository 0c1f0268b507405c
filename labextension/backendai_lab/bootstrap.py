"""Run the owner's bootstrap script, once, before the session's server starts.

What it prints goes to ``.backendai/bootstrap.log`` in the home, and its last part to
the session's log. A script that fails, or does not end in time, ends the session.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from backendai_lab.dotfiles import OWN, LeftAloneError, open_folder

SCRIPT: Final = "bootstrap.sh"
LOG: Final = "bootstrap.log"
SHELLS: Final = ("/bin/bash", "/bin/sh")
GRACE_SECONDS: Final = 5.0
"""How long a script that took too long has to clean up."""
SHOWN_BYTES: Final = 64 << 10
"""How much of the output's end is put into the session's log."""
LINE_LENGTH: Final = 300

_LOG_FLAGS: Final = (
    os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
)
_COLOURS: Final = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class BootstrapError(Exception):
    """The script did not do its work; the message is for its owner."""


def run_bootstrap(
    script: str,
    *,
    home: Path,
    run_dir: Path,
    seconds: float,
    environ: Mapping[str, str] = os.environ,
    grace_seconds: float = GRACE_SECONDS,
) -> None:
    """Run *script* in *home* and wait for its end, *seconds* at most.

    Processes that it leaves in the background go on. Raises :class:`BootstrapError`
    unless it ends with exit code 0.
    """
    path = run_dir / SCRIPT
    words = [*find_interpreter(script), str(path)]
    with _open_log(home, run_dir) as log:
        _write_script(path, script)
        try:
            process = subprocess.Popen(  # noqa: S603 - the owner's own program
                words,
                cwd=home,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            ended = _wait(process, seconds, grace_seconds)
        except OSError as error:
            raise BootstrapError(
                f"the bootstrap script cannot be run by {words[0]}: {error.strerror}"
            ) from error
        finally:
            path.unlink(missing_ok=True)
        printed = _read_end(log)
    sys.stdout.buffer.write(printed)
    sys.stdout.flush()
    failure = _explain(process.returncode) if ended else _too_long(seconds)
    if failure:
        last = last_line(printed)
        raise BootstrapError(f"{failure}: {last}" if last else failure)


def find_interpreter(script: str) -> list[str]:
    """Find what to run *script* by, from its first line as the kernel would.

    The script itself is never made executable, so a file system that executes
    nothing is no obstacle.
    """
    first, _, _ = script.partition("\n")
    if first.startswith("#!"):
        words = first[2:].strip().split(maxsplit=1)
        if words:
            return words
    return [next((s for s in SHELLS if Path(s).exists()), SHELLS[-1])]


def _open_log(home: Path, run_dir: Path) -> BinaryIO:
    """Open what the script prints into; an odd home keeps nobody from starting."""
    try:
        with open_folder(home, [OWN]) as folder:
            log = os.fdopen(os.open(LOG, _LOG_FLAGS, 0o600, dir_fd=folder), "rb")
        if stat.S_ISREG(os.fstat(log.fileno()).st_mode):
            return log
        log.close()
    except (OSError, LeftAloneError):
        pass
    return os.fdopen(os.open(run_dir / LOG, _LOG_FLAGS, 0o600), "rb")


def _write_script(path: Path, script: str) -> None:
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(script.encode())


def _wait(
    process: subprocess.Popen[bytes], seconds: float, grace_seconds: float
) -> bool:
    """Wait for the script; ends it, and all it started, if it takes too long."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace_seconds)
        _signal(process, signal.SIGKILL)
        process.wait()
        return False
    return True


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _read_end(log: BinaryIO) -> bytes:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - SHOWN_BYTES))
    return log.read(SHOWN_BYTES)


def _explain(code: int) -> str:
    if code == 0:
        return ""
    if code > 0:
        return f"the bootstrap script ended with exit code {code}"
    if code == -signal.SIGKILL:
        return "the bootstrap script was killed, perhaps for lack of memory"
    return f"the bootstrap script was ended by signal {-code}"


def _too_long(seconds: float) -> str:
    return f"the bootstrap script took longer than {seconds:g} seconds"


def last_line(printed: bytes) -> str:
    """Return the last line that says anything, without colours and controls."""
    text = _COLOURS.sub(b"", printed).decode(errors="replace")
    lines = ("".join(c for c in line if c.isprintable()) for line in text.splitlines())
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][:LINE_LENGTH] if said else ""
