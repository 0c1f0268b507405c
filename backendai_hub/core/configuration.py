"""Strict configuration: a key nobody reads is an error, not a silent wish."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from backendai_hub.core.errors import InvalidRequestError


class ConfigurationError(InvalidRequestError):
    """The configuration names something that does not exist."""

    code = "configuration"
    title = "The configuration is not valid"


def find_unknown_keys(
    config: Mapping[str, Any], classes: Iterable[type], *, foreign: Iterable[str] = ()
) -> Iterator[str]:
    """Yield a sentence for each section or key of *config* that no class has.

    *classes* are traitlets configurables; a section may name any of their bases
    too. Sections in *foreign* belong to another program and are not looked into.
    """
    known: dict[str, set[str]] = {}
    for cls in classes:
        for base in cls.__mro__:
            names = getattr(base, "class_trait_names", None)
            if names is not None:
                known[base.__name__] = set(names(config=True))
    skip = set(foreign)
    for section, keys in config.items():
        if section in skip:
            continue
        if section not in known:
            yield f"c.{section}: there is no such section{_near(section, known)}"
            continue
        for key in keys:
            if key not in known[section]:
                yield (
                    f"c.{section}.{key}: there is no such setting"
                    f"{_near(key, known[section])}"
                )


def check_keys(
    config: Mapping[str, Any], classes: Iterable[type], *, foreign: Iterable[str] = ()
) -> None:
    """Raise :class:`ConfigurationError` listing every unknown key of *config*."""
    problems = list(find_unknown_keys(config, classes, foreign=foreign))
    if problems:
        raise ConfigurationError("; ".join(problems))


def _near(word: str, among: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(among), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
