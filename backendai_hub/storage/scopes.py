"""Scopes and their limits, and the host as a whole, as a worker does them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final
from uuid import UUID

from backendai_hub.core.errors import InUseError, NotFoundError
from backendai_hub.core.ids import is_id
from backendai_hub.core.vfolders import split_scope
from backendai_hub.safefs.errors import in_words
from backendai_hub.safefs.opening import open_folder
from backendai_hub.safefs.tree import Tree
from backendai_hub.storage.channel import Channel
from backendai_hub.storage.drivers.base import Limits
from backendai_hub.storage.durable import list_names
from backendai_hub.storage.ops import (
    Health,
    HostReport,
    ListFolders,
    ListScopes,
    MakeScope,
    Names,
    RemoveScope,
    ScopeUsage,
    ScopeUse,
    SetLimit,
)
from backendai_hub.storage.work import Host

SHELF: Final = re.compile(r"[0-9a-f]{2}")


def look(host: Host, op: Health, channel: Channel) -> HostReport:
    """Look whether the filesystem answers."""
    with host.ground.root() as root:
        found = os.fstatvfs(root)
    return HostReport(
        capabilities=sorted(host.capabilities or ()),
        total_bytes=found.f_blocks * found.f_frsize,
        free_bytes=found.f_bavail * found.f_frsize,
        total_files=found.f_files,
        free_files=found.f_favail,
    )


def make_scope(host: Host, op: MakeScope, channel: Channel) -> None:
    """Make a scope and limit it."""
    split_scope(op.scope)
    with host.ground.root() as root, in_words([op.scope]), host.scopes:
        host.driver.make_scope(root, op.scope)
        os.fsync(root)
    limits = Limits(op.limit_bytes, op.limit_files)
    _limit(host, op.scope, limits)


def remove_scope(host: Host, op: RemoveScope, channel: Channel) -> None:
    """Remove a scope, if there is nothing in it any more."""
    try:
        with host.ground.scope(op.scope) as scope:
            if next(find_folders(scope), None) is not None:
                raise InUseError(f"scope {op.scope} has folders; remove them first")
            # What is left belonged to folders that are gone.
            for name in list_names(scope):
                Tree(scope).remove((name,))
    except NotFoundError:
        return
    with host.ground.root() as root, in_words([op.scope]), host.scopes:
        host.driver.remove_scope(root, op.scope)


def set_limit(host: Host, op: SetLimit, channel: Channel) -> None:
    """Change a scope's limits."""
    _limit(host, op.scope, Limits(op.bytes, op.files))


def tell_usage(host: Host, op: ScopeUsage, channel: Channel) -> ScopeUse:
    """Ask the filesystem what a scope uses."""
    with host.ground.scope(op.scope) as scope:
        return host.driver.usage(scope, op.scope)


def list_scopes(host: Host, op: ListScopes, channel: Channel) -> Names:
    """List the scopes there are."""
    with host.ground.root() as root:
        found = sorted(n for n in list_names(root) if _is_scope(n) and n > op.after)
    return page_of(found, op.limit)


def list_folders(host: Host, op: ListFolders, channel: Channel) -> Names:
    """List the folders in a scope by their ids."""
    with host.ground.scope(op.scope) as scope:
        found = sorted(i for i in find_folders(scope) if i > op.after)
    return page_of(found, op.limit)


def find_folders(scope: int) -> Iterator[str]:
    """Yield the ids of the folders in a scope, from where they lie."""
    for first in _list(scope):
        for second in _list(scope, first):
            for rest in _list(scope, first, second):
                with suppress(ValueError):
                    yield str(UUID(hex=first + second + rest))


def _list(folder: int, *names: str) -> list[str]:
    if names and not all(SHELF.fullmatch(name) for name in names):
        return []
    try:
        opened = open_folder(folder, names)
    except (FileNotFoundError, NotADirectoryError):
        return []
    try:
        return list_names(opened)
    finally:
        os.close(opened)


def _limit(host: Host, scope: str, limits: Limits) -> None:
    with host.ground.scope(scope) as opened, in_words([scope]):
        host.driver.set_limit(opened, scope, limits)


def _is_scope(name: str) -> bool:
    kind, _, owner = name.partition("-")
    return kind in {"user", "project"} and is_id(owner)


def page_of(names: list[str], limit: int) -> Names:
    """Return the first names of a list, and where the next page begins."""
    shown = names[:limit]
    return Names(names=shown, after=shown[-1] if len(names) > limit else "")
