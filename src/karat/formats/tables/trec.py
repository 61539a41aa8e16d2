"""TREC qrels and runs, as trec_eval reads them.

A qrels line is ``query iteration document grade``, where the iteration may name a subtopic, as in
the TREC diversity tasks; a run line is ``query Q0 document rank score tag``. Fields are separated
by white space; blank lines and lines that begin with # are skipped (trec_eval 10; 9.0.8 does not
support comments); further fields of a run line are ignored unless another line begins there; ranks
are checked against the scores and not used. A score that is not a number, which trec_eval reads as
0, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

import polars as pl

from karat.errors import InputError
from karat.formats.tables.format import Format, Place, Rows, parts_of, refuse_unwritable, whole
from karat.formats.tables.lines import Further, Layout, frames, places
from karat.formats.tables.source import Source
from karat.tables import Qrels, Run

QRELS = Layout(
    what="a TREC qrels line",
    fields=("query", "iteration", "document", "grade"),
    keep={
        0: ("query_id", pl.String),
        1: ("subtopic", pl.String),
        2: ("doc_id", pl.String),
        3: ("grade", pl.Float64),
    },
)
_SIX = 6  # fields of a run line


def _joined(fields: Sequence[str]) -> bool:
    """Whether another run line begins within one that has more than six fields.

    The sign is another Q0; or a repetition of the line's own second field, followed by a document,
    a rank and a score. A tag of several words is neither.
    """
    q0 = [at for at, field in enumerate(fields) if at > 1 and field.casefold() == "q0"]
    if q0 and not (q0 == [2] and fields[1].casefold() == "q0"):  # else a document called q0
        return True
    again = (at for at, field in enumerate(fields) if at >= _SIX and field == fields[1])
    return any(
        re.fullmatch(r"\d+", fields[at + 2]) and re.match(r"[-+]?\.?\d", fields[at + 3])
        for at in again
        if at + 3 < len(fields)
    )


_FIELD = rb"[^ \n]+"
_LIKE = re.compile(
    rb"(?m)^%b %b (?:[^\n]* )?[qQ]0(?: |$)|^%b (%b) %b %b %b (?:%b )+\1 %b \d+ [-+.\d]"
    % ((_FIELD,) * 9)
)
RUN = Layout(
    what="a TREC run line",
    fields=("query", "Q0", "document", "rank", "score", "tag"),
    keep={
        0: ("query_id", pl.String),
        2: ("doc_id", pl.String),
        3: ("rank", pl.Int64),
        4: ("score", pl.Float64),
    },
    optional=frozenset({"rank"}),
    more=Further(_joined, _LIKE),
)


_SPACE = r"[ \t\n\r\v\f\x00]"


def read_qrels(source: Source) -> Rows:
    return Rows(_in_order(frames(source, QRELS), source.name))


def _in_order(parts: Iterable[pl.DataFrame], name: str) -> Iterator[pl.DataFrame]:
    """The judgments; raises InputError if ``out_of_order``."""
    few: list[pl.DataFrame] | None = []
    for part in parts:
        if few is not None:
            few.append(part)
            if few[0].height and (part["doc_id"] != few[0]["doc_id"][0]).any():
                few = None
        yield part
    if few and out_of_order(rows := pl.concat(few)):
        raise InputError(
            f"every judgment is for document {rows['doc_id'][0]!r}, and the second column varies: "
            "are the columns in another order?",
            file=name,
            fix="TREC qrels are query iteration document grade; for query document 0 grade: "
            "awk '{print $1, 0, $2, $4}'",
        )


def out_of_order(rows: pl.DataFrame) -> bool:
    """Whether all judgments of several queries are for one document, and their iterations differ.

    This happens if the document is in the second column, as in CISI.REL (query document 0 0.0).
    """
    return (
        rows["doc_id"].n_unique() == 1
        and rows["query_id"].n_unique() > 1
        and rows["subtopic"].n_unique() > 1
    )


def read_run(source: Source) -> Rows:
    """The rows of a TREC run file, chunk by chunk; the tag of its last line names the run."""
    return Rows(frames(source, RUN), about=lambda: _tag(source.tail))


def _tag(tail: bytes) -> dict[str, str]:
    for raw in reversed(tail.split(b"\n")):
        fields = [field.decode("utf-8", "replace") for field in raw.split()]
        if len(fields) > RUN.fields.index("tag") and not raw.startswith(b"#"):
            return {"tag": fields[RUN.fields.index("tag")]}
    return {}


def write_qrels(qrels: Qrels, stream: IO[bytes], separator: str = " ") -> None:
    """Lines of a TREC qrels file; the iteration is the subtopic, or 0."""
    frame = whole(qrels.rows, "grade")
    _refuse(frame, "TREC qrels", qrels.source)
    iteration = pl.lit("0") if qrels.subtopics is None else pl.col("subtopic")
    _lines(frame.select("query_id", iteration, "doc_id", "grade"), stream, separator)


def write_run(run: Run, stream: IO[bytes]) -> None:
    """Lines of a TREC run file; the tag is the run's name without white space."""
    tag = re.sub(r"\s+", "_", run.name) or "karat"
    columns = ("query_id", pl.lit("Q0"), "doc_id", "rank", "score", pl.lit(tag).alias("tag"))
    for part in parts_of(run):
        frame = part.frame()
        _refuse(frame, "a TREC run", run.source)
        _lines(frame.select(columns), stream, " ")


def _refuse(frame: pl.DataFrame, what: str, source: str) -> None:
    ids = ("query_id", "doc_id")
    refuse_unwritable(
        frame, (*ids, "subtopic"), _SPACE, f"{what}, where white space separates", source
    )
    refuse_unwritable(frame, ids[:1], "^#", f"{what}, where # begins a comment", source)


def _lines(frame: pl.DataFrame, stream: IO[bytes], separator: str) -> None:
    frame.write_csv(stream, include_header=False, separator=separator, quote_style="never")


def _places(source: Source, role: str) -> Iterator[Place]:
    return places(source, QRELS, (0, 2, 1)) if role == "qrels" else places(source, RUN, (0, 2))


TREC = Format(
    name="trec",
    what="TREC qrels and runs, as trec_eval reads them",
    extensions=(".trec", ".txt", ".qrels", ".run"),
    readers={"qrels": read_qrels, "run": read_run},
    writers={"qrels": write_qrels, "run": write_run},
    places=_places,
)
