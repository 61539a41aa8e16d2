"""Tracing one's own search pipeline: what each stage returned, appended to a file of JSON lines.

Nothing here raises into the search that it traces: a trace that cannot be written is dropped, with
one warning. Safe with threads and with asyncio, since every trace is an object of its own.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
import time
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any, Self

from karat.tables.returned import Unusable, ranked

_MOST = 1_000  # documents of a stage that are written
_encode = json.JSONEncoder(default=str).encode
_lock = threading.Lock()


class StageTrace:
    """A stage while it runs."""

    def __init__(
        self, name: str, kind: str, parents: Sequence[str], parameters: Any, most: int
    ) -> None:
        self.name, self.kind, self.parents = str(name), str(kind), list(map(str, parents))
        self.error: str | None = None
        self._parameters, self._most, self._documents = parameters, most, "[]"
        self._parse: str | None = None
        self._took: int | None = None
        self._began, self._started = time.time_ns(), time.perf_counter_ns()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            self.error = f"{type(error).__name__}: {error}"
        if self._took is None:
            self.done()

    def ranked(self, documents: Any) -> None:
        """What the stage returned, best first.

        Args:
            documents: Ids, (id, score) pairs, ``{id: score}``, or dicts with ``id``, ``score`` and
                ``parts`` (what the score is made of).
        """
        if self._took is None:
            self.done()
        try:
            self._documents = _candidates(documents, self._most)
        except (Unusable, TypeError, ValueError, AttributeError, RecursionError) as error:
            self.error = f"not traced: {error}"

    def parsed(self, query: str) -> None:
        """The query as the stage understood it."""
        self._parse = str(query)

    def done(self) -> None:
        """The stage has ended now; else it ends with its ``with`` block or with ``ranked``."""
        self._took = (time.perf_counter_ns() - self._started) // 1000

    def line(self, query_id: str) -> str:
        """The line of a file of traces."""
        rest = ""
        if self._parameters:
            rest += f', "parameters": {_encode(self._parameters)}'
        if self._parse is not None:
            rest += f', "parse": {quoted(self._parse)}'
        if self.error is not None:
            rest += f', "state": "failed", "error": {quoted(self.error)}'
        took = "null" if self._took is None else self._took
        return (
            f'{{"query_id": {quoted(query_id)}, "stage": {quoted(self.name)}, '
            f'"kind": {quoted(self.kind)}, "parents": [{", ".join(map(quoted, self.parents))}], '
            f'"started_us": {self._began // 1000}, "latency_us": {took}{rest}, '
            f'"candidates": {self._documents}}}\n'
        )


class QueryTrace:
    """The trace of one query; see ``trace``."""

    def __init__(self, query_id: str, most: int, *, kept: bool) -> None:
        self.query_id, self._most, self._kept = query_id, most, kept
        self.stages: list[StageTrace] = []
        self._ends: list[str] = []

    def stage(
        self,
        name: str,
        kind: str = "",
        *,
        parents: Sequence[str] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> StageTrace:
        """Trace a stage, in a ``with`` block.

        Args:
            name: Its name, unique within the pipeline.
            kind: rewrite | retrieve | filter | fuse | rerank | serve. If empty: ``retrieve`` for a
                stage that takes no documents of others, else ``fuse`` or ``rerank``.
            parents: The stages whose documents it takes. If None, a retriever takes none, and any
                other stage those that no stage before it has taken.
            parameters: Its settings.
        """
        if parents is None:
            parents = self._ends if kind not in {"", "retrieve", "rewrite"} else ()
        kind = kind or ("fuse" if len(parents) > 1 else "rerank" if parents else "retrieve")
        stage = StageTrace(name, kind, parents, parameters, self._most)
        if stage.parents:
            self._ends = [end for end in self._ends if end not in stage.parents]
        if kind != "rewrite":
            self._ends.append(stage.name)
        if self._kept:
            self.stages.append(stage)
        return stage

    def lines(self) -> str:
        """All stages so far."""
        return "".join(stage.line(self.query_id) for stage in self.stages)


@contextlib.contextmanager
def trace(
    file: str | Path, query_id: str, *, sample: float = 1.0, most: int = _MOST
) -> Iterator[QueryTrace]:
    """Trace one query through your own pipeline; ``karat diagnose --trace FILE`` reads the file.

    Args:
        file: JSON lines, to which the stages are appended when the block ends.
        query_id: The query.
        sample: Share of the queries that are traced, always the same ones.
        most: Most documents of a stage.

    Examples:
        >>> import karat
        >>> with karat.trace("trace.jsonl", "q1") as t:
        ...     with t.stage("bm25") as s:
        ...         s.ranked([("a", 2.5), ("b", 1.0)])
        ...     with t.stage("reranked", "rerank") as s:
        ...         s.ranked(["b", "a"])
    """
    kept = sample >= 1 or zlib.crc32(str(query_id).encode("utf-8", "replace")) < sample * 2**32
    traced = QueryTrace(str(query_id), most, kept=kept)
    try:
        yield traced
    finally:
        if traced.stages:
            _append(file, traced)


def _append(file: str | Path, traced: QueryTrace) -> None:
    """Append all lines with one write, so that processes do not mix theirs."""
    try:
        data = traced.lines().encode("utf-8", "replace")
        with _lock:
            handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(handle, data)
            finally:
                os.close(handle)
    except Exception as error:  # noqa: BLE001 - the search goes on whatever happens here
        warnings.warn(f"karat.trace: a trace was dropped: {error}", stacklevel=3)


def _candidates(documents: Any, most: int) -> str:
    """The documents as JSON."""
    if isinstance(documents, dict | Mapping):  # dict first: the abstract class is slow
        documents = sorted(documents.items(), key=lambda item: -item[1])
    listed = list(documents)[:most]
    if not listed:
        return "[]"
    pairs = _plain_pairs(listed)
    parts: list[str] = []
    if pairs is None:
        found = ranked(listed)
        scores: Sequence[float | None] = found.scores if found.scored else [None] * len(listed)
        pairs = list(zip(found.doc_ids, scores, strict=False))
        parts = [] if found.repeated else list(map(_parts, listed))
    rows = [
        f'{{"doc_id": {quoted(doc_id)}, "rank": {rank}{_score(score)}}}'
        for rank, (doc_id, score) in enumerate(pairs, 1)
    ]
    if any(parts):
        rows = [f"{row[:-1]}{part}}}" for row, part in zip(rows, parts, strict=True)]
    return f"[{', '.join(rows)}]"


def _plain_pairs(listed: list[Any]) -> list[tuple[str, float | None]] | None:
    """The usual forms, read quickly: different texts, or pairs of text and float."""
    kinds = set(map(type, listed))
    if kinds == {str}:
        return None if len(set(listed)) < len(listed) else [(doc_id, None) for doc_id in listed]
    if kinds == {tuple} and {len(pair) for pair in listed} == {2}:
        ids, scores = zip(*listed, strict=True)
        if set(map(type, ids)) == {str} and set(map(type, scores)) == {float}:
            return listed if len(set(ids)) == len(ids) else None
    return None


def _score(score: float | None) -> str:
    return f', "score": {score!r}' if score is not None and math.isfinite(score) else ""


def _parts(document: Any) -> str:
    parts = document.get("parts") if isinstance(document, Mapping) else None
    return "" if not parts else f', "parts": {_encode(parts)}'
