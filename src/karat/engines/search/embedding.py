"""Vectors of texts by an embedding endpoint, which is asked once for each text.

The vectors are in ``artifacts/vectors.sqlite`` of the workspace, under a hash of the endpoint's
request and the text. They can be computed again: the file may be deleted.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

import tenacity

from karat.engines.search.engine import EngineError
from karat.engines.search.http import Calls
from karat.engines.search.json_api import path
from karat.errors import UsageError
from karat.tables.engines import EmbedConfig

OPENAI: dict[str, Any] = {"model": "{model}", "input": "{texts}"}
"""The request of OpenAI's API, which most servers of models have too."""
_TRIES = 4
_FILE = "artifacts/vectors.sqlite"


class Endpoint:
    """A declared embedding endpoint, ``[embed.NAME]``; safe to use from several threads."""

    def __init__(self, config: EmbedConfig) -> None:
        self._config, self._calls = config, Calls(config)
        self._template = OPENAI if config.template is None else config.template
        self._batch = config.batch
        text = json.dumps(self._template)
        if '"{text}"' in text:
            self._batch = 1
        elif '"{texts}"' not in text:
            raise UsageError(
                f"{config.where} template has no {{texts}}", fix='{ input = "{texts}" }'
            )
        self._output = path(config.output, f"{config.where} output")
        self._lock = threading.Lock()
        self._known: dict[str, list[float]] = {}
        self._file = config.root / _FILE
        self._request = f"{config.url} {config.model} {text} {config.output}"

    def prepare(self, texts: Sequence[str]) -> None:
        """Ask for the vectors that are not known yet, in batches; raises EngineError."""
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._known]
            self._read(missing)
            missing = [text for text in missing if text not in self._known]
            for start in range(0, len(missing), self._batch):
                some = missing[start : start + self._batch]
                vectors = self._asked(some)
                self._known.update(zip(some, vectors, strict=True))
                self._write(some, vectors)

    def vector(self, text: str) -> list[float]:
        """The vector of a text; raises EngineError."""
        if text not in self._known:
            self.prepare([text])
        return self._known[text]

    def close(self) -> None:
        self._calls.close()

    def _asked(self, texts: list[str]) -> list[list[float]]:
        body = _filled(
            self._template, {"model": self._config.model, "texts": texts, "text": texts[0]}
        )
        persistent = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(_TRIES),
            wait=lambda state: max(
                0.2 * 2**state.attempt_number,
                getattr(state.outcome and state.outcome.exception(), "after", 0.0),
            ),
            retry=tenacity.retry_if_exception(lambda error: getattr(error, "again", False)),
            reraise=True,
        )
        url = str(self._config.url)
        found = self._output(persistent(lambda: self._calls.json("POST", url, body)))
        vectors = [_numbers(value, self._config) for value in found]
        if len(vectors) != len(texts):
            raise EngineError(
                f"{self._config.where}: {len(vectors)} vectors for {len(texts)} texts",
                fix=f"check output, now {self._config.output}, or batch = 1",
            )
        return vectors

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._request}\0{text}".encode("utf-8", "surrogatepass")).digest()

    def _opened(self) -> closing[sqlite3.Connection]:
        self._file.parent.mkdir(exist_ok=True)
        connection = sqlite3.connect(self._file, timeout=30)
        try:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector TEXT) "
                "WITHOUT ROWID"
            )
        except sqlite3.Error:
            connection.close()
            raise
        return closing(connection)

    def _read(self, texts: Sequence[str]) -> None:
        if not texts or not self._file.exists():
            return
        try:
            with self._opened() as connection:
                for text in texts:
                    sql = "SELECT vector FROM vectors WHERE key = ?"
                    for (vector,) in connection.execute(sql, [self._key(text)]):
                        self._known[text] = json.loads(vector)
        except sqlite3.OperationalError:  # locked, or not readable: asked again
            pass
        except (sqlite3.DatabaseError, ValueError):  # damaged
            self._file.unlink(missing_ok=True)

    def _write(self, texts: Sequence[str], vectors: Sequence[list[float]]) -> None:
        rows = [(self._key(t), json.dumps(v)) for t, v in zip(texts, vectors, strict=True)]
        # A read-only folder costs asking again.
        with suppress(sqlite3.Error, OSError), self._opened() as connection, connection:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, str) and template[:1] == "{" and template[1:-1] in values:
        return values[template[1:-1]]
    if isinstance(template, Mapping):
        return {key: _filled(value, values) for key, value in template.items()}
    return (
        [_filled(value, values) for value in template] if isinstance(template, list) else template
    )


def _numbers(value: Any, config: EmbedConfig) -> list[float]:
    if isinstance(value, list) and value and all(type(n) in (int, float) for n in value):
        vector = [float(number) for number in value]
        if all(map(math.isfinite, vector)):
            return vector
    raise EngineError(
        f"{config.where}: {config.output} is not a list of numbers", fix="check output"
    )
