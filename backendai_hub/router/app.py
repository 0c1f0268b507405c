"""``backendai-router``: the one data plane of the platform."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import secrets
import sys
from pathlib import Path
from typing import NoReturn

from traitlets import TraitError
from traitlets.config import Config

from backendai_hub.client.lockfile import AlreadyRunningError, hold_lock
from backendai_hub.core.configuration import ConfigurationError, check_keys
from backendai_hub.router.commandline import ALIASES, FLAGS, read_arguments
from backendai_hub.router.server import RouterServer
from backendai_hub.router.settings import RouterSettings
from backendai_hub.router.targets import BadTargetError

_LEVELS = {"debug": "DEBUG", "info": "INFO", "warn": "WARN", "error": "ERROR"}


class Router(RouterSettings):
    """Routes browsers to JupyterHub, to services and to sessions on nodes.

    It takes configurable-http-proxy's options and REST API, so that JupyterHub's
    ConfigurableHTTPProxy class drives it; and it follows the platform's session
    routes, which it serves over mutual TLS with the agents.
    """

    name = "backendai-router"
    aliases = ALIASES
    flags = FLAGS

    def initialize(self, argv: list[str] | None = None) -> None:
        """Read the command line and the configuration file; refuse what is unknown."""
        arguments = sys.argv[1:] if argv is None else argv
        names = self.class_trait_names(config=True)
        self.parse_command_line(read_arguments(arguments, names))
        if self.config_file:
            given = self.cli_config
            self._load_file(Path(self.config_file))
            # The command line has the last word.
            self.update_config(given)
        self.log_level = _LEVELS[self.verbosity]
        self._check()

    def start(self) -> None:
        """Serve until told to stop."""
        if self.lock_file:
            hold_lock(Path(self.lock_file))
        token = self._token()
        pid_file = Path(self.pid_file) if self.pid_file else None
        if pid_file is not None:
            pid_file.write_text(str(os.getpid()))
        try:
            asyncio.run(self._serve(token))
        finally:
            if pid_file is not None:
                pid_file.unlink(missing_ok=True)

    async def _serve(self, token: str) -> None:
        await RouterServer(self, token=token, log=self.log).run()

    def _load_file(self, path: Path) -> None:
        if not path.is_file():
            raise ConfigurationError(f"{path}: there is no such file")
        self.load_config_file(path.name, path=str(path.parent.absolute()))
        # Sections of the platform's other processes share the file.
        section = self.config.get("Router", Config())
        check_keys({"Router": section}, [Router])

    def _check(self) -> None:
        for claim, sentence in (
            (
                self.storage_backend,
                "storage-backend: Node modules cannot be loaded here;"
                " use --state-file to keep routes across restarts",
            ),
            (self.ssl_allow_rc4, "ssl-allow-rc4: RC4 is broken and not available"),
            (
                self.error_target and self.error_path,
                "error-target and error-path exclude each other",
            ),
            (
                self.redirect_port and not (self.ssl_key or self.ssl_cert),
                "redirect-port needs ssl-key and ssl-cert: there is no HTTPS here",
            ),
            (
                not self.public and not self.gateway,
                "no-public leaves nothing to do without gateway",
            ),
            (
                self.routes_url and not self.routes_token_file,
                "routes-url needs routes-token-file",
            ),
            (
                self.routes_url and not self.gateway,
                "routes-url is of no use without gateway",
            ),
        ):
            if claim:
                raise ConfigurationError(sentence)

    def _token(self) -> str:
        """Return the REST API's token.

        Without one, nobody may use the API: the router still serves its default
        target and the gateway, but only if nobody else could reach the API anyway.
        """
        if self.auth_token_file:
            token = Path(self.auth_token_file).read_text().strip()
        else:
            token = os.environ.get("CONFIGPROXY_AUTH_TOKEN", "").strip()
        if token or not self.public:
            return token
        if not self.api_socket and not _is_loopback(self.api_ip):
            raise ConfigurationError(
                f"the REST API on {self.api_ip or 'all addresses'} needs a token: set"
                " CONFIGPROXY_AUTH_TOKEN or --auth-token-file"
            )
        self.log.warning(
            "No token is configured, so a random one was made that nobody knows: the"
            " REST API is closed. Set CONFIGPROXY_AUTH_TOKEN or --auth-token-file."
        )
        return secrets.token_urlsafe(32)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def main() -> NoReturn:
    """Run the router."""
    app = Router()
    try:
        app.initialize()
        app.start()
    except (
        AlreadyRunningError,
        BadTargetError,
        ConfigurationError,
        OSError,
        TraitError,
        ValueError,
    ) as error:
        # A mistake in the settings, or a port that is taken: no traceback needed.
        sys.stderr.write(f"backendai-router: {error}\n")
        sys.exit(1)
    sys.exit(0)
