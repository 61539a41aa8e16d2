"""Results and comparisons as LaTeX tables with captions, which need the package booktabs.

Bold and marks mean significance, never just a large number; the caption names the test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from karat.reports.phrases.numbers import counted
from karat.reports.writers.plain import CONTROLS
from karat.tables.results import Result, Results

if TYPE_CHECKING:
    from karat.tables.comparison import Comparison, Difference, Settings, Standing

_TESTS = {
    "randomisation": "paired randomisation test",
    "bootstrap": "paired bootstrap test",
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "sign": "sign test",
}
_DRAWN = {"randomisation", "bootstrap"}
_INTERVALS = {"t": "Student's t", "bca": "BCa bootstrap"}
_MARKS = {"better": r"$^{\dagger}$", "worse": r"$^{\dagger}$", "equivalent": r"$^{\ddagger}$"}
# Also < and >, which old fonts replace, and [ and *, which \\ at the end of a row would read.
_SPECIAL = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "*": "{*}",
    "\n": " ",
    "\N{REPLACEMENT CHARACTER}": "?",
    "\N{MINUS SIGN}": "$-$",
    "\N{BLACK STAR}": r"$\star$",
}
_SMALL = r"\scriptsize"


def results_table(results: Results) -> str:
    """Runs as rows and measures as columns, with intervals; then one table per attribute.

    No value is bold: ``evaluate`` tests no difference.
    """
    tables = [_results(results.results, None)]
    for attribute in dict.fromkeys(row.attribute for row in results.slices):
        tables.append(_results([r for r in results.slices if r.attribute == attribute], attribute))
    return "\n".join(tables)


def comparison_table(comparison: Comparison) -> str:
    """Baseline and candidates as rows, measures as columns, with intervals of the differences.

    A dagger marks a significant difference from the baseline. Bold is significantly better than
    every other run: by the same test if the baseline is the only one, else by Tukey's test.
    """
    measures = list(dict.fromkeys(row.measure for row in comparison.differences))
    bold = _bold(comparison)
    lines: list[str] = []
    before: list[str] = []
    for candidate in dict.fromkeys(row.candidate for row in comparison.differences):
        rows = {r.measure: r for r in comparison.differences if r.candidate == candidate}
        row_of = [rows[measure] for measure in measures]
        base = [_number(row.baseline_value, (comparison.baseline, row.measure) in bold)
                for row in row_of]  # fmt: skip
        # Each candidate is compared over the queries that both answered, so means may differ.
        if base != before:
            lines += [r"\midrule"] if lines else []
            lines.append(_line(escape(comparison.baseline), base))
        before = base
        cells = [
            _number(row.candidate_value, (candidate, row.measure) in bold)
            + _MARKS.get(row.verdict, "")
            for row in row_of
        ]
        lines.append(_line(escape(candidate), cells))
        if any(row.ci_low is not None for row in row_of):
            spans = [_span(row.ci_low, row.ci_high, signs=True) for row in row_of]
            lines.append(_line(rf"\quad {_SMALL} 95\,\%", spans))
    return _table(_caption(comparison, bold), ["run", *measures], 1, lines)


def escape(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text.translate(CONTROLS))


def _results(rows: Sequence[Result], attribute: str | None) -> str:
    measures = list(dict.fromkeys(row.measure for row in rows))
    grid: dict[tuple[str, str | None], dict[str, Result]] = {}
    for row in rows:
        grid.setdefault((row.run, row.slice), {})[row.measure] = row
    counts = {key: {row.n for row in held.values()} for key, held in grid.items()}
    all_counts = set().union(*counts.values())
    differ = len(all_counts) > 1
    lines = []
    for (run, part), held in grid.items():
        names = [escape(run)] if attribute is None else [escape(run), escape(str(part))]
        cells = [_value(held[measure]) for measure in measures]
        own = counts[run, part]
        cells += [f"{max(own)}" if len(own) == 1 else f"{min(own)}--{max(own)}"] if differ else []
        lines.append(_line(" & ".join(names), cells))
        if any(row.ci_low is not None for row in held.values()):
            spans = [_span(held[m].ci_low, held[m].ci_high) for m in measures]
            blank = [""] * (len(names) - 1)
            rest = [""] if differ else []
            lines.append(_line(rf"\quad {_SMALL} 95\,\%", [*blank, *spans, *rest]))
    over = "" if differ else f" over {counted(max(all_counts), 'query')}"
    caption = f"Values{over}"
    caption += "" if attribute is None else f", by {escape(attribute)}"
    methods = dict.fromkeys(_INTERVALS[r.ci_method] for r in rows if r.ci_method in _INTERVALS)
    if methods:
        caption += rf", with 95\,\% intervals ({' and '.join(methods)})"
    heads = ["run", *([] if attribute is None else [attribute]), *measures]
    return _table(
        f"{caption}.", [*heads, *(["queries"] if differ else [])], len(heads) - len(measures), lines
    )


def _bold(comparison: Comparison) -> set[tuple[str, str]]:
    """(run, measure) that are significantly better than every run they were tested against."""
    if comparison.settings.all_pairs:
        by_measure: dict[str, list[Standing]] = {}
        for row in comparison.standings:
            by_measure.setdefault(row.measure, []).append(row)
        return {
            (first.run, measure)
            for measure, (first, *others) in by_measure.items()
            if others
            and not any(set(first.groups or "") & set(other.groups or "") for other in others)
        }
    if comparison.standings:  # several candidates are not compared with each other
        return set()
    return {
        (row.candidate if row.verdict == "better" else row.baseline, row.measure)
        for row in comparison.differences
        if row.verdict in {"better", "worse"}
    }


def _caption(comparison: Comparison, bold: set[tuple[str, str]]) -> str:
    """The caption: number of queries, interval, test, and meaning of the marks."""
    rows, settings = comparison.differences, comparison.settings
    name = escape(comparison.baseline)
    least, most = min(row.n for row in rows), max(row.n for row in rows)
    over = counted(most, "query") if least == most else f"{least:,} to {most:,} queries"
    parts = [f"Means over {over}"]
    if any(row.ci_low is not None for row in rows):
        method = _INTERVALS[settings.interval]
        parts[0] += rf", and 95\,\% intervals of each difference from {name} ({method})"
    parts += _marks(rows, settings, name)
    if bold and comparison.settings.all_pairs:
        parts.append("Bold: significantly better than every other run by that test")
    elif bold:
        parts.append("Bold: the better one by that test")
    return "".join(f"{part}. " for part in parts).rstrip()


def _marks(rows: Sequence[Difference], settings: Settings, name: str) -> Iterator[str]:
    drawn = f", {settings.resamples:,} resamples" if settings.test in _DRAWN else ""
    family = max(row.family for row in rows)
    by = "corrected over all pairs of runs:" if settings.all_pairs else "Holm-corrected over"
    holm = f", {by} {family} comparisons" if family > 1 else ""
    test = f"two-sided {_TESTS[settings.test]}{drawn}{holm}"
    if any(row.verdict in {"better", "worse"} for row in rows):
        yield rf"$\dagger$: differs from {name}, $p < .05$ ({test})"
    else:
        yield rf"None differs from {name} at $p < .05$ ({test})"
    if any(row.verdict == "equivalent" for row in rows):
        yield rf"$\ddagger$: equivalent to {name}, within $\pm{settings.margin:g}$"


def _table(caption: str, heads: Sequence[str], texts: int, lines: Sequence[str]) -> str:
    columns = "l" * texts + "r" * (len(heads) - texts)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            r"\setlength{\tabcolsep}{4pt}",
            rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _line(escape(heads[0]), [escape(head) for head in heads[1:]]),
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _line(first: str, cells: Sequence[str]) -> str:
    return " & ".join([first, *cells]) + r" \\"


def _value(row: Result) -> str:
    if row.value is not None and row.aggregate == "sum":
        return f"{row.value:,.0f}"
    return _number(row.value)


def _number(value: float | None, bold: bool = False) -> str:
    if value is None:
        return "--"
    shown = f"{value:.3f}" if value >= 0 else f"$-${-value:.3f}"
    return rf"\textbf{{{shown}}}" if bold else shown


def _span(low: float | None, high: float | None, *, signs: bool = False) -> str:
    if low is None or high is None:
        return ""
    # Without the 0 before the point, five of them fit on a page.
    ends = (f"{end:+.3f}" if signs else f"{end:.3f}" for end in (low, high))
    shown = (re.sub(r"^([+-]?)0\.", r"\1.", end) for end in ends)
    return rf"{_SMALL} $[{', '.join(shown)}]$"
