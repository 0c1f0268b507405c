"""The runner of batch sessions as a real process, its lease, and what it leaves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from backendai_agent.folders import ContainerFolder
from backendai_agent.jobs import (
    RUNNER,
    Outcome,
    deliver_runner,
    find_main_program,
    read_outcome,
    release,
    write_lease,
)
from backendai_agent.leases import Leases, tell_time
from backendai_agent.outbox import Outbox, pack
from backendai_agent.runtimes.fake_jobs import read_command
from backendai_hub.api.agents import ContainerSpec, DesiredState
from backendai_hub.client.logs import find_news
from backendai_hub.core.batch import LOG_BYTES
from backendai_hub.core.ids import make_id

ID = make_id(1, b"0123456789")


class Runner:
    """One run of the runner, in a folder of its own."""

    def __init__(self, path: Path) -> None:
        self.folder = ContainerFolder(path)
        self.folder.make()
        self.process: subprocess.Popen[str] | None = None

    def start(self, command: str, *, bootstrap: str = "", **job: Any) -> None:
        deliver_runner(self.folder)
        given = {
            "environ": {"HOME": str(self.folder.work), "WORD": "hello"},
            "bootstrap": bootstrap,
            "bootstrap_seconds": 300,
            "job": {"command": command, **job},
        }
        self.folder.activation.write_text(json.dumps(given))
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(self.folder.run / RUNNER.name)],
            env={"PATH": os.defpath, "BACKENDAI_RUN_DIR": str(self.folder.run)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self) -> tuple[int, str]:
        assert self.process is not None
        said, _ = self.process.communicate(timeout=60)
        return self.process.returncode, said

    def until_it_runs(self) -> None:
        deadline = time.monotonic() + 60
        while read_outcome(self.folder) is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path / ID)


def test_a_command_runs_at_home_with_its_environment_and_nothing_to_read(
    runner: Runner,
):
    runner.start("echo $WORD; pwd; cat")
    assert runner.end() == (0, f"hello\n{runner.folder.work}\n")
    told = read_outcome(runner.folder)
    assert told == Outcome("ended", 0, "")
    assert not runner.folder.activation.exists()


def test_nobody_starts_a_command_twice(runner: Runner):
    runner.start("exit 3")
    assert runner.end()[0] == 3
    again = subprocess.run(
        [sys.executable, "-I", str(runner.folder.run / RUNNER.name)],
        env={"BACKENDAI_RUN_DIR": str(runner.folder.run)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 1
    assert "activation.json" in again.stderr


def test_a_signal_that_ends_the_command_is_named(runner: Runner):
    runner.start("kill -9 $$")
    assert runner.end()[0] == 137
    told = read_outcome(runner.folder)
    assert told == Outcome("ended", 137, "its command was ended by SIGKILL")


def test_a_command_whose_time_is_over_may_clean_up_and_then_goes(runner: Runner):
    command = "trap 'echo cleaned; exit 0' TERM; while :; do sleep 0.05; done"
    runner.start(command, timeout_seconds=1, grace_seconds=10)
    code, said = runner.end()
    assert (code, said.splitlines()[-1]) == (124, "cleaned")
    assert read_outcome(runner.folder) == Outcome("ended", 124, "timed out after 1 s")


def test_a_bootstrap_script_ends_with_the_lease_too(tmp_path: Path):
    script = "trap '' TERM; touch begun; while :; do sleep 0.05; done"
    for patience in (0.5, 2, 8, 20):  # on a slow machine it takes longer to begin
        runner = Runner(tmp_path / f"{ID}-{patience}")
        runner.start(
            "touch never",
            bootstrap=script,
            lease_seconds=240,
            lease_until=tell_time() + patience,
        )
        assert runner.end()[0] == 75
        if (runner.folder.work / "begun").exists():
            break
    else:
        pytest.fail("the script never began")
    assert not (runner.folder.work / "never").exists()
    told = read_outcome(runner.folder)
    assert told is not None
    assert (told.state, told.exit_code) == ("ended", None), "its node knows nothing"
    assert "had not heard of this node for 4 min" in told.reason


def test_nothing_is_prepared_without_a_lease(runner: Runner):
    runner.start(
        "true", bootstrap="touch begun", lease_seconds=240, lease_until=tell_time() - 1
    )
    assert runner.end()[0] == 75
    assert not (runner.folder.work / "begun").exists()


def test_a_command_that_does_not_listen_is_killed(runner: Runner):
    command = "trap '' TERM; while :; do sleep 0.05; done"
    runner.start(command, timeout_seconds=0.2, grace_seconds=0.3)
    assert runner.end()[0] == 124


def test_what_it_is_told_to_do_its_command_is_told(runner: Runner):
    runner.start("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done")
    runner.until_it_runs()
    assert runner.process is not None
    assert runner.process.stdout is not None
    assert runner.process.stdout.readline() == "up\n"
    runner.process.send_signal(signal.SIGTERM)
    code, said = runner.end()
    assert (code, said.splitlines()[-1]) == (5, "bye")


def test_it_stops_by_itself_when_its_lease_has_run_out(runner: Runner):
    """V31: whoever has the lease decides, not whether an agent is there."""
    until = tell_time() + 1.0
    runner.start("sleep 60", lease_seconds=60, lease_until=until)
    code, _ = runner.end()
    assert code == 75
    assert tell_time() >= until
    told = read_outcome(runner.folder)
    assert told is not None
    assert (told.exit_code, told.state) == (None, "ended")
    assert "had not heard of this node for 1 min" in told.reason


def test_a_renewed_lease_lets_it_run_on(runner: Runner):
    runner.start("sleep 2.5; echo done", lease_seconds=60, lease_until=tell_time() + 1)
    write_lease(runner.folder, tell_time() + 60)
    assert runner.end() == (0, "done\n")


def test_it_does_not_begin_after_its_lease(runner: Runner):
    runner.start("echo began", lease_seconds=60, lease_until=tell_time() - 1)
    assert runner.end() == (75, "")


def test_a_lie_in_the_outcome_is_no_outcome(runner: Runner):
    for lie in ("{", '{"state": "glad"}', '{"state": "ended", "exit_code": "x"}'):
        runner.folder.outcome.write_text(lie)
        assert read_outcome(runner.folder) is None
    runner.folder.outcome.unlink()
    runner.folder.outcome.symlink_to("/etc/hostname")
    assert read_outcome(runner.folder) is None


def test_a_file_for_the_session_follows_no_link(runner: Runner, tmp_path: Path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    runner.folder.lease.symlink_to(precious)
    write_lease(runner.folder, 5.0)
    assert precious.read_text() == "mine"
    assert runner.folder.lease.read_text() == "5.000\n"


def make_spec(**changes: Any) -> ContainerSpec:
    return ContainerSpec(
        id=ID, session_id=ID, **{"desired": DesiredState.RUNNING, **changes}
    )


def test_the_runner_takes_the_place_of_the_main_program():
    usual = ["/opt/python", "-I", "-m", "backendai_lab.boot"]
    assert find_main_program(usual, make_spec(), "/run/x") == usual
    assert find_main_program(usual, make_spec(command="true"), "/run/x") == [
        "/opt/python",
        "-I",
        "/run/x/runner.py",
    ]


async def test_a_lease_begins_when_the_last_report_was_sent_that_was_taken():
    leases = Leases(clock=lambda: 0.0)
    begun = asyncio.create_task(leases.begin("c", 240))
    await asyncio.sleep(0)
    assert not begun.done(), "nobody knows yet when the service last heard of us"
    leases.hear(100.0)
    leases.hear(90.0)
    assert await begun == 340.0
    leases.hear(105.0)
    assert leases.renew("c", 240) is None, "not worth writing down"
    leases.hear(115.0)
    assert leases.renew("c", 240) == 355.0
    assert leases.renew("c", 240) is None


def test_what_is_printed_waits_in_the_outbox_until_it_is_sent(tmp_path: Path):
    outbox = Outbox(tmp_path)
    assert outbox.list() == []
    outbox.put(pack(ID, "x" * (LOG_BYTES + 5)))
    (again,) = Outbox(tmp_path).list()
    assert (len(again.content), again.clipped) == (LOG_BYTES, True)
    (tmp_path / "outbox" / make_id(2, b"0123456789")).write_bytes(b"damaged")
    assert len(outbox.list()) == 1
    outbox.drop(ID)
    assert outbox.list() == []


def test_the_fake_runtime_foresees_simple_commands():
    def foresee(command: str, **changes: Any) -> tuple[float, list[str], int]:
        spec = make_spec(command=command, **changes)
        job = read_command(spec, seconds=0.5, exit_code=9)
        return job.seconds, job.lines, job.exit_code

    assert foresee("python train.py") == (0.5, [], 9)
    assert foresee("echo 'a b'; sleep 2 && sleep 1; exit 3; echo no") == (3, ["a b"], 3)
    assert foresee("sleep 9", timeout_seconds=2) == (2, [], 124)


@pytest.mark.parametrize(
    ("before", "now", "news"),
    [
        ("", "a\n", "a\n"),
        ("a\n", "a\nb\n", "b\n"),
        ("a\nb\n", "b\nc\n", "c\n"),
        ("a\nb\n", "x\ny\n", "x\ny\n"),
        ("a\nb\na\nc\n", "a\nc\nd\n", "d\n"),
        ("one\ntwo\nthree\n", "two\nthree\n", ""),
        ("a" * 5000 + "\n", "a" * 4500 + "\nmore\n", "more\n"),
    ],
)
def test_only_what_is_new_is_shown(before: str, now: str, news: str):
    assert find_news(before, now) == news


def test_the_command_of_a_cluster_waits_for_the_others(runner: Runner):
    runner.start("echo began", waits=True)
    runner.until_it_runs()
    assert runner.process is not None
    with pytest.raises(subprocess.TimeoutExpired):
        runner.process.wait(timeout=0.5)
    release(runner.folder)
    assert runner.end() == (0, "began\n")


def test_one_that_is_told_to_end_while_it_waits_never_begins(runner: Runner):
    runner.start("echo began", waits=True)
    runner.until_it_runs()
    assert runner.process is not None
    runner.process.terminate()
    assert runner.end() == (143, "")
    told = read_outcome(runner.folder)
    assert told == Outcome("ended", 143, "its command was ended by SIGTERM")


def test_a_container_that_has_no_command_is_there_until_it_is_told_to_go(
    runner: Runner,
):
    runner.start("", idle=True)
    runner.until_it_runs()
    assert read_outcome(runner.folder) == Outcome("running")
    assert runner.process is not None
    runner.process.terminate()
    assert runner.end() == (0, "")


def test_one_that_is_only_there_goes_when_its_lease_has_run_out(runner: Runner):
    runner.start("", idle=True, lease_seconds=60, lease_until=tell_time() + 0.5)
    assert runner.end()[0] == 75
    told = read_outcome(runner.folder)
    assert told is not None
    assert told.exit_code is None
    assert "had not heard of this node" in told.reason
