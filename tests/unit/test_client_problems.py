"""Problem documents become the errors they were made from."""

import json

import msgspec
import pytest

from backendai_hub.api.problems import describe
from backendai_hub.client.problems import error_from_problem
from backendai_hub.core.errors import (
    ConflictError,
    HubError,
    InUseError,
    InvalidRequestError,
    NeverFitsError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)


def test_the_code_decides_which_error_it_is():
    body = json.dumps({"code": "never-fits", "detail": "no node has 9 GPUs"}).encode()

    error = error_from_problem(422, body)

    assert type(error) is NeverFitsError
    assert error.message == "no node has 9 GPUs"
    assert error.status == 422


def test_extra_members_become_fields():
    body = json.dumps(
        {"code": "conflict", "detail": "busy", "status": 409, "session": "abc"}
    ).encode()

    assert error_from_problem(409, body).fields == {"session": "abc"}


def test_the_details_of_our_own_problems_become_fields():
    body = msgspec.json.encode(
        describe(InUseError("busy", users={"projects": ["vision"]}), "id")
    )

    error = error_from_problem(409, body)

    assert type(error) is InUseError
    assert error.fields == {"users": {"projects": ["vision"]}, "request_id": "id"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, NotFoundError),
        (409, ConflictError),
        (418, InvalidRequestError),
        (429, TooManyRequestsError),
        (502, UnavailableError),
        (500, HubError),
    ],
)
def test_without_a_known_code_the_status_decides(status, kind):
    error = error_from_problem(status, b"<html>Bad Gateway</html>")

    assert type(error) is kind
    assert error.status == status
    assert str(status) in error.message


@pytest.mark.parametrize("body", [b"", b"[1]", b"\xff\xfe", b'{"code": 7}', b'"x"'])
def test_no_body_breaks_it(body):
    assert error_from_problem(403, body).status == 403


def test_retry_after_is_kept():
    assert error_from_problem(503, b"", retry_after="7").fields == {"retry_after": 7}
