"""The steps of an import: a file is staged, a range of users is stored; here or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar
from uuid import uuid4

import polars as pl

from karat.errors import InputError, UsageError
from karat.formats.events.flatten import Reading
from karat.formats.events.log import read_events
from karat.formats.events.tally import Tally
from karat.store.events import files as event_files
from karat.store.events.log import LOCK, STAGING, store_file
from karat.store.events.manifest import Manifest, StoredFile, Summary, summary
from karat.tables.online.events import ATTRIBUTE
from karat.workflows.online import _import_empty as empties
from karat.workflows.online._import_inputs import Input, Watch, fingerprint, unwatched, with_user
from karat.workflows.online._import_ranges import Observed, Staged, processed

_SIMULATED = f"{ATTRIBUTE}simulated"  # the attribute that marks simulated events
_FILE = 1 << 40  # more rows than a file has
_T = TypeVar("_T")
_R = TypeVar("_R")


class Spread(Protocol):
    """Computes a step for each item, in order: ``map``, or tasks of a cluster."""

    def __call__(self, step: Callable[[_T], _R], items: Sequence[_T], /) -> Iterable[_R]: ...


@dataclass
class FileRead:
    """What was found in a file, next to its rows."""

    tally: Tally
    error: InputError | None = None  # why it was not read, or not to its end
    kept: bool = True  # whether its rows are staged
    simulated: bool = False  # whether an event says that it is
    lowest: int | None = None  # position
    unsaid: bool = False  # whether a search has no hits field
    hits: bool = False  # whether a search has hits

    def rows(self, frame: pl.DataFrame) -> None:
        """Add what some rows say."""
        if _SIMULATED in frame.columns and not self.simulated:
            self.simulated = bool((frame[_SIMULATED] == "true").any())
        low = frame["position"].min()
        if isinstance(low, int) and (self.lowest is None or low < self.lowest):
            self.lowest = low
        self.unsaid |= bool(frame["unsaid"].any())
        self.hits = self.hits or empties.has_hits(frame)


@dataclass(frozen=True)
class Step:
    """Stages a file of an import: its number, and where it is."""

    reading: Reading
    ids: Sequence[str]  # in the order in which they identify users
    partial: bool  # whether a damaged file is kept up to the damage

    def __call__(
        self, item: tuple[int, Input], staged: Staged, watch: Watch = unwatched
    ) -> FileRead:
        at, each = item
        found, order = FileRead(Tally(each.name)), at * _FILE
        tally = found.tally
        frames = read_events(
            each.path, self.reading, tally, watch=lambda size: watch(each.name, size)
        )
        try:
            for frame in frames:
                if frame.is_empty():
                    continue
                found.rows(frame)
                named = event_files.with_users(with_user(frame, self.ids, tally))
                numbers = pl.int_range(order, order + frame.height, dtype=pl.Int64, eager=True)
                order += frame.height
                staged.add(named.with_columns(_order=numbers, _file=pl.lit(at, pl.Int32)))
        except InputError as error:
            found.error = error
            if not self.partial or not tally.rows:
                staged.forget()
                found.kept = False
                return found
        staged.keep()
        return found


@dataclass(frozen=True)
class StepApart:
    """Stages a file on another machine, which has to see the folder of the store."""

    step: Step
    folder: Path
    hashing: int

    def __call__(self, item: tuple[int, Input]) -> tuple[FileRead, Staged, Reading]:
        if event_files.hashing() != self.hashing:
            raise UsageError(
                f"an executor of Spark has Polars {pl.__version__}, and this machine another one",
                fix="install the same versions of karat and Polars on all machines",
            )
        if not (self.folder / LOCK).exists():
            raise _unseen(self.folder)
        reading = replace(self.step.reading, attributes={}, seen=set())
        # Spark may run a task twice, and the tasks of a killed import may outlive it.
        staged = Staged(self.folder / STAGING, f"{uuid4().hex}-")
        found = replace(self.step, reading=reading)(item, staged)
        staged.write()
        return found, staged, reading


def fingerprint_apart(path: Path) -> Input:
    """A file with its hash, on another machine."""
    if not path.exists():
        raise _unseen(path)
    return fingerprint(path)


def _unseen(path: Path) -> InputError:
    return InputError(
        "an executor of Spark does not see it",
        file=str(path),
        fix="keep logs and event store in a folder that all machines mount under the same path",
    )


@dataclass
class RangeKept:
    """The events of a range of users that were new."""

    observed: Observed
    rows: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    stored: tuple[StoredFile, Summary] | None = None


@dataclass(frozen=True)
class Ranges:
    """Stores ranges of users; a commit makes the files count."""

    staged: Staged
    folder: Path
    manifest: Manifest
    number: int
    base: int
    nothing: pl.Expr
    store: bool
    apart: bool

    def __call__(self, buckets: range) -> RangeKept:
        kept = RangeKept(Observed())
        frame = empties.with_zero_hits(self.staged.of(buckets), self.nothing)
        frame = processed(frame, self.folder, self.manifest, self.number, self.base, kept.observed)
        kept.rows = frame.height
        kept.kinds = dict(frame["kind"].value_counts().iter_rows())
        if frame.height and self.store:
            mark = f"-{uuid4().hex}" if self.apart else ""
            written = store_file(self.folder, frame, buckets, self.number, mark)
            kept.stored = written, summary(frame)
        return kept
