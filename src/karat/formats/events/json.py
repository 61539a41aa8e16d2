"""Logs as JSON: one object per line, an array of objects, or OpenSearch search responses."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from karat.errors import InputError
from karat.formats.events.fields import ODD, WRAPPED, as_text, is_object, parsed
from karat.formats.events.lines import LONGEST, NO_TEXT, Lines, encoding_of, lines, not_utf8
from karat.formats.events.tally import Tally
from karat.formats.events.vocabulary import AGENTS, ANYWHERE, BOT_FLAGS, COLUMNS
from karat.formats.tables.source import Source

LINE = "_line"  # the column with the line (or row) number
NO_JSON = "not a JSON object, or truncated"
TOO_LONG = f"longer than {LONGEST >> 20} MiB"
_SAMPLED, _ONE_IN = 400, 16  # lines of a chunk sampled for field names: at least, and one in
_MOST_NAMES = 300
_AT_ONCE = 20_000
_ODD = re.compile(ODD.encode())
_ALWAYS = (
    *WRAPPED, "query_attributes", "event_attributes", "query_response_hit_ids",
    "query_response_objects_ids", "session_id", "user_id", "client_id", "application",
    "user_query", "query_id", "timestamp", "action_name",
    *(name for names in (*COLUMNS.values(), *ANYWHERE.values()) for name in names[:1]
      if "." not in name),
    *BOT_FLAGS, *AGENTS, "timed_out", "took",
)  # fmt: skip
"""Fields that are read even if no sampled line has them."""


class Names:
    """Fields of the objects seen so far, and those ``named`` in a mapping, which may be rare."""

    def __init__(self, named: Iterable[str] = ()) -> None:
        self.all = dict.fromkeys([*_ALWAYS, *(name.split(".", 1)[0] for name in named)])
        self.more = False

    def look(self, row: dict[str, Any]) -> None:
        for name in row:
            if name not in self.all:
                if len(self.all) < _MOST_NAMES:
                    self.all[name] = None
                else:
                    self.more = True

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Polars schema: all text; nested values are JSON."""
        return dict.fromkeys(self.all, pl.String())


def read_lines(source: Source, tally: Tally, names: Names) -> Iterator[pl.DataFrame]:
    """JSON Lines as frames of text with ``LINE``; raises InputError on damaged compression."""
    for chunk in lines(source):
        tally.rows += len(chunk.long)
        tally.drop(TOO_LONG, chunk.long)
        if chunk.data.strip():
            yield _frame(chunk, tally, names)


def _frame(chunk: Lines, tally: Tally, names: Names) -> pl.DataFrame:
    data = chunk.data
    count = data.count(b"\n") + (not data.endswith(b"\n"))
    for raw in _sample(data, count):
        row = parsed(raw)
        if row is not None:
            names.look(row)
    odd: list[tuple[int, bytes]] = []
    numbers: pl.Series | None = None
    if _ODD.search(data):
        every = list(enumerate(data.split(b"\n"), chunk.first))
        odd = [each for each in every if _ODD.search(each[1])]
        plain = [each for each in every if each[1].strip() and not _ODD.search(each[1])]
        numbers = pl.Series(LINE, [number for number, _ in plain], dtype=pl.UInt32)
        data, count = b"\n".join(raw for _, raw in plain), len(plain)
    try:
        frame = pl.read_ndjson(io.BytesIO(data), schema=names.schema) if count else None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        frame = None
    if frame is None or frame.height != count:
        return _with_care(enumerate(chunk.data.split(b"\n"), chunk.first), tally, names)
    tally.rows += count
    if numbers is None:
        return frame.with_row_index(LINE, chunk.first)
    slow = _with_care(odd, tally, names)
    return pl.concat([frame.insert_column(0, numbers), slow], how="diagonal").sort(LINE)


def _sample(data: bytes, count: int) -> Iterator[bytes]:
    """A sample of lines: all of a small chunk, else evenly spread over it."""
    if count <= _SAMPLED:
        yield from data.split(b"\n")
        return
    sampled = max(_SAMPLED, count // _ONE_IN)
    for at in range(sampled):
        begin = data.rfind(b"\n", 0, at * len(data) // sampled) + 1
        end = data.find(b"\n", begin)
        yield data[begin : end if end >= 0 else len(data)]


def _with_care(numbered: Iterable[tuple[int, bytes]], tally: Tally, names: Names) -> pl.DataFrame:
    """Line by line, where a line is invalid or Polars would misread it."""
    found: list[tuple[int, dict[str, Any]]] = []
    wrong: list[int] = []
    no_text: list[int] = []
    for number, raw in numbered:
        if not raw.strip():
            continue
        tally.rows += 1
        row = parsed(raw)
        if row is not None:
            found.append((number, row))
        elif _is_utf8(raw):
            wrong.append(number)
        else:
            no_text.append(number)
            tally.encoding = tally.encoding or encoding_of(raw)
    tally.drop(NO_JSON, wrong)
    tally.drop(NO_TEXT, no_text)
    return _table(found, names)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _table(rows: list[tuple[int, dict[str, Any]]], names: Names) -> pl.DataFrame:
    for _, row in rows:
        names.look(row)
    columns: dict[str, list[Any]] = {LINE: [number for number, _ in rows]}
    for name in names.all:
        columns[name] = [as_text(row.get(name)) for _, row in rows]
    return pl.DataFrame(columns, schema={LINE: pl.UInt32(), **names.schema})


def read_array(source: Source, tally: Tally, names: Names) -> Iterator[pl.DataFrame]:
    """An array of objects, or the ``hits.hits`` of search responses."""
    tally.unit = "object"
    held: list[tuple[int, dict[str, Any]]] = []
    for number, (row, text) in enumerate(objects(source), 1):
        tally.rows += 1
        if is_object(row, text):
            held.append((number, row))
        else:
            tally.drop(NO_JSON, [number])
        if len(held) >= _AT_ONCE:
            yield _table(held, names)
            held = []
    if held:
        yield _table(held, names)


_MOST = 2 * LONGEST + (1 << 22)  # characters of one value
_ANSWER = frozenset(
    {
        "took", "timed_out", "terminated_early", "num_reduce_phases", "_shards", "_clusters",
        "_scroll_id", "pit_id", "status", "hits", "aggregations", "suggest", "profile",
    }
)  # fmt: skip
"""Top-level keys of a search response of OpenSearch and Elasticsearch."""
_BLANKS = re.compile(r"[ \n\r\t]*")
_KEY = re.compile(r'\s*"(\w+)"\s*:\s*')
_COMMA = re.compile(r"\s*,")
_INNER = re.compile(r'"hits"\s*:\s*\[')


class Stream:
    """A JSON file parsed value by value, holding one value at a time."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._pieces = source.pieces()
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._decoder = json.JSONDecoder(parse_constant=lambda _: None)
        self._text, self._at = "", 0

    def peek(self) -> str:
        """The next character that is not white space; "" at the end."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            self._at = blanks.end() if blanks else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, *expected: str) -> str:
        """The next character; raises ValueError unless it is one of ``expected``."""
        character = self.peek()
        if character not in expected or not character:
            raise ValueError
        self._at += 1
        return character

    def value(self) -> tuple[Any, str]:
        """The next value and its text; raises ValueError if it is damaged or too long."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError):
                if not self._more():
                    raise ValueError from None
                continue
            if end == len(self._text) and self._more():
                continue  # the rest of a number may still be to come
            text, self._at = self._text[self._at : end], end
            return value, text

    def array(self) -> Iterator[tuple[Any, str]]:
        """The values of an array; raises ValueError if it is damaged."""
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        while True:
            yield self.value()
            if self.take(",", "]") == "]":
                return

    def fields(self) -> Iterator[str]:
        """The keys of an object; consume each value before asking for the next key."""
        self.take("{")
        if self.peek() == "}":
            self.take("}")
            return
        while True:
            key, _ = self.value()
            self.take(":")
            yield str(key)
            if self.take(",", "}") == "}":
                return

    def _more(self) -> bool:
        if len(self._text) - self._at > _MOST:
            return False
        piece = next(self._pieces, b"")
        if not piece:
            return False
        self._source.watch(len(piece))
        self._text, self._at = self._text[self._at :] + self._utf8.decode(piece), 0
        return True


def is_answer(head: str) -> bool:
    """Whether the head of a file is a search response: ``{"took": 3, … "hits": {…``."""
    decoder = json.JSONDecoder()
    at = head.find("{") + 1
    while True:
        key = _KEY.match(head, at)
        if key is None or key[1] not in _ANSWER:
            return False
        at = key.end()
        if key[1] == "hits":
            # In a log, "hits" may be a list of documents.
            return head[at : at + 1] == "{" and _INNER.search(head, at) is not None
        try:
            _, at = decoder.raw_decode(head, at)
        except ValueError:
            return False
        comma = _COMMA.match(head, at)
        if comma is None:
            return False
        at = comma.end()


def objects(source: Source) -> Iterator[tuple[Any, str]]:
    """The values of an array, or the ``hits.hits`` of search responses, each with its text.

    Raises InputError if the array or a response is damaged.
    """
    stream, is_array = Stream(source), source.head.lstrip().startswith(b"[")
    try:
        yield from stream.array() if is_array else _hits(stream)
    except UnicodeDecodeError as error:
        raise not_utf8(error.object[error.start : error.start + 1000], source.name) from None
    except ValueError:
        raise InputError(
            "the JSON array is truncated, or one of its objects is damaged"
            if is_array
            else "the search response is truncated, or one of its hits is damaged",
            file=source.name,
            fix=f"jq -c '.[]' {source.name} > events.ndjson saves the intact objects, one per line"
            if is_array
            else f"jq -c '.hits.hits[]' {source.name} > events.ndjson saves the intact hits",
        ) from None


def _hits(stream: Stream) -> Iterator[tuple[Any, str]]:
    while stream.peek():
        for key in stream.fields():
            if key != "hits" or stream.peek() != "{":
                stream.value()
                continue
            for inner in stream.fields():
                if inner == "hits" and stream.peek() == "[":
                    yield from stream.array()
                else:
                    stream.value()
