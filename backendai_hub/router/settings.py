"""The router's settings, named after configurable-http-proxy's options."""

from __future__ import annotations

from traitlets import (
    Bool,
    CaselessStrEnum,
    Float,
    Integer,
    List,
    Unicode,
)
from traitlets.config import Application


class RouterSettings(Application):
    """Everything about the router that a site can choose."""

    log_format = Unicode(
        "[%(levelname)1.1s %(asctime)s.%(msecs).03d %(name)s] %(message)s",
        help="How a line of the log looks.",
    ).tag(config=True)
    config_file = Unicode("", help="Configuration file to load.").tag(config=True)
    verbosity = CaselessStrEnum(
        ["debug", "info", "warn", "error"], "info", help="How much to log."
    ).tag(config=True)

    public = Bool(
        default_value=True,
        help="""
        Serve the public port and the REST API. Without it the router is only the
        gateway to sessions, behind another proxy.
        """,
    ).tag(config=True)
    ip = Unicode("", help="Address of the public port; empty means all.").tag(
        config=True
    )
    port = Integer(8000, help="The public port.").tag(config=True)
    socket = Unicode("", help="Unix socket to serve on instead of a port.").tag(
        config=True
    )
    ssl_key = Unicode("", help="Key file, to serve HTTPS.").tag(config=True)
    ssl_cert = Unicode("", help="Certificate file, to serve HTTPS.").tag(config=True)
    ssl_ca = Unicode("", help="Authority for clients' certificates.").tag(config=True)
    ssl_request_cert = Bool(
        default_value=False, help="Ask clients for a certificate."
    ).tag(config=True)
    ssl_reject_unauthorized = Bool(
        default_value=False, help="Turn clients without a certificate away."
    ).tag(config=True)
    ssl_protocol = Unicode("", help="Oldest TLS to accept: TLSv1_2 or TLSv1_3.").tag(
        config=True
    )
    ssl_ciphers = Unicode("", help="Ciphers for TLS 1.2, colon-separated.").tag(
        config=True
    )
    ssl_allow_rc4 = Bool(default_value=False, help="Refused; RC4 is gone.").tag(
        config=True
    )
    ssl_dhparam = Unicode("", help="Diffie-Hellman parameters file.").tag(config=True)

    api_ip = Unicode("localhost", help="Address of the REST API.").tag(config=True)
    api_port = Integer(
        0, help="Port of the REST API; the public port plus one by default."
    ).tag(config=True)
    api_socket = Unicode("", help="Unix socket of the REST API.").tag(config=True)
    api_ssl_key = Unicode("", help="Key file of the REST API.").tag(config=True)
    api_ssl_cert = Unicode("", help="Certificate file of the REST API.").tag(
        config=True
    )
    api_ssl_ca = Unicode("", help="Authority for API clients' certificates.").tag(
        config=True
    )
    api_ssl_request_cert = Bool(
        default_value=False, help="Ask API clients for a certificate."
    ).tag(config=True)
    api_ssl_reject_unauthorized = Bool(
        default_value=False, help="Turn API clients without a certificate away."
    ).tag(config=True)
    auth_token_file = Unicode(
        "",
        help="""
        File with the REST API's token. Without one, the token is taken from the
        environment variable CONFIGPROXY_AUTH_TOKEN.
        """,
    ).tag(config=True)

    client_ssl_key = Unicode("", help="Key file shown to HTTPS targets.").tag(
        config=True
    )
    client_ssl_cert = Unicode("", help="Certificate shown to HTTPS targets.").tag(
        config=True
    )
    client_ssl_ca = Unicode("", help="Authority of HTTPS targets.").tag(config=True)
    client_ssl_request_cert = Bool(
        default_value=False, help="Accepted for compatibility; always so."
    ).tag(config=True)
    client_ssl_reject_unauthorized = Bool(
        default_value=False, help="Accepted for compatibility; always so."
    ).tag(config=True)
    insecure = Bool(
        default_value=False, help="Do not check the certificates of targets."
    ).tag(config=True)

    default_target = Unicode("", help="Target of requests without a route.").tag(
        config=True
    )
    error_target = Unicode("", help="Where to get error pages from.").tag(config=True)
    error_path = Unicode("", help="Folder with error pages.").tag(config=True)
    redirect_port = Integer(0, help="Port to redirect to HTTPS from.").tag(config=True)
    redirect_to = Integer(0, help="Port to redirect to; our own by default.").tag(
        config=True
    )
    x_forward = Bool(default_value=True, help="Add X-Forwarded headers.").tag(
        config=True
    )
    prepend_path = Bool(
        default_value=True, help="Put the target's path before the request's."
    ).tag(config=True)
    include_prefix = Bool(
        default_value=True, help="Keep the route's prefix in the path."
    ).tag(config=True)
    auto_rewrite = Bool(
        default_value=False, help="Rewrite redirects that name the target."
    ).tag(config=True)
    change_origin = Bool(
        default_value=False, help="Send the target's host as Host."
    ).tag(config=True)
    protocol_rewrite = Unicode("", help="Protocol to put into redirects.").tag(
        config=True
    )
    custom_headers = List(
        Unicode(), help="Headers to add to requests, each as 'name: value'."
    ).tag(config=True)
    host_routing = Bool(
        default_value=False, help="Route by host name, then by path."
    ).tag(config=True)
    storage_backend = Unicode("", help="Refused: use state_file.").tag(config=True)
    timeout = Integer(
        300_000, help="Milliseconds a client may stall while sending a body; 0: ever."
    ).tag(config=True)
    proxy_timeout = Integer(
        0, help="Milliseconds a target may be silent; 0: for ever."
    ).tag(config=True)
    keep_alive_timeout = Integer(
        60_000, help="Milliseconds an idle client connection stays open."
    ).tag(config=True)

    metrics_ip = Unicode("", help="Address of the metrics port; empty: all.").tag(
        config=True
    )
    metrics_port = Integer(0, help="Port of the metrics; 0: none.").tag(config=True)
    metrics_socket = Unicode("", help="Unix socket of the metrics.").tag(config=True)

    gateway = Unicode(
        "", help="Loopback address and port of the gateway to sessions."
    ).tag(config=True)
    routes_url = Unicode("", help="Where the sessions' routes are followed.").tag(
        config=True
    )
    routes_token_file = Unicode("", help="File with the token for routes_url.").tag(
        config=True
    )
    tls_ca = Unicode("", help="Authority of the agents' certificates.").tag(config=True)
    tls_cert = Unicode("", help="The router's certificate.").tag(config=True)
    tls_key = Unicode("", help="The key of the router's certificate.").tag(config=True)
    trusted_proxies = List(
        Unicode(),
        help="Networks of proxies whose X-Forwarded headers are believed.",
    ).tag(config=True)

    lock_file = Unicode("", help="Lock held while the router runs.").tag(config=True)
    pid_file = Unicode("", help="File to write the process id to.").tag(config=True)
    state_file = Unicode(
        "", help="File in which routes survive a restart of the router."
    ).tag(config=True)
    drain_timeout = Float(
        5.0, help="Seconds that open exchanges get to end when the router stops."
    ).tag(config=True)

    max_line_size = Integer(16 * 1024, help="Bytes of a request line.").tag(config=True)
    max_field_size = Integer(32 * 1024, help="Bytes of one header.").tag(config=True)
    max_headers = Integer(128, help="Number of headers.").tag(config=True)
    max_head_size = Integer(64 * 1024, help="Bytes of all headers together.").tag(
        config=True
    )
    max_body_size = Integer(0, help="Bytes of a request's body; 0: any.").tag(
        config=True
    )
