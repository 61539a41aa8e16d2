"""Fields of karat's own JSON files, each asked for with its kind."""

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
    """A kind of karat's own files: a head, and a list of queries.

    Attributes:
        what: What messages call it.
        version: The version that is read and written.
        remade: What makes a new one.
    """

    what: str
    version: int
    remade: str

    @property
    def mark(self) -> str:
        """The first key, which holds the version."""
        return f"karat_{self.what}"

    def marks(self, data: bytes) -> bool:
        """Whether the bytes begin as such a file does."""
        return re.match(rf'\s*\{{\s*"{self.mark}"\s*:'.encode(), data[:200]) is not None

    def content(self, data: bytes, name: str) -> dict[str, Any]:
        """The object in a file, without its mark.

        Raises:
            InputError: it is no JSON, no file of the kind, or one of another version.
        """
        content = parsed(data, name, 1)
        if not isinstance(content, dict) or self.mark not in content:
            raise self.none(name)
        version = content.pop(self.mark)
        if version != self.version or not isinstance(version, int) or isinstance(version, bool):
            newer = isinstance(version, int) and version > self.version
            raise InputError(
                f"it is a {self.what} of version {short(version)}, and this karat reads "
                f"{self.version}",
                file=name,
                fix="pip install --upgrade karat" if newer else self.remade,
            )
        return content

    def none(self, name: str) -> InputError:
        """That a file is not of the kind."""
        return InputError(f"this is no {self.what} of karat's", file=name, fix=self.remade)


def to_bytes(content: Mapping[str, Any]) -> bytes:
    """A file: the head in one line, then one query to a line.

    Args:
        content: The object; ``queries`` is its list of them.
    """
    head = {key: value for key, value in content.items() if key != "queries"}
    queries = ",\n".join(f"  {_dumped(query)}" for query in content["queries"])
    return f'{_dumped(head)[:-1]}, "queries": [\n{queries}\n]}}\n'.encode()


class Fields:
    """The fields of one object.

    Args:
        value: What stands where an object should.
        names: Its fields, each of which must be there, and no other.
        name: The file.
        remade: What makes a new file of the kind.
        where: Which object of the file it is; empty for the file itself.

    Raises:
        InputError: it is no object, or has other fields.
    """

    def __init__(
        self, value: Any, names: Sequence[str], name: str, remade: str, where: str = ""
    ) -> None:
        self.name, self.remade, self.where = name, remade, where
        if not isinstance(value, dict):
            raise InputError(f"{where or 'it'} is no object", file=name, fix=remade)
        self.value = cast(Mapping[str, Any], value)
        lacking = [key for key in names if key not in value]
        odd = [key for key in value if key not in names]
        if lacking or odd:
            what = f"{lacking[0]!r} is lacking" if lacking else f"{odd[0]!r} is not part of one"
            raise InputError(f"{self._at}{what}", file=name, fix=remade)

    @property
    def _at(self) -> str:
        return f"{self.where}: " if self.where else ""

    def wrong(self, key: str, wanted: str) -> InputError:
        """That a field is not what it should be."""
        found = short(self.value[key])
        return InputError(
            f"{self._at}{key} is {found}, not {wanted}", file=self.name, fix=self.remade
        )

    def get(self, key: str, kind: type, wanted: str) -> Any:
        """A field of one kind."""
        value = self.value[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, wanted)
        return value

    def number(self, key: str) -> float:
        """A finite number."""
        value = finite(self.value[key])
        if value is None:
            raise self.wrong(key, "a finite number")
        return value

    def above_zero(self, key: str) -> float:
        """A finite number above 0."""
        value = self.number(key)
        if value <= 0:
            raise self.wrong(key, "a number above 0")
        return value

    def maybe(self, key: str) -> float | None:
        """A finite number or null."""
        return None if self.value[key] is None else self.number(key)


def finite(value: Any) -> float | None:
    """A finite number, or None for what is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None
    return None


def short(value: Any) -> str:
    """A value as JSON, in one line and not too long."""
    text = re.sub(r"\s+", " ", json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else f"{text[:59]}…"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
