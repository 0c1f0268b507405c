"""Adding the platform to an existing JupyterHub's configuration.

Three lines in ``jupyterhub_config.py``, whatever its authenticator is::

    import backendai_spawner
    backendai_spawner.install(c, "/var/lib/backendai/connection.json")
    c.JupyterHub.spawner_class = "backendai"

Put them last: what the site has set before is added to, never replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from traitlets.config import Config
from traitlets.config.loader import LazyConfigValue

from backendai_hub.core.access import (
    ADMIN_SCOPE,
    ADMIN_SCOPES,
    USER_SCOPE,
    USER_SCOPES,
    Resource,
    admin_scope,
    user_scope,
)
from backendai_hub.core.configuration import ConfigurationError
from backendai_hub.core.idleness import REPORT_SECONDS
from backendai_spawner.connection import Connection, read_connection

SERVICE: Final = "backendai"
SPAWNER_SERVICE: Final = "backendai-spawner"
SERVICE_ACCESS: Final = f"access:services!service={SERVICE}"
ACT_FOR_SCOPE: Final = "custom:backendai:act-for"

SCOPES: Final[Mapping[str, Mapping[str, Any]]] = {
    USER_SCOPE: {
        "description": "Use Backend.AI: all of one's own things.",
        "subscopes": sorted(USER_SCOPES),
    },
    ADMIN_SCOPE: {
        "description": "Administer Backend.AI, if it takes you for an administrator.",
        "subscopes": sorted(ADMIN_SCOPES),
    },
    **{
        user_scope(resource): {
            "description": f"Backend.AI: one's own rights on {resource}."
        }
        for resource in Resource
    },
    **{
        admin_scope(resource): {
            "description": f"Backend.AI: an administrator's rights on {resource}."
        }
        for resource in Resource
    },
    ACT_FOR_SCOPE: {"description": "Speak to Backend.AI for any user (its spawner)."},
}

ROLES: Final = (
    {
        "name": "backendai-service",
        "description": "Backend.AI: keep servers in step with its sessions.",
        "services": [SERVICE],
        "scopes": ["list:users", "read:servers", "start:servers", "delete:servers"],
    },
    {
        "name": SPAWNER_SERVICE,
        "description": "Backend.AI's spawner and authenticator: act for users.",
        "services": [SPAWNER_SERVICE],
        "scopes": [ACT_FOR_SCOPE, SERVICE_ACCESS],
    },
)

_UNSET_DEFAULTS: Final[Mapping[str, Any]] = {
    "spawner_class": "backendai",
    "allow_named_servers": True,
    # Our queue throttles; the Hub would turn people away instead.
    "concurrent_spawn_limit": 0,
    # Sessions outlive the Hub, and are attached to again.
    "cleanup_servers": False,
    # How often the Hub asks its proxy which servers are used; idle timeouts go by it.
    "last_activity_interval": REPORT_SECONDS,
}


def install(c: Config, connection_file: str | Path) -> None:
    """Add the platform to *c*, with what *connection_file* says about it.

    Installing twice changes nothing. Raises ``ConfigurationError`` if the service
    has not written the file yet, or if the site's own configuration uses our names
    for something else.
    """
    place = Path(connection_file).expanduser().absolute()
    connection = read_connection(place)
    hub = c.JupyterHub
    for service in _services(connection):
        _add_named(hub, "services", service)
    for role in ROLES:
        _add_named(hub, "load_roles", dict(role))
    _settled(hub, "custom_scopes", {}).update(
        {name: dict(scope) for name, scope in SCOPES.items()}
    )
    # Who administers is the service's to say; this scope only marks the credentials
    # that may: logging in to the console has it, what runs in a notebook has not.
    _settled(hub, "extra_user_scopes", set()).update(
        {SERVICE_ACCESS, USER_SCOPE, ADMIN_SCOPE}
    )
    _settled(hub, "template_vars", {})["backendai_prefix"] = connection.prefix
    _add_templates(hub)
    _add_handlers(hub)
    for name, value in _UNSET_DEFAULTS.items():
        if name not in hub:
            hub[name] = value
    for section in ("BackendAISpawner", "BackendAIAuthenticator"):
        c[section].connection_file = str(place)


def _services(connection: Connection) -> tuple[dict[str, Any], dict[str, Any]]:
    address = urlsplit(connection.service_url)
    return (
        {
            "name": SERVICE,
            "url": f"{address.scheme}://{address.netloc}",
            "api_token": _read_token(connection.service_token_file),
            "oauth_client_id": f"service-{SERVICE}",
            "oauth_no_confirm": True,
            "oauth_client_allowed_scopes": [SERVICE_ACCESS, USER_SCOPE, ADMIN_SCOPE],
            "display": True,
        },
        {
            "name": SPAWNER_SERVICE,
            "api_token": _read_token(connection.spawner_token_file),
            "display": False,
        },
    )


def _read_token(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError as error:
        raise ConfigurationError(
            f"the token file {path} cannot be read ({error.strerror}); JupyterHub has"
            " to run as the user who runs the Backend.AI service, or in a group that"
            " may read its keys"
        ) from error


def _add_named(hub: Config, setting: str, entry: dict[str, Any]) -> None:
    present = _settled(hub, setting, [])
    same = [item for item in present if item.get("name") == entry["name"]]
    if entry in same:
        return
    if same:
        raise ConfigurationError(
            f"c.JupyterHub.{setting} has an entry named {entry['name']!r} already, and"
            " it is not ours; rename it, or leave it to backendai_spawner.install()"
        )
    present.append(entry)


def _add_templates(hub: Config) -> None:
    ours = str(Path(__file__).with_name("templates"))
    present = _settled(hub, "template_paths", [])
    if ours not in present:
        present.append(ours)  # after the site's; JupyterHub puts its own at the end


def _add_handlers(hub: Config) -> None:
    # Where the platform is only configured, JupyterHub need not be there.
    from backendai_spawner import dry_runs, folder_lists, page_files  # noqa: PLC0415

    present = _settled(hub, "extra_handlers", [])
    for handler in (dry_runs.HANDLER, folder_lists.HANDLER, page_files.HANDLER):
        if handler not in present:
            present.append(handler)


def _settled(hub: Config, setting: str, default: Any) -> Any:
    """Return the setting's value, of which nothing is left to be merged later."""
    present = hub[setting]
    if isinstance(present, LazyConfigValue):
        present = hub[setting] = present.get_value(default)
    return present
