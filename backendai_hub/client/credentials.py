"""What a client shows to say who it is: a token, or a keypair."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Protocol

from backendai_hub.core.errors import UnavailableError


class Credential(Protocol):
    """Something that goes into the header ``Authorization``."""

    def header(self) -> str | None:
        """Return the header's value; None shows nothing."""

    def renew(self) -> bool:
        """Look for a newer one; tell whether there is."""


class Token:
    """A bearer token, given as text or read from a file that may be renewed."""

    def __init__(self, text: str | None = None, *, file: Path | None = None) -> None:
        self._text = text
        self._file = file

    def header(self) -> str | None:
        """Return the token; a file is read the first time it is needed."""
        if self._text is None and self._file is not None:
            self._text = self._read()
        return f"token {self._text}" if self._text else None

    def renew(self) -> bool:
        """Read the file again; tell whether it holds another token than before."""
        if self._file is None:
            return False
        before, self._text = self._text, self._read()
        return self._text != before

    def _read(self) -> str:
        assert self._file is not None
        try:
            return self._file.read_text("utf-8").strip()
        except OSError as error:
            raise UnavailableError(
                f"the token file {self._file} cannot be read: {error.strerror}"
            ) from error


class KeypairLogin:
    """An access key and its secret, by HTTP Basic."""

    def __init__(self, access_key: str, secret_key: str) -> None:
        if ":" in access_key:
            raise ValueError("an access key holds no colon")
        self.access_key = access_key
        self._secret_key = secret_key

    def header(self) -> str | None:
        """Return both, encoded."""
        both = f"{self.access_key}:{self._secret_key}".encode()
        return f"Basic {base64.b64encode(both).decode('ascii')}"

    def renew(self) -> bool:
        """Tell that there is no other."""
        return False

    def __repr__(self) -> str:
        """Describe it without its secret."""
        return f"KeypairLogin({self.access_key!r})"
