"""The replies of a search so far, so that an interrupted one can go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from karat.clients.search_function import Reply
from karat.reports.phrases.numbers import counted
from karat.tables.returned import Ranked


class Journal:
    def __init__(self, out: str | Path, digest: str) -> None:
        self._path = None if str(out) == "-" else Path(f"{out}.partial")
        self._digest, self._resumed = digest, 0
        self._stream: Any = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def read(self, ids: Sequence[str]) -> dict[str, Reply]:
        """The replies of an interrupted search with the same settings; failed ones are left out."""
        done: dict[str, Reply] = {}
        if self._path is None:
            return done
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            lines = []
        whole = bool(lines) and lines[0] == json.dumps({"search": self._digest})
        for line in lines[1:] if whole else ():
            try:
                query, doc_ids, scores, repeated, scored, latency, tries = json.loads(line)
                ranking = Ranked(doc_ids, scores, repeated, scored)
            except (ValueError, TypeError):
                break  # a line that was cut when the search stopped
            done[query] = Reply(ranking, latency, None, tries)
        self._resumed = len(done)
        self._stream = self._path.open("w", encoding="utf-8")
        self._stream.write(json.dumps({"search": self._digest}) + "\n")
        for query, reply in done.items():
            self.write(query, reply)
        return {query: done[query] for query in ids if query in done}

    def write(self, query: str, reply: Reply) -> None:
        ranking = reply.ranking
        if self._stream is None or ranking is None:
            return
        row = (query, ranking.doc_ids, ranking.scores, ranking.repeated, ranking.scored)
        line = json.dumps([*row, reply.latency_us, reply.tries])
        with self._lock:
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def finish(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def notes(self) -> list[str]:
        """A note that some replies are of an earlier, interrupted search."""
        if not self._resumed:
            return []
        queries = counted(self._resumed, "query", "queries")
        return [f"{queries} had been answered before the search was interrupted"]
