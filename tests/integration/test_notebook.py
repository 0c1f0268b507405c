"""Sessions and folders from a notebook: objects, widgets, and real kernels."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter

from backendai_hub.client import HubClient
from backendai_hub.core.errors import InvalidRequestError, NotFoundError
from backendai_hub.core.sessions import SessionStatus
from backendai_lab.notebook import Folders, Link, Sessions
from tests.admin import make_administrator
from tests.harness import WAIT_SECONDS, running_stack

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
async def stack(tmp_path, migrated_url):
    """A service with a storage host, and a node, on each engine."""
    flags = [f"--HubService.local_folders={tmp_path / 'folders'}"]
    async with running_stack(tmp_path / "data", migrated_url, flags=flags) as running:
        yield running


def until(holds, what):
    """Look until something holds in another thread."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            told = what() if callable(what) else what
            raise AssertionError(f"not within {WAIT_SECONDS:g} s: {told}")
        threading.Event().wait(0.02)


async def with_notebook(stack, work):
    """Run *work* in a thread, with what a notebook of an administrator has."""
    key = await make_administrator(stack)

    def connect():
        return HubClient(stack.url, access_key=key.name, secret_key=key.secret)

    def run():
        link = Link(connect)
        try:
            work(Sessions(link, language="en"), Folders(link, language="en"))
        finally:
            link.close()

    await asyncio.to_thread(run)


async def test_a_job_is_asked_for_followed_and_read(stack):
    def work(sessions, folders):
        job = sessions.create(
            "jupyterlab", command="echo hello; exit 3", name="first", cpu=0.5
        )
        assert job.wait("ended").exit_code == 3
        assert job.log() == "hello\n"
        assert sessions.get("first").id == job.id
        assert sessions[job.id].status is SessionStatus.TERMINATED
        assert [s.id for s in sessions.list("ended")] == [job.id]
        assert "first" in repr(sessions.list("ended"))
        assert "<table>" in job._repr_html_()
        assert repr(sessions) == "There are no sessions."
        assert sessions.resources().nodes == 1

        tried = sessions.try_out("jupyterlab", command="true", cpu=4096)
        assert not tried.starts_now
        with pytest.raises(NotFoundError, match="no session 'second'"):
            sessions.get("second")
        with pytest.raises(InvalidRequestError, match="colour: not known"):
            sessions.create(command="true", colour="red")

        assert folders.list() == []
        folders.create("data")
        assert [folder.name for folder in folders.list()] == ["data"]
        assert "data" in repr(folders)

    await with_notebook(stack, work)


async def test_the_panel_follows_what_happens_elsewhere_and_stops_at_a_click(stack):
    def work(sessions, _folders):
        panel = sessions.panel()
        until(lambda: sessions.model.state == "live", "the panel is connected")
        job = sessions.create("jupyterlab", command="sleep 600", name="long", cpu=0.5)
        other = Sessions(Link(sessions.link._connect), language="en")
        other.create("jupyterlab", command="sleep 600", name="elsewhere", cpu=0.5)

        model = sessions.model
        names = lambda: {s.name for s in model.sessions.values()}  # noqa: E731
        until(lambda: names() == {"long", "elsewhere"}, "both are known")
        running = lambda s: s.status is SessionStatus.RUNNING  # noqa: E731
        until(lambda: all(map(running, model.sessions.values())), "both run")
        until(lambda: len(panel._list.children) == 2, "both are shown")
        before = panel.row(job.id)
        assert "Running" in before._status.value

        agent = stack.programs["agent"].pid
        os.kill(agent, signal.SIGSTOP)  # it has not ended before we have looked
        before._stop.click()
        assert model.sessions[job.id].status is SessionStatus.TERMINATING
        assert "Stopping" in panel.row(job.id)._status.value
        os.kill(agent, signal.SIGCONT)
        until(lambda: model.sessions[job.id].ended_at, "it has ended")
        assert panel.row(job.id) is before  # changed in place
        other.stop("elsewhere")
        until(
            lambda: all(s.ended_at for s in model.sessions.values()), "both have ended"
        )
        other.close()
        panel.close()
        assert model.state == "idle"

    await with_notebook(stack, work)


async def test_what_is_refused_is_told_and_nothing_is_shown_as_it_is_not(stack):
    def work(sessions, _folders):
        panel = sessions.panel()
        form = panel.form
        form.fill()
        until(lambda: form.image.value, "the form is filled")
        form.name.value = "no good name!"
        form.command.value = "true"
        form.submit()
        until(lambda: not form.button.disabled, "the answer is there")
        assert "It did not work:" in form.told.value
        assert "<b>" not in form.told.value
        sessions.language = "ko"
        form.submit()
        until(lambda: "쓸 수 없습니다" in form.told.value, lambda: form.told.value)
        form.name.value = "good"
        form.submit()
        until(
            lambda: "good" in form.told.value, lambda: f"it is taken: {form.told.value}"
        )
        until(lambda: sessions.get("good").ended_at, "it has run")
        assert len(panel._list.children) == 1

    await with_notebook(stack, work)


async def test_the_panel_goes_on_after_the_service_was_away(tmp_path):
    async with running_stack(tmp_path / "data") as stack:
        key = await make_administrator(stack)
        link = Link(
            lambda: HubClient(stack.url, access_key=key.name, secret_key=key.secret)
        )
        sessions = Sessions(link, language="en")
        await asyncio.to_thread(sessions.panel)
        await asyncio.to_thread(until, lambda: sessions.model.state == "live", "live")
        stack.programs["service"].kill()
        await asyncio.to_thread(
            until, lambda: sessions.model.state == "retrying", "it is told"
        )
        await stack.start_service()
        await asyncio.to_thread(until, lambda: sessions.model.state == "live", "back")
        assert sessions.model.error == ""
        await asyncio.to_thread(sessions.close)


def write_notebook(*cells):
    return nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )


def kernel_environ(stack, key, **more):
    return {
        **{k: v for k, v in os.environ.items() if k != "JPY_SESSION_NAME"},
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT), str(ROOT / "labextension"), str(ROOT / "agent")]
        ),
        "BACKENDAI_ENDPOINT": stack.url,
        "BACKENDAI_ACCESS_KEY": key.name,
        "BACKENDAI_SECRET_KEY": key.secret,
        "BACKENDAI_LANGUAGE": "en",
        **more,
    }


def run_program(stack, key, *words, **environ):
    """Run a program that starts a kernel; return what it printed."""
    done = subprocess.run(
        [sys.executable, *words],
        env=kernel_environ(stack, key, **environ),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def test_a_notebook_runs_from_a_command_and_becomes_a_page(stack, tmp_path):
    """There is no front end, so everything but what is asked for is a table."""
    key = await make_administrator(stack)
    written = write_notebook(
        "from backendai_lab import folders, sessions",
        "job = sessions.create('jupyterlab', command='echo done', name='j', cpu=0.5)\n"
        "job.wait('ended')",
        "print(job.log(), job.exit_code)",
        "sessions",
        "folders.create('papers'); folders",
        "job.progress()",
    )
    nbformat.write(written, tmp_path / "work.ipynb")
    convert = ("-m", "nbconvert", "--execute", f"--output-dir={tmp_path / 'out'}")

    def execute(form):
        run_program(stack, key, *convert, f"--to={form}", str(tmp_path / "work.ipynb"))

    await asyncio.to_thread(execute, "notebook")
    done = nbformat.read(tmp_path / "out" / "work.ipynb", as_version=4)
    outputs = [cell.outputs for cell in done.cells]
    assert "Succeeded" in outputs[1][0].data["text/plain"]
    assert outputs[2][0].text == "done\n 0\n"
    assert outputs[3][0].data["text/plain"] == "There are no sessions."
    assert "widget-view" not in json.dumps(outputs[:5])
    assert "papers" in outputs[4][0].data["text/html"]
    assert "widget-view" in json.dumps(outputs[5])
    page = HTMLExporter().from_notebook_node(done)[0]
    assert re.search(r"<td[^>]*>papers</td>", page)


async def test_a_panel_is_used_while_another_cell_runs(stack):
    """The kernel's subshells carry clicks and words, as a front end asks for."""
    key = await make_administrator(stack)
    program = Path(__file__).parents[1] / "kernel_click.py"

    printed = await asyncio.to_thread(
        run_program, stack, key, str(program), BACKENDAI_WIDGETS="1"
    )

    assert printed.split("\n")[:3] == ["TERMINATING", "typed next", "cell ends"]
