"""Histories, as JSON Lines: one point per line, appended by each evaluation."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from karat.errors import InputError
from karat.formats.own.fields import Fields, check_version
from karat.formats.own.query_values import MOST, unpacked
from karat.formats.tables.jsonl import parsed
from karat.formats.tables.source import Source
from karat.formats.tables.writing import beside
from karat.tables.release.gate import EXIT_CODES
from karat.tables.release.history import HASHES, VERSION, Answered, ByQuery, Kind, Point, Value

_Checked = TypeVar("_Checked")
_MARK = "karat_history"
_RESTORED = "delete the line, or restore the file from version control"
_LATER = ("answered", "series", "by_query")  # fields missing from lines of earlier versions
_ANSWERED, _BY_QUERY, _SLICED = (
    tuple(each.name for each in fields(kind)) for kind in (Answered, ByQuery, Value)
)
_VALUE = tuple(name for name in _SLICED if name not in {"attribute", "slice"})
_POINT = (*(each.name for each in fields(Point)), "slices")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")


def append(path: str | Path, *points: Point) -> None:
    """Append points to a history, which is created if necessary.

    A name in ``.gz`` compresses it.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise InputError(
            "the history is not a file", file=str(path), fix="name a file, such as trend.jsonl"
        )
    added = b"".join(_line(point) for point in points)
    append_lines(path, added, lambda before: _check_end(before, str(path)))


def append_lines(path: Path, lines: bytes, checked: Callable[[bytes], _Checked]) -> _Checked:
    """Append lines to a file, which is created if necessary, and return ``checked`` of the others.

    Writers lock the file and replace it as a whole, so no line is lost or half-written.
    """
    with locked(path):
        before = held(path)
        result = checked(before)
        if before and not before.endswith(b"\n"):
            before += b"\n"
        with beside(path) as stream:
            stream.write(before + lines)
    return result


def held(path: Path) -> bytes:
    """The content of a file; empty without one."""
    if not path.exists() or not path.stat().st_size:
        return b""
    with Source(path) as source:
        return source.whole()


def read(
    path: str | Path,
    told: Callable[[str], None] | None = None,
    damaged: Callable[[InputError], None] | None = None,
) -> list[Point]:
    """The points of a history, in line order.

    Args:
        told: Called with a note if the last line is truncated, because a program was stopped while
            it wrote; the line is then skipped. An error if None.
        damaged: Called with the error of each damaged line, which is then skipped. An error if
            None, or if all lines are damaged.
    """
    with Source(path) as source:
        data, name = source.whole(), source.name
    if f'"{_MARK}"'.encode() not in data:
        raise _no_history(name)
    lines = data.split(b"\n")
    if told is not None and lines[1:] and lines[-1].strip() and not _is_json(lines[-1]):
        told(f"{name}: the last line ({len(lines)}) is truncated and was skipped")
        lines.pop()
    points: list[Point] = []
    wrong: list[InputError] = []
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                points.append(_point(line, name, number))
        except InputError as error:
            if damaged is None:
                raise
            wrong.append(error)
    if damaged is not None and wrong:
        if not points:
            raise wrong[0]
        for damage in wrong:
            damaged(damage)
    return points


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _check_end(data: bytes, name: str) -> None:
    """Refuse to append to another file, or after a line that is truncated."""
    if data and f'"{_MARK}"'.encode() not in data.lstrip().split(b"\n", 1)[0]:
        raise _no_history(name)
    before, _, last = data.rpartition(b"\n")
    if last.strip() and not _is_json(last):
        # Appending would turn a truncated last line into damage in the middle.
        line = before.count(b"\n") + 1 + bool(before)
        what = "the last line is truncated; nothing was appended"
        raise InputError(what, file=name, line=line, fix=_RESTORED)


def _no_history(name: str) -> InputError:
    return InputError(
        "not a karat history",
        file=name,
        fix="karat evaluate … --history FILE.jsonl creates one",
    )


@contextmanager
def locked(path: Path, seconds: float | None = None) -> Iterator[int]:
    """Lock a file against writes by other karat processes (on Windows: of the same user).

    The system releases the lock of a killed process, unless a program that this started has the
    descriptor, which is returned. After ``seconds``, if given, waiting ends in TimeoutError.
    """
    until = math.inf if seconds is None else time.monotonic() + seconds
    if sys.platform == "win32":
        # An open file cannot be replaced there, so lock another file.
        import msvcrt

        key = sha256(str(path.resolve()).casefold().encode()).hexdigest()[:32]
        with (Path(tempfile.gettempdir()) / f"karat-{key}.lock").open("a+b") as lock:
            while True:
                lock.seek(0)
                try:
                    msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError:  # it gives up after ten seconds
                    if time.monotonic() > until:
                        raise TimeoutError from None
                    continue
            try:
                yield lock.fileno()
            finally:
                lock.seek(0)
                msvcrt.locking(lock.fileno(), msvcrt.LK_UNLCK, 1)
    else:
        while True:
            try:
                lock = path.open("ab")
            except OSError as error:
                what = f"cannot be written: {error.strerror}"
                raise InputError(what, file=str(path)) from None
            with lock:
                _wait_for(lock.fileno(), until)
                if not _same(path, lock.fileno()):
                    continue  # the file was replaced while we waited
                yield lock.fileno()
                return


def _wait_for(lock: int, until: float) -> None:
    import fcntl

    if until == math.inf:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError from None
            time.sleep(0.005)
        else:
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
        raise InputError("the line is not a point of a history", file=name)
    check_version(content.pop(_MARK), VERSION, "point", name)
    later = dict.fromkeys(_LATER)
    head = Fields(later | content, _POINT, name, _RESTORED)
    kind = head.get("kind", str, "evaluate or gate")
    if kind not in {"evaluate", "gate"}:
        raise head.wrong("kind", "evaluate or gate")
    verdict = head.text_or_none("verdict")
    if verdict is not None and verdict not in EXIT_CODES:
        raise head.wrong("verdict", f"one of {', '.join(EXIT_CODES)}")
    rows = [
        *(_value(row, name, False) for row in head.get("values", list, "a list of values")),
        *(_value(row, name, True) for row in head.get("slices", list, "a list of values")),
    ]
    if len({(row.measure, row.attribute, row.slice) for row in rows}) < len(rows):
        raise InputError("duplicate measure", file=name)
    hashes = Fields(head.get("hashes", dict, "hashes"), HASHES, name, _RESTORED, "hashes")
    return Point(
        time=_time(head),
        kind=cast(Kind, kind),
        values=tuple(rows),
        hashes={key: hashes.text_or_none(key) for key in HASHES},
        answered=_answered(head.value["answered"], name),
        by_query=_by_query(head.value["by_query"], name),
        **head.plain(Point, "time"),
    )


def _answered(counts: Any, name: str) -> Answered | None:
    if counts is None:
        return None
    found = Fields(counts, _ANSWERED, name, _RESTORED, "answered")
    counted = {key: found.get(key, int, "a count") for key in _ANSWERED}
    for key, count in counted.items():
        if not 0 <= count <= counted["queries"]:
            raise found.wrong(key, "a count of the queries")
    return Answered(**counted)


def _by_query(given: Any, name: str) -> ByQuery | None:
    if given is None:
        return None
    found = Fields(given, _BY_QUERY, name, _RESTORED, "by_query")
    n = found.get("n", int, "a count")
    if not 0 < n <= MOST:
        raise found.wrong("n", f"a count from 1 to {MOST:,}")
    values = found.get("values", dict, "values by measure")
    weights = found.text_or_none("weights")
    for text in (*values.values(), *([] if weights is None else [weights])):
        if not isinstance(text, str):
            raise found.wrong("values", "packed values by measure")
        unpacked(text, n)
    return ByQuery(found.get("queries", str, "a hash"), n, values, weights)


def _time(head: Fields) -> str:
    time: str = head.get("time", str, "a time")
    expected = "a time in UTC such as 2026-03-01T02:00:00Z"
    if not _TIME.fullmatch(time):
        raise head.wrong("time", expected)
    try:
        datetime.fromisoformat(time).astimezone(UTC)
    except (ValueError, OverflowError):
        raise head.wrong("time", expected) from None
    return time


def _value(row: Any, name: str, sliced: bool) -> Value:
    found = Fields(row, _SLICED if sliced else _VALUE, name, _RESTORED, "a value")
    for key in ("attribute", "slice") if sliced else ():
        found.get(key, str, "text")
    value = Value(**found.plain(Value))
    if value.n is not None and value.n < 0:
        raise found.wrong("n", "a count")
    low, high = value.ci_low, value.ci_high
    if (low is None) != (high is None) or (low is not None and high is not None and low > high):
        raise found.wrong("ci_low", "the lower end of an interval")
    return value


def _line(point: Point) -> bytes:
    """A point as a line, checked by reading it back."""
    try:
        text = json.dumps(point.to_dict(), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"cannot store a point: {error}", fix="use finite numbers only") from None
    line = text.encode("utf-8", "replace")  # file names may be invalid text
    try:
        _read_point(json.loads(line), "the history")
    except InputError as error:
        raise InputError(f"cannot store a point: {error.what}") from None
    return line + b"\n"
