"""TOML files: parsing and checked access, with errors that name the file, line, key and fix."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self, TypeVar

from karat.errors import InputError, UsageError, nearest
from karat.formats.tables.source import Source, not_utf8

_Value = TypeVar("_Value")


class NotToml(ValueError):
    """The text is not valid TOML; the message says why, and where if known."""


def table(data: bytes) -> dict[str, Any]:
    """Parse TOML; a byte order mark is ignored.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
        NotToml: it is not TOML, or nested too deeply.
    """
    text = data.decode("utf-8-sig")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise NotToml("values are nested too deeply") from None
    except ValueError as error:  # too long integers raise a ValueError, not a TOMLDecodeError
        raise NotToml(str(error)) from None


def parsed(data: bytes, name: str) -> dict[str, Any]:
    """Parse TOML; errors do not quote the line, which may include a password."""
    try:
        return table(data)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = "not valid TOML: the line is not UTF-8"
        raise not_utf8(what, name, line) from None
    except NotToml as error:
        at = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        ended = len(data.rstrip().splitlines())
        line, where = (int(at[1]), f", column {at[2]}") if at else (ended, ", at its end")
        what = re.sub(r" \(at .*\)$", "", str(error))
        raise InputError(
            f"not valid TOML: {what}",
            file=name,
            line=line,
            fix=f"correct line {line}{where}: a key, =, and a value; strings need quotes",
        ) from None


class Tables:
    """Checked access to the tables of a TOML file; errors about a key state its line."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name, self.data = name, data
        self.content = parsed(data, name)

    def check(self, keys: Mapping[str, Sequence[str] | None]) -> Self:
        """Refuse unknown tables, and unknown keys in a table unless its keys are None."""
        for section, values in self.content.items():
            self.known("", section, tuple(keys))
            if not isinstance(values, dict):
                raise self.wrong(f"{section} is not a table", f"write [{section}]")
            allowed = keys[section]
            for key in values if allowed is not None else ():
                if key not in (allowed or ()):
                    line = line_of(self.data, section, key)
                    self.known(f"[{section}] ", key, allowed or (), line=line)
        return self

    def inner(self, section: str, keys: Sequence[str]) -> Mapping[str, Tables]:
        """The tables ``[section.NAME]`` by name, each with one section of that name."""
        tables = self.content.get(section, {})
        if not isinstance(tables, dict):
            raise self.wrong(f"{section} is not a table", f"write [{section}.NAME]")
        found = {}
        for name, values in tables.items():
            found[name] = copy(self)
            found[name].content = {f"{section}.{name}": values}
            found[name].check({f"{section}.{name}": keys})
        return found

    def wrong(self, what: str, fix: str | None = None, line: int | None = None) -> InputError:
        return InputError(what, file=self.name, line=line, fix=fix)

    def invalid(self, section: str, key: str, expected: str, fix: str) -> InputError:
        value = self.value(section, key)
        what = f"[{section}] {key} is {value!r}, not {expected}"
        return self.wrong(what, fix, line_of(self.data, section, key))

    def known(
        self, where: str, key: str, keys: Sequence[str], what: str = "key", line: int | None = None
    ) -> None:
        """Refuse a word that is not one of ``keys``, with the nearest one."""
        if key not in keys:
            near = nearest(key, keys, 1)
            fix = f"did you mean {near[0]}?" if near else f"one of {', '.join(keys)}"
            raise self.wrong(f"{where}unknown {what} {key!r}", fix, line)

    def value(self, section: str, key: str, default: Any = None) -> Any:
        return self.content.get(section, {}).get(key, default)

    def text(self, section: str, key: str, default: str) -> str:
        return self.text_or_none(section, key, default) or default

    def text_or_none(
        self, section: str, key: str, example: str = "…", *, blank: bool = False
    ) -> str | None:
        value = self.value(section, key)
        if value is None:
            return None
        if not isinstance(value, str) or not (value if blank else value.strip()):
            raise self.invalid(section, key, "a string", f'{key} = "{example}"')
        return value

    def texts(self, section: str, key: str, default: Sequence[str] = ()) -> tuple[str, ...]:
        value = self.value(section, key, list(default))
        if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
            raise self.invalid(section, key, "a list of strings", f'{key} = ["…"]')
        return tuple(value)

    def choice(
        self, section: str, key: str, choices: Sequence[str], what: str = "value"
    ) -> str | None:
        value = self.text_or_none(section, key, choices[0])
        if value is not None:
            self.known(f"[{section}] {key}: ", value, choices, what)
        return value

    def number(
        self,
        section: str,
        key: str,
        default: float,
        low: float,
        high: float,
        *,
        whole: bool = False,
    ) -> float:
        value = self.value(section, key, default)
        good = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not good or not low <= value <= high:
            kind = "a whole number" if whole else "a number"
            expected = f"{kind} from {low:g} to {high:g}"
            raise self.invalid(section, key, expected, f"{key} = {default:g}")
        return float(value)

    def truth(self, section: str, key: str) -> bool:
        value = self.value(section, key, False)
        if not isinstance(value, bool):
            raise self.invalid(section, key, "true or false", f"{key} = false")
        return value

    def read(self, section: str, key: str, default: Any, read: Callable[[Any], _Value]) -> _Value:
        """A value read by a function that raises UsageError; ``default`` is also the example."""
        try:
            return read(self.value(section, key, default))
        except UsageError as error:
            what = error.what if error.what.startswith(key) else f"{key}: {error.what}"
            raise self.wrong(f"[{section}] {what}", f'{key} = "{default}"') from None


def read(path: str | Path) -> Tables:
    with Source(path) as source:
        return Tables(source.whole(), source.name)


def line_of(data: bytes, section: str, key: str) -> int | None:
    """The line that sets a key of a section, from 1; None if not found."""
    inside = False
    for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), start=1):
        if (head := re.match(r"\s*\[+\s*([^\]]*?)\s*\]", line)) is not None and "=" not in head[1]:
            inside = head[1].strip("\"'") == section
        name = re.escape(key)
        if inside and re.match(rf"\s*[\"']?{name}[\"']?\s*=", line):
            return number
    return None
