"""The configuration of the JupyterHub that `backendai up` runs.

Everything that differs between installations is in the data directory; a site's
own wishes go into `backendai_config.py` there, which is read last and wins.
"""

import os
from pathlib import Path

import backendai_spawner
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.state import load_state

c = get_config()
folder = DataFolder(Path(os.environ["BACKENDAI_DATA_DIR"]))
state = load_state(folder)


def read_key(name):
    """Return a token from the data directory."""
    return folder.key(name).read_text("ascii").strip()


# The platform: spawner, authenticator, services and scopes.
backendai_spawner.install(c, folder.connection)
c.JupyterHub.authenticator_class = "backendai"
c.Authenticator.admin_users = {state.admin}

# The router is a process of its own and outlives JupyterHub: open notebooks stay
# connected while JupyterHub restarts, and so do sessions.
c.JupyterHub.bind_url = os.environ["BACKENDAI_PUBLIC_BIND"]
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{state.hub}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{state.proxy_api}"
c.ConfigurableHTTPProxy.auth_token = read_key("proxy.token")
c.ConfigurableHTTPProxy.should_start = False
c.JupyterHub.cleanup_servers = False
c.JupyterHub.cleanup_proxy = False

# Its own database and secrets.
c.JupyterHub.db_url = f"sqlite:///{folder.databases / 'jupyterhub.sqlite'}"
c.JupyterHub.upgrade_db = True
c.JupyterHub.cookie_secret_file = str(folder.key("cookie.secret"))

# The launcher may make short-lived tokens for the administrator, and nothing else.
c.JupyterHub.services.append(
    {
        "name": "backendai-launcher",
        "api_token": read_key("launcher.token"),
        "display": False,
    }
)
c.JupyterHub.load_roles.append(
    {
        "name": "backendai-launcher",
        "description": "Backend.AI's launcher: make tokens for the administrator.",
        "services": ["backendai-launcher"],
        "scopes": [f"tokens!user={state.admin}", f"read:users:name!user={state.admin}"],
    }
)

site_config = os.environ.get("BACKENDAI_SITE_CONFIG")
if site_config:
    load_subconfig(site_config)
