"""Known queries: matches imported queries with those of a golden set, by text or id."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import polars as pl

from karat.formats.exchange.import_ import counted
from karat.golden.traffic import folded
from karat.store.sql import queries
from karat.tables import Run
from karat.workflows.workspace.workspace import Workspace

_SHOWN = 3  # ids and texts listed in a message
_NONE: Mapping[str, str] = MappingProxyType({})


def query_frame(workspace: Workspace) -> pl.DataFrame:
    """The queries of the golden set, as ``store.sql.queries.frame`` returns them."""
    with workspace.store.read() as connection:
        return queries.frame(connection, workspace.golden.id)


def same_queries(
    there: pl.DataFrame, asked: pl.DataFrame, aliases: Mapping[str, str] = _NONE
) -> dict[str, str]:
    """The golden set's id of each query of a file or log; ids are unique.

    A query with the text of a query in the golden set, ignoring case and white space, is that
    query. A new query whose id is taken gets another id. Several queries with the same text match
    those of the golden set with that text one to one: by id if possible, otherwise in order; the
    rest are new queries. A query without text matches by its id, or by its id in an earlier import.
    """
    keys = dict(zip(there["query_id"], _folded(there), strict=True))
    wanted = dict(zip(asked["query_id"], _folded(asked), strict=True))
    free: dict[str, list[str]] = {}
    for query, key in keys.items():
        if key and wanted.get(query) not in ("", key):  # the same id and text: the same query
            free.setdefault(key, []).append(query)
    taken, ids = {*keys, *wanted}, {}
    for query, key in wanted.items():
        new = query
        if keys.get(query) != key and free.get(key):
            new = free[key].pop(0)
        elif key and keys.get(query) not in {None, "", key}:
            # Another query has this id.
            number = 2
            while f"{query}-{number}" in taken:
                number += 1
            new = f"{query}-{number}"
        taken.add(new)
        ids[query] = new
    bare = [query for query, key in wanted.items() if not key]
    return ids | followed(bare, keys, aliases, taken=ids.values())


def followed(
    ids: Iterable[str],  # query ids of a file or a run
    known: Collection[str],  # ids of the golden set; they are not mapped
    aliases: Mapping[str, str],
    taken: Iterable[str] = (),  # ids of the golden set that are already matched
) -> dict[str, str]:
    """The golden set's ids of queries that were imported under other ids; one to one.

    Args:
        aliases: Ids in the golden set by ids in imported files (``store.sql.imports.aliases``).
    """
    mapping, used = {}, {*ids, *taken}
    for query in ids:
        target = aliases.get(query)
        if target is not None and query not in known and target in known and target not in used:
            used.add(target)
            mapping[query] = target
    return mapping


def following(
    run: Run, known: Collection[str], aliases: Mapping[str, str]
) -> tuple[Run, list[str]]:
    """A run with query ids replaced by those of the golden set, and notes on that."""
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


def following_all(
    runs: Iterable[Run], known: Collection[str], aliases: Mapping[str, str], where: str | None
) -> tuple[list[Run], list[str]]:
    """As ``following``, of each run; with notes on queries that ``where`` lacks, unless None."""
    systems, notes = [], []
    for run in runs:
        system, run_notes = following(run, known, aliases)
        systems.append(system)
        notes += [*run_notes, *(lacking(system, known, where) if where else ())]
    return systems, notes


def lacking(run: Run, known: Collection[str], where: str) -> list[str]:
    """A note on queries of a run that are not in a golden set or an edition."""
    known_ids = set(known)
    unknown = [query for query in run.answers["query_id"] if query not in known_ids]
    if not unknown:
        return []
    queries = counted(len(unknown), "query")
    return [f"run {run.name!r} has {queries} that {where} does not have: {_few(unknown)}"]


_TEXT, _EARLIER = "by their text under other ids", "under other ids since an earlier import"


def id_notes(
    there: pl.DataFrame,  # `query_id` of the golden set before the import
    asked: pl.DataFrame,  # `query_id` and optionally `text` of the file
    ids: Mapping[str, str],  # result of `same_queries`
    aliases: Mapping[str, str] = _NONE,  # as given to `same_queries`
    *,
    made: bool = False,  # whether the ids are generated, so users do not know them
) -> list[str]:
    """Notes on query ids of a file that differ from those of the golden set."""
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
    notes = []
    if by_text:
        notes.append(_known_as(by_text, "the file", _TEXT))
    if by_id:
        notes.append(_known_as(by_id, "the file", _EARLIER))
    if clash:
        count_are = _are(len(clash), "query")
        notes.append(
            f"{count_are} given other ids, because other queries have theirs, {_such(clash)}"
        )
    if own:
        count_are = _are(len(own), "id")
        notes.append(
            f"{count_are} matched to the golden set's own, though an earlier file used "
            f"{'it' if len(own) == 1 else 'them'} for other queries, {_such(own)}"
        )
    if bare:
        has = "has no text and an id" if len(bare) == 1 else "have no text and ids"
        count_are = counted(len(bare), "query")
        notes.append(f"{count_are} {has} that the golden set does not have: {_few(bare)}")
    return notes


def _known_as(ids: Mapping[str, str], whose: str, how: str) -> str:
    """How many queries have other ids here, with an example."""
    few = counted(len(ids), "query")
    if len(ids) == 1:
        how = how.replace("their", "its").replace("other ids", "another id")
    is_ = "is" if len(ids) == 1 else "are"
    return f"{few} of {whose} {is_} known here {how}, {_such(ids)}"


def _such(ids: Mapping[str, str]) -> str:
    query, new = next(iter(ids.items()))
    return f"such as {query} → {new}"


def _are(count: int, noun: str) -> str:
    return f"{counted(count, noun)} {'is' if count == 1 else 'are'}"


def _few(names: Collection[str]) -> str:
    """The first names, with an ellipsis if there are more."""
    return ", ".join([*list(names)[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])


def changes(before: pl.DataFrame, after: pl.DataFrame, key: str, what: str) -> list[str]:
    """A note on existing rows that changed, with the names of their changed columns."""
    before_by_id = {row[key]: row for row in before.iter_rows(named=True)}
    changed = []
    for row in after.filter(pl.col(key).is_in(before[key].implode())).iter_rows(named=True):
        row_before = before_by_id[row[key]]
        names = [name for name in {**row_before, **row} if row_before.get(name) != row.get(name)]
        if names:
            changed.append(f"{row[key]} ({', '.join(names)})")
    if not changed:
        return []
    return [f"{counted(len(changed), what)} changed: {_few(changed)}"]


def shared_texts(asked: pl.DataFrame, ids: Mapping[str, str]) -> list[str]:
    """Notes on queries of a file that have the same text."""
    sharing: dict[str, list[str]] = {}
    for query, key in zip(asked["query_id"], _folded(asked), strict=True):
        if key:
            sharing.setdefault(key, []).append(query)
    shared = [group for group in sharing.values() if len(group) > 1]
    notes = [
        f"queries {' and '.join(map(repr, group))} have the same text, ignoring case and white "
        f"space: they stay separate, as {' and '.join(repr(ids[query]) for query in group)}; give "
        "them the same id if they are one query"
        for group in shared[:_SHOWN]
    ]
    if len(shared) > _SHOWN:
        notes.append(f"and {len(shared) - _SHOWN:,} more texts shared by several queries")
    return notes


def _folded(frame: pl.DataFrame) -> list[str]:
    """The normalised text of each query; empty without a text."""
    return folded(frame["text"].fill_null("") if "text" in frame.columns else [""] * frame.height)


def over(there: pl.DataFrame, given: pl.DataFrame, key: str) -> pl.DataFrame:
    """New values of rows merged over existing ones.

    Args:
        there: Existing rows; those not in ``given`` are left out.
        given: New rows; null keeps the existing value.
        key: Id column of both.
    """
    given = given.unique(key, keep="first", maintain_order=True)
    both = given.join(there, on=key, how="left", suffix="_there", maintain_order="left")
    shared = [name for name in given.columns if name != key and name in there.columns]
    merged = [pl.coalesce(name, f"{name}_there").alias(name) for name in shared]
    return both.with_columns(merged).drop(f"{name}_there" for name in shared)
