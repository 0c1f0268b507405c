"""What containers of the engine use, read from their control groups.

The engine is asked once for each container, where its first process is. Its own
statistics take a second for each, and as much of a processor as all of this.
"""

from __future__ import annotations

from collections.abc import Sequence

from backendai_agent.measuring.groups import GroupReader, Root
from backendai_agent.measuring.readings import Reading
from backendai_agent.runtimes.base import RuntimeFailure
from backendai_agent.runtimes.docker_config import container_name
from backendai_agent.runtimes.docker_engine import Engine


class DockerMeasures:
    """Remembers where containers' first processes are."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._groups = GroupReader()
        self._roots: dict[str, Root] = {}

    def forget(self, container_id: str) -> None:
        """Look for a container anew: something has happened to it."""
        self._roots.pop(container_id, None)

    def read(self, ids: Sequence[str]) -> dict[str, Reading]:
        """Read containers of this node; those of an engine elsewhere are missing."""
        found = {}
        for container_id in ids:
            root = self._roots.get(container_id) or self._find(container_id)
            reading = None if root is None else self._groups.read_own(root)
            if reading is not None:
                found[container_id] = reading
            else:
                self.forget(container_id)
        # Others are forgotten on the thread of the engine's events meanwhile.
        for container_id in set(self._roots) - set(ids):
            self.forget(container_id)
        return found

    def _find(self, container_id: str) -> Root | None:
        try:
            seen = self._engine.ask_here(
                lambda api: api.inspect_container(container_name(container_id))
            )
        except RuntimeFailure:
            return None
        pid = int(seen["State"]["Pid"])
        if not pid:
            return None
        root = self._roots[container_id] = Root(pid, seen["Id"])
        return root
