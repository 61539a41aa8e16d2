"""Queries of a log: merged spellings, number of searches, and band (head, torso, tail).

Searches that differ only in case, white space, control characters or the form of their letters
(full-width letters, ligatures) are one query, shown in its most frequent spelling. Superscripts,
subscripts, fractions and letters in circles or squares stay distinct: 10⁵ is not 105.
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
"""Shares of the searches: the first third is the head, the second the torso, the rest the tail."""

BOT_FLAGS = ("bot", "is_bot", "isbot", "robot", "is_robot", "crawler", "is_crawler")
AGENTS = ("user_agent", "useragent", "agent", "http_user_agent")
_CLIENT = ("client", "client_id", "user", "user_id", "session", "session_id", "visitor", "ip")
_TIME = ("time", "time_us", "timestamp", "ts", "date", "datetime", "searched_at")
_PER_SEARCH = (*_CLIENT, "visitor_id", "ip_address", "request_id", *_TIME)
"""Columns of single searches: they are left out of the attributes of queries."""
YES = ("true", "yes", "y", "1", "1.0")
ROBOTS = (
    r"(?i)bot\b|bot/|crawl|spider|slurp|scrape|headless|phantomjs|curl/|wget/|python-|httpx|"
    r"go-http|java/|okhttp|libwww|monitor|uptime|pingdom"
)
_ABSURD = 0.2  # a share of all searches that is implausible for one query or client


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The queries of a log, with counts of what was dropped and merged."""

    # One row for each query, most searched first: `text` as shown, `key` its folded form, `count`
    # of searches, `spellings` merged into it, `personal` (kinds found, separated by spaces; null if
    # none), and the attributes
    frame: pl.DataFrame
    rows: int  # rows of the log
    searches: int  # searches in them
    empty: int  # searches dropped because their text is empty
    never: int  # rows dropped because their count is 0
    bots: int  # searches dropped as a bot's
    told_bots_by: tuple[str, ...]  # the columns that detected bots; empty if the log has none
    merged: int  # spellings that were merged into another
    control: int  # rows with control characters
    # Kind of personal data to number of queries with it, before masking
    personal: Mapping[str, int]
    masked: bool  # whether personal data was masked
    # Columns of single searches (bots, users, times), left out of the attributes
    left_out: tuple[str, ...]
    # Attribute to number of queries with several values; the most frequent is used
    varying: Mapping[str, int]
    notes: tuple[str, ...]  # notes for the user, in sentences


def folded(texts: Iterable[str]) -> list[str]:
    """The folded form of each text, which is equal for all spellings of a query."""
    series = pl.Series("text", list(texts), dtype=pl.String)
    ascii_only = series.str.len_bytes().sum() == series.str.len_chars().sum()
    key = _key(_tidy(pl.col("text")), ascii_only=ascii_only)
    return pl.DataFrame(series).select(key).to_series().to_list()


def clean(log: pl.DataFrame, *, mask: bool = False, source: str = "the log") -> Cleaned:
    """One row for each query of a log.

    Args:
        log: One row for each search, or for each query with its ``count``: ``text``, ``count``
            (whole, 0 or more; 1 without the column), and any further columns. Bots are detected by
            a flag or a user agent; columns of users, sessions and times are left out.
        mask: Replace personal data by its kind; otherwise it is only marked.
        source: Name of the log in messages.

    Raises:
        InputError: a count below 0, or no queries are left.
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
    log, bots, bot_columns = without_bots(log.filter(pl.col("count") > 0))
    notes = (
        []
        if bot_columns
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
        raise InputError("no query is left", file=source, fix="check which column is the query")
    attributes = _attributes(log)
    left_out = tuple(name for name in columns if _single(name))
    frame, merged, varying = _by_query(log, attributes)
    notes += [
        f"{name} differs between searches of one query for {count:,} of {frame.height:,} queries: "
        "each query has the value of most of its searches."
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
        told_bots_by=bot_columns,
        merged=merged,
        control=control,
        personal=personal,
        masked=mask,
        left_out=left_out,
        varying=varying,
        notes=tuple(notes),
    )


def with_bands(frame: pl.DataFrame, shares: Mapping[str, float] = THIRDS) -> pl.DataFrame:
    """Add the ``band`` of each query, by its place in the searches ordered by frequency.

    Equally frequent queries share a band: that of the middle of their searches. The most frequent
    are in the first band and the least frequent in the last. If all are equally frequent, there is
    one band, ``all``.

    Args:
        frame: With ``count``, above 0.
        shares: Band to its share of the searches, most frequent first; the sum is below 1, and
            the rest is the tail.

    Returns:
        The frame, in its order, with ``band``.

    Raises:
        UsageError: shares that are not above 0 or leave nothing for the last band.
    """
    band = bands_of(frame["count"].to_numpy(), shares)
    return frame.with_columns(band=pl.Series(band, dtype=pl.String))


def bands_of(
    counts: npt.NDArray[np.number], shares: Mapping[str, float] = THIRDS
) -> list[str | None]:
    """The band of each query, as in ``with_bands``.

    Args:
        counts: Searches of each query, 0 or more; NaN if unknown; shape (n,).
        shares: As in ``with_bands``.

    Returns:
        A band for each count, None for NaN.
    """
    if any(not 0 < share < 1 for share in shares.values()) or sum(shares.values()) > 1 - 1e-9:
        given = ", ".join(f"{name}={share:g}" for name, share in shares.items())
        raise UsageError(
            f"invalid bands {given}",
            fix=f"give shares above 0 with a sum below 1: the rest is the {TAIL}",
        )
    if TAIL in shares:
        raise UsageError(f"duplicate band {TAIL!r}", fix="leave it out: it is the rest")
    often = np.asarray(counts, np.float64)
    known = ~np.isnan(often)
    level, at = np.unique(-often[known], return_inverse=True)  # most asked first
    names = np.array([*shares, TAIL], dtype=object)
    if len(level) == 1 and len(at) > 1:
        band = np.array([ALL], dtype=object)
    else:
        searches = np.bincount(at, often[known], minlength=len(level))
        total = searches.sum() or 1.0
        edges = np.cumsum([*shares.values()])
        middle = (np.cumsum(searches) - searches / 2) / total
        band = names[np.searchsorted(edges, middle, side="right")]
        band[-1:] = TAIL
        band[:1] = names[0]
    bands = np.full(len(often), None, dtype=object)
    bands[known] = band[at]
    return list(bands)


_INVISIBLE = r"\x{00AD}\x{200B}\x{202A}-\x{202E}\x{2066}-\x{2069}\x{FEFF}"
_MEANING = ("<super>", "<sub>", "<fraction>", "<circle>", "<square>")
"""Forms (UAX 44, Decomposition_Mapping) with a meaning of their own."""
_CONTROL = rf"[\p{{Cc}}{_INVISIBLE}]"


def _tidy(text: pl.Expr) -> pl.Expr:
    """NFC, without invisible characters; white space and control characters become one space."""
    shown = text.str.replace_all(f"[{_INVISIBLE}]", "").str.replace_all(r"[\p{Cc}\s]+", " ")
    return shown.str.strip_chars(" ").str.normalize("NFC")


def _key(tidy: pl.Expr, *, ascii_only: bool = False) -> pl.Expr:
    """Plain letters in lower case, from full-width letters and ligatures too; m² stays m².

    ASCII has no other forms: looking for them takes most of the time of a few texts.
    """

    def plain(text: pl.Expr) -> pl.Expr:
        if ascii_only:
            return text
        return text.str.replace_many(_forms()).str.normalize("NFC")

    # A spacing accent such as ´ becomes a combining one on a space.
    spaced = plain(plain(tidy).str.to_lowercase()).str.replace_all(r"\s+", " ")
    return spaced.str.strip_chars(" ")


@cache
def _forms() -> dict[str, str]:
    """Letters in another form (width, ligature, space, font) to the plain ones."""
    plain_letters = {}
    for code in range(0x80, 0x20000):  # there are no such forms beyond
        letter = chr(code)
        if unicodedata.decomposition(letter) and (other := _decomposed(letter)) != letter:
            plain_letters[letter] = other
    return {letter: other for letter, other in plain_letters.items()
            if unicodedata.normalize("NFC", letter) != other}  # fmt: skip


def _decomposed(letter: str) -> str:
    """The NFKC form, except where the form has a meaning."""
    tag, *codes = unicodedata.decomposition(letter).split(" ")
    if not tag or tag in _MEANING:
        return letter
    parts = codes if tag.startswith("<") else (tag, *codes)
    whole = "".join(_decomposed(chr(int(code, 16))) for code in parts)
    return unicodedata.normalize("NFC", whole)


def _named(log: pl.DataFrame, names: Iterable[str]) -> list[str]:
    known = set(names)
    return [column for column in log.columns if plain(column) in known]


def without_bots(log: pl.DataFrame) -> tuple[pl.DataFrame, int, tuple[str, ...]]:
    """A log without the searches of bots.

    Args:
        log: ``count``, and perhaps columns that flag bots (``BOT_FLAGS``) or name user agents
            (``AGENTS``).

    Returns:
        The other rows, without those columns; the number of searches left out; and the columns
        that detected bots, none if the log has none.
    """
    flags, agents = _named(log, BOT_FLAGS), _named(log, AGENTS)
    columns = tuple(name for name in (*flags, *agents) if log[name].null_count() < log.height)
    bot = pl.lit(value=False)
    for name in columns:
        value = pl.col(name).cast(pl.String)
        flagged = (
            value.str.strip_chars().str.to_lowercase().is_in(YES)
            if name in flags
            else value.str.contains(ROBOTS)
        )
        bot = bot | flagged.fill_null(value=False)
    rest = log.filter(~bot).drop(*flags, *agents)
    return rest, int(log["count"].sum()) - int(rest["count"].sum()), columns


def _absurd_clients(log: pl.DataFrame) -> list[str]:
    """A note on a client with very many searches; not dropped: it may be an office or a proxy."""
    for name in _named(log, _CLIENT):
        asked = log.drop_nulls(name).group_by(name).agg(pl.col("count").sum())["count"].to_list()
        if len(asked) > 4 and (share := max(asked) / sum(asked)) > _ABSURD:
            note = f"One {name} made {share:.0%} of all searches."
            return [f"{note} If it is a bot, mark its rows in a column is_bot."]
    return []


def _marked(log: pl.DataFrame, *, mask: bool) -> tuple[pl.DataFrame, dict[str, int], list[str]]:
    """The log with ``personal``, the kinds in each text, masked on request.

    Also kind to number of queries with it, before masking; and a note on queries that masking
    merges.
    """
    texts = log["text"].filter(log["text"].str.contains(PERHAPS)).unique().to_list()
    kinds: dict[str, str] = {}
    for text in texts:
        present = {match.kind for match in find(text)}
        if present:
            kinds[text] = " ".join(kind for kind in KINDS if kind in present)
    known = pl.DataFrame(
        {"text": list(kinds), "personal": list(kinds.values()), "hidden": map(masked, kinds)},
        schema=dict.fromkeys(("text", "personal", "hidden"), pl.String),
    )
    log = log.join(known, on="text", how="left", maintain_order="left")
    holding = log.drop_nulls("personal").select(
        "personal", key=_key(pl.col("text")), becomes=_key(pl.col("hidden"))
    )
    all_kinds = holding.unique("key")["personal"].str.split(" ").explode().to_list()
    personal = {kind: all_kinds.count(kind) for kind in KINDS if kind in all_kinds}

    if not mask:
        return log.drop("hidden"), personal, []
    # A query may be the same as the masked form of others.
    typed = log.filter(pl.col("personal").is_null()).select(key=_key(pl.col("text"))).unique()
    same = typed.join(holding, left_on="key", right_on="becomes", how="semi").height
    before, after = holding["key"].n_unique() + same, holding["becomes"].n_unique()
    notes = []
    if before > after:
        notes.append(
            f"Masking merged {before:,} queries into {after:,}: they differed only in personal "
            "data."
        )
    return log.with_columns(text=pl.coalesce("hidden", "text")).drop("hidden"), personal, notes


def _single(name: str) -> bool:
    """Whether a column describes a search and not a query."""
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
        known = keyed.drop_nulls(name)
        if known.is_empty():
            continue
        differing = known.group_by("key").agg(pl.col(name).n_unique() > 1)[name].sum()
        if differing:
            varying[name] = int(differing)
        frame = frame.join(_most_asked(known, name), on="key", how="left")
    present = [name for name in attributes if name in frame.columns]
    frame = frame.select("text", "key", "count", "spellings", "personal", *present)
    merged = int(frame["spellings"].sum()) - frame.height
    return frame.sort("count", "key", descending=[True, False]), merged, varying


def _most_asked(keyed: pl.DataFrame, name: str) -> pl.DataFrame:
    """The value of a column in most searches of each query; of equals the smallest."""
    asked = keyed.group_by("key", name).agg(pl.col("count").sum())
    ordered = asked.sort("key", "count", name, descending=[False, True, False])
    return ordered.unique("key", keep="first", maintain_order=True).select("key", name)
