"""The agent hears what a session says of its preparation, and trusts none of it."""

from __future__ import annotations

import json
import os

import msgspec
import pytest

from backendai_agent.activation import Surroundings, build_activation
from backendai_agent.folders import container_folder
from backendai_agent.preparation import (
    TOO_OLD,
    Preparation,
    find_omission,
    read_preparation,
)
from backendai_agent.reconcile import describe
from backendai_agent.runtimes.base import ContainerPatch
from backendai_hub.api.agents import ContainerSpec, DesiredState, SessionFile

CONTAINER = "0190a0e0-0000-7000-8000-000000000001"
FILE = SessionFile(path=".bashrc", permission="644", content="alias l=ls\n")


def make_spec(**changes):
    return ContainerSpec(
        id=CONTAINER, session_id="s-1", desired=DesiredState.RUNNING, **changes
    )


@pytest.fixture
def folder(tmp_path):
    made = container_folder(tmp_path, CONTAINER)
    made.make()
    return made


def test_files_and_script_travel_with_the_activation():
    spec = make_spec(files=[FILE], bootstrap="echo hi")
    told = build_activation(spec, ContainerPatch(), Surroundings())
    assert told["files"] == [
        {"path": ".bashrc", "permission": "644", "content": "alias l=ls\n"}
    ]
    assert (told["bootstrap"], told["bootstrap_seconds"]) == ("echo hi", 300.0)
    assert json.loads(msgspec.json.encode(told)) == told


def test_a_failure_is_heard_in_one_clean_line(folder):
    failure = "exit code 3: \x1b[31mno\n" + "x" * 2000
    folder.preparation.write_text(json.dumps({"failure": failure}))
    told = read_preparation(folder)
    assert told is not None
    assert told.failure.startswith("exit code 3:  [31mno xxx")
    assert len(told.failure) == 1000


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"failure": 3}', "\xff", '{"failure": "' + "x" * 20_000 + '"}'],
)
def test_what_makes_no_sense_is_not_heard(folder, text):
    folder.preparation.write_text(text, "latin-1")
    assert read_preparation(folder) is None


def test_nothing_is_read_through_a_link_and_nothing_is_waited_for(folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text('{"failure": "of the node"}')
    folder.preparation.symlink_to(secret)
    assert read_preparation(folder) is None
    folder.preparation.unlink()
    os.mkfifo(folder.preparation)
    assert read_preparation(folder) is None
    folder.preparation.unlink()
    folder.preparation.mkdir()
    assert read_preparation(folder) is None

    folder.preparation.rmdir()
    folder.run.rmdir()
    (tmp_path / "run").mkdir()
    secret.rename(tmp_path / "run" / folder.preparation.name)
    folder.run.symlink_to(tmp_path / "run")
    assert read_preparation(folder) is None


def test_an_environment_that_does_not_prepare_is_noticed(folder):
    for spec in (make_spec(files=[FILE]), make_spec(bootstrap="true")):
        assert find_omission(spec, folder) == TOO_OLD
    for spec in (make_spec(), make_spec(bootstrap=" \n")):
        assert find_omission(spec, folder) == ""
    folder.preparation.write_bytes(msgspec.json.encode(Preparation()))
    assert find_omission(make_spec(bootstrap="true"), folder) == ""


def test_the_hub_is_told_that_a_script_takes_its_time():
    assert describe(make_spec(bootstrap="true"), None, None).bootstrap
    assert not describe(make_spec(bootstrap=" "), None, None).bootstrap
