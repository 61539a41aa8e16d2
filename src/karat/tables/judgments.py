"""Judgments: who gave which grade to which document for which query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

import polars as pl

from karat.errors import InputError
from karat.tables.incoming import conform
from karat.tables.schema import JUDGMENTS, Scale

STATES = ("graded", "cannot_judge")
SOURCES = ("human", "clicks", "llm", "import")
MACHINE = "llm"
UNNAMED_RATER = "import"  # the rater of imported grades without a rater; no user can have this name
KINDS = ("rating", "repeat", "gold", "adjudication")


class Judgments:
    """The raw judgments that count; superseded and withdrawn ones are not included.

    An aggregation method turns them into qrels (``karat.golden.aggregation``). Agreement is
    computed on these judgments, never on aggregated or adjudicated grades.

    Attributes:
        frame: One row for each judgment (``schema.JUDGMENTS``), in the order of ``judgment``.
        scale: Lowest and highest possible grade.

    Args:
        frame: As above; optional columns may be absent and are then null.
        scale: As above.
        source: Name of the table in error messages.

    Raises:
        InputError: a missing column, an empty id, an unknown state, source or kind, a grade outside
            the scale, a grade in state ``cannot_judge``, or ``graded`` without a grade.
    """

    def __init__(self, frame: pl.DataFrame, scale: Scale, source: str = "judgments") -> None:
        frame = conform(frame, JUDGMENTS, source)
        frame = frame.with_columns(
            pl.lit(None, dtype=column.dtype).alias(column.name)
            for column in JUDGMENTS
            if column.name not in frame.columns
        )
        graded, (low, high) = pl.col("state") == "graded", scale
        wrong = {
            f"unknown {name}; expected {' | '.join(allowed)}": ~pl.col(name).is_in(allowed)
            for name, allowed in (("state", STATES), ("source", SOURCES), ("kind", KINDS))
        }
        wrong["state and grade differ"] = graded != pl.col("grade").is_not_null()
        off = graded & ~pl.col("grade").is_between(low, high)
        wrong[f"its grade is not on the scale from {low:g} to {high:g}"] = off
        _refuse(frame, wrong, source)
        names = [column.name for column in JUDGMENTS]
        self.frame = frame.select(names).sort("judgment")
        self.scale = scale
        self.source = source

    @cached_property
    def ratings(self) -> pl.DataFrame:
        """The ratings that agreement uses: kind ``rating``, graded; one for each rater and pair."""
        return self.frame.filter((pl.col("kind") == "rating") & (pl.col("state") == "graded"))

    @cached_property
    def raters(self) -> list[str]:
        """All raters, in the order of their first judgment."""
        return self.frame["rater"].unique(maintain_order=True).to_list()

    def of(self, query_ids: pl.Series) -> Judgments:
        """The judgments of some queries."""
        chosen = self.frame.filter(pl.col("query_id").is_in(query_ids.implode()))
        return Judgments(chosen, self.scale, self.source)

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"<Judgments {self.source}: {len(self)} of {len(self.raters)} raters>"


def _refuse(frame: pl.DataFrame, wrong: Mapping[str, pl.Expr], source: str) -> None:
    """Raise the first reason that is so of a row, or may be."""
    found = frame.select(
        held.fill_null(value=True).any().alias(reason) for reason, held in wrong.items()
    )
    for reason, some in found.row(0, named=True).items():
        if some:
            row = frame.filter(wrong[reason].fill_null(value=True)).row(0, named=True)
            raise InputError(
                f"judgment {row['judgment']}: {reason}",
                file=source,
                query=row["query_id"],
                doc_id=row["doc_id"],
            )


# Words that do not occur in names of people.
_WORDS = r"""
    llms? | llm[-_ ]?judges? | auto[-_ ]?judge | umbrela | chat[-_ ]?gpt | chat[-_ ]?glm
    | gpt[-_ ]?\d\w* | gpt | rank(?:gpt|llama|zephyr|vicuna)
    | (?:code|tiny)?[-_ ]?llama[-_ ]?v?\d\w* | mixtral | qwen\d* | qwq | deepseek
"""
# Models that share their name with people or things: only with a version.
_VERSIONED = r"""
    claude (?: [-_]?v?\d\w* | [-_. ](?:instant|opus|sonnet|haiku) | [ ]\d+(?:[. ]\d+|[ ][a-z]+) )
    | gemini (?: [-_. ]?v?\d | [-_. ](?:pro|flash|ultra|nano) )
    | gemma [-_]?\d
    | grok [-_]?\d
    | (?:mi|mini|code|pix)stral [-_. ]? (?:\d | large | small | medium | nemo | tiny | latest )
    | phi [-_]\d
    | command [-_] (?:r|a)
    | o[134] [-_] (?:mini|preview|pro)
"""
# Names that are a model's only on their own.
_ALONE = r"gemini|llama|mistral|codestral|grok|o[134]"
# Not within a longer word: gptaylor, agpt.
_MODEL = re.compile(
    rf"(?<![^\W_]) (?: {_WORDS} | {_VERSIONED} ) (?![^\W_]*[^\W\d_]{{3}})", re.VERBOSE
)


def names_a_model(rater: str) -> bool:
    """Whether a rater's name is that of a model and not of a person.

    Names that people have too (Claude, Gemma, Mistral) need a version or a size:
    ``claude-3-opus`` is a model, ``claude.dupont`` and ``claude 2`` are not.
    """
    name = rater.strip().casefold()
    if "@" in name and "/" not in name:
        name = name.partition("@")[0]  # the person's part of an address
    return re.fullmatch(_ALONE, name) is not None or _MODEL.search(name) is not None
