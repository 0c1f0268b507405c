"""What passes from one hop to the next, and what does not."""

from __future__ import annotations

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from backendai_hub.router.headers import (
    HeaderRules,
    TrustedProxies,
    host_name,
    is_upgrade,
    port_of,
    request_headers,
    response_headers,
    sendable,
)
from backendai_hub.router.refusals import RefusalError
from backendai_hub.router.requests import Limits, read_address
from backendai_hub.router.rewrites import LocationRules
from backendai_hub.router.targets import parse_target

NOBODY = HeaderRules(TrustedProxies())


def test_headers_of_the_hop_and_those_it_names_stay_behind():
    request = make_mocked_request(
        "GET",
        "/",
        headers=CIMultiDict(
            [
                ("Host", "a"),
                ("Connection", "keep-alive, X-Private"),
                ("Connection", "Other"),
                ("X-Private", "1"),
                ("Other", "1"),
                ("Keep-Alive", "1"),
                ("TE", "trailers"),
                ("Upgrade", "h2c"),
                ("Proxy-Authorization", "x"),
                ("Cookie", "a"),
                ("Cookie", "b"),
            ]
        ),
    )

    passed = request_headers(request, NOBODY, host="a", upstream_host="u:1")

    assert {name for name in passed if not name.startswith("X-F")} == {"Cookie", "Host"}
    assert passed.getall("Cookie") == ["a", "b"]
    assert passed["Host"] == "a"


def test_a_client_may_not_speak_for_others_unless_it_is_trusted():
    request = make_mocked_request(
        "GET",
        "/",
        headers={"Host": "a", "X-Forwarded-User": "root", "X-Real-IP": "192.0.2.1"},
    )
    trusting = HeaderRules(TrustedProxies(["127.0.0.0/8"]))

    doubted = request_headers(request, NOBODY, host="a", upstream_host="u")
    believed = request_headers(request, trusting, host="a", upstream_host="u")

    assert "X-Forwarded-User" not in doubted
    assert "X-Real-IP" not in doubted
    assert believed["X-Forwarded-User"] == "root"
    assert believed["X-Real-IP"] == "192.0.2.1"


def test_naming_the_host_or_the_length_as_the_hop_s_own_does_not_remove_them():
    request = make_mocked_request(
        "POST",
        "/",
        headers={"Host": "a", "Content-Length": "3", "Connection": "content-length"},
    )

    passed = request_headers(request, NOBODY, host="a", upstream_host="u")

    assert passed["Content-Length"] == "3"


def test_responses_keep_what_is_repeated():
    upstream = CIMultiDict(
        [("Set-Cookie", "a"), ("Set-Cookie", "b"), ("Transfer-Encoding", "chunked")]
    )

    assert list(response_headers(upstream).items()) == [
        ("Set-Cookie", "a"),
        ("Set-Cookie", "b"),
    ]


@pytest.mark.parametrize(
    ("address", "trusted"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("fd00::1%eth0", True),
        ("11.0.0.1", False),
        ("", False),
        ("nonsense", False),
        (None, False),
    ],
)
def test_trust_goes_by_network(address, trusted):
    assert (address in TrustedProxies(["10.0.0.0/8", "fd00::/8"])) is trusted


@pytest.mark.parametrize(
    ("host", "name", "port"),
    [
        ("Site.Example", "site.example", ""),
        ("site.example:80", "site.example", "80"),
        ("[::1]:80", "::1", "80"),
        ("[::1]", "::1", ""),
        ("", "", ""),
    ],
)
def test_hosts_are_taken_apart(host, name, port):
    assert (host_name(host), port_of(host)) == (name, port)


@pytest.mark.parametrize(
    ("value", "sent"),
    [("plain", "plain"), ("é", "é"), (b"\xe9".decode("utf-8", "surrogateescape"), "é")],
)
def test_values_can_be_written_again(value, sent):
    assert sendable(value) == sent
    assert sendable(value).encode()


@pytest.mark.parametrize(
    ("connection", "upgrade", "wanted"),
    [
        ("Upgrade", "websocket", True),
        ("keep-alive, UPGRADE", "WebSocket", True),
        ("keep-alive", "websocket", False),
        ("Upgrade", "h2c", False),
    ],
)
def test_only_websockets_are_upgrades(connection, upgrade, wanted):
    request = make_mocked_request(
        "GET", "/", headers={"Connection": connection, "Upgrade": upgrade}
    )

    assert is_upgrade(request) is wanted


@pytest.mark.parametrize(
    ("target", "raw", "path"),
    [
        ("/a%20b/c?d=%2F", "/a%20b/c?d=%2F", "/a b/c"),
        ("/a?b?c", "/a?b?c", "/a"),
        ("/é", "/%C3%A9", "/é"),
        ("/a?x=/../y", "/a?x=/../y", "/a"),
        ("/a..b/...", "/a..b/...", "/a..b/..."),
    ],
)
def test_addresses_are_forwarded_as_written_and_looked_up_decoded(target, raw, path):
    request = make_mocked_request("GET", target, headers={"Host": "a"})

    address = read_address(request, Limits())

    assert (address.raw, address.path) == (raw, path)


@pytest.mark.parametrize(
    "target", ["/..", "/a/./b", "/a/%2e%2e", "/a/.%2E/b", "/a%2f.."]
)
def test_dot_segments_are_refused(target):
    request = make_mocked_request("GET", target, headers={"Host": "a"})

    with pytest.raises(RefusalError) as refused:
        read_address(request, Limits())

    assert refused.value.code == "dot-segments"
    assert refused.value.close


def test_redirects_are_left_alone_unless_they_name_the_target():
    target = parse_target("http://a:1")
    rules = LocationRules(auto_rewrite=True)

    for location, status, rewritten in [
        ("http://a:1/x?y", 302, "http://site/x?y"),
        ("http://b:1/x", 302, "http://b:1/x"),
        ("/x", 302, "/x"),
        ("http://a:1/x", 200, "http://a:1/x"),
        ("http://[bad", 302, "http://[bad"),
    ]:
        headers = CIMultiDict({"Location": location})
        rules.rewrite(headers, status=status, target=target, host="site")
        assert headers["Location"] == rewritten
