"""What JupyterHub's groups mean here: rules of the configuration, read in order.

A rule has a pattern, and what it gives to everybody in a group whose whole name the
pattern matches: a domain, a project, a role. ``{name}`` or ``{1}`` in a domain's or
project's name stands for that part of the match.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from backendai_hub.core.configuration import ConfigurationError
from backendai_hub.core.names import fold, suggest
from backendai_hub.core.tenancy import Role

_PLACE: Final = re.compile(r"\{(\w*)\}")
_KEYS: Final = ("group", "domain", "project", "role")


class GroupRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule: who is in a group named like this gets that."""

    group: re.Pattern[str]
    domain: str | None = None
    project: str | None = None
    role: Role | None = None


class ProjectGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A project of a domain; without one, of the domain the user is in."""

    project: str
    domain: str | None = None


class Grants(msgspec.Struct, frozen=True, kw_only=True):
    """What all rules together give to one user; None: they say nothing of it."""

    domain: str | None = None
    projects: tuple[ProjectGrant, ...] = ()
    role: Role | None = None


def apply_rules(rules: Sequence[GroupRule], groups: Collection[str]) -> Grants:
    """Tell what *rules* give to somebody who is in *groups*.

    Of several domains or roles the first rule's counts; projects add up.
    """
    domain: str | None = None
    role: Role | None = None
    projects: dict[tuple[str, str], ProjectGrant] = {}
    for rule, match in _matches(rules, groups):
        here = _fill(rule.domain, match)
        domain = domain or here
        role = role or rule.role
        project = _fill(rule.project, match)
        if project is not None:
            grant = ProjectGrant(project=project, domain=here)
            projects.setdefault((fold(here or ""), fold(project)), grant)
    return Grants(domain=domain, projects=tuple(projects.values()), role=role)


def _matches(
    rules: Sequence[GroupRule], groups: Collection[str]
) -> Iterator[tuple[GroupRule, re.Match[str]]]:
    for rule in rules:
        for group in sorted(groups):
            match = rule.group.fullmatch(group)
            if match is not None:
                yield rule, match


def _fill(template: str | None, match: re.Match[str]) -> str | None:
    """Put the parts of *match* into *template*; nothing is left of an empty name."""
    if template is None:
        return None
    return _PLACE.sub(lambda place: _part(match, place[1]), template).strip() or None


def _part(match: re.Match[str], name: str) -> str:
    return match[int(name) if name.isdecimal() else name] or ""


def read_rules(documents: Sequence[Mapping[str, Any]]) -> tuple[GroupRule, ...]:
    """Read the rules of the configuration; raises :class:`ConfigurationError`."""
    return tuple(
        _read_rule(f"c.HubService.group_rules[{number}]", document)
        for number, document in enumerate(documents)
    )


def _read_rule(where: str, document: Mapping[str, Any]) -> GroupRule:
    for key, value in document.items():
        if key not in _KEYS:
            raise ConfigurationError(
                f"{where}: {key!r} is not a key of a rule{suggest(str(key), _KEYS)};"
                f" use {', '.join(_KEYS)}"
            )
        if not isinstance(value, str) or not value.strip():
            raise ConfigurationError(f"{where}: {key} has to be a text, and not empty")
    if "group" not in document:
        raise ConfigurationError(f"{where}: says no group; give a pattern")
    if len(document) == 1:
        raise ConfigurationError(f"{where}: gives nothing; add a project or a role")
    try:
        pattern = re.compile(document["group"])
    except re.error as error:
        raise ConfigurationError(
            f"{where}: {document['group']!r} is not a regular expression: {error}"
        ) from None
    for key in ("domain", "project"):
        _check_places(f"{where}: {key}", document.get(key, ""), pattern)
    return GroupRule(
        group=pattern,
        domain=document.get("domain"),
        project=document.get("project"),
        role=_read_role(where, document.get("role")),
    )


def _check_places(where: str, template: str, pattern: re.Pattern[str]) -> None:
    for place in _PLACE.finditer(template):
        name = place[1]
        known = (
            int(name) <= pattern.groups
            if name.isdecimal()
            else name in pattern.groupindex
        )
        if not known:
            raise ConfigurationError(
                f"{where}: {place[0]} is not a part of {pattern.pattern!r}; name one"
                f" there with (?P<{name if name.isidentifier() else 'name'}>…)"
            )


def _read_role(where: str, given: str | None) -> Role | None:
    if given is None:
        return None
    try:
        return Role(given)
    except ValueError:
        raise ConfigurationError(
            f"{where}: {given!r} is not a role{suggest(given, map(str, Role))}; use"
            f" {', '.join(Role)}"
        ) from None
