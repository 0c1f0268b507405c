"""Which tests may run beside which, when there are several workers (``-n``).

A file's tests stay together, for the things they share. Those that look at the whole
machine (its container engine, its firewall, the processes of a user) stay together,
too: one worker begins with them, while the others take the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling
    from xdist.workermanage import WorkerController

MACHINE = "machine"
MANY = 1000
_OF_MACHINE = (
    "tests/e2e/",
    "tests/integration/test_agent_node.py",
    "tests/integration/test_batch_runs.py",
    "tests/integration/test_cluster_runs.py",
    "tests/integration/test_docker_",
    "tests/integration/test_images_service.py",
    "tests/integration/test_lab_session.py",
    "tests/integration/test_launcher_",
    "tests/integration/test_preemption_runs.py",
    "tests/integration/test_process_",
    "tests/integration/test_session_preparation.py",
)
# Few tests that take long, half a minute a file and more: whoever began with one of
# them last would keep everybody waiting.
_LONG = (
    "tests/integration/test_concurrent_admission.py",
    "tests/integration/test_isolation.py",
    "tests/integration/test_taking_over.py",
    "tests/integration/test_queue_view.py",
    "tests/integration/test_ledger_machine.py",
    "tests/integration/test_disabled_people.py",
    "tests/integration/test_idle_sessions.py",
    "tests/integration/test_authenticator_login",
    "tests/integration/test_access_routes.py",
    "tests/integration/test_cli_",
    "tests/integration/test_client_nouns.py",
    "tests/integration/test_file",
    "tests/integration/test_folder_",
    "tests/integration/test_router_jupyterhub.py",
    "tests/integration/test_spawner_",
    "tests/integration/test_storage_",
)


def together_with(nodeid: str) -> str:
    """Name what a test has to run one after the other with."""
    return MACHINE if nodeid.startswith(_OF_MACHINE) else nodeid.partition("::")[0]


def begin_with(scopes: Iterable[str]) -> list[str]:
    """Return the scopes to begin with: the machine's, then those that take long."""

    def rank(scope: str) -> int:
        if scope == MACHINE:
            return -1
        return next((i for i, one in enumerate(_LONG) if scope.startswith(one)), MANY)

    return sorted((s for s in scopes if rank(s) < MANY), key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer
) -> LoadScopeScheduling:
    """Hand out what takes longest first, then file by file, the fullest first."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - may be missing

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together_with(nodeid)

        def _assign_work_unit(self, node: WorkerController) -> None:
            for scope in begin_with(self.workqueue)[:1]:
                self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

    return Scheduling(config, log)
