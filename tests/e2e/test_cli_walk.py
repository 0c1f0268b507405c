"""An administrator sets up two domains with the command line alone; two people of one
of them compete for what their project may have.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browser import Person, chromium
from tests.e2e.up import Platform, run, running, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


class Shell:
    """A terminal of somebody, with a home of their own."""

    def __init__(self, home: Path, **environ: str) -> None:
        home.mkdir(parents=True)
        keep = {k: v for k, v in os.environ.items() if not k.startswith("BACKENDAI_")}
        self.environ = {
            **keep,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "BACKENDAI_DATA_DIR": str(home / "none"),
            **environ,
        }

    def __call__(self, *words: str, say: str = "") -> subprocess.CompletedProcess[str]:
        return run(*words, env=self.environ, input=say)

    def well(self, *words: str, say: str = "") -> str:
        done = self(*words, say=say)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def read(self, *words: str) -> Any:
        return json.loads(self.well(*words, "--json"))

    @contextmanager
    def begin(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Begin a command that waits for something; it does not outlast the block."""
        with subprocess.Popen(
            [sys.executable, "-m", "backendai_hub.cli", *words],
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def set_up_tenants(root: Shell) -> dict[str, str]:
    """Set up domains, projects, a policy and people; return one-time passwords."""
    for domain in ("research", "teaching"):
        root.well(
            *("admin", "domain", "add", domain),
            *("--allowed-docker-registries", "local"),
        )
    root.well(
        *("admin", "resource-group", "allow", "default"),
        *("--domain", "research", "--domain", "teaching"),
    )
    root.well(
        *("admin", "project", "add", "vision", "--domain", "research"),
        *("--slots", "cpu=1", "--description", "what the machine sees"),
    )
    root.well("admin", "project", "add", "speech", "--domain", "research")
    root.well("admin", "project", "add", "course", "--domain", "teaching")
    root.well(
        *("admin", "policy", "keypair", "add", "student"),
        *("--max-concurrent-sessions", "2", "--slots", "cpu=4,mem=16g"),
    )
    passwords = {}
    for name, project in (
        ("grace", "research:vision"),
        ("ada", "research:vision"),
        ("linus", "teaching:course"),
    ):
        domain = project.partition(":")[0]
        made = root.read(
            *("admin", "account", "add", name),
            *("--domain", domain, "--project", project),
        )
        passwords[name] = made["password"]
        (key,) = root.read("admin", "keypair", "list", "--filter", f"user={name}")
        root.well(
            *("admin", "keypair", "update", key["name"]),
            *("--resource-policy", "student"),
        )
    root.well("admin", "project", "add-member", "research:speech", "ada")
    return passwords


def log_in_by_browser(shell: Shell, platform: Platform, person: Person) -> None:
    """Log in as people do: the terminal shows a code, the browser confirms it."""
    with shell.begin("login", "--url", platform.url, "--no-browser") as waiting:
        assert waiting.stderr is not None
        page, code = waiting.stderr.readline(), waiting.stderr.readline()
        address = page.removeprefix("Open ").strip()
        person.page.goto(address)
        shown = re.search(r"[A-Z]{4}-[A-Z]{4}", code)
        assert shown is not None
        body = person.page.locator("body")
        assert shown[0] in body.inner_text()
        assert "If somebody sent you here" in body.inner_text()
        person.look("activate")
        # A request that another page could send, with the browser's own cookies.
        forged = person.page.request.post(
            address.partition("?")[0], form={"code": shown[0], "decision": "confirm"}
        )
        assert forged.status == 403, forged.text()
        person.page.get_by_role("button", name="Confirm").click()
        person.page.get_by_role("heading", name="Logged in").wait_for()
        out, err = waiting.communicate(timeout=60)
        assert waiting.returncode == 0, out + err
        assert f"as {person.name}" in out


def log_in_by_keypair(shell: Shell, platform: Platform, root: Shell, name: str) -> None:
    """Log in as scripts do, the secret on standard input."""
    made = root.read("admin", "keypair", "add", "--user", name)
    words = ("login", "--url", platform.url, "--access-key", made["name"])
    shell.well(*words, "--secret-stdin", say=made["secret"] + "\n")


def test_two_people_compete_for_what_their_project_may_have(tmp_path):
    with running("fake") as platform, chromium() as browser:
        root = Shell(tmp_path / "root", BACKENDAI_DATA_DIR=str(platform.folder.root))
        passwords = set_up_tenants(root)

        grace = Shell(tmp_path / "grace")
        person = Person(browser, platform.url, "grace")
        person.log_in(passwords["grace"])
        log_in_by_browser(grace, platform, person)
        ada, linus = Shell(tmp_path / "ada"), Shell(tmp_path / "linus")
        # JupyterHub has to have seen somebody before it serves their sessions.
        Person(browser, platform.url, "ada").log_in(passwords["ada"])
        log_in_by_keypair(ada, platform, root, "ada")
        log_in_by_keypair(linus, platform, root, "linus")
        assert grace.read("whoami")["projects"] == ["vision"]
        assert ada.read("whoami")["projects"] == ["speech", "vision"]

        start = ("session", "start", "jupyterlab", "--project", "vision")
        train = grace.read(*start, "--name", "train", "--slots", "cpu=1,mem=512m")
        grace.well("session", "wait", "train")
        asked = ada.read(*start, "--name", "eval", "--slots", "cpu=0.5,mem=512m")

        def words() -> bool:
            info = ada.read("session", "info", asked["id"])
            assert info["status"] == "PENDING", info
            return "project vision: cpu 1 of 1 in use, asks 0.5" in info["reason"]

        until(words, "the queue says what it waits for")
        with ada.begin("session", "wait", "eval", "--json") as waiting:
            assert waiting.stderr is not None
            assert "project vision: cpu 1 of 1 in use" in waiting.stderr.readline()

            grace.well("session", "terminate", "train")
            out, err = waiting.communicate(timeout=60)
            assert waiting.returncode == 0, err
            assert json.loads(out)["status"] == "RUNNING"

        assert root.read("admin", "usage", "verify")["drift"] == 0
        nothing_of_research_is_seen_from(linus, train["id"])
        grace.well("logout")
        assert grace("whoami").returncode == 4
        keys = root.read("admin", "keypair", "list", "--filter", "user=grace")
        assert [key["is_default"] for key in keys] == [True], "what login made is gone"
        root.well("audit", "verify")


def nothing_of_research_is_seen_from(linus: Shell, session_id: str) -> None:
    """See that another domain's things are not there at all."""
    assert linus.read("session", "list", "--owner", "*") == []
    names = [project["name"] for project in linus.read("project", "list")]
    assert names == ["course"]
    for words in (
        ("project", "info", "research:vision"),
        ("session", "info", session_id),
        ("admin", "domain", "info", "research"),
        ("admin", "user", "info", "grace"),
    ):
        done = linus(*words)
        assert done.returncode == 1, words
        assert "there is no" in done.stderr, words
    refused = linus("admin", "domain", "add", "mine")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
