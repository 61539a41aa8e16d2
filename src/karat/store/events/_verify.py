"""Validation of a manifest, which anyone with write access to the file may have changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from typing import Any

from karat.store.events.manifest import Manifest, StoredFile
from karat.tables.days import day_number, is_zone
from karat.tables.online.events import BUCKETS, KINDS, StoredImport

_DAYS = range(day_number(date.min), day_number(date.max))
_DAY = timedelta(days=1) // timedelta(microseconds=1)
_TIMES = range(_DAYS.start * _DAY, _DAYS.stop * _DAY)
_COUNTS = range(2**53)
_HASHES = range(2**64)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\.parquet")
_USERS = {"user_id", "client_id", "session_id", "query_id"}


def checked(content: Mapping[str, Any]) -> Manifest:
    """The manifest in a JSON object (without the version), with all types and ranges validated.

    Raises:
        ValueError: an invalid value, also a file name that leads out of the folder, or an unknown
            time zone.
        TypeError: an unknown or missing key.
    """
    manifest = Manifest(
        **{
            **content,
            "files": [StoredFile(**fields) for fields in _list(content["files"], _any)],
            "imports": [StoredImport(**fields) for fields in _list(content["imports"], _any)],
        }
    )
    for file in manifest.files:
        _file(file)
    for stored in manifest.imports:
        _import(stored)
    _require(len({file.name for file in manifest.files}) == len(manifest.files))
    _require(isinstance(manifest.timezone, str) and is_zone(manifest.timezone))
    _require(isinstance(manifest.simulated, bool))
    _number(manifest.hashing, _HASHES)
    _number(manifest.bots, _COUNTS)
    _counts(manifest.kinds)
    _require(set(manifest.kinds) <= set(KINDS))
    for names in (manifest.attributes, manifest.arms, manifest.known):
        _list(names, _text)
    ends = (
        (manifest.first_us, manifest.last_us, _TIMES),
        (manifest.first_day, manifest.last_day, _DAYS),
    )
    for first, last, within in ends:
        if manifest.files or first is not None or last is not None:
            _between(first, last, within)
    return manifest


def _file(file: StoredFile) -> None:
    _require(isinstance(file.name, str) and _NAME.fullmatch(file.name) is not None)
    _require(_number(file.low, range(BUCKETS)) < _number(file.high, range(BUCKETS + 1)))
    _number(file.rows, _COUNTS)
    _between(file.first_us, file.last_us, _TIMES)
    _text(file.sha256)
    if file.bytes is not None:
        _number(file.bytes, _COUNTS)


def _import(stored: StoredImport) -> None:
    for count in (stored.number, stored.rows, stored.kept):
        _number(count, _COUNTS)
    _number(stored.time_us, _TIMES)
    _counts(stored.dropped)
    _list(stored.assumed, _text)
    _require(isinstance(stored.files, dict) and isinstance(stored.settings, dict))
    _list(stored.files.values(), _text)
    users = stored.settings.get("users")
    _require(users is None or (isinstance(users, list) and bool(users) and set(users) <= _USERS))


def _require(valid: bool) -> None:
    if not valid:
        raise ValueError


def _any(_value: object) -> None:
    pass


def _text(value: object) -> None:
    _require(isinstance(value, str))


def _number(value: object, within: range) -> int:
    # isinstance would accept True, and "in range" 1.0.
    if type(value) is not int or value not in within:
        raise ValueError
    return value


def _between(first: object, last: object, within: range) -> None:
    _require(_number(first, within) <= _number(last, within))


def _counts(counts: object) -> None:
    if not isinstance(counts, dict):
        raise ValueError
    for value in counts.values():
        _number(value, _COUNTS)


def _list(items: object, check: Callable[[object], None]) -> list[Any]:
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise ValueError
    values = list(items)
    for value in values:
        check(value)
    return values
