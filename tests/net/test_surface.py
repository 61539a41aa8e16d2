"""What others rely on: names and signatures, options of commands, routes, the API's properties.

Module names are left out, for they are not promised to anybody.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from tests.net.snapshots import Snapshots

import karat
from karat.cli.main import karat as command_line
from karat.web.api.openapi import described
from karat.web.app import PAGES

Facts = Callable[[], Iterator[str]]


def public_names() -> Iterator[str]:
    """Every public name of Python, its signature, and those of a class's public members."""
    for name in karat.__all__:
        yield from _described(name, getattr(karat, name))


def _described(name: str, thing: Any) -> Iterator[str]:
    if not inspect.isclass(thing):
        yield f"{name}{_signature(thing)}"
        return
    bases = ", ".join(base.__name__ for base in thing.__bases__)
    yield f"{name}: class of {bases}"
    yield f"{name}{_signature(thing)}"
    for field in dataclasses.fields(thing) if dataclasses.is_dataclass(thing) else ():
        yield f"{name}.{field.name}: field {field.type}"
    for member in dir(thing):
        if member.startswith("_") or (issubclass(thing, Exception) and hasattr(Exception, member)):
            continue
        found = inspect.getattr_static(thing, member)
        called = f"{name}.{member}"
        if isinstance(found, property):
            yield f"{called}: property {inspect.signature(found.fget).return_annotation}"  # type: ignore[arg-type]
        elif isinstance(found, classmethod | staticmethod):
            yield f"{called}{_signature(found.__func__)} [{type(found).__name__}]"
        elif callable(found):
            yield f"{called}{_signature(found)}"


def _signature(thing: Any) -> str:
    try:
        found = str(inspect.signature(thing))
    except ValueError:
        return "(*args)"  # as an exception takes them
    found = re.sub(r"<([\w ]+) (?:\w+\.)*(\w+)(?: at 0x\w+)?>", r"<\1 \2>", found)
    return re.sub(r"\b(?:karat|pathlib|polars|narwhals)(?:\.\w+)*\.(\w+)", r"\1", found)


def options() -> Iterator[str]:
    """Every parameter of every command."""
    for path, command in walked(command_line, "karat"):
        yield f"{path}: {'group' if isinstance(command, click.Group) else 'command'}"
        for each in command.params:
            kind = "option" if isinstance(each, click.Option) else "argument"
            names = " ".join([*each.opts, *(f"/{no}" for no in each.secondary_opts)])
            called = names if kind == "option" else str(each.name)
            facts = [f"type {_type(each.type)}", f"default {_default(each)}"]
            facts += ["required"] * each.required + ["multiple"] * each.multiple
            facts += [f"nargs {each.nargs}"] * (each.nargs != 1)
            facts += [f"variable {each.envvar}"] * bool(each.envvar)
            facts += ["hidden"] * getattr(each, "hidden", False)
            facts += ["flag"] * getattr(each, "is_flag", False)
            yield f"{path} {kind} {called}: {', '.join(facts)}"


def _default(parameter: click.Parameter) -> str:
    context = click.Context(click.Command("any"))
    found = parameter.get_default(context, call=False)
    if callable(found):
        return "computed"
    # Newer clicks have a value of their own for what has no default.
    lacks = found is None or type(found).__name__ == "Sentinel"
    return "none" if lacks else repr(str(found) if isinstance(found, Path) else found)


def _type(kind: click.ParamType[Any]) -> str:
    facts = {k: v for k, v in kind.to_info_dict().items() if k not in {"param_type", "name"} and v}
    said = "".join(f" {k}={v}" for k, v in sorted(facts.items()))
    return f"{kind.name}{said}"


def walked(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """A command and all below it, by their whole names."""
    yield name, command
    if isinstance(command, click.Group):
        for each, below in sorted(command.commands.items()):
            yield from walked(below, f"{name} {each}")


def routes() -> Iterator[str]:
    """Method and path of every route of the web app."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for router in PAGES:
        app.include_router(router)
    for each in iter_route_contexts(app.routes):
        for method in each.methods or ():
            yield f"{each.path} {method}"


def properties() -> Iterator[str]:
    """Parameters, properties and answers of every operation of the API."""
    told = described()
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            where = f"{method.upper()} {path}"
            yield f"{where}: {operation['operationId']}, needs {operation['x-needs']}"
            for each in operation.get("parameters", ()):
                needed = ", required" if each.get("required") else ""
                yield f"{where} {each['in']} {each['name']}: {_kind(each['schema'])}{needed}"
            for kind, body in operation.get("requestBody", {}).get("content", {}).items():
                yield f"{where} body: {kind}"
                yield from _below(f"{where} body", body.get("schema", {}))
            for status, answer in operation["responses"].items():
                yield f"{where} answer {status}: {', '.join(sorted(answer.get('content', {})))}"
                for kind, body in answer.get("content", {}).items():
                    yield from _below(f"{where} answer {status} {kind}", body.get("schema", {}))
    for section in ("responses", "securitySchemes"):
        for name, part in told["components"][section].items():
            yield f"{section} {name}: {_kind(part)}"


def objects() -> Iterator[str]:
    """Fields of every object that the API answers."""
    for name, schema in described()["components"]["schemas"].items():
        if not name.endswith("List"):
            yield from _below(name.rpartition("__")[2] if "offline" not in name else name, schema)


def _below(where: str, schema: dict[str, Any]) -> Iterator[str]:
    for name, each in schema.get("properties", {}).items():
        needed = ", required" if name in schema.get("required", ()) else ""
        yield f"{where} .{name}: {_kind(each)}{needed}"
        yield from _below(f"{where} .{name}", each)
    if "items" in schema:
        yield from _below(f"{where} []", schema["items"])


def _kind(schema: dict[str, Any]) -> str:
    said = {k: v for k, v in schema.items() if k in {"type", "enum", "default", "$ref", "format"}}
    either = [_kind(each) for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, ())]
    return " or ".join(either) or ", ".join(f"{k} {v}" for k, v in sorted(said.items())) or "any"


PAGES_OF_FACTS: dict[str, Facts] = {
    "python.txt": public_names,
    "commands.txt": options,
    "routes.txt": routes,
    "api.txt": properties,
    # In halves: a text that is too long is kept as its sum.
    "objects_a_to_l.txt": lambda: (fact for fact in objects() if fact < "M"),
    "objects_m_to_z.txt": lambda: (fact for fact in objects() if fact >= "M"),
}


@pytest.mark.parametrize("name", PAGES_OF_FACTS)
def test_what_others_rely_on_is_as_it_was(name: str, snapshots: Callable[[str], Snapshots]) -> None:
    facts = sorted(PAGES_OF_FACTS[name]())
    assert facts
    assert len(facts) == len(set(facts))
    assert not [fact for fact in facts if " at 0x" in fact or re.search(r"\bkarat\.\w+\.", fact)]
    snapshots("surface").check(name, "\n".join(facts))


def test_nothing_is_kept_for_no_test(snapshots: Callable[[str], Snapshots]) -> None:
    snapshots("surface").holds_only(PAGES_OF_FACTS)
