"""What every adapter of a search engine does, and how it fails."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from karat.errors import KaratError
from karat.tables.engines import EngineAnswer, EngineConfig, EngineFacts, EngineQuery


class EngineError(KaratError):
    """An engine did not answer, or answered with an error.

    Attributes:
        again: Whether the same request may succeed later.
        after: Seconds that the engine asks to wait; 0 if it does not say.
    """

    def __init__(
        self, what: str, *, fix: str | None = None, again: bool = False, after: float = 0.0
    ) -> None:
        super().__init__(what, fix=fix)
        self.again, self.after = again, after


class SearchEngine(Protocol):
    """A search engine that can be asked; safe to use from several threads."""

    def search(self, query: EngineQuery, size: int, *, explain: bool = False) -> EngineAnswer:
        """The first ``size`` documents, with the parts of scores if asked; raises EngineError."""
        ...

    def facts(self) -> EngineFacts:
        """What it says about itself; raises EngineError if it cannot be reached."""
        ...

    def documents(self, doc_ids: Sequence[str], /) -> list[dict[str, str | None]] | None:
        """Those of these documents that the index has, as ``document`` makes them.

        None if it cannot be asked for documents by id.
        """
        ...

    def close(self) -> None: ...


class Pace:
    """Spaces requests so that at most ``rate`` start in a second, over all threads."""

    def __init__(self, rate: float | None) -> None:
        self._gap = 0.0 if rate is None else 1.0 / rate
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Sleep until the next request may start."""
        if not self._gap:
            return
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self._gap
        time.sleep(max(0.0, start - now))


def fingerprint(*parts: Any) -> str:
    """A short hash of what makes an index the same."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def numbers_of(row: Mapping[str, Any], others: Collection[str] = ()) -> dict[str, float] | None:
    """The numbers of a document by name, but for some names; None if there are none."""
    found = {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in others
    }
    return found or None


_TEXT = ("text", "body", "content")  # where texts mostly are


def document(config: EngineConfig, doc_id: str, source: Mapping[str, Any]) -> dict[str, str | None]:
    """``doc_id``, ``title``, ``text`` and ``url`` of a document, from its fields."""

    def read(*names: str) -> str | None:
        found = (field(source, name.removeprefix("$.")) for name in names)
        value = next((value for value in found if value is not None), None)
        return None if value is None else str(value)

    return {
        "doc_id": doc_id,
        "title": read(config.title or "title"),
        "text": read(*((config.text,) if config.text else _TEXT)),
        "url": read(config.link or "url"),
    }


def field(source: Mapping[str, Any], name: str) -> Any:
    """A field, also one of an inner object: ``meta.title``; the first value of a list."""
    value: Any = source.get(name)
    if value is None:
        value = source
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    return (value[0] if value else None) if isinstance(value, list) else value
