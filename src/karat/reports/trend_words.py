"""What a trend says in words: the same in a terminal, on a page and in a message."""

from __future__ import annotations

from collections.abc import Sequence

from karat.reports.figures import counted, signed
from karat.tables.history import BREAKING, Mark, Series

_NAMED = 3  # points of those with the same trouble
_LABEL = 10  # characters of a commit that is no hash


def sentence(series: Series) -> str:
    """What the newest stretch of a series does, and whether its newest point tells anything."""
    newest = series.marks[-1]
    if newest.counts:
        return _said(series)
    return (
        f"cannot tell: the newest point does not count ({why(newest)}); before it: {_said(series)}"
    )


def _said(series: Series) -> str:
    lean = series.lean
    if lean.change is None:
        return "one point only since then" if lean.points else "no point that counts"
    moved = lean.worse + lean.better
    steps = (
        f"{lean.worse:,} of {counted(moved, 'step', 'steps')} for the worse" if moved else "no step"
    )
    since = f"{change_text(lean.change)} since {place(str(lean.since), lean.since_commit)}, {steps}"
    if lean.leans:
        return f"DRIFT: {since}: more than chance"
    if lean.drifts:
        return f"DRIFT: {since}: more than the intervals allow, and no single step shows it"
    if lean.below_start:
        return f"worse than at the start: {since}"
    if lean.rises:
        return f"getting better: {since}"
    return f"no drift found: {since}"


def troubles(marks: Sequence[Mark]) -> list[str]:
    """What went wrong at some points, the newest first: the points with the same, together."""
    found: dict[tuple[bool, str], list[Mark]] = {}
    for mark in reversed(marks):
        if said := why(mark):
            found.setdefault((mark.counts, said), []).append(mark)
    lines = []
    for (counts, trouble), of in found.items():
        where = ", ".join(place(mark.time, mark.commit) for mark in of[:_NAMED])
        more = f" and {len(of) - _NAMED:,} more" if len(of) > _NAMED else ""
        lines.append(f"{where}{more}: {trouble}{'' if counts else ' (left out)'}")
    return lines


def place(time: str, commit: str | None) -> str:
    """Which point: its day, and its commit where that is known."""
    return f"{day(time)} ({short(commit)})" if commit else day(time)


def day(time: str) -> str:
    """The day of a time."""
    return time[:10]


def clock(time: str) -> str:
    """A time to the minute."""
    return time[:16].replace("T", " ")


def short(commit: str | None) -> str:
    """A hash as Git shortens it; the start of any other label."""
    text = commit or ""
    if _is_hash(text):
        return text[:7]
    return text if len(text) <= _LABEL else f"{text[: _LABEL - 1]}…"


def _is_hash(text: str) -> bool:
    return len(text) >= 12 and all(c in "0123456789abcdef" for c in text)


def number(value: float | None) -> str:
    """A value; a dash for None."""
    if value is None:
        return "–"
    text = f"{value:.4f}" if abs(value) < 1000 else f"{value:,.0f}"
    return text.replace("-", "−")


def change_text(change: float | None) -> str:
    """A change, with its sign; empty for None, and a 0 without digits is exactly that."""
    if not change:
        return "" if change is None else "0"
    text = signed(change, 4 if abs(change) < 1000 else 0)
    return "0.0000" if text[1:] == "0.0000" else text


def yes(told: bool | None) -> str:
    """Yes, no, or nothing."""
    return "" if told is None else "yes" if told else "no"


def broke(mark: Mark) -> str:
    """What makes a point and those before it incomparable."""
    known = [name for name in mark.changed if name in BREAKING]
    return ", ".join([*known, *(f"{name}?" for name in mark.unknown if name in BREAKING)])


def besides(mark: Mark) -> str:
    """What changed besides; that the answers did goes without saying if something else did."""
    others = [name for name in mark.changed if name not in BREAKING]
    told = [name for name in others if name != "answers"]
    return ", ".join(told) or ("answers only" if others and not mark.breaks else "")


def why(mark: Mark) -> str | None:
    """What went wrong at a point; None if nothing is known to have."""
    if mark.trouble or mark.counts:
        return mark.trouble
    if mark.value is None:
        return "no value"
    return f"the gate said {verdict(mark)}"


def verdict(mark: Mark) -> str:
    """What the gate said; of an evaluation, whether it is left out."""
    if mark.verdict is not None:
        return mark.verdict.replace("_", " ")
    return "" if mark.counts else "left\N{NO-BREAK SPACE}out"
