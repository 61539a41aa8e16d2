"""Queries that a golden set has already, told by what was typed, and what is known of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import polars as pl

from karat.formats.exchange.import_ import counted
from karat.golden.traffic import folded
from karat.tables import Run

_SHOWN = 3  # texts that several queries have, and ids of anything
_NONE: Mapping[str, str] = MappingProxyType({})


def same_queries(
    there: pl.DataFrame, asked: pl.DataFrame, aliases: Mapping[str, str] = _NONE
) -> dict[str, str]:
    """The id in the golden set of each query of a file or a log; no two have one.

    A query whose text the golden set has, whatever its case and white space, is that query; one
    whose id is another query's there gets a new id. Of several queries with one text each is one
    of those that the golden set has with it: the one of its id, or the next that is free; what is
    left stays a query of its own. One without text is that of its id; if the golden set has none
    of this id, the one that had it in a file that was imported.

    Args:
        there: ``query_id`` and ``text`` of the golden set.
        asked: ``query_id`` and perhaps ``text``.
        aliases: Id in the golden set by id in files (``store.sql.imports.aliases``).
    """
    keys = dict(zip(there["query_id"], _folded(there), strict=True))
    wanted = dict(zip(asked["query_id"], _folded(asked), strict=True))
    free: dict[str, list[str]] = {}
    for query, key in keys.items():
        if key and wanted.get(query) not in ("", key):  # what has its own id there is that
            free.setdefault(key, []).append(query)
    taken, ids = {*keys, *wanted}, {}
    for query, key in wanted.items():
        new = query
        if keys.get(query) != key and free.get(key):
            new = free[key].pop(0)
        elif key and keys.get(query) not in {None, "", key}:
            # The id is another query's here.
            number = 2
            while f"{query}-{number}" in taken:
                number += 1
            new = f"{query}-{number}"
        taken.add(new)
        ids[query] = new
    bare = [query for query, key in wanted.items() if not key]
    return ids | followed(bare, keys, aliases, taken=ids.values())


def followed(
    ids: Iterable[str],
    known: Collection[str],
    aliases: Mapping[str, str],
    taken: Iterable[str] = (),
) -> dict[str, str]:
    """Which queries of the golden set are meant by ids that it lacks; no two mean one.

    Args:
        ids: Of a file or a run.
        known: Ids that the golden set has: they mean themselves.
        aliases: Id in the golden set by id in files (``store.sql.imports.aliases``).
        taken: Ids of the golden set that are meant already.
    """
    found, gone = {}, {*ids, *taken}
    for query in ids:
        meant = aliases.get(query)
        if meant is not None and query not in known and meant in known and meant not in gone:
            gone.add(meant)
            found[query] = meant
    return found


def following(
    run: Run, known: Collection[str], aliases: Mapping[str, str]
) -> tuple[Run, list[str]]:
    """A run under the ids of the golden set, and what is to be said of that.

    Args:
        run: The run; what it lacks stays as it is.
        known: Ids that the golden set has.
        aliases: Id in the golden set by id in files (``store.sql.imports.aliases``).
    """
    ids = followed(run.answers["query_id"].to_list(), known, aliases)
    if not ids:
        return run, []
    asked = pl.col("query_id").replace(ids)
    rows = run.frame().select(asked, "doc_id", "score")
    answers = run.answers.with_columns(asked)
    renamed = Run.from_batches(
        run.name, [rows], answers=answers, about=run.about, source=run.source
    )
    return renamed, [_known_as(ids, f"run {run.name!r}", _EARLIER)]


def lacking(run: Run, known: Collection[str], where: str = "the golden set") -> list[str]:
    """What is to be said of queries of a run that a golden set or an edition lacks."""
    held = set(known)
    odd = [query for query in run.answers["query_id"] if query not in held]
    if not odd:
        return []
    return [f"run {run.name!r} has {counted(len(odd), 'query')} that {where} lacks: {_few(odd)}"]


_TEXT, _EARLIER = "by their text under other ids", "under other ids since an earlier import"


def told_ids(
    there: pl.DataFrame,
    asked: pl.DataFrame,
    ids: Mapping[str, str],
    aliases: Mapping[str, str] = _NONE,
    *,
    made: bool = False,
) -> list[str]:
    """What is to be said of ids of a file that are not the golden set's, in sentences.

    Args:
        there: ``query_id`` of the golden set, as it was before.
        asked: ``query_id`` and perhaps ``text``.
        ids: The id of each in the golden set, of ``same_queries``.
        aliases: As ``same_queries`` took them.
        made: Whether the ids are made up, so that nobody knows the queries by them.
    """
    known = set(there["query_id"])
    texts = dict(zip(asked["query_id"], _folded(asked), strict=True))
    other = {query: new for query, new in ids.items() if new != query and not made}
    by_text = {query: new for query, new in other.items() if new in known and texts[query]}
    by_id = {query: new for query, new in other.items() if new in known and not texts[query]}
    clash = {query: new for query, new in other.items() if new not in known}
    own = {
        query: aliases[query]
        for query, text in texts.items()
        if not text and query in known and aliases.get(query, query) != query
    }
    bare = [query for query, text in texts.items() if not text and ids[query] not in known]
    told = []
    if by_text:
        told.append(_known_as(by_text, "the file", _TEXT))
    if by_id:
        told.append(_known_as(by_id, "the file", _EARLIER))
    if clash:
        some = _are(len(clash), "query")
        told.append(f"{some} given other ids: theirs are other queries' here, {_such(clash)}")
    if own:
        some = _are(len(own), "id")
        told.append(
            f"{some} taken for the golden set's own, though an earlier file called other queries "
            f"so, {_such(own)}"
        )
    if bare:
        have = "has no text: an id" if len(bare) == 1 else "have no text: ids"
        some = counted(len(bare), "query")
        told.append(f"{some} {have} that the golden set does not know: {_few(bare)}")
    return told


def _known_as(ids: Mapping[str, str], whose: str, how: str) -> str:
    """How many queries have other ids here, and one of them."""
    few = counted(len(ids), "query")
    if len(ids) == 1:
        how = how.replace("their", "its").replace("other ids", "another id")
    is_ = "is" if len(ids) == 1 else "are"
    return f"{few} of {whose} {is_} known here {how}, {_such(ids)}"


def _such(ids: Mapping[str, str]) -> str:
    query, new = next(iter(ids.items()))
    return f"such as {query} → {new}"


def _are(count: int, what: str) -> str:
    return f"{counted(count, what)} {'is' if count == 1 else 'are'}"


def _few(names: Collection[str]) -> str:
    """The first names, and whether there are more."""
    return ", ".join([*list(names)[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])


def changes(before: pl.DataFrame, after: pl.DataFrame, key: str, what: str) -> list[str]:
    """What is to be said of rows that were there and are not as they were: which, and what of them.

    Args:
        before: Rows as they were.
        after: Rows as they are; those that are new say nothing.
        key: The column both share.
        what: What a row is.
    """
    old = {row[key]: row for row in before.iter_rows(named=True)}
    told = []
    for row in after.filter(pl.col(key).is_in(before[key].implode())).iter_rows(named=True):
        was = old[row[key]]
        names = [name for name in {**was, **row} if was.get(name) != row.get(name)]
        if names:
            told.append(f"{row[key]} ({', '.join(names)})")
    if not told:
        return []
    are = "that was there is" if len(told) == 1 else "that were there are"
    return [f"{counted(len(told), what)} {are} changed: {_few(told)}"]


def shared_texts(asked: pl.DataFrame, ids: Mapping[str, str]) -> list[str]:
    """What is to be said of queries of a file that have one text, in sentences.

    Args:
        asked: ``query_id`` and perhaps ``text``.
        ids: The id of each in the golden set, of ``same_queries``.
    """
    sharing: dict[str, list[str]] = {}
    for query, key in zip(asked["query_id"], _folded(asked), strict=True):
        if key:
            sharing.setdefault(key, []).append(query)
    several = [group for group in sharing.values() if len(group) > 1]
    told = [
        f"queries {' and '.join(map(repr, group))} have one text, but for case and white space: "
        f"they stay apart, as {' and '.join(repr(ids[query]) for query in group)}; give them one "
        "id if they are one"
        for group in several[:_SHOWN]
    ]
    if len(several) > _SHOWN:
        told.append(f"and {len(several) - _SHOWN:,} more texts that several queries have")
    return told


def _folded(frame: pl.DataFrame) -> list[str]:
    """The form of each query's text under which spellings are equal; empty without a text."""
    return folded(frame["text"].fill_null("") if "text" in frame.columns else [""] * frame.height)


def over(there: pl.DataFrame, given: pl.DataFrame, key: str) -> pl.DataFrame:
    """What is said now of each row given, over what was known of it.

    Args:
        there: What was known; rows that are not given are left out.
        given: What is said; null where nothing is.
        key: The column both share.
    """
    given = given.unique(key, keep="first", maintain_order=True)
    both = given.join(there, on=key, how="left", suffix="_there", maintain_order="left")
    shared = [name for name in given.columns if name != key and name in there.columns]
    told = [pl.coalesce(name, f"{name}_there").alias(name) for name in shared]
    return both.with_columns(told).drop(f"{name}_there" for name in shared)
