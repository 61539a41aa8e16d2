"""JSON as it comes: values of an array, or the hits of a search's answer, none held but one."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from karat.errors import InputError
from karat.formats.events.lines import LONGEST, not_utf8
from karat.formats.tables.source import Source

_MOST = 2 * LONGEST + (1 << 22)  # letters of one value
_ANSWER = frozenset(
    {
        "took", "timed_out", "terminated_early", "num_reduce_phases", "_shards", "_clusters",
        "_scroll_id", "pit_id", "status", "hits", "aggregations", "suggest", "profile",
    }
)  # fmt: skip
"""What stands at the top of the answer of a search, of OpenSearch and of Elasticsearch."""
_BLANKS = re.compile(r"[ \n\r\t]*")
_KEY = re.compile(r'\s*"(\w+)"\s*:\s*')
_COMMA = re.compile(r"\s*,")
_INNER = re.compile(r'"hits"\s*:\s*\[')


class Stream:
    """The text of a file, read as far as it is wanted.

    Args:
        source: The file.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._pieces = source.pieces()
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._decoder = json.JSONDecoder(parse_constant=lambda _: None)
        self._text, self._at = "", 0

    def peek(self) -> str:
        """The next letter that is no blank; "" at the end."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            self._at = blanks.end() if blanks else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, *wanted: str) -> str:
        """The next letter, which is one of some.

        Raises:
            ValueError: it is another.
        """
        found = self.peek()
        if found not in wanted or not found:
            raise ValueError
        self._at += 1
        return found

    def value(self) -> tuple[Any, str]:
        """The next value, and its text.

        Raises:
            ValueError: it is damaged, cut short, or too long.
        """
        self.peek()
        while True:
            try:
                found, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError):
                if not self._more():
                    raise ValueError from None
                continue
            if end == len(self._text) and self._more():
                continue  # the rest of a number may still be to come
            text, self._at = self._text[self._at : end], end
            return found, text

    def array(self) -> Iterator[tuple[Any, str]]:
        """The values of an array.

        Raises:
            ValueError: it is damaged or cut short.
        """
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        while True:
            yield self.value()
            if self.take(",", "]") == "]":
                return

    def fields(self) -> Iterator[str]:
        """The keys of an object; whoever asks takes the value of each before the next.

        Raises:
            ValueError: it is damaged or cut short.
        """
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
    """Whether a text begins as the answer of a search does: ``{"took": 3, … "hits": {…``.

    Args:
        head: The first letters of a file.
    """
    decoder = json.JSONDecoder()
    at = head.find("{") + 1
    while True:
        key = _KEY.match(head, at)
        if key is None or key[1] not in _ANSWER:
            return False
        at = key.end()
        if key[1] == "hits":
            # A log may call a list of documents so, and hold more than an answer does.
            return head[at : at + 1] == "{" and _INNER.search(head, at) is not None
        try:
            _, at = decoder.raw_decode(head, at)
        except ValueError:
            return False
        comma = _COMMA.match(head, at)
        if comma is None:
            return False
        at = comma.end()


def values(source: Source) -> Iterator[tuple[Any, str]]:
    """The values of an array, each with its text.

    Raises:
        InputError: damaged compression, or no whole array.
    """
    try:
        yield from Stream(source).array()
    except UnicodeDecodeError as error:
        raise not_utf8(_around(error), source.name) from None
    except ValueError:
        raise InputError(
            "the JSON array is cut short, or one of its objects is damaged",
            file=source.name,
            fix=f"jq -c '.[]' {source.name} > events.ndjson reads what is whole, a line each",
        ) from None


def hits(source: Source) -> Iterator[tuple[Any, str]]:
    """The ``hits.hits`` of answers of a search, one or several behind each other.

    Raises:
        InputError: damaged compression, or no whole answer.
    """
    stream = Stream(source)
    try:
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
    except UnicodeDecodeError as error:
        raise not_utf8(_around(error), source.name) from None
    except ValueError:
        raise InputError(
            "the answer of a search is cut short, or one of its hits is damaged",
            file=source.name,
            fix=f"jq -c '.hits.hits[]' {source.name} > events.ndjson reads what is whole",
        ) from None


def _around(error: UnicodeDecodeError) -> bytes:
    """Some of the bytes that are not UTF-8, by which their encoding may be told."""
    return error.object[error.start : error.start + 1000]
