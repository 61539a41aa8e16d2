"""A report as one HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from karat.errors import MissingExtra
from karat.reports.html import figures
from karat.reports.html.content import UNANSWERED, Content
from karat.reports.offline import comparison as compared
from karat.reports.offline import evaluation
from karat.reports.phrases import report as words
from karat.reports.phrases.costs import cost_lines
from karat.reports.phrases.gate import why
from karat.reports.phrases.numbers import counted, percent, signed
from karat.reports.release import gate as gated
from karat.reports.table import Column, Table
from karat.reports.writers.plain import CONTROLS
from karat.reports.writers.tables import html_table

if TYPE_CHECKING:
    import jinja2

    from karat.tables import Results
    from karat.tables.comparison import Comparison

_NOTHING = 5e-4  # printed as 0.000
ORIGINS = (
    Column("name", "What"),
    Column("source", "Source"),
    Column("size", "Size", "words"),
    Column("sha256", "SHA-256 of its content"),
)


def to_page(content: Content) -> str:
    """The report as one HTML file that loads nothing else.

    Its content security policy allows no requests, and only the style sheet and script whose
    SHA-256 it names. All names and texts are escaped.

    """
    style, script = _part("report.css"), _part("charts.mjs") + _part("report.mjs")
    template = environment().get_template("report.html.j2")
    page = template.render(
        **_shown(content),
        still_failing=words.still_failing,
        style=_trusted()(style),
        script=_trusted()(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )
    return page.encode("utf-8", "replace").decode()


def styled(
    template: str, *, style: str = "report.css", purpose: str = "a report", **values: Any
) -> str:
    """Another page of one file, without scripts; ``purpose`` is what it is in error messages."""
    made, css = environment(purpose=purpose), _part(style)
    shown = values | {"style": _trusted()(css), "style_hash": _hash(css)}
    return made.get_template(template).render(**shown).encode("utf-8", "replace").decode()


def environment(
    own: jinja2.BaseLoader | None = None, purpose: str = "a report"
) -> jinja2.Environment:
    """The Jinja environment of reports, which the pages of the server share.

    Undefined names raise an error, and all output is escaped. That of reports alone is made once:
    to compile its templates takes longer than to write a page.
    """
    try:
        import jinja2  # noqa: F401 - whether there is one
    except ImportError:
        raise MissingExtra("jinja2", "report", purpose) from None
    return _of_reports() if own is None else _made(own)


@cache
def _of_reports() -> jinja2.Environment:
    return _made()


def _made(own: jinja2.BaseLoader | None = None) -> jinja2.Environment:
    import jinja2

    report = jinja2.FunctionLoader(_template)
    made = jinja2.Environment(
        loader=report if own is None else jinja2.ChoiceLoader([own, report]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    made.filters |= {
        "number": words.number,
        "signed": signed,
        "percent": lambda share: percent(share) or "–",
        "grade": lambda grade: "–" if grade is None else f"{grade:g}",
        "counted": counted,
        "by_measure": evaluation.by_measure,
        "exact": lambda value: "" if value is None else repr(value),
        "listed": words.listed,
    }
    # A change that is printed as 0 has no colour.
    made.tests["felt"] = lambda value: value is not None and abs(value) >= _NOTHING
    trusted = _trusted()
    made.globals |= {
        "svg": trusted,
        "span": words.span,
        "draw": lambda table: trusted(html_table(table)),
        "untitled": lambda table: replace(table, title=""),
        "differences": compared.differences,
        "standings": compared.standings,
        "disagreements": compared.disagreements,
        "finds": compared.finds,
        "overlaps": compared.overlaps,
        "comparison_bounds": compared.bounds,
        "values": evaluation.values,
        "bounds": evaluation.bounds,
        "checks": gated.checks,
        "lost": gated.lost,
    }
    return made


def _shown(content: Content) -> dict[str, Any]:
    comparison, gate, results = content.comparison, content.gate, content.results
    first_rows = [row for row in results.results if row.measure == results.results[0].measure]
    warned = words.unanswered(first_rows, compared=comparison is not None)
    places = {query.query_id: f"q{at}" for at, query in enumerate(content.queries, 1)}
    if gate is not None:
        title = why(gate)
        lead = [words.gate_said(gate), *warned]
    elif comparison is not None:
        against = words.listed(dict.fromkeys(row.candidate for row in comparison.differences))
        title = f"{against} against {comparison.baseline}"
        lead = [*warned, *words.verdicts(comparison)]
    else:
        title, lead = words.listed(content.runs), [*warned, *words.means(results.results)]
    headlines = []
    if comparison is not None and gate is None:  # the verdict of a gate is the policy's
        for candidate in dict.fromkeys(row.candidate for row in comparison.differences):
            first = next(row for row in comparison.differences if row.candidate == candidate)
            name = f"{candidate}: " if len(content.runs) > 2 else ""
            headlines.append(name + words.headline(first))
            headlines += [f"{name}{line}." for line in cost_lines(comparison, candidate)]
    notes = [*(gate.notes if gate else []), *(comparison.notes if comparison else [])]
    if comparison is None:
        notes += results.notes
    sliced = list(figures.of_slices(content))
    within = {
        query.query_id: [
            part.ids[name]
            for part in sliced
            for name in query.slices.get((part.subject, part.attribute), ())
            if name in part.ids
        ]
        for query in content.queries
    }
    return {
        "content": content,
        "comparison": comparison,
        "gate": gate,
        "results": results,
        "title": words.cut(title, content.runs),
        "lead": [words.cut(sentence, content.runs) for sentence in lead],
        "headlines": [words.cut(sentence, content.runs) for sentence in headlines],
        "notes": list(dict.fromkeys(notes)),
        "measures": figures.of_measures(content),
        "sliced": sliced,
        "view_ids": {
            (view.measure, view.candidate): name
            for view, name in figures.ids_of_views(content).items()
        },
        "within": within,
        "spread": list(
            figures.of_values(content)
            if comparison is None
            else figures.of_queries(comparison, places.get)
        ),
        "sheets": _sheets(comparison, results),
        "folded": [evaluation.curve(row) for row in results.no_answer if row.curve],
        "sources": Table("Computed from", ORIGINS, content.sources),
        "leads_to": lambda row: places.get(row.query_id),
        "failed": any(UNANSWERED & set(query.states) for query in content.queries),
        "place": places.get,
        "adds": _adds(content),
    }


def _sheets(comparison: Comparison | None, results: Results) -> list[Table]:
    tables = list(evaluation.others(results))
    if comparison is None:
        return [*tables, *evaluation.about_runs(results)]
    timed = compared.stage_latency(comparison.costs)
    if timed.rows:
        tables.insert(0, timed)
    if comparison.answers:
        tables.insert(0, evaluation.answer_changes(comparison.answers))
    if comparison.changes:
        tables.insert(0, evaluation.what_changed(comparison.changes))
    return tables


def _adds(content: Content) -> bool | None:
    """Whether documents contribute to the first measure; None without documents."""
    placed = [
        one.effect
        for query in content.queries
        for ranking in query.rankings[-1:]  # only the candidate's has effects
        for one in (*ranking.top, *ranking.below)
    ]
    return any(effect is not None for effect in placed) if placed else None


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _template(name: str) -> str | None:
    return _part(name) if resources.files(__package__).joinpath(name).is_file() else None


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _trusted() -> Callable[[str], Any]:
    from markupsafe import Markup

    return Markup


def _harmless(value: Any) -> Any:
    if type(value) is str or (isinstance(value, str) and not hasattr(value, "__html__")):
        return value.translate(CONTROLS)
    return value
