"""Plans that reduce facts of a log to the counts of click models.

A page of results is a search intent. The documents that it showed are its impressions with
positions, where the log has any, else the list of results of its representative request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from karat.online.flags import ORDER, USER, flag

PAGE = (USER, "intent")
_EVENT = (USER, *ORDER)  # what tells events from each other
MOST = 60  # greatest depth: clicks of a page are bits of an Int64


@dataclass(frozen=True, slots=True)
class Reduction:
    """What to count, and by what.

    Its pages have the columns ``user_key``, ``intent``, ``query``, ``text``, ``time_us``,
    ``weight``, ``length`` (documents shown), ``doc_1`` and so on by rank, and, if asked for,
    ``value`` and ``way_1`` and so on.
    """

    depth: int  # ranks below it are left out; at most `MOST`
    value: str | None = None  # column of the attribute of searches to count by
    # Column of the attribute, of impressions or searches, that says how documents were shown
    presentation: str | None = None
    half_life: float | None = None  # age in days at which a page counts half; None: all alike
    last_day: int = 0  # the local day of which pages count in full

    @property
    def ranks(self) -> range:
        return range(1, self.depth + 1)

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns of any table of counts."""
        return (*(() if self.value is None else ("value",)), "query")

    @property
    def cell(self) -> tuple[str, ...]:
        """The columns of a cell."""
        ways = () if self.presentation is None else ("presentation",)
        return (*self.groups, "doc_id", "rank", *ways)

    @property
    def docs(self) -> list[str]:
        return [f"doc_{rank}" for rank in self.ranks]

    @property
    def _ways(self) -> list[str]:
        return [] if self.presentation is None else [f"way_{rank}" for rank in self.ranks]

    def asked(self, searches: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Searches for a text.

        Args:
            searches: As ``facts.searches`` returns them, with ``tie`` and ``page``.
        """
        age = (self.last_day - nw.col("local_day")).cast(nw.Float64)
        half = nw.lit(1.0) if self.half_life is None else nw.lit(0.5) ** (age / self.half_life)
        more = {"weight": half.cast(nw.Float64)}
        if self.value is not None:
            more["value"] = _known(self.value)
        if self.presentation is not None:
            more["way"] = _known(self.presentation)
        asked = searches.filter(~nw.col("query_key").is_null())
        names = (*PAGE, "time_us", "tie", "page")
        return asked.select(*names, query="query_key", text="query", **more)

    def from_lists(self, asked: nw.LazyFrame[Any], events: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Pages of searches, from lists of results.

        Lists of later pages of results are left out: their ranks are not known.

        Args:
            asked: From ``asked``.
            events: Rows of ``EVENTS``, with ``hits``. Lists are joined last: to carry them through
                all plans of facts takes several times as long.
        """
        length = nw.col("hits").list.len().cast(nw.Int64)
        first = nw.col("page").is_null() | (nw.col("page") == 1)
        columns: dict[str, nw.Expr] = {}
        for rank, name in zip(self.ranks, self.docs, strict=True):
            columns[name] = nw.when(length >= rank).then(nw.col("hits")).list.get(rank - 1)
        columns.update((name, nw.col("way")) for name in self._ways)
        lists = events.filter((nw.col("kind") == "search") & (length > 0)).select(*_EVENT, "hits")
        found = asked.filter(first).join(lists, on=list(_EVENT), how="inner")
        return self._pages(found.with_columns(**columns))

    def from_impressions(
        self, shown: nw.LazyFrame[Any], asked: nw.LazyFrame[Any]
    ) -> nw.LazyFrame[Any]:
        """Pages of searches, from impressions with positions.

        A document that a search showed at several positions counts at the best; of several
        documents at one position, one counts.

        Args:
            shown: As ``FactsOf.shown``.
            asked: From ``asked``.
        """
        at = nw.col("position").cast(nw.Int64)
        seen = shown.filter(~nw.col("named").is_null() & ~nw.col("doc_id").is_null() & (at >= 1))
        more = {} if self.presentation is None else {"_way": _known(self.presentation)}
        placed = seen.select(USER, "doc_id", intent="named", _at=at, **more)
        best = {name: nw.col(name).min() for name in ("_at", *more)}
        once = placed.group_by(*PAGE, "doc_id").agg(**best).filter(nw.col("_at") <= self.depth)
        columns = {}
        for names, source in ((self.docs, "doc_id"), (self._ways, "_way")):
            for rank, name in enumerate(names, 1):
                columns[name] = nw.when(nw.col("_at") == rank).then(nw.col(source))
        wide = once.with_columns(**columns).group_by(*PAGE).agg(nw.col(*columns).max())
        joined = wide.join(asked, on=list(PAGE), how="inner")
        ways = {
            name: nw.when(~nw.col(self.docs[at]).is_null()).then(nw.coalesce(name, "way"))
            for at, name in enumerate(self._ways)
        }
        return self._pages(joined.with_columns(**ways) if ways else joined)

    def _pages(self, rows: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        there = [flag(~nw.col(name).is_null()) for name in self.docs]
        ordered = (*PAGE, *self.groups, "text", "time_us", "weight", *self.docs, *self._ways)
        return rows.select(*ordered, length=nw.sum_horizontal(*there))

    def clicked(self, clicks: nw.LazyFrame[Any], pages: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Documents clicked of pages, each once, with the columns of their page.

        Args:
            clicks: As ``facts.clicks`` returns them.
            pages: From ``from_lists`` or ``from_impressions``.

        Returns:
            Also ``at_1`` and so on (1: it was shown there), and ``low`` and ``high`` (least and
            most that it satisfied).
        """
        low, high = (nw.col("satisfied").fill_null(least).cast(nw.Float64) for least in (0, 1))
        own = clicks.select(*PAGE, "doc_id", "position", low=low, high=high)
        joined = own.join(pages, on=list(PAGE), how="inner")
        at = {}
        for rank, name in zip(self.ranks, self.docs, strict=True):
            same = nw.coalesce(nw.col("doc_id") == nw.col(name), nw.lit(False))
            # A click without a document is on the one at its position.
            placed = nw.col("doc_id").is_null() & (nw.col("position") == rank)
            at[f"at_{rank}"] = flag(~nw.col(name).is_null() & (same | placed.fill_null(False)))
        return joined.with_columns(**at)

    def shown_cells(self, pages: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Pages by ``cell``: ``impressions``, ``shown`` (their weight), ``share``."""
        part = nw.col("weight") / nw.col("length").cast(nw.Float64)
        sums = {"impressions": _one(), "shown": nw.col("weight"), "share": part}
        return nw.concat(
            [
                self._summed(pages.filter(~nw.col(f"doc_{rank}").is_null()), rank, sums)
                for rank in self.ranks
            ]
        )

    def clicked_cells(self, clicked: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Clicks by ``cell``: their number, and sums as in ``Cells``."""
        weight = nw.col("weight")
        sums = {
            "clicks": _one(),
            "clicked": weight,
            "satisfied_low": weight * nw.col("low"),
            "satisfied_high": weight * nw.col("high"),
            "share_clicked": weight / nw.col("length").cast(nw.Float64),
        }
        return nw.concat(
            [
                self._summed(clicked.filter(nw.col(f"at_{rank}") == 1), rank, sums)
                for rank in self.ranks
            ]
        )

    def _summed(
        self, rows: nw.LazyFrame[Any], rank: int, sums: dict[str, nw.Expr]
    ) -> nw.LazyFrame[Any]:
        way = {} if self.presentation is None else {"presentation": nw.col(f"way_{rank}")}
        keys = {"doc_id": nw.col(f"doc_{rank}"), "rank": nw.lit(rank).cast(nw.Int64), **way}
        keyed = rows.select(*self.groups, **keys, **sums)
        return keyed.group_by(*self.cell).agg(nw.col(*sums).sum())

    def distinct_pages(
        self, pages: nw.LazyFrame[Any], clicked: nw.LazyFrame[Any]
    ) -> nw.LazyFrame[Any]:
        """Pages by documents and ``bits`` (clicks by rank): ``pages`` and their ``weight``."""
        bits = [nw.col(f"at_{rank}") * 2 ** (rank - 1) for rank in self.ranks]
        masks = clicked.with_columns(_bits=nw.sum_horizontal(*bits)).group_by(*PAGE)
        joined = pages.join(masks.agg(bits=nw.col("_bits").sum()), on=list(PAGE), how="left")
        mask = nw.col("bits").fill_null(0).cast(nw.Int64)
        keyed = joined.select(*self.groups, *self.docs, "weight", bits=mask, pages=_one())
        return keyed.group_by(*self.groups, *self.docs, "bits").agg(nw.col("pages", "weight").sum())

    def spellings(self, pages: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Pages by query and spelling, with their first and last time."""
        return pages.group_by(*self.groups, "text").agg(
            searches=nw.len().cast(nw.Int64),
            weight=nw.col("weight").sum(),
            first_us=nw.col("time_us").min(),
            last_us=nw.col("time_us").max(),
        )

    def matches(self, clicked: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """The number of ``clicks``, and of those on documents that were shown (``matched``)."""
        at = nw.max_horizontal(*(nw.col(f"at_{rank}") for rank in self.ranks))
        kept = clicked.select(at=at)
        return kept.select(clicks=nw.len().cast(nw.Int64), matched=nw.col("at").sum())


def _known(column: str) -> nw.Expr:
    return nw.when(nw.col(column) != "").then(nw.col(column))


def _one() -> nw.Expr:
    return nw.lit(1).cast(nw.Int64)
