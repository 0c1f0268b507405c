"""configurable-http-proxy's command line, which JupyterHub writes for us."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from backendai_hub.core.configuration import ConfigurationError

#: Options with a value, and the settings they set.
ALIASES: Final[dict[str, str]] = {
    "config": "Router.config_file",
    "ip": "Router.ip",
    "port": "Router.port",
    "socket": "Router.socket",
    "ssl-key": "Router.ssl_key",
    "ssl-cert": "Router.ssl_cert",
    "ssl-ca": "Router.ssl_ca",
    "ssl-protocol": "Router.ssl_protocol",
    "ssl-ciphers": "Router.ssl_ciphers",
    "ssl-dhparam": "Router.ssl_dhparam",
    "api-ip": "Router.api_ip",
    "api-port": "Router.api_port",
    "api-socket": "Router.api_socket",
    "api-ssl-key": "Router.api_ssl_key",
    "api-ssl-cert": "Router.api_ssl_cert",
    "api-ssl-ca": "Router.api_ssl_ca",
    "client-ssl-key": "Router.client_ssl_key",
    "client-ssl-cert": "Router.client_ssl_cert",
    "client-ssl-ca": "Router.client_ssl_ca",
    "default-target": "Router.default_target",
    "error-target": "Router.error_target",
    "error-path": "Router.error_path",
    "redirect-port": "Router.redirect_port",
    "redirect-to": "Router.redirect_to",
    "pid-file": "Router.pid_file",
    "protocol-rewrite": "Router.protocol_rewrite",
    "custom-header": "Router.custom_headers",
    "metrics-ip": "Router.metrics_ip",
    "metrics-port": "Router.metrics_port",
    "metrics-socket": "Router.metrics_socket",
    "log-level": "Router.verbosity",
    "timeout": "Router.timeout",
    "proxy-timeout": "Router.proxy_timeout",
    "keep-alive-timeout": "Router.keep_alive_timeout",
    "storage-backend": "Router.storage_backend",
    "auth-token-file": "Router.auth_token_file",
    "gateway": "Router.gateway",
    "routes-url": "Router.routes_url",
    "routes-token-file": "Router.routes_token_file",
    "tls-ca": "Router.tls_ca",
    "tls-cert": "Router.tls_cert",
    "tls-key": "Router.tls_key",
    "lock-file": "Router.lock_file",
    "state-file": "Router.state_file",
    "trusted-proxies": "Router.trusted_proxies",
    "drain-timeout": "Router.drain_timeout",
}


def _switch(name: str, help_text: str, *, to: bool = True) -> tuple[Any, str]:
    return ({"Router": {name: to}}, help_text)


#: Options without a value.
FLAGS: Final[dict[str, tuple[Any, str]]] = {
    "ssl-request-cert": _switch("ssl_request_cert", "Ask clients for a certificate."),
    "ssl-reject-unauthorized": _switch(
        "ssl_reject_unauthorized", "Turn clients without a certificate away."
    ),
    "ssl-allow-rc4": _switch("ssl_allow_rc4", "Refused: OpenSSL has RC4 no more."),
    "api-ssl-request-cert": _switch(
        "api_ssl_request_cert", "Ask clients of the REST API for a certificate."
    ),
    "api-ssl-reject-unauthorized": _switch(
        "api_ssl_reject_unauthorized", "Turn API clients without a certificate away."
    ),
    "client-ssl-request-cert": _switch(
        "client_ssl_request_cert", "Accepted; servers are always checked."
    ),
    "client-ssl-reject-unauthorized": _switch(
        "client_ssl_reject_unauthorized", "Accepted; servers are always checked."
    ),
    "x-forward": _switch("x_forward", "Add X-Forwarded headers (the default)."),
    "no-x-forward": _switch("x_forward", "Add no X-Forwarded headers.", to=False),
    "prepend-path": _switch("prepend_path", "Prepend a target's path (the default)."),
    "no-prepend-path": _switch(
        "prepend_path", "Do not prepend a target's path.", to=False
    ),
    "include-prefix": _switch("include_prefix", "Keep a route's prefix (the default)."),
    "no-include-prefix": _switch(
        "include_prefix", "Cut the route's prefix off the path.", to=False
    ),
    "auto-rewrite": _switch("auto_rewrite", "Rewrite redirects to the target's host."),
    "change-origin": _switch("change_origin", "Send the target's host as Host."),
    "insecure": _switch("insecure", "Do not check the certificates of targets."),
    "host-routing": _switch("host_routing", "Take the host as a path's first segment."),
    "no-public": _switch(
        "public", "Be a gateway only: no public port, no REST API.", to=False
    ),
}

_REPEATABLE: Final = frozenset({"custom-header", "trusted-proxies"})
_BUILT_IN: Final = frozenset({"help", "help-all", "version", "debug", "show-config"})


def read_arguments(arguments: Iterable[str], settings: Iterable[str]) -> list[str]:
    """Return *arguments* in the form traitlets reads, ``--name=value`` throughout.

    Of an option given twice the last one counts, so that JupyterHub may add its own
    to a site's command. Options nobody reads are refused; traitlets would only warn.
    """
    rest = iter(arguments)
    given: dict[str, list[str]] = {}
    for argument in rest:
        if not argument.startswith("-"):
            raise ConfigurationError(f"{argument}: unexpected argument")
        name, equals, value = argument.lstrip("-").partition("=")
        if name in ALIASES or "." in name:
            _check_setting(name, settings)
            if not equals:
                value = _next_value(name, rest)
            given.setdefault(name, []).append(f"--{name}={value}")
        elif equals or (name not in FLAGS and name not in _BUILT_IN and name != "h"):
            raise ConfigurationError(_unknown(name))
        else:
            given[name] = [argument]
    return [
        text
        for name, texts in given.items()
        for text in (texts if name in _REPEATABLE or "." in name else texts[-1:])
    ]


def _next_value(name: str, rest: Iterator[str]) -> str:
    try:
        return next(rest)
    except StopIteration:
        raise ConfigurationError(f"--{name}: a value is missing") from None


def _check_setting(name: str, settings: Iterable[str]) -> None:
    section, dot, key = name.partition(".")
    if dot and (section != "Router" or key not in settings):
        raise ConfigurationError(f"--{name}: there is no such setting")


def _unknown(name: str) -> str:
    if name in FLAGS or name in _BUILT_IN:
        return f"--{name}: takes no value"
    close = difflib.get_close_matches(name, [*ALIASES, *FLAGS], n=1)
    hint = f" (did you mean --{close[0]}?)" if close else ""
    return f"--{name}: there is no such option{hint}"
