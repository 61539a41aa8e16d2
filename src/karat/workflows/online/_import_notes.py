"""Notes on what an import assumed, left out, or lacked by its mapping; and its errors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from karat.errors import InputError, nearest
from karat.formats.events.flatten import Reading
from karat.formats.events.lines import NO_TEXT, in_utf8
from karat.formats.events.log import SAID, columns_of, holds
from karat.formats.events.mapping import Mapped
from karat.formats.events.rows import NO_TIME
from karat.formats.events.tally import Tally, by_count
from karat.reports.phrases.numbers import first_of
from karat.store.events.manifest import Manifest
from karat.workflows.online._import_inputs import SAID as USERS_SAID
from karat.workflows.online._import_inputs import Input
from karat.workflows.online._import_ranges import Observed

REFUSED = "files that could not be read, of which nothing was kept"
DAMAGED = "damaged files, of which only what comes before the damage was read"
_ROBOTS = "robots told"
_NAMED = 8  # attributes and files listed in a note
_COLUMNS = 16  # columns listed in a message
_LONGEST = 40  # characters of a value that is shown


def of_tallies(tallies: Sequence[Tally], whole: Tally, reading: Reading) -> Iterator[str]:
    """Notes on rows: assumptions, and values left out; ``whole`` has the counts of all files."""
    zone = reading.mapped.zone or reading.zone
    words = {**SAID, **USERS_SAID}
    for key, count in by_count(whole.assumed):
        if key in words:
            yield words[key].format(f"{count:,}", zone=zone)
    if not whole.assumed[_ROBOTS] and whole.rows:
        yield "nothing in the log identifies bots: no event counts as a bot's"
    for kind, count in by_count(whole.changed):
        value = whole.firsts.get(kind)
        yield f"{kind}: {count:,}" + (
            "" if value is None else f", left out; the first: {_short(value)}"
        )
    for tally in tallies:
        if tally.encoding is not None:
            code, name = tally.encoding
            lines = tally.dropped[NO_TEXT]
            were = "line of it was" if lines == 1 else "lines of it were"
            yield (
                f"{tally.file} is not UTF-8, and looks like {name}: {lines:,} {were} dropped; "
                f"{in_utf8(code, tally.file)}"
            )
    if whole.renamed:
        yield f"renamed attributes: {_some(f'{k} as {v}' for k, v in whole.renamed.items())}"
    if whole.left_out:
        yield f"not imported as attributes: {_some(whole.left_out)}"
    empty = [tally.file for tally in tallies if not tally.rows]
    if empty:
        yield f"empty files: {first_of(empty, 1)}"


def _some(names: Iterable[str]) -> str:
    return first_of(sorted(names), _NAMED)


def _short(value: str) -> str:
    return repr(value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…")


def of_files(done: Sequence[Input], without: Collection[str], before: Manifest) -> Iterator[str]:
    if without:
        yield f"no row is an event, so the next import reads it again: {_some(without)}"
    known = {digest for each in before.imports for digest in each.files.values()}
    again = [each.name for each in done if each.sha256 in known]
    if again:
        yield (
            f"imported before with another mapping: {_some(again)}; events that it read "
            "differently remain in the event store next to these"
        )


def of_observed(observed: Observed) -> Iterator[str]:
    if observed.below:
        yield f"positions before the first, left out: {observed.below:,}"
    if observed.repeated:
        yield (
            f"events that repeat a search with its own record, kept as other: {observed.repeated:,}"
        )
    if observed.before:
        yield (
            f"events before the search they belong to: {observed.before:,}, of "
            f"{observed.before_users:,} users; clocks differ, so times between the two are wrong"
        )


def of_store(manifest: Manifest, *, simulated: bool) -> Iterator[str]:
    before = manifest.imports
    if before and simulated != manifest.simulated:
        yield "the event store has simulated and real events now: all of it counts as simulated"


def check_columns(mapped: Mapped, inputs: Sequence[Input]) -> None:
    """Check that a log has the columns that a mapping names.

    Args:
        inputs: The files of the import; a column in one of them is enough. JSON files may have any
            column: what they lack is known once they are read (``lacking``).
    """
    named = list(mapped.named())
    available: dict[str, None] = {}
    for each in inputs if named else ():
        with suppress(InputError):  # reported when the file is read
            columns = columns_of(each.path)
            if columns is None:
                return
            available.update(dict.fromkeys(columns))
    for key, column in named:
        if available and not holds(available, column):
            raise InputError(
                f"{key}: there is no column {column!r} in {_files(inputs)}",
                file=mapped.name,
                fix=_meant(column, list(available)) + ", or leave the key out",
            )


def lacking(reading: Reading) -> Iterator[str]:
    """Notes on columns that a mapping names and that are empty in every row."""
    for key, column in reading.mapped.named():
        if not holds(reading.seen, column):
            near = nearest(column, sorted(reading.seen), 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            yield f"{key} of the mapping: {column!r} has no value in any row{meant}"


def no_event(tallies: Sequence[Tally], mapped: Mapped) -> InputError:
    """The error of an import without any event, with what was seen and how to fix it."""
    first = next(tally for tally in tallies if tally.rows)
    reasons = ", ".join(f"{reason} ({count:,})" for reason, count in by_count(first.dropped))
    others = len([tally for tally in tallies if tally.rows]) - 1
    more = f", nor in {others:,} further file{'s' * (others > 1)}" if others else ""
    seen = ""
    if first.columns:
        seen = f"; columns: {_columns(list(first.columns))}"
    if first.strange_time is not None and NO_TIME in first.dropped:
        seen += f"; a time: {first.strange_time[:60]!r}"
    if first.encoding is not None:
        code, name = first.encoding
        seen += f"; it is not UTF-8, and looks like {name}"
        fix = in_utf8(code, first.file)
    elif mapped.name:
        fix = f"correct the mapping {mapped.name}"
    else:
        fix = "describe columns, actions and times in a file: --mapping FILE"
    return InputError(f"no row is an event{more}: {reasons}{seen}", file=first.file, fix=fix)


def _meant(column: str, columns: list[str]) -> str:
    near = nearest(column, columns, 1)
    return f"did you mean {near[0]!r}?" if near else f"its columns: {_columns(columns)}"


def _files(inputs: Sequence[Input]) -> str:
    return Path(inputs[0].name).name if len(inputs) == 1 else f"{len(inputs):,} files"


def _columns(names: list[str]) -> str:
    return first_of([name[:40] for name in names], _COLUMNS)
