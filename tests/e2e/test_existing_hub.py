"""Three lines add the platform to a JupyterHub that we neither start nor configure.

The Hub is a real one with an authenticator of its own; once with our router as its
proxy's command, once with npm's configurable-http-proxy.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from tests.e2e.existing_hub import ROUTER, TOKEN, Site, existing_hub
from tests.e2e.up import until
from tests.integration.router_harness import find_npm_proxy

pytestmark = [pytest.mark.bwrap, pytest.mark.timeout(300)]


@pytest.fixture(params=["router", pytest.param("npm", marks=pytest.mark.node)])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    proxy = ROUTER if request.param == "router" else [str(find_npm_proxy())]
    with existing_hub(proxy) as site:
        yield site


def test_a_users_notebook_runs_and_stops_in_an_existing_hub(site: Site):
    web = requests.Session()
    web.trust_env = False
    web.headers["Authorization"] = f"token {TOKEN}"
    users = f"{site.url}hub/api/users/alice"
    assert web.post(users, timeout=60).status_code == 201
    token = web.post(f"{users}/tokens", json={"note": "t"}, timeout=60).json()["token"]
    alice = requests.Session()
    alice.trust_env = False
    alice.headers["Authorization"] = f"token {token}"
    asked = alice.post(
        f"{users}/servers/mine",
        json={"user_options": {"image": "jupyterlab", "slots": {"cpu": "0.5"}}},
        timeout=60,
    )
    assert asked.status_code in {201, 202}, asked.text
    lab = f"{site.url}user/alice/mine/"

    def answers() -> bool:
        found = alice.get(f"{lab}api/status", timeout=60, allow_redirects=False)
        return found.status_code == 200 and "started" in found.json()

    until(answers, site.said)
    api = f"{site.url}services/backendai/api/"
    sessions = alice.get(f"{api}sessions?status=live", timeout=60).json()["items"]
    assert [(s["owner"], s["status"]) for s in sessions] == [("alice", "RUNNING")]
    # An administrator of the Hub is none of ours unless our configuration says so.
    assert alice.get(f"{api}me", timeout=60).json()["roles"] == ["user"]

    assert alice.delete(f"{users}/servers/mine", timeout=60).status_code in {202, 204}

    def ended() -> bool:
        items = alice.get(f"{api}sessions?status=ended", timeout=60).json()["items"]
        return [s["status"] for s in items] == ["TERMINATED"]

    until(ended, site.said)
    room = alice.get(f"{api}resources", timeout=60).json()["room"]
    assert all(r["free"] == r["total"] for r in room)
