"""The files of an import with their hashes, and which id identifies their users."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import polars as pl

from karat.engines.frames import s3
from karat.engines.frames.s3 import StoredObject
from karat.errors import InputError
from karat.formats.events.flatten import Reading
from karat.formats.events.log import peek
from karat.formats.events.rows import IDS
from karat.formats.events.tally import Tally
from karat.formats.tables.source import Source, shown
from karat.tables.online.events import place

Watch = Callable[[str, int], None]  # called with the name of a file, and how much of it was read


@dataclass(frozen=True)
class Input:
    path: Path  # where its bytes are
    name: str  # its name in messages
    sha256: str  # hash of its bytes
    fetched: bool = False  # whether the path is a temporary copy


def expanded(files: Sequence[str | Path]) -> list[Path | StoredObject]:
    """The files or objects of paths, folders, patterns and addresses, each once.

    Args:
        files: Paths, ``file://`` or ``s3://`` addresses; folders stand for all below them, except
            hidden files; patterns such as ``logs/2026-*.gz`` may contain ``**``.
    """
    found: dict[Path | StoredObject, None] = {}
    for each in files:
        where = place(each)
        here = _local(where) if isinstance(where, Path) else _stored(where)
        found.update(dict.fromkeys(here))
    return list(found)


def _local(path: Path) -> list[Path]:
    if path.is_dir():
        below = (file for file in path.rglob("*") if file.is_file())
        here = [file for file in below if not _hidden(file.relative_to(path).parts)]
        problem = "there is no file in this folder"
    elif path.exists() or not glob.has_magic(str(path)):
        here, problem = [path], ""
    else:
        matching = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207 - ** and all
        here = [file for file in matching if file.is_file()]
        problem = "no file matches this pattern"
    if not here:
        raise InputError(problem, file=shown(str(path)), fix="check the path")
    return sorted(here)


def _stored(address: str) -> list[StoredObject]:
    objects = s3.listed(address)
    return [each for each in objects if not _hidden(each.address.removeprefix(address).split("/"))]


def _hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith((".", "_SUCCESS")) for part in parts)


def unwatched(_file: str, _size: int) -> None:
    """For imports that show no progress."""


def fetched(stored: StoredObject, folder: Path, watch: Watch) -> Input:
    """An object as a file of a folder."""
    folder.mkdir(exist_ok=True)
    path = folder / f"object-{uuid4().hex}"
    digest = s3.fetched(stored, path, lambda size: watch(stored.address, size))
    return Input(path, shown(stored.address), digest, fetched=True)


def fingerprint(path: Path) -> Input:
    name = shown(str(path))
    if not path.is_file():
        with Source(path):  # reports what is wrong, and the nearest name
            pass
        raise InputError(
            "events are imported from files", file=name, fix="write them to a file first"
        )
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=name) from None
    return Input(path, name, digest)


_LOOKED_AT = 12  # files
_MOST = 0.5  # share of rows that must have an id
_HARDLY = 0.05
_ALL = (*IDS, "query_id")
_WORDS = {"user_id": "user", "client_id": "client", "session_id": "session", "query_id": "query"}


def order_of_ids(paths: Sequence[Path], reading: Reading) -> tuple[tuple[str, ...], str]:
    """The order in which ids identify a user.

    UBI's query records have a client id but no user id, while its events may have both: by user
    id, no click would match its search. So the first id that both have is used.
    """
    step = max(1, len(paths) // _LOOKED_AT)
    searches = dict.fromkeys(_ALL, 0)
    others = dict(searches)
    rows = [0, 0]
    sampling = Reading(reading.now, reading.zone, reading.mapped)
    for path in paths[::step][:_LOOKED_AT]:
        frame = peek(path, sampling)
        if frame is None:
            continue
        logged = pl.col("kind") == "search"
        for at, (counts, part) in enumerate(
            ((searches, frame.filter(logged)), (others, frame.filter(~logged)))
        ):
            rows[at] += part.height
            for name in _ALL:
                counts[name] += part.height - part[name].null_count()
    if not rows[0] or not rows[1]:
        return IDS, ""

    def shared(name: str) -> float:
        return min(searches[name] / rows[0], others[name] / rows[1])

    best = next((name for name in IDS if shared(name) > _MOST), IDS[0])
    if max(map(shared, IDS)) < _HARDLY and shared("query_id") > _MOST:
        best = "query_id"
    if best == "query_id":
        return (best, *IDS), (
            "searches and other events share query ids only: each search counts as its own user, "
            "so numbers of sessions and users are meaningless"
        )
    if best == IDS[0]:
        return IDS, ""
    order = (best, *(name for name in IDS if name != best))
    skipped = [name for name in IDS[: IDS.index(best)] if searches[name] or others[name]]
    if not skipped:
        return order, ""
    fewer = " and ".join(f"{_WORDS[name]} ids" for name in skipped)
    note = f"users are identified by {_WORDS[best]} ids: "
    return order, f"{note}searches and other events do not share {fewer}"


def with_user(frame: pl.DataFrame, order: Sequence[str], tally: Tally) -> pl.DataFrame:
    """Set ``user_id`` of each event, and count events identified by another id."""
    names = list(dict.fromkeys([*order, "query_id"]))
    used = pl.coalesce(pl.when(pl.col(name).is_not_null()).then(pl.lit(name)) for name in names)
    users = ["query:" + pl.col(name) if name == "query_id" else pl.col(name) for name in names]
    for name, count in frame.select(used.alias("told"))["told"].value_counts().iter_rows():
        if name != order[0]:
            tally.assumed[f"user {name}"] += count
    return frame.with_columns(user_id=pl.coalesce(users)).drop("client_id")


SAID = {
    "user user_id": "events without the id that identifies users in this log, identified by "
    "their user id: {}",
    "user client_id": "events without a user id, identified by their client id: {}",
    "user session_id": "events without a user or client id, identified by their session id: {}",
    "user query_id": "events without a user, client or session id, each search of which counts "
    "as its own user: {}",
}
"""Texts of the keys of a tally's ``assumed``."""
