"""Parts: a golden set split into development and held-out queries; evaluation on one part."""

from __future__ import annotations

import getpass
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.errors import InputError, UsageError, nearest
from karat.formats.own import golden
from karat.formats.own.workspace import NAME as WORKSPACE
from karat.formats.tables import writing
from karat.formats.tables.source import Source
from karat.golden.splitting import DEV, HELD_OUT, PART, SALT, SHARE, Split, in_part, split
from karat.reports.phrases.numbers import counted
from karat.tables import Qrels, Queries, Run
from karat.tables.notes import Concern, Note
from karat.workflows.offline import inputs
from karat.workflows.workspace.fingerprints import fingerprint

if TYPE_CHECKING:
    from karat.formats.own import held_out

NO_FILE = (
    "held-out part: this use is not recorded, because the judgments do not come from a file; "
    "evaluate with the golden set's file to record it"
)


@dataclass(frozen=True)
class Within:
    part: str
    qrels: Qrels  # judgments of its queries, on the scale of all judgments
    queries: Queries
    runs: list[Any]  # the runs, restricted to its queries; other objects unchanged
    whole: list[Run]  # the unrestricted runs

    def used(self, by: str | None = None, commit: str | None = None) -> list[str]:
        """Record a use of the held-out part; a note with its number, none for other parts.

        Call it once the numbers are computed, before they are shown.
        """
        if self.part != HELD_OUT:
            return []
        return _recorded(self.qrels, len(self.queries), self.whole, by, commit)


def _recorded(
    qrels: Qrels, queries: int, runs: Sequence[Run], by: str | None, commit: str | None
) -> list[str]:
    """Record a use of the held-out part; a note with its number, none if no run has answers."""
    answering = [run for run in runs if run.answers.height]
    if not answering:
        return []
    if qrels.file is None:
        return [Note(NO_FILE, Concern.INPUT)]
    from karat.formats.own import held_out  # with gates and their histories

    place = held_out.place(qrels.file)
    use = held_out.Use(
        time=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        golden=held_out.called(qrels.file),
        queries=queries,
        runs=tuple((run.name, str(fingerprint(run))) for run in answering),
        by=user() if by is None else by,
        commit=commit,
    )
    # A workspace has one ledger, and perhaps several golden sets.
    before = [earlier for earlier in held_out.append(place, use) if earlier.golden == use.golden]
    contents = len({sha256 for earlier in before for _, sha256 in earlier.runs})
    run_count = "no run" if not contents else counted(contents, "run", "runs")
    text = f"held-out part: use {len(before) + 1} ({run_count} before; {place.name})"
    return [Note(text, Concern.INPUT)]


def within(part: str, qrels: Any, runs: Sequence[Any], queries: Any = None) -> Within:
    """The judgments, queries and runs of one part of a golden set."""
    about = inputs.about(queries, qrels)
    if about is None or PART not in about.attributes:
        raise UsageError(
            "the queries have no parts" if about else "no queries were given to take a part of",
            fix="karat golden split GOLDEN assigns each query to a part",
        )
    of_query = about.attribute(PART)
    ids = [query_id for query_id, of_part in of_query.items() if of_part == part]
    if not ids:
        parts = sorted(set(of_query.values()))
        near = nearest(part, parts, 1)
        raise UsageError(
            f"no query is in the part {part!r}", nearest=near, fix=f"parts: {', '.join(parts)}"
        )
    judgments = inputs.qrels(qrels)
    in_part = pl.col("query_id").is_in(pl.Series(ids, dtype=pl.String).implode())
    return Within(
        part,
        judgments.only(ids),
        Queries(about.frame.filter(in_part), about.source),
        [run.only(ids) if isinstance(run, Run) else run for run in runs],
        [run for run in runs if isinstance(run, Run)],
    )


def of_parts(
    queries: Queries | None,
    qrels: Qrels,
    runs: Sequence[Run],
    shown: Iterable[tuple[str, str | None]],
    commit: str | None = None,
) -> tuple[list[str], list[str]]:
    """Notes if both parts of a golden set are measured; records a use if sliced by part."""
    if queries is None or PART not in queries.attributes:
        return [], []
    counts = Counter(queries.attribute(PART).values())
    if not (counts[DEV] and counts[HELD_OUT]):
        return [], []
    sliced_by_part = any(
        PART in _listed(attribute) and (value is None or HELD_OUT in _listed(value))
        for attribute, value in shown
    )
    used = _recorded(qrels, counts[HELD_OUT], runs, None, commit) if sliced_by_part else []
    unrecorded = "" if sliced_by_part else ", and this is not recorded as a use of them"
    note = (
        f"the {counts[HELD_OUT]:,} held-out queries are counted with the others{unrecorded}: "
        "--part dev leaves them out"
    )
    return used, [Note(note, Concern.INPUT)]


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",")]


def user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have a user without a name
        return "unknown"


def split_file(path: str | Path, share: float = SHARE, salt: str = SALT) -> Split:
    """Write the part of each query into a golden set's file, in the file's own format."""
    with Source(path) as source:
        data, name = source.whole(), source.name
    golden_set = golden.parse(data, name)
    split_result = split(
        {q.query_id: q.attributes.get(PART) for q in golden_set.queries}, share, salt, source=name
    )
    if not split_result.new:
        return split_result
    is_own = golden.is_own(data, name)
    written = (
        golden.to_bytes(
            changed(golden_set, queries=[in_part(q, split_result) for q in golden_set.queries])
        )
        if is_own
        else _plain(data, list(split_result.parts.values()))
    )
    with writing.beside(Path(path)) as stream:
        stream.write(written)
    return split_result


def _plain(data: bytes, of_item: Sequence[str]) -> bytes:
    """A plain list with the part of each item; arrays and JSON lines keep their form."""
    array = data.lstrip().startswith(b"[")
    items = json.loads(data) if array else [json.loads(x) for x in data.split(b"\n") if x.strip()]
    lines = [
        json.dumps({**item, PART: part}, ensure_ascii=False)
        for item, part in zip(items, of_item, strict=True)
    ]
    if array:
        return ("[\n" + ",\n".join(lines) + "\n]\n").encode()
    return ("\n".join(lines) + "\n").encode()


def uses_of(path: str | Path) -> list[held_out.Use]:
    """Uses of the held-out part of a golden set, oldest first."""
    from karat.formats.own import held_out

    if not Path(path).exists():
        raise InputError("there is no such file", file=str(path))
    uses, name = held_out.uses(held_out.place(path)), held_out.called(path)
    return [use for use in uses if name in (use.golden, WORKSPACE)]
