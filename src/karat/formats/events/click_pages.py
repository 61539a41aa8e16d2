"""The research form of click logs: pages of results with the documents clicked on them.

One query per line, its pages separated by ``;``; a page is ``query<TAB>d1,…,d10 : c1,c2``, plain or
compressed. Blanks around ids and empty pages are skipped; a page without a query has that of its
line; clicks may repeat, or be on documents that the page does not show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from karat.errors import InputError
from karat.formats.tables.source import Chunk, Source, text_of
from karat.online.clicks.counts import Pages

_CUT = "\x00"  # between documents and clicks, once it is known which `:` that is
_BLANK_CUT = r"\s:(?:\s|$)"
_FORM = "write each page as query<TAB>document,document : clicked,clicked"
_SPACES = " \r\t\n"


@dataclass(frozen=True)
class ReadPages:
    """A click log in the research form."""

    pages: Pages
    below: int  # documents shown below the depth, which are left out
    clicks_below: int  # clicks on them
    off_page: int  # clicks on documents that their page does not show, each once a page
    repeated: int  # pages that show a document at more than one rank
    uncut: int  # pages without `:`, which have no clicks


def looks_like_pages(path: str | Path) -> bool:
    """Whether a file is in the research form, and not an event log."""
    if not Path(path).is_file():
        return False
    try:
        with Source(path) as source:
            head = source.head
    except InputError:
        return False
    lines = (line.strip(b" \r;") for line in head.split(b"\n"))
    first = next((line for line in lines if line), b"").partition(b";")[0]
    query, tab, rest = first.partition(b"\t")
    if not tab or query[:1] in (b"{", b"["):
        return False
    return b"\t" not in rest.strip() and (b":" in rest or b"," in rest)


def read_pages(
    path: str | Path,
    *,
    depth: int = 10,
    watch: Callable[[int], None] = lambda _size: None,
) -> ReadPages:
    """A file in the research form.

    Args:
        depth: Ranks below it are left out.
        watch: Called with the size of each chunk.

    Raises:
        InputError: a damaged line, with its number.
    """
    queries = pl.Categorical(pl.Categories.random())
    docs = pl.Categorical(pl.Categories.random())
    pages: list[pl.DataFrame] = []
    shown: list[pl.DataFrame] = []
    totals = np.zeros(4, np.int64)
    count = 0
    with Source(path) as source:
        source.watch = watch
        for chunk in source.chunks():
            page = _pages_of(chunk, source.name)
            if not page.height:
                continue
            page = page.with_columns(pl.col("query").cast(queries)).with_row_index("page", count)
            rows, seen = _shown_on(page, docs, depth)
            totals += seen
            count += page.height
            pages.append(page.select("query"))
            shown.append(rows)
        name = source.name
    if not count:
        raise InputError("there are no pages of results in it", file=name, fix=_FORM)
    below, clicks_below, off_page, uncut = map(int, totals)
    read = _counted(pl.concat(pages)["query"], pl.concat(shown), count)
    return ReadPages(read, below, clicks_below, off_page, _repeated(read), uncut)


def _pages_of(chunk: Chunk, name: str) -> pl.DataFrame:
    """`line`, `query`, `docs` and `clicks` (null without a `:`) of each page, as text."""
    data = chunk.data
    try:
        text = data.decode()
        damaged = _CUT in text
    except UnicodeDecodeError:
        damaged = True
    if damaged:
        for number, raw in enumerate(data.split(b"\n"), chunk.first_line):
            text_of(raw, name, number)  # raises for the damaged line
    lines = pl.Series("page", text.split("\n"), pl.String).to_frame().with_row_index("line")
    page = (
        lines.with_columns(pl.col("page").str.split(";"))
        .explode("page")
        .filter(pl.col("page").str.contains(r"\S"))
        .with_columns(pl.col("page").str.splitn("\t", 2).struct.rename_fields(["left", "right"]))
        .unnest("page")
        .with_columns(
            own=pl.when(pl.col("right").is_not_null()).then(pl.col("left").str.strip_chars()),
            body=pl.coalesce("right", "left"),
        )
        .with_columns(own=pl.when(pl.col("own") != "").then(pl.col("own")))
        .with_columns(query=pl.coalesce("own", pl.col("own").forward_fill().over("line")))
    )
    colons = pl.col("body").str.count_matches(":", literal=True)
    blank = pl.col("body").str.count_matches(_BLANK_CUT)
    page = page.with_columns(colons=colons, blank=blank)
    wrong = (
        pl.when(pl.col("query").is_null())
        .then(pl.lit("a page without a query: there is no tab before its documents"))
        .when((pl.col("blank") > 1) | ((pl.col("blank") == 0) & (pl.col("colons") > 1)))
        .then(pl.lit("a page with several ':', so that its clicks cannot be separated"))
    )
    _refuse(page.select("line", "body", wrong=wrong), chunk, name)
    cut = (
        pl.when(pl.col("blank") > 0)
        .then(pl.col("body").str.replace(_BLANK_CUT, _CUT))
        .otherwise(pl.col("body").str.replace(":", _CUT, literal=True))
    )
    parts = cut.str.splitn(_CUT, 2).struct.rename_fields(["docs", "clicks"])
    page = page.select("line", "query", parts.alias("parts")).unnest("parts")
    docs = pl.col("docs").str.strip_chars(_SPACES).str.strip_chars_end(", \r\t")
    page = page.with_columns(docs=docs)
    wrong = (
        pl.when(pl.col("docs") == "")
        .then(pl.lit("a page without documents"))
        .when(pl.col("docs").str.contains(r"^,|,\s*,"))
        .then(pl.lit("an empty document id, so that the ranks after it are not certain"))
        .when(pl.col("docs").str.contains(r"[^\s,]\s*\t\s*[^\s,]"))
        .then(pl.lit("a second tab on a page: its pages are not separated by ';'"))
    )
    _refuse(page.select("line", pl.col("docs").alias("body"), wrong=wrong), chunk, name)
    return page


def _refuse(pages: pl.DataFrame, chunk: Chunk, name: str) -> None:
    if pages["wrong"].null_count() == pages.height:
        return
    line, body, wrong = pages.filter(pl.col("wrong").is_not_null()).row(0)
    text = str(body).strip()
    raise InputError(
        f"{wrong}: {text[:60]!r}" if text else wrong,
        file=name,
        line=chunk.first_line + int(line),
        fix=_FORM,
    )


def _shown_on(pages: pl.DataFrame, ids: pl.DataType, depth: int) -> tuple[pl.DataFrame, list[int]]:
    """Rows `page`, `rank`, `doc`, `clicked` up to a depth, and the totals of `ReadPages`."""
    docs = (
        pages.select("page", doc=pl.col("docs").str.split(","))
        .with_columns(rank=pl.int_ranges(1, pl.col("doc").list.len() + 1, dtype=pl.Int32))
        .explode("doc", "rank")
        .with_columns(pl.col("doc").str.strip_chars(_SPACES).cast(ids))
    )
    clicks = (
        pages.filter(pl.col("clicks").str.contains(r"[^\s,]"))
        .select("page", doc=pl.col("clicks").str.split(","))
        .explode("doc")
        .with_columns(pl.col("doc").str.strip_chars(_SPACES))
        .filter(pl.col("doc") != "")
        .with_columns(pl.col("doc").cast(ids))
        .unique()
    )
    docs = docs.with_row_index("row")
    hits = clicks.with_row_index("click").join(docs, on=["page", "doc"], how="inner")
    clicked = np.zeros(docs.height, np.bool_)
    clicked[hits["row"].to_numpy()] = True
    seen = docs.select("page", "rank", "doc", clicked=pl.Series(clicked))
    low = seen.filter(pl.col("rank") > depth)
    off = clicks.height - hits["click"].n_unique()
    totals = [low.height, int(low["clicked"].sum()), off, pages["clicks"].null_count()]
    return seen.filter(pl.col("rank") <= depth), totals


def _counted(query: pl.Series, shown: pl.DataFrame, pages: int) -> Pages:
    """Pages with rows of pairs, each page with the same clicks once."""
    of_page = query.to_physical().to_numpy().astype(np.int64)
    page = shown["page"].to_numpy().astype(np.int64)
    doc = shown["doc"].to_physical().to_numpy().astype(np.int64)
    keys = pl.DataFrame({"key": of_page[page] << 32 | doc})
    first = keys.with_row_index("at").unique("key", keep="first")
    at = first["at"]
    pairs = pl.DataFrame(
        {
            "query": query.gather(pl.Series(page[at.to_numpy()])).cast(pl.String),
            "doc_id": shown["doc"].gather(at).cast(pl.String),
            "key": first["key"],
        }
    ).sort("query", "doc_id")
    places = pairs.select("key", pair=pl.int_range(pl.len(), dtype=pl.Int32))
    pair = keys["key"].replace_strict(places["key"], places["pair"]).to_numpy()
    rank = shown["rank"].to_numpy() - 1
    deepest = int(rank.max()) + 1
    both = np.full((pages, deepest), -1, np.int64)
    both[page, rank] = 2 * pair.astype(np.int64) + shown["clicked"].to_numpy()
    columns = [f"{each}" for each in range(deepest)]
    # An empty place is -1: -1 >> 1 is -1, which `Pages` writes for it
    distinct = (
        pl.DataFrame(both, schema=columns)
        .group_by(columns, maintain_order=True)
        .agg(count=pl.len())
    )
    both = distinct.select(columns).to_numpy()
    return Pages(
        pairs.select("query", "doc_id"),
        (both >> 1).astype(np.int32),
        (both >= 0) & (both % 2 == 1),
        distinct["count"].to_numpy().astype(np.float64),
    )


def _repeated(pages: Pages) -> int:
    """Pages that show a document at more than one rank."""
    docs = np.sort(pages.docs, axis=1)
    same = (docs[:, 1:] == docs[:, :-1]) & (docs[:, 1:] >= 0)
    return int(pages.count[same.any(axis=1)].sum())
