"""A cache of results computed from an event log, in the folder ``kept`` of its store.

A result is a JSON file in a subfolder by kind, named by a hash of the log's version and the
question. It is written atomically; unreadable files are ignored. A changed log has other keys; the
least recently used results of each kind are evicted.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from karat.errors import InputError
from karat.formats.tables.writing import beside
from karat.tables.online.evaluation import OnlineResult, OnlineResults
from karat.tables.online.events import EventLog

FOLDER = "kept"
"""Folder of the cache in an event store."""
MOST = 64
"""Maximum number of cached results of a kind."""
_AT_HAND = 16  # results of a kind in the memory of a process
_VERSION = 3

_lock = threading.Lock()
_at_hand: OrderedDict[Path, Any] = OrderedDict()


def find(log: EventLog, question: Mapping[str, Any]) -> Any:
    """The cached result of a question about a log, or None.

    Args:
        log: The log.
        question: Everything else that the result depends on, as JSON: its kind (``what``, a word),
            metrics with their versions, slices, days, rules.
    """
    path = _path(log, question)
    with _lock:
        if path in _at_hand:
            _at_hand.move_to_end(path)
            return _at_hand[path]
    try:
        content = json.loads(path.read_bytes())
        answer = content["answer"]
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
    ):  # missing or damaged
        return None
    if content.get("version") != log.version:
        return None
    with suppress(OSError):
        os.utime(path)
    _hold(path, answer)
    return answer


def keep(log: EventLog, question: Mapping[str, Any], answer: Any) -> None:
    """Cache a result, and evict the oldest of its kind.

    If the folder cannot be written, only this process caches it.

    Args:
        log: The log that it was computed from.
        question: As in ``find``.
        answer: Anything that JSON can hold, except None.
    """
    path = _path(log, question)
    # Through JSON, so a result is the same now and when read later.
    text = json.dumps({"version": log.version, "question": question, "answer": answer})
    _hold(path, json.loads(text)["answer"])
    with suppress(OSError, InputError):
        path.parent.mkdir(exist_ok=True, parents=True)
        with beside(path) as stream:
            stream.write(text.encode())
        _sweep(path.parent)


def answered(log: EventLog, question: Mapping[str, Any], make: Callable[[], Any]) -> Any:
    """The cached result of a question; else computed and cached."""
    answer = find(log, question)
    if answer is None:
        keep(log, question, make())
        answer = find(log, question)
    return answer


def results_of(content: Mapping[str, Any]) -> OnlineResults:
    """Results from the output of ``OnlineResults.to_dict``."""
    rows = [OnlineResult(**row) for row in content["results"]]
    days = content["period"]
    period = None if days is None else (str(days[0]), str(days[1]))
    return OnlineResults(
        **{**content, "results": rows, "by": tuple(content["by"]), "period": period}
    )


def forget() -> None:
    """Clear the memory of this process, as a restart does."""
    with _lock:
        _at_hand.clear()


def _path(log: EventLog, question: Mapping[str, Any]) -> Path:
    key = [_VERSION, metadata.version("karat"), log.version, question]
    text = json.dumps(key, sort_keys=True, ensure_ascii=True)
    name = f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
    return log.folder / FOLDER / str(question["what"]) / name


def _hold(path: Path, answer: Any) -> None:
    with _lock:
        _at_hand[path] = answer
        _at_hand.move_to_end(path)
        alike = [each for each in _at_hand if each.parent == path.parent]
        for each in alike[:-_AT_HAND]:
            del _at_hand[each]


def _sweep(folder: Path) -> None:
    """Delete the oldest files, including those of interrupted writes."""
    with os.scandir(folder) as entries:
        files = [(each.stat().st_mtime_ns, each.path) for each in entries if each.is_file()]
    for _, path in sorted(files, reverse=True)[MOST:]:
        Path(path).unlink(missing_ok=True)
