"""Instances of a GPU and labels of a node, from an agent's settings to its containers.

The hub service, the agent and the command line are real; the GPUs are not there.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.admin import make_administrator
from tests.commandline import with_keypair
from tests.harness import Stack, running_stack

UPDATE = ("admin", "node", "update", "gpu-1")
SMALL = "cuda.device:1g.5gb-mig"
AGENT = (
    "--BackendAIAgent.name=gpu-1",
    "--BackendAIAgent.accelerators=host",
    "--BackendAIAgent.accelerators=fake",
    "--BackendAIAgent.labels=gpu=a100",
    "--BackendAIAgent.labels=rack=r1",
    "--FakeAccelerator.count=1",
    "--FakeAccelerator.cut_like=a100-40",
)


def find_environments(stack: Stack) -> list[dict[str, str]]:
    """Return what the containers of the node were started with."""
    folder = stack.folder.root / "agent" / "fake-containers"
    return [json.loads(path.read_text())["environ"] for path in folder.glob("*.json")]


async def test_two_sessions_share_a_gpu_and_see_an_instance_each(tmp_path: Path):
    async with running_stack(tmp_path / "data", agent=False) as stack:
        await stack.start_agent(*AGENT)
        slots = {"cpu": "0.1", "mem": "512m", SMALL: "1"}
        async with stack.client("alice") as alice, stack.client("bob") as bob:
            one = await alice.launch("one", slots=slots, labels={"gpu": "a100"})
            two = await bob.launch("two", slots=slots)
            ran = [
                await alice.reach(one["id"], "RUNNING"),
                await bob.reach(two["id"], "RUNNING"),
            ]
        assert ran[0]["devices"] == ran[1]["devices"], "it is one GPU"
        environments = find_environments(stack)
        seen = {e["BACKENDAI_FAKE_DEVICES"] for e in environments}
        assert len(seen) == 2
        assert all(name.startswith("FAKE-MIG-") for name in seen)
        assert [e["GPU_MODEL_NAME"] for e in environments] == (
            ["Fake GPU MIG 1g.5gb"] * 2
        )
        assert [e["GPU_COUNT"] for e in environments] == ["1", "1"]


async def test_nodes_are_labelled_and_asked_for_on_the_command_line(tmp_path: Path):
    async with running_stack(tmp_path / "data", agent=False) as stack:
        await stack.start_agent(*AGENT)
        key = await make_administrator(stack)
        root = with_keypair(tmp_path / "root", stack.url, key.name, key.secret)
        shown = await root.read("admin", "node", "info", "gpu-1")
        assert shown["labels"] == {"gpu": "a100", "rack": "r1"}
        assert shown["capacity"][SMALL] == "7"
        changed = await root.read(
            *(
                "admin",
                "node",
                "update",
                "gpu-1",
                "--label",
                "gpu=h100",
                "--label",
                "rack=",
            )
        )
        assert changed["labels"] == {"gpu": "h100"}
        refused = await root("session", "start", "jupyterlab", "--label", "gpu=a100")
        assert refused.code != 0
        assert "gpu=a100" in refused.err
        started = await root.read(
            *("session", "start", "jupyterlab", "--label", "gpu=h100"),
            *("--agent", "gpu-1", "--slots", f"cpu=0.1,mem=512m,{SMALL}=1"),
        )
        assert started["labels"] == {"gpu": "h100"}
        assert started["slots"][SMALL] == "1"
        again = await root.read(*UPDATE, "--forget-label", "gpu")
        assert again["labels"] == {"gpu": "a100"}
        nothing = await root(*UPDATE)
        assert nothing.code == 2
        wrong = await root(*UPDATE, "--label", "gpu")
        assert "NAME=VALUE" in wrong.err
