"""Where logins are kept: one private file with several profiles."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from backendai_hub.core.errors import HubError

DEFAULT: Final = "default"


class ProfilesError(HubError):
    """The file of logins cannot be used."""

    code = "profiles"
    title = "The file of logins cannot be used"


class Profile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One login: an address, and a keypair or a token.

    ``made_here`` tells that the keypair was made by logging in, so that logging out
    takes it away again.
    """

    url: str
    access_key: str | None = None
    secret_key: str | None = None
    token: str | None = None
    user: str = ""
    made_here: bool = False

    def __repr__(self) -> str:
        """Describe it without its secrets."""
        return f"Profile({self.user!r} at {self.url!r})"


class _File(msgspec.Struct, kw_only=True):
    current: str = DEFAULT
    profiles: dict[str, Profile] = {}


class ProfileStore:
    """The logins of the person who runs this."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Mapping[str, Profile]:
        """Return all profiles by name."""
        return self._load().profiles

    def find(self, name: str | None) -> Profile | None:
        """Return a profile, or the one in use; None if there is none."""
        stored = self._load()
        return stored.profiles.get(name or stored.current)

    @property
    def current(self) -> str:
        """The profile in use."""
        return self._load().current

    def save(self, name: str, profile: Profile) -> None:
        """Keep *profile* under *name*, and use it from now on."""
        stored = self._load()
        stored.profiles = {**stored.profiles, name: profile}
        stored.current = name
        self._write(stored)

    def use(self, name: str) -> None:
        """Use another profile from now on."""
        stored = self._load()
        stored.current = name
        self._write(stored)

    def remove(self, name: str) -> None:
        """Forget a profile; another one is used if there is only one left."""
        stored = self._load()
        stored.profiles = {k: p for k, p in stored.profiles.items() if k != name}
        if stored.current == name:
            left = list(stored.profiles)
            stored.current = left[0] if len(left) == 1 else DEFAULT
        self._write(stored)

    def _load(self) -> _File:
        try:
            with self.path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                raw = file.read()
        except FileNotFoundError:
            return _File()
        except OSError as error:
            raise ProfilesError(f"{self.path}: {error.strerror}") from error
        if mode & 0o077:
            raise ProfilesError(
                f"{self.path} can be read by others; 'chmod 600 {self.path}' closes it"
            )
        try:
            return msgspec.json.decode(raw, type=_File)
        except msgspec.DecodeError as error:
            raise ProfilesError(
                f"{self.path} cannot be read ({error}); remove it and log in again"
            ) from error

    def _write(self, stored: _File) -> None:
        text = msgspec.json.format(msgspec.json.encode(stored), indent=2)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, name = tempfile.mkstemp(dir=self.path.parent)  # mode 0600
            with os.fdopen(descriptor, "wb") as file:
                file.write(text + b"\n")
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        except OSError as error:
            raise ProfilesError(f"{self.path}: {error.strerror}") from error


def default_store(environ: Mapping[str, Any] = os.environ) -> ProfileStore:
    """Return the store at its usual place."""
    base = environ.get("XDG_CONFIG_HOME")
    folder = Path(base) if base else Path("~/.config").expanduser()
    return ProfileStore(folder / "backendai" / "credentials.json")
