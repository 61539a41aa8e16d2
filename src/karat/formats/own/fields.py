"""Checked access to the fields of karat's own JSON files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, cast

from karat.errors import InputError
from karat.formats.tables.jsonl import parsed

_PLAIN: Mapping[str, tuple[type, str]] = {
    "str": (str, "text"),
    "bool": (bool, "true or false"),
    "int": (int, "a whole number"),
    "float": (float, "a finite number"),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of karat's own files: a head and a list of queries."""

    what: str
    version: int
    remade: str

    @property
    def mark(self) -> str:
        """The first key, which holds the version."""
        return f"karat_{self.what}"

    def content(self, data: bytes, name: str) -> dict[str, Any]:
        """The object in a file, without its mark."""
        content = parsed(data, name, 1)
        if not isinstance(content, dict) or self.mark not in content:
            raise self.none(name)
        check_version(content.pop(self.mark), self.version, self.what, name, self.remade)
        return content

    def none(self, name: str) -> InputError:
        return InputError(f"not a karat {self.what}", file=name, fix=self.remade)


def check_version(version: Any, known: int, what: str, name: str, fix: str | None = None) -> None:
    """Refuse another version than the known one of a file or line."""
    if version != known or not isinstance(version, int) or isinstance(version, bool):
        newer = isinstance(version, int) and version > known
        raise InputError(
            f"unsupported {what} version {short(version)}; this karat reads version {known}",
            file=name,
            fix="pip install --upgrade karat" if newer else fix,
        )


def to_bytes(content: Mapping[str, Any]) -> bytes:
    """The bytes of a file: the head on one line, then one query per line."""
    head = {key: value for key, value in content.items() if key != "queries"}
    queries = ",\n".join(f"  {dumped(query)}" for query in content["queries"])
    return f'{dumped(head)[:-1]}, "queries": [\n{queries}\n]}}\n'.encode()


class Fields:
    def __init__(
        self, value: Any, names: Sequence[str], name: str, remade: str, where: str = ""
    ) -> None:
        self.name, self.remade, self.where = name, remade, where
        if not isinstance(value, dict):
            raise InputError(f"{where or 'the file'} is not an object", file=name, fix=remade)
        self.value = cast(Mapping[str, Any], value)
        lacking = [key for key in names if key not in value]
        odd = [key for key in value if key not in names]
        if lacking or odd:
            what = f"missing field {lacking[0]!r}" if lacking else f"unknown field {odd[0]!r}"
            raise InputError(f"{self._at}{what}", file=name, fix=remade)

    @property
    def _at(self) -> str:
        return f"{self.where}: " if self.where else ""

    def wrong(self, key: str, expected: str) -> InputError:
        return InputError(
            f"{self._at}{key} is {short(self.value[key])}, not {expected}",
            file=self.name,
            fix=self.remade,
        )

    def get(self, key: str, kind: type, expected: str) -> Any:
        """A field of a type; ``expected`` describes it in errors."""
        value = self.value[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, expected)
        return value

    def text_or_none(self, key: str) -> str | None:
        return None if self.value[key] is None else self.get(key, str, "text or null")

    def plain(self, kind: type, *but: str) -> dict[str, Any]:
        """The fields of a record that are text, numbers, true or false, or null, by its types."""
        found: dict[str, Any] = {}
        for name, annotation in ((each.name, str(each.type)) for each in dataclass_fields(kind)):
            base, _, null = annotation.partition(" | ")
            if name in but or name not in self.value or base not in _PLAIN:
                continue
            if null and self.value[name] is None:
                found[name] = None
            elif base == "float":
                found[name] = self.number(name)
            else:
                expected = f"{_PLAIN[base][1]}{' or null' if null else ''}"
                found[name] = self.get(name, _PLAIN[base][0], expected)
        return found

    def number(self, key: str) -> float:
        value = finite(self.value[key])
        if value is None:
            raise self.wrong(key, "a finite number")
        return value

    def above_zero(self, key: str) -> float:
        value = self.number(key)
        if value <= 0:
            raise self.wrong(key, "a number above 0")
        return value


def finite(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None
    return None


def short(value: Any) -> str:
    """A value as JSON on one line, shortened."""
    text = re.sub(r"\s+", " ", json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else f"{text[:59]}…"


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
