"""Every refusal the platform can make, drawn as one tree.

An error carries its public ``code``, its HTTP ``status`` and a sentence that
says what was wrong, how much, and what to do. Handlers never translate errors:
the one place that answers requests turns them into RFC 9457 problems.
"""

from __future__ import annotations

from typing import Any, ClassVar


class HubError(Exception):
    """A refusal with a public code; ``fields`` are machine-readable details."""

    code: ClassVar[str] = "error"
    title: ClassVar[str] = "The request could not be carried out"
    status: ClassVar[int] = 500

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields


class InvalidRequestError(HubError):
    """The request can never be carried out as it stands."""

    code = "invalid-request"
    title = "The request is not valid"
    status = 422


class MalformedRequestError(InvalidRequestError):
    """The body or a parameter could not be read at all."""

    code = "malformed-request"
    title = "The request could not be read"
    status = 400


class NeverFitsError(InvalidRequestError):
    """More was asked for than any node, image or policy could ever give."""

    code = "never-fits"
    title = "No node could ever run this"


class UnauthenticatedError(HubError):
    """Nobody, or an expired or foreign token."""

    code = "unauthenticated"
    title = "Log in first"
    status = 401


class ForbiddenError(HubError):
    """Known, but not allowed."""

    code = "forbidden"
    title = "You may not do this"
    status = 403


class NotFoundError(HubError):
    """Absent, or somebody else's: the two cannot be told apart."""

    code = "not-found"
    title = "There is no such thing here"
    status = 404


class ConflictError(HubError):
    """The present state does not allow it."""

    code = "conflict"
    title = "The present state does not allow this"
    status = 409


class StaleRevisionError(ConflictError):
    """Somebody else changed the row since it was read."""

    code = "stale-revision"
    title = "It was changed meanwhile"


class LimitReachedError(ConflictError):
    """A limit of a policy is reached; less, or later, would be allowed."""

    code = "limit-reached"
    title = "A limit is reached"


class InUseError(ConflictError):
    """Something still refers to it; ``users`` lists what."""

    code = "in-use"
    title = "It is in use"


class StalledError(HubError):
    """Whoever was sending has sent nothing for too long."""

    code = "stalled"
    title = "Nothing came any more"
    status = 408


class PreconditionFailedError(HubError):
    """``If-Match`` names an older revision."""

    code = "precondition-failed"
    title = "It was changed since you read it"
    status = 412


class TooLargeError(HubError):
    """The body is larger than this route takes."""

    code = "too-large"
    title = "The request is too large"
    status = 413


class TooManyRequestsError(HubError):
    """Slow down; ``retry_after`` is in seconds."""

    code = "too-many-requests"
    title = "Too many requests"
    status = 429


class LockedError(ConflictError):
    """Somebody else is writing to it at this moment."""

    code = "locked"
    title = "It is being written to"
    status = 423


class ChecksumMismatchError(HubError):
    """What arrived is not what was sent; nothing of it was kept."""

    code = "checksum-mismatch"
    title = "What arrived has another checksum"
    status = 460


class InsufficientStorageError(HubError):
    """The storage, or the quota on it, is full; nothing was left half done."""

    code = "insufficient-storage"
    title = "There is no room left"
    status = 507


class UnavailableError(HubError):
    """Something this needs does not answer now; trying again later helps."""

    code = "unavailable"
    title = "Not available at the moment"
    status = 503


class RegistryError(HubError):
    """An image registry failed, or answered what cannot be so."""

    code = "registry-failed"
    title = "The image registry could not do this"
    status = 502


class RegistryRefusedError(RegistryError):
    """The registry does not let us in, or does not allow this."""

    code = "registry-refused"
    title = "The image registry refused this"


class RegistryLacksError(RegistryError):
    """The registry has no such repository, tag or manifest."""

    code = "registry-lacks"
    title = "The image registry has no such image"


class RegistryUnlistedError(RegistryError):
    """The registry does not tell which repositories it has."""

    code = "registry-unlisted"
    title = "The image registry keeps no list of its repositories"


class RegistryUnsupportedError(RegistryError):
    """The registry cannot do this, or is set up not to."""

    code = "registry-unsupported"
    title = "The image registry does not support this"
