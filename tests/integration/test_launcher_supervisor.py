"""The supervisor with real processes: started, crashed, adopted, stopped."""

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager

import pytest

from backendai_hub.client.lockfile import holder
from backendai_hub.launcher.child import Command
from backendai_hub.launcher.events import EventKind
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.supervisor import StartError, Supervisor

WORKER = """
import pathlib, signal, sys
from backendai_hub.client.lockfile import hold_lock
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
hold_lock(pathlib.Path(sys.argv[1]))
if sys.argv[2] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("working", flush=True)
signal.sigwait([signal.SIGUSR1])
print("told to crash", flush=True)
sys.exit(7)
"""
BROKEN = "print('no database here', flush=True); raise SystemExit(3)"


@pytest.fixture
def folder(tmp_path):
    made = DataFolder(tmp_path / "data")
    made.create()
    return made


@pytest.fixture
def events():
    return []


def worker(folder, kind="willing", version="1"):
    argv = (sys.executable, "-c", WORKER, str(folder.lock("worker")), kind)
    return Command(
        name="worker",
        argv=argv,
        environ={"PYTHONPATH": os.pathsep.join(sys.path)},
        version=version,
    )


@asynccontextmanager
async def supervising(command, folder, events, *, grace=5.0):
    supervisor = Supervisor([command], folder=folder, tell=events.append)
    supervisor.start(running=set())
    try:
        yield supervisor
    finally:
        await supervisor.stop(grace)


async def until(condition, seconds=60.0):
    async with asyncio.timeout(seconds):
        while not (value := condition()):
            await asyncio.sleep(0.01)
    return value


def kinds(events):
    return [event.kind for event in events]


def works(folder):
    async def check():
        return holder(folder.lock("worker")) is not None

    return {"worker": check}


async def test_a_process_is_started_and_stopped(folder, events):
    async with supervising(worker(folder), folder, events) as supervisor:
        await supervisor.wait_ready(works(folder), 60)
        assert holder(folder.lock("worker"))

    assert holder(folder.lock("worker")) is None
    assert kinds(events) == [EventKind.STARTED, EventKind.READY, EventKind.STOPPED]


async def test_a_crashed_process_is_started_again(folder, events):
    async with supervising(worker(folder), folder, events) as supervisor:
        await supervisor.wait_ready(works(folder), 60)
        first = holder(folder.lock("worker"))
        await until(lambda: "working" in folder.log("worker").read_text())

        os.kill(first, signal.SIGUSR1)

        await until(lambda: holder(folder.lock("worker")) not in {None, first})
    crashed = next(event for event in events if event.kind is EventKind.CRASHED)
    assert crashed.text == "exited with code 7"
    assert "told to crash" in crashed.detail


async def test_a_killed_process_is_started_again(folder, events):
    async with supervising(worker(folder), folder, events) as supervisor:
        await supervisor.wait_ready(works(folder), 60)
        first = holder(folder.lock("worker"))

        os.kill(first, signal.SIGKILL)

        await until(lambda: holder(folder.lock("worker")) not in {None, first})
    assert "was killed by SIGKILL" in [event.text for event in events]


async def test_what_cannot_start_is_named_with_its_last_words(folder, events):
    broken = Command(name="broken", argv=(sys.executable, "-c", BROKEN))

    async def never():
        return False

    async with supervising(broken, folder, events) as supervisor:
        with pytest.raises(StartError, match="broken ended 3 times") as caught:
            await supervisor.wait_ready({"broken": never}, 60)

    assert "no database here" in caught.value.detail


async def test_what_never_answers_is_named(folder, events):
    async def never():
        return False

    async with supervising(worker(folder), folder, events) as supervisor:
        with pytest.raises(StartError, match="did not answer within 0"):
            await supervisor.wait_ready({"worker": never}, 0.2)


async def test_a_stubborn_process_is_killed(folder, events):
    command = worker(folder, "stubborn")
    async with supervising(command, folder, events, grace=0.2) as supervisor:
        await supervisor.wait_ready(works(folder), 60)
        await until(lambda: "working" in folder.log("worker").read_text())

    assert holder(folder.lock("worker")) is None
    assert "was killed" in events[-1].text


@pytest.fixture
async def orphan(folder):
    """A process whose supervisor was killed without a chance to stop it."""
    script = f"""
import asyncio, os, pathlib, sys
from backendai_hub.launcher.child import Command
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.supervisor import Supervisor

async def main():
    folder = DataFolder(pathlib.Path({str(folder.root)!r}))
    argv = tuple({list(worker(folder).argv)!r})
    environ = {dict(worker(folder).environ)!r}
    command = Command(name="worker", argv=argv, environ=environ, version="1")
    Supervisor([command], folder=folder, tell=print).start(running=set())
    await asyncio.sleep(3600)

asyncio.run(main())
"""
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    supervisor = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, env=environ
    )
    pid = await until(lambda: holder(folder.lock("worker")))
    supervisor.kill()
    await supervisor.wait()
    yield pid
    if holder(folder.lock("worker")) == pid:
        os.kill(pid, signal.SIGKILL)


async def test_a_process_without_supervisor_is_adopted(folder, events, orphan):
    async with supervising(worker(folder), folder, events):
        await until(lambda: EventKind.ADOPTED in kinds(events))
        assert holder(folder.lock("worker")) == orphan

    # Stopping works for adopted processes too.
    assert holder(folder.lock("worker")) is None
    assert EventKind.STARTED not in kinds(events)


async def test_an_adopted_process_that_ends_is_started_again(folder, events, orphan):
    async with supervising(worker(folder), folder, events):
        await until(lambda: EventKind.ADOPTED in kinds(events))

        os.kill(orphan, signal.SIGKILL)

        await until(lambda: holder(folder.lock("worker")) not in {None, orphan})


async def test_a_process_with_other_settings_is_not_adopted(folder, events, orphan):
    async with supervising(worker(folder, version="2"), folder, events):
        await until(lambda: holder(folder.lock("worker")) not in {None, orphan})

    assert "other settings" in events[0].text


async def test_the_previous_run_s_log_is_set_aside(folder, events):
    folder.log("worker").write_text("from yesterday\n")

    async with supervising(worker(folder), folder, events) as supervisor:
        await supervisor.wait_ready(works(folder), 60)

    assert "yesterday" not in folder.log("worker").read_text()
    assert folder.log("worker").with_name("worker.log.1").read_text() == (
        "from yesterday\n"
    )
