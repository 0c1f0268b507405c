"""Who would make room for whom, and who has, on the command line."""

from __future__ import annotations

from tests.admin import KeyAPI, make_administrator
from tests.commandline import column, with_keypair
from tests.harness import running_stack, until


async def opt_in(api: KeyAPI) -> None:
    group = await api.get("api/resource-groups/default")
    options = group["scheduler_opts"]
    options["preemption"] = {**options["preemption"], "enabled": True}
    await api.change("resource-groups/default", scheduler_opts=options)


async def test_rules_are_tried_before_they_count_and_what_was_done_is_listed(tmp_path):
    async with running_stack(tmp_path / "data", agent=True) as stack:
        key = await make_administrator(stack)
        root = with_keypair(tmp_path / "root", stack.url, key.name, key.secret)
        async with (
            stack.client("root") as spawner,
            KeyAPI(stack.url, key.name, key.secret) as api,
        ):
            await api.change("keypair-policies/default", max_job_priority=None)
            (node,) = (await api.get("api/agents"))["items"]
            everything = {"slots": {"cpu": node["capacity"]["cpu"]}}
            victim = await spawner.launch("long", **everything)
            await spawner.reach(victim["id"], "RUNNING")
            urgent = await spawner.launch("urgent", job_priority=1, **everything)

            trial = ("admin", "schedule", "try-preemption", "default")
            shown = await root.well(*trial)
            assert "preemption is off; 1 wait" in shown.err
            assert column(shown, 0) == [urgent["name"]]
            assert column(shown, 4) == [f"{victim['name']} of root"]
            patient = await root.well(*trial, "--min-runtime", "100000", "--json")
            assert patient.json["items"] == []
            refused = await root(*trial, "--mode", "nonsense")
            assert refused.code == 2
            listed = await root.well("admin", "schedule", "preemptions", "--json")
            assert listed.json == []

            await opt_in(api)
            await spawner.reach(urgent["id"], "RUNNING", seconds=60)
            command = ("admin", "schedule", "preemptions", "--session", urgent["id"])
            shown = await root.well(*command, "--kind", "priority")
            assert column(shown, 1) == [urgent["name"]]
            assert column(shown, 5) == [f"{victim['name']} (terminated)"]
            none = await root.well(*command, "--open", "--group", "default", "--json")
            assert none.json == []
            history = await root.well("session", "history", victim["id"], "--json")
            assert history.json[-1]["result"] == "preempted"
            told = await root.well("session", "why", victim["id"], "--json")
            assert "preempted to make room" in told.json["reasons"][0]

            async def has_ended() -> bool:
                found = await api.get(f"api/sessions/{victim['id']}")
                return bool(found["status"] == "TERMINATED")

            await until(has_ended, "the other one has ended")
