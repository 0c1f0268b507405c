"""The hub service: configuration, wiring, and nothing else."""

from __future__ import annotations

import asyncio
import gc
import hmac
import json
import logging
import signal
import ssl
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from tornado import httpserver, netutil, web
from traitlets import Bool, Dict, Float, Integer, List, Set, Unicode, default
from traitlets.config import Application, Config, catch_config_error

from backendai_hub import __version__
from backendai_hub.client.agents import AgentClient
from backendai_hub.client.jupyterhub import JupyterHubClient
from backendai_hub.client.lockfile import AlreadyRunningError, hold_lock
from backendai_hub.core.audit import derive_audit_key
from backendai_hub.core.configuration import ConfigurationError, check_keys
from backendai_hub.core.directory import read_rules
from backendai_hub.core.images import Image
from backendai_hub.core.names import fold
from backendai_hub.core.slots import parse_slots
from backendai_hub.db.engine import Database
from backendai_hub.db.leader import AnotherServiceError, Leadership
from backendai_hub.db.migrate import upgrade
from backendai_hub.db.signals import Signals
from backendai_hub.handlers.agents import NoSuchRouteHandler
from backendai_hub.handlers.base import MOST_READ, Credentials, Service
from backendai_hub.handlers.console import (
    AssetHandler,
    ConsoleHandler,
    OAuthCallbackHandler,
)
from backendai_hub.handlers.fast_lane import FastLane
from backendai_hub.handlers.login import HubOAuth, build_login
from backendai_hub.handlers.metrics import build_metrics, make_loop, make_watch
from backendai_hub.handlers.routes import AGENTS, API, PAGES, patterns
from backendai_hub.operations.account_changes import ensure_account
from backendai_hub.operations.authority import Authority
from backendai_hub.operations.bootstrap import offer_images
from backendai_hub.operations.directory import settle_roles
from backendai_hub.operations.nodes import accept_token
from backendai_hub.operations.platform import Platform, Settings, Vault
from backendai_hub.reconcilers.attachments import AttachmentsReconciler
from backendai_hub.reconcilers.audit import AuditReconciler
from backendai_hub.reconcilers.base import Reconciler
from backendai_hub.reconcilers.batch import BatchReconciler
from backendai_hub.reconcilers.deadlines import DeadlinesReconciler
from backendai_hub.reconcilers.explanations import ExplanationsReconciler
from backendai_hub.reconcilers.folders import FoldersReconciler
from backendai_hub.reconcilers.images import RescansReconciler
from backendai_hub.reconcilers.keys import KeysReconciler
from backendai_hub.reconcilers.measures import MeasuresReconciler
from backendai_hub.reconcilers.nodes import NodesReconciler
from backendai_hub.reconcilers.scheduler import SchedulerReconciler
from backendai_hub.reconcilers.storage import StorageReconciler
from backendai_hub.reconcilers.uploads import UploadsReconciler
from backendai_hub.reconcilers.usage import UsageReconciler
from backendai_hub.scheduling.warming import warm_up
from backendai_hub.storage.hosts import StorageHosts

DRAIN_SECONDS = 0.2
CHUNK = 1 << 20
"""Of what is uploaded so much is handed on at once: each time costs as much again."""
_FOREIGN = ("JupyterHub", "Spawner", "Authenticator", "ConfigurableHTTPProxy")

_DEFAULT_IMAGES = [
    {
        "name": "jupyterlab",
        "title": "JupyterLab (Python 3)",
        "references": {
            "docker": "backendai/jupyterlab:4",
            "process": "jupyterlab",
            "fake": "fake",
        },
        "minimum": {"cpu": "0.1", "mem": "256m"},
        "preferred": {"cpu": "1", "mem": "1g"},
        "shmem": "64m",
    }
]


class HubService(Application):
    """The control plane: sessions, limits, nodes, and the console."""

    name = "backendai-hub"
    version = __version__
    description = "The hub service of Backend.AI, Jupyter-native."

    data_dir = Unicode(help="Where keys and the embedded database live.").tag(
        config=True
    )
    config_file = Unicode(help="The site's backendai_config.py; optional.").tag(
        config=True
    )
    db_url = Unicode(
        help="""The database: sqlite+aiosqlite:///PATH (the default, in data_dir), or
        postgresql+psycopg://USER@HOST/NAME."""
    ).tag(config=True)
    ip = Unicode("127.0.0.1", help="Where people's requests come in.").tag(config=True)
    port = Integer(help="The port of people's requests; 0 chooses one.").tag(
        config=True
    )
    agents_ip = Unicode(
        "127.0.0.1",
        help="""Where nodes dial in (mutual TLS). Other machines' agents need an
        address they can reach.""",
    ).tag(config=True)
    agents_port = Integer(help="The port nodes dial; 0 chooses one.").tag(config=True)
    metrics_ip = Unicode(
        "127.0.0.1", help="Where Prometheus reads how the service does, at /metrics."
    ).tag(config=True)
    metrics_port = Integer(
        help="The port of that; whoever reaches it may read. 0: there is none."
    ).tag(config=True)
    prefix = Unicode(
        "/services/backendai/", help="The path JupyterHub routes to this service."
    ).tag(config=True)
    hub_base = Unicode("/", help="JupyterHub's base_url.").tag(config=True)
    hub_api_url = Unicode(
        help="""JupyterHub's API, such as http://127.0.0.1:8081/hub/api. Empty: there is
        no JupyterHub, and only the spawner's token is accepted."""
    ).tag(config=True)
    service_token_file = Unicode(help="This service's JupyterHub token.").tag(
        config=True
    )
    spawner_token_file = Unicode(help="The token JupyterHub's spawner sends.").tag(
        config=True
    )
    router_token_file = Unicode(help="The token the router sends.").tag(config=True)
    enroll_token_file = Unicode(
        help="A token that enrols one node, once; made when the platform is set up."
    ).tag(config=True)
    first_admin_file = Unicode(
        help="JSON with the name and argon2 password hash of the first administrator."
    ).tag(config=True)
    lock_file = Unicode(
        help="Held while this process lives, so that one folder has one service."
    ).tag(config=True)
    superadmins = Set(
        Unicode(), help="Users who may see and end everything, by JupyterHub's name."
    ).tag(config=True)
    hub_admins_are_superadmins = Bool(
        default_value=False,
        help="""Whether who administers JupyterHub is a superadmin here, too, for as
        long as they do.""",
    ).tag(config=True)
    join_domain = Unicode(
        help="""The domain that people join who come for the first time. Empty: the one
        that is the default."""
    ).tag(config=True)
    join_project = Unicode(
        "default",
        help="""The project that people join who are new in a domain, if it has one of
        that name. Empty: none.""",
    ).tag(config=True)
    group_rules = List(
        Dict(),
        help="""What JupyterHub's groups give, in order. Each rule has a 'group', a
        regular expression that has to match a group's whole name, and any of 'domain',
        'project' and 'role' (user, domain-admin, monitor, superadmin); '{name}' in
        the first two stands for that part of the expression. For example
        {"group": "team-(?P<team>.+)", "project": "{team}"}. Of several domains or
        roles the first counts; projects add up.""",
    ).tag(config=True)
    max_password_days = Integer(
        0,
        min=0,
        help="""After so many days a password of the platform's own accounts has to be
        changed at the next login; 0 is never.""",
    ).tag(config=True)
    images = List(
        Dict(),
        _DEFAULT_IMAGES,
        help="""The environments on offer, in order: name, title, references per
        runtime, architecture, minimum, preferred, shmem, accelerators.""",
    ).tag(config=True)
    quotas = Dict(
        help="""Limits given to every new scope, such as
        {"user": {"cpu": "8", "mem": "32g"}}; scopes are domain, project and user."""
    ).tag(config=True)
    default_slots = Dict(
        {"cpu": "1", "mem": "1g"},
        help="What a session gets of cpu and mem if neither it nor its image says so.",
    ).tag(config=True)
    storage_hosts = Dict(
        help="""Where virtual folders lie, by name: a 'driver' (dir, btrfs, xfs,
        gluster, cephfs), its 'path' on this machine, and if need be 'owner' (uid:gid
        of people's files), 'require_mount', 'unmanaged_roots' and what the driver has
        of its own. Unless anything is said here, there is one called local."""
    ).tag(config=True)
    local_folders = Unicode(
        help="""The path of the storage host called local, which there is unless
        storage_hosts is set; empty: there is none. 'backendai up' says it."""
    ).tag(config=True)
    folder_owners = List(
        Unicode(),
        default_value=["user", "project"],
        help="""Whose virtual folders can be: 'user', 'project', or both.""",
    ).tag(config=True)
    folder_trash_days = Integer(
        30,
        min=0,
        help="""After so many days in the trash, by the database's clock, virtual
        folders are removed for good; 0: never.""",
    ).tag(config=True)
    file_trash_days = Integer(
        30,
        min=0,
        help="""After so many days, by the database's clock, what was thrown away inside
        a virtual folder is removed for good; 0: never.""",
    ).tag(config=True)
    storage_grace_hours = Float(
        24.0,
        min=1.0,
        help="""What lies on a storage host and belongs to nobody is left alone for so
        long after it was found.""",
    ).tag(config=True)
    upload_stall_seconds = Float(
        60.0,
        min=1.0,
        help="""An upload of which not one byte comes for so long is cut off. What has
        come is kept, and it may go on from there.""",
    ).tag(config=True)
    hide_agents = Bool(
        default_value=False,
        help="""Whether only administrators see nodes. Otherwise everybody sees those
        of the groups open to them: name, architecture, and how much is taken.""",
    ).tag(config=True)
    storage_shows_use = Bool(
        default_value=True,
        help="""Whether everybody sees how full storage hosts are, in percent;
        administrators always do.""",
    ).tag(config=True)
    default_storage_host = Unicode(
        help="""The storage host of folders for which nobody names one. Empty: the only
        one there is."""
    ).tag(config=True)
    max_images_per_rescan = Integer(
        10_000,
        min=1,
        help="""How many tags of one registry are read at most. What is beyond is not
        on offer, and said; nothing is taken away then.""",
    ).tag(config=True)
    max_live_sessions = Integer(
        100, help="How many sessions one user may have waiting or running."
    ).tag(config=True)
    idle_timeout = Integer(
        0,
        min=0,
        max=15_552_000,
        help="""Seconds without use after which an interactive session is ended whose
        keypair policy has an idle_timeout of -1; 0 is never.""",
    ).tag(config=True)
    heartbeat_seconds = Float(5.0, help="How often nodes report, at least.").tag(
        config=True
    )
    suspect_seconds = Float(
        15.0, help="A node silent for so long gets nothing new."
    ).tag(config=True)
    lost_seconds = Float(
        40.0, help="A node silent for so long is lost; its slots stay held."
    ).tag(config=True)
    lease_seconds = Float(
        240.0,
        min=1,
        help="""After so long without us, a node's batch sessions stop by themselves
        that may be started again elsewhere.""",
    ).tag(config=True)
    lease_margin_seconds = Float(
        60.0,
        min=1,
        help="So much later than that they are taken for stopped, and started again.",
    ).tag(config=True)
    auth_cache_seconds = Integer(
        30, help="How long JupyterHub's word about a token is trusted."
    ).tag(config=True)

    aliases = Dict(
        {"config": "HubService.config_file", "data-dir": "HubService.data_dir"}
    )
    flags = Dict()

    @default("db_url")
    def _default_db_url(self) -> str:
        return f"sqlite+aiosqlite:///{self._folder / 'db' / 'backendai.sqlite'}"

    @default("storage_hosts")
    def _default_storage_hosts(self) -> dict[str, Any]:
        return {"local": {"path": self.local_folders}} if self.local_folders else {}

    @default("lock_file")
    def _default_lock_file(self) -> str:
        return str(self._folder / "run" / "service.lock")

    @default("service_token_file")
    def _default_service_token_file(self) -> str:
        return self._key_path("service.token")

    @default("spawner_token_file")
    def _default_spawner_token_file(self) -> str:
        return self._key_path("spawner.token")

    @default("router_token_file")
    def _default_router_token_file(self) -> str:
        return self._key_path("router.token")

    @default("enroll_token_file")
    def _default_enroll_token_file(self) -> str:
        return self._key_path("enroll.token")

    @default("first_admin_file")
    def _default_first_admin_file(self) -> str:
        return self._key_path("first-admin.json")

    @default("log_level")
    def _default_log_level(self) -> int:
        return logging.INFO

    @property
    def _folder(self) -> Path:
        if not self.data_dir:
            raise ConfigurationError(
                "c.HubService.data_dir: say where keys and the database live"
            )
        return Path(self.data_dir)

    def _key_path(self, name: str) -> str:
        return str(self._folder / "keys" / name)

    @catch_config_error
    def initialize(self, argv: list[str] | None = None) -> None:
        """Read the command line and the configuration file; refuse unknown keys."""
        super().initialize(argv)
        given = Config(self.cli_config)
        if self.config_file:
            self.load_config_file(
                Path(self.config_file).name, str(Path(self.config_file).parent)
            )
        self.update_config(given)
        others = [name for name in self.config if name != "HubService"]
        check_keys(self.config, [type(self)], foreign={*_FOREIGN, *others})

    # --- wiring ------------------------------------------------------------------

    def _build_platform(self, signals: Signals, storage: StorageHosts) -> Platform:
        keys = self._folder / "keys"
        key = (keys / "database.key").read_bytes().strip()
        return Platform(
            database=Database(
                self.db_url, wake=signals.wake, audit_key=derive_audit_key(key)
            ),
            vault=Vault(key),
            authority=Authority(
                (keys / "ca.key").read_bytes(), (keys / "ca.crt").read_bytes()
            ),
            settings=self._build_settings(),
            storage=storage,
        )

    def _build_settings(self) -> Settings:
        floor = parse_slots(self.default_slots)
        superadmins = set(self.superadmins)
        first = self._read_first_admin()
        if first is not None:
            superadmins.add(fold(first["name"]))
        return Settings(
            hub_base=self.hub_base,
            default_cpu=floor["cpu"],
            default_memory=floor["mem"],
            quotas={k: dict(parse_slots(v).items()) for k, v in self.quotas.items()},
            superadmins=frozenset(superadmins),
            hub_admins_are_superadmins=self.hub_admins_are_superadmins,
            join_domain=self.join_domain,
            join_project=self.join_project,
            group_rules=read_rules(self.group_rules),
            max_password_days=self.max_password_days,
            max_images_per_rescan=self.max_images_per_rescan,
            audit_heads=str(self._folder / "audit" / "heads.jsonl"),
            max_live_sessions=self.max_live_sessions,
            folder_owners=frozenset(self.folder_owners),
            folder_trash_days=self.folder_trash_days,
            file_trash_days=self.file_trash_days,
            storage_grace=timedelta(hours=self.storage_grace_hours),
            upload_stall_seconds=self.upload_stall_seconds,
            hide_agents=self.hide_agents,
            storage_shows_use=self.storage_shows_use,
            idle_timeout=self.idle_timeout,
            heartbeat_seconds=self.heartbeat_seconds,
            suspect_seconds=self.suspect_seconds,
            lost_seconds=self.lost_seconds,
            lease_seconds=self.lease_seconds,
            lease_margin_seconds=self.lease_margin_seconds,
        )

    def _read_first_admin(self) -> dict[str, str] | None:
        path = Path(self.first_admin_file)
        if not path.is_file():
            return None
        found: dict[str, str] = json.loads(path.read_text("utf-8"))
        return found

    def _read_enroll_token(self) -> str | None:
        path = Path(self.enroll_token_file)
        return _read_token(str(path)) if path.is_file() else None

    def _build_login(self) -> HubOAuth | None:
        if not self.hub_api_url:
            return None
        return build_login(
            api_url=self.hub_api_url,
            token=_read_token(self.service_token_file),
            prefix=self.prefix,
            hub_base=self.hub_base,
            cache_seconds=self.auth_cache_seconds,
        )

    def _build_web(self, service: Service) -> web.Application:
        assets = {"path": service.assets}
        routes: list[Any] = [
            *patterns(API, self.prefix),
            (f"{self.prefix}api/.*", NoSuchRouteHandler),
            (f"{self.prefix}agent/.*", NoSuchRouteHandler),
            (f"{self.prefix}oauth_callback", OAuthCallbackHandler),
            (f"{self.prefix}static/console/(.*)", AssetHandler, assets),
            *patterns(PAGES, self.prefix),
            (f"{self.prefix}(.*)", ConsoleHandler),
        ]
        return web.Application(
            routes,
            default_handler_class=NoSuchRouteHandler,
            service=service,
            cookie_secret=self._derive_key(b"console cookies"),
            log_function=_log_request,
        )

    def _derive_key(self, use: bytes) -> str:
        """Derive a key from that of the database, so that no key has two uses."""
        key = (self._folder / "keys" / "database.key").read_bytes().strip()
        return hmac.new(key, use, "sha256").hexdigest()

    def _build_agents_context(self) -> ssl.SSLContext:
        keys = self._folder / "keys"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(keys / "hub.crt", keys / "hub.key")
        context.load_verify_locations(keys / "ca.crt")
        # Optional, because a node that joins has none yet; every route but joining
        # demands one.
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _build_agent_client(self) -> AgentClient:
        keys = self._folder / "keys"
        return AgentClient(
            authority=keys / "ca.crt",
            certificate=keys / "hub.crt",
            key=keys / "hub.key",
        )

    async def _prepare(self, platform: Platform) -> None:
        images = [msgspec.convert(dict(i), Image) for i in self.images]
        await offer_images(platform, images)
        await settle_roles(platform)
        first = self._read_first_admin()
        if first is not None and "password_hash" in first:
            await ensure_account(platform, first["name"], first["password_hash"])
        token = self._read_enroll_token()
        if token is not None:
            await accept_token(platform, token)

    async def serve(self) -> None:
        """Run until SIGTERM or SIGINT."""
        signals = Signals()
        if self.db_url.startswith("sqlite"):
            (self._folder / "db").mkdir(parents=True, exist_ok=True, mode=0o700)
        storage = StorageHosts(
            self.storage_hosts,
            self.default_storage_host,
            mark=self._derive_key(b"storage mark")[:32],
        )
        platform = self._build_platform(signals, storage)
        leadership = Leadership(platform.database)
        await leadership.take()
        # Not before: whoever serves meanwhile works with the tables as they are.
        await asyncio.to_thread(upgrade, self.db_url)
        await leadership.begin()
        await self._prepare(platform)
        storage.start()
        warm_up()
        # What is there by now stays: looking through it for garbage would hold up
        # decisions by more than they take.
        gc.freeze()
        # A long pass is made in a thread. Who is answered meanwhile needs the
        # interpreter many times, a little each, and waits at most so long for it.
        sys.setswitchinterval(0.001)
        nodes = self._build_agent_client()
        service = Service(
            platform=platform,
            signals=signals,
            credentials=Credentials(
                spawner=_read_token(self.spawner_token_file),
                router=_read_token(self.router_token_file),
            ),
            prefix=self.prefix,
            hub_auth=self._build_login(),
            assets=str(Path(__file__).parent / "static" / "console"),
            nodes=nodes,
        )
        reconcilers: list[Reconciler] = [
            SchedulerReconciler(platform, signals),
            ExplanationsReconciler(platform, signals, service.explanations),
            NodesReconciler(platform, signals),
            DeadlinesReconciler(platform, signals),
            BatchReconciler(platform, signals),
            AuditReconciler(platform, signals),
            KeysReconciler(platform, signals),
            MeasuresReconciler(platform, signals),
            UsageReconciler(platform, signals),
            RescansReconciler(platform, signals),
            FoldersReconciler(platform, signals),
            UploadsReconciler(platform, signals),
            StorageReconciler(platform, signals),
        ]
        if self.hub_api_url:
            hub = JupyterHubClient(
                self.hub_api_url, _read_token(self.service_token_file)
            )
            reconcilers.append(AttachmentsReconciler(platform, signals, hub))
        servers = [self._listen_people(service), self._listen_agents(service)]
        if self.metrics_port:
            servers.append(self._listen_metrics())
        tasks = [asyncio.create_task(r.run(), name=r.name) for r in reconcilers]
        lost = await self._wait_for_end(leadership)
        for server in servers:
            server.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Whoever waits for news gets an answer, while there is still a database.
        service.stopping.append(True)
        signals.wake_all()
        await asyncio.sleep(DRAIN_SECONDS)
        for reconciler in reconcilers:
            await reconciler.close()
        for server in servers:
            await server.close_all_connections()
        await nodes.close()
        await storage.close()
        await leadership.close()
        await platform.database.close()
        if lost:
            raise AnotherServiceError(
                "another hub service has taken over this database; this one stops"
            )

    def _listen_people(self, service: Service) -> httpserver.HTTPServer:
        lane = FastLane(self._build_web(service), service)
        server = httpserver.HTTPServer(
            lane, xheaders=True, max_body_size=MOST_READ, chunk_size=CHUNK
        )
        sockets = netutil.bind_sockets(self.port, self.ip)
        server.add_sockets(sockets)
        self.port = sockets[0].getsockname()[1]
        self.log.info("people: http://%s:%d%s", self.ip, self.port, self.prefix)
        return server

    def _listen_agents(self, service: Service) -> httpserver.HTTPServer:
        application = web.Application(
            patterns(AGENTS, "/"),
            default_handler_class=NoSuchRouteHandler,
            service=service,
            log_function=_log_request,
        )
        server = httpserver.HTTPServer(
            application,
            ssl_options=self._build_agents_context(),
            max_body_size=MOST_READ,
        )
        sockets = netutil.bind_sockets(self.agents_port, self.agents_ip)
        server.add_sockets(sockets)
        self.agents_port = sockets[0].getsockname()[1]
        self.log.info("nodes: https://%s:%d", self.agents_ip, self.agents_port)
        return server

    def _listen_metrics(self) -> httpserver.HTTPServer:
        server = build_metrics(self._watch)
        server.listen(self.metrics_port, self.metrics_ip)
        self.log.info(
            "metrics: http://%s:%d/metrics", self.metrics_ip, self.metrics_port
        )
        return server

    async def _wait_for_end(self, leadership: Leadership) -> bool:
        """Wait for a signal to stop; tell whether another service took over."""
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended.set)
        waits = [
            asyncio.create_task(ended.wait()),
            asyncio.create_task(leadership.keep()),
        ]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        return not ended.is_set()

    def start(self) -> None:
        """Hold the lock and serve."""
        hold_lock(Path(self.lock_file))
        self._watch = make_watch()
        with asyncio.Runner(loop_factory=lambda: make_loop(self._watch)) as runner:
            runner.run(self.serve())


def _read_token(path: str) -> str:
    try:
        return Path(path).read_text("ascii").strip()
    except OSError as error:
        raise ConfigurationError(
            f"{path}: {error.strerror}; 'backendai up' makes it, or make one yourself"
        ) from error


def _log_request(handler: web.RequestHandler) -> None:
    """Log refusals and failures; what went well is in the events."""
    status = handler.get_status()
    if status < 400 or status == 404:
        return
    request = handler.request
    logging.getLogger("backendai_hub.access").log(
        logging.WARNING if status < 500 else logging.ERROR,
        "%d %s %s (%s) %.0f ms",
        status,
        request.method,
        request.path[:256],
        request.remote_ip,
        1000 * request.request_time(),
    )


def main(argv: list[str] | None = None) -> None:
    """Run the hub service."""
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname).1s %(name)s: %(message)s",
    )
    application = HubService()
    try:
        application.initialize(argv)
        application.start()
    except (ConfigurationError, AlreadyRunningError, AnotherServiceError) as error:
        sys.exit(f"backendai-hub: {error}")


if __name__ == "__main__":
    main()
