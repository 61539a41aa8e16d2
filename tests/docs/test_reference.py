"""The reference says what the code says.

Eight pages are printed from the code; after a change, print them again:

    python3 dev.py print

The others are written by hand, and their names are compared with the code.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
import pytest

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/reference"
BY = "by `python3 dev.py print`; do not edit by hand"
AGAIN = "run: python3 dev.py print"


def measures() -> str:
    """What `karat measures --format md` prints, less measures that other tests have registered."""
    from karat.measures import entries
    from karat.reports.offline.catalogue import markdown

    return markdown([e for e in entries() if e.function.__module__.startswith("karat.")])


def online_metrics() -> str:
    """What `karat online metrics --format md` prints."""
    from karat.online.metrics.registry import all_metrics
    from karat.reports.online.catalogue import markdown

    return markdown(all_metrics())


def cli() -> str:
    """The help of every command, at 80 columns."""
    from karat.cli.main import karat

    out = [
        "# Commands\n",
        f"Printed from the help of each command {BY}.\n",
        "[Exit codes](exit-codes.md) and [formats](formats.md) have pages of their own.\n",
    ]
    # click leaves two columns free: this is what a terminal of 80 shows.
    wide: dict[str, Any] = {"resilient_parsing": True, "terminal_width": 78}
    top = karat.make_context("karat", [], **wide)
    pages: list[tuple[str, click.Command, click.Context]] = [("karat", karat, top)]
    for name, command, context in pages:
        if isinstance(command, click.Group):  # its commands come right behind it
            below = [command.commands[each] for each in sorted(command.commands)]
            at = next(place for place, page in enumerate(pages, 1) if page[0] == name)
            pages[at:at] = [
                (f"{name} {each.name}", each, each.make_context(each.name, [], context, **wide))
                for each in below
            ]
        shown = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
        out.append(f"## {name}\n\n```text\n{shown}\n```\n")
    return "\n".join(out)


def tables() -> str:
    """Every column of every table."""
    from karat.tables.schema import TABLES

    what = {
        "qrels": "Judgments: one row for each judged pair of query and document. In Python: "
        "`karat.Qrels`.",
        "rankings": "What a system returned: one row for each query and document. In Python: "
        "`karat.Run`, whose `frame()` gives these columns.",
        "answers": "How a run answered: one row for each query asked. In Python: `Run.answers`.",
        "queries": "What was asked: one row for each query. Every further column is an attribute, "
        "to slice by with `--by`. In Python: `karat.Queries`.",
        "documents": "What can be found: one row for each document. Every further column is an "
        "attribute. In Python: `karat.Documents`.",
        "pairs": "What is to be judged: documents with their queries, in the order in which to "
        "judge them; written by `karat compare --judge-file`. Every further column says why.",
        "judgments": "Who gave which grade: one row for each judgment that counts. Qrels are made "
        "of these by a rule, and agreement is computed on them.",
        "events": "What users did: one row for each search, impression, click and so on, as an "
        "event store holds it in Parquet. Every further column is an attribute of the log, named "
        "`attribute_NAME`, to slice by with `--by NAME`.",
        "searches": "What events come to: one row for each search intent, keystrokes and pages "
        "being parts of one. Online metrics are sums over these; pages show them behind a figure.",
        "clicks": "One row for each document clicked of a search intent, its first click.",
        "sessions": "One row for each session with a search.",
    }
    out = [
        "# Tables\n",
        f"Printed from `karat.tables.schema` {BY}.\n",
        (
            "Whatever format a file is in, karat turns it into these tables. Ids are always "
            "strings: `007` stays `007`, and `NA` stays `NA`. [Formats](formats.md) tells how "
            "columns may be called in files.\n"
        ),
    ]
    for name, columns in TABLES.items():
        out.append(f"## {name}\n\n{what[name]}\n")
        rows = [
            f"| `{c.name}` | {c.dtype} | {'' if c.optional else 'yes'} | {_cell(c.meaning)} |"
            for c in columns
        ]
        head = ["| column | type | required | meaning |", "| --- | --- | --- | --- |"]
        out.append("\n".join([*head, *rows]) + "\n")
    return "\n".join(out)


def python() -> str:
    """The public names with their signatures, and the first sentence of each docstring."""
    karat = importlib.import_module("karat")
    out = [
        "# Python\n",
        f"Printed from `karat.__all__` {BY}.\n",
        (
            "`help(karat.evaluate)` tells more, argument by argument. "
            "[Use karat from Python](../how-to/from-python.md) shows how these are used.\n"
        ),
    ]
    for name in karat.__all__:
        thing = getattr(karat, name)
        out.append(f"## karat.{name}\n")
        out.append(f"```text\n{name}{_signature(thing, 70)}\n```\n")
        out.append(f"{_first_sentence(thing)}\n")
        if isinstance(thing, type) and not issubclass(thing, Exception):
            members = list(_members(thing))
            out.append("\n".join(members) + "\n" if members else "")
    for name in (
        "recall_at_k",
        "precision_at_k",
        "reciprocal_rank",
        "average_precision",
        "dcg_at_k",
        "ndcg_at_k",
    ):
        thing = getattr(karat.measures, name)
        out.append(f"## karat.measures.{name}\n")
        out.append(f"```text\n{name}{_signature(thing, 70)}\n```\n")
        out.append(f"{_first_sentence(thing)}\n")
    for name in karat.clicks.__all__:
        thing = getattr(karat.clicks, name)
        out.append(f"## karat.clicks.{name}\n")
        out.append(f"```text\n{name}{_signature(thing, 70)}\n```\n")
        out.append(f"{_first_sentence(thing)}\n")
    return "\n".join(part for part in out if part)


def api() -> str:
    """Every route of the API: who may call it, what it takes, what it answers."""
    from karat.web.api.openapi import ABOUT, CODES, described

    told = described()
    out = [
        "# API\n",
        f"Printed from its routes {BY}. [Use the API](../how-to/use-the-api.md) shows how.\n",
        f"{ABOUT.replace('docs/reference/json.md', '[JSON](json.md)')}\n",
        (
            'A request that is not answered gets one shape, `{"error": {…}}`, with `code` '
            f"({', '.join(f'`{code}`' for code in CODES)}), `message`, `where` "
            "(`file`, `line`, `query`, `doc_id` or `field`, as far as known), `nearest` (the "
            "nearest valid choices) and `fix` (or null). The status is 400 for what is asked "
            "wrongly or what is wrong with the data, 401 and 403 for who may not, 404, 409 where "
            "another was first, 408 where the request timed out, 413, 429, 501 where "
            "something is not installed, 503 where the "
            "server cannot do it now.\n"
        ),
    ]
    tags: dict[str, list[str]] = {}
    for path, methods in told["paths"].items():
        for method, each in methods.items():
            tags.setdefault(each["tags"][0], []).append(_route(method, path, each))
    for tag, parts in tags.items():
        out += [f"## {tag[0].upper()}{tag[1:]}\n", *parts]
    return "\n".join(out)


def _route(method: str, path: str, each: dict[str, Any]) -> str:
    """A route of the API."""
    role, scope = each["x-needs"]["role"], each["x-needs"]["scope"]
    by = f"token for `{scope}`, or session" if scope else "session"
    good = next(a for status, a in each["responses"].items() if status.startswith("2"))
    out = [
        f"### {method.upper()} {path}\n",
        f"{each['summary']} Needs: {role}; {by}.\n",
        *([f"{each['description']}\n"] if "description" in each else []),
    ]
    rows = [
        (p["name"], p["in"], p["schema"], p.get("description", ""), p.get("required", False))
        for p in each.get("parameters", ())
        if p["in"] != "path"
    ]
    kinds = each.get("requestBody", {}).get("content", {})
    body = kinds.get("application/json", {}).get("schema", {})
    rows += [
        (name, "body", schema, schema["description"], name in body.get("required", ()))
        for name, schema in body.get("properties", {}).items()
    ]
    if "application/octet-stream" in kinds:
        rows.append(("", "body", {"type": "file"}, "The file's bytes.", True))
    if rows:
        head = ["| takes | in | type | default | what |", "| --- | --- | --- | --- | --- |"]
        lines = [
            f"| {f'`{name}`' if name else ''} | {place} | {_kind(schema)} "
            f"| {_default(schema, required=required)} | {_cell(what)} |"
            for name, place, schema, what, required in rows
        ]
        out.append(
            "\n".join([*head, *(re.sub(r"\|  (?=\|)", "| ", line) for line in lines)]) + "\n"
        )
    out.append(f"Answers: {_answer(good)}\n")
    return "\n".join(out)


def _answer(good: dict[str, Any]) -> str:
    """The object that a route answers, by its name."""
    [(kind, content)] = good["content"].items()
    if kind != "application/json":
        return "a file."
    if "$ref" not in content["schema"]:
        return "OpenAPI 3.1."
    name = content["schema"]["$ref"].rpartition("/")[2]
    listed = name.removesuffix("List")
    link = f"[{listed}](json.md#{_anchors()[listed]})"
    return f"{link}." if listed == name else f"a list of {link}."


MARKED = re.compile(r"(<!-- printed: (\S+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def json_objects() -> str:
    """The page of JSON, with its tables printed anew."""
    from karat.web.api import ROUTERS

    page = (REFERENCE / "json.md").read_text(encoding="utf-8")
    routes = [route for router in ROUTERS for route in router.routes]
    answers = dict.fromkeys(answered(route.response_model) for route in routes)  # type: ignore[attr-defined]
    anchors = _anchors()
    seen = {path: model_named(path) for _, path in MARKED.findall(page) if path != "api"}
    printed = list(seen.values())

    def tables_of(match: re.Match[str]) -> str:
        if match[2] in seen:
            top = seen[match[2]]
            return "\n".join(
                [match[1], _fields_of(top, anchors), *_nested(top, printed, anchors), ""]
            )
        parts = [match[1]]
        for top in filter(None, answers):
            if top not in printed:
                printed.append(top)
                parts += [f"### {top.__name__}\n", _fields_of(top, anchors)]
                parts += _nested(top, printed, anchors)
        return "\n".join([*parts, ""])

    return MARKED.sub(tables_of, page)


def model_named(path: str) -> type:
    from karat.web.api.models import model_of

    module, _, name = path.rpartition(".")
    return model_of(getattr(importlib.import_module(module), name))


def answered(response_model: Any) -> Any:
    """The model of a row or record that a route answers; None for a file and OpenAPI."""
    if not hasattr(response_model, "__metadata__"):
        return None
    described = response_model.__metadata__[0]
    return dataclasses.replace(described, many=False).model()


def _anchors() -> dict[str, str]:
    """Where json.md has each object."""
    heading, anchors = "", {}
    for line in (REFERENCE / "json.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
            anchors.setdefault(heading, heading.lower().replace(" ", "-"))
        elif (match := re.match(r"<!-- printed: \S+\.(\w+) -->", line)) is not None:
            anchors[match[1]] = heading.lower().replace(" ", "-")
    return anchors


def _nested(model: Any, printed: list[Any], anchors: dict[str, str]) -> Iterator[str]:
    """The tables of the objects in an object that are not on the page yet."""
    for field in dataclasses.fields(model):
        for inner in _objects_in(field.type):
            if inner not in printed:
                printed.append(inner)
                yield f"#### {inner.__name__}\n"
                yield _fields_of(inner, anchors)
                yield from _nested(inner, printed, anchors)


def _objects_in(kind: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(kind):
        yield kind
    for inner in get_args(kind):
        yield from _objects_in(inner)


def _fields_of(model: Any, anchors: dict[str, str]) -> str:
    rows = ["| field | type | meaning |", "| --- | --- | --- |"]
    for field in dataclasses.fields(model):
        kind, meaning = field.type, ""
        if get_origin(kind) is Annotated:
            kind, info = get_args(kind)
            meaning = info.description[:1].upper() + info.description[1:]
        rows.append(f"| `{field.name}` | {_said(kind, anchors)} | {_cell(meaning)} |")
    return "\n".join(re.sub(r"\|  (?=\|)", "| ", row) for row in rows) + "\n"


_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _said(kind: Any, anchors: dict[str, str]) -> str:
    """A type in the words of JSON."""
    args, origin = get_args(kind), get_origin(kind)
    if origin is Literal:
        return " or ".join(f"`{each}`" if each != "" else "empty" for each in args)
    if origin in (Union, UnionType):
        return " or ".join(_said(each, anchors) for each in args)
    if origin is tuple and args[-1] is not Ellipsis:
        return "array of " + " and ".join(dict.fromkeys(_said(each, anchors) for each in args))
    if origin in (list, tuple):
        return f"array of {_said(args[0], anchors)}"
    if dataclasses.is_dataclass(kind):
        name = getattr(kind, "__name__", "")
        return f"[{name}](#{anchors.get(name, name.lower())})"
    return _NAMES.get(kind, "any" if kind is Any else "object")


def _kind(schema: dict[str, Any]) -> str:
    """A type of JSON Schema in words."""
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array" and "items" in schema:
        return f"array of {_kind(schema['items'])}"
    return str(schema.get("type", "any"))


def _default(schema: dict[str, Any], *, required: bool) -> str:
    if required:
        return "needed"
    held = schema.get("default")
    text = str(held).lower() if isinstance(held, bool) else str(held)
    return "" if held in (None, "", []) else f"`{text}`"


def _members(thing: type) -> Iterator[str]:
    fields = dataclasses.fields(thing) if dataclasses.is_dataclass(thing) else ()
    meanings = _attributes(thing)
    for field in fields:
        yield f"- `{field.name}`: {meanings.get(field.name, '')}"
    for name, member in vars(thing).items():
        if name.startswith("_") or name in {f.name for f in fields}:
            continue
        if isinstance(member, property):
            yield f"- `{name}`: {_first_sentence(member)}"
        elif isinstance(member, classmethod):
            method = getattr(thing, name)
            yield f"- `{thing.__name__}.{name}{_signature(method)}`: {_first_sentence(method)}"
        elif inspect.isfunction(member):
            yield f"- `.{name}{_signature(member)}`: {_first_sentence(member)}"


def _attributes(thing: type) -> dict[str, str]:
    """The lines of ``Attributes:`` in a docstring, each in one."""
    _, _, told = inspect.cleandoc(thing.__doc__ or "").partition("Attributes:\n")
    found: dict[str, str] = {}
    name = ""
    for line in told.splitlines():
        if match := re.match(r"    (\w+): (.*)", line):
            name = match[1]
            found[name] = match[2]
        elif name and line.strip():
            found[name] += f" {line.strip()}"
    return {name: text.replace("``", "`") for name, text in found.items()}


def _signature(thing: Callable[..., Any], longest: float = math.inf) -> str:
    """A signature with its annotations as they are written, a line each where it is long."""
    if isinstance(thing, type) and thing.__init__ is Exception.__init__:
        return "(message)"
    signature = inspect.signature(thing)
    shown: list[str] = []
    starred = False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        text = stars.get(parameter.kind, "") + parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {_annotation(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            default = repr(parameter.default)
            if default == "<factory>":
                default = "{}" if _annotation(parameter.annotation).startswith("dict") else "[]"
            text += f" = {default}"
        shown.append(text)
    returned = signature.return_annotation
    gives = "" if returned in (signature.empty, None) else f" -> {_annotation(returned)}"
    joined = ", ".join(shown)
    if len(joined) > longest:
        joined = "\n    " + ",\n    ".join(shown) + ",\n"
    return f"({joined}){gives}"


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _first_sentence(thing: Any) -> str:
    """The first paragraph of a docstring, in one line."""
    paragraph = inspect.cleandoc(thing.__doc__ or "").split("\n\n", maxsplit=1)[0]
    return " ".join(paragraph.split()).replace("``", "`")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


PRINTED = {
    "measures.md": measures,
    "online-metrics.md": online_metrics,
    "cli.md": cli,
    "tables.md": tables,
    "python.md": python,
    "json.md": json_objects,
    "api.md": api,
}


@pytest.mark.parametrize("name", PRINTED)
def test_a_printed_page_is_what_the_code_prints(name: str) -> None:
    page = (REFERENCE / name).read_text(encoding="utf-8")
    assert page == PRINTED[name](), f"docs/reference/{name} is out of date; {AGAIN}"


def first_cells(page: str, heading: str) -> list[str]:
    """The names in the first column of the first table under a heading."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    _, found, after = text.partition(f"\n## {heading}\n")
    assert found, f"docs/reference/{page} has no heading {heading!r}"
    section = after.split("\n## ", maxsplit=1)[0]
    return re.findall(r"^\| `([^`|]+)` \|", section, re.MULTILINE)


def test_the_json_page_names_every_state() -> None:
    from karat.tables import State

    assert first_cells("json.md", "States") == list(get_args(State))


def test_the_formats_page_has_every_format() -> None:
    from karat.formats import FORMATS, ROLES

    rows = [
        f"| `{entry.name}` | {', '.join(r for r in ROLES if r in entry.readers)} "
        f"| {', '.join(r for r in ROLES if r in entry.writers)} "
        f"| {', '.join(f'`{e}`' for e in entry.extensions)} |"
        for entry in FORMATS.values()
    ]
    rows = [re.sub(r"\|  (?=\|)", "| ", row) for row in rows]  # an empty cell
    text = (REFERENCE / "formats.md").read_text(encoding="utf-8")
    lacking = [row for row in rows if row not in text]
    assert not lacking, "put into the table of docs/reference/formats.md:\n" + "\n".join(lacking)
    headings = re.findall(r"^## `(\w+)`", text, re.MULTILINE)
    assert headings == list(FORMATS), "one section for each format, in this order"


def test_the_formats_page_has_every_spelling_of_a_column() -> None:
    from karat.tables.column_names import SPELLINGS

    text = (REFERENCE / "formats.md").read_text(encoding="utf-8")
    rows = [
        f"| {role} | `{column}` | {', '.join(f'`{name}`' for name in names)} |"
        for role, columns in SPELLINGS.items()
        for column, names in columns.items()
    ]
    lacking = [row for row in rows if row not in text]
    assert not lacking, "put into docs/reference/formats.md:\n" + "\n".join(lacking)


def test_the_page_of_exit_codes_names_every_error() -> None:
    from karat import errors

    text = (REFERENCE / "exit-codes.md").read_text(encoding="utf-8")
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.KaratError)
    ]
    for kind in kinds:
        row = f"| `karat.{kind.__name__}` | {kind.exit_code} |"
        assert row in text, f"docs/reference/exit-codes.md lacks {row}"


def test_every_page_stands_in_the_index_of_its_folder() -> None:
    for folder in ("reference", "explanation"):
        index = (ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
        for page in (ROOT / "docs" / folder).glob("*.md"):
            if page.name != "index.md":
                assert f"]({page.name})" in index, f"docs/{folder}/index.md lacks {page.name}"


if __name__ == "__main__":
    for page_name, print_page in PRINTED.items():
        (REFERENCE / page_name).write_text(print_page(), encoding="utf-8", newline="\n")
        print(f"docs/reference/{page_name}")
