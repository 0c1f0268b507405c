"""What has to be true of the hub's HTTP side by construction."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import Counter
from pathlib import Path

import pytest
from tornado import web

from backendai_hub import handlers
from backendai_hub.core.access import MATRIX, Action, Caller
from backendai_hub.core.nouns import NOUNS
from backendai_hub.handlers.base import APIHandler
from backendai_hub.handlers.console import (
    AssetHandler,
    ConsoleHandler,
    OAuthCallbackHandler,
)
from backendai_hub.handlers.metrics import MetricsHandler
from backendai_hub.handlers.nouns import handlers_of
from backendai_hub.handlers.routes import AGENTS, API, PAGES, patterns
from backendai_hub.handlers.spec import build_spec, list_operations, main

ROOT = Path(__file__).resolve().parents[2]
VERBS = [method.lower() for method in web.RequestHandler.SUPPORTED_METHODS]
ROUTED = (*API, *AGENTS, *PAGES, ConsoleHandler)
WITHOUT_ACTION = {AssetHandler, MetricsHandler, OAuthCallbackHandler}
"""Built files, instruments' page at an address of its own, JupyterHub's own callback:
nothing of ours to allow."""
READING = {"read", "open", "serve", "check", "verify", "installs", "start", "download"}
"""What the second half of an action may be where a GET does it."""


def own_classes() -> set[type[web.RequestHandler]]:
    """Every request handler that a module of the package defines."""
    found = set()
    for module_info in pkgutil.iter_modules(handlers.__path__):
        module = importlib.import_module(f"{handlers.__name__}.{module_info.name}")
        for _, value in inspect.getmembers(module, inspect.isclass):
            mine = value.__module__ == module.__name__
            if mine and issubclass(value, web.RequestHandler):
                found.add(value)
    return found


def made_for_nouns() -> set[type[web.RequestHandler]]:
    """Those that are made from the list of nouns, and bound to no name of their own."""
    return {handler for noun in NOUNS for handler in handlers_of(noun)}


def own_methods(handler: type[web.RequestHandler]) -> list[str]:
    return [
        verb
        for verb in VERBS
        if getattr(handler, verb) is not getattr(web.RequestHandler, verb)
    ]


def test_the_committed_description_is_what_the_routes_say(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_every_handler_with_methods_is_routed():
    classes = own_classes() | made_for_nouns()
    with_methods = {c for c in classes if own_methods(c)}
    # What only lends its methods to others has no path.
    lenders = {c for c in with_methods if not getattr(c, "path", "")} - WITHOUT_ACTION
    for lender in lenders:
        assert any(issubclass(routed, lender) for routed in ROUTED), lender
    assert with_methods - lenders == {*ROUTED, *WITHOUT_ACTION}


def test_every_handler_with_a_path_is_routed_once():
    with_path = {c for c in own_classes() if getattr(c, "path", "")} | made_for_nouns()
    assert with_path == set(ROUTED)
    assert max(Counter(ROUTED).values()) == 1
    assert max(Counter(handler.path for handler in ROUTED).values()) == 1


@pytest.mark.parametrize("handler", ROUTED, ids=lambda h: h.__name__)
def test_a_route_has_only_methods_that_name_their_action(handler: type[APIHandler]):
    methods = own_methods(handler)
    assert methods
    for verb in methods:
        described = getattr(handler, verb).operation
        assert described.action in MATRIX
        assert described.summary.endswith("."), "a sentence for the description"


def test_every_action_is_in_the_table_for_somebody_and_done_by_some_route():
    verbs = {noun.action(verb) for noun in NOUNS for verb in noun.verbs}
    assert set(MATRIX) == {*map(str, Action), *verbs}
    assert all(MATRIX.values())
    assert {str(o.action) for _, o in list_operations(ROUTED)} == set(MATRIX)


def test_the_more_exact_path_is_asked_first():
    """What reads ``presets/{reference}`` must not take ``presets/check`` for a name."""
    for listener in (API, AGENTS):
        ordered = patterns(listener, "/")
        for place, (_, handler) in enumerate(ordered):
            example = "/" + re.sub(r"\{[a-z_]+\}", "x-y", handler.path)
            taken = next(
                i for i, (p, _) in enumerate(ordered) if re.fullmatch(p, example)
            )
            assert taken == place, (handler.path, ordered[taken][1].path)


def test_nodes_and_people_have_listeners_of_their_own():
    nodes = {Action.ENROLL_AGENT, Action.SERVE_AGENT}
    assert {o.action for _, o in list_operations(AGENTS)} == nodes
    assert not {o.action for _, o in list_operations(API)} & nodes
    for _, described in list_operations(AGENTS):
        assert set(MATRIX[described.action]) <= {Caller.ANONYMOUS, Caller.AGENT}


def test_what_changes_something_is_never_a_get():
    """A page may be shown for a confirmation that follows."""
    for path, described in list_operations((*API, *AGENTS, ConsoleHandler)):
        verb = described.action.partition(":")[2]
        assert described.method != "get" or verb in READING, (path, verb)


def test_a_noun_has_the_routes_of_its_verbs_and_the_same_ones_as_all_others():
    by_path = {}
    for path, described in list_operations(API):
        by_path.setdefault(path, {})[described.method] = described
    for noun in NOUNS:
        place = f"api/{noun.plural}"
        found = {
            (path, method): str(described.action)
            for path in (place, f"{place}/{{reference}}", f"{place}/bulk")
            for method, described in by_path[path].items()
        }
        one = f"{place}/{{reference}}"
        wanted = {
            (place, "get"): "read",
            (place, "post"): "create",
            (one, "get"): "read",
            (one, "patch"): "update",
            (one, "delete"): "purge",
            (f"{place}/bulk", "post"): "read",
        }
        common = {
            where: f"{noun.name}:{verb}"
            for where, verb in wanted.items()
            if verb in noun.verbs
        }
        assert common.items() <= found.items()


def test_the_description_names_every_route_its_action_and_its_callers():
    paths = build_spec()["paths"]
    operations = list_operations(API)
    assert sum(map(len, paths.values())) == len(operations)
    identifiers = set()
    for path, described in operations:
        document = paths[f"/{path}"][described.method]
        assert document["x-action"] == described.action
        assert document["x-callers"] == sorted(MATRIX[described.action])
        identifiers.add(document["operationId"])
    assert len(identifiers) == len(operations)


def test_a_path_segment_never_reaches_over_a_slash():
    [(pattern, _)] = [
        p for p in patterns(API, "/x/") if p[1].path == "api/sessions/{session_id}"
    ]
    assert pattern == "/x/api/sessions/([^/]{1,200})"
