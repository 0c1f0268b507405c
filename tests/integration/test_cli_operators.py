"""What may start, said on the command line and by the client to a real service."""

from __future__ import annotations

from contextlib import asynccontextmanager

from backendai_hub.client.hub import HubClient
from tests.admin import make_administrator
from tests.commandline import column, with_keypair
from tests.harness import running_stack, until

HELD = "held by its owner since"


@asynccontextmanager
async def working(tmp_path):
    async with running_stack(tmp_path / "data", agent=True) as stack:
        key = await make_administrator(stack)
        shell = with_keypair(tmp_path / "root", stack.url, key.name, key.secret)
        async with HubClient(
            stack.url, access_key=key.name, secret_key=key.secret
        ) as client:
            yield stack, shell, client


async def test_what_waits_is_frozen_held_put_first_and_let_go(tmp_path):
    async with working(tmp_path) as (stack, root, client):
        await root.well(
            *("admin", "schedule", "freeze", "default", "--reason", "power cut")
        )
        async with stack.client("root") as spawner:
            first = await spawner.launch("one", slots={"cpu": "0.25"})
            second = await spawner.launch("two", slots={"cpu": "0.25"})
            shown = await root.well("admin", "schedule", "queue", "default")
            assert column(shown, 0) == ["1", "2"]
            assert "default is frozen since" in shown.err
            assert "power cut" in shown.err

            both = await root(
                *("session", "priority", first["id"], second["id"], "nothing", "60")
            )
            assert both.code == 5
            assert sorted(column(both, 1)) == ["failed", "ok", "ok"]
            above = await root("session", "priority", first["id"], "101")
            assert above.code == 2
            await root.well("admin", "schedule", "priority", second["id"], "70")

            # An order that took long to find is kept for a while.
            async def is_turned() -> bool:
                shown = await root.well("resource-group", "queue", "default", "--json")
                return [e["id"] for e in shown.json] == [second["id"], first["id"]]

            await until(is_turned, "the second goes first")

            several = await root(
                *("session", "hold", first["id"], second["id"], "nothing"),
                *("--reason", "not yet"),
            )
            assert several.code == 5
            assert column(several, 1) == ["ok", "ok", "failed"]
            freed = await root.well("session", "release", first["id"], second["id"])
            assert column(freed, 1) == ["ok", "ok"]
            held = await root.read(
                *("session", "hold", first["id"], "--reason", "not yet")
            )
            assert held["reason"].startswith(HELD)
            await root.well("admin", "schedule", "unfreeze", "default")
            await spawner.reach(second["id"], "RUNNING")

            async def is_alone() -> bool:
                waiting = [e async for e in client.schedule.queue("default")]
                told = [(entry.id, HELD in entry.reason) for entry in waiting]
                return told == [(first["id"], True)]

            await until(is_alone, "who is held is the only one left")

            await root.well("session", "release", first["id"])
            await spawner.reach(first["id"], "RUNNING")
            ended = await root.well(
                *("admin", "schedule", "terminate", "--force", first["id"]),
                *(second["id"],),
            )
            assert column(ended, 1) == ["ok", "ok"]
            again = await client.schedule.terminate(["nothing"], force=True)
            assert (again.failed, again.results[0].status) == (1, 404)


async def test_a_node_is_drained_and_reserved(tmp_path):
    async with working(tmp_path) as (stack, root, client):
        async with stack.client("root") as spawner:
            made = await spawner.launch("one", slots={"cpu": "0.25"})
            await spawner.reach(made["id"], "RUNNING")
        (node,) = [one async for one in client.nodes.list()]
        drained = await root.read(
            *("admin", "node", "drain", node.name, "--reason", "new fans"),
            *("--by", "2099-01-01T00:00:00Z"),
        )
        assert drained["schedulable"] is False
        assert drained["drain"]["reason"] == "new fans"
        assert drained["drain"]["sessions"] == 1
        undrained = await root.read("admin", "node", "undrain", node.name)
        assert undrained["drain"] is None

        reserve = ("admin", "reservation", "add", "fans", "--kind", "maintenance")
        span = ("--begins-at", "2099-01-01T00:00:00Z", "--ends-at")
        where = ("--resource-group", "default", "--nodes", node.name)
        refused = await root(*reserve, *where, *span, "2098-01-01T00:00:00Z")
        assert refused.code == 1
        assert "is not after the beginning" in refused.err
        made = await root.read(*reserve, *where, *span, "2099-01-02T00:00:00Z")
        assert made["nodes"] == [node.name]
        assert (await client.reservations.get("fans")).kind == "maintenance"
        await root.well("admin", "reservation", "purge", "fans", "--yes")
