"""Each command of the operators' guide to the queue, as it is written there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.harness import until
from tests.integration.test_cli_sessions import working


def hours_from_now(count: int) -> str:
    return f"{datetime.now(UTC) + timedelta(hours=count):%Y-%m-%dT%H:00:00Z}"


async def test_the_guide_can_be_walked_on_a_real_service(tmp_path):
    async with working(tmp_path) as (stack, root):
        async with stack.client("root") as spawner:
            first = await spawner.launch("first", slots={"cpu": "1"})
            running = await spawner.reach(first["id"], "RUNNING")
            room = await root.read("resources")
            [cpu] = [r for r in room["room"] if r["slot"] == "cpu"]
            made = await spawner.launch("second", slots={"cpu": cpu["total"]})
            node, waits = running["agent"], made["id"]

            async def news_of_why() -> object:
                why = (await spawner.get(f"api/sessions/{waits}")).get("why")
                news = await spawner.get(f"api/sessions/{waits}/events")
                told = [one for one in news if one["kind"] == "session.waiting"]
                return why if told and told[-1]["why"] == why else None

            why = await until(news_of_why, "why it waits is kept, and was told")
        assert why["position"] == 1

        queue = await root.well("admin", "schedule", "queue", "default")
        assert made["name"] in queue.out
        await root.well("resource-group", "queue", "default")
        await root.well("admin", "schedule", "priority", waits, "60")
        await root.well("session", "priority", waits, "50")
        await root.well("session", "hold", made["name"], "--reason", "later")

        async def is_told() -> bool:
            held = await root.read("session", "why", waits)
            return "later" in held["reasons"][0]

        await until(is_told, "who is held is told the reason")
        await root.well("session", "release", made["name"])

        drain = ("admin", "node", "drain", node, "--reason", "new fans")
        await root.well(*drain, "--by", hours_from_now(5))
        shown = await root.read("admin", "node", "info", node)
        assert shown["drain"]["sessions"] == 1
        await root.well("admin", "node", "undrain", node)
        await root.well("admin", "node", "update", node, "--no-schedulable")
        await root.well("admin", "node", "update", node, "--schedulable")

        await root.well("admin", "schedule", "freeze", "default", "--reason", "move")
        await root.well("admin", "schedule", "unfreeze", "default")

        reserve = ("admin", "reservation", "add")
        await root.well(
            *(*reserve, "fans", "--kind", "maintenance", "--resource-group", "default"),
            *("--nodes", node, "--begins-at", hours_from_now(20)),
            *("--ends-at", hours_from_now(24)),
        )
        await root.well(
            *(*reserve, "physics-101", "--resource-group", "default"),
            *("--amounts", "cpu=1", "--projects", "default:default"),
            *("--begins-at", hours_from_now(25), "--ends-at", hours_from_now(27)),
        )
        await root.well("admin", "reservation", "purge", "fans", "--yes")
        await root.well("admin", "schedule", "terminate", "--force", first["id"])
