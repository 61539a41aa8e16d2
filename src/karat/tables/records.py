"""Records: the fields that two kinds share, and a record from its JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
_Read = Callable[[Any], Any]


def shared(source: Any, kind: type) -> dict[str, Any]:
    """The values of a record's fields that another kind of record has too, by name."""
    names = {each.name for each in fields(kind)}
    return {each.name: getattr(source, each.name) for each in fields(source) if each.name in names}


def record_of(kind: type[_T], content: Mapping[str, Any]) -> _T:
    """A record from its JSON, with the records and tuples inside it; the inverse of ``asdict``.

    Args:
        kind: A dataclass.
        content: Its fields; values that its properties compute are left out.

    Raises:
        TypeError: a field is missing or unknown.
    """
    known = _known(kind)  # type: ignore[arg-type]
    if not known.inner and not known.computed & content.keys():
        return kind(**content)
    values = {name: value for name, value in content.items() if name not in known.computed}
    read = {name: known.inner[name](values[name]) for name in known.inner.keys() & values.keys()}
    return kind(**values | read)


@dataclass(frozen=True)
class _Known:
    """A kind of record."""

    inner: Mapping[str, _Read]  # how fields are read that are not JSON as they are
    computed: frozenset[str]  # names of properties


@cache
def _known(kind: type) -> _Known:
    hints = get_type_hints(kind)
    inner = {each.name: _reader(hints[each.name]) for each in fields(kind)}
    computed = (name for name in dir(kind) if isinstance(getattr(kind, name), property))
    return _Known({name: read for name, read in inner.items() if read}, frozenset(computed))


def _reader(hint: Any) -> _Read | None:
    """What makes a value of a type from JSON; None if it is one already."""
    if is_dataclass(hint):
        return partial(record_of, hint)  # type: ignore[arg-type]
    origin, found = get_origin(hint), next(filter(None, map(_reader, get_args(hint))), None)
    if found is None:
        return tuple if origin is tuple else None
    inner: _Read = found
    if origin is tuple:
        return lambda values: tuple(map(inner, values))
    if origin in {Union, UnionType}:
        return lambda value: inner(value) if isinstance(value, Mapping | list | tuple) else value
    if origin in {dict, Mapping}:
        return lambda values: {name: inner(value) for name, value in values.items()}
    return lambda values: list(map(inner, values))
