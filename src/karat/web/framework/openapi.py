"""The API as OpenAPI tells it, printed from its routes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.routing import BaseRoute

from karat.web.api.bodies import Body, received
from karat.web.framework.auth import Requires

PREFIX = "/api/"
ABOUT = (
    "What the command line does, for programs: the same operations, the same numbers, the same "
    "JSON (docs/reference/json.md). A token of your account page goes into the header "
    "`Authorization: Bearer …`; a page of karat's own may use its session and sends `X-CSRF` with "
    "all but GET. Lists have `items`, `found` (how many there are), `page`, `per` and `next` (the "
    "address of the next page, or null); they are filtered by `?column=value` (numbers: `>=2`, "
    "`1..3`), searched by `?q=`, sorted by `?sort=column` or `?sort=-column`."
)
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "where", "nearest", "fix"],
            "properties": {
                "code": {
                    "type": "string",
                    "enum": [
                        "usage",
                        "input",
                        "conflict",
                        "not_found",
                        "not_signed_in",
                        "not_allowed",
                        "too_many",
                        "timeout",
                        "busy",
                        "too_large",
                        "missing_extra",
                        "no_room",
                        "error",
                    ],
                },
                "message": {"type": "string", "description": "What is wrong."},
                "where": {
                    "type": "object",
                    "description": "`file`, `line`, `query`, `doc_id`, `field`, as far as known.",
                },
                "nearest": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "The nearest valid choices.",
                },
                "fix": {"type": ["string", "null"], "description": "What to do."},
            },
        }
    },
}
_LIST = {
    "type": "object",
    "required": ["items", "found", "page", "per", "next"],
    "properties": {
        "items": {"type": "array", "items": {"type": "object"}},
        "found": {"type": "integer"},
        "page": {"type": "integer"},
        "per": {"type": "integer"},
        "next": {"type": ["string", "null"]},
    },
}
_FILE = {"type": "string", "format": "binary"}


def described(routes: Sequence[BaseRoute], base: str = "") -> dict[str, Any]:
    """The API among some routes, as OpenAPI 3.1.

    Args:
        routes: Of an app; those outside of ``/api/`` are left out.
        base: Path under which a proxy serves the app.
    """
    contexts = [each for each in iter_route_contexts(routes) if str(each.path).startswith(PREFIX)]
    made: dict[str, Any] = get_openapi(
        title="karat",
        version=_version(),
        description=ABOUT,
        routes=contexts,
        servers=[{"url": base or "/"}],
    )
    for each in contexts:
        route = each.original_route
        assert isinstance(route, APIRoute)
        for method in each.methods or ():
            # FastAPI writes {query_id:path} as {query_id}.
            path = re.sub(r":\w+}", "}", str(each.path))
            _finished(made["paths"][path][method.lower()], route)
    made["components"] = {
        "schemas": {"Error": ERROR, "List": _LIST},
        "responses": {
            "Error": {
                "description": "It was not done, and why.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            }
        },
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    }
    return made


def needs_of(route: APIRoute) -> Requires:
    """What a route asks of who calls it."""
    return next(
        each.call for each in route.dependant.dependencies if isinstance(each.call, Requires)
    )


def _finished(operation: dict[str, Any], route: APIRoute) -> None:
    """An operation with what FastAPI cannot know: who may call it, what it is sent, its errors."""
    needs = needs_of(route)
    operation["operationId"] = route.name
    operation["summary"] = _first(route)
    operation.pop("description", None)
    operation["x-needs"] = {"role": needs.role, "scope": needs.scope}
    if needs.scope is not None:
        operation["security"] = [{"token": []}]
    for each in route.dependant.dependencies:
        if isinstance(each.call, Body):
            operation["requestBody"] = {
                "required": each.call.required,
                "content": {"application/json": {"schema": _schema(each.call.model)}},
            }
        elif each.call is received:
            operation["requestBody"] = {
                "required": True,
                "description": "The file, as it is.",
                "content": {"application/octet-stream": {"schema": _FILE}},
            }
    operation["responses"].pop("422", None)
    answers = operation["responses"].get(str(route.status_code or 200), {})
    listed = answers.get("description", "").startswith("List of")
    if answers.get("description") == "The run as a file." or "ZIP" in answers["description"]:
        answers["content"] = {"application/octet-stream": {"schema": _FILE}}
    else:
        schema = {"$ref": "#/components/schemas/List"} if listed else {"type": "object"}
        answers["content"] = {"application/json": {"schema": schema}}
    operation["responses"]["default"] = {"$ref": "#/components/responses/Error"}


def _schema(model: Any) -> dict[str, Any]:
    """What a body says: its fields, with what their docstring says of each."""
    schema: dict[str, Any] = model.model_json_schema()
    told: dict[str, str] = {}
    for base in reversed(model.__mro__):
        told |= _attributes(inspect.cleandoc(vars(base).get("__doc__") or "").splitlines())
    for name, field in schema.get("properties", {}).items():
        field.pop("title", None)
        if name in told:
            field["description"] = told[name]
    schema["description"] = (inspect.getdoc(model) or "").partition("\n")[0]
    schema.pop("title", None)
    return schema


def _attributes(lines: Iterable[str]) -> dict[str, str]:
    """The lines below ``Attributes:``, each in one."""
    found: dict[str, str] = {}
    name, inside = "", False
    for line in lines:
        if line.strip() == "Attributes:":
            inside = True
        elif inside and (match := re.match(r"    (\w+): (.*)", line)):
            name = match[1]
            found[name] = match[2]
        elif inside and name and line.strip():
            found[name] += f" {line.strip()}"
    return found


def _first(route: APIRoute) -> str:
    text = inspect.cleandoc(route.endpoint.__doc__ or "").partition("\n\n")[0]
    return " ".join(text.split())


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("karat")
    except metadata.PackageNotFoundError:
        return "0"
