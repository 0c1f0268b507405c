"""The OpenAPI document, made from the routes themselves.

``python -m backendai_hub.handlers.spec`` writes it where it is committed;
``--check`` fails if what is committed differs.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from backendai_hub import __version__
from backendai_hub.api.problems import Problem
from backendai_hub.core.access import MATRIX, Action
from backendai_hub.handlers.base import APIHandler, Operation, operation

_METHODS = ("get", "head", "options", "post", "put", "patch", "delete")


def list_operations(
    handlers: tuple[type[APIHandler], ...],
) -> list[tuple[str, Operation]]:
    """List (path, operation) of every method of *handlers*."""
    return [
        (handler.path, getattr(handler, method).operation)
        for handler in handlers
        for method in _METHODS
        if hasattr(getattr(handler, method), "operation")
    ]


def _types(operations: list[tuple[str, Operation]]) -> list[Any]:
    found: list[Any] = [Problem]
    for _, described in operations:
        found += [
            t for t in (described.body, described.answer) if t not in {None, type(None)}
        ]
        if described.query is not None:
            found.append(described.query)
    return found


@functools.cache
def build_spec() -> dict[str, Any]:
    """Build the document. Paths are below the service's prefix."""
    from backendai_hub.handlers.routes import API  # noqa: PLC0415 - it lists this one

    operations = list_operations(API)
    types = _types(operations)
    schemas, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    schema_of = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for path, described in operations:
        paths.setdefault(f"/{path}", {})[described.method] = _describe(
            path, described, schema_of, components
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "backendai-hub", "version": __version__},
        "servers": [{"url": "/services/backendai"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "Authorization"}
            },
        },
    }


def _describe(
    path: str,
    described: Operation,
    schema_of: dict[str, Any],
    components: dict[str, Any],
) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": described.summary}
    if described.answer not in {None, type(None)}:
        schema = schema_of[repr(described.answer)]
        answer["content"] = {"application/json": {"schema": schema}}
    parameters: list[dict[str, Any]] = [
        {"name": n, "in": "path", "required": True, "schema": {"type": "string"}}
        for n in re.findall(r"\{([a-z_]+)\}", path)
    ]
    if described.filters:
        parameters += [
            {
                "name": name,
                "in": "query",
                "required": False,
                "schema": {"type": "integer" if name == "limit" else "string"},
            }
            for name in ("limit", "after", "order", *described.filters)
        ]
    if described.query is not None:
        fields = components[described.query.__name__]
        parameters += [
            {
                "name": name,
                "in": "query",
                "required": name in fields.get("required", ()),
                "schema": schema,
            }
            for name, schema in fields["properties"].items()
        ]
    document: dict[str, Any] = {
        "operationId": f"{described.method}_{re.sub(r'[^a-z]+', '_', path).strip('_')}",
        "summary": described.summary,
        "x-action": str(described.action),
        "x-callers": sorted(str(c) for c in MATRIX[described.action]),
        "parameters": parameters,
        "responses": {
            str(described.status): answer,
            "default": {
                "description": "A refusal",
                "content": {
                    "application/problem+json": {
                        "schema": schema_of[repr(Problem)],
                    }
                },
            },
        },
    }
    if described.body is not None:
        document["requestBody"] = {
            "required": True,
            "content": {
                "application/json": {"schema": schema_of[repr(described.body)]}
            },
        }
    return document


class SpecHandler(APIHandler):
    """This document."""

    path: ClassVar[str] = "api/openapi.json"

    @operation(Action.READ_SPEC)
    async def get(self) -> None:
        """Read this document."""
        self.write_json(build_spec())


def main(arguments: list[str]) -> int:
    """Write the committed document, or with ``--check`` compare it."""
    target = Path("labextension/packages/api/openapi.json")
    raw = msgspec.json.format(
        msgspec.json.encode(build_spec(), order="sorted"), indent=2
    )
    text = raw.decode() + "\n"
    if "--check" in arguments:
        same = target.is_file() and target.read_text("utf-8") == text
        if not same:
            sys.stderr.write(f"{target} is not what the routes say; run 'make types'\n")
        return 0 if same else 1
    target.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
