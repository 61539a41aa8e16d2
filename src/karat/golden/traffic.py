"""A query log as traffic: which queries are one, how often each was asked, and its band.

Searches that differ only in case, white space, control characters or the form of their letters
(full-width letters, ligatures) are one query; it is shown as it was spelt most often. What is
raised, lowered, a fraction, or in a circle or square says something else: 10⁵ is not 105.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl

from karat.errors import InputError, UsageError
from karat.golden.pii import KINDS, PERHAPS, find, masked
from karat.tables.column_names import plain

HEAD, TORSO, TAIL, ALL = "head", "torso", "tail", "all"
THIRDS = {HEAD: 1 / 3, TORSO: 1 / 3}
"""The queries that make the first third of the searches, and the second; the tail is the rest."""

BOT_FLAGS = ("bot", "is_bot", "isbot", "robot", "is_robot", "crawler", "is_crawler")
AGENTS = ("user_agent", "useragent", "agent", "http_user_agent")
_CLIENT = ("client", "client_id", "user", "user_id", "session", "session_id", "visitor", "ip")
_TIME = ("time", "time_us", "timestamp", "ts", "date", "datetime", "searched_at")
_PER_SEARCH = (*_CLIENT, "visitor_id", "ip_address", "request_id", *_TIME)
"""Columns of a search and not of a query: they are no attributes, and are left out."""
YES = ("true", "yes", "y", "1", "1.0")
ROBOTS = (
    r"(?i)bot\b|bot/|crawl|spider|slurp|scrape|headless|phantomjs|curl/|wget/|python-|httpx|"
    r"go-http|java/|okhttp|libwww|monitor|uptime|pingdom"
)
_ABSURD = 0.2  # share of all searches that one query or client hardly has of itself


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The queries of a log, and what became of its rows.

    Attributes:
        frame: One row for each query, most asked first: ``text`` as it is shown, ``key`` its folded
            form, ``count`` of searches, ``spellings`` merged into it, ``personal`` (kinds found,
            with a space between; null if none), and the attributes.
        rows: Rows given.
        searches: Searches in them.
        empty: Searches dropped as nothing was typed.
        never: Rows dropped as their count is 0.
        bots: Searches dropped as a robot's.
        told_bots_by: The columns that said so; empty if the log cannot say.
        merged: Spellings that were folded into another.
        control: Rows that held control characters.
        personal: Kind to number of queries that hold it, before any is masked.
        masked: Whether those were masked.
        left_out: Columns that tell of single searches, robots or not, and are no attributes.
        varying: Attribute to number of queries that had several values; the most frequent is kept.
        notes: What a person should know of this, in sentences.
    """

    frame: pl.DataFrame
    rows: int
    searches: int
    empty: int
    never: int
    bots: int
    told_bots_by: tuple[str, ...]
    merged: int
    control: int
    personal: Mapping[str, int]
    masked: bool
    left_out: tuple[str, ...]
    varying: Mapping[str, int]
    notes: tuple[str, ...]


def folded(texts: Iterable[str]) -> list[str]:
    """The form under which spellings of one query are equal, for each text."""
    series = pl.Series("text", list(texts), dtype=pl.String)
    return pl.DataFrame(series).select(_key(_tidy(pl.col("text")))).to_series().to_list()


def clean(log: pl.DataFrame, *, mask: bool = False, source: str = "the log") -> Cleaned:
    """Make one row for each query of a log.

    Args:
        log: One row for each search, or for each query with its ``count``: ``text``, ``count``
            (whole, 0 or more; 1 if there is no such column), and any further columns. A flag for
            bots or a user agent tells robots; columns of users, sessions and times are left out.
        mask: Replace what is personal by its kind; otherwise it is only marked.
        source: What messages call it.

    Raises:
        InputError: a count below 0, or nothing is left.
    """
    rows = log.height
    if "count" not in log.columns:
        log = log.with_columns(count=pl.lit(1, pl.Int64))
    log = log.with_columns(
        pl.col("text").cast(pl.String).fill_null(""), pl.col("count").fill_null(0)
    )
    if (log["count"] < 0).any():
        query = log.filter(pl.col("count") < 0)["text"][0]
        raise InputError("a count below 0", file=source, query=query, fix="give 0 or more")
    searches = int(log["count"].sum())
    never = int((log["count"] == 0).sum())
    columns = log.columns
    log, bots, told = without_bots(log.filter(pl.col("count") > 0))
    notes = (
        []
        if told
        else ["No bots were removed: the log has no column that marks them (is_bot, user_agent)."]
    )
    notes += _absurd_clients(log)
    control = log.height and int(log["text"].str.contains(_CONTROL).sum())
    log = log.with_columns(_tidy(pl.col("text")))
    here = log["text"] != ""
    empty = int(log["count"].filter(~here).sum())
    log, personal, masking = _marked(log.filter(here), mask=mask)
    notes += masking
    if log.is_empty():
        raise InputError("no query is left", file=source, fix="is the right column read?")
    attributes = _attributes(log)
    left_out = tuple(name for name in columns if _single(name))
    frame, merged, varying = _by_query(log, attributes)
    notes += [
        f"{name} differs between searches of one query for {count:,} of {frame.height:,} queries: "
        "each query has the value of most of its searches, and slices are of queries."
        for name, count in varying.items()
    ]
    top = frame.row(0, named=True)
    if frame.height > 4 and top["count"] / frame["count"].sum() > _ABSURD:
        share = top["count"] / frame["count"].sum()
        notes.append(
            f"One query, {top['text']!r}, is {share:.0%} of all searches: check that it is not "
            "a bot's."
        )
    return Cleaned(
        frame=frame,
        rows=rows,
        searches=searches,
        empty=empty,
        never=never,
        bots=bots,
        told_bots_by=told,
        merged=merged,
        control=control,
        personal=personal,
        masked=mask,
        left_out=left_out,
        varying=varying,
        notes=tuple(notes),
    )


def with_bands(
    frame: pl.DataFrame, shares: Mapping[str, float] = THIRDS, last: str = TAIL
) -> pl.DataFrame:
    """Add the ``band`` of each query, by the share of all searches that were asked more often.

    Queries asked equally often share a band: that in which the middle of their searches falls. The
    most asked are in the first band and the least asked in the last. If all are asked equally often
    there is one band, ``all``.

    Args:
        frame: With ``count``, above 0.
        shares: Band to its share of the searches, most asked first; in all below 1.
        last: The band of the rest.

    Returns:
        The frame, in its order, with ``band``.

    Raises:
        UsageError: shares that are not above 0 or leave nothing to the last band.
    """
    band = bands_of(frame["count"].to_numpy(), shares, last)
    return frame.with_columns(band=pl.Series(band, dtype=pl.String))


def bands_of(
    counts: npt.NDArray[np.number], shares: Mapping[str, float] = THIRDS, last: str = TAIL
) -> list[str | None]:
    """The band of each query, as ``with_bands``: the one definition for logs, slices and pages.

    Args:
        counts: How often each query was asked, 0 or more; NaN where it is unknown; shape (n,).
        shares: Band to its share of the searches, most asked first; in all below 1.
        last: The band of the rest.

    Returns:
        A band for each count, None for NaN.

    Raises:
        UsageError: shares that are not above 0 or leave nothing to the last band.
    """
    if any(not 0 < share < 1 for share in shares.values()) or sum(shares.values()) > 1 - 1e-9:
        said = ", ".join(f"{name}={share:g}" for name, share in shares.items())
        raise UsageError(
            f"bands {said} cannot be",
            fix=f"each is a share above 0, and together below 1: what remains is the {last}",
        )
    if last in shares:
        raise UsageError(f"band {last!r} stands twice", fix="it is what the others leave")
    often = np.asarray(counts, np.float64)
    known = ~np.isnan(often)
    level, at = np.unique(-often[known], return_inverse=True)  # most asked first
    names = np.array([*shares, last], dtype=object)
    if len(level) == 1 and len(at) > 1:
        band = np.array([ALL], dtype=object)
    else:
        searches = np.bincount(at, often[known], minlength=len(level))
        total = searches.sum() or 1.0
        edges = np.cumsum([*shares.values()])
        middle = (np.cumsum(searches) - searches / 2) / total
        band = names[np.searchsorted(edges, middle, side="right")]
        band[-1:] = last
        band[:1] = names[0]
    found = np.full(len(often), None, dtype=object)
    found[known] = band[at]
    return list(found)


_INVISIBLE = r"\x{00AD}\x{200B}\x{202A}-\x{202E}\x{2066}-\x{2069}\x{FEFF}"
_MEANING = ("<super>", "<sub>", "<fraction>", "<circle>", "<square>")
"""Forms (UAX 44, Decomposition_Mapping) that say something of their own."""
_CONTROL = rf"[\p{{Cc}}{_INVISIBLE}]"


def _tidy(text: pl.Expr) -> pl.Expr:
    """NFC, nothing invisible, and one space where there is white space or control characters."""
    shown = text.str.replace_all(f"[{_INVISIBLE}]", "").str.replace_all(r"[\p{Cc}\s]+", " ")
    return shown.str.strip_chars(" ").str.normalize("NFC")


def _key(tidy: pl.Expr) -> pl.Expr:
    """Plain letters in lower case: full-width letters are letters and ﬁ is fi, but m² is not m2."""
    for_one = _forms()

    def plain(text: pl.Expr) -> pl.Expr:
        return text.str.replace_many(for_one).str.normalize("NFC")

    # A spacing accent, as ´ alone, becomes one upon a space.
    spaced = plain(plain(tidy).str.to_lowercase()).str.replace_all(r"\s+", " ")
    return spaced.str.strip_chars(" ")


@cache
def _forms() -> dict[str, str]:
    """Each letter that is another in another form (width, ligature, space, font) to that other."""
    found = {}
    for code in range(0x80, 0x20000):  # no such form is further on
        letter = chr(code)
        if unicodedata.decomposition(letter) and (other := _decomposed(letter)) != letter:
            found[letter] = other
    return {letter: other for letter, other in found.items()
            if unicodedata.normalize("NFC", letter) != other}  # fmt: skip


def _decomposed(letter: str) -> str:
    """As NFKC has it, but for what a form makes something else."""
    tag, *codes = unicodedata.decomposition(letter).split(" ")
    if not tag or tag in _MEANING:
        return letter
    parts = codes if tag.startswith("<") else (tag, *codes)
    whole = "".join(_decomposed(chr(int(code, 16))) for code in parts)
    return unicodedata.normalize("NFC", whole)


def _named(log: pl.DataFrame, names: Iterable[str]) -> list[str]:
    wanted = set(names)
    return [column for column in log.columns if plain(column) in wanted]


def without_bots(log: pl.DataFrame) -> tuple[pl.DataFrame, int, tuple[str, ...]]:
    """A log without the searches of bots.

    Args:
        log: ``count``, and perhaps columns that flag bots (``BOT_FLAGS``) or name user agents
            (``AGENTS``).

    Returns:
        The rows that are left, without those columns; how many searches were left out; and which
        columns said so, none if the log cannot say.
    """
    flags, agents = _named(log, BOT_FLAGS), _named(log, AGENTS)
    told = tuple(name for name in (*flags, *agents) if log[name].null_count() < log.height)
    robot = pl.lit(value=False)
    for name in told:
        said = pl.col(name).cast(pl.String)
        is_one = (
            said.str.strip_chars().str.to_lowercase().is_in(YES)
            if name in flags
            else said.str.contains(ROBOTS)
        )
        robot = robot | is_one.fill_null(value=False)
    kept = log.filter(~robot).drop(*flags, *agents)
    return kept, int(log["count"].sum()) - int(kept["count"].sum()), told


def _absurd_clients(log: pl.DataFrame) -> list[str]:
    """A client that alone asks very much: said, not dropped, as it may be an office or a proxy."""
    for name in _named(log, _CLIENT):
        asked = log.drop_nulls(name).group_by(name).agg(pl.col("count").sum())["count"].to_list()
        if len(asked) > 4 and (share := max(asked) / sum(asked)) > _ABSURD:
            says = f"One {name} made {share:.0%} of all searches."
            return [f"{says} If it is a bot, mark its rows in a column is_bot."]
    return []


def _marked(log: pl.DataFrame, *, mask: bool) -> tuple[pl.DataFrame, dict[str, int], list[str]]:
    """With ``personal``: the kinds in each text, which are masked if that is wanted.

    Also kind to number of queries that hold it, before they are masked; and a sentence on queries
    that masking makes one.
    """
    texts = log["text"].filter(log["text"].str.contains(PERHAPS)).unique().to_list()
    kinds: dict[str, str] = {}
    for text in texts:
        there = {each.kind for each in find(text)}
        if there:
            kinds[text] = " ".join(kind for kind in KINDS if kind in there)
    known = pl.DataFrame(
        {"text": list(kinds), "personal": list(kinds.values()), "hidden": map(masked, kinds)},
        schema=dict.fromkeys(("text", "personal", "hidden"), pl.String),
    )
    log = log.join(known, on="text", how="left", maintain_order="left")
    holding = log.drop_nulls("personal").select(
        "personal", key=_key(pl.col("text")), becomes=_key(pl.col("hidden"))
    )
    found = holding.unique("key")["personal"].str.split(" ").explode().to_list()
    personal = {kind: found.count(kind) for kind in KINDS if kind in found}
    if not mask:
        return log.drop("hidden"), personal, []
    # Somebody may have typed what the mask makes of others.
    typed = log.filter(pl.col("personal").is_null()).select(key=_key(pl.col("text"))).unique()
    same = typed.join(holding, left_on="key", right_on="becomes", how="semi").height
    before, after = holding["key"].n_unique() + same, holding["becomes"].n_unique()
    notes = []
    if before > after:
        notes.append(
            f"Masked, {before:,} queries became {after:,}: nothing but what is masked told them "
            "apart."
        )
    return log.with_columns(text=pl.coalesce("hidden", "text")).drop("hidden"), personal, notes


def _single(name: str) -> bool:
    """Whether a column tells of a search and not of a query."""
    return plain(name) in (*BOT_FLAGS, *AGENTS, *_PER_SEARCH)


def _attributes(log: pl.DataFrame) -> list[str]:
    fixed = {"text", "count", "personal", *filter(_single, log.columns)}
    attributes = [name for name in log.columns if name not in fixed]
    ours = {"key", "spellings", "band"} & set(attributes)
    if ours:
        raise InputError(
            f"a column is called {min(ours)!r}, which karat fills in itself", fix="rename it"
        )
    return attributes


def _by_query(log: pl.DataFrame, attributes: list[str]) -> tuple[pl.DataFrame, int, dict[str, int]]:
    keyed = log.with_columns(key=_key(pl.col("text")))
    spelt = _most_asked(keyed, "text")
    several = keyed.group_by("key").agg(spellings=pl.col("text").n_unique())
    totals = keyed.group_by("key").agg(
        pl.col("count").sum(), pl.col("personal").drop_nulls().first()
    )
    frame = totals.join(spelt, on="key").join(several, on="key")
    varying = {}
    for name in attributes:
        there = keyed.drop_nulls(name)
        if there.is_empty():
            continue
        unlike = there.group_by("key").agg(pl.col(name).n_unique() > 1)[name].sum()
        if unlike:
            varying[name] = int(unlike)
        frame = frame.join(_most_asked(there, name), on="key", how="left")
    kept = [name for name in attributes if name in frame.columns]
    frame = frame.select("text", "key", "count", "spellings", "personal", *kept)
    merged = int(frame["spellings"].sum()) - frame.height
    return frame.sort("count", "key", descending=[True, False]), merged, varying


def _most_asked(keyed: pl.DataFrame, name: str) -> pl.DataFrame:
    """The value of a column that most searches for each query had; of equals the smallest."""
    asked = keyed.group_by("key", name).agg(pl.col("count").sum())
    ordered = asked.sort("key", "count", name, descending=[False, True, False])
    return ordered.unique("key", keep="first", maintain_order=True).select("key", name)
