"""The API described: OpenAPI, generated from its routes, and the page that shows it."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any

from fastapi import APIRouter, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from karat.web.api.bodies import Body, received
from karat.web.api.models import comments, meanings, model_of
from karat.web.api.responses import json_response
from karat.web.framework.auth import AReader, requires_of
from karat.web.framework.errors import Said
from karat.web.framework.pages import PlainPage, show

ROUTER = APIRouter(prefix="/api", tags=["account"])
ABOUT = (
    "The command line for programs: the same operations, the same numbers, the same JSON "
    "(docs/reference/json.md). Send an API token from your account page in the header "
    "`Authorization: Bearer …`; karat's own pages may use their session, and send `X-CSRF` with "
    "all methods but GET. Lists have `items`, `found` (number of matching rows), `page`, `per` "
    "and `next` (the address of the next page, or null); they are filtered by `?column=value` "
    "(numbers: `>=2`, `1..3`), searched by `?q=`, sorted by `?sort=column` or `?sort=-column`."
)
CODES = (
    *("usage", "input", "conflict", "not_found", "not_signed_in", "not_allowed", "too_many"),
    *("timeout", "busy", "too_large", "missing_extra", "no_room", "error"),
)
_FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@ROUTER.get("/openapi.json", response_model=dict[str, Any], response_description="OpenAPI 3.1.")
def openapi(call: AReader) -> Response:
    """This description, for tools."""
    return json_response(described(call.request.app.state.site.settings.base))


@ROUTER.get("/docs", include_in_schema=False)
def docs(call: AReader) -> Response:
    """The API, for reading."""
    document = described(call.request.app.state.site.settings.base)
    tags: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tags.setdefault(operation["tags"][0], []).append((method, path, operation))
    crumbs = [("Account", "/account")]
    return show(call, PlainPage("api_docs.html.j2", "API", crumbs, document=document, tags=tags))


@cache
def described(base: str = "") -> dict[str, Any]:
    """The API as OpenAPI 3.1; ``base`` is the path of a proxy."""
    from pydantic import TypeAdapter

    from karat.web import api

    every = [route for router in api.ROUTERS for route in router.routes]
    routes = [each for each in every if isinstance(each, APIRoute) and each.include_in_schema]
    document: dict[str, Any] = get_openapi(
        title="karat",
        version=metadata.version("karat"),
        description=ABOUT,
        routes=routes,
        servers=[{"url": base or "/"}],
    )
    for route in routes:
        for method in route.methods or ():
            _complete(document["paths"][route.path_format][method.lower()], route)
    error = TypeAdapter(model_of(Said)).json_schema()
    error["properties"]["code"] = {"type": "string", "enum": CODES}
    error |= {"required": list(error["properties"])}
    schema = {"type": "object", "required": ["error"], "properties": {"error": error}}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    schemas = document["components"]["schemas"]
    schemas["Error"] = schema
    for unused in ("HTTPValidationError", "ValidationError"):  # our own is sent instead
        del schemas[unused]
    document["components"] |= {
        "responses": {"Error": {"description": "The request failed.", "content": content}},
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    }
    return document


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    """Add what FastAPI does not know: who may call it, the request body, errors."""
    requires = requires_of(route)
    summary, _, more = operation.pop("description").partition("\n\n")
    operation |= {"operationId": route.name, "summary": " ".join(summary.split())}
    operation |= {"description": " ".join(more.split())} if more else {}
    operation["x-needs"] = {"role": requires.role, "scope": requires.scope}
    said, called = comments(route.endpoint), {p.alias: p.name for p in route.dependant.query_params}
    for each in operation.get("parameters", ()):
        if each["name"] in called and (text := said.get(called[each["name"]])):
            each["description"] = text
    if requires.scope is not None:
        operation["security"] = [{"token": []}]
    for call in (dependency.call for dependency in route.dependant.dependencies):
        if isinstance(call, Body):
            schema = call.model.model_json_schema()
            said = meanings(call.model)
            for name, each in schema["properties"].items():
                each["description"] = said[name]
            content = {"application/json": {"schema": schema}}
            operation["requestBody"] = {"required": call.required, "content": content}
        elif call is received:
            operation["requestBody"] = {"required": True, "content": _FILE}
    if route.response_model is None:
        operation["responses"][str(route.status_code or 200)]["content"] = _FILE
    operation["responses"].pop("422", None)
    operation["responses"]["default"] = {"$ref": "#/components/responses/Error"}
