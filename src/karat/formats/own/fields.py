"""Checked access to the fields of karat's own JSON files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from karat.errors import InputError
from karat.formats.tables.jsonl import parsed


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

    def marks(self, data: bytes) -> bool:
        """Whether the bytes begin like a file of this kind."""
        return re.match(rf'\s*\{{\s*"{self.mark}"\s*:'.encode(), data[:200]) is not None

    def content(self, data: bytes, name: str) -> dict[str, Any]:
        """The object in a file, without its mark."""
        content = parsed(data, name, 1)
        if not isinstance(content, dict) or self.mark not in content:
            raise self.none(name)
        version = content.pop(self.mark)
        if version != self.version or not isinstance(version, int) or isinstance(version, bool):
            newer = isinstance(version, int) and version > self.version
            raise InputError(
                f"unsupported {self.what} version {short(version)}; this karat reads version "
                f"{self.version}",
                file=name,
                fix="pip install --upgrade karat" if newer else self.remade,
            )
        return content

    def none(self, name: str) -> InputError:
        return InputError(f"not a karat {self.what}", file=name, fix=self.remade)


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

    def maybe(self, key: str) -> float | None:
        return None if self.value[key] is None else self.number(key)


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
