"""Which tests may run beside which, when there are several workers (``-n``).

A file's tests stay together, for the things they share. Those that look at the whole
machine (its container engine, its firewall, the processes of a user) stay together,
too: one worker begins with them, while the others take the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling
    from xdist.workermanage import WorkerController

MACHINE = "machine"
_OF_MACHINE = (
    "tests/e2e/",
    "tests/integration/test_agent_node.py",
    "tests/integration/test_batch_runs.py",
    "tests/integration/test_docker_",
    "tests/integration/test_images_service.py",
    "tests/integration/test_lab_session.py",
    "tests/integration/test_launcher_",
    "tests/integration/test_process_",
    "tests/integration/test_session_preparation.py",
)


def together_with(nodeid: str) -> str:
    """Name what a test has to run one after the other with."""
    return MACHINE if nodeid.startswith(_OF_MACHINE) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer
) -> LoadScopeScheduling:
    """Hand out the machine's tests first, then file by file, the fullest first."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - may be missing

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together_with(nodeid)

        def _assign_work_unit(self, node: WorkerController) -> None:
            if MACHINE in self.workqueue:  # it takes longest
                self.workqueue.move_to_end(MACHINE, last=False)
            super()._assign_work_unit(node)

    return Scheduling(config, log)
