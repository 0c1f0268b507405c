"""Programs of ours that have been imported before they are started.

Importing is most of a start, and hundreds of tests start a service and an agent. One
process imports both, once for each worker, and each program of a test is a fork of it,
with everything else of its own.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
from importlib import import_module

from tests.harness import Program, start_anew

_CONTEXT = multiprocessing.get_context("forkserver")
_CRASHPOINT = "BACKENDAI_CRASHPOINT"
_MAINS = {
    "backendai_hub.launcher.service": "backendai_hub.app",
    "backendai_agent.app": "backendai_agent.app",
}
"""By the name that a program is started with: where its function ``main`` is."""


def import_once() -> None:
    """Let the programs that tests start be such forks."""
    _CONTEXT.set_forkserver_preload(list(_MAINS.values()))
    Program.begin = begin


def begin(program: Program) -> Fork | subprocess.Popen[bytes]:
    """Start a program; anew if it reads, when imported, where it is to die."""
    return start_anew(program) if _CRASHPOINT in os.environ else Fork(program)


class Fork:
    """Such a program, with what tests ask of a `subprocess.Popen`."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._process = _CONTEXT.Process(
            target=_become,
            args=(_MAINS[program.module], program.argv, str(program.log)),
            kwargs=dict(os.environ),
            daemon=True,  # nothing is left behind
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self._program.argv, timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _become(main: str, argv: list[str], log: str, /, **environ: str) -> None:
    """Be a program that has just been started with this command line."""
    gc.freeze()
    os.setsid()
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(os.path.dirname(log))  # noqa: PTH120 - nothing more is imported
    for number, path in enumerate((os.devnull, log, log)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = [main, *argv]
    import_module(main).main(argv)
