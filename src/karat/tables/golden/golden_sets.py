"""Golden sets as they are stored."""

from __future__ import annotations

from dataclasses import dataclass

from karat.tables.scale import Scale


@dataclass(frozen=True)
class GoldenSetRow:
    """A golden set and its settings."""

    id: int  # number in the store
    name: str
    scale: Scale  # lowest and highest grade
    grades: dict[float, str]  # `label: criterion` by grade, ascending
    raters: int  # raters for each pair
    repeats: float  # share of a rater's judgments that are hidden repeats, 0 to 0.5
    salt: str  # salt of its hashes, which determine orders and repeats
    guideline: str  # version of the newest guideline: `1`, `2`, …
    guideline_text: str
    created_us: int  # when it was created, microseconds UTC


def addressable(name: str) -> bool:
    """Whether a golden set of this name can have pages: "a/b" and ".." are other addresses."""
    return "/" not in name and name not in {".", ".."} and name.isprintable()
