"""JSON paths (RFC 9535) in replies: ``$.hits[*]``, ``$.id``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karat.errors import MissingExtra, UsageError


def path(text: str, where: str) -> Callable[[Any], list[Any]]:
    """A function that finds all values at a path."""
    try:
        import jsonpath
    except ImportError:
        raise MissingExtra("python-jsonpath", "engines", f"{where}, a JSON path,") from None
    try:
        compiled = jsonpath.compile(text)
    except jsonpath.JSONPathError as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(
            f"{where} is not a JSON path: {text!r}: {reason}", fix="as in $.results[*] or $.id"
        ) from None
    every = text.endswith("[*]")
    keys = _keys(jsonpath.compile(text.removesuffix("[*]")) if every else compiled)
    if keys is None:
        return compiled.findall
    if not every:
        return lambda value: _walk(value, keys)

    def elements(value: Any) -> list[Any]:
        found = _walk(value, keys)
        return found[0] if found and isinstance(found[0], list) else compiled.findall(value)

    return elements


def _keys(compiled: Any) -> list[str | int] | None:
    """The names and places of a path to one value: walked twenty times faster than evaluated."""
    import jsonpath

    if not isinstance(compiled, jsonpath.JSONPath) or not compiled.singular_query():
        return None
    selectors = [segment.selectors[0] for segment in compiled.segments]
    return [each.name if hasattr(each, "name") else each.index for each in selectors]  # type: ignore[attr-defined]


def _walk(value: Any, keys: list[str | int]) -> list[Any]:
    for key in keys:
        if not isinstance(value, dict if isinstance(key, str) else list):
            return []
        try:
            value = value[key]  # type: ignore[index]
        except (KeyError, IndexError):
            return []
    return [value]
