"""A comparison in a terminal and as JSON: verdicts, then the sources of the difference."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from karat.reports.phrases.numbers import counted, percent, signed
from karat.reports.writers.cells import LABEL, Cells, base, fitted, plain
from karat.reports.writers.sheets import answer_changes, what_changed
from karat.reports.writers.terminal import drawn, show_footnotes, show_notes
from karat.tables.comparison import (
    Comparison,
    Difference,
    Disagreement,
    Overlap,
    QueryDifference,
    RankChange,
    Review,
)
from karat.tables.release.certificate import Certificate, Verification

_QUERIES = 5  # that gain, and that lose
_FEW = 3  # of several candidates
_FOLLOWED = 2  # most candidates whose documents are shown without --full
_DISAGREEMENTS = 3
_TOLD = {"better", "worse"}
_BESIDE = 39  # columns of the other columns next to documents
_TEXT = 20  # columns of a query and its text


def to_json(comparison: Comparison) -> str:
    """The documented JSON object."""
    return json.dumps(comparison.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def show_comparison(
    comparison: Comparison, out: Console, *, full: bool = False, all_notes: bool = False
) -> None:
    """Print verdicts, disagreements of measures, slices, deciding queries, and notes."""
    if comparison.standings:
        _show_standings(comparison, out, full=full)
    for candidate in dict.fromkeys(row.candidate for row in comparison.differences):
        _show_candidate(comparison, candidate, out, full=full)
    _show_retrieval(comparison, out, full=full)
    for kind, title in (
        ("bad", "shown though judged not relevant"),
        ("missed", "relevant but not shown"),
    ):
        for candidate in dict.fromkeys(row.candidate for row in comparison.review):
            rows = [r for r in comparison.review if (r.kind, r.candidate) == (kind, candidate)]
            if rows:
                heading = f"{candidate}: {title} (top {_k(comparison)})"
                out.print(_review(heading, comparison.baseline, rows))
    if comparison.judge_next:
        out.print("judging priorities, most informative first", style="bold")
        show_judge_next(comparison, out)
    show_footnotes(comparison.notes, out, every=full or all_notes)


def show_verification(found: Verification, out: Console) -> None:
    """Print whether a certificate holds, with the reasons or the checks."""
    certificate = found.certificate
    claim = (
        f"the mean {certificate.measure} of {certificate.candidate} over these "
        f"{counted(certificate.n, 'query', 'queries')} is {certificate.verdict} than that of "
        f"{certificate.baseline}, whatever grades the unjudged documents of both have "
        f"({signed(certificate.unjudged_low)} to {signed(certificate.unjudged_high)})"
    )
    out.print(plain(claim))
    out.print("holds" if found.holds else "does not hold", style="bold")
    out.print(_unseen(certificate))
    show_notes(found.findings or found.notes, out)


def _unseen(certificate: Certificate) -> str:
    """What the certificate assumes about relevant documents in neither run."""
    if certificate.unseen_unlimited:
        unseen = "any number of relevant documents that neither run shows"
    elif certificate.unseen is None:
        unseen = "an unknown number of relevant documents that neither run shows"
    else:
        documents = counted(certificate.unseen, "relevant document", "relevant documents")
        unseen = f"up to {documents} per query that neither run shows"
    return f"allowed for: {unseen}. Chance is not covered: other queries may differ."


def _show_candidate(comparison: Comparison, candidate: str, out: Console, *, full: bool) -> None:
    rows = [row for row in comparison.differences if row.candidate == candidate]
    out.print(_verdicts(candidate, comparison.baseline, rows, out))
    show_notes([f"{row.measure}: {row.reason}" for row in rows], out)
    out.print()
    answers = [row for row in comparison.answers if row.candidate == candidate]
    if answers:
        out.print(drawn(answer_changes(answers)))
    changes = [row for row in comparison.changes if row.candidate == candidate]
    if changes:
        out.print(drawn(what_changed(changes)))
    apart = [row for row in comparison.disagreements if row.candidate == candidate]
    if apart:
        out.print("look here first: measures disagree on the direction", style="bold")
        lines = _opposed(comparison, apart)
        shown = lines if full else lines[:_DISAGREEMENTS]
        more = len(lines) - len(shown)
        show_notes([*shown, *([f"and {more} more (--full)"] if more else [])], out)
        out.print()
    own = [row for row in comparison.slices if row.candidate == candidate]
    first = rows[0].measure
    for attribute in dict.fromkeys(str(row.attribute) for row in own):
        sliced = [row for row in own if row.attribute == attribute]
        for measure in dict.fromkeys(row.measure for row in sliced):
            chosen = [row for row in sliced if row.measure == measure]
            if full or measure == first:
                out.print(_slices(f"{candidate}, {measure} by {attribute}", chosen, out))
        show_notes(list(_deciding(sliced, comparison.queries, first)), out)
        others = [row for row in sliced if row.measure != first]
        if others and not full:
            show_notes([_other_measures(others)], out)
            out.print()
    moved = [
        row
        for row in comparison.queries
        if (row.candidate, row.measure) == (candidate, first) and row.difference
    ]
    several = len({row.candidate for row in comparison.differences})
    if moved and (full or several <= _FOLLOWED):
        followed: dict[str, list[RankChange]] = {}
        for move in comparison.moves:
            if (move.candidate, move.measure) == (candidate, first):
                followed.setdefault(move.query_id, []).append(move)
        out.print(f"{candidate}, {first}: queries that change it most", style="bold")
        most = len(moved) if full else _FEW if several > 1 else _QUERIES
        out.print(_queries(moved, followed, most, out.width - _BESIDE))


def _show_standings(comparison: Comparison, out: Console, *, full: bool) -> None:
    measures = list(dict.fromkeys(row.measure for row in comparison.standings))
    for measure in measures if full else measures[:1]:
        out.print(_standings(comparison, measure))
    show_notes(list(_about_standings(comparison)), out)
    out.print()


def _about_standings(comparison: Comparison) -> Iterator[str]:
    if comparison.settings.all_pairs:
        yield "runs that share no letter are significantly different"
    known = [row for row in comparison.orders if row.kendall is not None]
    if known:
        least = min(known, key=lambda row: row.kendall or 0.0)
        if least.kendall == 1:
            yield "all measures rank the runs in the same order"
        else:
            yield (
                f"measures rank the runs in different orders: {least.left} and {least.right} "
                f"agree least (tau {signed(least.kendall, 2)})"
            )


def _standings(comparison: Comparison, measure: str) -> Table:
    table = base(f"all runs by {measure}")
    table.add_column("run", overflow="fold", min_width=LABEL)
    table.add_column("value", justify="right")
    table.add_column(plain(f"against {comparison.baseline}"), overflow="fold")
    if comparison.settings.all_pairs:
        table.add_column("all pairs", no_wrap=True)
    for row in comparison.standings:
        if row.measure == measure:
            verdict = comparison.against_baseline(row)
            letters = [] if row.groups is None else [row.groups]
            table.add_row(plain(row.run), _number(row.value), verdict, *letters)
    return table


def _opposed(comparison: Comparison, rows: Sequence[Disagreement]) -> list[str]:
    """A line per slice and measure that is better, with the measures that are worse there."""
    together: dict[tuple[str, str, bool], list[Disagreement]] = {}
    for row in rows:
        where = "all queries" if row.attribute is None else f"{row.attribute} {row.slice}"
        together.setdefault((where, row.better, comparison.certain(row)), []).append(row)
    return [
        f"{where}: {better} {signed(opposed[0].better_difference)} but "
        + ", ".join(f"{row.worse} {signed(row.worse_difference)}" for row in opposed)
        + ("" if sure else " (may be chance)")
        for (where, better, sure), opposed in together.items()
    ]


def _show_retrieval(comparison: Comparison, out: Console, *, full: bool) -> None:
    if not comparison.overlaps:
        return
    out.print(f"relevant documents in the top {_k(comparison)}", style="bold")
    table = base()
    table.padding = (0, 1, 0, 0)
    table.add_column("run", overflow="fold", min_width=LABEL)
    heads = ("relevant found", "only there", "gained", "lost", "shared", "RBO")
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    first = comparison.baseline
    beside = {row.right: row for row in comparison.overlaps if row.left == first}
    for row in comparison.finds:
        with_first = beside.get(row.run)
        table.add_row(
            plain(row.run),
            f"{row.found:,} of {row.relevant:,}",
            f"{row.found_only:,}",
            *([""] * 4 if with_first is None else _beside(with_first)),
        )
    out.print(table)
    others = [row for row in comparison.overlaps if row.left != first]
    if full or len(others) == 1:
        show_notes([_pair(row) for row in others], out)
    out.print(f"  gained, lost, shared, RBO: against {first}", style="dim")
    out.print()


def _beside(row: Overlap) -> tuple[str, ...]:
    rbo = "" if row.rbo is None else f"{row.rbo:.2f}"
    return f"{row.relevant_right:,}", f"{row.relevant_left:,}", percent(row.overlap), rbo


def _pair(row: Overlap) -> str:
    gained, lost, shared, rbo = _beside(row)
    return (
        f"{row.right} against {row.left}: gained {gained}, lost {lost}, {shared} of the top "
        f"{row.k} shared, RBO {rbo}"
    )


def _k(comparison: Comparison) -> int:
    return comparison.settings.k


def _review(title: str, baseline: str, rows: Sequence[Review]) -> Table:
    table = base(title)
    sliced = any(row.attribute for row in rows)
    if sliced:
        table.add_column("slice", overflow="fold")
    table.add_column("query", overflow="fold")
    for name in ("grade", baseline, rows[0].candidate):
        table.add_column(plain(name), justify="right", overflow="fold")
    table.add_column("document", overflow="fold")
    for row in rows:
        where = f"{row.attribute} {row.slice}" if row.attribute else "all"
        table.add_row(
            *([plain(where)] if sliced else []),
            plain(row.query_id),
            f"{row.grade:g}",
            _rank(row.baseline_rank),
            _rank(row.candidate_rank),
            plain(row.doc_id),
        )
    return table


def show_judge_next(comparison: Comparison, out: Console) -> None:
    """Print the pairs whose grades say most about the sign of the first difference."""
    table = base()
    table.add_column("query", overflow="fold")
    table.add_column("document", overflow="fold")
    for name in (comparison.baseline, comparison.differences[0].candidate, "could change"):
        table.add_column(plain(name), justify="right", overflow="fold")
    for row in comparison.judge_next:
        ranks = (_rank(row.baseline_rank), _rank(row.candidate_rank))
        table.add_row(plain(row.query_id), plain(row.doc_id), *ranks, signed(row.effect))
    out.print(table)


def _verdicts(candidate: str, baseline: str, rows: Sequence[Difference], out: Console) -> Table:
    cells: list[Cells] = [
        {
            "measure": plain(row.measure),
            "from": _number(row.baseline_value),
            "to": _number(row.candidate_value),
            "change": plain(signed(row.difference), "bold"),
            _span_head(rows): _interval(row),
            "p": _p(row),
            "+/=/−": f"{row.wins}/{row.ties}/{row.losses}",
            "": plain(row.verdict, "bold"),
        }
        for row in rows
    ]
    title = f"{candidate} against {baseline}"
    return fitted(title, cells, ("from", "to", "+/=/−", _span_head(rows)), out)


def _span_head(rows: Sequence[Difference]) -> str:
    """The heading of intervals, which are not corrected for multiple comparisons."""
    return "95 % alone" if any(row.family > 1 for row in rows) else "95 %"


def _slices(title: str, rows: Sequence[Difference], out: Console) -> Table:
    cells: list[Cells] = [
        {
            "slice": plain(str(row.slice)),
            "n": f"{row.n:,}",
            "change": signed(row.difference),
            _span_head(rows): _interval(row),
            "shrunk": signed(row.shrunk),
            "p": _p(row),
            "+/=/−": f"{row.wins}/{row.ties}/{row.losses}",
            "": plain(row.verdict, "bold" if row.verdict in _TOLD else ""),
        }
        for row in rows
    ]
    return fitted(title, cells, ("+/=/−", _span_head(rows), "p"), out)


def _deciding(
    rows: Sequence[Difference], queries: Sequence[QueryDifference], measure: str
) -> Iterator[str]:
    """The deciding queries of each slice with a verdict."""
    for row in rows:
        if row.measure != measure or row.verdict not in _TOLD or row.difference is None:
            continue
        sign = 1 if row.difference > 0 else -1
        within = [
            f"{query.query_id} {signed(query.difference)}"
            for query in queries
            if (query.candidate, query.measure) == (row.candidate, measure)
            and sign * query.difference > 0
            and row.slice in query.slices.get(str(row.attribute), ())
        ]
        yield f"{row.slice}, most by {', '.join(within[:_QUERIES])}"


def _other_measures(rows: Sequence[Difference]) -> str:
    """The verdicts on slices by measures without a table."""
    verdicts = [
        f"{row.slice} {row.verdict} by {row.measure}" for row in rows if row.verdict in _TOLD
    ]
    names = ", ".join(dict.fromkeys(row.measure for row in rows))
    if not verdicts:
        return f"{names} cannot tell in any of these (--full shows them)"
    return f"{'; '.join(verdicts)}; nothing else by {names} (--full shows them)"


def _queries(
    rows: Sequence[QueryDifference], followed: dict[str, list[RankChange]], most: int, width: int
) -> Table:
    gains = [row for row in rows if row.difference > 0]
    losses = [row for row in rows if row.difference < 0]
    table = base()
    table.padding = (0, 1, 0, 0)
    table.add_column("query", overflow="fold", width=_TEXT)
    for name in ("change", "to"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("rank, grade, document", no_wrap=True)
    for place, part in enumerate((gains, losses)):
        shown = part[:most]
        for row in shown:
            cells = (signed(row.difference), _number(row.candidate_value))
            ends = place == 0 and row is shown[-1]
            documents = Text("\n").join(
                _move(move, width) for move in followed.get(row.query_id, ())
            )
            asked = row.query_id if row.text is None else f"{row.query_id} {row.text}"
            label = plain(textwrap.shorten(asked, 2 * _TEXT, placeholder="…"))
            table.add_row(label, *cells, documents, end_section=ends)
    return table


def _move(row: RankChange, width: int) -> Text:
    ranks = f"{_rank(row.baseline_rank)} → {_rank(row.candidate_rank)}"
    line = plain(f"{ranks:<8} {row.grade:>3g}  {row.doc_id}")
    line.truncate(max(width, LABEL), overflow="ellipsis")
    return line


def _rank(rank: int | None) -> str:
    return "–" if rank is None else f"{rank:,}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(row: Difference) -> str:
    if row.ci_low is None or row.ci_high is None:
        return ""
    return f"{signed(row.ci_low)} to {signed(row.ci_high)}"


def _p(row: Difference) -> str:
    p = row.p if row.p_corrected is None else row.p_corrected
    if p is None:
        return ""
    return f"{p:.3f}" if p >= 0.001 else "<.001"
