"""Which addresses of the platform a session may ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_agent.relay import is_allowed


@pytest.mark.parametrize(
    "path",
    [
        "/hub/api/user",
        "/hub/api/users/alice/activity?x=/../y",
        "/services/backendai/api/sessions?limit=2",
        "/services/backendai/api/",
        "/hub/api/users/j%C3%BCrgen/servers/a%20b",
    ],
)
def test_the_two_apis_are_allowed(path):
    assert is_allowed(path, "/")
    assert is_allowed(f"/jupyter{path}", "/jupyter/")
    assert not is_allowed(path, "/jupyter/")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "*",
        "",
        "/hub/api",
        "/hub/login",
        "/hub/apix/user",
        "//hub/api/user",
        "/user/bob/api/contents",
        "/services/backendai/",
        "/services/backendai/console",
        "/services/other/api/x",
        "/hub/api/../login",
        "/hub/api/%2e%2e/login",
        "/hub/api/%252e%252e/login",
        "/hub/api/..%2flogin",
        "/hub/api/x%2f..%2f..%2flogin",
        "/hub/api/..%5clogin",
        "/hub/api/..\\login",
        "/hub/api/./user",
        "/hub/api//user",
        "/hub/api/a%00b",
        "/hub/api/a%0d%0ab",
        "http://127.0.0.1/hub/api/user",
    ],
)
def test_everything_else_is_refused(path):
    assert not is_allowed(path, "/")


@given(st.lists(st.sampled_from(["..", "%2e%2e", "%2E.", ".", "x", "%2f", "%25"])))
def test_no_spelling_of_going_up_is_allowed(parts):
    path = "/hub/api/" + "/".join(parts)
    if is_allowed(path, "/"):
        assert all(part in {"x", "%25"} for part in parts)
