"""What a mapping names and a log lacks; and logs of which no row is an event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from karat.errors import InputError, nearest
from karat.formats.events.flatten import Reading
from karat.formats.events.lines import in_utf8
from karat.formats.events.log import columns_of, holds
from karat.formats.events.mapping import Mapped
from karat.formats.events.rows import NO_TIME
from karat.formats.events.tally import Tally, by_count

_NAMED = 16  # columns that are named


def check_columns(mapped: Mapped, paths: Sequence[Path]) -> None:
    """See that the columns which a mapping names are in a log.

    Args:
        mapped: The mapping.
        paths: The files of the import; one of them having a column is enough, and files of JSON
            may have any: what they lacked is known once they are read (``lacking``).

    Raises:
        InputError: no file has a column that it names; which, and the nearest that there is.
    """
    wanted = list(mapped.named())
    there: dict[str, None] = {}
    for path in paths if wanted else ():
        with suppress(InputError):  # it is said of the file when it is read
            found = columns_of(path)
            if found is None:
                return
            there.update(dict.fromkeys(found))
    for key, column in wanted:
        if there and not holds(there, column):
            raise InputError(
                f"{key}: there is no column {column!r} in {_files(paths)}",
                file=mapped.name,
                fix=_meant(column, list(there)) + ", or leave the key out",
            )


def lacking(reading: Reading) -> Iterator[str]:
    """Columns that a mapping names and that held no value in any row, in sentences."""
    for key, column in reading.mapped.named():
        if not holds(reading.seen, column):
            near = nearest(column, sorted(reading.seen), 1)
            meant = f"; is it {near[0]!r}?" if near else ""
            yield f"{key} of the mapping: {column!r} holds a value in no row{meant}"


def no_event(tallies: Sequence[Tally], mapped: Mapped) -> InputError:
    """The error of an import of which no row is an event: what was seen, and what helps.

    Args:
        tallies: What became of the rows of each file; one at least has rows.
        mapped: What the rows were read by.
    """
    first = next(tally for tally in tallies if tally.rows)
    reasons = ", ".join(f"{reason} ({count:,})" for reason, count in by_count(first.dropped))
    others = len([tally for tally in tallies if tally.rows]) - 1
    more = f", nor one in {others:,} further file{'s' * (others > 1)}" if others else ""
    seen = ""
    if first.columns:
        seen = f"; columns: {_some(list(first.columns))}"
    if first.strange_time is not None and NO_TIME in first.dropped:
        seen += f"; a time: {first.strange_time[:60]!r}"
    if first.encoding is not None:
        code, name = first.encoding
        seen += f"; it is not UTF-8, and looks like {name}"
        fix = in_utf8(code, first.file)
    elif mapped.name:
        fix = f"correct {mapped.name}, which --mapping gives"
    else:
        fix = "say in a file what columns, actions and times mean: --mapping FILE"
    return InputError(f"no row is an event{more}: {reasons}{seen}", file=first.file, fix=fix)


def _meant(column: str, there: list[str]) -> str:
    near = nearest(column, there, 1)
    return f"did you mean {near[0]!r}?" if near else f"its columns: {_some(there)}"


def _files(paths: Sequence[Path]) -> str:
    return paths[0].name if len(paths) == 1 else f"{len(paths):,} files"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(name[:40] for name in names[:_NAMED]) + more
