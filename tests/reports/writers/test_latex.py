"""Tables for papers: whole, escaped, and bold only where a test says so."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from karat.reports.writers.latex import comparison_table, escape, results_table
from karat.tables import Run
from karat.tables.comparison import Comparison
from karat.workflows.offline.compare import compare
from karat.workflows.offline.evaluate import evaluate

HOSTILE = '[a]&b%c$d#e_f{g}h~i^j\\k<l>m|n*\x1b "o"'
QRELS = {f"q{n}": {"good": 1, "bad": 0} for n in range(12)}
OLD = {query: {"bad": 2.0, "good": 1.0} for query in QRELS}
NEW = {query: {"good": 2.0, "bad": 1.0} for query in QRELS}
MIXED = {query: (NEW if n % 2 else OLD)[query] for n, query in enumerate(QRELS)}


def found(**candidates: dict[str, dict[str, float]]) -> Comparison:
    return compare(QRELS, {"old": OLD}, candidates, ["RR", "R@2"])


def test_a_comparison_whole() -> None:
    # RR 1/2 before and 1 after in each of 12 queries: p = 2/2^12, no spread, hence no interval.
    # By R@2 nothing differs, so that there is one test only, and nothing to correct.
    assert comparison_table(found(new=NEW)) == (
        r"""\begin{table}
\centering
\setlength{\tabcolsep}{4pt}
\caption{Means over 12 queries. $\dagger$: differs from old, $p < .05$ """
        r"""(two-sided paired randomisation test, 10,000 resamples). """
        r"""Bold: the better one by that test.}
\begin{tabular}{lrr}
\toprule
run & RR & R@2 \\
\midrule
old & 0.500 & 1.000 \\
new & \textbf{1.000}$^{\dagger}$ & 1.000 \\
\bottomrule
\end{tabular}
\end{table}
"""
    )


def test_a_difference_that_no_test_tells_is_neither_bold_nor_marked() -> None:
    grades = {"q1": {"a": 1}, "q2": {"a": 1}}
    one_lost = {"q1": {"b": 2.0, "a": 1.0}, "q2": {"a": 1.0}}
    none_lost = {"q1": {"a": 1.0}, "q2": {"a": 1.0}}
    few = compare(grades, {"old": one_lost}, {"new": none_lost}, ["RR"])
    text = comparison_table(few)
    assert "None differs from old" in text
    assert "textbf" not in text
    assert "dagger" not in text


def test_the_worse_candidate_is_marked_and_the_baseline_bold() -> None:
    turned = compare(QRELS, {"new": NEW}, {"old": OLD}, ["RR"])
    text = comparison_table(turned)
    assert r"new & \textbf{1.000} \\" in text
    assert r"old & 0.500$^{\dagger}$ \\" in text


def test_of_several_runs_bold_is_what_differs_from_all_others() -> None:
    made = found(new=NEW, mixed=MIXED)
    assert "textbf" not in comparison_table(made)  # no candidate is compared with another
    made = replace(made, settings=replace(made.settings, all_pairs=True))
    first = made.standings[0]
    assert first.run == "new"
    apart = [replace(row, groups="a" if row.run == "new" else "b") for row in made.standings]
    text = comparison_table(replace(made, standings=apart))
    assert re.search(r"new & \\textbf\{1\.000\}", text)
    assert "better than every other run" in text
    together = [replace(row, groups="a") for row in made.standings]
    assert "textbf" not in comparison_table(replace(made, standings=together))


def test_equivalence_has_a_mark_of_its_own() -> None:
    made = found(new=NEW)
    rows = [replace(made.differences[0], verdict="equivalent"), made.differences[1]]
    text = comparison_table(
        replace(made, differences=rows, settings=replace(made.settings, margin=0.02))
    )
    assert r"\ddagger$: equivalent to old, within $\pm0.02$" in text


def test_no_value_is_a_dash_and_never_0() -> None:
    dead = compare(QRELS, {"old": OLD}, Run.from_dict(dict.fromkeys(QRELS), "dead"), ["RR"])
    assert r"dead & -- \\" in comparison_table(dead)


def test_results_have_intervals_and_nothing_bold() -> None:
    text = results_table(evaluate(QRELS, {"old": MIXED, "new": NEW}, ["RR", "NumRet"]))
    assert "textbf" not in text
    # Six times 1/2 and six times 1: mean .75, s = .2611, t(11) = 2.201: .75 +/- .1659.
    assert r"$[.584, .916]$" in text
    assert "Values over 12 queries" in text
    assert r"old & 0.750 & 24 \\" in text


def test_slices_have_a_table_of_their_own() -> None:
    text = results_table(evaluate(QRELS, {"old": MIXED}, ["RR"], by="relevant_documents"))
    assert text.count(r"\begin{table}") == 2
    assert r"run & relevant\_documents & RR \\" in text


def test_strangers_letters_are_only_letters() -> None:
    assert escape(HOSTILE) == (
        r"{[}a]\&b\%c\$d\#e\_f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k"
        r'\textless{}l\textgreater{}m\textbar{}n{*}? "o"'
    )


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_takes_it(tmp_path: Path) -> None:
    made = compare(QRELS, {HOSTILE: OLD}, {"*x": NEW, "[y": MIXED}, ["RR", "P(rel=1)@5"])
    results = evaluate(QRELS, {HOSTILE: OLD, "b": MIXED}, ["RR"], by="relevant_documents")
    text = comparison_table(made) + results_table(results)
    head = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n"
    (tmp_path / "t.tex").write_text(head + text + "\\end{document}\n", encoding="utf-8")
    ended = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-2000:]
