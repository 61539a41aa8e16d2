"""A fitted click model: whether positions are identified, examination by rank, and its fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

from karat.reports.phrases.numbers import counted, percent
from karat.reports.table import DASH, Column, Table, to
from karat.reports.writers.markdown import listed, markdown
from karat.reports.writers.plain import markdown_cell, plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_footnotes
from karat.tables.online.clicks import ClickFit, Examination

_SOURCES = {"randomised": "in random order", "interleaved": "that were interleaved"}
_HEADS = {"randomised": "Random order", "interleaved": "Interleaved"}
_SHORT = (2, 3, 5, 10)  # ranks of a stratum that are shown
_Key = tuple[int, str | None]


def show(result: ClickFit, out: Console, *, all_notes: bool = False) -> None:
    out.print(plain(headline(result), "bold"))
    out.print(plain(about(result), "dim"))
    for sentence in sentences(result):
        out.print(plain(sentence))
    out.print()
    for table in tables(result):
        draw(table, out)
    show_footnotes(result.notes, out, every=all_notes)


def to_markdown(result: ClickFit) -> str:
    texts = [f"**{markdown_cell(headline(result))}**\n", f"{markdown_cell(about(result))}\n"]
    texts += [f"{markdown_cell(sentence)}\n" for sentence in sentences(result)]
    return "\n".join([*texts, *map(markdown, tables(result)), listed(result.notes)])


def headline(result: ClickFit) -> str:
    """Whether positions are identified, and how much the last rank is looked at."""
    if not result.identified:
        return f"Positions are not identified: {result.reason}"
    if not result.examination:
        return f"{result.model} does not estimate how likely a rank is looked at"
    last = result.examination[-1]
    if len(result.examination) == 1:
        return "All documents were shown at rank 1: there is no other rank to compare"
    shown_as = "" if last.presentation is None else f" ({last.presentation})"
    return (
        f"Rank {last.rank}{shown_as} is looked at {percent(last.value)} as often as rank 1"
        f"{_interval(last, ' (', ')')}"
    )


def about(result: ClickFit) -> str:
    """Model and log in a line."""
    return (
        f"{result.model}, {counted(result.pages, 'page')} of results, "
        f"{counted(result.pairs, 'pair')} of query and document, {counted(result.clicks, 'click')}"
    )


def sentences(result: ClickFit) -> list[str]:
    """How well it predicts, what is left without identification, and what propensities say."""
    unseen = "" if not result.unseen else f", with {counted(result.unseen, 'new pair')}"
    found = [
        f"{f'Held-out log{unseen}' if result.held_out else 'Fit'}: perplexity "
        f"{result.perplexity:.4f} (1 is perfect, 2 a coin), log-likelihood per rank "
        f"{result.log_likelihood:.4f}".replace("-0", "−0")
    ]
    if not result.identified:
        found.append(
            "Likelihood and perplexity are valid; examination and grades of documents are not. "
            "Show some documents at other ranks, at random."
        )
    random = result.propensities
    if random is not None:
        differs = (
            "the model agrees"
            if random.differs_at is None
            else f"the model differs most at rank {random.differs_at}"
        )
        if result.examination is None:
            differs = "the model has none"
        found.append(
            f"Use examination from {counted(random.searches, 'search')} "
            f"{_SOURCES[random.source]}, which needs no model: {differs}."
        )
    return found


def tables(result: ClickFit) -> list[Table]:
    """Ranks, values of the attribute, and queries."""
    found = [_ranks(result)]
    if result.by is not None:
        found.append(_strata(result))
    if result.worst_queries:
        columns = (
            Column("query", "Query"),
            Column("pages", "Pages", "count"),
            Column("perplexity", "Perplexity", "number"),
        )
        found.append(Table("Queries predicted worst", columns, result.worst_queries))
    return found


def _ranks(result: ClickFit) -> Table:
    """A row for each place, in which intervals follow values."""
    random = result.propensities
    own = {_key(each): each for each in result.examination or ()}
    others = {_key(each): each for each in (() if random is None else random.examination)}
    keys = {*own, *others}
    if all(way is None for _, way in keys):
        keys |= {(rank, None) for rank in range(1, len(result.perplexity_by_rank) + 1)}
    columns = [
        Column("rank", "Rank", "count", text=lambda key: f"{key[0]}"),
        Column("presentation", "Shown", optional=True, text=lambda key: key[1] or ""),
    ]
    if own:
        columns += _examined("Examination", own)
    if random is not None:
        columns += _examined(_HEADS[random.source], others)
    columns.append(
        Column("perplexity", "Perplexity", "number", text=_perplexity(result.perplexity_by_rank))
    )
    return Table("By rank", columns, sorted(keys, key=lambda key: (key[0], key[1] or "")))


def _examined(heading: str, by_key: dict[_Key, Examination]) -> list[Column]:
    def value(key: _Key) -> str:
        return f"{by_key[key].value:.3f}" if key in by_key else DASH

    def interval(key: _Key) -> str:
        return _interval(by_key[key]) or DASH if key in by_key else DASH

    return [
        Column(heading, heading, "number", text=value),
        Column(f"{heading} 95 %", "95 %", "number", text=interval),
    ]


def _perplexity(by_rank: Sequence[float]) -> Callable[[Any], str]:
    return lambda key: f"{by_rank[key[0] - 1]:.3f}" if key[0] <= len(by_rank) else DASH


def _strata(result: ClickFit) -> Table:
    def at(rank: int) -> Callable[[Any], str]:
        def text(row: Any) -> str:
            found = [each for each in row.examination or () if each.rank == rank]
            return ", ".join(f"{each.value:.3f}" for each in found) or DASH

        return text

    deepest = max((each.rank for row in result.strata for each in row.examination or ()), default=0)
    columns = [
        Column("value", result.by or "", text=lambda row: row.value or "(none)"),
        Column("pages", "Pages", "count"),
        Column("identified", "Identified", "flag"),
        *(
            Column(f"rank_{rank}", f"Rank {rank}", "number", text=at(rank))
            for rank in _SHORT
            if rank <= deepest
        ),
    ]  # fmt: skip
    return Table(f"Examination by {result.by}", columns, result.strata)


def _key(each: Examination) -> _Key:
    return each.rank, each.presentation


def _interval(each: Examination, before: str = "", after: str = "") -> str:
    if each.ci_low is None or each.ci_high is None:
        return ""
    if before:
        return f"{before}{to(percent(each.ci_low), percent(each.ci_high))}{after}"
    return to(f"{each.ci_low:.3f}", f"{each.ci_high:.3f}")
