"""What an import assumed, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from karat.formats.event_flat import Reading
from karat.formats.event_log import SAID
from karat.formats.event_tally import Tally, by_count
from karat.store.event_manifest import Manifest
from karat.workflows.online import importing_users
from karat.workflows.online.importing_ranges import Found

REFUSED = "files that could not be read, of which nothing was kept"
_ROBOTS = "robots told"
_NAMED = 8  # attributes left out that are named


def of_tallies(tallies: Sequence[Tally], reading: Reading) -> Iterator[str]:
    """What was assumed of rows, and what of rows that were kept was left out."""
    assumed: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    left_out: set[str] = set()
    for tally in tallies:
        assumed.update(tally.assumed)
        changed.update(tally.changed)
        left_out |= tally.left_out
    zone = reading.mapped.zone or reading.zone
    words = {**SAID, **importing_users.SAID}
    for key, count in by_count(assumed):
        if key in words:
            yield words[key].format(f"{count:,}", zone=zone)
    if not assumed[_ROBOTS] and any(tally.rows for tally in tallies):
        yield "nothing in the log tells robots from people: no event counts as a robot's"
    for what, count in by_count(changed):
        yield f"{what}: {count:,}"
    if left_out:
        some = ", ".join(sorted(left_out)[:_NAMED])
        more = f" and {len(left_out) - _NAMED:,} more" if len(left_out) > _NAMED else ""
        yield f"not kept as attributes: {some}{more}"
    empty = [tally.file for tally in tallies if not tally.rows]
    if empty:
        more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        yield f"nothing is in {empty[0]}{more}"


def of_found(found: Found) -> Iterator[str]:
    """What was seen of users as a whole."""
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
