"""The node agent as a program: its settings, and how its parts are put together."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import os
import resource
import signal
import socket
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from traitlets import Bool, Dict, Float, Int, List, TraitError, Unicode, default
from traitlets.config import Application, Config

from backendai_agent.accelerators.base import Accelerator
from backendai_agent.actions import Timing
from backendai_agent.addresses import parse_address
from backendai_agent.agent import FIRST_LOOK_SECONDS, Agent, AgentSettings
from backendai_agent.certs import EnrollmentRefusedError
from backendai_agent.mounts import MountSettings, check_storage, label_hosts
from backendai_agent.plugins import (
    ACCELERATORS,
    RUNTIMES,
    NoSuchPluginError,
    find_plugins,
    load_accelerator,
    load_runtime,
)
from backendai_agent.relay import CONNECTIONS
from backendai_agent.runtimes.base import Runtime, RuntimeFailure
from backendai_hub.client.lockfile import AlreadyRunningError, hold_lock
from backendai_hub.core.agents import Isolation, check_labels
from backendai_hub.core.configuration import ConfigurationError, check_keys
from backendai_hub.core.errors import HubError


def find_data_dir() -> str:
    """Return the agent's folder where none is named."""
    if os.geteuid() == 0:
        return "/var/lib/backendai/agent"
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    return str(Path(base) / "backendai/agent")


class BackendAIAgent(Application):
    """Runs the sessions of one node. Stopping the agent stops no session."""

    name = Unicode(help="What people call this node; its host name unless set.").tag(
        config=True
    )
    description = __doc__ or ""
    config_file = Unicode(help="The configuration file.").tag(config=True)
    data_dir = Unicode(help="Where the agent keeps its key and its containers.").tag(
        config=True
    )
    hub_url = Unicode(help="The hub service's address for agents (https).").tag(
        config=True
    )
    platform_url = Unicode(
        "http://127.0.0.1:8000/",
        help="Where this node reaches the platform's public address.",
    ).tag(config=True)
    service_url = Unicode(
        help="Where this node reaches the hub service, if that is not below"
        " platform_url: with a domain per user, JupyterHub gives services one of their"
        " own. Only the host and port of it count."
    ).tag(config=True)
    ca_file = Unicode(help="The authority by which the hub service is known.").tag(
        config=True
    )
    token_file = Unicode(
        help="A file with the single-use token by which a new node enrols."
    ).tag(config=True)
    runtime = Unicode(
        "auto",
        help="What containers run in: docker, process, fake, or auto: docker if its"
        " engine answers and has docker_image, process otherwise.",
    ).tag(config=True)
    docker_image = Unicode(
        "backendai/jupyterlab:4",
        help="The environment by which auto knows that Docker is set up for us.",
    ).tag(config=True)
    accelerators = List(
        Unicode(),
        default_value=["host", "cuda"],
        help="Which kinds of devices this node offers.",
    ).tag(config=True)
    listen = Unicode("127.0.0.1:0", help="Where the router reaches this node.").tag(
        config=True
    )
    advertise = Unicode(
        help="The address, with or without port, the router is told instead."
    ).tag(config=True)
    reserved_cpu = Unicode("0", help="Cores kept for the node itself.").tag(config=True)
    reserved_memory = Unicode("0", help="Memory kept for the node, as '1g'.").tag(
        config=True
    )
    start_concurrency = Int(
        4, min=1, help="How many containers are started at the same time."
    ).tag(config=True)
    image_fetches = Int(
        2,
        min=1,
        help="How many images are fetched at the same time ahead of need. What a"
        " session waits for is fetched at once.",
    ).tag(config=True)
    relay_connections = Int(
        CONNECTIONS,
        min=1,
        help="How many connections to the platform each session may have open.",
    ).tag(config=True)
    labels = Dict(
        key_trait=Unicode(),
        value_trait=Unicode(),
        help="What sessions may ask of their nodes, such as {'gpu': 'h100', 'rack':"
        " 'r1'}. What operators say of this node wins.",
    ).tag(config=True)
    storage_hosts = Dict(
        key_trait=Unicode(),
        value_trait=Unicode(),
        help="Where this node has the platform's storage hosts, such as {'local':"
        " '/srv/folders'}. Sessions with folders of others do not come here.",
    ).tag(config=True)
    local_folders = Unicode(
        help="Where the storage host called local is, which this node has unless"
        " storage_hosts is set; empty: it has none. 'backendai up' says it."
    ).tag(config=True)
    unmanaged_roots = List(
        Unicode(),
        help="Folders of this node below which administrators may let sessions see"
        " what is there as unmanaged folders.",
    ).tag(config=True)
    mount_seconds = Float(
        20.0,
        min=0.1,
        help="How long a storage host may take to show a session its folders.",
    ).tag(config=True)
    first_look_seconds = Float(
        FIRST_LOOK_SECONDS,
        min=0,
        help="How long a new agent keeps its first report back until its storage hosts"
        " have answered, so that nobody hears of the node without them.",
    ).tag(config=True)
    max_containers = Int(
        0, min=0, help="How many containers run here at most; 0 is no limit."
    ).tag(config=True)
    ready_seconds = Float(
        110.0, min=1, help="How long JupyterLab may take to answer first."
    ).tag(config=True)
    resync_seconds = Float(
        10.0, min=0.05, help="How often everything is looked at without a reason."
    ).tag(config=True)
    usage_seconds = Float(
        5.0,
        min=0,
        max=15,
        help="How often it is measured what sessions, devices and the node use, and"
        " said; 0: never.",
    ).tag(config=True)
    lock_file = Unicode(
        help="Held while the agent runs; agent.lock in the agent's folder unless set."
    ).tag(config=True)
    check_only = Bool(default_value=False, help="Check the settings and end.").tag(
        config=True
    )

    @default("name")
    def _default_name(self) -> str:
        return socket.gethostname()

    @default("storage_hosts")
    def _default_storage_hosts(self) -> dict[str, str]:
        return {"local": self.local_folders} if self.local_folders else {}

    @default("data_dir")
    def _default_data_dir(self) -> str:
        return find_data_dir()

    @default("log_level")
    def _default_log_level(self) -> int:
        return logging.INFO

    @default("log_format")
    def _default_log_format(self) -> str:
        return "%(asctime)s %(levelname)s %(message)s"

    aliases = {  # noqa: RUF012 - traitlets' way
        "config": "BackendAIAgent.config_file",
        "data-dir": "BackendAIAgent.data_dir",
        "hub-url": "BackendAIAgent.hub_url",
        "platform-url": "BackendAIAgent.platform_url",
        "service-url": "BackendAIAgent.service_url",
        "ca-file": "BackendAIAgent.ca_file",
        "token-file": "BackendAIAgent.token_file",
        "runtime": "BackendAIAgent.runtime",
        "listen": "BackendAIAgent.listen",
        "advertise": "BackendAIAgent.advertise",
        "name": "BackendAIAgent.name",
        "lock-file": "BackendAIAgent.lock_file",
        "log-level": "BackendAIAgent.log_level",
    }
    flags = {  # noqa: RUF012 - traitlets' way
        "check": (
            {"BackendAIAgent": {"check_only": True}},
            "Check the settings and end.",
        )
    }

    def initialize(self, argv: list[str] | None = None) -> None:
        """Read the command line and the configuration file, and check both."""
        self.parse_command_line(argv)
        given = Config(self.config)
        if self.config_file:
            path = Path(self.config_file).resolve()
            if not path.is_file():
                raise ConfigurationError(f"there is no configuration file {path}")
            self.load_config_file(path.name, path=str(path.parent))
            self.update_config(given)  # what was typed wins over what was written
        self._check(given)

    def _check(self, typed: Config) -> None:
        """Refuse settings nobody reads.

        The file belongs to every program of the platform: sections of others are
        left to them, unless they look like one of ours misspelled.
        """
        ours = [type(self), *self._plugin_classes()]
        check_keys(typed, ours)
        names = {base.__name__ for cls in ours for base in cls.__mro__}
        foreign = [
            section
            for section in self.config
            if section not in names
            and not get_close_matches(section, names, cutoff=0.8)
        ]
        check_keys(self.config, ours, foreign=foreign)

    def _plugin_classes(self) -> list[type[Any]]:
        """Import the plugins that are used or configured, and no others."""
        runtimes = find_plugins("backendai_agent.runtimes", RUNTIMES)
        accelerators = find_plugins("backendai_agent.accelerators", ACCELERATORS)
        used = [
            *(name for name in runtimes if self._is_used(runtimes[name])),
            *([] if self.runtime == "auto" else [self.runtime]),
        ]
        devices = [name for name in accelerators if self._is_used(accelerators[name])]
        return [
            *map(load_runtime, dict.fromkeys(used)),
            *map(load_accelerator, dict.fromkeys([*self.accelerators, *devices])),
        ]

    def _is_used(self, place: str) -> bool:
        return place.rpartition(":")[2] in self.config

    def make_settings(self) -> AgentSettings:
        """Put the traits in the form the agent works with."""
        if not self.hub_url.startswith("https://"):
            raise ConfigurationError(
                f"hub_url: {self.hub_url!r} is not the https address of a hub service"
            )
        mounts = MountSettings(
            hosts=dict(self.storage_hosts),
            unmanaged_roots=tuple(self.unmanaged_roots),
            seconds=self.mount_seconds,
        )
        check_labels({**self.labels, **label_hosts(mounts.hosts)})
        check_storage(mounts, Path(self.data_dir).absolute())
        advertise = parse_address(self.advertise, port=0) if self.advertise else None
        return AgentSettings(
            name=self.name,
            data_dir=Path(self.data_dir).absolute(),
            hub_url=self.hub_url,
            platform_url=self.platform_url,
            service_url=self.service_url,
            version=read_version(),
            ca_file=Path(self.ca_file) if self.ca_file else None,
            token_file=Path(self.token_file) if self.token_file else None,
            listen=parse_address(self.listen),
            advertise=advertise,
            starts=self.start_concurrency,
            image_fetches=self.image_fetches,
            relay_connections=self.relay_connections,
            labels=dict(self.labels),
            max_containers=self.max_containers or None,
            mounts=mounts,
            timing=Timing(ready=self.ready_seconds, resync=self.resync_seconds),
            usage_seconds=self.usage_seconds,
            first_look_seconds=self.first_look_seconds,
        )

    def _make_runtime(self, name: str) -> Runtime:
        cls = load_runtime(name)
        known = (
            {"data_dir": self.data_dir} if cls.class_traits().get("data_dir") else {}
        )
        runtime: Runtime = cls(parent=self, **known)
        return runtime

    async def open_runtime(self) -> tuple[Runtime, Isolation]:
        """Open the runtime that was asked for, or the best there is."""
        if self.runtime != "auto":
            runtime = self._make_runtime(self.runtime)
            return runtime, await runtime.open()
        refused = []
        for name in ("docker", "process"):
            try:
                runtime = self._make_runtime(name)
                isolation = await runtime.open()
            except (RuntimeFailure, ImportError) as error:
                self.log.info("runtime %s is not for this node: %s", name, error)
                refused.append(f"{name}: {error}")
                continue
            if name == "process" or self.docker_image in await runtime.images():
                return runtime, isolation
            self.log.info("docker has no image %s", self.docker_image)
            refused.append(f"docker: it has no image {self.docker_image}")
            await runtime.close()
        raise RuntimeFailure(f"nothing can run sessions here: {'; '.join(refused)}")

    async def run(self) -> None:
        """Work until SIGTERM or SIGINT. Sessions are not stopped."""
        settings = self.make_settings()
        runtime, isolation = await self.open_runtime()
        self.log.info("sessions run by %s (%s)", isolation.runtime, isolation.tier)
        plugins: list[Accelerator] = [
            load_accelerator(name)(parent=self) for name in self.accelerators
        ]
        agent = Agent(settings, runtime, plugins, log=self.log)
        working = asyncio.create_task(agent.run(isolation))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, working.cancel)
        try:
            await working
        except asyncio.CancelledError:
            self.log.info("the agent ends; its sessions keep running")
        finally:
            await runtime.close()

    def start(self) -> None:
        """Run the agent; raises SystemExit with a sentence if it cannot."""
        os.umask(0o077)
        Path(self.data_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self.lock_file or str(Path(self.data_dir) / "agent.lock")
        try:
            hold_lock(Path(lock))
            allow_descriptors()
            asyncio.run(self.run())
        except AlreadyRunningError as error:
            raise SystemExit(str(error)) from None
        except (*REFUSALS, ExceptionGroup) as error:
            raise SystemExit(explain(error)) from None


DESCRIPTORS = 1 << 16


def allow_descriptors() -> None:
    """Raise our own limit: every connection passed on takes two descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


REFUSALS = (
    EnrollmentRefusedError,
    HubError,
    NoSuchPluginError,
    RuntimeFailure,
    TraitError,
    ValueError,
)
"""What is said in a sentence; anything else is an error of ours, with a traceback."""


def explain(error: BaseException) -> str:
    """Say why the agent cannot run; raises *error* again if it is not a refusal."""
    if isinstance(error, ExceptionGroup):
        return "; ".join(explain(inner) for inner in error.exceptions)
    if not isinstance(error, REFUSALS):
        raise error
    return f"backendai-agent: {error}"


def read_version() -> str:
    """Return the version of the installed package."""
    try:
        return importlib.metadata.version("backendai-hub")
    except importlib.metadata.PackageNotFoundError:
        return "0"


def main(argv: list[str] | None = None) -> None:
    """Run the agent from the command line."""
    app = BackendAIAgent()
    try:
        app.initialize(argv)
        if app.check_only:
            app.make_settings()
            return
    except REFUSALS as error:
        raise SystemExit(explain(error)) from None
    app.start()


if __name__ == "__main__":
    main()
