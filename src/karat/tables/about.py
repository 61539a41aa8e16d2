"""Metadata of a run (engine, index, configuration, commit, time), and how two runs differ in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat.errors import InputError

KEYS = (
    "name",
    "engine",
    "engine_version",
    "index",
    "index_fingerprint",
    "template",
    "parameters",
    "commit",
    "asked_at",
    "corpus",
    "index_bytes",
    "memory_bytes",
    "price_per_1000",
    "currency",
)
"""Keys with a meaning of their own, in the order they are shown; any other key is free."""
LARGEST = 48 << 10
"""Maximum size of ``about`` as JSON, in bytes: it has to fit into the first bytes of a file."""
_NOT_SHOWN = {"tag"}  # the run tag that a TREC file repeats on every line
_NOT_COMPARED = {"name", "asked_at"}
_BRIEF = {"engine": "engine", "index": "index", "commit": "commit", "asked_at": "asked"}
_REQUEST_KEYS = {"queries", "concurrency", "timeout", "retries", "warmup", "depth"}
_KEYS_PER_LINE = 4
_CUT = 60  # characters of a value in one line
_COMMIT = 12
_LONGEST_NAME = 200  # characters


@dataclass(frozen=True, slots=True)
class AboutChange:
    """A key of ``about`` whose value differs between the baseline and a candidate."""

    candidate: str
    key: str
    # Its value in the baseline; None if the baseline does not have the key
    baseline_value: str | None
    # Its value in the candidate; None if the candidate does not have it
    candidate_value: str | None


def flat(values: Mapping[str, Any], source: str) -> dict[str, str]:
    """Flatten ``about`` to text: ``{"parameters": {"k": 3}}`` becomes ``{"parameters.k": "3"}``.

    Args:
        values: Text, numbers, lists and nested objects; None is left out.
        source: Name of the file or argument in error messages.

    Raises:
        InputError: an empty key, or more than ``LARGEST`` bytes.
    """
    texts = dict(_flattened(values, "", source))
    size = len(json.dumps(texts, ensure_ascii=False).encode())
    if size > LARGEST:
        raise InputError(
            f"about has {size:,} bytes; the limit is {LARGEST:,}",
            file=source,
            fix="store the large value in a file, and its name or hash in about",
        )
    return texts


def _flattened(values: Mapping[str, Any], prefix: str, source: str) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if not isinstance(key, str) or not key.strip():
            raise InputError(f"about has the key {key!r}; keys are text", file=source)
        name = f"{prefix}{_encodable(key.strip())}"
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{name}.", source)
        elif isinstance(value, str):
            yield name, _encodable(value)
        elif value is not None:
            text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
            yield name, _encodable(text)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def facts(about: Mapping[str, str]) -> dict[str, str]:
    """The metadata of a run without its TREC tag: the keys of ``KEYS`` first, then by name."""
    own = {key: value for key, value in about.items() if key not in _NOT_SHOWN}
    return {key: own[key] for key in sorted(own, key=_place)}


def brief(about: Mapping[str, str]) -> str:
    """The metadata in one line: ``engine prod 8.1, index docs, commit 1a2b3c, asked …``."""
    own = facts(about)
    parts = []
    for key, word in _BRIEF.items():
        if key in own:
            value = own[key][:_COMMIT] if key == "commit" else own[key]
            version = own.get("engine_version") if key == "engine" else None
            parts.append(f"{word} {short(value)}{f' {short(version)}' if version else ''}")
    shown = {*_BRIEF, *_REQUEST_KEYS, "engine_version", "name"}
    others = [key for key in own if key not in shown]
    free = others[: max(0, _KEYS_PER_LINE - len(parts))]
    parts += [f"{key} {short(own[key])}" for key in free]
    more = len(others) - len(free)
    if more and parts:
        parts.append(f"{more:,} more")
    return ", ".join(parts)


def what_changed(
    baseline: Mapping[str, str], candidates: Sequence[tuple[str, Mapping[str, str]]]
) -> list[AboutChange]:
    """Differences between the metadata of the baseline and of each candidate.

    Keys that describe the requests (concurrency, timeout, …) come last. The name and the time of
    the requests always differ and are left out, as are candidates for which one of the two runs
    has no metadata (``not_recorded``).

    Args:
        baseline: Metadata of the baseline.
        candidates: Name and metadata of each candidate.
    """
    old = _compared(baseline)
    changes = []
    for name, about in candidates:
        new = _compared(about)
        if not old or not new:
            continue
        changes += [
            AboutChange(name, key, old.get(key), new.get(key))
            for key in sorted({*old, *new}, key=lambda key: (key in _REQUEST_KEYS, *_place(key)))
            if old.get(key) != new.get(key)
        ]
    return changes


def not_recorded(runs: Sequence[tuple[str, Mapping[str, str]]]) -> list[str]:
    """A note that names the runs without metadata; none if all runs or no runs lack it.

    Args:
        runs: Name and metadata of each run.
    """
    lacking = [name for name, about in runs if not _compared(about)]
    if not 0 < len(lacking) < len(runs):
        return []
    return [f"nothing is recorded about {', '.join(lacking)}, so what changed is unknown"]


def _compared(about: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in facts(about).items() if key not in _NOT_COMPARED}


def sentence(change: AboutChange) -> str:
    """A change in words: ``index docs-1 → docs-2``."""
    old, new = change.baseline_value, change.candidate_value
    texts = ["not recorded" if value is None else short(value) for value in (old, new)]
    return f"{change.key} {texts[0]} → {texts[1]}"


def short(value: str) -> str:
    """A value in one line of at most 60 characters."""
    return _line(value, _CUT)


def name_in(about: Mapping[str, str]) -> str | None:
    """The name in the metadata, in one line of at most 200 characters; None without a name."""
    return _line(about.get("name", ""), _LONGEST_NAME) or None


def _line(value: str, most: int) -> str:
    """A value without line breaks and control characters, truncated."""
    line = " ".join(value.split())
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _place(key: str) -> tuple[int, str]:
    head = key.partition(".")[0]
    return (KEYS.index(head) if head in KEYS else len(KEYS), key)
