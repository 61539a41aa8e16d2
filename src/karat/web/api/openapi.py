"""The API as OpenAPI, generated from its routes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.routing import BaseRoute

from karat.web.api.bodies import Body, received
from karat.web.api.responses import dict_response
from karat.web.framework.auth import AReader, requires_of

ROUTER = APIRouter(prefix="/api", tags=["account"])
PREFIX = "/api/"
ABOUT = (
    "The command line for programs: the same operations, the same numbers, the same JSON "
    "(docs/reference/json.md). Send an API token from your account page in the header "
    "`Authorization: Bearer …`; karat's own pages may use their session, and send `X-CSRF` with "
    "all methods but GET. Lists have `items`, `found` (number of matching rows), `page`, `per` "
    "and `next` (the address of the next page, or null); they are filtered by `?column=value` "
    "(numbers: `>=2`, `1..3`), searched by `?q=`, sorted by `?sort=column` or `?sort=-column`."
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


@ROUTER.get("/openapi.json", response_description="OpenAPI 3.1.")
def openapi(request: Request, _asking: AReader) -> Response:
    """This description, for tools."""
    state = request.app.state
    if not hasattr(state, "openapi"):
        state.openapi = described(request.app.routes, state.site.settings.base)
    return dict_response(state.openapi)


def described(routes: Sequence[BaseRoute], base: str = "") -> dict[str, Any]:
    """The routes below ``/api/`` as OpenAPI 3.1; ``base`` is the path of a proxy."""
    contexts = [c for c in iter_route_contexts(routes) if str(c.path).startswith(PREFIX)]
    description: dict[str, Any] = get_openapi(
        title="karat",
        version=_version(),
        description=ABOUT,
        routes=contexts,
        servers=[{"url": base or "/"}],
    )
    for context in contexts:
        route = context.original_route
        assert isinstance(route, APIRoute)
        for method in context.methods or ():
            # FastAPI writes {query_id:path} as {query_id}.
            path = re.sub(r":\w+}", "}", str(context.path))
            _complete(description["paths"][path][method.lower()], route)
    description["components"] = {
        "schemas": {"Error": ERROR, "List": _LIST},
        "responses": {
            "Error": {
                "description": "The request failed.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            }
        },
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    }
    return description


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    """Add what FastAPI does not know: authorization, request body, errors."""
    requires = requires_of(route)
    operation["operationId"] = route.name
    operation["summary"] = _summary(route)
    operation.pop("description", None)
    operation["x-needs"] = {"role": requires.role, "scope": requires.scope}
    if requires.scope is not None:
        operation["security"] = [{"token": []}]
    for call in (dependency.call for dependency in route.dependant.dependencies):
        if isinstance(call, Body):
            operation["requestBody"] = {
                "required": call.required,
                "content": {"application/json": {"schema": _schema(call.model)}},
            }
        elif call is received:
            operation["requestBody"] = {
                "required": True,
                "description": "The file's bytes.",
                "content": {"application/octet-stream": {"schema": _FILE}},
            }
    operation["responses"].pop("422", None)
    response = operation["responses"].get(str(route.status_code or 200), {})
    is_list = response.get("description", "").startswith("List of")
    if response.get("description") == "The run as a file." or "ZIP" in response["description"]:
        response["content"] = {"application/octet-stream": {"schema": _FILE}}
    else:
        schema = {"$ref": "#/components/schemas/List"} if is_list else {"type": "object"}
        response["content"] = {"application/json": {"schema": schema}}
    operation["responses"]["default"] = {"$ref": "#/components/responses/Error"}


def _schema(model: Any) -> dict[str, Any]:
    """JSON schema of a body; its docstring describes the fields."""
    schema: dict[str, Any] = model.model_json_schema()
    descriptions: dict[str, str] = {}
    for base in reversed(model.__mro__):
        descriptions |= _attributes(inspect.cleandoc(vars(base).get("__doc__") or "").splitlines())
    for name, field in schema.get("properties", {}).items():
        field.pop("title", None)
        if name in descriptions:
            field["description"] = descriptions[name]
    schema["description"] = (inspect.getdoc(model) or "").partition("\n")[0]
    schema.pop("title", None)
    return schema


def _attributes(lines: Iterable[str]) -> dict[str, str]:
    """Descriptions below ``Attributes:``, by name."""
    descriptions: dict[str, str] = {}
    name, inside = "", False
    for line in lines:
        if line.strip() == "Attributes:":
            inside = True
        elif inside and (match := re.match(r"    (\w+): (.*)", line)):
            name = match[1]
            descriptions[name] = match[2]
        elif inside and name and line.strip():
            descriptions[name] += f" {line.strip()}"
    return descriptions


def _summary(route: APIRoute) -> str:
    text = inspect.cleandoc(route.endpoint.__doc__ or "").partition("\n\n")[0]
    return " ".join(text.split())


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("karat")
    except metadata.PackageNotFoundError:
        return "0"
