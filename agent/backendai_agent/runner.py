"""Run the command of one batch session: ``python runner.py``, inside its container.

The agent puts this file into the container's ``run`` folder, so that every image with
a Python can run batch sessions. It knows nothing but the standard library and, where
there are dotfiles or a bootstrap script, the ``backendai_lab`` of the image.

It takes up the activation (which removes it, so that nobody starts the command a second
time), prepares the home, says that it runs, starts the command and waits. What became
of it is left in ``outcome.json``. In a session of several containers the command begins
when all of them are there; those that have none are only there. It ends the command
when its time is over, and when the *lease* has run out: the file ``lease`` holds a
moment of the machine's own clock, which the agent moves on whenever the service has
heard of this node. A command that nobody hears of may be started elsewhere, so it must
not run here any more.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

SHELLS = ("/bin/bash", "/bin/sh")
LOOK_SECONDS = 1.0
TURN_SECONDS = 0.2
LEASE_GRACE_SECONDS = 5.0
TIMEOUT_CODE = 124
LEASE_CODE = 75
LISTENED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}


class Job:
    """One command, from its start to its end."""

    def __init__(self, given: dict[str, Any], run_dir: Path) -> None:
        self.run_dir = run_dir
        self.command = str(given["command"])
        self.timeout = float(given.get("timeout_seconds", 0))
        self.lease_seconds = float(given.get("lease_seconds", 0))
        self.grace = float(given.get("grace_seconds", 10))
        self.lease_until = float(given.get("lease_until", 0))
        self.idle = bool(given.get("idle"))
        self.waits = bool(given.get("waits"))
        self.stopping_until = 0.0
        self.code: int | None = None
        self.reason = ""
        self.lost = False

    def prepare(self, given: dict[str, Any], home: Path) -> str:
        """Prepare the home for as long as the lease lasts; returns what failed."""
        if not self.lease_seconds:
            return prepare(given, home, self.run_dir)
        if self._lease_has_run_out():
            self._lose()
            return self.reason
        done = threading.Event()
        watcher = threading.Thread(target=self._end_with_lease, args=(done,))
        watcher.start()
        try:
            return prepare(given, home, self.run_dir)
        finally:
            done.set()
            watcher.join()

    def _end_with_lease(self, done: threading.Event) -> None:
        """Once the lease has run out, end what prepares the home."""
        while not done.wait(LOOK_SECONDS):
            if self.lost or self._lease_has_run_out():
                self._lose()
                for child in _list_children():
                    _signal(child, signal.SIGKILL)

    def run(self) -> int:
        """Run the command to its end; returns the exit code of this program."""
        if self.lost or self._lease_has_run_out():
            self._lose()
            return self._tell_end(None)
        signal.pthread_sigmask(signal.SIG_BLOCK, LISTENED)
        shell = next((s for s in SHELLS if Path(s).exists()), SHELLS[-1])
        leave_word(self.run_dir, {"state": "running"})
        if not self._wait_for_turn():
            return self._tell_end(0 if self.idle else 143)
        started = time.monotonic()
        try:
            child = subprocess.Popen(  # noqa: S603 - what the session is for
                [shell, "-c", self.command],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=_listen_again,  # noqa: PLW1509 - there are no threads
            )
        except OSError as error:
            self.reason = f"the command cannot be started: {error.strerror}"
            return self._tell_end(127)
        while (ended := child.poll()) is None:
            heard = signal.sigtimedwait(LISTENED, self._pause(started))
            if heard is not None and heard.si_signo != signal.SIGCHLD:
                self._stop(child.pid, self.grace)
            self._look(child.pid, started)
        return self._tell_end(128 - ended if ended < 0 else ended)

    def _wait_for_turn(self) -> bool:
        """Wait until all containers are there; false if there is nothing to run.

        One that is idle has no turn: it is there until it is told to end.
        """
        released = self.run_dir / "released"
        while self.idle or (self.waits and not released.exists()):
            heard = signal.sigtimedwait(LISTENED, TURN_SECONDS)
            if heard is not None and heard.si_signo != signal.SIGCHLD:
                return False
            if self._lease_has_run_out():
                self._lose()
                return False
        return True

    def _pause(self, started: float) -> float:
        """Return how long to wait at most for something to happen."""
        moments = [LOOK_SECONDS]
        if self.timeout and self.code is None:
            moments.append(started + self.timeout - time.monotonic())
        if self.stopping_until:
            moments.append(self.stopping_until - time.monotonic())
        return max(0.01, min(moments))

    def _look(self, group: int, started: float) -> None:
        now = time.monotonic()
        if self.stopping_until and now >= self.stopping_until:
            _signal(group, signal.SIGKILL)
        elif self.timeout and self.code is None and now >= started + self.timeout:
            self.code = TIMEOUT_CODE
            self.reason = f"timed out after {describe(round(self.timeout))}"
            self._stop(group, self.grace)
        if not self.lost and self._lease_has_run_out():
            self._lose()
            self._stop(group, min(self.grace, LEASE_GRACE_SECONDS))

    def _stop(self, group: int, grace: float) -> None:
        _signal(group, signal.SIGTERM)
        self.stopping_until = self.stopping_until or time.monotonic() + grace

    def _lease_has_run_out(self) -> bool:
        if not self.lease_seconds:
            return False
        try:
            until = float((self.run_dir / "lease").read_text("ascii"))
        except (OSError, ValueError):
            until = 0.0  # what was known before stays true
        self.lease_until = max(self.lease_until, until)
        return time.clock_gettime(time.CLOCK_BOOTTIME) >= self.lease_until

    def _lose(self) -> None:
        self.lost = True
        self.reason = (
            "it stopped by itself: the service had not heard of this node for"
            f" {describe(round(self.lease_seconds))}"
        )

    def _tell_end(self, ended: int | None) -> int:
        code = ended if self.code is None else self.code
        if self.lost:
            code = None
        elif not self.reason and code is not None and code > 128:
            self.reason = _name_signal(code - 128)
        outcome = {"state": "ended", "exit_code": code, "reason": self.reason}
        leave_word(self.run_dir, outcome)
        return LEASE_CODE if code is None else code


def _list_children() -> list[int]:
    """List the processes that the main thread has started; each leads a group."""
    own = os.getpid()
    try:
        found = Path(f"/proc/{own}/task/{own}/children").read_text("ascii")
    except OSError:
        return []
    return [int(child) for child in found.split()]


def _listen_again() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, LISTENED)


def _signal(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def _name_signal(number: int) -> str:
    try:
        return f"its command was ended by {signal.Signals(number).name}"
    except ValueError:
        return ""


def describe(seconds: int) -> str:
    """Write *seconds* in a sentence: ``1 h 30 min``, ``45 s``."""
    parts = []
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def leave_word(run_dir: Path, outcome: dict[str, Any]) -> None:
    """Tell the agent where the command stands: all of it, or nothing."""
    unfinished = run_dir / "outcome.part"
    unfinished.write_text(json.dumps(outcome))
    unfinished.chmod(0o644)  # an agent that is not root must be able to read it
    unfinished.replace(run_dir / "outcome.json")


def take_activation(path: Path) -> dict[str, Any]:
    """Read and remove the activation: from now on the command counts as begun."""
    text = path.read_bytes()
    path.unlink()
    given = json.loads(text)
    if not isinstance(given, dict):
        raise TypeError("it is no object")
    return given


def prepare(given: dict[str, Any], home: Path, run_dir: Path) -> str:
    """Put files into the home and run the bootstrap script; returns what failed."""
    if not given.get("files") and not str(given.get("bootstrap", "")).strip():
        return ""
    try:
        boot = importlib.import_module("backendai_lab.boot")
    except ImportError:
        return "this environment can neither write dotfiles nor run a bootstrap script"
    files = tuple(
        boot.File(str(f["path"]), str(f["permission"]), str(f["content"]))
        for f in given.get("files", ())
    )
    activation = boot.Activation(
        {}, (), files, given["bootstrap"], given["bootstrap_seconds"]
    )
    try:
        boot.prepare(activation, home=home, run_dir=run_dir)
    except boot.BootError as error:
        return str(error)
    return ""


def main() -> int:
    """Take up the activation, prepare, run."""
    os.umask(int(os.environ.get("BACKENDAI_UMASK", "022"), 8))
    run_dir = Path(os.environ.get("BACKENDAI_RUN_DIR", "/run/backendai"))
    given = take_activation(run_dir / "activation.json")
    os.environ.update({str(k): str(v) for k, v in given["environ"].items()})
    home = Path(os.environ.get("HOME") or "/")
    if home.is_dir():
        os.chdir(home)
    job = Job(given["job"], run_dir)
    failure = job.prepare(given, home)
    if failure and not job.lost:
        sys.stderr.write(f"{failure}\n")
        leave_word(run_dir, {"state": "ended", "exit_code": 1, "reason": failure})
        return 1
    return job.run()


if __name__ == "__main__":
    sys.exit(main())
