"""The peer: JupyterHub with DockerSpawner, as its own documentation sets it up."""

import json
import os

given = json.loads(os.environ["SPAWN_BENCHMARK"])
c = get_config()  # noqa: F821 - JupyterHub's
c.JupyterHub.bind_url = f"http://127.0.0.1:{given['port']}"
c.JupyterHub.hub_bind_url = f"http://0.0.0.0:{given['hub_port']}"
c.JupyterHub.hub_connect_url = f"http://{given['gateway']}:{given['hub_port']}"
c.JupyterHub.db_url = f"sqlite:///{given['folder']}/peer.sqlite"
c.JupyterHub.cookie_secret_file = f"{given['folder']}/cookie"
c.JupyterHub.spawner_class = "docker"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {"admin"}
c.JupyterHub.allow_named_servers = True
c.JupyterHub.concurrent_spawn_limit = 0
c.ConfigurableHTTPProxy.command = given["proxy"]
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{given['api_port']}"
c.DockerSpawner.image = given["image"]
c.DockerSpawner.pull_policy = "never"
c.DockerSpawner.use_internal_ip = True
c.DockerSpawner.network_name = "bridge"
c.DockerSpawner.remove = True
c.DockerSpawner.cpu_limit = 1
c.DockerSpawner.mem_limit = "1G"
c.JupyterHub.services = [{"name": "bench", "api_token": given["token"]}]
c.JupyterHub.load_roles = [
    {
        "name": "bench",
        "services": ["bench"],
        "scopes": ["admin:users", "admin:servers", "access:servers", "tokens"],
    }
]
