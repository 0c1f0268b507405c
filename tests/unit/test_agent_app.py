"""The agent's settings."""

from __future__ import annotations

import pytest

from backendai_agent.app import BackendAIAgent, main
from backendai_hub.core.configuration import ConfigurationError
from backendai_hub.core.errors import HubError


def make_app(tmp_path, text="", argv=()):
    file = tmp_path / "backendai_config.py"
    file.write_text(f"c = get_config()\n{text}\n")
    app = BackendAIAgent()
    app.initialize([f"--config={file}", "--hub-url=https://hub:1", *argv])
    return app


def test_settings_come_from_the_file_and_what_is_typed_wins(tmp_path):
    app = make_app(
        tmp_path,
        "c.BackendAIAgent.start_concurrency = 2\n"
        "c.BackendAIAgent.name = 'written'\n"
        "c.FakeRuntime.start_seconds = 1.5",
        ["--name=typed", "--runtime=fake"],
    )
    settings = app.make_settings()
    assert (settings.name, settings.starts) == ("typed", 2)
    assert app._make_runtime("fake").start_seconds == 1.5


def test_sections_of_other_programs_are_left_to_them(tmp_path):
    make_app(tmp_path, "c.JupyterHub.whatever = 1\nc.HubService.data_dir = '/x'")


@pytest.mark.parametrize(
    "text",
    [
        "c.BackendAIAgent.start_concurency = 2",
        "c.BackendaiAgent.name = 'x'",
        "c.FakeRuntime.speed = 2",
        "c.DockerRuntime.nosuch = 2",
    ],
)
def test_a_misspelled_setting_is_refused(tmp_path, text):
    with pytest.raises(ConfigurationError, match="there is no such"):
        make_app(tmp_path, text)


def test_a_misspelled_option_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="did you mean hub_url"):
        make_app(tmp_path, argv=["--BackendAIAgent.hub_ur=x"])


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--hub-url=http://hub"], "https"),
        (["--hub-url=https://hub", "--listen=nowhere"], "host:port"),
        (["--hub-url=https://hub", "--runtime=nosuch"], "not installed"),
        (["--hub-url=https://hub", "--config=/nonexistent.py"], "no configuration"),
    ],
)
def test_the_program_ends_with_a_sentence(argv, words, tmp_path):
    with pytest.raises(SystemExit, match=words):
        main([*argv, "--check", f"--data-dir={tmp_path}"])


def test_storage_hosts_are_places_of_this_node(tmp_path):
    def storage(**traits):
        text = "\n".join(f"c.BackendAIAgent.{n} = {v!r}" for n, v in traits.items())
        text += f"\nc.BackendAIAgent.data_dir = {str(tmp_path / 'agent')!r}"
        return make_app(tmp_path, text).make_settings().mounts

    settings = storage(
        storage_hosts={"local": "/srv/folders"},
        unmanaged_roots=["/data"],
        mount_seconds=3.0,
    )
    assert settings.hosts == {"local": "/srv/folders"}
    assert (settings.unmanaged_roots, settings.seconds) == (("/data",), 3.0)
    for hosts, words in (
        ({"local": "folders"}, "not an absolute path"),
        ({"local": str(tmp_path / "agent/folders")}, "lie one in the other"),
        ({"local": str(tmp_path)}, "lie one in the other"),
        ({"No Such": "/srv"}, "will not do"),
    ):
        with pytest.raises(HubError, match=words):
            storage(storage_hosts=hosts)
