"""Why a server did not start, said so that JupyterHub's pages show it."""

from __future__ import annotations

from http import HTTPStatus

from jupyterhub.spawner import SpawnException

from backendai_hub.core.errors import HubError, UnauthenticatedError
from backendai_hub.core.sessions import Session, SessionStatus


class SpawnRefusedError(SpawnException):
    """A spawn that cannot go on; its message is for the user.

    JupyterHub logs no traceback for it and does not count it towards
    ``consecutive_failure_limit``: nothing is wrong with the Hub.
    """

    def __init__(self, message: str, *, reason: str, status_code: int = 400) -> None:
        super().__init__(message, reason=reason, status_code=status_code)
        # JupyterHub's form and progress pages look for this name.
        self.jupyterhub_message = message


def refusal_from(error: HubError) -> SpawnRefusedError:
    """Return what a user is told when the service refuses a request for good."""
    if isinstance(error, UnauthenticatedError):
        return SpawnRefusedError(
            "JupyterHub's own token is not accepted by the Backend.AI service; please"
            " tell the administrator of this hub",
            reason=error.code,
            status_code=HTTPStatus.SERVICE_UNAVAILABLE,
        )
    return SpawnRefusedError(error.message, reason=error.code, status_code=error.status)


def ended_early(session: Session) -> SpawnRefusedError:
    """Return what a user is told when a session ended before it ran."""
    if session.status is SessionStatus.CANCELLED:
        return SpawnRefusedError(
            f"The session was cancelled{_because(session)}",
            reason="session-cancelled",
            status_code=HTTPStatus.CONFLICT,
        )
    return SpawnRefusedError(
        f"The session ended before it was ready{_because(session)}",
        reason="session-ended",
        status_code=HTTPStatus.INTERNAL_SERVER_ERROR,
    )


def _because(session: Session) -> str:
    return f": {session.reason}" if session.reason else ""
