"""Making room for real: a command is asked to end, and may save before it is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.admin import KeyAPI
from tests.harness import until
from tests.integration.test_batch_runs import site

SAVES = "trap 'echo saved; sleep 4; exit 0' TERM; echo begun; while :; do sleep 1; done"


async def opt_in(api: KeyAPI, **rules: Any) -> None:
    """Let sessions of the default group displace others of the same user."""
    group = await api.get("api/resource-groups/default")
    options = group["scheduler_opts"]
    options["preemption"] = {**options["preemption"], "enabled": True, **rules}
    await api.change("resource-groups/default", scheduler_opts=options)
    await api.change("keypair-policies/default", max_job_priority=None)


@pytest.mark.bwrap
async def test_a_command_saves_leaves_and_runs_again_when_there_is_room(tmp_path: Path):
    async with site(tmp_path / "data", "process") as running:
        api = running.api
        await opt_in(api, mode="reschedule", grace_seconds=60)
        (node,) = (await api.get("api/agents"))["items"]
        everything = {"slots": {"cpu": node["capacity"]["cpu"]}}
        status, victim = await api.create(
            type="batch", startup_command=SAVES, name="long", **everything
        )
        assert status == 201, victim
        await api.reach(victim["id"], "RUNNING", seconds=60)
        status, urgent = await api.create(
            type="batch", startup_command="true", job_priority=1, **everything
        )
        assert status == 201, urgent

        async def has_saved() -> bool:
            return "saved" in (await running.log(victim))["text"]

        await until(has_saved, "the command was asked to end and saves")
        ended = await running.end(urgent)
        assert ended["result"] == "success", ended
        back = await api.reach(victim["id"], "RUNNING", seconds=60)
        assert (back["preemptions"], back["attempts"]) == (1, 1)
        (shown,) = (await api.get("api/preemptions"))["items"]
        assert (shown["session"], shown["ending"]) == (urgent["id"], "started")
        assert [v["fate"] for v in shown["victims"]] == ["requeued"]
