"""Request templates with placeholders: ``{query}``, ``{size}``, ``{filters.x}`` and others.

Values are inserted as JSON values, SQL parameters or percent-encoded parts of a URL, never as
source text, so that a query cannot change the request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from karat.errors import UsageError, nearest
from karat.tables.engines import EngineConfig, EngineQuery

_PLACEHOLDER = re.compile(r"\{(query|words|size|from|vector|(?:filters|params)\.[^\W\d][\w-]*)\}")
_INDEX = re.compile(r"[\w-]+")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Values:
    query: EngineQuery
    size: int
    start: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)

    def of(self, name: str) -> Any:
        """The value of a placeholder; None for a filter that the query does not have."""
        match name.partition("."):
            case ("query", *_):
                return self.query.text
            case ("words", *_):  # of FTS5: its operators are only words between quotes
                return " OR ".join(f'"{word}"' for word in _WORD.findall(self.query.text)) or '""'
            case ("size", *_):
                return self.size
            case ("from", *_):
                return self.start
            case ("vector", *_):
                return None if self.query.vector is None else list(self.query.vector)
            case ("filters", _, key):
                return self.query.filters.get(key)
            case (_, _, key):
                return self.params[key]


class _Missing(Exception):
    """A filter that the query does not have, outside every list."""


def names_in(template: Any) -> set[str]:
    return {name for text in _texts(template) for name in _PLACEHOLDER.findall(text)}


def check_params(template: Any, params: Mapping[str, Any], where: str) -> None:
    """Refuse a template with a parameter that has no value."""
    for name in sorted(names_in(template)):
        kind, _, key = name.partition(".")
        if kind == "params" and key not in params:
            raise UsageError(
                f"{where}: the template uses {{params.{key}}}, which has no value",
                nearest=nearest(key, params, 1),
                fix=f"params = {{ {key} = … }}",
            )


def index_of(config: EngineConfig) -> str:
    """The name of the index, with the values of its parameters."""
    check_params(config.index, config.params, config.where)

    def value(match: re.Match[str]) -> str:
        text = str(config.params.get(match[1].removeprefix("params."), ""))
        if not _INDEX.fullmatch(text):
            raise UsageError(
                f"{config.where}: {{{match[1]}}} of index is {text!r}, not a part of a name",
                fix="letters, digits, - and _",
            )
        return text

    return _PLACEHOLDER.sub(value, config.index)


def fill_json(template: Any, values: Values) -> Any:
    """A JSON template with its values.

    A string that is one placeholder becomes the value with its type. An element of a list that
    needs a filter the query does not have is left out.
    """
    try:
        return _filled(template, values)
    except _Missing as error:
        raise UsageError(
            f"the template needs {{{error}}}, which this query does not have",
            fix="put that part of the template into a list, which is then left out; or give every "
            "query a value",
        ) from None


def _filled(template: Any, values: Values) -> Any:
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole is not None:
            return _present(values, whole[1])
        return _PLACEHOLDER.sub(lambda m: _text(_present(values, m[1])), template)
    if isinstance(template, Mapping):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return list(_elements(template, values))
    return template


def _elements(template: list[Any], values: Values) -> Iterator[Any]:
    for element in template:
        try:
            yield _filled(element, values)
        except _Missing:
            continue


def _present(values: Values, name: str) -> Any:
    value = values.of(name)
    if value is None and name.startswith("filters."):
        raise _Missing(name)
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def fill_url(url: str, values: Values) -> str:
    """A URL with its values, percent-encoded; a filter that the query does not have is empty."""

    def encoded(match: re.Match[str]) -> str:
        value = values.of(match[1])
        return "" if value is None else quote(_text(value), safe="")

    return _PLACEHOLDER.sub(encoded, url)


def sql_parameters(sql: str, mark: Callable[[str], str]) -> tuple[str, list[str]]:
    """SQL with the database's own parameters, and the placeholder that each stands for.

    Args:
        mark: From the name of a parameter (``p0``) to its form in SQL.
    """
    names: list[str] = []

    def parameter(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return mark(f"p{names.index(match[1])}")

    return _PLACEHOLDER.sub(parameter, sql), names


def _texts(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    elif isinstance(template, Mapping):
        for value in template.values():
            yield from _texts(value)
    elif isinstance(template, list):
        for value in template:
            yield from _texts(value)
