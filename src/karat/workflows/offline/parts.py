"""Parts: a golden set split into development and held-out queries, and evaluation on one part."""

from __future__ import annotations

import getpass
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import InputError, UsageError, nearest
from karat.formats.own import golden, held_out
from karat.formats.own.workspace import NAME as WORKSPACE
from karat.formats.tables import writing
from karat.formats.tables.source import Source
from karat.golden.splitting import DEV, HELD_OUT, PART, SALT, SHARE, Split, in_part, split
from karat.reports.phrases.numbers import counted
from karat.tables import Qrels, Queries, Run
from karat.tables.notes import Concern, Note
from karat.workflows.offline import inputs
from karat.workflows.workspace.fingerprints import fingerprint

NO_FILE = (
    "the held-out part: this use is not recorded, as the judgments are of no file; evaluate with "
    "the golden set's file to count it"
)


@dataclass(frozen=True)
class Within:
    """Judgments, queries and runs of one part.

    Attributes:
        part: Which part.
        qrels: The judgments of its queries, on the scale of all.
        queries: Its queries.
        runs: The runs, with its queries alone; anything else stays as it is.
        whole: The runs as they were.
    """

    part: str
    qrels: Qrels
    queries: Queries
    runs: list[Any]
    whole: list[Run]

    def used(self, by: str | None = None, commit: str | None = None) -> list[str]:
        """Record a use of the held-out part, and say which it is; nothing for other parts.

        Call it when there are numbers, and before they are shown.

        Args:
            by: The person who evaluates; the user of this process if None.
            commit: Of which code.

        Raises:
            InputError: the ledger is damaged or cannot be written.
        """
        if self.part != HELD_OUT:
            return []
        return _recorded(self.qrels, len(self.queries), self.whole, by, commit)


def _recorded(
    qrels: Qrels, queries: int, runs: Sequence[Run], by: str | None, commit: str | None
) -> list[str]:
    """Record a use of the held-out part, and say which it is; nothing if no run has answers."""
    answering = [run for run in runs if run.answers.height]
    if not answering:
        return []
    if qrels.file is None:
        return [Note(NO_FILE, Concern.INPUT)]
    place = held_out.place(qrels.file)
    use = held_out.Use(
        time=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        golden=held_out.called(qrels.file),
        queries=queries,
        runs=tuple((run.name, str(fingerprint(run))) for run in answering),
        by=_user() if by is None else by,
        commit=commit,
    )
    # A workspace has one ledger, and perhaps several golden sets.
    before = [each for each in held_out.append(place, use) if each.golden == use.golden]
    contents = len({sha256 for each in before for _, sha256 in each.runs})
    some = "no run" if not contents else counted(contents, "run", "runs")
    says = f"held-out part: use {len(before) + 1} ({some} before; {place.name})"
    return [Note(says, Concern.INPUT)]


def within(part: str, qrels: Any, runs: Sequence[Any], queries: Any = None) -> Within:
    """The judgments, queries and runs of one part of a golden set.

    Args:
        part: ``dev``, ``held_out``, or another value of the attribute ``part`` of queries.
        qrels: Judgments, as ``evaluate`` takes them.
        runs: Runs; anything else among them (a saved baseline) stays as it is.
        queries: As ``evaluate`` takes them; those that come with the judgments if None.

    Raises:
        UsageError: no queries were given, they have no parts, or none is in this one.
    """
    about = inputs.about(queries, qrels)
    if about is None or PART not in about.attributes:
        raise UsageError(
            "the queries have no parts" if about else "no queries were given, which have parts",
            fix="karat golden split GOLDEN gives each query its part",
        )
    of_query = about.attribute(PART)
    ids = [query_id for query_id, its in of_query.items() if its == part]
    if not ids:
        there = sorted(set(of_query.values()))
        near = nearest(part, there, 1)
        raise UsageError(
            f"no query is in the part {part!r}", nearest=near, fix=f"parts: {', '.join(there)}"
        )
    judgments = inputs.qrels(qrels)
    asked = pl.col("query_id").is_in(pl.Series(ids, dtype=pl.String).implode())
    return Within(
        part,
        judgments.only(ids),
        Queries(about.frame.filter(asked), about.source),
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
    """Where both parts of a golden set are measured together: record a use if one is seen alone.

    Args:
        queries: The queries, if any.
        qrels: Their judgments.
        runs: The runs measured.
        shown: The slices that are shown or checked: an attribute, or several with commas between
            them, and a value; None for each value.
        commit: Of which code.

    Returns:
        Which use of the held-out part it is, if it is one; and that the parts are measured
        together.

    Raises:
        InputError: the ledger is damaged or cannot be written.
    """
    if queries is None or PART not in queries.attributes:
        return [], []
    counts = Counter(queries.attribute(PART).values())
    if not (counts[DEV] and counts[HELD_OUT]):
        return [], []
    looks = any(
        PART in _listed(attribute) and (value is None or HELD_OUT in _listed(value))
        for attribute, value in shown
    )
    used = _recorded(qrels, counts[HELD_OUT], runs, None, commit) if looks else []
    unrecorded = "" if looks else ", and this is not recorded as a use of them"
    note = (
        f"the {counts[HELD_OUT]:,} held-out queries are counted with the others{unrecorded}: "
        "--part dev leaves them out"
    )
    return used, [Note(note, Concern.INPUT)]


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",")]


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have a user without a name
        return "unknown"


def split_file(path: str | Path, share: float = SHARE, salt: str = SALT) -> Split:
    """Write the part of each query into a golden set's file, which keeps its shape.

    Args:
        path: What ``GoldenSet.load`` reads.
        share: As in ``golden.splitting.split``.
        salt: As there.

    Raises:
        InputError: it cannot be read or written, or ``part`` is another attribute there.
        UsageError: the share is not between 0 and 1.
    """
    with Source(path) as source:
        data, name = source.whole(), source.name
    held = golden.parse(data, name)
    made = split(
        {q.query_id: q.attributes.get(PART) for q in held.queries}, share, salt, source=name
    )
    if not made.new:
        return made
    own = golden.is_own(data, name)
    written = (
        golden.to_bytes(changed(held, queries=[in_part(q, made) for q in held.queries]))
        if own
        else _plain(data, list(made.parts.values()))
    )
    with writing.beside(Path(path)) as stream:
        stream.write(written)
    return made


def _plain(data: bytes, of_item: Sequence[str]) -> bytes:
    """A plain list, with the part of each item: an array stays an array, and lines lines."""
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
    """What the held-out part of a golden set was used for, the first use first.

    Args:
        path: Its file or folder; for ``karat.toml``, the uses of all golden sets of the workspace.

    Raises:
        InputError: there is no such file, or the ledger is damaged.
    """
    if not Path(path).exists():
        raise InputError("there is no such file", file=str(path))
    found, name = held_out.uses(held_out.place(path)), held_out.called(path)
    return [use for use in found if name in (use.golden, WORKSPACE)]
