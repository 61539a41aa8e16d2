"""Whether what stands in a manifest can be so: it is a file, and whoever can write it may have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from typing import Any

from karat.store.events.manifest import Manifest, StoredFile, StoredImport
from karat.tables.days import day_number
from karat.tables.online.events import BUCKETS, KINDS
from karat.tables.zones import is_zone

_DAYS = range(day_number(date.min), day_number(date.max))
_DAY = timedelta(days=1) // timedelta(microseconds=1)
_TIMES = range(_DAYS.start * _DAY, _DAYS.stop * _DAY)
_COUNTS = range(2**53)
_HASHES = range(2**64)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\.parquet")
_USERS = {"user_id", "client_id", "session_id", "query_id"}


def checked(held: Mapping[str, Any]) -> Manifest:
    """A manifest whose every value is of its type and in its range.

    Args:
        held: What JSON says, without the version.

    Raises:
        ValueError: something is not: also a file's name that is no plain name and may lead out of
            the folder, and a zone that there is not.
        TypeError: a name that a manifest does not have, or lacks.
    """
    found = Manifest(
        **{
            **held,
            "files": [StoredFile(**each) for each in _list(held["files"], _any)],
            "imports": [StoredImport(**each) for each in _list(held["imports"], _any)],
        }
    )
    for file in found.files:
        _file(file)
    for each in found.imports:
        _import(each)
    _sound(len({file.name for file in found.files}) == len(found.files))
    _sound(isinstance(found.timezone, str) and is_zone(found.timezone))
    _sound(isinstance(found.simulated, bool))
    _number(found.hashing, _HASHES)
    _number(found.bots, _COUNTS)
    _counts(found.kinds)
    _sound(set(found.kinds) <= set(KINDS))
    for names in (found.attributes, found.arms, found.known):
        _list(names, _text)
    ends = (
        (found.first_us, found.last_us, _TIMES),
        (found.first_day, found.last_day, _DAYS),
    )
    for first, last, within in ends:
        if found.files or first is not None or last is not None:
            _between(first, last, within)
    return found


def _file(file: StoredFile) -> None:
    _sound(isinstance(file.name, str) and _NAME.fullmatch(file.name) is not None)
    _sound(_number(file.low, range(BUCKETS)) < _number(file.high, range(BUCKETS + 1)))
    _number(file.rows, _COUNTS)
    _between(file.first_us, file.last_us, _TIMES)
    _text(file.sha256)
    if file.bytes is not None:
        _number(file.bytes, _COUNTS)


def _import(each: StoredImport) -> None:
    for count in (each.number, each.rows, each.kept):
        _number(count, _COUNTS)
    _number(each.time_us, _TIMES)
    _counts(each.dropped)
    _list(each.assumed, _text)
    _sound(isinstance(each.files, dict) and isinstance(each.settings, dict))
    _list(each.files.values(), _text)
    users = each.settings.get("users")
    _sound(users is None or (isinstance(users, list) and bool(users) and set(users) <= _USERS))


def _sound(so: bool) -> None:
    if not so:
        raise ValueError


def _any(_value: object) -> None:
    """Anything."""


def _text(value: object) -> None:
    _sound(isinstance(value, str))


def _number(value: object, within: range) -> int:
    # True is an int, and 1.0 is in a range.
    if type(value) is not int or value not in within:
        raise ValueError
    return value


def _between(first: object, last: object, within: range) -> None:
    _sound(_number(first, within) <= _number(last, within))


def _counts(held: object) -> None:
    if not isinstance(held, dict):
        raise ValueError
    for value in held.values():
        _number(value, _COUNTS)


def _list(held: object, each: Callable[[object], None]) -> list[Any]:
    if isinstance(held, str | Mapping) or not isinstance(held, Iterable):
        raise ValueError
    values = list(held)
    for value in values:
        each(value)
    return values
