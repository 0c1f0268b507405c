"""The command lines: built from data, without secrets."""

from pathlib import Path

import msgspec
import pytest

from backendai_hub.launcher.child import Command, describe_exit, next_pause
from backendai_hub.launcher.commands import Layout, build_commands, connection
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.state import State

STATE = State(
    public=8000, proxy_api=10101, gateway=10102, hub=10103, service=10104, agents=10105
)


@pytest.fixture
def layout(tmp_path):
    folder = DataFolder(tmp_path)
    folder.create()
    folder.key("proxy.token").write_text("not-for-ps\n")
    return Layout(folder=folder, state=STATE, version="1")


def attach(layout, hub_api_url):
    state = msgspec.structs.replace(STATE, hub_api_url=hub_api_url)
    return Layout(folder=layout.folder, state=state)


def by_name(layout):
    return {command.name: command for command in build_commands(layout)}


def test_one_machine_has_four_processes(layout):
    assert set(by_name(layout)) == {"router", "service", "hub", "agent"}


def test_secrets_are_not_in_the_list_of_processes(layout):
    for command in build_commands(layout):
        assert "not-for-ps" not in " ".join(command.argv)
        assert "not-for-ps" not in str(command.environ)


def test_every_process_holds_its_lock(layout):
    for name in ("router", "service", "agent"):
        argv = " ".join(by_name(layout)[name].argv)
        assert str(layout.folder.lock(name)) in argv


def test_service_and_node_look_for_people_s_folders_at_the_same_place(layout):
    commands = by_name(layout)
    for name, section in (("service", "HubService"), ("agent", "BackendAIAgent")):
        said = f"--{section}.local_folders={layout.folder.folders}"
        assert said in commands[name].argv


def test_with_a_site_s_own_jupyterhub_there_is_no_public_port(tmp_path, layout):
    attached = attach(layout, "http://hub.example/hub/api")

    commands = by_name(attached)
    assert "hub" not in commands
    assert "--no-public" in commands["router"].argv
    assert not any("--port" in part for part in commands["router"].argv)
    assert "--BackendAIAgent.platform_url=http://hub.example/" in commands["agent"].argv
    assert any("BackendAIAgent.service_url=" in word for word in commands["agent"].argv)


@pytest.mark.parametrize("url", ["http://h:1/hub/api", "http://h:1/hub/api/"])
def test_a_jupyterhub_at_the_root(layout, url):
    attached = attach(layout, url)

    assert attached.public_url == "http://h:1/"
    assert attached.prefix == "/services/backendai/"


def test_a_jupyterhub_below_a_path(layout):
    attached = attach(layout, "http://h/jupyter/hub/api")

    assert attached.public_url == "http://h/jupyter/"
    assert attached.prefix == "/jupyter/services/backendai/"
    assert "--HubService.hub_base=/jupyter/" in by_name(attached)["service"].argv


def test_a_machine_without_an_agent(layout):
    without = Layout(folder=layout.folder, state=STATE, run_agent=False)

    assert "agent" not in by_name(without)


def test_the_site_s_configuration_reaches_every_process(layout):
    config = Path("/etc/site/backendai_config.py")
    given = Layout(folder=layout.folder, state=STATE, site_config=config)

    for command in build_commands(given):
        assert str(config) in " ".join(command.argv)


def test_the_connection_names_files_not_secrets(layout):
    described = connection(layout)

    assert described["service_url"] == "http://127.0.0.1:10104/services/backendai/"
    assert described["gateway_url"] == "http://127.0.0.1:10102"
    assert described["spawner_token_file"] == str(layout.folder.key("spawner.token"))


def test_an_address_for_everybody_is_shown_as_this_machine(layout):
    public = Layout(folder=layout.folder, state=STATE, host="0.0.0.0")

    assert public.public_url == "http://127.0.0.1:8000/"


def test_an_ipv6_address_is_bracketed(layout):
    public = Layout(folder=layout.folder, state=STATE, host="::1")

    assert public.public_url == "http://[::1]:8000/"


@pytest.mark.parametrize(
    "other",
    [
        Command(name="x", argv=("a", "c"), environ={"E": "1"}, version="1"),
        Command(name="x", argv=("a", "b"), environ={"E": "2"}, version="1"),
        Command(name="x", argv=("a", "b"), environ={"E": "1"}, version="2"),
    ],
)
def test_a_fingerprint_changes_with_whatever_changes_the_process(other):
    command = Command(name="x", argv=("a", "b"), environ={"E": "1"}, version="1")

    assert command.fingerprint != other.fingerprint
    again = Command(name="x", argv=("a", "b"), environ={"E": "1"}, version="1")
    assert command.fingerprint == again.fingerprint


def test_pauses_grow_to_five_seconds():
    pauses = [0.0]
    for _ in range(8):
        pauses.append(next_pause(pauses[-1], lifetime=0.1))

    assert pauses[1:] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_a_process_that_ran_for_a_while_starts_again_at_once():
    assert next_pause(5.0, lifetime=60.0) == 0.1


@pytest.mark.parametrize(
    ("code", "words"),
    [(3, "exited with code 3"), (-9, "was killed by SIGKILL"), (None, "ended")],
)
def test_ends_are_told_in_words(code, words):
    assert describe_exit(code) == words
