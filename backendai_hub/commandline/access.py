"""Which platform a command asks, and as whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from backendai_hub.commandline.profiles import Profile, ProfileStore
from backendai_hub.core.errors import UnauthenticatedError

if TYPE_CHECKING:
    from backendai_hub.client.hub import HubClient

SERVICE_PATH: Final = "/services/backendai"
FindLocal = Callable[[Path | None], "Access | None"]
"""Finds the way to a platform on this machine that the caller may administer."""


class NotLoggedInError(UnauthenticatedError):
    """There is no login, and no platform on this machine to fall back on."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """An address and what to show there; ``source`` says where it comes from."""

    url: str
    source: str
    token: str | None = None
    access_key: str | None = None
    secret_key: str | None = None

    def open(self) -> HubClient:
        """Make the client."""
        from backendai_hub.client.hub import HubClient  # noqa: PLC0415 - 0.2 s

        if self.access_key is not None:
            return HubClient(
                self.url, access_key=self.access_key, secret_key=self.secret_key
            )
        return HubClient(self.url, token=self.token)

    def __repr__(self) -> str:
        """Describe it without its secrets."""
        return f"Access({self.url!r} by {self.source})"


class Setting:
    """What commands find around them: the store of logins, and the local platform."""

    def __init__(
        self,
        store: ProfileStore,
        *,
        find_local: FindLocal = lambda _: None,
        environ: Mapping[str, str],
    ) -> None:
        self.store = store
        self._find_local = find_local
        self.environ = environ

    def find(self, profile: str | None, data_dir: Path | None) -> Access:
        """Choose whom to ask; raises :class:`NotLoggedInError` if there is no way.

        What is named comes first (a profile, a data directory), then the environment,
        the profile in use, and the platform on this machine.
        """
        if profile is not None:
            return self._named(profile)
        if data_dir is not None:
            return self._local(data_dir)
        found = self.find_login()
        return found if found is not None else self._local(None)

    def find_login(self) -> Access | None:
        """Return the login of the environment or of the profile in use."""
        env = self.environ
        url = env.get("BACKENDAI_ENDPOINT") or env.get("BACKENDAI_API_URL")
        key, secret = env.get("BACKENDAI_ACCESS_KEY"), env.get("BACKENDAI_SECRET_KEY")
        if url and key and secret:
            return Access(
                url=url, access_key=key, secret_key=secret, source="the environment"
            )
        stored = self.store.find(env.get("BACKENDAI_PROFILE"))
        if stored is not None:
            return _of(stored, env.get("BACKENDAI_PROFILE") or self.store.current)
        session_url, token = (
            env.get("BACKENDAI_API_URL"),
            env.get("JUPYTERHUB_API_TOKEN"),
        )
        if session_url and token:
            return Access(url=session_url, token=token, source="this session")
        return None

    def _named(self, profile: str) -> Access:
        stored = self.store.find(profile)
        if stored is None:
            known = ", ".join(self.store.read()) or "none"
            raise NotLoggedInError(
                f"there is no profile {profile!r} (there are: {known}); 'backendai"
                f" login --profile {profile}' makes it"
            )
        return _of(stored, profile)

    def _local(self, data_dir: Path | None) -> Access:
        found = self._find_local(data_dir)
        if found is None:
            raise NotLoggedInError(
                "not logged in; 'backendai login --url ADDRESS' does it"
                if data_dir is None
                else f"there is no platform in {data_dir} that you may administer"
            )
        return found


def _of(profile: Profile, name: str) -> Access:
    return Access(
        url=profile.url,
        token=profile.token,
        access_key=profile.access_key,
        secret_key=profile.secret_key,
        source=f"the profile {name}",
    )
