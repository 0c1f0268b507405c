"""The launch form's script and style, from JupyterHub's own origin.

With a domain per user the service has one of its own as well, from which the spawn page
could load nothing. The files came with this very package.
"""

from __future__ import annotations

import mimetypes
from importlib.resources import files
from pathlib import Path
from typing import Final

from jupyterhub.utils import url_path_join
from tornado import web

PATTERN: Final = r"/backendai/static/((?:spawn\.|assets/)[A-Za-z0-9_.-]+)"
FOLDER: Final = str(files("backendai_hub") / "static" / "console")
_ENCODINGS: Final = (("br", ".br"), ("gzip", ".gz"))


class PageFileHandler(web.StaticFileHandler):
    """Built files, in the smallest stored form that the browser takes."""

    def set_extra_headers(self, path: str) -> None:
        """Let names that carry a hash be kept for ever, others be asked for again."""
        kept = "public, max-age=31536000, immutable"
        self.set_header("Cache-Control", kept if "assets/" in path else "no-cache")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Vary", "Accept-Encoding")

    async def get(self, path: str, include_body: bool = True) -> None:  # noqa: FBT001, FBT002 - tornado's signature
        """Send one file."""
        script = path.endswith(".js")
        self._kind = "text/javascript" if script else mimetypes.guess_type(path)[0]
        encoding, suffix = self._choose(path)
        if encoding:
            self.set_header("Content-Encoding", encoding)
        await super().get(f"{path}{suffix}", include_body)

    def _choose(self, path: str) -> tuple[str, str]:
        accepted = self.request.headers.get("Accept-Encoding", "")
        for name, suffix in _ENCODINGS:
            if name in accepted and Path(f"{FOLDER}/{path}{suffix}").is_file():
                return name, suffix
        return "", ""

    def get_content_type(self) -> str:
        """Name the type of the file itself, not of its compressed form."""
        return self._kind or "application/octet-stream"


HANDLER: Final = (PATTERN, PageFileHandler, {"path": FOLDER})
"""What JupyterHub's ``extra_handlers`` takes."""


def address_of(hub_base: str) -> str:
    """Return where the files are."""
    return str(url_path_join(hub_base, "backendai/static/"))
