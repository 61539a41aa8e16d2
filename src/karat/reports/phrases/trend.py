"""Wording of a trend, the same in terminals, on pages and in messages."""

from __future__ import annotations

from collections.abc import Sequence

from karat.reports.phrases.numbers import counted, first_of, signed
from karat.tables.release.history import BREAKING
from karat.tables.release.trend import Loss, Mark, Series, Trend

_NAMED = 3  # points named for a problem
_LABEL = 10  # characters of a commit label that is not a hash

SIGNIFICANT = (
    "significant: by both intervals, as if the queries were different, so “yes” is reliable and "
    "“no” is not; karat compare of the two runs is more sensitive"
)
"""Meaning of the column ``told_apart``."""
SIGNIFICANT_BY_QUERY = (
    "significant, where the history has values by query: by a t test of the differences, at 5 % "
    "for this step alone"
)
"""Meaning of the column for points with values by query."""
ABOUT_SIGNIFICANT = (SIGNIFICANT, SIGNIFICANT_BY_QUERY)
BY_QUERY = (
    "WORSE and “may be worse” are by query where the history has values by query: of histories in "
    "which nothing got worse, at most 4 in 100 are called WORSE within a year of nightly runs, and "
    "1 in 100 DRIFT"
)
"""Error rates of a trend by query."""


def sentence(series: Series) -> str:
    """The verdict on the newest stretch of a series, and whether its newest point counts."""
    said = "; ".join(text for _, text in _verdicts(series))
    return said if series.told else f"cannot tell: {untold(series)}; before that: {said}"


def uncompared(trend: Trend) -> str | None:
    """That nothing was compared, why, and what to do; None if something was."""
    if trend.compared or trend.untold or not trend.series:
        return None  # where a newest point does not count, its series says more
    names = list(dict.fromkeys(series.run for series in trend.series))
    if len(names) > 1 and all(len(series.marks) == 1 for series in trend.series):
        first, last = min(names), max(names)  # a prefix of both is one of all
        same = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
        prefix = first[:same].rstrip("0123456789")
        shown = ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
        return (
            f"NOTHING WAS COMPARED: {len(names):,} series of one point each ({shown}), because "
            "each run is a series by its own name. Join them: karat trend "
            f"{trend.source} --series '{prefix}*'; from now on, name the series: "
            "karat evaluate … --history FILE --series NAME"
        )
    broken = next((s for s in trend.series if any(mark.breaks for mark in s.marks)), None)
    if broken is not None:
        newest = next(mark for mark in reversed(broken.marks) if mark.breaks)
        return (
            f"NOTHING WAS COMPARED: {broke(newest)} changed on {place(newest.time, newest.commit)}"
            ", and no point since is comparable with one before. Evaluate the last run from before "
            "the change again, or wait for the next point"
        )
    return (
        "NOTHING WAS COMPARED: there is one point that counts. The next one of the same series "
        "is compared with it: the same name of the run, or --series NAME"
    )


def verdict_of(series: Series) -> str:
    """The verdict of ``sentence`` in a word or two, for a list of series."""
    found = dict.fromkeys(word for word, _ in _verdicts(series))
    if series.told:
        return ", ".join(found)
    return ", ".join(["cannot tell", *(word for word in found if word in {"WORSE", "DRIFT"})])


def untold(series: Series) -> str:
    """Why the newest point of a series does not show how the search is now."""
    newest = series.marks[-1]
    if series.without:
        points = "point" if series.without == 1 else f"{series.without:,} points"
        had = place(newest.time, newest.commit)
        return f"the newest {points} of {series.run} lack it, last measured on {had}"
    return f"the newest point does not count ({why(newest)})"


def _verdicts(series: Series) -> list[tuple[str, str]]:
    """What the newest stretch of a series shows: each in a word or two, and in a sentence."""
    lean = series.lean
    if lean.change is None or lean.fall is None:
        return [("nothing to compare", _alone(series))]
    found = []
    if lean.paired is not None and lean.paired.loss is not None:
        found.append(("WORSE", _lost(lean.paired.loss)))
    if lean.drop is not None:
        where = place(lean.drop.time, lean.drop.commit)
        step = "in one step, significant by the intervals"
        found.append(("WORSE", f"WORSE since {where}: {change_text(lean.drop.change)} {step}"))
    since = _since(lean.change, str(lean.since), lean.since_commit, (lean.worse, lean.better))
    if lean.drifts:
        fall = lean.fall
        fell = _since(fall.change, fall.time, fall.commit, (fall.worse, fall.better))
        found.append(("DRIFT", f"DRIFT: {fell}: more than chance"))
    elif lean.below_start and not found:
        text = f"WORSE than at the start: {since}: significant by the intervals"
        found.append(("WORSE", text))
    if found:
        return found
    suspect = _suspect(series)
    if suspect is not None:
        return [("may be worse", f"may be worse: {since}; {suspect}")]
    if lean.rises:
        return [("getting better", f"getting better: {since}")]
    drift = "no drift any more" if lean.leans else "no drift found"
    return [("no drift found", f"{drift}: {since}")]


def _lost(loss: Loss) -> str:
    """A loss shown by the values of queries."""
    where, before = place(loss.time, loss.commit), place(loss.since, loss.since_commit)
    return (
        f"WORSE since {where}: {change_text(loss.change)} from {before}, query by query "
        f"({_p(loss.p)}; over a year of nightly runs {_p(loss.needed)} is needed)"
    )


def _suspect(series: Series) -> str | None:
    """Why the newest point alone looks worse than the first; None if it does not."""
    paired = series.lean.paired
    if paired is None or not paired.suspect or not paired.needed:
        return None
    if (paired.change < 0) == (series.direction == "lower"):
        return None
    ends = f"{change_text(paired.ci_low)} to {change_text(paired.ci_high)}"
    return (
        f"query by query {ends}, {_p(paired.p)} for these two points alone, but WORSE needs "
        f"{_p(paired.needed)} after so many looks: karat compare of the two runs tells more"
    )


def _p(p: float | None) -> str:
    """A p-value, to two significant digits."""
    return "" if p is None else f"p {p:.2g}" if p >= 0.0001 else "p < .0001"


def _since(change: float, time: str, commit: str | None, steps: tuple[int, int]) -> str:
    """A change, since when, and how many of its steps were for the worse."""
    moved = sum(steps)
    if not moved and not change:
        return f"no change since {place(time, commit)}"
    of = f"{steps[0]:,} of {counted(moved, 'step')} for the worse" if moved else "no step"
    return f"{change_text(change)} since {place(time, commit)}, {of}"


def _alone(series: Series) -> str:
    lean = series.lean
    if not lean.points:
        return "no point that counts"
    if not any(mark.breaks for mark in series.marks):
        return "one point only: nothing to compare it with yet"
    return f"one point only since the break on {place(str(lean.since), lean.since_commit)}"


def troubles(marks: Sequence[Mark]) -> list[str]:
    """Problems of points, newest first; points with the same problem together."""
    grouped: dict[tuple[bool, str], list[Mark]] = {}
    for mark in reversed(marks):
        if problem := why(mark):
            grouped.setdefault((mark.counts, problem), []).append(mark)
    lines = []
    for (counts, problem), points in grouped.items():
        where = first_of([place(mark.time, mark.commit) for mark in points], _NAMED)
        lines.append(f"{where}: {problem}{'' if counts else ' (left out)'}")
    return lines


def place(time: str, commit: str | None) -> str:
    """A point as its day, with its commit if known."""
    return f"{day(time)} ({short(commit)})" if commit else day(time)


def day(time: str) -> str:
    return time[:10]


def clock(time: str) -> str:
    return time[:16].replace("T", " ")


def short(commit: str | None) -> str:
    text = commit or ""
    if len(text) >= 12 and all(c in "0123456789abcdef" for c in text):
        return text[:7]
    return text if len(text) <= _LABEL else f"{text[: _LABEL - 1]}…"


def number(value: float | None) -> str:
    if value is None:
        return "–"
    text = f"{value:.4f}" if abs(value) < 1000 else f"{value:,.0f}"
    return text.replace("-", "−")


def change_text(change: float | None) -> str:
    """A signed change; empty for None; ``0`` only if exactly 0."""
    if not change:
        return "" if change is None else "0"
    text = signed(change, 4 if abs(change) < 1000 else 0)
    return "0.0000" if text[1:] == "0.0000" else text


def yes(flag: bool | None) -> str:
    return "" if flag is None else "yes" if flag else "no"


def broke(mark: Mark) -> str:
    """What makes a point incomparable with those before it."""
    known = [name for name in mark.changed if name in BREAKING]
    return ", ".join([*known, *(f"{name}?" for name in mark.unknown if name in BREAKING)])


def changed(mark: Mark) -> str:
    return ", ".join(filter(None, [broke(mark) if mark.breaks else "", besides(mark)]))


def besides(mark: Mark) -> str:
    """What else changed; the answers are named only if nothing else did."""
    others = [name for name in mark.changed if name not in BREAKING]
    named = [name for name in others if name != "answers"]
    return ", ".join(named) or ("answers only" if others and not mark.breaks else "")


def why(mark: Mark) -> str | None:
    """The problem of a point; None if none is known."""
    if mark.trouble or mark.counts:
        return mark.trouble
    if mark.value is None:
        return "no value"
    return f"gate: {verdict(mark)}"


def verdict(mark: Mark) -> str:
    """The verdict of the gate; of an evaluation, whether it is left out."""
    if mark.verdict is not None:
        return mark.verdict.replace("_", " ")
    return "" if mark.counts else "left\N{NO-BREAK SPACE}out"
