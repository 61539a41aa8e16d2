"""The replies of a search on disk: an interrupted one goes on, and none of them stays in memory."""

from __future__ import annotations

import json
import shutil
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Self

from karat.clients.search_function import Reply
from karat.errors import InputError
from karat.reports.phrases.numbers import counted
from karat.tables.records import shared
from karat.tables.results import State
from karat.tables.returned import Ranked


@dataclass(frozen=True, slots=True)
class Outcome(Reply):
    """A reply without its documents."""

    state: State = "failed"
    returned: int = 0  # documents
    repeated: int = 0
    at: int = -1  # where the journal has the documents


def outcome_of(reply: Reply, at: int = -1) -> Outcome:
    seen = shared(reply, Reply) | {"ranking": None}
    if reply.ranking is None:
        return Outcome(**seen)
    return Outcome(
        **seen,
        state="ok" if reply.ranking.doc_ids else "empty",
        returned=len(reply.ranking.doc_ids),
        repeated=reply.ranking.repeated,
        at=at,
    )


class Journal:
    """Replies in the order of their arrival; a temporary file without ``out``.

    Args:
        out: The run, next to which the journal is until it is written; None or ``-`` without one.
        digest: What must be the same for an interrupted search to go on.
    """

    def __init__(self, out: str | Path | None = None, digest: str = "") -> None:
        self._path = None if out is None or str(out) == "-" else Path(f"{out}.partial")
        self._head = json.dumps({"search": digest}).encode() + b"\n"
        self._resumed = self._end = 0
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_more: object) -> None:
        if error is not None:  # else the run reads it
            self.close()
            if self._end == len(self._head):
                self.finish()

    def read(self, ids: Sequence[str]) -> dict[str, Outcome]:
        """The replies of an interrupted search with the same settings; failed ones are left out."""
        if self._path is None:
            self._stream = TemporaryFile()  # noqa: SIM115 - closed with the run
        else:
            self._path.touch()
            self._stream = self._path.open("r+b")
        done: dict[str, Outcome] = {}
        asked = set(ids)
        whole = self._stream.readline() == self._head
        self._end = len(self._head)
        for line in self._stream if whole else ():
            try:
                query, latency, tries, *ranking = json.loads(line)
                reply = Reply(_ranked(*ranking), latency, None, tries)
                if query in asked:
                    done[query] = outcome_of(reply, self._end)
            except (ValueError, TypeError):
                break  # a line that was cut when the search stopped
            self._end += len(line)
        self._resumed = len(done)
        self._stream.seek(0)
        self._stream.write(self._head)
        self._stream.seek(self._end)
        self._stream.truncate()
        return done

    def write(self, query: str, reply: Reply) -> Outcome:
        """Write the documents of a reply; what remains of it."""
        ranking, at = reply.ranking, self._end
        if ranking is None or self._stream is None:
            return outcome_of(reply)
        scores = array("d", ranking.scores).tobytes().hex()  # as text they take ten times as long
        row = (query, reply.latency_us, reply.tries, ranking.doc_ids, scores)
        line = json.dumps([*row, ranking.repeated, ranking.scored]).encode() + b"\n"
        try:
            self._stream.write(line)
            self._stream.flush()
        except OSError as error:
            place = str(self._path or "the temporary file of the answers")
            raise InputError(f"cannot be written: {error.strerror}", file=place) from None
        self._end += len(line)
        return outcome_of(reply, at)

    def ranking(self, outcome: Outcome) -> Ranked:
        """The documents of an answer."""
        assert self._stream is not None
        self._stream.seek(outcome.at)
        _, _, _, *ranking = json.loads(self._stream.readline())
        return _ranked(*ranking)

    def finish(self) -> None:
        """Delete the file, when the run is written; until it is closed, it can still be read."""
        if self._path is None:
            return
        if sys.platform == "win32" and self._stream is not None:  # an open file stays there
            self._stream.seek(0)
            copy = TemporaryFile()  # noqa: SIM115 - closed with the run
            shutil.copyfileobj(self._stream, copy)
            self.close()
            self._stream = copy
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._stream is not None:
            with suppress(OSError):  # what could not be written is written again
                self._stream.close()

    def notes(self) -> list[str]:
        """A note that some replies are of an earlier, interrupted search."""
        if not self._resumed:
            return []
        queries = counted(self._resumed, "query", "queries")
        return [f"{queries} had been answered before the search was interrupted"]


def _ranked(doc_ids: list[str], scores: str, repeated: int, scored: bool) -> Ranked:
    numbers = array("d", bytes.fromhex(scores)).tolist()
    if len(numbers) != len(doc_ids):
        raise ValueError("a document without a score")
    return Ranked(doc_ids, numbers, repeated, scored)
