"""Histories, as JSON Lines: one point to a line, added by whoever measures."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from karat.errors import InputError
from karat.formats.fields import Fields, short
from karat.formats.jsonl import parsed
from karat.formats.source import Source
from karat.formats.writing import beside
from karat.tables.gate import EXIT_CODES
from karat.tables.history import HASHES, VERSION, Kind, Point, Value

_MARK = "karat_history"
_RESTORED = "take the line out, or restore the file from version control"
_POINT = (
    "time",
    "kind",
    "run",
    "commit",
    "verdict",
    "rules",
    "karat",
    "values",
    "slices",
    "hashes",
)
_VALUE = ("measure", "value", "ci_low", "ci_high", "n")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")


def append(path: str | Path, *points: Point) -> None:
    """Add points at the end of a history, which is made if there is none.

    Writers wait for each other (a lock of the file), and the whole file is written beside its
    place, then renamed: no line is ever lost, or there by half. A name that ends in ``.gz``
    compresses.

    Raises:
        InputError: the file is something other than a history, or cannot be written.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise InputError("a history is a file", file=str(path), fix="name a file, as trend.jsonl")
    added = "".join(f"{_dumped(point)}\n" for point in points).encode()
    with _locked(path):
        before = _held(path)
        if before and not before.endswith(b"\n"):
            before += b"\n"
        with beside(path) as stream:
            stream.write(before + added)


def read(path: str | Path) -> list[Point]:
    """The points of a history, in the order of its lines.

    Raises:
        InputError: it cannot be read, holds no point, a line is damaged, or a newer karat wrote it.
    """
    with Source(path) as source:
        data, name = source.whole(), source.name
    if f'"{_MARK}"'.encode() not in data:
        raise _no_history(name)
    lines = enumerate(data.split(b"\n"), start=1)
    return [_point(line, name, number) for number, line in lines if line.strip()]


def _held(path: Path) -> bytes:
    """What the history holds so far."""
    if not path.exists() or not path.stat().st_size:
        return b""
    with Source(path) as source:
        data = source.whole()
    if f'"{_MARK}"'.encode() not in data.lstrip().split(b"\n", 1)[0]:
        raise _no_history(str(path))
    return data


def _no_history(name: str) -> InputError:
    return InputError(
        "this is no history of karat's",
        file=name,
        fix="karat evaluate … --history FILE.jsonl begins one",
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """No other karat writes the file meanwhile (on Windows: none of the same user)."""
    if sys.platform == "win32":
        # A file that is open cannot be renamed onto there, so another one stands for it.
        import msvcrt

        key = sha256(str(path.resolve()).casefold().encode()).hexdigest()[:32]
        with (Path(tempfile.gettempdir()) / f"karat-{key}.lock").open("a+b") as lock:
            while True:
                lock.seek(0)
                try:
                    msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError:  # it gives up after ten seconds
                    continue
            try:
                yield
            finally:
                lock.seek(0)
                msvcrt.locking(lock.fileno(), msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        while True:
            try:
                lock = path.open("ab")
            except OSError as error:
                what = f"cannot be written: {error.strerror}"
                raise InputError(what, file=str(path)) from None
            with lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not _same(path, lock.fileno()):
                    continue  # while we waited, another took its place
                yield
                return


def _same(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _point(line: bytes, name: str, number: int) -> Point:
    try:
        return _read_point(parsed(line, name, number), name)
    except InputError as error:
        fix = error.fix if error.fix and error.fix.startswith("pip") else _RESTORED
        raise InputError(error.what, file=name, line=number, fix=fix) from None


def _read_point(content: Any, name: str) -> Point:
    if not isinstance(content, dict) or _MARK not in content:
        raise InputError("the line is no point of a history", file=name)
    version = content.pop(_MARK)
    if version != VERSION or not isinstance(version, int) or isinstance(version, bool):
        newer = isinstance(version, int) and version > VERSION
        raise InputError(
            f"it is a point of version {short(version)}, and this karat reads {VERSION}",
            file=name,
            fix="pip install --upgrade karat" if newer else None,
        )
    head = Fields(content, _POINT, name, _RESTORED)
    kind = head.get("kind", str, "evaluate or gate")
    if kind not in {"evaluate", "gate"}:
        raise head.wrong("kind", "evaluate or gate")
    verdict = _text_or_none(head, "verdict")
    if verdict is not None and verdict not in EXIT_CODES:
        raise head.wrong("verdict", f"one of {', '.join(EXIT_CODES)}")
    rows = [
        *(_value(row, name, False) for row in head.get("values", list, "a list of values")),
        *(_value(row, name, True) for row in head.get("slices", list, "a list of values")),
    ]
    if len({(row.measure, row.attribute, row.slice) for row in rows}) < len(rows):
        raise InputError("a measure stands twice in it", file=name)
    hashes = Fields(head.get("hashes", dict, "hashes"), HASHES, name, _RESTORED, "hashes")
    return Point(
        time=_time(head),
        kind=cast(Kind, kind),
        run=head.get("run", str, "a name"),
        commit=_text_or_none(head, "commit"),
        verdict=verdict,
        rules=head.get("rules", str, "text"),
        karat=head.get("karat", str, "a version"),
        values=tuple(rows),
        hashes={key: _text_or_none(hashes, key) for key in HASHES},
    )


def _time(head: Fields) -> str:
    time: str = head.get("time", str, "a time")
    wanted = "a time in UTC, as 2026-03-01T02:00:00Z"
    if not _TIME.fullmatch(time):
        raise head.wrong("time", wanted)
    try:
        datetime.fromisoformat(time).astimezone(UTC)
    except (ValueError, OverflowError):
        raise head.wrong("time", wanted) from None
    return time


def _value(row: Any, name: str, sliced: bool) -> Value:
    names = (*_VALUE, "attribute", "slice") if sliced else _VALUE
    fields = Fields(row, names, name, _RESTORED, "a value")
    n = row["n"]
    if n is not None and fields.get("n", int, "a count") < 0:
        raise fields.wrong("n", "a count")
    low, high = fields.maybe("ci_low"), fields.maybe("ci_high")
    if (low is None) != (high is None) or (low is not None and high is not None and low > high):
        raise fields.wrong("ci_low", "the lower end of an interval")
    return Value(
        measure=fields.get("measure", str, "a measure"),
        value=fields.maybe("value"),
        ci_low=low,
        ci_high=high,
        n=n,
        attribute=fields.get("attribute", str, "a name") if sliced else None,
        slice=fields.get("slice", str, "a value") if sliced else None,
    )


def _text_or_none(fields: Fields, key: str) -> str | None:
    return None if fields.value[key] is None else fields.get(key, str, "text or null")


def _dumped(point: Point) -> str:
    return json.dumps(point.to_dict(), ensure_ascii=False, allow_nan=False)
