"""Rows of the lists that the API returns and the client reads as frames.

Rows of queries and documents also have their attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from karat.tables.schema import JUDGMENTS, QUERIES, Column

_S, _F, _I = pl.String(), pl.Float64(), pl.Int64()
_QUERY, _DOC = Column("query_id", _S, "the query"), Column("doc_id", _S, "the document")
_TEXT = Column("text", _S, "text of the query; null if unknown")
_TITLE = Column("title", _S, "title of the document; null if unknown")
_GRADES = (
    Column("raters", pl.List(_S), "who rated it; null without any"),
    Column("grades", pl.List(_F), "their grades, in the same order; null likewise"),
)
LISTS: Mapping[str, Sequence[Column]] = {
    "queries": (
        *(column for column in QUERIES if column.name in {"query_id", "text"}),
        Column("need", _S, "the information need; null if unknown", optional=True),
        Column("weight", _F, "weight used in means: 0 without one if others have one; absent "
               "if no query has one", optional=True),
        *(
            Column(name, _I, f"{meaning}; only of the current golden set", optional=True)
            for name, meaning in (
                ("documents", "documents queued or judged"),
                ("graded", "graded documents"),
                ("judgments", "judgments that count"),
                ("waiting", "judgments that are waiting"),
                ("editions", "editions that contain it"),
            )
        ),
        Column("words", _S, "number of words: `1` to `4`, or `5 or more`; null without a text",
               optional=True),
    ),
    "documents": (
        _DOC,
        Column("title", _S, "its title; null if unknown"),
        Column("text", _S, "its text; null if unknown"),
        Column("url", _S, "its address; null if unknown", optional=True),
        Column("sha256", _S, "hash of what raters see; null if unknown"),
    ),
    "pairs": (
        *(_QUERY, _TEXT, _DOC, _TITLE),
        Column("state", _S, "`to adjudicate`, `settled`, `disagreement`, `to judge`, `gold`, "
               "`graded`, `cannot judge` or `not judged`"),
        Column("grade", _F, "the grade that counts; null without one"),
        Column("rule", _S, "its aggregation method; null without a grade"),
        Column("votes", _I, "number of ratings"),
        Column("said", _S, "every rating, such as `ann 2, ben –, cheap@1f (uncertified "
               "machine) 1`; null without any"),
        *_GRADES,
        Column("low", _F, "lowest rating of a person; null without any"),
        Column("high", _F, "highest rating of a person; null without any"),
        Column("adjudicated", _F, "grade of an adjudicator; null without one"),
        Column("imported", _F, "imported grade without a rater; null without one"),
        Column("gold_grade", _F, "known grade of a gold item; null for others"),
        Column("waiting", _I, "judgments that are waiting"),
        Column("priority", _F, "place in the queue; null if it is not queued"),
        Column("chosen_by", _S, "how it was chosen; null if it was not"),
    ),
    "judgments": (
        *JUDGMENTS,
        *(_TEXT, _TITLE),
        Column("stale", pl.Boolean(), "whether the document has changed since"),
        Column("machine", _S, "`certified` or `uncertified`, of a machine's judgment: whether the "
               "judge's passport certifies it; null for others"),
    ),
    "grades": (
        *(_QUERY, _DOC),
        Column("grade", _F, "the grade with which runs are evaluated"),
        Column("votes", _I, "number of ratings; null if unknown"),
        Column("rule", _S, "the aggregation method; null if unknown"),
        Column("raters", pl.List(_S), "who rated it; null if unknown"),
    ),
    "disagreements": (
        *(_QUERY, _DOC),
        Column("votes", _I, "number of ratings"),
        Column("low", _F, "the lowest"),
        Column("high", _F, "the highest"),
        Column("spread", _F, "`high` minus `low`"),
        *_GRADES,
        Column("reasons", pl.List(_S), "their reasons (null where none was given), likewise"),
        Column("settled", pl.Boolean(), "false"),
        _TEXT,
        Column("between", _S, "`raters`, or `import`: an imported grade is far from the raters'"),
        Column("imported", _F, "that grade; null between raters"),
    ),
    "comparison": (
        Column("candidate", _S, "name of the candidate"),
        Column("measure", _S, "canonical name of the measure"),
        *(_QUERY, _TEXT),
        Column("outcome", _S, "`better`, `same` or `worse`"),
        Column("baseline_value", _F, "value of the baseline"),
        Column("candidate_value", _F, "value of the candidate"),
        Column("difference", _F, "candidate minus baseline"),
        Column("share", _F, "what the query contributes to the mean difference"),
        Column("slices", pl.List(_S), "slices it is in, as `lang=de`"),
        Column("counts", pl.Boolean(), "whether it counts in overall numbers: not with zero weight;"
               " `outcome=better&counts=yes` lists as many queries as `wins` counts"),
    ),
}  # fmt: skip
