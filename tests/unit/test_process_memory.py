"""What the files of a container say after a restart, and whom they believe."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from backendai_agent.folders import ContainerFolder
from backendai_agent.runtimes.base import RuntimeFailure
from backendai_agent.runtimes.process_environment import (
    EnvironmentUnusableError,
    ask_environment,
)
from backendai_agent.runtimes.process_memory import (
    ProcessMemory,
    StartRecord,
    start_time,
)
from backendai_agent.runtimes.process_preparation import UserRange, find_containers
from backendai_agent.runtimes.process_supervisor import tree_memory

ID = "0190a1b2-0000-7000-8000-000000000001"


@pytest.fixture
def memory(tmp_path: Path) -> ProcessMemory:
    container = ContainerFolder(tmp_path / "containers" / ID)
    memory = ProcessMemory(container)
    memory.path.mkdir(parents=True)
    return memory


def test_a_record_is_read_back_as_it_was_written(memory: ProcessMemory) -> None:
    record = StartRecord(id=ID, session_id="s", owner="ann", uid=200001)
    assert memory.read_record() is None
    memory.write_record(record)
    assert memory.read_record() == record
    folder = memory.container.path.parent
    assert [found for _, found in find_containers(folder)] == [record]
    memory.record_file.write_text("{broken")
    assert list(find_containers(folder)) == []


def test_a_process_id_counts_only_while_the_lock_is_held(
    memory: ProcessMemory,
) -> None:
    memory.pid.write_text(f"{os.getpid()}\n")
    assert memory.supervisor() is None
    with memory.lock.open("w") as lock:
        assert memory.supervisor() is None
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert memory.is_supervised()
        assert memory.supervisor() == os.getpid()
    assert not memory.is_supervised()


def test_a_first_process_is_believed_only_with_its_start_time(
    memory: ProcessMemory,
) -> None:
    started = start_time(os.getpid())
    memory.init.write_text(f"{os.getpid()} {started}")
    identity = memory.sandbox_init()
    assert identity is not None
    assert identity.pid == os.getpid()
    memory.init.write_text(f"{os.getpid()} 12345")
    assert memory.sandbox_init() is None


def test_bubblewraps_word_is_good_while_the_shell_lives(memory: ProcessMemory) -> None:
    memory.info.write_text(f'{{"child-pid": {os.getpid()}}}')
    assert memory.learn_init() is None
    with memory.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert memory.learn_init() is not None
        memory.info.write_text('{"child-')  # caught while it was being written
        assert memory.sandbox_init() is not None  # it was written down
    assert memory.sandbox_init() is not None


def test_an_exit_is_known_from_its_file(memory: ProcessMemory) -> None:
    assert not memory.has_ended()
    memory.exit.touch()  # opened and not yet written
    assert not memory.has_ended()
    memory.exit.write_text("137\n")
    assert memory.has_ended()
    assert memory.exit_code() == 137
    memory.forget_run()
    assert not memory.has_ended()


def test_a_process_that_has_ended_has_no_start_time() -> None:
    ended = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert start_time(ended.pid) is None  # it is still in the table of processes
    ended.wait()
    assert start_time(os.getpid()) is not None


def test_a_long_log_is_cut_to_its_end(memory: ProcessMemory) -> None:
    memory.log.write_text("".join(f"line {i}\n" for i in range(1000)))
    assert not memory.bound_log(1 << 20)
    with memory.log.open("a") as writer:
        assert memory.bound_log(5000)
        writer.write("after\n")
    assert memory.log.read_text() == "after\n"
    assert memory.tail_log(2) == "line 999\nafter\n"
    assert memory.tail_log(0) == ""
    assert memory.bound_log(3)
    assert memory.tail_log(1) == "er\n"


def test_a_log_with_odd_bytes_is_shown(memory: ProcessMemory) -> None:
    memory.log.write_bytes(b"\xff\xfe ok\n")
    assert memory.tail_log(5).endswith(" ok\n")


def test_every_container_has_a_user_of_its_own_until_it_is_gone() -> None:
    users = UserRange(200000, 3)
    first = users.give("a", [])
    assert users.give("a", []) == first
    second = users.give("b", [])
    third = users.give("c", [])
    assert {first, second, third} == {200000, 200001, 200002}
    with pytest.raises(RuntimeFailure, match="uid_count"):
        users.give("d", [])
    users.take_back("b")
    assert users.give("d", []) == second


def test_users_that_an_earlier_agent_gave_are_not_given_again() -> None:
    users = UserRange(200000, 2)
    assert users.give("a", [200000]) == 200001
    with pytest.raises(RuntimeFailure):
        users.give("b", [200000])


def test_the_memory_of_a_tree_is_added_up() -> None:
    program = "kept = bytearray(b'x') * (50 << 20); print(len(kept)); input()"
    with subprocess.Popen(
        ["/bin/sh", "-c", f'python3 -u -c "{program}"; true'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        assert tree_memory(shell.pid) > 50 << 20
        shell.communicate(b"\n")
    assert tree_memory(shell.pid) == 0


def test_an_environment_tells_where_its_parts_are(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "package").mkdir(parents=True)
    (checkout / "package" / "__init__.py").touch()
    (checkout / "secrets").mkdir()
    (checkout / "config.py").touch()
    venv = tmp_path / "venv"
    subprocess.run(
        ["/usr/bin/env", "python3", "-m", "venv", "--without-pip", str(venv)],
        check=True,
    )
    site = next(venv.glob("lib/python*/site-packages"))
    (site / "editable.pth").write_text(f"{checkout}\n")

    environment = ask_environment("mine", str(venv), module="package")

    assert str(venv) in environment.paths
    assert str(checkout / "package") in environment.paths
    assert not [p for p in environment.paths if "secrets" in p or "config" in p]
    assert str(checkout) not in environment.paths
    with pytest.raises(EnvironmentUnusableError, match="has no nowhere"):
        ask_environment("mine", str(venv), module="nowhere")
    with pytest.raises(EnvironmentUnusableError, match="does not answer"):
        ask_environment("mine", str(tmp_path), module="")
