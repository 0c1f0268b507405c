"""The whole platform from one command: up, down, and everything killed between."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from backendai_hub.client.lockfile import holder
from backendai_hub.launcher.bring_up import running_processes
from backendai_hub.launcher.configuration import read_checked_config
from backendai_hub.launcher.folder import DataFolder

SECONDS = 60


def backendai(*words):
    argv = [sys.executable, "-m", "backendai_hub.cli", *(str(word) for word in words)]
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=120, check=False
    )


def get(url, token=None):
    headers = {"Authorization": f"token {token}"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return answer.status, answer.read().decode()


def until(condition):
    deadline = time.monotonic() + SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return value


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = DataFolder(tmp_path_factory.mktemp("launcher") / "data")
    yield made
    backendai("down", "--data-dir", made.root)
    assert running_processes(made) == {}


@pytest.fixture(scope="module")
def platform(folder):
    """A platform that was brought up for the first time."""
    return bring_up(folder)


def bring_up(folder):
    done = backendai(
        *("up", "--data-dir", folder.root, "--runtime", "fake", "--detach", "--json")
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def running(platform, folder):
    """The platform, brought up again if the test before left it down."""
    return bring_up(folder)


def test_one_object_says_how_to_get_in(platform):
    assert platform["url"].startswith("http://127.0.0.1:")
    assert platform["admin"] == "admin"
    assert len(platform["password"]) == 19
    assert platform["runtime"] == "fake"
    assert platform["isolation"]["multi_user"] is True


def test_people_can_log_in(running):
    status, page = get(f"{running['url']}hub/login")

    assert status == 200
    assert "password" in page


def test_people_are_added_before_the_administrator_has_logged_in(running, folder):
    added = backendai("user", "add", "Grace", "--json", "--data-dir", folder.root)
    assert added.returncode == 0, added.stderr
    made = json.loads(added.stdout)
    assert made["name"] == "grace"
    assert len(made["password"]) == 19

    again = backendai("user", "add", "grace", "--data-dir", folder.root)
    assert again.returncode == 1
    assert "there is a user named 'grace' already" in again.stderr


def test_the_password_is_shown_once_and_stored_nowhere(platform, running, folder):
    assert running["password"] is None
    for path in folder.root.rglob("*"):
        if path.is_file() and path.suffix != ".sock":
            assert platform["password"].encode() not in path.read_bytes(), path


def test_the_token_acts_for_the_administrator(running):
    _, said = get(f"{running['url']}hub/api/user", running["token"])
    _, me = get(f"{running['url']}services/backendai/api/me", running["token"])

    assert json.loads(said)["name"] == "admin"
    assert "superadmin" in json.loads(me)["roles"]


def test_a_second_up_joins_the_first(running, folder):
    before = running_processes(folder)

    again = bring_up(folder)

    assert again["url"] == running["url"]
    assert running_processes(folder) == before


def test_status_shows_every_process(running, folder):
    done = backendai("status", "--json", "--data-dir", folder.root)

    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert all(process["pid"] for process in found["processes"])
    assert found["sessions"] == 0
    assert [node["status"] for node in found["nodes"]] == ["ALIVE"]


@pytest.mark.parametrize("name", ["hub", "service", "router", "agent"])
def test_a_killed_process_comes_back(running, folder, name):
    pid = running_processes(folder)[name]

    os.kill(pid, signal.SIGKILL)

    until(lambda: holder(folder.lock(name)) not in {None, pid})


def test_a_killed_supervisor_leaves_everything_running(running, folder):
    before = running_processes(folder)
    supervisor = holder(folder.lock("supervisor"))
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: holder(folder.lock("supervisor")) is None)

    assert running_processes(folder) == before
    again = bring_up(folder)

    assert running_processes(folder) == before
    assert again["url"] == running["url"]
    assert holder(folder.lock("supervisor")) not in {None, supervisor}


def test_down_stops_everything_and_up_returns_to_the_same_address(running, folder):
    done = backendai("down", "--data-dir", folder.root)

    assert done.returncode == 0
    assert running_processes(folder) == {}
    assert holder(folder.lock("supervisor")) is None
    assert bring_up(folder)["url"] == running["url"]


def test_down_without_a_supervisor_stops_what_is_left(running, folder):
    os.kill(holder(folder.lock("supervisor")), signal.SIGKILL)
    until(lambda: holder(folder.lock("supervisor")) is None)

    backendai("down", "--data-dir", folder.root)

    assert running_processes(folder) == {}


def test_an_interrupted_foreground_stops_what_it_started(folder, platform):
    backendai("down", "--data-dir", folder.root)
    argv = [sys.executable, "-m", "backendai_hub.cli", "up", "--runtime", "fake"]
    process = subprocess.Popen(
        [*argv, "--data-dir", folder.root],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        for line in process.stdout:
            if "Ctrl-C" in line:
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0

    assert running_processes(folder) == {}


def test_a_setting_no_process_has_is_refused_before_anything_starts(tmp_path):
    folder = DataFolder(tmp_path / "data")
    folder.create()
    folder.site_config.write_text("c.JupyterHub.spawner_clas = 1\n")

    done = backendai("up", "--data-dir", folder.root, "--detach")

    assert done.returncode == 1
    assert "did you mean spawner_class?" in done.stderr
    assert running_processes(folder) == {}


def test_settings_of_every_process_are_accepted(tmp_path):
    site = tmp_path / "backendai_config.py"
    site.write_text(
        "c.JupyterHub.log_level = 'WARN'\n"
        "c.Authenticator.allowed_users = {'alice'}\n"
        "c.BackendAISpawner.start_timeout = 100\n"
        "c.HubService.max_live_sessions = 5\n"
        "c.BackendAIAgent.reserved_cpu = '1'\n"
        "c.Router.drain_timeout = 1.0\n"
        "c.Launcher.port = 9000\n"
    )

    assert read_checked_config(site).Launcher.port == 9000


def test_what_fails_to_start_is_named_with_its_last_words(tmp_path):
    folder = DataFolder(tmp_path / "data")
    folder.create()
    folder.databases.joinpath("backendai.sqlite").write_text("not a database")

    done = backendai("up", "--data-dir", folder.root, "--runtime", "fake", "--detach")

    assert done.returncode == 1
    assert "service ended 3 times before it was ready" in done.stderr
    assert "file is not a database" in done.stderr
    assert running_processes(folder) == {}
