"""The owner's script: run once, heard out, and believed when it fails."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest

from backendai_lab.boot import Activation, BootError, prepare
from backendai_lab.bootstrap import (
    BootstrapError,
    find_interpreter,
    last_line,
    run_bootstrap,
)
from backendai_lab.dotfiles import File


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def run_dir(tmp_path):
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def word(run_dir):
    return json.loads((run_dir / "preparation.json").read_text())["failure"]


def until(condition):
    """Wait for another process; a deadline keeps a failure from hanging."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        os.sched_yield()


def is_alive(pid):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return "zombie" not in status


def log_of(home):
    return (home / ".backendai/bootstrap.log").read_text()


def test_it_runs_in_the_home_with_the_sessions_environment(home, run_dir, capfdbinary):
    run_bootstrap(
        "echo $ANSWER; pwd; ls -l $0 | cut -c1-10; cat; echo late >&2",
        home=home,
        run_dir=run_dir,
        seconds=20,
        environ={"ANSWER": "42", "PATH": os.environ["PATH"]},
    )
    assert log_of(home).split("\n") == ["42", str(home), "-rw-------", "late", ""]
    assert capfdbinary.readouterr().out.decode() == log_of(home)
    assert stat.S_IMODE((home / ".backendai/bootstrap.log").stat().st_mode) == 0o600
    assert list(run_dir.iterdir()) == []


def test_a_script_names_its_interpreter_in_its_first_line(home, run_dir):
    assert find_interpreter("#!/usr/bin/env -S python3 -u\nx") == [
        "/usr/bin/env",
        "-S python3 -u",
    ]
    assert find_interpreter("#! /bin/sh\r\nx") == ["/bin/sh"]
    assert find_interpreter("echo") == find_interpreter("#!\necho") == ["/bin/bash"]
    python = "#!/usr/bin/env python3\nopen('made', 'w').write('by python')"
    run_bootstrap(python, home=home, run_dir=run_dir, seconds=20)
    assert (home / "made").read_text() == "by python"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "the bootstrap script ended with exit code 3"),
        (
            "echo one; echo 'no such \x1b[31mpackage\x1b[0m'; echo; exit 1",
            "the bootstrap script ended with exit code 1: no such package",
        ),
        ("kill -TERM $$", "the bootstrap script was ended by signal 15"),
        (
            "kill -KILL $$",
            "the bootstrap script was killed, perhaps for lack of memory",
        ),
        (
            "#!/no/such/shell\n",
            "the bootstrap script cannot be run by /no/such/shell:"
            " No such file or directory",
        ),
    ],
)
def test_why_it_failed_is_said(home, run_dir, script, reason):
    with pytest.raises(BootstrapError) as raised:
        run_bootstrap(script, home=home, run_dir=run_dir, seconds=20)
    assert str(raised.value) == reason
    assert not (run_dir / "bootstrap.sh").exists()


def test_a_script_that_takes_too_long_is_ended_with_all_it_started(home, run_dir):
    script = (
        "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) &"
        " echo $! > pid; echo waiting; wait; while :; do sleep 0.05; done"
    )
    with pytest.raises(BootstrapError) as raised:
        run_bootstrap(script, home=home, run_dir=run_dir, seconds=1, grace_seconds=0.05)
    assert (
        str(raised.value) == "the bootstrap script took longer than 1 seconds: waiting"
    )
    child = int((home / "pid").read_text())
    until(lambda: not is_alive(child))


def test_what_it_leaves_in_the_background_goes_on(home, run_dir):
    script = "mkfifo go; (read x < go; echo $x > done; echo end) & exit 0"
    run_bootstrap(script, home=home, run_dir=run_dir, seconds=20)
    with (home / "go").open("w") as go:
        go.write("on\n")
    until(lambda: "end" in log_of(home).split("\n"))
    assert (home / "done").read_text() == "on\n"


def test_much_output_is_kept_whole_and_its_end_is_shown(home, run_dir, capfdbinary):
    script = "head -c 200000 /dev/zero | tr '\\0' x; echo; echo the end"
    run_bootstrap(script, home=home, run_dir=run_dir, seconds=20)
    shown = capfdbinary.readouterr().out
    assert len(log_of(home)) == 200009
    assert len(shown) == 64 << 10
    assert shown.endswith(b"x\nthe end\n")


def test_an_odd_home_is_no_reason_not_to_run(home, run_dir, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (home / ".backendai").symlink_to(outside)
    run_bootstrap("echo heard", home=home, run_dir=run_dir, seconds=20)
    assert list(outside.iterdir()) == []
    assert (run_dir / "bootstrap.log").read_text() == "heard\n"
    (home / ".backendai").unlink()
    (home / ".backendai").mkdir()
    os.mkfifo(home / ".backendai/bootstrap.log")
    run_bootstrap("echo again", home=home, run_dir=run_dir, seconds=20)
    assert (run_dir / "bootstrap.log").read_text() == "again\n"


def test_the_last_line_is_the_last_that_says_anything():
    assert last_line(b"one\ntwo\x07\x00\n \n\n") == "two"
    assert last_line(b"\xff bad\r\n") == "\ufffd bad"
    assert last_line(b"") == ""
    assert len(last_line(b"x" * 1000)) == 300


# -- before the server starts --------------------------------------------------------


def test_files_are_there_before_the_script_runs(home, run_dir):
    files = (File(".profile", "600", "X=1\n"),)
    activation = Activation({}, [], files, ". ./.profile; echo $X > x")
    prepare(activation, home=home, run_dir=run_dir)
    assert (home / "x").read_text() == "1\n"
    assert word(run_dir) == ""


def test_nothing_is_done_where_nothing_was_asked_for(home, run_dir):
    prepare(Activation({}, [], (), " \n"), home=home, run_dir=run_dir)
    assert [*home.iterdir(), *run_dir.iterdir()] == []


def test_a_failed_script_ends_the_session_and_the_agent_is_told(home, run_dir):
    with pytest.raises(BootError, match="exit code 3: broken"):
        prepare(
            Activation({}, [], (), "echo broken; exit 3"), home=home, run_dir=run_dir
        )
    assert word(run_dir) == "the bootstrap script ended with exit code 3: broken"
    assert stat.S_IMODE((run_dir / "preparation.json").stat().st_mode) == 0o644


def test_a_file_that_cannot_be_written_is_told_and_the_session_starts(
    home, run_dir, capfd
):
    (home / ".profile").write_text("mine")
    files = (File(".profile", "600", "ours"),)
    prepare(Activation({}, [], files), home=home, run_dir=run_dir)
    assert word(run_dir) == ""
    assert "'.profile' was not written" in capfd.readouterr().err
