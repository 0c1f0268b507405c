"""How each process is started: pure builders of command lines."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from backendai_hub.launcher.child import Command
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.state import State

_HUB_API: Final = "hub/api"


@dataclass(frozen=True)
class Layout:
    """All that the command lines are made from.

    Where the site runs JupyterHub itself (``state.hub_api_url``), the platform
    brings neither a JupyterHub nor a public port of its own.
    """

    folder: DataFolder
    state: State
    host: str = "127.0.0.1"
    runtime: str = "auto"
    site_config: Path | None = None
    run_agent: bool = True
    version: str = ""

    @property
    def attached(self) -> bool:
        """Whether JupyterHub is somebody else's."""
        return bool(self.state.hub_api_url)

    @property
    def base(self) -> str:
        """JupyterHub's ``base_url``: the path in front of everything."""
        if not self.attached:
            return "/"
        path = urlsplit(self.state.hub_api_url).path
        return path.rstrip("/").removesuffix(_HUB_API) or "/"

    @property
    def prefix(self) -> str:
        """The path of the hub service."""
        return f"{self.base}services/backendai/"

    @property
    def public_url(self) -> str:
        """Where people come in."""
        if self.attached:
            return self.jupyterhub_api_url.removesuffix(_HUB_API)
        host = "127.0.0.1" if self.host in {"0.0.0.0", "::", ""} else self.host  # noqa: S104
        return f"http://{_bracket(host)}:{self.state.public}/"

    @property
    def service_url(self) -> str:
        """Where the hub service answers on this machine."""
        return f"http://127.0.0.1:{self.state.service}{self.prefix}"

    @property
    def gateway_url(self) -> str:
        """Where requests to sessions go."""
        return f"http://127.0.0.1:{self.state.gateway}"

    @property
    def jupyterhub_api_url(self) -> str:
        """Where JupyterHub's API answers."""
        return (
            self.state.hub_api_url.rstrip("/")
            or f"http://127.0.0.1:{self.state.hub}/hub/api"
        )


def connection(layout: Layout) -> dict[str, str]:
    """Return what a JupyterHub must know to use the platform."""
    key = layout.folder.key
    return {
        "service_url": layout.service_url,
        "prefix": layout.prefix,
        "gateway_url": layout.gateway_url,
        "service_token_file": str(key("service.token")),
        "spawner_token_file": str(key("spawner.token")),
    }


def build_commands(layout: Layout) -> list[Command]:
    """Return the commands of every process this layout has."""
    commands = [router_command(layout), service_command(layout)]
    if not layout.attached:
        commands.append(hub_command(layout))
    if layout.run_agent:
        commands.append(agent_command(layout))
    return commands


def router_command(layout: Layout) -> Command:
    """Return the data plane's command; tokens go by file, seen by nobody else."""
    folder, state = layout.folder, layout.state
    public = (
        ["--no-public"]
        if layout.attached
        else [
            f"--ip={layout.host}",
            f"--port={state.public}",
            "--api-ip=127.0.0.1",
            f"--api-port={state.proxy_api}",
            f"--default-target=http://127.0.0.1:{state.hub}",
            f"--error-target=http://127.0.0.1:{state.hub}/hub/error",
        ]
    )
    argv = [
        *_python("backendai_hub.router"),
        *_config(layout),
        *public,
        f"--gateway=127.0.0.1:{state.gateway}",
        f"--routes-url={layout.service_url}api/routes",
        f"--auth-token-file={folder.key('proxy.token')}",
        f"--routes-token-file={folder.key('router.token')}",
        f"--tls-ca={folder.key('ca.crt')}",
        f"--tls-cert={folder.key('router.crt')}",
        f"--tls-key={folder.key('router.key')}",
        f"--lock-file={folder.lock('router')}",
        f"--state-file={folder.run / 'routes.json'}",
    ]
    return Command(name="router", argv=tuple(argv), version=layout.version)


def hub_command(layout: Layout) -> Command:
    """Return JupyterHub's command."""
    argv = [
        *_python("backendai_hub.launcher.jupyterhub"),
        f"--data-dir={layout.folder.root}",
    ]
    if layout.site_config is not None:
        argv.append(f"--site-config={layout.site_config}")
    bind = f"http://{_bracket(layout.host)}:{layout.state.public}"
    return Command(
        name="hub",
        argv=tuple(argv),
        environ={"BACKENDAI_PUBLIC_BIND": bind},
        version=layout.version,
    )


def service_command(layout: Layout) -> Command:
    """Return the hub service's command."""
    folder, state = layout.folder, layout.state
    argv = [
        *_python("backendai_hub.launcher.service"),
        *_config(layout),
        f"--HubService.data_dir={folder.root}",
        f"--HubService.port={state.service}",
        f"--HubService.agents_port={state.agents}",
        f"--HubService.hub_api_url={layout.jupyterhub_api_url}",
        f"--HubService.hub_base={layout.base}",
        f"--HubService.prefix={layout.prefix}",
        f"--HubService.lock_file={folder.lock('service')}",
        f"--HubService.first_admin_file={folder.key('first-admin.json')}",
        f"--HubService.local_folders={folder.folders}",
    ]
    return Command(name="service", argv=tuple(argv), version=layout.version)


def agent_command(layout: Layout) -> Command:
    """Return the command of this machine's agent."""
    folder, state = layout.folder, layout.state
    # Sessions speak to JupyterHub through the node, which reaches it from inside.
    inside = f"http://127.0.0.1:{state.public}/"
    platform_url = layout.public_url if layout.attached else inside
    argv = [
        *_python("backendai_agent.app"),
        *_config(layout),
        f"--BackendAIAgent.data_dir={folder.agent}",
        f"--BackendAIAgent.hub_url=https://127.0.0.1:{state.agents}",
        f"--BackendAIAgent.platform_url={platform_url}",
        f"--BackendAIAgent.service_url={layout.service_url}",
        f"--BackendAIAgent.ca_file={folder.key('ca.crt')}",
        f"--BackendAIAgent.token_file={folder.key('enroll.token')}",
        f"--BackendAIAgent.runtime={layout.runtime}",
        "--BackendAIAgent.listen=127.0.0.1:0",
        f"--BackendAIAgent.lock_file={folder.lock('agent')}",
        f"--BackendAIAgent.local_folders={folder.folders}",
    ]
    return Command(name="agent", argv=tuple(argv), version=layout.version)


def _python(module: str) -> list[str]:
    return [sys.executable, "-m", module]


def _config(layout: Layout) -> list[str]:
    return [] if layout.site_config is None else [f"--config={layout.site_config}"]


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host
