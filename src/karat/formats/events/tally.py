"""What became of the rows of a log: how many were left out and why, with places to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


def by_count(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Reasons with their number: the most frequent first, equals by name."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


EXAMPLES = 3
_NAMES = 200  # unknown actions told apart


@dataclass
class Tally:
    """What became of the rows of one file.

    Attributes:
        file: What messages call it.
        unit: What ``examples`` count: ``line`` | ``row``.
        rows: Rows read.
        dropped: Rows left out, by reason in words.
        examples: Of each reason a few places.
        changed: What of rows that were kept was left out or made right, in words.
        assumed: Keys of what was assumed; ``event_log.SAID`` has the words.
        unknown: Actions that are no kind of karat's.
        left_out: Attributes that are not kept.
        renamed: Attributes to the name they are kept under, where letters of it changed.
        firsts: Of what is in ``changed``, the first value, where there is one to show.
        columns: What the file calls its columns, where they hold a value.
        counted_by: Those of them that say what, or how much, searches returned.
        strange_time: The first time that could not be read.
        accepted: Rows that are events.
        encoding: What lines that are not UTF-8 seem to be, as ``event_lines.encoding_of`` has it.
    """

    file: str
    unit: str = "line"
    rows: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    changed: Counter[str] = field(default_factory=Counter)
    assumed: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    left_out: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    firsts: dict[str, str] = field(default_factory=dict)
    columns: dict[str, None] = field(default_factory=dict)
    counted_by: dict[str, None] = field(default_factory=dict)
    strange_time: str | None = None
    accepted: int = 0
    encoding: tuple[str, str] | None = None

    def drop(self, reason: str, places: Iterable[int], count: int) -> None:
        """Count rows that are left out, and keep the first few places."""
        if count:
            self.dropped[reason] += count
            self._place(reason, places)

    def change(
        self, what: str, places: Iterable[int], count: int, first: str | None = None
    ) -> None:
        """Count rows of which something is left out, and keep the first value that was."""
        if count:
            if first is not None:
                self.firsts.setdefault(what, first)
            self.changed[what] += count
            self._place(what, places)

    def _place(self, reason: str, places: Iterable[int]) -> None:
        there = self.examples.setdefault(reason, [])
        for place in places:
            if len(there) >= EXAMPLES:
                break
            there.append(f"{self.file}, {self.unit} {place}")

    def name(self, actions: Iterable[tuple[str, int]]) -> None:
        """Count actions that are no kind of karat's."""
        for action, count in actions:
            known = action in self.unknown or len(self.unknown) < _NAMES
            self.unknown[action if known else "(others)"] += count
