"""Three lines in an existing configuration, and nothing of it lost."""

import json

import pytest
from jupyterhub.app import JupyterHub
from traitlets.config import Config

import backendai_spawner
from backendai_hub.core.configuration import ConfigurationError, check_keys
from backendai_spawner.authenticator import BackendAIAuthenticator
from backendai_spawner.spawner import BackendAISpawner


@pytest.fixture
def connection_file(tmp_path):
    for name in ("service", "spawner"):
        (tmp_path / f"{name}.token").write_text(f"{name}-secret-token\n")
    file = tmp_path / "connection.json"
    content = {
        "service_url": "http://127.0.0.1:8090/services/backendai/",
        "prefix": "/services/backendai/",
        "gateway_url": "http://127.0.0.1:8091",
        "service_token_file": str(tmp_path / "service.token"),
        "spawner_token_file": str(tmp_path / "spawner.token"),
        "added_by_a_newer_version": True,
    }
    file.write_text(json.dumps(content))
    return file


def names(entries):
    return [entry["name"] for entry in entries]


def test_an_empty_configuration_gets_everything(connection_file):
    c = Config()

    backendai_spawner.install(c, connection_file)

    hub = c.JupyterHub
    assert names(hub.services) == ["backendai", "backendai-spawner"]
    assert hub.services[0]["url"] == "http://127.0.0.1:8090"
    assert hub.services[0]["api_token"] == "service-secret-token"
    assert hub.services[1]["api_token"] == "spawner-secret-token"
    assert hub.spawner_class == "backendai"
    assert hub.concurrent_spawn_limit == 0
    assert hub.last_activity_interval == 60
    assert hub.allow_named_servers is True
    assert hub.cleanup_servers is False
    assert "access:services!service=backendai" in hub.extra_user_scopes
    assert "custom:backendai:act-for" not in hub.extra_user_scopes
    assert c.BackendAISpawner.connection_file == str(connection_file)
    check_keys(c, [JupyterHub, BackendAISpawner, BackendAIAuthenticator])


def test_what_the_site_has_set_stays(connection_file):
    c = Config()
    c.JupyterHub.services = [{"name": "culler", "api_token": "x" * 8}]
    c.JupyterHub.load_roles = [{"name": "teacher", "scopes": ["users"]}]
    c.JupyterHub.custom_scopes = {"custom:site:x": {"description": "x"}}
    c.JupyterHub.extra_user_scopes = {"shares!user"}
    c.JupyterHub.template_paths = ["/etc/site"]
    c.JupyterHub.template_vars = {"announcement": "hello"}
    c.JupyterHub.concurrent_spawn_limit = 7
    c.JupyterHub.cleanup_servers = True
    c.JupyterHub.spawner_class = "simple"

    backendai_spawner.install(c, connection_file)

    hub = c.JupyterHub
    assert names(hub.services) == ["culler", "backendai", "backendai-spawner"]
    assert names(hub.load_roles)[0] == "teacher"
    assert "custom:site:x" in hub.custom_scopes
    assert "shares!user" in hub.extra_user_scopes
    assert hub.template_paths[0] == "/etc/site"
    assert hub.template_vars["announcement"] == "hello"
    assert hub.concurrent_spawn_limit == 7
    assert hub.cleanup_servers is True
    assert hub.spawner_class == "simple"


def test_settings_added_to_piecemeal_are_kept_before_and_after(connection_file):
    c = Config()
    c.JupyterHub.services.append({"name": "before"})
    c.JupyterHub.extra_user_scopes.update({"before"})

    backendai_spawner.install(c, connection_file)
    c.JupyterHub.services.append({"name": "after"})
    c.JupyterHub.services = [*c.JupyterHub.services, {"name": "last"}]

    assert names(c.JupyterHub.services) == [
        "before",
        "backendai",
        "backendai-spawner",
        "after",
        "last",
    ]
    assert "before" in c.JupyterHub.extra_user_scopes


def test_installing_twice_is_installing_once(connection_file):
    c, once = Config(), Config()
    backendai_spawner.install(once, connection_file)

    backendai_spawner.install(c, connection_file)
    backendai_spawner.install(c, connection_file)

    assert c == once


def test_a_service_of_the_same_name_is_not_replaced_silently(connection_file):
    c = Config()
    c.JupyterHub.services = [{"name": "backendai", "url": "http://elsewhere"}]

    with pytest.raises(ConfigurationError, match="not ours"):
        backendai_spawner.install(c, connection_file)


def test_a_missing_file_says_what_to_do(tmp_path):
    with pytest.raises(ConfigurationError, match=r"service once"):
        backendai_spawner.install(Config(), tmp_path / "connection.json")


def test_an_unreadable_token_says_which(connection_file, tmp_path):
    (tmp_path / "spawner.token").unlink()

    with pytest.raises(ConfigurationError, match=r"spawner\.token"):
        backendai_spawner.install(Config(), connection_file)


@pytest.mark.parametrize("content", ["", "[]", '{"service_url": 1}'])
def test_a_file_of_something_else_is_refused(tmp_path, content):
    file = tmp_path / "connection.json"
    file.write_text(content)

    with pytest.raises(ConfigurationError, match="not what the service writes"):
        backendai_spawner.install(Config(), file)
