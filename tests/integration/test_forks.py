"""Programs that tests start are forks, and otherwise like any other."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.forks import Fork
from tests.harness import Program, running_stack, start_anew


def end(tmp_path: Path, begin: Callable[[Program], Any], wrong: str) -> tuple[int, str]:
    """Start a service that cannot be, and tell how it ended and what it said."""
    log = tmp_path / f"{begin.__name__}.log"
    program = Program("service", "backendai_hub.launcher.service", [wrong], log)
    return begin(program).wait(60), program.said()


def test_a_fork_says_and_ends_with_what_a_program_started_anew_does(tmp_path):
    wrong = "--HubService.port=many"
    code, said = end(tmp_path, Fork, wrong)
    assert (code, said) == end(tmp_path, start_anew, wrong)
    assert code
    assert "many" in said


async def test_a_fork_is_killed_alone_and_works_in_the_folder_of_its_log(tmp_path):
    async with running_stack(tmp_path / "data", agent=False) as stack:
        program = stack.programs["service"]
        assert isinstance(program.process, Fork)
        assert os.getsid(program.pid) == program.pid
        assert Path(f"/proc/{program.pid}/cwd").readlink() == program.log.parent
        program.kill()
        assert program.process.returncode == -signal.SIGKILL
