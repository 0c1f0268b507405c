"""Why it waits, and what if: from a terminal, on a real service."""

from __future__ import annotations

from xml.etree import ElementTree

from tests.integration.test_cli_sessions import working


async def test_people_read_why_it_waits_and_administrators_what_would_be(tmp_path):
    async with working(tmp_path) as (stack, root):
        async with stack.client("root") as spawner:
            first = await spawner.launch("first", slots={"cpu": "1"})
            await spawner.reach(first["id"], "RUNNING")
            room = await root.read("resources")
            [cpu] = [r for r in room["room"] if r["slot"] == "cpu"]
            made = await spawner.launch("second", slots={"cpu": cpu["total"]})

        why = await root.well("session", "why", made["id"])
        assert "waits, number 1 of 1" in why.out
        assert f"because  cpu: asks {cpu['total']}, {cpu['free']} free on" in why.out
        assert f"with {cpu['free']} cpu instead of {cpu['total']}" in why.out
        assert "nobody knows when" in why.out
        told = await root.read("session", "why", made["id"])
        assert (told["position"], told["changes"][0]["yours"]) == (1, True)
        assert (await root("session", "why", "nothing")).code == 1

        trace = tmp_path / "now.jsonl"
        await root.well("admin", "schedule", "export", str(trace))
        assert trace.read_text().count('"kind":"request"') == 1
        past = tmp_path / "past.jsonl"
        await root.well(
            *("admin", "schedule", "export", str(past)), "--days", "7", "--pseudonyms"
        )
        assert '"owner":"user-' in past.read_text()
        plot = tmp_path / "plot.svg"
        shown = await root.well(
            *("admin", "schedule", "simulate", "--trace", str(trace)),
            *("--add", "cpu=1", "--sequencer", "drf", "--plot", str(plot)),
        )
        assert ["longest wait", "4 h", "4 h"] in shown.lines
        assert "cpu=1 would start" in shown.err
        assert ElementTree.parse(plot).getroot().tag.endswith("svg")
        live = await root.read("admin", "schedule", "simulate", "--add", "cpu=1")
        assert live["added"][0]["request"] == "cpu=1"

        other = await root.read(
            *("admin", "schedule", "simulate", "--preemption", "--mode", "reschedule"),
            *("--victim-scope", "resource-group", "--add", "cpu=1"),
            *("--job-priority", "5", "--maximum", "domain:default:cpu=none"),
        )
        assert other["after"]["displaced"] >= 0
        bad = tmp_path / "bad.csv"
        bad.write_text("kind,name,slots\nnode,a,cpu=much\n")
        refused = await root("admin", "schedule", "simulate", "--trace", str(bad))
        assert refused.code == 1
        assert "line 2: slots: cpu: 'much'" in refused.err
        refused = await root("admin", "schedule", "simulate", "--drain", "nowhere")
        assert "there is no node 'nowhere'" in refused.err
