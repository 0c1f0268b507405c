"""Problem documents (RFC 9457) turned back into the errors they were made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from backendai_hub.core import errors
from backendai_hub.core.errors import HubError

_BY_STATUS: Final[Mapping[int, type[HubError]]] = {
    400: errors.MalformedRequestError,
    401: errors.UnauthenticatedError,
    403: errors.ForbiddenError,
    404: errors.NotFoundError,
    409: errors.ConflictError,
    412: errors.PreconditionFailedError,
    413: errors.TooLargeError,
    422: errors.InvalidRequestError,
    429: errors.TooManyRequestsError,
    502: errors.UnavailableError,
    503: errors.UnavailableError,
    504: errors.UnavailableError,
}
_STANDARD: Final = frozenset({"type", "title", "status", "detail", "instance", "code"})
_LONGEST: Final = 2000


def error_from_problem(
    status: int, body: bytes, *, retry_after: str | None = None
) -> HubError:
    """Return the error that an answer of *status* stands for.

    A body that is not a problem document (a proxy's page, say) still gives an error
    of the right kind: the status decides where the code is unknown. The error's
    ``status`` is always that of the answer.
    """
    problem = _read(body)
    code = problem.get("code")
    kind = _known_codes().get(code) if isinstance(code, str) else None
    if kind is None:
        kind = _BY_STATUS.get(status) or (
            errors.InvalidRequestError if 400 <= status < 500 else HubError
        )
    detail = problem.get("detail") or problem.get("title") or problem.get("message")
    message = str(detail) if detail else f"the service answered {_phrase(status)}"
    fields = {name: v for name, v in problem.items() if name not in _STANDARD}
    details = fields.pop("fields", None)
    if isinstance(details, dict):
        fields.update(details)
    if retry_after is not None and retry_after.isdigit():
        fields.setdefault("retry_after", int(retry_after))
    # Errors may take other arguments than a message; only what a problem carries
    # is known here, so their own constructors are not asked.
    error = kind.__new__(kind)
    HubError.__init__(error, message[:_LONGEST], **fields)
    if error.status != status:
        vars(error)["status"] = status
    return error


def _read(body: bytes) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return {}
    if not isinstance(document, dict):
        return {}
    return {str(name): value for name, value in document.items()}


def _known_codes() -> dict[str, type[HubError]]:
    known: dict[str, type[HubError]] = {}
    for kind in _kinds(HubError):
        if "code" in vars(kind):
            known.setdefault(kind.code, kind)
    return known


def _kinds(kind: type[HubError]) -> Iterator[type[HubError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _kinds(narrower)


def _phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
