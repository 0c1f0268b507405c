"""How a waiting process becomes somebody's session."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from backendai_lab.boot import (
    Activation,
    BootError,
    listen_on,
    take_activation,
    wait_for_activation,
)


class Time:
    """A clock that moves only when somebody pauses."""

    def __init__(self):
        self.now = 0.0
        self.then = {}

    def __call__(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds
        for moment in [moment for moment in self.then if moment <= self.now]:
            self.then.pop(moment)()


def test_the_activation_is_read_once_and_gone(tmp_path):
    path = tmp_path / "activation.json"
    path.write_text(json.dumps({"environ": {"A": "1", "N": 2}, "argv": ["--x"]}))

    assert take_activation(path) == Activation({"A": "1", "N": "2"}, ["--x"])
    assert take_activation(path) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"environ": 1}', "{", '{"argv":[]}'])
def test_an_activation_that_makes_no_sense_ends_the_session(tmp_path, text):
    path = tmp_path / "activation.json"
    path.write_text(text)
    with pytest.raises(BootError, match="cannot be read"):
        take_activation(path)
    assert not path.exists()


def test_a_parked_session_waits_as_long_as_it_takes(tmp_path):
    path = tmp_path / "activation.json"
    time = Time()
    time.then[3600.0] = lambda: path.write_text('{"environ": {}}')

    found = wait_for_activation(path, park_seconds=0, clock=time, pause=time.pause)
    assert found == Activation({}, [])
    assert time.now == pytest.approx(3600, abs=0.02)


def test_a_session_that_nobody_wants_ends_by_itself(tmp_path):
    time = Time()
    with pytest.raises(BootError, match="no activation came within 5 seconds"):
        wait_for_activation(
            tmp_path / "none", park_seconds=5, clock=time, pause=time.pause
        )
    assert time.now == pytest.approx(5, abs=0.02)


@pytest.mark.parametrize(
    ("listen", "options", "url"),
    [
        ("tcp:0.0.0.0:8888", [], "http://0.0.0.0:8888/user/alice/"),
        (
            "unix:/run/backendai/lab.sock",
            [
                "--ServerApp.sock=/run/backendai/lab.sock",
                "--ServerApp.sock_mode=0600",
            ],
            "http://localhost:8888/user/alice/",
        ),
    ],
)
def test_the_server_listens_where_the_agent_says(listen, options, url):
    environ = {"JUPYTERHUB_SERVICE_URL": "http://127.0.0.1:0/user/alice/"}

    assert listen_on(listen, environ) == (options, url)


@pytest.mark.parametrize("listen", ["", "unix:relative", "tcp::1", "tcp:x:y", "fd:3"])
def test_a_listener_nobody_understands_is_refused(listen):
    with pytest.raises(BootError, match="BACKENDAI_LISTEN"):
        listen_on(listen, {})


def run_python(code):
    done = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": "/nonexistent"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_session_does_not_import_what_it_never_uses():
    printed = run_python(
        "import sys, backendai_lab.boot as boot\n"
        "app = boot.import_server()\n"
        "heavy = {'sqlalchemy', 'alembic', 'jupyterhub.orm', 'rfc3987_syntax',"
        " 'jupyterhub.app', 'httpx', 'rich', 'IPython', 'nbconvert'}\n"
        "here = {name for name, module in sys.modules.items() if module}\n"
        "print(app.__name__, sorted(heavy & here))\n"
    )
    assert printed == "JupyterHubSingleUser []\n"


def test_whoever_needs_the_real_modules_afterwards_gets_them():
    printed = run_python(
        "import backendai_lab.boot as boot\n"
        "boot.import_server()\n"
        "import jupyterhub.orm, jupyterhub.handlers.pages, sqlalchemy, requests\n"
        "from jupyterlab.extensions.pypi import PyPIExtensionManager\n"
        "print(jupyterhub.orm.User.__name__, sqlalchemy.select(1), requests.Session)\n"
    )
    assert printed == "User SELECT 1 <class 'requests.sessions.Session'>\n"


def test_a_stand_in_that_lacks_something_is_done_without():
    printed = run_python(
        "import backendai_lab.lean as lean, backendai_lab.boot as boot, sys\n"
        "lean.STAND_INS['jupyterhub.handlers.pages'].clear()\n"
        "app = boot.import_server()\n"
        "from jupyterhub.handlers.pages import HealthCheckHandler\n"
        "print(app.__name__, 'sqlalchemy' in sys.modules)\n"
    )
    assert printed == "JupyterHubSingleUser True\n"


def test_importing_the_package_alone_imports_nothing_else():
    printed = run_python(
        "import sys; before = set(sys.modules)\n"
        "import backendai_lab\n"
        "new = {n.partition('.')[0] for n in set(sys.modules) - before}\n"
        "print(sorted(new & {'jupyter_server', 'jupyterhub', 'aiohttp', 'tornado'}))\n"
    )
    assert printed == "[]\n"
