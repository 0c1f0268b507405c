"""Environments: what a session runs in, and how much it needs at least."""

from __future__ import annotations

import msgspec


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """One environment that users may choose.

    ``name`` is what people and requests write; ``reference`` is what the runtime
    understands (a Docker reference or digest, or a prepared environment's path);
    ``minimum`` are the least slots it works with, as users write amounts.
    """

    name: str
    reference: str
    title: str = ""
    runtime: str = "docker"
    architecture: str = "x86_64"
    minimum: dict[str, str] = {}
    shmem: str = "64m"
    accelerators: list[str] = []
