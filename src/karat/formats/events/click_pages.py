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
import numpy.typing as npt
import polars as pl

from karat.errors import InputError
from karat.formats.tables.source import Chunk, Source, text_of
from karat.online.clicks.counts import Integers, Pages

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
    distinct: bool = True,
    watch: Callable[[int], None] = lambda _size: None,
) -> ReadPages:
    """A file in the research form.

    Args:
        depth: Ranks below it are left out.
        distinct: Whether to merge equal pages.
        watch: Called with the size of each chunk.

    Raises:
        InputError: a damaged line, with its number.
    """
    log = _Log(depth)
    with Source(path) as source:
        source.watch = watch
        for chunk in source.chunks():
            log.add(chunk, source.name)
        if not log.parts:
            raise InputError("there are no pages of results in it", file=source.name, fix=_FORM)
    return log.whole(distinct=distinct)


class _Log:
    """Pages read so far: twice the number of each document's pair, plus 1 if it was clicked."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.parts: list[npt.NDArray[np.int32]] = []  # shape (pages, ranks); -1 where is none
        self._queries = pl.Categorical(pl.Categories.random())
        self._docs = pl.Categorical(pl.Categories.random())
        # Pairs in the order of their numbers: `query`, `doc`, and `key` of both codes
        self._pairs = pl.DataFrame(
            schema={"query": self._queries, "doc": self._docs, "key": pl.Int64}
        )
        self._below = self._clicks_below = self._off_page = self._uncut = 0

    def add(self, chunk: Chunk, name: str) -> None:
        """Add the pages of a chunk."""
        page = _pages_of(chunk, name)
        if not page.height:
            return
        lists = page["docs"].str.split(",")
        length = lists.list.len().to_numpy().astype(np.int64)
        names = lists.explode().str.strip_chars(_SPACES)
        at = np.repeat(np.arange(page.height), length)
        empty = (names == "").to_numpy()
        _refuse(page[at[empty][:1].tolist()], _EMPTY_ID, chunk, name)
        shown = names.cast(self._docs)
        rank = np.arange(len(at)) - np.repeat(length.cumsum() - length, length)
        clicked = self._clicked(page, shown, at)
        self._uncut += page["clicks"].null_count()
        inside = rank < self.depth
        if not inside.all():
            self._below += int((~inside).sum())
            self._clicks_below += int(clicked[~inside].sum())
            shown, at, rank, clicked = (
                shown.filter(inside), at[inside], rank[inside], clicked[inside],
            )  # fmt: skip
        pair = self._numbers(page["query"].cast(self._queries), shown, at)
        part = np.full((page.height, int(rank.max()) + 1), -1, np.int32)
        part[at, rank] = 2 * pair + clicked
        self.parts.append(part)

    def _clicked(self, page: pl.DataFrame, shown: pl.Series, at: Integers) -> npt.NDArray[np.bool_]:
        """Whether each document shown was clicked."""
        clicks = (
            page.select("clicks", at=pl.int_range(pl.len()))
            .filter(pl.col("clicks").str.contains(r"[^\s,]"))
            .with_columns(pl.col("clicks").str.split(","))
            .explode("clicks")
            .with_columns(pl.col("clicks").str.strip_chars(_SPACES))
            .filter(pl.col("clicks") != "")
        )
        docs = clicks["clicks"].cast(self._docs).to_physical().to_numpy().astype(np.int64)
        keys = pl.DataFrame({"key": clicks["at"].to_numpy() << 32 | docs}).unique()
        rows = pl.DataFrame({"key": at << 32 | shown.to_physical().to_numpy()}).with_row_index()
        hits = rows.join(keys, on="key", how="semi")
        self._off_page += keys.height - hits["key"].n_unique()
        clicked = np.zeros(len(at), np.bool_)
        clicked[hits["index"].to_numpy()] = True
        return clicked

    def _numbers(self, query: pl.Series, doc: pl.Series, at: Integers) -> npt.NDArray[np.int32]:
        """The number of each pair; new ones are added."""
        codes = query.to_physical().to_numpy().astype(np.int64)
        keys = pl.Series("key", codes[at] << 32 | doc.to_physical().to_numpy())
        numbers = self._known(keys)
        if numbers.null_count():
            unknown = numbers.is_null()
            new = pl.DataFrame({"row": unknown.arg_true(), "key": keys.filter(unknown)})
            new = new.unique("key", keep="any")
            rows = new["row"].to_numpy()
            added = {"query": query.gather(at[rows]), "doc": doc.gather(rows), "key": new["key"]}
            self._pairs = pl.concat([self._pairs, pl.DataFrame(added)])
            numbers = self._known(keys)
        return numbers.to_numpy()

    def _known(self, keys: pl.Series) -> pl.Series:
        numbers = pl.int_range(self._pairs.height, dtype=pl.Int32, eager=True)
        return keys.replace_strict(self._pairs["key"], numbers, default=None, return_dtype=pl.Int32)

    def whole(self, *, distinct: bool) -> ReadPages:
        """All pages, with pairs sorted."""
        pairs = self._pairs.select(
            pl.col("query").cast(pl.String), doc_id=pl.col("doc").cast(pl.String)
        ).with_row_index("number")
        pairs = pairs.sort("query", "doc_id")
        row = np.empty(pairs.height, np.int32)
        row[pairs["number"].to_numpy()] = np.arange(pairs.height, dtype=np.int32)
        deepest = max(part.shape[1] for part in self.parts)
        # Each part is dropped when it is copied
        both = np.full((sum(map(len, self.parts)), deepest), -1, np.int32)
        start = 0
        while self.parts:
            part = self.parts.pop(0)
            both[start : start + len(part), : part.shape[1]] = part
            start += len(part)
        clicked = (both >= 0) & (both % 2 == 1)
        docs = np.where(both >= 0, row[both >> 1], np.int32(-1))
        pages = Pages(pairs.select("query", "doc_id"), docs, clicked, np.ones(len(docs)))
        return ReadPages(
            _distinct(pages) if distinct else pages,
            self._below,
            self._clicks_below,
            self._off_page,
            self._uncut,
        )


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
    page = pl.Series("page", text.split("\n"), pl.String).to_frame().with_row_index("line")
    if ";" in text:
        page = page.with_columns(pl.col("page").str.split(";")).explode("page")
    page = (
        page.filter(pl.col("page").str.contains(r"\S"))
        .with_columns(pl.col("page").str.splitn("\t", 2).struct.rename_fields(["left", "right"]))
        .unnest("page")
        .with_columns(
            own=pl.when(pl.col("right").is_not_null()).then(pl.col("left").str.strip_chars()),
            body=pl.coalesce("right", "left"),
        )
        .with_columns(own=pl.when(pl.col("own") != "").then(pl.col("own")))
    )
    if page["own"].null_count():
        page = page.with_columns(own=pl.col("own").forward_fill().over("line"))
    _refuse(page.filter(pl.col("own").is_null()), _NO_QUERY, chunk, name)
    page = page.select("line", "body", query="own")
    page = page.with_columns(_separated(page, chunk, name)).unnest("body")
    if text.count("\t") > page.height:
        two = pl.col("docs").str.contains(r"[^\s,]\s*\t\s*[^\s,]")
        _refuse(page.filter(two), _TABS, chunk, name)
    docs = pl.col("docs").str.strip_chars(_SPACES).str.strip_chars_end(", \r\t")
    page = page.with_columns(docs=docs)
    _refuse(page.filter(pl.col("docs") == ""), _NO_DOCS, chunk, name)
    return page


def _separated(pages: pl.DataFrame, chunk: Chunk, name: str) -> pl.Expr:
    """``body`` as a structure of documents and clicks."""
    colons = pl.col("body").str.count_matches(":", literal=True)
    cut = pl.col("body")
    by = ":"
    if pages.select((colons > 1).any()).item():  # ids have colons: then blanks separate
        blank = pl.col("body").str.count_matches(_BLANK_CUT)
        _refuse(pages.filter((colons > 1) & (blank != 1)), _COLONS, chunk, name)
        first = pl.col("body").str.replace(":", _CUT, literal=True)
        cut = pl.when(colons > 1).then(cut.str.replace(_BLANK_CUT, _CUT)).otherwise(first)
        by = _CUT
    return cut.str.splitn(by, 2).struct.rename_fields(["docs", "clicks"]).alias("body")


_NO_QUERY = "a page without a query: there is no tab before its documents"
_COLONS = "a page with several ':', so that its clicks cannot be separated"
_NO_DOCS = "a page without documents"
_EMPTY_ID = "an empty document id, so that the ranks after it are not certain"
_TABS = "a second tab on a page: its pages are not separated by ';'"


def _refuse(pages: pl.DataFrame, what: str, chunk: Chunk, name: str) -> None:
    """Refuse the first of some pages."""
    if not pages.height:
        return
    first = pages.row(0, named=True)
    text = str(first.get("body") or first.get("docs") or "").strip()
    raise InputError(
        f"{what}: {text[:60]!r}" if text else what,
        file=name,
        line=chunk.first_line + int(first["line"]),
        fix=_FORM,
    )


def _distinct(pages: Pages) -> Pages:
    """Each page with the same clicks once."""
    both = np.where(pages.docs >= 0, 2 * pages.docs + pages.clicked, -1)
    columns = [f"{rank}" for rank in range(both.shape[1])]
    merged = pl.DataFrame(both, schema=columns).group_by(columns, maintain_order=True).len("count")
    both = merged.select(columns).to_numpy()
    docs = np.where(both >= 0, both >> 1, np.int32(-1))
    count = merged["count"].to_numpy().astype(np.float64)
    return Pages(pages.pairs, docs, (both >= 0) & (both % 2 == 1), count)
