"""What an exception is to whoever asked: a refusal, or something that went wrong."""

from __future__ import annotations

from sqlalchemy.exc import DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from tornado import web

from backendai_hub.core.errors import (
    HubError,
    MalformedRequestError,
    UnavailableError,
)


class PlainError(HubError):
    """A refusal that tornado or a library makes, with a status of its own."""

    code = "http"

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status  # type: ignore[misc]


def as_hub_error(error: BaseException | None, status: int) -> HubError:
    """Return the refusal that *error* is answered with; of bugs nothing is told."""
    if isinstance(error, HubError):
        return error
    if isinstance(error, DataError):
        return MalformedRequestError("a value cannot be stored as it is written")
    if isinstance(error, (DBAPIError, PoolTimeoutError, ConnectionError)):
        return UnavailableError(
            "the database does not answer at the moment; try again in a few seconds",
            retry_after=3,
        )
    if isinstance(error, web.HTTPError) and error.status_code < 500:
        return PlainError(error.log_message or error.reason or "refused", status)
    return HubError("something unexpected went wrong; tell an administrator the id")
