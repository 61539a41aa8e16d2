"""What an import assumed, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from karat.formats.events.flatten import Reading
from karat.formats.events.lines import NO_TEXT, in_utf8
from karat.formats.events.log import SAID
from karat.formats.events.tally import Tally, by_count
from karat.store.events.manifest import Manifest
from karat.workflows.online import _import_users
from karat.workflows.online._import_inputs import Input
from karat.workflows.online._import_ranges import Found

REFUSED = "files that could not be read, of which nothing was kept"
DAMAGED = "damaged files, of which only what comes before the damage was read"
_ROBOTS = "robots told"
_NAMED = 8  # attributes and files that are named
_LONGEST = 40  # letters of a value that is shown


def of_tallies(tallies: Sequence[Tally], reading: Reading) -> Iterator[str]:
    """What was assumed of rows, and what of rows that were kept was left out."""
    assumed: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    left_out: set[str] = set()
    renamed: dict[str, str] = {}
    firsts: dict[str, str] = {}
    for tally in tallies:
        assumed.update(tally.assumed)
        changed.update(tally.changed)
        left_out |= tally.left_out
        renamed |= tally.renamed
        firsts = {**tally.firsts, **firsts}
    zone = reading.mapped.zone or reading.zone
    words = {**SAID, **_import_users.SAID}
    for key, count in by_count(assumed):
        if key in words:
            yield words[key].format(f"{count:,}", zone=zone)
    if not assumed[_ROBOTS] and any(tally.rows for tally in tallies):
        yield "nothing in the log tells robots from people: no event counts as a robot's"
    for what, count in by_count(changed):
        value = firsts.get(what)
        yield f"{what}: {count:,}" + (
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
    if renamed:
        yield f"attributes under another name: {_some(f'{k} as {v}' for k, v in renamed.items())}"
    if left_out:
        yield f"not kept as attributes: {_some(left_out)}"
    empty = [tally.file for tally in tallies if not tally.rows]
    if empty:
        more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        yield f"nothing is in {empty[0]}{more}"


def _some(names: Iterable[str]) -> str:
    every = sorted(names)
    more = f" and {len(every) - _NAMED:,} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more


def _short(value: str) -> str:
    return repr(value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…")


def of_files(done: Sequence[Input], without: Collection[str], before: Manifest) -> Iterator[str]:
    """What is to be known of files.

    Args:
        done: Those that were read.
        without: Names of those of which no row is an event.
        before: What the store held.
    """
    if without:
        yield f"no row is an event, so that it is read again next time: {_some(without)}"
    known = {digest for each in before.imports for digest in each.files.values()}
    again = [each.name for each in done if each.sha256 in known]
    if again:
        yield (
            f"read before by another mapping: {_some(again)}; events that it made otherwise are "
            "in the event store still, beside these"
        )


def of_found(found: Found) -> Iterator[str]:
    """What was seen of users as a whole."""
    if found.below:
        yield f"positions before the first, left out: {found.below:,}"
    if found.told:
        yield (
            "events that say there was a search which has a record of its own, kept as other: "
            f"{found.told:,}"
        )
    if found.before:
        yield (
            f"events before the search they belong to: {found.before:,}, of "
            f"{found.before_users:,} users; clocks differ, and times between the two are wrong"
        )


def of_store(manifest: Manifest, *, simulated: bool) -> Iterator[str]:
    """What the import does to the store as a whole."""
    before = manifest.imports
    if before and simulated != manifest.simulated:
        yield "simulated and real events are in one event store now: all of it counts as simulated"
