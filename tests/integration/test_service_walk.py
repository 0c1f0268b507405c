"""A session's walk through the real hub service and a real agent."""

from __future__ import annotations

from tests.harness import Stack


async def test_a_session_starts_runs_and_gives_everything_back(stack: Stack):
    async with stack.client("alice") as alice:
        session = await alice.launch("one", slots={"cpu": "0.5", "mem": "512m"})
        running = await alice.reach(session["id"], "RUNNING")
        assert running["url"] == "/user/alice/one/"
        assert running["agent"]

        before = await alice.get("api/resources")
        status, _ = await alice.send(
            "POST", f"api/sessions/{session['id']}/terminate", json={}
        )
        assert status == 202
        ended = await alice.reach(session["id"], "TERMINATED")
        after = await alice.get("api/resources")

    assert "stopped by alice" in ended["reason"]
    assert ended["url"] is None
    room = {r["slot"]: r for r in after["room"]}
    assert room["mem"]["free"] == room["mem"]["total"]
    assert before != after
