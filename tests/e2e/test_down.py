"""Taking the platform down: what is said to end does end, whoever owns it."""

from __future__ import annotations

import requests

from tests.e2e.up import running


def test_down_sessions_ends_everybodys_also_those_in_the_queue():
    with running("fake") as platform:
        mine = platform.reach(platform.create(name="mine"), "RUNNING")
        other = requests.Session()
        other.trust_env = False
        other.headers["Authorization"] = (
            f"token {platform.folder.key('spawner.token').read_text().strip()}"
        )
        other.headers["X-Backendai-Act-For"] = "grace"
        made = [
            other.post(
                f"{platform.api}sessions",
                json={
                    "image": "jupyterlab",
                    "slots": {"cpu": cpu},
                    "attachment": {
                        "user": "grace",
                        "server": server,
                        "prefix": f"/user/grace/{server}/",
                    },
                },
                timeout=60,
            ).json()
            for server, cpu in (("runs", "0.1"), ("waits", everything(platform)))
        ]
        platform.reach(made[0], "RUNNING")
        assert platform.reach(made[1], "PENDING")["status"] == "PENDING"
        said = platform.down("--sessions")
        assert "ended 3 sessions" in said, said
        platform.up()
        ended = {
            s["name"]: s["status"]
            for s in platform.get("sessions?status=ended&owner=*")["items"]
        }
    assert ended[mine["name"]] == ended[made[0]["name"]] == "TERMINATED"
    assert ended[made[1]["name"]] == "CANCELLED"


def everything(platform) -> str:
    room = platform.get("resources")["room"]
    return next(r["total"] for r in room if r["slot"] == "cpu")
