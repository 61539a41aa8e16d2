"""Import of event logs into an event store, each event once."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial as bound
from pathlib import Path
from typing import Literal, TypeVar

import polars as pl

from karat.engines.frames.opening import no_master, open_spark
from karat.engines.frames.s3 import StoredObject
from karat.errors import InputError, UsageError
from karat.formats.events.flatten import Reading
from karat.formats.events.json import LINE
from karat.formats.events.mapping import Mapped, read_mapping
from karat.formats.events.rows import MOST_ATTRIBUTES
from karat.formats.events.tally import EXAMPLES, Tally, by_count
from karat.formats.tables.source import shown
from karat.store.events import files as event_files
from karat.store.events.log import (
    STAGING,
    commit,
    importing,
    merged,
    read_event_log,
    read_manifest,
)
from karat.store.events.manifest import Manifest, added
from karat.tables.days import day_text, is_zone
from karat.tables.online.events import (
    EmptyHits,
    Imported,
    LogStatus,
    StoredImport,
    place,
)
from karat.tables.records import shared
from karat.tables.schema import EVENTS
from karat.workflows.online import _import_empty as empties
from karat.workflows.online import _import_notes as notes
from karat.workflows.online import _import_steps as steps
from karat.workflows.online._import_inputs import (
    Input,
    Watch,
    expanded,
    fetched,
    fingerprint,
    order_of_ids,
    unwatched,
)
from karat.workflows.online._import_ranges import Observed, Staged

_T = TypeVar("_T")
_R = TypeVar("_R")
_CLOCKS_US = 3_600_000_000  # how much the clocks of a bucket and of this machine may differ


def import_events(
    folder: str | Path,
    files: Sequence[str | Path],
    *,
    now: int,
    mapping: Path | None = None,
    timezone: str | None = None,
    clocks: str | None = None,
    position_base: int | None = None,
    simulated: bool = False,
    partial: bool = False,
    check: bool = False,
    engine: Literal["polars", "spark"] = "polars",
    master: str | None = None,
    watch: Watch = unwatched,
    ask: empties.Ask | None = None,
) -> Imported:
    """Import logs into an event store; events that it has are not added again.

    The import is atomic: if it is interrupted, the store is unchanged, and the same import can be
    run again. Files that were imported with the same mapping are skipped; files without any event
    are not remembered. The engine is ``polars``, or ``spark`` to read the files as tasks of a
    cluster, which has to see logs and store under the same paths; the outcome is the same.
    """
    for zone in (timezone, clocks):
        if zone is not None and not is_zone(zone):
            raise UsageError(f"unknown time zone {zone!r}", fix="such as Europe/Berlin")
    if position_base not in (None, 0, 1):
        raise UsageError(f"the first position must be 0 or 1, got {position_base}")
    mapped = Mapped() if mapping is None else read_mapping(mapping)
    reading = Reading(now, clocks or "UTC", mapped)
    folder = place(folder)
    if isinstance(folder, str):
        raise UsageError(
            f"events are not imported into {folder}: it has no locks",
            fix="import into a folder, and copy that: aws s3 sync FOLDER s3://BUCKET/FOLDER",
        )
    with _spread(engine, master, check=check) as spread:
        logs = _hashed(expanded(files), spread)
        with _looking(folder) if check else _keeping(folder) as (before, staging):
            manifest = before or Manifest(timezone=timezone or "UTC")
            if timezone not in (None, manifest.timezone):
                raise UsageError(
                    f"the time zone of this event store is {manifest.timezone}, not {timezone}",
                    fix="leave the zone out, or import into another folder",
                )
            fetch = bound(fetched, folder=staging, watch=watch if spread is None else unwatched)
            fresh, skipped = _fresh(logs, manifest, mapped, bound(_each, spread, fetch))
            here = [each for each in logs if isinstance(each, Input)]
            notes.check_columns(mapped, [*here, *(each for each in fresh if each.fetched)])
            if not fresh:
                return Imported(None, [], skipped, 0, 0, {}, {}, [], {}, {})
            job = _Import(
                folder, manifest, reading, Staged(staging), simulated=simulated, partial=partial,
                check=check, spread=spread, watch=watch, ask=None if check else ask,
            )  # fmt: skip
            return job.run(fresh, skipped, position_base)


@contextmanager
def _spread(engine: str, master: str | None, *, check: bool) -> Iterator[steps.Spread | None]:
    """What runs steps as tasks of a cluster; None to run them here."""
    if engine == "polars":
        no_master(engine, master)
        yield None
        return
    if check:
        raise UsageError(
            "a check runs on this machine", fix="leave out the engine, and check some of the files"
        )
    with open_spark(master) as opened:
        yield opened.spread


def _each(
    spread: steps.Spread | None, step: Callable[[_T], _R], items: Sequence[_T]
) -> Iterable[_R]:
    return map(step, items) if spread is None else spread(step, items)


def _hashed(
    logs: Sequence[Path | StoredObject], spread: steps.Spread | None
) -> list[Input | StoredObject]:
    """The files of an import, with their hashes; objects are hashed when they are fetched."""
    paths = [each for each in logs if isinstance(each, Path)]
    if spread is None:
        inputs: Iterable[Input] = map(fingerprint, paths)
    else:
        for path in paths:
            if not path.is_file():
                fingerprint(path)  # reports what is wrong
        inputs = spread(steps.fingerprint_apart, paths)
    found = iter(inputs)
    return [next(found) if isinstance(each, Path) else each for each in logs]


@contextmanager
def _keeping(folder: Path) -> Iterator[tuple[Manifest | None, Path]]:
    with importing(folder) as manifest:
        yield manifest, folder / STAGING


@contextmanager
def _looking(folder: Path) -> Iterator[tuple[Manifest | None, Path]]:
    with tempfile.TemporaryDirectory() as staging:
        yield read_manifest(folder), Path(staging)


def _fresh(
    logs: Iterable[Input | StoredObject],
    manifest: Manifest,
    mapped: Mapped,
    fetch: Callable[[Sequence[StoredObject]], Iterable[Input]],
) -> tuple[list[Input], list[str]]:
    """The files that are new with this mapping, and the names of the others.

    Objects are fetched, unless they were imported and have not been written since.
    """
    known: set[str] = set()
    imported: dict[str, int] = {}
    for before in manifest.imports:
        if before.settings.get("mapping", "") == mapped.digest:
            known.update(before.files.values())
            imported |= dict.fromkeys(before.files, before.time_us - _CLOCKS_US)
    fresh: list[Input] = []
    skipped: list[str] = []
    changed: list[Input | StoredObject] = []
    for log_file in logs:
        if isinstance(log_file, Input) or log_file.changed_us >= imported.get(
            shown(log_file.address), 0
        ):
            changed.append(log_file)
        else:
            skipped.append(shown(log_file.address))
    brought = iter(fetch([each for each in changed if isinstance(each, StoredObject)]))
    for log_file in changed:
        each = log_file if isinstance(log_file, Input) else next(brought)
        if each.sha256 in known:
            skipped.append(each.name)
            if each.fetched:
                each.path.unlink()
        else:
            known.add(each.sha256)
            fresh.append(each)
    return fresh, skipped


@dataclass
class _Import:
    """An import under way: files are staged, then stored by ranges of users."""

    folder: Path
    manifest: Manifest
    reading: Reading
    staged: Staged
    simulated: bool  # whether the events are, as the option or one of them says
    partial: bool
    check: bool
    spread: steps.Spread | None
    watch: Watch
    ask: empties.Ask | None

    @property
    def number(self) -> int:
        return len(self.manifest.imports) + 1

    def run(self, inputs: list[Input], skipped: list[str], base: int | None) -> Imported:
        last = self.manifest.imports[-1].settings if self.manifest.imports else {}
        ids, ids_note = self._ids([each.path for each in inputs], last)
        reads = self._read(inputs, ids)
        done = [each for each, read in zip(inputs, reads, strict=True) if read.kept]
        refused = [read.error for read in reads if read.error and not read.kept]
        if not done:
            raise refused[0]
        damaged = [read.error for read in reads if read.error and read.kept]
        lacks = {notes.REFUSED: refused, notes.DAMAGED: damaged}
        self.simulated |= any(read.simulated for read in reads)
        tallies, whole = [read.tally for read in reads if read.kept], Tally("")
        for tally in tallies:
            whole.add(tally)
        if whole.rows and not whole.accepted:
            raise notes.no_event(tallies, self.reading.mapped)
        # Do not remember files without any event: another mapping may find some.
        without = {tally.file for tally in tallies if tally.rows and not tally.accepted}
        lows = [read.lowest for read in reads if read.lowest is not None]
        base, base_note = self._base(base, min(lows, default=None), last)
        is_empty, empty = self._empty(reads, whole, last)
        nothing = empty is not None and empty.taken_as == "nothing"
        observed, kinds, kept = self._keep(base, is_empty if nothing else pl.lit(value=False))
        empty_notes = [] if empty is None else [empties.sentence(empty, check=self.check)]
        doubt = empty is not None and (empty.by == "default" or (nothing and empty.clicked))
        dropped = whole.dropped + observed.dropped
        dropped += Counter({reason: len(errors) for reason, errors in lacks.items()})
        imported = Imported(
            number=None if self.check else self.number,
            files=[each.name for each in done],
            skipped=skipped,
            rows=whole.rows,
            kept=kept,
            kinds=kinds,
            dropped=dict(by_count(dropped)),
            assumed=[
                *notes.of_tallies(tallies, whole, self.reading),
                *filter(None, (ids_note, base_note)),
                *([] if doubt else empty_notes),
                *notes.of_observed(observed),
                *notes.lacking(self.reading),
                *notes.of_files(done, without, self.manifest),
                *notes.of_store(self.manifest, simulated=self.simulated),
            ],
            examples=_examples(whole, tallies, observed, inputs, lacks),
            unknown=dict(by_count(whole.unknown)),
            warnings=empty_notes if doubt else [],
            empty_hits=empty,
        )
        if not self.check:
            settings = {"users": list(ids), "base": base, "mapping": self.reading.mapped.digest}
            answered = empty is not None and empty.by == "answer"
            settings["empty"] = empty.taken_as if empty and answered else last.get("empty")
            self._commit(imported, [each for each in done if each.name not in without], settings)
        return imported

    def _ids(self, paths: list[Path], last: Mapping[str, object]) -> tuple[tuple[str, ...], str]:
        order, note = order_of_ids(paths, self.reading)
        before = last.get("users")
        if isinstance(before, list) and tuple(before) != order:
            order = tuple(map(str, before))
            note = (
                f"users are identified by {order[0].removesuffix('_id')} ids, as in earlier imports"
            )
        return order, note

    def _read(self, inputs: list[Input], ids: Sequence[str]) -> list[steps.FileRead]:
        """Stage the files."""
        reads = []
        step = steps.Step(self.reading, ids, self.partial)
        for at, read in enumerate(self._files(step, inputs)):
            if inputs[at].fetched:
                inputs[at].path.unlink()
            reads.append(read)
        return reads

    def _files(self, step: steps.Step, inputs: list[Input]) -> Iterator[steps.FileRead]:
        items = list(enumerate(inputs))
        if self.spread is None:
            yield from map(bound(step, staged=self.staged, watch=self.watch), items)
            return
        apart = steps.StepApart(step, self.folder, event_files.hashing())
        for found, staged, reading in self.spread(apart, items):
            self.staged.take(staged)
            self.reading.attributes.update(reading.attributes)
            self.reading.seen.update(reading.seen)
            yield found
        if len(self.reading.attributes) > MOST_ATTRIBUTES:
            raise UsageError(
                f"the files have {len(self.reading.attributes):,} attributes, more than "
                f"{MOST_ATTRIBUTES}",
                fix="list those to keep in [attributes] of a mapping",
            )

    def _base(
        self, base: int | None, lowest: int | None, last: Mapping[str, object]
    ) -> tuple[int, str]:
        """Number of the first position, and a note that says why."""
        base = self.reading.mapped.base if base is None else base
        before = last.get("base")
        if base is not None:
            return base, ""
        if lowest is None:
            return (before if isinstance(before, int) else 1), ""
        if before == 0 and lowest:
            return 0, "positions begin at 0, as in earlier imports"
        if lowest == 0:
            note = "positions begin at 0: some are 0"
            if before == 1:
                note += "; earlier imports assumed 1, so their positions may be one too low"
            return 0, note
        return 1, f"positions begin at 1: none is 0, and the lowest is {lowest}"

    def _empty(
        self, reads: Sequence[steps.FileRead], whole: Tally, last: Mapping[str, object]
    ) -> tuple[pl.Expr, EmptyHits | None]:
        """Staged rows of searches with empty hits, and what these mean."""
        mapped = self.reading.mapped
        known = bool(mapped.empty or last.get("empty"))
        with_hits = [at for at, read in enumerate(reads) if read.hits]
        is_empty = empties.without_hits(with_hits, known=known)
        if not any(read.unsaid for read in reads) or not (with_hits or known):
            return is_empty, None
        step = empties.Count(self.staged, is_empty)
        counts = _each(self.spread, step, event_files.ranges(self.staged.sizes))
        seen = empties.counted(counts, whole.counted_by or ("hits",))
        return is_empty, empties.decided(seen, mapped, last, self.ask)

    def _keep(self, base: int, empty: pl.Expr) -> tuple[Observed, dict[str, int], int]:
        """Write the files of the store, range by range; ``_commit`` makes them count."""
        observed, kinds, kept = Observed(), Counter[str](), 0
        step = steps.Ranges(
            self.staged, self.folder, self.manifest, self.number, base, empty,
            store=not self.check, apart=self.spread is not None,
        )  # fmt: skip
        for each in _each(self.spread, step, event_files.ranges(self.staged.sizes)):
            observed.add(each.observed)
            kept += each.rows
            kinds.update(each.kinds)
            if each.stored is not None:
                file, events = each.stored
                self.manifest = added(self.manifest, [file], [events])
        return observed, dict(sorted(kinds.items())), kept

    def _commit(
        self, imported: Imported, done: Sequence[Input], settings: Mapping[str, object]
    ) -> None:
        entry = StoredImport(
            number=self.number,
            time_us=self.reading.now,
            files={each.name: each.sha256 for each in done},
            rows=imported.rows,
            kept=imported.kept,
            dropped=imported.dropped,
            assumed=[*imported.warnings, *imported.assumed],
            settings=settings,
        )
        one_way = event_files.hashing()
        manifest = replace(
            self.manifest,
            imports=[*self.manifest.imports, entry],
            simulated=self.manifest.simulated or self.simulated,
            hashing=one_way if self.manifest.hashing == one_way else 0,
        )
        commit(self.folder, merged(self.folder, manifest, self.number))


def _examples(
    whole: Tally,
    tallies: Sequence[Tally],
    observed: Observed,
    inputs: Sequence[Input],
    lacks: Mapping[str, Sequence[InputError]],
) -> dict[str, list[str]]:
    """A few places of each reason for which rows, or files, were dropped."""
    units = {tally.file: tally.unit for tally in tallies}
    examples = dict(whole.examples)
    for reason, at in observed.places.items():
        names = ((inputs[file].name, line) for file, line in at)
        examples[reason] = [f"{name}, {units.get(name, LINE)} {line}" for name, line in names]
    for reason, errors in lacks.items():
        if errors:
            examples[reason] = [str(error) for error in errors[:EXAMPLES]]
    return examples


_OURS = ("user_bucket", "user_key", "tie", "local_day", "local_hour", "import", "query_key")


def held(folder: str | Path) -> LogStatus:
    log = read_event_log(folder)
    manifest = read_manifest(log.folder)
    columns = [column.name for column in EVENTS if column.name not in _OURS]
    more = {
        "folder": str(folder),
        "first_day": _day(log.first_day),
        "last_day": _day(log.last_day),
        "known": [name for name in columns if name in log.known],
        "unknown": [name for name in columns if name not in log.known],
        "files": len(log.files),
        "size": sum(file.bytes or 0 for file in manifest.files) if manifest else 0,
        "imports": manifest.imports if manifest else (),
    }
    return LogStatus(**shared(log, LogStatus) | more)


def _day(day: int | None) -> str:
    return "" if day is None else day_text(day)
