"""Counts of the rows of a log that were dropped or changed, with reasons and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice


def by_count(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Items by descending count, ties by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


EXAMPLES = 3
_NAMES = 200  # unknown actions counted separately


@dataclass
class Tally:
    """The counts for one file; ``unit`` is what ``examples`` count: ``line`` | ``row``."""

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

    def drop(self, reason: str, places: Collection[int]) -> None:
        if len(places):
            self.dropped[reason] += len(places)
            self._place(reason, places)

    def change(self, what: str, places: Collection[int], first: str | None = None) -> None:
        if first is not None:
            self.firsts.setdefault(what, first)
        self.changed[what] += len(places)
        self._place(what, places)

    def _place(self, reason: str, places: Iterable[int]) -> None:
        examples = self.examples.setdefault(reason, [])
        more = islice(places, EXAMPLES - len(examples))
        examples += [f"{self.file}, {self.unit} {place}" for place in more]

    def add(self, other: Tally) -> None:
        """Add the counts of another file."""
        for name in ("dropped", "changed", "assumed", "unknown"):
            getattr(self, name).update(getattr(other, name))
        self.rows += other.rows
        self.accepted += other.accepted
        self.left_out |= other.left_out
        self.renamed |= other.renamed
        self.firsts = other.firsts | self.firsts
        self.counted_by |= other.counted_by
        for reason, places in other.examples.items():
            examples = self.examples.setdefault(reason, [])
            examples += places[: EXAMPLES - len(examples)]

    def name(self, actions: Iterable[tuple[str, int]]) -> None:
        for action, count in actions:
            known = action in self.unknown or len(self.unknown) < _NAMES
            self.unknown[action if known else "(others)"] += count
