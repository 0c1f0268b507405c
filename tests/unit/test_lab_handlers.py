"""What the proxy to the platform lets through."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tornado.web import HTTPError

from backendai_lab.handlers import forwarded_query, is_api_path, split_api_url


@pytest.mark.parametrize(
    "path", ["", "me", "sessions/1/terminate", "spawned", "users/j%C3%BCrg", "a/b/"]
)
def test_paths_of_the_api_pass(path):
    assert is_api_path(path)


@pytest.mark.parametrize(
    "path",
    [
        *("..", "../hub/api/users", "a/../../b", ".", "a//b", "/etc", "%2e%2e/x"),
        *(
            "a/%2e%2E/b",
            "a%2f..%2fb",
            "a%5cb",
            "a\\b",
            "a%00",
            "a%0d%0ax",
            "%252e%252e",
        ),
    ],
)
def test_paths_that_might_lead_elsewhere_do_not(path):
    assert not is_api_path(path)


@given(st.text(max_size=8).map(lambda text: quote(text, safe="/.%\\")))
def test_whatever_passes_stays_below_the_root(path):
    if is_api_path(path):
        assert not {"..", "."} & set(path.split("/"))
        assert "//" not in f"/{path}"
        assert "%2f" not in path.lower()


def test_the_tokens_of_this_server_stay_here():
    assert forwarded_query("token=secret&limit=20&_xsrf=x&status=") == (
        "limit=20&status="
    )


@pytest.mark.parametrize(
    ("url", "found"),
    [
        (
            "http+unix://%2Frun%2Fbackendai%2Fhub.sock/services/backendai/api/",
            ("/run/backendai/hub.sock", "http://localhost/services/backendai/api/"),
        ),
        ("http://10.0.0.1:8/api/", (None, "http://10.0.0.1:8/api/")),
    ],
)
def test_the_platform_is_reached_by_socket_or_by_address(url, found):
    assert split_api_url(url) == found


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "ftp://x/", "http:///x"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(HTTPError, match="BACKENDAI_API_URL"):
        split_api_url(url)
