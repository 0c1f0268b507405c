"""Environments: what a session runs in, and how much it needs at least."""

from __future__ import annotations

import msgspec


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """One environment that users may choose.

    ``name`` is what people and requests write; ``references`` says what each runtime
    calls it (a Docker reference or digest, the name of a prepared environment), and
    a node whose runtime is not among them cannot run it; ``minimum`` are the least
    slots it works with, as users write amounts, ``preferred`` what it gets when the
    user does not say.
    """

    name: str
    references: dict[str, str]
    title: str = ""
    architecture: str = "x86_64"
    minimum: dict[str, str] = {}
    preferred: dict[str, str] = {}
    shmem: str = "64m"
    accelerators: list[str] = []
