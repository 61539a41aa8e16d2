"""Results other than measures, as tables of text for terminals, pages and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from karat.measures.no_answer import thinned
from karat.reports.phrases.numbers import milliseconds, percent, silence_heading, three_digits
from karat.tables import Results
from karat.tables.about import AboutChange, brief, short
from karat.tables.comparison import AnswerChange
from karat.tables.results import Latency, NoAnswer, Outcome

CURVE_ROWS = 12


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of text.

    Attributes:
        title: Its title.
        heads: Headings of its columns.
        rows: Its cells.
        texts: How many of the first columns hold text; the others hold numbers.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1


def sheets(results: Results) -> Iterator[Sheet]:
    """The sheets of silence, latency and outcomes, if there are any."""
    if results.no_answer:
        yield silence(results.no_answer)
    if results.latency:
        yield latency(results.latency)
    if results.outcomes:
        yield outcomes(results.outcomes)


def silence(rows: Sequence[NoAnswer]) -> Sheet:
    """How often each run stays silent on queries without a right answer."""
    cells = [(row.run, f"{row.n:,}", f"{row.silent:,}", percent(row.share)) for row in rows]
    heads = ("run", "queries", silence_heading(rows), "share")
    return Sheet("queries without a right answer", heads, cells)


def curve(row: NoAnswer) -> Sheet:
    """The effect of thresholds on the best score, at most a dozen."""
    points = thinned(row.curve, CURVE_ROWS)
    shown = [f"{point.threshold:g}" for point in points]
    for place in range(1, len(shown)):
        if shown[place] == shown[place - 1]:  # the last is just above the highest score
            shown[place] = f"above {shown[place]}"
    cells = [
        (score, percent(point.silent_no_answer), percent(point.silent_answerable))
        for score, point in zip(shown, points, strict=True)
    ]
    heads = ("score", "no answer, silent", "answerable, silent")
    return Sheet(f"{row.run}: withhold answers whose best score is below …", heads, cells, 0)


def latency(rows: Sequence[Latency]) -> Sheet:
    """Latency of each run."""
    cells = [
        (
            row.run,
            f"{row.n:,}",
            *map(milliseconds, (row.p50_us, row.p95_us, row.p99_us, row.max_us)),
        )
        for row in rows
    ]
    return Sheet("latency, milliseconds", ("run", "n", "p50", "p95", "p99", "slowest"), cells)


def answer_changes(rows: Sequence[AnswerChange]) -> Sheet:
    """Latency and answers of candidates, against the baseline."""
    several = len({row.candidate for row in rows}) > 1
    cells = [
        (
            *((row.candidate,) if several else ()),
            row.what,
            _answer(row, row.baseline_value),
            _answer(row, row.candidate_value),
            _answer(row, row.difference, sign=True),
            ""
            if row.ci_low is None or row.ci_high is None
            else f"{_answer(row, row.ci_low, sign=True)} to {_answer(row, row.ci_high, sign=True)}",
            f"{row.n:,}",
            row.verdict,
        )
        for row in rows
    ]
    names = ("run", "answers") if several else ("answers",)
    heads = (*names, "from", "to", "change", "95 %", "n", "verdict")
    return Sheet("speed and answers", heads, cells, len(names))


def what_changed(rows: Sequence[AboutChange]) -> Sheet:
    """Recorded facts in which candidates differ from the baseline."""
    several = len({row.candidate for row in rows}) > 1
    cells = [
        (*((row.candidate,) if several else ()), row.key, *map(_recorded, _both(row)))
        for row in rows
    ]
    heads = (*(("run",) if several else ()), "about", "baseline", "candidate")
    return Sheet("what changed", heads, cells, len(heads))


def _both(row: AboutChange) -> tuple[str | None, str | None]:
    return row.baseline_value, row.candidate_value


def _recorded(value: str | None) -> str:
    return "not recorded" if value is None else short(value)


def about_runs(results: Results) -> Sheet | None:
    """The recorded facts of each run; None if there are none."""
    cells = [(run, brief(about)) for run, about in results.about.items()]
    return Sheet("about the runs", ("run", "about"), cells, 2) if cells else None


def _answer(row: AnswerChange, value: float, *, sign: bool = False) -> str:
    """A time in milliseconds, or a share of the queries."""
    mark = ("+" if value > 0 else "−" if value < 0 else "") if sign else ""
    if row.what.startswith("latency"):
        return f"{mark}{milliseconds(1000 * abs(value))} ms"
    return f"{mark}{100 * abs(value):.1f} %"


def outcomes(rows: Sequence[Outcome]) -> Sheet:
    """Correlation of measures with outcomes, over queries."""
    several = len({row.run for row in rows}) > 1
    cells = [
        (
            row.measure,
            *((row.run,) if several else ()),
            row.outcome,
            three_digits(row.spearman),
            "" if row.ci_low is None else f"{row.ci_low:.2f} – {row.ci_high:.2f}",
            three_digits(row.kendall),
            three_digits(row.auc),
            f"{row.n:,}",
        )
        for row in rows
    ]
    names = ("measure", "run", "outcome") if several else ("measure", "outcome")
    heads = (*names, "Spearman", "95 %", "Kendall", "AUC", "n")
    return Sheet("with outcomes, over queries", heads, cells, len(names))
