"""Running a real agent as a process of its own, and ending it in every way."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from pathlib import Path

from backendai_hub.api.agents import ContainerSpec, DesiredState
from tests.agent_hub import AgentHub

ROOT = Path(__file__).parents[2]


class AgentProcess:
    """One agent's folder, and the processes that serve it one after another."""

    def __init__(self, folder: Path, hub: AgentHub) -> None:
        self.hub = hub
        self.data_dir = folder / "agent"
        self.log = folder / "agent.log"
        self.token_file = folder / "token"
        self.token_file.write_text(hub.token)
        self.options: dict[str, str] = {}
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, crashpoint: str = "") -> None:
        options = {
            "BackendAIAgent.data_dir": str(self.data_dir),
            "BackendAIAgent.hub_url": self.hub.url,
            "BackendAIAgent.ca_file": str(self.hub.authority.file),
            "BackendAIAgent.token_file": str(self.token_file),
            "BackendAIAgent.runtime": "fake",
            "BackendAIAgent.resync_seconds": "1",
            "FakeRuntime.start_seconds": "0.01",
            "FakeRuntime.fetch_seconds": "0.05",
            **self.options,
        }
        path = os.pathsep.join([str(ROOT), str(ROOT / "agent")])
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "backendai_agent.app",
                *(f"--{name}={value}" for name, value in options.items()),
                env={
                    **os.environ,
                    "PYTHONPATH": path,
                    "BACKENDAI_CRASHPOINT": crashpoint,
                },
                stdout=log,
                stderr=log,
            )

    async def end(self, number: int = signal.SIGTERM) -> int:
        """Send the signal *number* and return how the process ended."""
        if self.process is None or self.process.returncode is not None:
            return 0
        self.process.send_signal(number)
        return await self.ended()

    async def ended(self) -> int:
        assert self.process is not None
        async with asyncio.timeout(60):
            return await self.process.wait()

    @property
    def starts(self) -> list[str]:
        """Which main programs began, in order: the runtime's own account."""
        path = self.data_dir / "fake-starts.log"
        return path.read_text().split() if path.exists() else []

    @property
    def containers(self) -> list[str]:
        """Which containers there are, whatever the agent thinks."""
        return sorted(
            p.stem for p in (self.data_dir / "fake-containers").glob("*.json")
        )

    @property
    def folders(self) -> list[str]:
        return sorted(p.name for p in (self.data_dir / "containers").glob("*"))


def make_spec(**changes) -> ContainerSpec:
    given = {
        "id": str(uuid.uuid4()),
        "session_id": str(uuid.uuid4()),
        "desired": DesiredState.RUNNING,
        "session_name": "train",
        "owner": "alice",
        "image": "fake",
        "cpu": 1000,
        "prefix": "/user/alice/train/",
        "environ": {"SECRET": "canary-4711"},
        "grace_seconds": 0.1,
    }
    return ContainerSpec(**(given | changes))
