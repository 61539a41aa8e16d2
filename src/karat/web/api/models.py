"""Response models: the records that routes return, as OpenAPI describes them.

A response is not validated a second time (docs/decisions/0015-documented-response-models.md); the
tests compare responses with their models. A model is built when the description is asked for.
"""

from __future__ import annotations

import collections.abc
import inspect
import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, make_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import polars as pl

from karat.tables import Pairs, Results, Run
from karat.tables.comparison import Comparison
from karat.tables.experiments.experiment import ExperimentResult
from karat.tables.experiments.interleaving import InterleavingResult
from karat.tables.golden.agreement import Agreement
from karat.tables.online.events import LogStatus
from karat.tables.online.watch import Watched
from karat.tables.release.gate import Gate
from karat.tables.release.trend import Trend
from karat.tables.schema import Column
from karat.workflows.judging.doubts import Doubts

_T = TypeVar("_T")
_COMMENTED = re.compile(r"((?:^    # .*\n)*)^    (\w+): [^#\n]*(?:  # (.*))?$", re.MULTILINE)
_Change = tuple[set[str], dict[str, Any]]
_CHANGES: dict[type, _Change] = {
    Agreement: (set(), {"sentence": str}),
    Comparison: ({"meant"}, {}),
    Doubts: ({"chances"}, {}),
    ExperimentResult: (set(), {"exit_code": int}),
    InterleavingResult: (set(), {"exit_code": int}),
    LogStatus: ({"folder"}, {}),
    Gate: ({"scores", "meant"}, {"exit_code": int}),
    Results: ({"runs", "shown", "scores", "meant"}, {"about": dict[str, dict[str, str]] | None}),
    Trend: (
        {"source", "last"},
        dict.fromkeys(("drifts", "worse", "cannot_tell", "compared"), bool),
    ),
    Watched: (set(), {"exit_code": int}),
}
"""Fields that JSON leaves out, and what it has besides: properties, with their docstrings; one
that may be null may be absent."""
_KINDS: dict[Any, Any] = {
    pl.DataFrame: list[dict[str, Any]],
    Pairs: list[dict[str, Any]],
    Run: str,
    collections.abc.Sequence: list,
    collections.abc.Mapping: dict,
}


@dataclass(frozen=True)
class _Described:
    """Describes a response by a record, or by the columns of a table."""

    record: type | tuple[str, tuple[Column, ...]]
    many: bool = False

    def __get_pydantic_json_schema__(self, _any: Any, handler: Any) -> Any:
        from pydantic import TypeAdapter

        model = self.model()
        core: Any = TypeAdapter(model).core_schema
        shared = core["definitions"] if core["type"] == "definitions" else []
        inner = core["schema"] if core["type"] == "definitions" else core
        if inner["type"] == "definition-ref":
            return handler(core)
        name = f"{model.__module__}.{model.__name__}:{id(model)}"  # a component with a name
        reference = {"type": "definition-ref", "schema_ref": name}
        shared = [*shared, {**inner, "ref": name}]
        return handler({"type": "definitions", "schema": reference, "definitions": shared})

    def model(self) -> type:
        record = self.record
        model = model_of(record) if isinstance(record, type) else _of_columns(*record)
        return _list_of(model) if self.many else model


def one(record: type) -> Any:
    return Annotated[Any, _Described(record)]


def many(record: type) -> Any:
    return Annotated[Any, _Described(record, many=True)]


def rows(name: str, columns: Sequence[Column]) -> Any:
    """The model of a list of rows; a column may be null if optional or if its meaning says so."""
    return Annotated[Any, _Described((name, tuple(columns)), many=True)]


def picked(record: type[_T], source: object, **more: Any) -> _T:
    """A record whose other fields are those of ``source``."""
    names = [each.name for each in fields(record) if each.name not in more]  # type: ignore[arg-type]
    return record(**{name: getattr(source, name) for name in names}, **more)


@cache
def model_of(record: type) -> type:
    """A record without what JSON leaves out, with meanings from its docstring."""
    without, more = _CHANGES.get(record, (set(), {}))
    hints, said = get_type_hints(record), meanings(record)
    members = [
        _member(each.name, _plain(hints[each.name]), said.get(each.name, ""), _is_set(each))
        for each in fields(record)
        if each.name not in without
    ]
    for name, kind in more.items():
        doc = inspect.getdoc(getattr(record, name, None)) or ""
        always = type(None) not in get_args(kind)
        members.append(_member(name, kind, _json(" ".join(doc.split())), always))
    model = make_dataclass(record.__name__, members, kw_only=True)
    model.__module__ = record.__module__
    model.__doc__ = _json((inspect.getdoc(record) or "").partition("\n")[0])
    return model


@cache
def _list_of(model: type) -> type:
    members: list[Any] = [("items", list[model]), ("found", int), ("page", int), ("per", int)]  # type: ignore[valid-type]
    made = make_dataclass(f"{model.__name__}List", [*members, ("next", str | None)])
    made.__doc__ = f"A page of a list: {model.__doc__}"
    return made


@cache
def _of_columns(name: str, columns: tuple[Column, ...]) -> type:
    members = [
        _member(
            column.name,
            _of_dtype(column.dtype, column.optional or "null" in column.meaning),
            column.meaning,
            not column.optional,
        )
        for column in columns
    ]
    model = make_dataclass(name, members, kw_only=True)
    model.__doc__ = ""
    return model


def _of_dtype(dtype: Any, null: bool) -> Any:
    kinds: dict[Any, Any] = {pl.String: str, pl.Float64: float, pl.Int64: int, pl.Boolean: bool}
    listed = isinstance(dtype, pl.List)
    kind = list[_of_dtype(dtype.inner, null)] if listed else kinds[dtype.base_type()]  # type: ignore[misc]
    return kind | None if null else kind


def _member(name: str, kind: Any, meaning: str, required: bool) -> Any:
    from pydantic import Field

    described = Annotated[kind, Field(description=meaning)] if meaning else kind
    return (name, described) if required else (name, described, field(default=None))


def _is_set(each: Any) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _plain(kind: Any) -> Any:
    """A type as JSON has it."""
    if kind in _KINDS:
        return _KINDS[kind]
    if isinstance(kind, type) and is_dataclass(kind):
        return model_of(kind)
    origin, args = get_origin(kind), get_args(kind)
    if not args or origin is Literal:
        return kind
    plain = tuple(map(_plain, args))
    if origin in (Union, UnionType):
        return Union[plain]  # noqa: UP007 - of a tuple
    return _KINDS.get(origin, origin)[plain]


def meanings(record: type) -> dict[str, str]:
    """What fields mean: the comment above or after each, or the docstring of a public class."""
    said: dict[str, str] = {}
    for base in reversed(record.__mro__):
        if not base.__module__.startswith("karat."):
            continue
        doc = inspect.cleandoc(vars(base).get("__doc__") or "").partition("Attributes:\n")[2]
        said |= dict(re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", doc, re.MULTILINE))
        said |= comments(base)
    return {name: _json(" ".join(text.split())) for name, text in said.items()}


def comments(declared: Any) -> dict[str, str]:
    """The comment above or after each field of a class, or each parameter of a function."""
    said = {}
    for above, name, after in _COMMENTED.findall(inspect.getsource(declared)):
        text = above.replace("# ", " ") if above else after
        if text and not text.startswith(("noqa", "type:")):
            said[name] = " ".join(text.split())
    return said


def _json(text: str) -> str:
    return re.sub(r"\bNone\b", "null", text.replace("``", "`"))
