"""What a trend says in words: the same in a terminal, on a page and in a message."""

from __future__ import annotations

from collections.abc import Sequence

from karat.reports.phrases.numbers import counted, signed
from karat.tables.release.history import BREAKING
from karat.tables.release.trend import Loss, Mark, Series, Trend

_NAMED = 3  # points of those with the same trouble
_LABEL = 10  # characters of a commit that is no hash

TOLD_APART = (
    "told apart: by both intervals, as if the queries were not the same, so “yes” can be "
    "relied on and “no” cannot; karat compare of the two runs tells more"
)
"""What the column means, for where it is shown."""
TOLD_BY_QUERY = (
    "told apart, where the history has values by query: by a t test of the differences, at 5 % for "
    "this step alone"
)
"""What it means of such points."""
ABOUT_APART = (TOLD_APART, TOLD_BY_QUERY)
BY_QUERY = (
    "WORSE and “may be worse” are by query where the history has values so: of histories in which "
    "nothing got worse at most 4 in 100 are said to be WORSE within a year of nights, and 1 in 100 "
    "to drift"
)
"""What a trend by query promises."""


def sentence(series: Series) -> str:
    """What the newest stretch of a series does, and whether its newest point tells anything."""
    if series.told:
        return _said(series)
    return f"cannot tell: {untold(series)}; before that: {_said(series)}"


def uncompared(trend: Trend) -> str | None:
    """That nothing was compared, why, and what to do; None if something was."""
    if trend.compared or trend.untold or not trend.series:
        return None  # of a newest point that does not count, its series says more
    names = list(dict.fromkeys(series.run for series in trend.series))
    if len(names) > 1 and all(len(series.marks) == 1 for series in trend.series):
        first, last = min(names), max(names)  # what these share, all do
        same = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
        prefix = first[:same].rstrip("0123456789")
        shown = ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
        return (
            f"NOTHING WAS COMPARED: {len(names):,} series of one point each ({shown}), as each "
            "run is followed by its own name. Name the series: karat trend "
            f"{trend.source} --series '{prefix}*' takes these for one; from now on, "
            "karat evaluate … --history FILE --series NAME"
        )
    broken = next((s for s in trend.series if any(mark.breaks for mark in s.marks)), None)
    if broken is not None:
        newest = next(mark for mark in reversed(broken.marks) if mark.breaks)
        return (
            f"NOTHING WAS COMPARED: {broke(newest)} changed on {place(newest.time, newest.commit)}"
            ", and no point since can be compared with one before. Evaluate the last run from "
            "before it with what is new, or wait for the next point"
        )
    return (
        "NOTHING WAS COMPARED: there is one point that counts. The next one of the same series "
        "is compared with it: the same name of the run, or --series NAME"
    )


def verdict_of(series: Series) -> str:
    """What ``sentence`` says, in a word or two, for a list of series."""
    lean, said = series.lean, []
    if not series.told:
        said.append("cannot tell")
    lost = lean.paired is not None and lean.paired.loss is not None
    if lost or lean.drop is not None or (lean.below_start and not lean.drifts):
        said.append("WORSE")
    if lean.drifts:
        said.append("DRIFT")
    if said:
        return ", ".join(said)
    if lean.change is None:
        return "nothing to compare"
    if _suspect(series) is not None:
        return "may be worse"
    return "getting better" if lean.rises else "no drift found"


def untold(series: Series) -> str:
    """Why the newest point of a series does not tell how the search is now."""
    newest = series.marks[-1]
    if series.without:
        # What stands last is a value of some nights ago.
        points = "point" if series.without == 1 else f"{series.without:,} points"
        had = place(newest.time, newest.commit)
        return f"the newest {points} of {series.run} lack it, last measured on {had}"
    return f"the newest point does not count ({why(newest)})"


def _said(series: Series) -> str:
    lean = series.lean
    if lean.change is None or lean.fall is None:
        return _alone(series)
    said = []
    if lean.paired is not None and lean.paired.loss is not None:
        said.append(_lost(lean.paired.loss))
    if lean.drop is not None:
        where = place(lean.drop.time, lean.drop.commit)
        step = "in one step, which the intervals tell apart"
        said.append(f"WORSE since {where}: {change_text(lean.drop.change)} {step}")
    since = _since(lean.change, str(lean.since), lean.since_commit, (lean.worse, lean.better))
    if lean.drifts:
        fall = lean.fall
        fell = _since(fall.change, fall.time, fall.commit, (fall.worse, fall.better))
        said.append(f"DRIFT: {fell}: more than chance")
    elif lean.below_start and not said:
        said.append(f"WORSE than at the start: {since}: more than the intervals allow")
    if said:
        return "; ".join(said)
    suspect = _suspect(series)
    if suspect is not None:
        return f"may be worse: {since}; {suspect}"
    if lean.rises:
        return f"getting better: {since}"
    return f"{'no drift any more' if lean.leans else 'no drift found'}: {since}"


def _lost(loss: Loss) -> str:
    """A fall that values by query show."""
    where, before = place(loss.time, loss.commit), place(loss.since, loss.since_commit)
    return (
        f"WORSE since {where}: {change_text(loss.change)} from {before}, query by query "
        f"({_p(loss.p)}; a year of nights asks for {_p(loss.needed)})"
    )


def _suspect(series: Series) -> str | None:
    """That the newest point alone would be worse than the first; None if it would not."""
    paired = series.lean.paired
    if paired is None or not paired.suspect or not paired.needed:
        return None
    if (paired.change < 0) == (series.direction == "lower"):
        return None
    ends = f"{change_text(paired.ci_low)} to {change_text(paired.ci_high)}"
    return (
        f"query by query {ends}, {_p(paired.p)} for these two points alone, and WORSE asks for "
        f"{_p(paired.needed)} after so many looks: karat compare of the two runs says more"
    )


def _p(p: float | None) -> str:
    """A p-value, with as many digits as it takes."""
    return "" if p is None else f"p {p:.2g}" if p >= 0.0001 else "p < .0001"


def _since(change: float, time: str, commit: str | None, steps: tuple[int, int]) -> str:
    """A change, from when it is counted, and how many of the steps were for the worse."""
    moved = sum(steps)
    if not moved and not change:
        return f"no change since {place(time, commit)}"
    of = f"{steps[0]:,} of {counted(moved, 'step', 'steps')} for the worse" if moved else "no step"
    return f"{change_text(change)} since {place(time, commit)}, {of}"


def _alone(series: Series) -> str:
    lean = series.lean
    if not lean.points:
        return "no point that counts"
    if not any(mark.breaks for mark in series.marks):
        return "one point only: nothing to compare it with yet"
    return f"one point only since the break on {place(str(lean.since), lean.since_commit)}"


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


def changed(mark: Mark) -> str:
    """All that is said of what changed."""
    return ", ".join(filter(None, [broke(mark) if mark.breaks else "", besides(mark)]))


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
