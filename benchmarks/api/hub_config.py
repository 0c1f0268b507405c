"""The JupyterHub beside us: stock, with our scopes, on a database of its own."""

import json
import os
import sys

import backendai_spawner

given = json.loads(os.environ["API_BENCHMARK"])
c = get_config()  # noqa: F821 - JupyterHub's
c.JupyterHub.bind_url = f"http://127.0.0.1:{given['port']}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{given['hub_port']}"
c.JupyterHub.db_url = given["db_url"]
c.JupyterHub.cookie_secret_file = f"{given['folder']}/cookie"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
# Nothing is measured through a proxy; JupyterHub only wants one to talk to.
c.ConfigurableHTTPProxy.command = [sys.executable, "-m", "backendai_hub.router"]
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{given['api_port']}"
c.ConfigurableHTTPProxy.pid_file = f"{given['folder']}/proxy.pid"
c.JupyterHub.services = [{"name": "benchmark", "api_token": given["token"]}]
c.JupyterHub.load_roles = [
    {
        "name": "benchmark",
        "services": ["benchmark"],
        "scopes": ["admin:users", "tokens"],
    }
]
backendai_spawner.install(c, given["connection"])
