"""The command line is configurable-http-proxy's, read strictly."""

from __future__ import annotations

import pytest

from backendai_hub.core.configuration import ConfigurationError
from backendai_hub.router import wiring
from backendai_hub.router.app import Router
from backendai_hub.router.listeners import Endpoint


def parse(*arguments: str) -> Router:
    app = Router()
    app.initialize(list(arguments))
    return app


def test_what_jupyterhub_writes_is_understood():
    app = parse(
        *("--ip", "", "--port", "8000", "--api-ip", "127.0.0.1", "--api-port", "8001"),
        *("--error-target", "http://127.0.0.1:8081/hub/error", "--log-level", "info"),
        *("--host-routing", "--ssl-key", "k", "--ssl-cert", "c"),
        *("--api-ssl-key", "ak", "--api-ssl-cert", "ac", "--api-ssl-ca", "aa"),
        *("--api-ssl-request-cert", "--api-ssl-reject-unauthorized"),
        *("--client-ssl-key", "ck", "--client-ssl-cert", "cc", "--client-ssl-ca", "ca"),
        *("--client-ssl-request-cert", "--client-ssl-reject-unauthorized"),
    )

    assert (app.ip, app.port, app.api_port) == ("", 8000, 8001)
    assert app.error_target == "http://127.0.0.1:8081/hub/error"
    assert app.host_routing
    assert app.api_ssl_request_cert
    assert app.api_ssl_reject_unauthorized
    assert app.client_ssl_ca == "ca"


def test_values_may_follow_an_equals_sign_or_begin_with_a_dash():
    app = parse("--port=1234", "--error-path", "-odd", "--ssl-ciphers=A:B=C")

    assert app.port == 1234
    assert app.error_path == "-odd"
    assert app.ssl_ciphers == "A:B=C"


def test_of_an_option_given_twice_the_last_counts():
    app = parse("--log-level", "debug", "--port", "1", "--log-level", "warn")

    assert app.verbosity == "warn"
    assert app.port == 1


def test_headers_to_add_may_be_many():
    app = parse("--custom-header", "X-One: 1", "--custom-header=X-Two:2:3")

    assert wiring.custom_headers(app) == {"X-One": "1", "X-Two": "2:3"}


def test_switches_go_both_ways():
    off = parse("--no-x-forward", "--no-prepend-path", "--no-include-prefix")
    on = parse("--x-forward", "--prepend-path", "--include-prefix")

    assert [off.x_forward, off.prepend_path, off.include_prefix] == [False] * 3
    assert on.x_forward
    assert on.prepend_path
    assert on.include_prefix


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--prot", "1"], "did you mean --port?"),
        (["--port"], "a value is missing"),
        (["stray"], "unexpected argument"),
        (["--host-routing=yes"], "takes no value"),
        (["--Router.ports=1"], "no such setting"),
        (["--Other.port=1"], "no such setting"),
        (["--storage-backend", "redis"], "use --state-file"),
        (["--ssl-allow-rc4"], "RC4"),
        (["--error-path", "a", "--error-target", "http://b"], "exclude each other"),
        (["--redirect-port", "80"], "needs ssl-key"),
        (["--no-public"], "without gateway"),
        (["--gateway", "127.0.0.1:1", "--routes-url", "http://a"], "routes-token-file"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(arguments, said):
    with pytest.raises(ConfigurationError, match=said):
        parse(*arguments)


def test_the_platform_s_file_is_read_and_the_command_line_has_the_last_word(tmp_path):
    file = tmp_path / "backendai_config.py"
    file.write_text(
        "c.Router.port = 1111\n"
        "c.Router.trusted_proxies = ['10.0.0.0/8']\n"
        "c.JupyterHub.whatever = 1\n"
    )

    app = parse("--config", str(file), "--port", "2222")

    assert app.port == 2222
    assert app.trusted_proxies == ["10.0.0.0/8"]


def test_a_misspelt_setting_in_the_file_is_refused(tmp_path):
    file = tmp_path / "config.py"
    file.write_text("c.Router.prot = 1\n")

    with pytest.raises(ConfigurationError, match="did you mean port"):
        parse("--config", str(file))


def test_a_file_that_is_missing_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="no such file"):
        parse("--config", str(tmp_path / "config.py"))


def test_endpoints_default_as_in_the_original():
    app = parse("--ip", "*", "--port", "9000")

    assert wiring.public_endpoint(app) == Endpoint("", 9000)
    assert wiring.api_endpoint(app) == Endpoint("127.0.0.1", 9001)


def test_sockets_take_the_place_of_ports():
    app = parse("--socket", "/run/p", "--api-socket", "/run/a")

    assert str(wiring.public_endpoint(app)) == "unix:/run/p"
    assert str(wiring.api_endpoint(app)) == "unix:/run/a"


@pytest.mark.parametrize("text", ["8000", ":8000", "127.0.0.1", "a:b"])
def test_a_gateway_needs_an_address_and_a_port(text):
    with pytest.raises(ConfigurationError, match="address and a port"):
        wiring.parse_address(text)


def test_the_agents_certificates_are_given_together():
    app = parse("--gateway", "127.0.0.1:1", "--tls-ca", "ca")

    with pytest.raises(ConfigurationError, match="needed together"):
        wiring.credentials(app)


def test_an_ancient_protocol_is_refused():
    app = parse("--ssl-key", "k", "--ssl-cert", "c", "--ssl-protocol", "SSLv3")

    with pytest.raises(ConfigurationError, match="TLSv1_2, TLSv1_3"):
        wiring.public_tls(app)
