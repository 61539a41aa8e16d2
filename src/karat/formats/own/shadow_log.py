"""Shadow logs: JSON Lines of what a baseline and a candidate answered to the same requests.

The first line says what the two are; each further line is one request:

    {"id": "1", "query": "read a file", "at_us": 1790000000000000, "phase": "warm", "answers":
    {"baseline": {"state": "ok", "latency_us": 900, "doc_ids": ["a", "b"]}, …}, "dropped": 0}

A process appends whole lines, so a kill cuts the last one at most.
"""

from __future__ import annotations

import errno
import json
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import polars as pl

from karat.errors import InputError
from karat.formats import toml
from karat.formats.own.fields import check_version
from karat.formats.tables.detect import own_kind
from karat.formats.tables.jsonl import parsed
from karat.formats.tables.source import EmptyFile, Source
from karat.online.rules import margin
from karat.tables.about import flat
from karat.tables.experiments.shadow import REQUESTS, SIDES, Increase, Observed, ShadowLimits, Side
from karat.tables.run import Run

VERSION = 1
MARK = "karat_shadow_log"
_STATES = ("ok", "empty", "failed")
_MADE = "write one with karat shadow run, or karat.Shadow in your service"
_SHARES = ("min_answered", "max_dropped", "max_errors", "max_zero_gained", "min_overlap")
LIMITS = ("min_requests", *_SHARES, "max_p95_ms", "max_p95_increase")


class ShadowLog:
    """A log that is appended to, line by line; safe to use from several threads.

    Args:
        path: The file; a new one gets the header.
        header: What the two sides are, and `digest` of it.
        resume: Whether a line that was cut is removed, which no other process may be writing.

    Raises:
        InputError: it is another file, cannot be written, or is a log of something else.
    """

    def __init__(
        self, path: str | Path, header: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        self.path, self._lock = Path(path), threading.Lock()
        self.done: set[str] = set()  # ids of requests that the file has; with `resume` only
        head = json.dumps({MARK: VERSION, **header}, ensure_ascii=False).encode() + b"\n"
        with ExitStack() as stack:
            try:
                self._stream = stack.enter_context(self.path.open("a+b", buffering=0))
                self._stream.seek(0)
                first = self._stream.readline()
                if not first or (b"\n" not in first and resume):
                    self._stream.truncate(0)
                    self._stream.write(head)
                else:
                    self._check(first, header)
                    self._repair_end(resume=resume)
            except OSError as error:
                raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from None
            stack.pop_all()  # it stays open

    def _check(self, first: bytes, header: Mapping[str, Any]) -> None:
        found = _header(first, str(self.path))
        if found.get("digest") != header["digest"]:
            raise InputError(
                "the log is of other engines, queries or settings",
                file=str(self.path),
                line=1,
                fix="write to another file, or delete this one",
            )

    def _repair_end(self, *, resume: bool) -> None:
        end = self._stream.seek(0, 2)
        self._stream.seek(end - 1)
        whole = self._stream.read(1) == b"\n"
        if resume:
            self._stream.seek(0)
            lines = self._stream.read().split(b"\n")
            if not whole:
                self._stream.truncate(end - len(lines[-1]))
            self.done = {found for line in lines[1:-1] if (found := _id_of(line))}
        elif not whole:
            self._stream.write(b"\n")

    def append(self, line: Mapping[str, Any]) -> None:
        """Append a request; raises OSError, such as of a full disk."""
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            if self._stream.write(data) != len(data):
                raise OSError(errno.ENOSPC, "No space left on device")

    def after_fork(self) -> None:
        """In a new process, where another thread may have held the lock."""
        self._lock = threading.Lock()

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _id_of(line: bytes) -> str:
    """The id of a request; empty if the line was cut."""
    try:
        row = json.loads(line)
    except ValueError:
        return ""
    return str(row.get("id", "")) if isinstance(row, dict) else ""


def is_shadow_log(path: str | Path) -> bool:
    """Whether a file begins like a shadow log."""
    with Source(path) as source:
        return own_kind(source) == "a shadow log"


def head_of(path: str | Path) -> dict[str, Any]:
    """The first line of a log: what both sides are."""
    try:
        with Source(path) as source:
            return _header(source.head.partition(b"\n")[0], source.name)
    except EmptyFile:
        raise InputError("the file is empty", file=str(path), fix=_MADE) from None


def read_shadow_log(path: str | Path) -> Observed:
    """The requests of a log, and both sides' answers to them.

    Raises:
        InputError: it is not a shadow log, with file, line and fix.
    """
    try:
        source = Source(path)
    except EmptyFile:
        raise InputError("the file is empty", file=str(path), fix=_MADE) from None
    with source:
        lines = source.lines()
        number, first = next(lines)
        header = _header(first, source.name, number)
        reader = _Reader(source.name)
        for number, line in lines:
            if line.strip():
                reader.take(number, line)
    return reader.observed(header)


def _header(line: bytes, name: str, number: int = 1) -> dict[str, Any]:
    try:
        header = parsed(line, name, number)
    except InputError:
        header = None
    if not isinstance(header, dict) or MARK not in header:
        raise InputError("not a shadow log", file=name, line=number, fix=_MADE)
    check_version(header[MARK], VERSION, "shadow log", name)
    return header


def _no_rows(schema: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {name: [] for name in schema}


class _Reader:
    def __init__(self, name: str) -> None:
        self.name, self.torn = name, 0
        self.requests = _no_rows(REQUESTS)
        self.documents = {side: _no_rows(_DOCUMENTS) for side in SIDES}
        self.answers = {side: _no_rows(_ANSWERS) for side in SIDES}
        self.seen: set[str] = set()
        self.last_us: int | None = None
        self.dropped: dict[str, int] = {}  # of each process

    def take(self, number: int, line: bytes) -> None:
        try:
            row = json.loads(line)
        except ValueError:
            self.torn += 1  # the process was killed
            return
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise self.wrong("a request has no id", number)
        request = row["id"]
        process = request.rpartition("-")[0]
        dropped = self._whole(row.get("dropped", 0), "dropped", number)
        self.dropped[process] = max(self.dropped.get(process, 0), dropped or 0)
        if "answers" not in row:  # the last line of a process
            return
        if request in self.seen:
            raise self.wrong(f"duplicate id {request!r}", number)
        self.seen.add(request)
        query, phase = row.get("query"), row.get("phase", "warm")
        if not isinstance(query, str) or not isinstance(phase, str):
            raise self.wrong("query and phase are not text", number)
        if row.get("query_id") is not None and not isinstance(row["query_id"], str):
            raise self.wrong("query_id is not text", number)
        late = self._whole(row.get("late_us", 0), "late_us", number)
        at = self._whole(row.get("at_us"), "at_us", number)
        self.last_us = at if self.last_us is None else max(self.last_us, at or 0)
        values = request, query, row.get("query_id"), phase, late or 0
        for column, value in zip(self.requests.values(), values, strict=True):
            column.append(value)
        answers = row["answers"]
        if not isinstance(answers, dict) or not set(answers) <= set(SIDES):
            raise self.wrong(f"answers are of {', '.join(SIDES)}", number)
        for side, answer in answers.items():
            self._answer(side, request, answer, number)

    def _answer(self, side: Side, request: str, answer: Any, number: int) -> None:
        state = answer.get("state") if isinstance(answer, dict) else None
        docs = answer.get("doc_ids") or [] if isinstance(answer, dict) else None
        if state not in _STATES or not isinstance(docs, list):
            raise self.wrong(f"the state of {side} is not one of {', '.join(_STATES)}", number)
        if not all(isinstance(doc, str) and doc for doc in docs):
            raise self.wrong(f"doc_ids of {side} are not ids", number)
        error = answer.get("error")
        docs = [] if state == "failed" else list(dict.fromkeys(docs))
        values = (
            request,
            "failed" if state == "failed" else "ok" if docs else "empty",
            self._whole(answer.get("latency_us"), "latency_us", number),
            error if isinstance(error, str) else None,
        )
        for column, value in zip(self.answers[side].values(), values, strict=True):
            column.append(value)
        rows = self.documents[side]
        rows["query_id"] += [request] * len(docs)
        rows["doc_id"] += docs
        rows["score"] += range(-1, -len(docs) - 1, -1)  # the order in which they were returned

    def _whole(self, value: Any, what: str, number: int) -> int | None:
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.wrong(f"{what} is not a whole number of 0 or more", number)
        return value

    def wrong(self, what: str, number: int) -> InputError:
        return InputError(what, file=self.name, line=number, fix=_MADE)

    def observed(self, header: Mapping[str, Any]) -> Observed:
        about, names = (header.get(key) or {} for key in ("about", "engines"))
        named: dict[Side, str] = {side: str(names.get(side, side)) for side in SIDES}
        named["again"] = named["baseline"]
        runs = {
            side: Run.from_batches(
                named[side],
                [pl.DataFrame(self.documents[side], schema=_DOCUMENTS)],
                answers=pl.DataFrame(self.answers[side], schema=_ANSWERS),
                source=self.name,
            )
            for side in SIDES
            if side != "again" or self.answers[side]["query_id"]
        }
        texts: dict[Side, dict[str, str]] = {
            side: flat(about.get("baseline" if side == "again" else side) or {}, self.name)
            for side in runs
        }
        lines = "1 line was" if self.torn == 1 else f"{self.torn:,} lines were"
        notes = [f"{lines} cut when a process stopped, and left out"] if self.torn else []
        planned = header.get("requests")
        return Observed(
            pl.DataFrame(self.requests, schema=REQUESTS), runs, texts, named,
            planned if isinstance(planned, int) else None, sum(self.dropped.values()), notes,
            self.last_us,
        )  # fmt: skip


_DOCUMENTS: dict[str, Any] = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
_ANSWERS: dict[str, Any] = {
    "query_id": pl.String, "state": pl.String, "latency_us": pl.Int64, "error": pl.String,
}  # fmt: skip


def read_limits(path: str | Path) -> ShadowLimits:
    """The limits of ``[shadow]`` in a TOML file; those it leaves out have their defaults."""
    return limits_of(toml.read(path).check({"shadow": LIMITS}))


def limits_of(table: toml.Tables) -> ShadowLimits:
    """The limits of ``[shadow]``, which may have other keys too."""
    given = table.content.get("shadow", {})
    found: dict[str, Any] = {}
    for key in filter(given.__contains__, LIMITS):
        value = given[key]
        if value is False:
            found[key] = None
        elif key == "min_requests":
            found[key] = int(table.number("shadow", key, 200, 1, 10**9, whole=True))
        elif key == "max_p95_ms":
            found[key] = table.number("shadow", key, 300, 0, 1e9)
        elif key == "max_p95_increase":
            size, relative = _margin(table, key, "20%", "a share, or milliseconds")
            found[key] = Increase(size, relative)
        else:
            share, _ = _margin(table, key, "1%", "a share from 0 to 1")
            if share > 1:
                raise table.invalid("shadow", key, "a share from 0 to 1", f'{key} = "1%"')
            found[key] = share
    return ShadowLimits(**found)


def _margin(table: toml.Tables, key: str, example: str, expected: str) -> tuple[float, bool]:
    value = table.value("shadow", key)
    known = isinstance(value, int | float | str) and not isinstance(value, bool)
    read = margin(str(value), 1e9) if known else None
    if read is None:
        raise table.invalid("shadow", key, expected, f'{key} = "{example}"')
    return read
