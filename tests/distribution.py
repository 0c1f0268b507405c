"""Which tests may run beside which, when there are several workers (``-n``).

A file's tests stay together, for the things they share. Those that look at the whole
machine (its container engine, its firewall, the processes of a user) stay together,
too, and so do the stories of whole platforms with real sessions, those of the pages,
which share a platform, and those of platforms without real sessions. Workers begin with
these chains, before they take the rest.

Most of what takes long waits: for programs to start, and for each other. So there are
more workers than processors.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling
    from xdist.workermanage import WorkerController

MANY = 1000
_CHAINS = {
    "machine": (
        "tests/integration/test_batch_runs.py",
        "tests/integration/test_cluster_runs.py",
        "tests/integration/test_docker_",
        "tests/integration/test_images_service.py",
        "tests/integration/test_preemption_runs.py",
        "tests/integration/test_process_",
        "tests/integration/test_session_preparation.py",
    ),
    # Platforms with real sessions, which know their own from others on the machine.
    "sessions": (
        "tests/e2e/test_existing_hub.py",
        "tests/e2e/test_failures.py",
        "tests/e2e/test_first_notebook.py",
        "tests/e2e/test_folders_of_sessions.py",
        "tests/e2e/test_kills.py",
        "tests/e2e/test_launch_choices.py",
    ),
    # One such platform, and a browser.
    "pages": ("tests/e2e/ui/",),
    # Whole platforms whose sessions are made up, and programs by themselves.
    "platforms": (
        "tests/e2e/",
        "tests/integration/test_agent_node.py",
        "tests/integration/test_lab_session.py",
        "tests/integration/test_launcher_",
    ),
}
"""What runs one after the other, by the first chain that names it."""
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
    "tests/integration/test_notebook.py",
    "tests/integration/test_storage_",
    "tests/integration/test_usage_service.py",
    "tests/integration/test_live_usage.py",
)


def chain_of(nodeid: str) -> str | None:
    """Name the chain that a test, or its file, is in."""
    for chain, beginnings in _CHAINS.items():
        if nodeid.startswith(beginnings):
            return chain
    return None


def together_with(nodeid: str) -> str:
    """Name what a test has to run one after the other with."""
    return chain_of(nodeid) or nodeid.partition("::")[0]


def begin_with(scopes: Iterable[str]) -> list[str]:
    """Return the scopes to begin with: the chains, then those that take long."""
    first = (*_CHAINS, *_LONG)

    def rank(scope: str) -> int:
        return next((i for i, one in enumerate(first) if scope.startswith(one)), MANY)

    return sorted((s for s in scopes if rank(s) < MANY), key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of workers for ``-n auto``: one more than processors."""
    return len(os.sched_getaffinity(0)) + 1


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
