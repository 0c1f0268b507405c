"""GlusterFS over FUSE: directory quotas, through the program ``gluster``.

The bricks keep the limits. With Gluster's own settings a fast writer may go well beyond
before they notice; :meth:`GlusterDriver.prepare` sets their timeouts to zero.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final
from xml.etree import ElementTree

import msgspec

from backendai_hub.core.errors import UnavailableError
from backendai_hub.storage.drivers.base import FAST_USAGE, INODE_QUOTA, QUOTA, Limits
from backendai_hub.storage.drivers.dir import DirDriver
from backendai_hub.storage.drivers.mounts import find_mount
from backendai_hub.storage.ops import ScopeUse

PATIENCE: Final = 60.0
Run = Callable[[Sequence[str]], str]


class GlusterOptions(msgspec.Struct, forbid_unknown_fields=True):
    """What has to be said of a GlusterFS host."""

    volume: str
    """The name of the volume that is mounted."""
    folder: str = "/"
    """The path inside the volume of what is mounted, for mounts of a part of it."""
    server: str = ""
    """A server to ask, where this machine is none."""


class GlusterDriver(DirDriver):
    """Scopes are folders that have a limit in Gluster."""

    Options: ClassVar[type[msgspec.Struct]] = GlusterOptions
    # To list quotas the program mounts the volume for itself.
    needs_admin: ClassVar[bool] = True

    def __init__(
        self, host: str, path: str, options: Any, run: Run | None = None
    ) -> None:
        super().__init__(host, path, options)
        self._run = run or _run

    def prepare(self) -> frozenset[str]:
        """Turn quotas on, and have them looked at with every write."""
        kind, _ = find_mount(self.path)
        if kind != "fuse.glusterfs":
            raise UnavailableError(
                f"{self.path} lies on {kind}, not on GlusterFS; mount the volume"
                f" {self.options.volume} there"
            )
        with suppress(GlusterRefusedError):  # they are on already
            self._ask("enable")
        for timeout in ("hard-timeout", "soft-timeout"):
            self._ask(timeout, "0")
        return frozenset({QUOTA, INODE_QUOTA, FAST_USAGE})

    def remove_scope(self, root: int, name: str) -> None:
        """Take the limits away, then the folder."""
        for limit in ("remove", "remove-objects"):
            with suppress(GlusterRefusedError):  # it had none
                self._ask(limit, self._path_of(name))
        super().remove_scope(root, name)

    def set_limit(self, scope: int, name: str, limits: Limits) -> None:
        """Limit bytes and files of a folder, or no more."""
        os.fsync(scope)  # the bricks have to have it
        for amount, limit, lift in (
            (limits.bytes, "limit-usage", "remove"),
            (limits.files, "limit-objects", "remove-objects"),
        ):
            if amount is not None:
                self._ask(limit, self._path_of(name), str(amount))
            else:
                with suppress(GlusterRefusedError):
                    self._ask(lift, self._path_of(name))

    def usage(self, scope: int, name: str) -> ScopeUse:
        """Ask the bricks; a folder without a limit is not counted by them."""
        used = self._read("list", name)
        counted = self._read("list-objects", name)
        return ScopeUse(
            bytes=_number(used, "used_space"),
            files=_number(counted, "file_count") + _number(counted, "dir_count"),
            limit_bytes=_number(used, "hard_limit") or None,
            limit_files=_number(counted, "hard_limit") or None,
            known=used is not None or counted is not None,
        )

    def _path_of(self, name: str) -> str:
        return f"{self.options.folder.rstrip('/')}/{name}"

    def _read(self, what: str, name: str) -> ElementTree.Element | None:
        with suppress(GlusterRefusedError):
            answer = self._ask(what, self._path_of(name), "--xml")
            return read_limit(answer, self._path_of(name))
        return None

    def _ask(self, *words: str) -> str:
        program = shutil.which("gluster", path=f"{os.defpath}:/usr/sbin:/sbin")
        if program is None:
            raise UnavailableError(
                "the program gluster is not installed here; without it quotas cannot"
                " be set: install it, or use the driver dir"
            )
        server = [f"--remote-host={self.options.server}"] if self.options.server else []
        command = [program, "--mode=script", *server, "volume", "quota"]
        return self._run([*command, self.options.volume, *words])


class GlusterRefusedError(UnavailableError):
    """Gluster did not do it, and said why."""


def read_limit(answer: str, path: str) -> ElementTree.Element | None:
    """Find what a list in XML says of *path*."""
    try:
        tree = ElementTree.fromstring(answer)  # noqa: S314 - our own servers say it
    except ElementTree.ParseError:
        return None  # that there are no limits it says in words
    for limit in tree.iter("limit"):
        if limit.findtext("path") == path:
            return limit
    return None


def _number(limit: ElementTree.Element | None, name: str) -> int:
    text = limit.findtext(name) if limit is not None else None
    return int(text) if text and text.isdigit() else 0


def _run(argv: Sequence[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the words are ours and the site's
            argv, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(
            f"gluster has not answered for {PATIENCE:g} s; is glusterd well?"
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().replace("\n", " ")
        raise GlusterRefusedError(f"gluster: {said}")
    return done.stdout
