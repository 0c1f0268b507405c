"""Longest-prefix lookup of URL paths, one path segment at a time."""

from __future__ import annotations

from typing import Generic, TypeVar
from urllib.parse import unquote

Value = TypeVar("Value")


def clean_prefix(path: str) -> str:
    """Return *path* the way routes are named: a leading slash and no trailing one."""
    if not path.startswith("/"):
        path = f"/{path}"
    if len(path) > 1 and path.endswith("/"):
        path = path[:-1]
    return path


def split_path(path: str) -> list[str]:
    """Split *path* into segments; slashes at either end do not count."""
    path = path.strip("/")
    return path.split("/") if path else []


def decode_path(raw_path: str) -> str:
    """Undo percent-encoding, for looking up only: what is forwarded stays raw.

    An encoded slash becomes a separator, as in configurable-http-proxy, because
    JupyterHub names its routes in decoded form.
    """
    return unquote(raw_path) if "%" in raw_path else raw_path


class _Node(Generic[Value]):
    __slots__ = ("branches", "value")

    def __init__(self) -> None:
        self.branches: dict[str, _Node[Value]] = {}
        self.value: Value | None = None


class PrefixTrie(Generic[Value]):
    """Values by path prefix. A prefix matches whole segments only."""

    def __init__(self) -> None:
        self._root: _Node[Value] = _Node()

    def add(self, prefix: str, value: Value) -> None:
        """Put *value* at *prefix*, in place of what was there."""
        node = self._root
        for part in split_path(prefix):
            node = node.branches.setdefault(part, _Node())
        node.value = value

    def remove(self, prefix: str) -> None:
        """Take away what is at *prefix*, if anything, and branches left bare."""
        trail: list[tuple[_Node[Value], str]] = []
        node = self._root
        for part in split_path(prefix):
            child = node.branches.get(part)
            if child is None:
                return
            trail.append((node, part))
            node = child
        node.value = None
        for parent, part in reversed(trail):
            child = parent.branches[part]
            if child.value is not None or child.branches:
                return
            del parent.branches[part]

    def find(self, path: str) -> Value | None:
        """Return the value at the longest prefix of *path* that has one."""
        node = self._root
        best = node.value
        for part in split_path(path):
            child = node.branches.get(part)
            if child is None:
                break
            node = child
            if node.value is not None:
                best = node.value
        return best
