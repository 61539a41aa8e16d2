"""What was computed of a log, kept beside it: looked at again, it is there at once.

An answer is a file of JSON in the folder ``kept`` of an event store, in that of its kind, named by
the log's version and the question. It takes its place in one step, and whatever cannot be read is
not there. When the log changes, its answers are others; of each kind the oldest go.
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
"""Of an event store, where its answers are."""
MOST = 64
"""Answers of a kind that are kept; the one that was looked at longest ago goes first."""
_AT_HAND = 16  # answers of a kind that a process holds
_VERSION = 3

_lock = threading.Lock()
_at_hand: OrderedDict[Path, Any] = OrderedDict()


def find(log: EventLog, question: Mapping[str, Any]) -> Any:
    """The answer to a question about a log; None if it is not kept.

    Args:
        log: The log.
        question: Everything the answer depends on but the log, as JSON can hold it: its kind
            (``what``, a word), metrics with their versions, slices, days, rules.
    """
    path = _path(log, question)
    with _lock:
        if path in _at_hand:
            _at_hand.move_to_end(path)
            return _at_hand[path]
    try:
        found = json.loads(path.read_bytes())
        answer = found["answer"]
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
    ):  # gone, or damaged: then it is not there
        return None
    if found.get("version") != log.version:
        return None
    with suppress(OSError):
        os.utime(path)
    _hold(path, answer)
    return answer


def keep(log: EventLog, question: Mapping[str, Any], answer: Any) -> None:
    """Keep an answer, and let those go that are too many.

    Where the folder cannot be written, this process has it nevertheless.

    Args:
        log: The log that it was computed of.
        question: As in ``find``.
        answer: Anything that JSON can hold; None is no answer.
    """
    path = _path(log, question)
    # As JSON gives it back: whoever looks at once sees the same as who looks later.
    text = json.dumps({"version": log.version, "question": question, "answer": answer})
    _hold(path, json.loads(text)["answer"])
    with suppress(OSError, InputError):
        path.parent.mkdir(exist_ok=True, parents=True)
        with beside(path) as stream:
            stream.write(text.encode())
        _sweep(path.parent)


def answered(log: EventLog, question: Mapping[str, Any], make: Callable[[], Any]) -> Any:
    """The kept answer to a question; else made, and kept."""
    found = find(log, question)
    if found is None:
        keep(log, question, make())
        found = find(log, question)
    return found


def results_of(held: Mapping[str, Any]) -> OnlineResults:
    """Results, of what ``OnlineResults.to_dict`` made."""
    rows = [OnlineResult(**row) for row in held["results"]]
    first_last = held["period"]
    period = None if first_last is None else (str(first_last[0]), str(first_last[1]))
    return OnlineResults(**{**held, "results": rows, "by": tuple(held["by"]), "period": period})


def forget() -> None:
    """Forget what this process holds, as a restart does."""
    with _lock:
        _at_hand.clear()


def _path(log: EventLog, question: Mapping[str, Any]) -> Path:
    said = [_VERSION, metadata.version("karat"), log.version, question]
    text = json.dumps(said, sort_keys=True, ensure_ascii=True)
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
    """Let the files go that are too many, and what an interrupted write left."""
    with os.scandir(folder) as entries:
        files = [(each.stat().st_mtime_ns, each.path) for each in entries if each.is_file()]
    for _, path in sorted(files, reverse=True)[MOST:]:
        Path(path).unlink(missing_ok=True)
